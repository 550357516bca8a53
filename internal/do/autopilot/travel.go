package autopilot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/drive"
	"github.com/pawl-dev/pawl/internal/do/engine/attemptdir"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// This file has the way of work between machines: commits on the remote, each under
// a ref of its own (git.WorkRef). The record of an iteration says which commit has
// what it left.

// pushPatience is how long a push of an iteration's work is tried. After it, another
// machine would go on from what was pushed before.
const pushPatience = 10 * time.Minute

// pushWork sends a commit of a task's work to the remote, until it is there.
func (o *Options) pushWork(ctx context.Context, task, commit string) error {
	return o.retryPush(ctx, task, func() error { return o.Repo.PushWork(ctx, o.Remote, task, commit) })
}

// retryPush tries to push until it works: the remote, or the database, may be away. A
// refusal stands.
func (o *Options) retryPush(ctx context.Context, task string, push func() error) error {
	until := time.Now().Add(pushPatience)
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		err := push()
		if o.Refused != nil {
			o.Refused(task, err)
		}
		over := ctx.Err() != nil || time.Now().Add(wait).After(until)
		if err == nil || over || errors.Is(err, pool.ErrRefused) {
			return err
		}
		o.Log.Warn("pushing the work failed; it is tried again", "task", task, "error", err)
		drive.Sleep(ctx, time.Now().Add(wait))
	}
}

// Push sends what an iteration left of a task's work to the remote. Where that was not
// possible no commit is said: the work is on this machine only, and the iteration counts.
func (o *Options) Push(ctx context.Context, task, run string) *loop.Pushed {
	pushed := &loop.Pushed{Worker: o.Worker}
	err := o.retryPush(ctx, task, func() error {
		c, err := o.Store.Case(ctx, task)
		if err == nil {
			pushed.Base, pushed.Commit, err = o.Pool.Copy(ctx, task, commitMessage(c, run))
		}
		if err == nil {
			err = o.Repo.PushWork(ctx, o.Remote, task, pushed.Commit)
		}
		return err
	})
	if err != nil {
		o.Log.Warn("cannot push the work for other machines", "task", task, "error", err)
		pushed.Commit = ""
	}
	return pushed
}

// fetchWork brings a commit of a task's work here, to stay as its collected work does.
func (o *Options) fetchWork(ctx context.Context, task, commit string) (found bool, err error) {
	return o.Repo.FetchWork(ctx, o.Remote, task, commit, "refs/pawl/tasks/"+task)
}

// orderedBase makes base, which the autopilot chose, the commit that a task begins at.
func (o *Options) orderedBase(task, base string) {
	o.Base = func(ctx context.Context) (string, error) {
		found, err := o.Repo.FetchWork(ctx, o.Remote, task, base, "refs/pawl/base/"+task+"/ordered")
		if err == nil && !found {
			err = fmt.Errorf("%s does not have commit %s, which %s begins at", o.Remote, base, task)
		}
		return base, err
	}
}

// whereabouts is where a task's work is.
type whereabouts struct {
	holder string       // the worker whose workspace has what the last iteration left; "" is unknown
	pushed *loop.Pushed // what the remote has of it, by the last iteration that has something there; nil for none
	whole  bool         // pushed is all of it
	lost   bool         // what a later iteration left could not be sent
	run    string       // of the task, the last
	landed bool         // what that run did: it was taken back
	begun  bool         // the iteration that was decided was begun here, so the workspace here has the work
	back   bool         // a person took it back
	apart  bool         // they did so on another machine: no workspace has it as it is now
}

