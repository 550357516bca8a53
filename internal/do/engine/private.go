package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/engine/ending"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/keep/journal"
)

// This file is about runs in a private workspace: how they get into it, how what the
// person did comes in before an iteration, and how verified work is delivered.

// fillWorkspace fills the private workspace for a new run.
func (d *Driver) fillWorkspace(ctx context.Context) error {
	p := d.o.Private
	if p == nil {
		return nil
	}
	d.warnOfUndelivered(ctx, p.Agreed().Run)
	if err := p.Begin(ctx, d.id); err != nil {
		return err
	}
	d.setup.Private, d.setup.Branch = p.Place().ID, p.Agreed().Branch
	d.useWorkspace()
	return nil
}

// warnOfUndelivered warns that what the last run of the workspace came to is not
// delivered. That work is kept; the workspace becomes the new run's.
func (d *Driver) warnOfUndelivered(ctx context.Context, id string) {
	run, err := d.o.Store.Run(ctx, id)
	if err == nil && storedrun.ReasonUndelivered(run) != "" {
		d.notify(Notice{Kind: Note, Text: fmt.Sprintf("work of %s is not in your files; see it: pawl show %s --diff; "+
			"apply it: pawl apply %s; discard it: pawl discard %s", id, id, id, id)})
	}
}

// stateFileRoot returns the folder below which the state file is kept: that of the
// person's own files, also for a run in a private workspace.
func (d *Driver) stateFileRoot() string {
	if d.o.Private != nil {
		return d.plan.ProjectRoot()
	}
	return d.plan.Root
}

// enterAgain goes on in the private workspace of the run. A run stays where it began.
func (d *Driver) enterAgain(ctx context.Context) error {
	p := d.o.Private
	switch {
	case d.o.Settles:
		return nil
	case p == nil && d.setup.Private != "":
		return errors.New("the run works in a private workspace, but there is no git repository here any more")
	case p == nil:
		return nil
	case d.setup.Private == "" && d.foreign:
		return d.fillWorkspace(ctx)
	case d.setup.Private == "":
		return fmt.Errorf("the run began in your own files, when they were in no git repository; its work is there. "+
			"Continue from there: pawl run %s --fresh", d.plan.Name)
	}
	if err := p.Continue(ctx, d.id); err != nil {
		if errors.Is(err, delivery.ErrGone) {
			return fmt.Errorf("%w; its work is in its snapshots: pawl apply %s", err, d.id)
		}
		return err
	}
	p.GoOn()
	d.useWorkspace()
	return nil
}

// useWorkspace makes the workspace what the run works in.
func (d *Driver) useWorkspace() {
	p := d.o.Private
	d.o.Tree, d.watched = p.Tree(), p.Place().Dir
	d.plan = runplan.InWorkspace(d.plan, p)
	if d.plan.Root != d.plan.Project {
		d.notify(Notice{Kind: Note, Text: "agents and gates work in " + d.plan.Root +
			", a private workspace; what is verified is delivered to " + d.plan.Project})
	}
}

// tamperBase is the tree that protected files are compared with: what the person has,
// where the run has a private workspace.
func (w *treeWatch) tamperBase() string {
	if p := w.o.Private; p != nil {
		return p.Agreed().Tree
	}
	return w.trees.base
}

// bringInPersonsWork brings what the person did meanwhile into the workspace before an iteration.
// Its Rests say why the run has to rest; their kind is empty where it need not.
func (w *treeWatch) bringInPersonsWork(ctx context.Context, n int) (in delivery.BroughtIn, err error) {
	if w.o.Private == nil {
		return in, nil
	}
	in, err = w.o.Private.BringIn(ctx, n)
	cameIn := in.Files > 0 || in.Commits
	if err == nil && in.Rests.Kind == "" && cameIn {
		w.trees.headAt = w.trees.headAt.Add(-freshFor) // the files are others now
		w.notify(Notice{Kind: Note, Text: in.Text()})
	}
	return in, err
}

