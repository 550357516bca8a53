package merge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/queue"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

const (
	poll     = 100 * time.Millisecond // how often other processes' rows are looked for
	takeover = time.Second            // how often a queue that another process owns is tried
	asksMax  = 200                    // rows that are taken at once

	drainTries = 4 // failures of pawl's own, in a row, after which Drain gives up
)

// Work lands what can be landed until ctx ends, whose end is no error. While
// another process works on the queue it waits for that one's end.
func (q *Queue) Work(ctx context.Context) error {
	for ctx.Err() == nil {
		err := q.work(ctx, false)
		var owned *sqlite.QueueOwnedError
		if !errors.As(err, &owned) && !errors.Is(err, sqlite.ErrNotOwner) {
			return err
		}
		rest(ctx, takeover)
	}
	return nil
}

// Drain lands what can be landed now, and returns when all that is left waits
// for a person, a pull request or another time. The error is a
// [*sqlite.QueueOwnedError] when another process works on the queue, and says
// what is wrong when pawl could not do its part several times in a row.
func (q *Queue) Drain(ctx context.Context) error { return q.work(ctx, true) }

// Absorb takes in what was asked of the queue, when no other process works on
// it, without landing anything. Done is false when another one does; that one
// takes it in.
func (q *Queue) Absorb(ctx context.Context) (done bool, err error) {
	row, err := q.o.Store.TakeQueue(ctx, q.target, q.o.Owner, time.Now(), q.o.Alive)
	var owned *sqlite.QueueOwnedError
	if errors.As(err, &owned) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	w := &worker{q: q, state: row.State, n: row.N, set: process.ClockSet()}
	defer w.leave(ctx)
	facts, warnings, err := q.facts(ctx, w.state.Tip)
	if err != nil {
		return false, err
	}
	opened := queue.Event{Kind: queue.Opened, Policy: &q.o.Policy, Facts: &facts, Warnings: warnings}
	if err := w.step(ctx, opened); err != nil {
		return false, err
	}
	return true, w.takeAsks(ctx)
}

// leave gives the queue up.
func (w *worker) leave(ctx context.Context) {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := w.q.o.Store.LeaveQueue(after, w.q.target, w.q.o.Owner); err != nil {
		w.q.notify(queue.Note{Kind: queue.NoteTrouble, Text: err.Error()})
	}
}

// rest waits for d, or less when ctx ends.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// worker is the owner of a queue at work. One goroutine has it.
type worker struct {
	q     *Queue
	state queue.State
	n     int64
	seen  int64         // the database's version when rows were looked for
	set   time.Duration // by which the clock was set, as the state knows it

	job       *job // the command that is carried out
	resolving map[string]context.CancelFunc
	resolved  chan string // ids of entries whose agent has ended
	trouble   error       // why pawl could not do its part
}

// job is a command under way.
type job struct {
	seq    int64
	cancel context.CancelFunc
	done   chan queue.Event // one event; closed without one when it was given up
}

func (q *Queue) work(ctx context.Context, drain bool) error {
	row, err := q.o.Store.TakeQueue(ctx, q.target, q.o.Owner, time.Now(), q.o.Alive)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	w := &worker{
		q: q, state: row.State, n: row.N, set: process.ClockSet(),
		resolving: map[string]context.CancelFunc{}, resolved: make(chan string, 100),
	}
	defer w.leave(ctx)
	defer w.end()
	if err := q.sweep(ctx); err != nil {
		q.notify(queue.Note{Kind: queue.NoteWarning, Text: err.Error()})
	}
	if err := w.open(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	q.unpinLeft(ctx, w.state.Tip)
	return w.run(ctx, drain)
}

// open takes in where the target is, and repairs the board.
func (w *worker) open(ctx context.Context) error {
	q := w.q
	for {
		facts, warnings, err := q.facts(ctx, w.state.Tip)
		if err == nil {
			facts.Lost, err = q.repair(ctx, facts.Tip)
		}
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the end of ctx is no error
		case err == nil:
			return w.step(ctx, queue.Event{Kind: queue.Opened, Policy: &q.o.Policy, Facts: &facts, Warnings: warnings})
		}
		q.notify(queue.Note{Kind: queue.NoteTrouble, Text: err.Error()})
		rest(ctx, 5*time.Second)
	}
}