// findWorkOf finds a task's work. What was decided last may not be stored.
func (p *attempts) findWorkOf(ctx context.Context, id string) (at whereabouts, err error) {
	run, err := p.o.Store.Latest(ctx, p.o.Root, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return at, err
	}
	var records []loop.Record
	if err == nil {
		if records, err = p.o.Store.LastIterations(ctx, run.ID, lookedAt); err != nil {
			return at, err
		}
	}
	if at.run = run.ID; run.ID != "" {
		landings, err := p.o.Store.Landings(ctx, p.queue.Target(), id, lookedAt)
		ofRun := func(l queue.Landing) bool { return l.Run == run.ID }
		if at.landed = slices.ContainsFunc(landings, ofRun); err != nil || at.landed {
			return at, err
		}
	}
	if d := p.kernel.Pending(); d != nil {
		if d.Record != nil {
			records = append(records, *d.Record)
		}
		at.begun = attemptdir.WasBegun(p.folderOfRun(run.ID), d.Command)
	}
	back, err := storedrun.TakenBack(ctx, p.o.Store, run.ID)
	if err != nil {
		return at, err
	}
	if back != nil {
		at.apart = !back.Here
		at.back = at.apart || !back.Undo
	}
	for _, r := range slices.Backward(records) {
		if r.Pushed == nil {
			continue
		}
		at.holder = cmp.Or(at.holder, r.Pushed.Worker)
		if at.back && r.Number > back.To {
			continue
		}
		if r.Pushed.Commit != "" {
			at.pushed = r.Pushed
			break
		}
		at.lost = true
	}
	at.whole = at.pushed != nil && !at.lost
	return at, nil
}

// lookedAt is how many iterations are looked at for one whose work was pushed.
const lookedAt = 100

// takeToWork gives the workspace of a task. A retry begins anew at the target when
// no gate can be green in the workspace: what it held goes to a recovery ref.
func (p *attempts) takeToWork(ctx context.Context, l *slot) (pool.Workspace, error) {
	if p.o.Remote != "" {
		return p.bringWorkspace(ctx, l)
	}
	return p.takeLocalWorkspace(ctx, l)
}

func (p *workspaces) takeLocalWorkspace(ctx context.Context, l *slot) (pool.Workspace, error) {
	defer p.takesLong(l.name, "its clone is being made")()
	w, err := p.takeWorkspace(ctx, l.name)
	if err != nil || !w.Kept || l.adopt {
		return w, err
	}
	why, err := p.reasonToStartOver(ctx, w)
	if err == nil && why != "" {
		err = p.o.Pool.Release(ctx, w, pool.GivenUp(why))
		if err == nil {
			p.warnAbout(w.ID, why+", so it starts over at the target; its work is kept under a recovery ref")
			w, err = p.takeWorkspace(ctx, l.name)
		}
	}
	return w, err
}

// reasonToStartOver looks for a reason that a retry of a task cannot become green in its workspace, which began at
// a commit that is not the target any more: that was red, or has not got what a newer gate runs. "" if it can.
func (p *workspaces) reasonToStartOver(ctx context.Context, w pool.Workspace) (string, error) {
	id := board.TaskOf(w.ID)
	history, err := p.o.Store.CaseHistory(ctx, id)
	if err != nil || !schedule.Retried(history) {
		return "", err
	}
	target, err := p.o.Base(ctx)
	if err != nil || target == w.Base {
		return "", err
	}
	if red, err := p.queue.WasRed(ctx, w.Base); err != nil || red {
		return "its workspace started from a red commit", err
	}
	last, err := p.o.Store.Latest(ctx, p.o.Root, id)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	ended, err := p.o.Store.LastIterations(ctx, last.ID, 1)
	if err != nil || len(ended) == 0 || !ended[0].RedGate() || ended[0].Failure == nil {
		return "", err
	}
	f := ended[0].Failure
	if !lacksFile().MatchString(f.Summary) {
		return "", nil
	}
	named := strings.FieldsFunc(f.Summary, func(r rune) bool { return strings.ContainsRune(" \t:;,'\"`()[]", r) })
	changes, err := p.o.Repo.Changes(ctx, w.Base, target)
	for _, ch := range changes {
		isNamed := func(word string) bool { return word == ch.Path || path.Base(word) == path.Base(ch.Path) }
		if ch.OldObject == "" && slices.ContainsFunc(named, isNamed) {
			return fmt.Sprintf("its workspace is older than the target and lacks %s, which gate %s needs",
				ch.Path, f.Step), nil
		}
	}
	return "", err
}

// lacksFile is how programs say that a file is not there. A name alone may stand in any message.
var lacksFile = lazy.Regexp(`(?i)no such file|not found|cannot (?:open|find)|can't (?:open|find)|does not exist`)