// beforeIteration is [worker.exchange] for a command that is not begun yet; nil when it
// may begin.
func (w *worker) beforeIteration(ctx context.Context, s loop.State) *input {
	rest, err := w.exchangeWork(ctx, s)
	var in input
	switch c := s.Command; {
	case err != nil:
		in = w.iterationEnded(c, ending.NotStarted(c, err))
	case rest != "":
		in = input{event: w.stampEvent(loop.Event{Kind: loop.Throttled, For: c.Seq, Text: rest})}
	default:
		return nil
	}
	return &in
}

// exchangeWork is done before an iteration: it delivers verified work, puts the files
// back to a snapshot where that is asked for, and brings in what the person did. rest is
// the reason for which the run has to rest; "" for none.
func (w *worker) exchangeWork(ctx context.Context, s loop.State) (rest string, err error) {
	if rest = w.deliverWork(ctx, s); rest != "" {
		return rest, nil
	}
	if n := s.Command.Rewind; n != 0 {
		w.rewindToBest(ctx, s.Command)
	}
	in, err := w.bringInPersonsWork(ctx, s.Iteration)
	if w.rests = in.Rests; in.Rests.Kind == deliver.Settle {
		w.noteDelivered(delivery.Delivered{Decision: in.Rests, Files: len(in.Rests.Paths)})
	}
	return in.Rests.ReasonToRest(w.id), err
}

// combineTries is how often work and what a person commits meanwhile are put together.
const combineTries = 3

// deliverWork delivers what the last iteration ended with, where that is verified. rest
// says why the run has to rest; "" is that it need not.
func (w *worker) deliverWork(ctx context.Context, s loop.State) (rest string) {
	p := w.o.Private
	if p == nil || s.Iteration == 0 {
		return ""
	}
	if s.PendingReview != nil { // its question says what becomes of the work; what was red before is over
		w.noteDelivered(delivery.Delivered{Decision: deliver.Decision{Kind: deliver.Nothing}})
		return ""
	}
	v := storedrun.LastVerdict(s)
	v.Gated = len(w.plan.Gates) > 0
	for range combineTries {
		d, err := p.Deliver(ctx, v)
		if err != nil {
			d.Decision = deliver.Decision{Kind: deliver.Wait, Why: err.Error()}
			w.noteDelivered(d)
			return ""
		}
		if d.Kind != deliver.Combine {
			w.noteDelivered(d)
			return d.ReasonToRest(w.id)
		}
		if stays, green := w.combineAndVerify(ctx, s); !green {
			if stays.Kind != "" {
				d.Decision = stays
			}
			w.noteDelivered(d)
			return stays.ReasonToRest(w.id)
		}
		v.Together = true
	}
	return ""
}

// combineAndVerify puts the work together with what the person did meanwhile, and has the gates judge
// that. stays says why it is not delivered then, if it is known.
func (w *worker) combineAndVerify(ctx context.Context, s loop.State) (stays deliver.Decision, green bool) {
	in, err := w.bringInPersonsWork(ctx, s.Iteration)
	if err != nil {
		w.warn(err.Error())
	}
	if in.Rests.Kind != "" || err != nil || len(w.plan.Gates) == 0 {
		return in.Rests, err == nil && in.Rests.Kind == ""
	}
	together := in.Together()
	w.notify(Notice{Kind: Note, Text: "running the gates on the agent's work " + together})
	c := s.Command
	c.Iteration, c.Attempt = s.Iteration, s.Attempts+combinedAttempt
	red, judged := w.judgeAgain(ctx, c)
	if red != "" {
		w.redAgain = "Together with what a person did in the meantime the work is red: " + red
		w.warn(together + " the work is red, so it is not delivered: " + red)
		stays = deliver.Decision{Kind: deliver.Combine, Why: together + " it is red"}
	}
	if green = judged && red == ""; green {
		w.judgeAlone(ctx, c)
	}
	return stays, green
}