// run is the loop of the owner.
func (w *worker) run(ctx context.Context, drain bool) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		if err := w.takeAsks(ctx); err != nil {
			return err
		}
		if err := w.resolve(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		c := w.state.Command
		if drain && w.idle(c) {
			return nil
		}
		if drain && w.state.Stumbles >= drainTries {
			return w.trouble
		}
		if w.job == nil || w.job.seq != c.Seq {
			w.stopJob()
			w.start(ctx, c)
		}
		select {
		case e, ok := <-w.job.done:
			w.job = nil
			if !ok {
				continue // given up: ctx is done
			}
			if e.Kind == queue.Stumbled {
				w.trouble = errors.New(e.Why)
			}
			if err := w.step(ctx, e); err != nil {
				return err
			}
		case <-tick.C:
		case <-w.q.wake:
			w.seen = 0
		case id := <-w.resolved:
			delete(w.resolving, id)
			w.seen = 0
		case <-ctx.Done():
			return nil
		}
	}
}

// idle is true when nothing but time, people and agents can bring the queue on.
func (w *worker) idle(c queue.Command) bool {
	return c.Kind == queue.DoWait && w.state.Rest.IsZero() && len(w.resolving) == 0
}

// takeAsks takes in what other processes, and this one, asked.
func (w *worker) takeAsks(ctx context.Context) error {
	store := w.q.o.Store
	version, err := store.DataVersion(ctx)
	if err == nil && version == w.seen && w.seen != 0 {
		return nil
	}
	asks, err := store.QueueAsks(ctx, w.q.target, asksMax)
	if err != nil {
		if ctx.Err() == nil {
			w.q.notify(queue.Note{Kind: queue.NoteTrouble, Text: err.Error()})
			rest(ctx, poll)
		}
		return nil
	}
	for _, a := range asks {
		if a.Event.Kind == queue.Added && a.Event.Entry != nil {
			if a.Event.Done, err = w.q.isLanded(ctx, a.Event.Entry.ID); err != nil {
				w.q.notify(queue.Note{Kind: queue.NoteTrouble, Text: err.Error()})
				rest(ctx, poll)
				return nil //nolint:nilerr // people are notified, and the request is still there
			}
		}
		if err := w.step(ctx, a.Event, a.ID); err != nil {
			return err
		}
	}
	if w.seen = version; len(asks) == asksMax {
		w.seen = 0
	}
	return nil
}

// isLanded is true when a task's last landing is on the target.
func (q *Queue) isLanded(ctx context.Context, id string) (bool, error) {
	list, err := q.o.Store.Landings(ctx, q.target, id, 1)
	if err != nil || len(list) == 0 {
		return false, err
	}
	tip, err := q.o.Repo.Find(ctx, q.target)
	if err != nil || tip == "" {
		return false, err
	}
	return q.o.Repo.IsAncestor(ctx, list[0].Commit, tip)
}

// step takes an event in. It is stored before anybody is notified or anything is
// done.
// While the database cannot be written nothing goes on.
func (w *worker) step(ctx context.Context, e queue.Event, taken ...int64) error {
	e.At = time.Now().UTC()
	set := process.ClockSet()
	e.ClockSet = set - w.set
	before := w.state
	after, c := queue.Step(before, e)
	if c.Kind == "" && len(taken) == 0 {
		return nil
	}
	w.q.o.point("before " + string(e.Kind))
	row := sqlite.Queue{Target: w.q.target, N: w.n + 1, Owner: w.q.o.Owner}
	stored := sqlite.QueueStep{Queue: row, Before: before.Entries, State: after, Taken: taken, At: e.At}
	if err := w.commit(ctx, stored); err != nil {
		return err
	}
	w.q.o.point("after " + string(e.Kind))
	w.state, w.n = after, row.N
	if c.Kind != "" {
		w.set = set
	}
	for _, n := range after.Out.Notes {
		w.q.notify(n)
	}
	w.q.unpin(context.WithoutCancel(ctx), after.Out.Landings)
	return nil
}

// commit tries again while the database is busy or cannot be written. The
// error is that the queue is not ours any more, or ctx's end.
func (w *worker) commit(ctx context.Context, step sqlite.QueueStep) error {
	for try := 0; ; try++ {
		err := w.q.o.Store.CommitQueue(context.WithoutCancel(ctx), step)
		if err == nil || errors.Is(err, sqlite.ErrNotOwner) || errors.Is(err, sqlite.ErrOutOfOrder) {
			return err
		}
		if !errors.Is(err, sqlite.ErrUnwritable) && !errors.Is(err, sqlite.ErrBusy) {
			return err
		}
		if try == 0 {
			w.q.notify(queue.Note{Kind: queue.NoteTrouble, Text: fmt.Sprintf("%v; the queue stands still until it can", err)})
		}
		if rest(ctx, min(time.Second<<min(try, 5), 30*time.Second)); ctx.Err() != nil {
			return err
		}
	}
}