// bringWorkspace gives the workspace of a task that any machine may have worked on: the one
// that is here, if its work was done here last, else one made from what was pushed. It
// is kept if it has what the last iteration left.
func (p *attempts) bringWorkspace(ctx context.Context, l *slot) (pool.Workspace, error) {
	id := l.task.ID
	at, err := p.findWorkOf(ctx, id)
	base, found := "", false
	if err == nil && at.pushed != nil {
		base = at.pushed.Base
		found, err = p.o.fetchWork(ctx, id, at.pushed.Commit)
	}
	if err != nil {
		return pool.Workspace{}, err
	}
	here := at.holder == "" || at.holder == p.o.Worker || at.begun
	here = here && !at.apart
	if complete := found && at.whole; !here && !complete && !at.back {
		p.warnOfLost(ctx, id, at, found)
	}
	if found && !l.adopt {
		why, err := p.reasonToStartOver(ctx, pool.Workspace{ID: id, Base: base})
		if err != nil {
			return pool.Workspace{}, err
		}
		found = why == ""
	}
	why := "another machine continued it"
	if at.landed || at.apart {
		why = "its work was rolled back"
	}
	if !here || at.landed {
		if err := p.removeWorkspace(ctx, id, base, why); err != nil {
			return pool.Workspace{}, err
		}
	}
	if !found {
		return p.takeLocalWorkspace(ctx, l)
	}
	w, err := p.o.Pool.TakeAt(ctx, id, base, at.pushed.Commit)
	w.Kept = w.Kept || at.whole // one of older work was given up above
	return w, err
}

// warnOfLost: the work of an iteration is lost, and done again.
func (p *attempts) warnOfLost(ctx context.Context, task string, at whereabouts, found bool) {
	from := "starts over"
	if found {
		from = "continues from an earlier one"
	}
	text := fmt.Sprintf("what the last iteration left on %s is not at %s, so the work %s", at.holder, p.o.Remote, from)
	p.warnAbout(task, text)
	p.addEvent(ctx, at.run, journal.Warning, journal.Notice{Text: text})
}

// decidedComplete is true when the run was decided to be complete before this worker took it up.
func (p *attempts) decidedComplete() bool {
	if p.kernel == nil {
		return false
	}
	d := p.kernel.Pending()
	return d != nil && d.State.Status == loop.Completed
}

// errAway is that a run is complete whose work is on a machine that does not have the
// task any more, and was not pushed.
var errAway = errors.New("it was complete, but its work never left its machine; it is done again")

// removeWorkspace removes the workspace of a task that is not gone on with here, for the reason. What is in it goes to
// a recovery ref.
func (p *attempts) removeWorkspace(ctx context.Context, id, base, why string) error {
	row, ok, err := p.o.Store.Workspace(ctx, id)
	if err != nil || !ok {
		return err
	}
	if row.Base != "" {
		base = row.Base
	}
	w, err := p.o.Pool.Reclaim(ctx, id, base)
	if err != nil {
		return err
	}
	return p.o.Pool.Release(ctx, w, pool.GivenUp(why))
}

// dropTravelled removes from the remote what it has of tasks that are done or gone.
// What landed here and was not pushed may be needed. Another board may use the remote, with
// tasks of the same numbers: what it sent stays.
func (p *workspaces) dropTravelled(ctx context.Context) error {
	if p.o.Remote == "" || p.o.Elsewhere == nil {
		return nil
	}
	row, _, err := p.o.Store.Queue(ctx, p.queue.Target())
	if err != nil || row.State.Unpushed != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tasks, err := p.o.Repo.Work(ctx, p.o.Remote)
	if err != nil {
		return err
	}
	base, err := p.baseCommit(ctx)
	if err != nil {
		return err
	}
	var over []string
	for task, refs := range tasks {
		c, err := p.o.Store.Case(ctx, task)
		if err == nil && c.Status != board.Done {
			continue
		}
		if err == nil || errors.Is(err, store.ErrNoCase) {
			refs, err = p.refsOfThisBoard(ctx, task, refs, base)
		}
		if err != nil {
			return err
		}
		over = append(over, refs...)
	}
	return p.o.Repo.DropWork(ctx, p.o.Remote, over)
}

// refsOfThisBoard of a task: the commits were sent by this board, or are on the target.
func (p *workspaces) refsOfThisBoard(ctx context.Context, task string, refs []string, base string) ([]string, error) {
	sent, err := p.o.Store.Sent(ctx, task)
	if err != nil {
		return nil, err
	}
	commits := lists.Each(refs, path.Base)
	gone, err := p.o.Repo.Unreachable(ctx, commits, base)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(refs, func(ref string) bool { return !sent[path.Base(ref)] && gone[path.Base(ref)] }), nil
}