// judgeAgain has the gates judge the files as they are, and says what is red. judged is
// false where they came to no verdict.
func (w *judge) judgeAgain(ctx context.Context, c loop.Command) (red string, judged bool) {
	defer w.dropCaches(w.attempt(c.Iteration, c.Attempt).CachesFolder())
	rep, all, err := w.baseGates(ctx, c, w.gatesOfIteration(c))
	switch {
	case err != nil:
		w.warn(err.Error())
		return "", false
	case rep.Stopped || ctx.Err() != nil:
		return "", false
	case len(all) > 0 || rep.Failure != nil:
		return append(all, rep.Summary)[0], true
	}
	return "", true
}

// judgeAlone has the gates judge the agent's commits by themselves, where it left other
// files uncommitted: the branch gets no commit that nobody judged.
func (w *judge) judgeAlone(ctx context.Context, c loop.Command) {
	p := w.o.Private
	if p == nil {
		return
	}
	paths, err := p.SetAside(ctx, c.Iteration)
	if err == nil && len(paths) == 0 {
		return
	}
	red, judged := "", false
	if err == nil {
		w.notify(Notice{Kind: Note, Text: "the gates judge the agent's commits too, without what is uncommitted: " +
			deliver.Some(paths)})
		c.Attempt += aloneAttempt
		red, judged = w.judgeAgain(ctx, c)
	}
	after, cancel := w.aftermath(context.WithoutCancel(ctx))
	defer cancel()
	if err = errors.Join(err, p.TakeBack(after, judged && red == "")); err != nil {
		w.warn(err.Error())
	}
	if red != "" {
		without := "without what is uncommitted (" + deliver.Some(paths) + ")"
		w.redAgain = "Your commits are red " + without + ": " + red
		w.warn(without + " the agent's commits are red, so they are not delivered as commits: " + red)
	}
}

// combinedAttempt and aloneAttempt are added to the attempts of an iteration whose work is
// judged again.
const (
	combinedAttempt = 1000
	aloneAttempt    = 2000
)

// noteDelivered notifies of a delivery, and lists what became of the work for the next
// commit.
func (w *worker) noteDelivered(d delivery.Delivered) {
	if d.Kind == deliver.Deliver {
		w.notify(Notice{Kind: Delivered, Text: d.Text()})
	}
	w.outcomes.Lock()
	defer w.outcomes.Unlock()
	w.outcomes.list = append(w.outcomes.list, d)
}

// keepDeliveries makes what became of the work part of the next commit, and tells it.
func (d *Driver) keepDeliveries(ctx context.Context) {
	d.worker.outcomes.Lock()
	list := d.worker.outcomes.list
	d.worker.outcomes.list = nil
	d.worker.outcomes.Unlock()
	for _, one := range list {
		before := d.setup.Undelivered
		d.fresh = true
		d.setup.NoteDelivery(one)
		switch one.Kind {
		case deliver.Deliver:
			d.storeEvent(ctx, d.newEvent(journal.WorkDelivered, time.Now(), one), nil, nil)
		case deliver.Nothing:
		default:
			byPolicy := one.Kind == deliver.Ask && len(one.Paths) == 0
			saidAtOnce := one.Kind == deliver.Settle && d.state.Status.Active() // the run rests, and says why
			if one.Why != before && !byPolicy && !saidAtOnce {
				d.notify(Notice{Kind: Warning, Text: "the work is not delivered: " + one.Why})
			}
		}
	}
}

// deliverAtRest delivers what is verified when the run comes to rest, and notes what is
// not.
func (d *Driver) deliverAtRest(ctx context.Context) {
	if d.o.Private == nil || d.lost != nil {
		return
	}
	ctx, cancel := d.aftermath(context.WithoutCancel(ctx))
	defer cancel()
	if d.worker.rests.Kind != deliver.Settle { // a person chooses first
		_ = d.worker.deliverWork(ctx, d.state) // the run rests already
	}
	d.keepDeliveries(ctx)
	refs, err := d.o.Private.OwnRefs(ctx)
	switch {
	case err != nil:
		d.warn(err.Error())
	case len(refs) > 0:
		text := "only in the workspace: " + deliver.Some(refs) + "; open it: pawl run shell " + d.id
		d.notify(Notice{Kind: Note, Text: text})
	}
}