// unpinLeft lets go of commits that are on the target: a git that was killed when
// it was to do that leaves them, and locks.
func (q *Queue) unpinLeft(ctx context.Context, tip string) {
	refs, err := q.o.Repo.Refs(ctx, taskRef(""))
	if err != nil || len(refs) == 0 || tip == "" {
		return
	}
	commits := make([]string, len(refs))
	for i, r := range refs {
		commits[i] = r.Commit
	}
	if gone, err := q.o.Repo.Unreachable(ctx, commits, tip); err == nil {
		_ = q.o.Repo.DeleteRefs(ctx, slices.DeleteFunc(refs, func(r git.Ref) bool { return gone[r.Commit] }))
	}
}

// unpin lets go of the commits of what has landed. A ref that stays does no harm.
func (q *Queue) unpin(ctx context.Context, landed []queue.Landing) {
	var names []string
	for _, l := range landed {
		names = append(names, taskRef(l.Task))
	}
	_ = q.o.Repo.DropRefs(ctx, names...)
}

func (q *Queue) notify(n queue.Note) {
	if q.o.Notify != nil {
		q.o.Notify(n)
	}
}

// start carries a command out beside the loop.
func (w *worker) start(ctx context.Context, c queue.Command) {
	own, cancel := context.WithCancel(ctx)
	if c.Kind == queue.DoLand {
		// A landing is finished, or not begun: it ends in its own time.
		cancel()
		own, cancel = context.WithTimeout(context.WithoutCancel(ctx), landLimit)
	}
	j := &job{seq: c.Seq, cancel: cancel, done: make(chan queue.Event, 1)}
	w.job = j
	state := w.state
	go func() {
		defer close(j.done)
		defer cancel()
		e, err := w.q.perform(own, &state, c)
		if err != nil {
			if own.Err() != nil && c.Kind != queue.DoLand {
				return
			}
			e = queue.Event{Kind: queue.Stumbled, Why: w.q.stumbled(err)}
		}
		e.For = c.Seq
		j.done <- e
	}()
}

// stumbled is an error of pawl's own for a person. Git does not always say that a
// disk is full.
func (q *Queue) stumbled(err error) string {
	for _, dir := range []string{q.o.Repo.Common, q.o.Dir} {
		if files.Full(dir) {
			return fmt.Sprintf("the disk of %s is full, make room: %v", dir, err)
		}
	}
	return err.Error()
}

// stopJob ends what is carried out, and waits for its end. A landing that ends
// in time is taken in.
func (w *worker) stopJob() {
	if w.job == nil {
		return
	}
	w.job.cancel()
	for range w.job.done {
	}
	w.job = nil
}

// end stops the worker. A landing under way is finished and stored.
func (w *worker) end() {
	if j := w.job; j != nil && w.state.Command.Kind == queue.DoLand {
		if e, ok := <-j.done; ok {
			after, cancel := context.WithTimeout(context.Background(), landLimit)
			if err := w.step(after, e); err != nil {
				w.q.notify(queue.Note{Kind: queue.NoteTrouble, Text: err.Error()})
			}
			cancel()
		}
	}
	w.stopJob()
	for _, cancel := range w.resolving {
		cancel()
	}
	for len(w.resolving) > 0 {
		delete(w.resolving, <-w.resolved)
	}
}

// perform carries out one command. An error is that pawl could not do its part.
func (q *Queue) perform(ctx context.Context, s *queue.State, c queue.Command) (queue.Event, error) {
	switch c.Kind {
	case queue.DoWait:
		return q.wait(ctx, c)
	case queue.DoLook:
		facts, warnings, err := q.facts(ctx, s.Tip)
		if err == nil && !facts.Past {
			facts.Lost, err = q.repair(ctx, facts.Tip)
		}
		return queue.Event{Kind: queue.Looked, Facts: &facts, Warnings: warnings}, err
	case queue.DoPrepare:
		return q.prepare(ctx, s, c)
	case queue.DoVerify:
		return q.verify(ctx, c)
	case queue.DoLand:
		return q.land(ctx, s, c)
	case queue.DoForesee:
		return q.foresee(ctx, s, c)
	case queue.DoPush:
		return q.push(ctx, c)
	case queue.DoPropose:
		return q.propose(ctx, s, c)
	case queue.DoReview:
		return q.review(ctx, s, c)
	}
	return queue.Event{}, fmt.Errorf("cannot carry out %q", c.Kind)
}

func (q *Queue) wait(ctx context.Context, c queue.Command) (queue.Event, error) {
	if c.Until.IsZero() {
		<-ctx.Done()
		return queue.Event{}, ctx.Err()
	}
	rest(ctx, time.Until(c.Until))
	return queue.Event{Kind: queue.WaitOver}, ctx.Err()
}
