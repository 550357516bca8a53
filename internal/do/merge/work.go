package merge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/drive"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

const (
	poll     = 100 * time.Millisecond // how often other processes' rows are looked for
	pollIdle = time.Second            // the same where nothing happens
	takeover = time.Second            // how often a queue that another process owns is tried
	asksMax  = 200                    // rows that are taken at once

	drainTries = 4 // failures of pawl's own, in a row, after which Drain gives up
)

// Work lands what can be landed until ctx ends, whose end is no error. While
// another process works on the queue it waits for that one's end.
func (q *Queue) Work(ctx context.Context) error {
	for ctx.Err() == nil {
		err := q.workQueue(ctx, false)
		var owned *store.QueueOwnedError
		if !errors.As(err, &owned) && !errors.Is(err, store.ErrNotOwner) {
			return err
		}
		process.Sleep(ctx, takeover)
	}
	return nil
}

// Drain lands what can be landed now, and returns when all that is left waits
// for a person, a pull request or another time. The error is a
// [*store.QueueOwnedError] when another process works on the queue, and says
// what is wrong when pawl could not do its part several times in a row.
func (q *Queue) Drain(ctx context.Context) error { return q.workQueue(ctx, true) }

// Absorb takes in what was asked of the queue, when no other process works on
// it, without landing anything. Done is false when another one does, or the target's
// remote is away; who works on it next takes it in.
func (q *Queue) Absorb(ctx context.Context) (done bool, err error) {
	row, err := q.o.Store.TakeQueue(ctx, q.ref, q.o.Owner, time.Now(), q.o.Alive)
	if _, owned := errors.AsType[*store.QueueOwnedError](err); owned {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	w := &worker{q: q, state: row.State, n: row.N, set: process.ClockSet()}
	defer w.leaveQueue(ctx)
	facts, warnings, err := q.readFacts(ctx, w.state.Tip, false)
	if err != nil && q.isRemoteAway() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	opened := queue.Event{Kind: queue.Opened, Policy: &q.o.Policy, Facts: &facts, Warnings: warnings}
	if err := w.takeEvent(ctx, opened); err != nil {
		return false, err
	}
	return true, w.takeInRequests(ctx)
}

// leaveQueue gives the queue up.
func (w *worker) leaveQueue(ctx context.Context) {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := w.q.o.Store.LeaveQueue(after, w.q.ref, w.q.o.Owner)
	if err != nil && !errors.Is(err, store.ErrNotOwner) { // else another one has it already
		w.q.o.Notify(queue.Note{Kind: queue.NoteTrouble, Text: err.Error()})
	}
}

// worker is the owner of a queue at work, and the home of its kernel. One
// goroutine has it.
type worker struct {
	q     *Queue
	state queue.State
	n     int64
	seen  int64           // the database's version when rows were looked for
	set   time.Duration   // by which the clock was set, as the state knows it
	drain bool            // it is over when only people and time can bring the queue on
	over  <-chan struct{} // of the context

	resolving map[string]context.CancelFunc
	resolved  chan string // ids of entries whose agent has ended
	trouble   error       // why pawl could not do its part
}

func (q *Queue) workQueue(ctx context.Context, drain bool) error {
	row, err := q.o.Store.TakeQueue(ctx, q.ref, q.o.Owner, time.Now(), q.o.Alive)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	w := &worker{
		q: q, state: row.State, n: row.N, set: process.ClockSet(), drain: drain, over: ctx.Done(),
		resolving: map[string]context.CancelFunc{}, resolved: make(chan string, 100),
	}
	defer w.leaveQueue(ctx)
	defer w.endAgents()
	if err := q.checks.endLeftovers(ctx); err != nil {
		q.o.Notify(queue.Note{Kind: queue.NoteWarning, Text: err.Error()})
	}
	if err := w.openTarget(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	q.unpinLeft(ctx, w.state.Tip)
	if _, err = w.Look(ctx); err == nil {
		err = drive.Run(ctx, w, drive.Sources[queue.Event]{Every: poll, Idle: pollIdle, Wake: q.woken})
	}
	if err == nil && w.isExhausted() {
		err = w.trouble
	}
	return err
}

// openTarget takes in where the target is, and repairs the board.
func (w *worker) openTarget(ctx context.Context) error {
	q, said, at := w.q, "", time.Time{}
	for try := 1; ; try++ {
		facts, warnings, err := q.readFacts(ctx, w.state.Tip, false)
		if err == nil {
			facts.Lost, err = q.repairLandings(ctx, facts.Tip, w.state.Entries)
		}
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the end of ctx is no error
		case err == nil:
			return w.takeEvent(ctx, queue.Event{Kind: queue.Opened, Policy: &q.o.Policy, Facts: &facts,
				Warnings: warnings})
		case w.drain && try == drainTries:
			return err
		}
		if text := q.errorText(err); text != said || time.Since(at) > time.Minute {
			q.o.Notify(queue.Note{Kind: queue.NoteTrouble, Text: text})
			said, at = text, time.Now()
		}
		process.Sleep(ctx, 5*time.Second)
	}
}

// Command of the kernel that is due now. After the end of the context only a
// landing that is under way continues.
func (w *worker) Command() (drive.Command[queue.Event], bool) {
	c, state := w.state.Command, w.state
	do := func(ctx context.Context) queue.Event { return w.q.carryOut(ctx, &state, c) }
	drained := w.drain && w.waitsForPeopleOnly()
	more := !drained && !w.isExhausted()
	select {
	case <-w.over:
		more = c.Kind == queue.DoLand
	default:
	}
	return drive.Command[queue.Event]{Seq: int(c.Seq), Do: do}, more
}

// Take hands the answer of a command to the kernel. That of a landing is stored
// also after the end of the context.
func (w *worker) Take(ctx context.Context, e queue.Event) error {
	if e.Kind == queue.Stumbled {
		w.trouble = errors.New(e.Why)
	}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), landLimit)
		defer cancel()
	}
	return w.takeEvent(ctx, e)
}

// Look takes in what was asked, and keeps the agents going.
func (w *worker) Look(ctx context.Context) ([]queue.Event, error) {
	for len(w.resolved) > 0 {
		delete(w.resolving, <-w.resolved)
	}
	if err := w.takeInRequests(ctx); err != nil {
		return nil, err
	}
	return nil, w.startResolving(ctx)
}

// waitsForPeopleOnly is true when nothing but time and people can bring the queue on.
func (w *worker) waitsForPeopleOnly() bool {
	works := func(e queue.Entry) bool { return e.Status == queue.Resolving }
	return w.state.Command.Kind == queue.DoWait && w.state.Rest.IsZero() &&
		len(w.resolving)+len(w.state.Checking) == 0 && !slices.ContainsFunc(w.state.Entries, works)
}

// isExhausted is true when a drain has tried often enough.
func (w *worker) isExhausted() bool { return w.drain && w.state.Stumbles >= drainTries }

// takeInRequests takes in what other processes, and this one, asked.
func (w *worker) takeInRequests(ctx context.Context) error {
	db := w.q.o.Store
	version, err := db.DataVersion(ctx)
	if err == nil && version == w.seen && w.seen != 0 {
		return nil
	}
	asks, err := db.QueueAsks(ctx, w.q.ref, asksMax)
	if err != nil {
		w.retryLater(ctx, err)
		return nil
	}
	for _, a := range asks {
		if a.Event.Kind == queue.Added && a.Event.Entry != nil {
			if err = w.q.remakeReverse(ctx, a.Event.Entry); err == nil {
				a.Event.Done, err = w.q.isLanded(ctx, a.Event.Entry)
			}
			if err != nil {
				w.retryLater(ctx, err)
				return nil
			}
		}
		if err := w.takeEvent(ctx, a.Event, a.ID); err != nil {
			return err
		}
	}
	if w.seen = version; len(asks) == asksMax {
		w.seen = 0
	}
	return nil
}

// retryLater notes what could not be asked, and is asked again. At the end it is none.
func (w *worker) retryLater(ctx context.Context, err error) {
	if ctx.Err() == nil {
		w.q.o.Notify(queue.Note{Kind: queue.NoteTrouble, Text: err.Error()})
		process.Sleep(ctx, poll)
	}
}

// isLanded is true when what an entry is to do with its task is done: its last landing is on the target, or was
// taken back.
func (t *target) isLanded(ctx context.Context, e *queue.Entry) (bool, error) {
	list, err := t.o.Store.Landings(ctx, t.ref, e.ID, 1)
	if err != nil || len(list) == 0 {
		return false, err
	}
	wasReverted := list[0].Revert
	if e.Revert != "" || wasReverted {
		return e.Revert != "" && wasReverted, nil
	}
	tip, err := t.Tip(ctx)
	if err != nil || tip == "" {
		return false, err
	}
	return t.o.Repo.IsAncestor(ctx, list[0].Commit, tip)
}

// takeEvent takes an event in. It is stored before any notice or action: while the
// database cannot be written nothing is done.
func (w *worker) takeEvent(ctx context.Context, e queue.Event, taken ...int64) error {
	e.At = time.Now().UTC()
	set := process.ClockSet()
	e.ClockSet = set - w.set
	before := w.state
	after, c := queue.Step(before, e)
	if c.Kind == "" && len(taken) == 0 {
		return nil
	}
	w.q.o.point("before " + string(e.Kind))
	row := store.Queue{Target: w.q.ref, N: w.n + 1, Owner: w.q.o.Owner}
	stored := store.QueueStep{Queue: row, Before: before.Entries, State: after, Taken: taken, At: e.At}
	if err := w.commitStep(ctx, stored); err != nil {
		return err
	}
	w.q.o.point("after " + string(e.Kind))
	w.state, w.n = after, row.N
	if c.Kind != "" {
		w.set = set
	}
	for _, n := range after.Out.Notes {
		w.q.o.Notify(n)
	}
	w.q.unpinLanded(context.WithoutCancel(ctx), after.Out.Landings)
	return nil
}

// commitStep tries again while the database is busy or cannot be written. The
// error is that the queue is not ours any more, or ctx's end.
func (w *worker) commitStep(ctx context.Context, step store.QueueStep) error {
	for try := 0; ; try++ {
		err := w.q.o.Store.CommitQueue(context.WithoutCancel(ctx), step)
		if !errors.Is(err, store.ErrUnwritable) && !errors.Is(err, store.ErrBusy) {
			return err
		}
		if try == 0 {
			w.q.o.Notify(queue.Note{Kind: queue.NoteTrouble, Text: err.Error() +
				"; the queue is blocked until it can"})
		}
		if process.Sleep(ctx, min(time.Second<<min(try, 5), 30*time.Second)); ctx.Err() != nil {
			return err
		}
	}
}

// unpinLeft lets go of commits that are on the target: a git that was killed when
// it was to do that leaves them, and locks.
func (t *target) unpinLeft(ctx context.Context, tip string) {
	refs, err := t.o.Repo.Refs(ctx, queuedTaskRef(""))
	if err != nil || len(refs) == 0 || tip == "" {
		return
	}
	commits := lists.Each(refs, func(r git.Ref) string { return r.Commit })
	if gone, err := t.o.Repo.Unreachable(ctx, commits, tip); err == nil {
		_ = t.o.Repo.DeleteRefs(ctx, slices.DeleteFunc(refs, func(r git.Ref) bool { return gone[r.Commit] }))
	}
}

// unpinLanded lets go of the commits of what has landed. A ref that stays does no harm.
func (t *target) unpinLanded(ctx context.Context, landed []queue.Landing) {
	names := lists.Each(landed, func(l queue.Landing) string { return queuedTaskRef(l.Task) })
	if len(landed) > 0 {
		names = append(names, t.pinnedRef())
	}
	_ = t.o.Repo.DropRefs(ctx, names...)
}

// carryOut carries out a command, and gives the event that answers it; one without
// a kind when ctx ended first.
func (q *Queue) carryOut(ctx context.Context, s *queue.State, c queue.Command) queue.Event {
	if c.Kind == queue.DoLand {
		// A landing is finished, or not begun: it ends in its own time.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), landLimit)
		defer cancel()
	}
	e, err := q.performCommand(ctx, s, c)
	switch {
	case err == nil:
	case ctx.Err() != nil && c.Kind != queue.DoLand:
		return queue.Event{}
	default:
		e = queue.Event{Kind: queue.Stumbled, Why: q.errorText(err), Lasting: isLasting(err)}
	}
	e.For = c.Seq
	return e
}

// isLasting is true for what does not pass by itself, as a network or a full disk may.
func isLasting(err error) bool {
	a := failure.Analyse(failure.Evidence{Source: "step", ExitCode: 1, Output: err.Error()})
	return a.Kind != failure.Transient && a.Class != failure.ResourceExhausted
}

// errorText words an error of pawl's own for a person. Git does not always say that a
// disk is full.
func (t *target) errorText(err error) string {
	for _, dir := range []string{t.o.Repo.Common, t.o.Dir} {
		if files.Full(dir) {
			return fmt.Sprintf("the disk of %s is full, make room: %v", dir, err)
		}
	}
	return err.Error()
}

// endAgents ends the agents at conflicts, and waits for that.
func (w *worker) endAgents() {
	for _, cancel := range w.resolving {
		cancel()
	}
	for len(w.resolving) > 0 {
		delete(w.resolving, <-w.resolved)
	}
}

// performCommand carries out one command. An error is that pawl could not do its part.
func (q *Queue) performCommand(ctx context.Context, s *queue.State, c queue.Command) (queue.Event, error) {
	switch c.Kind {
	case queue.DoWait:
		return q.waitUntil(ctx, c)
	case queue.DoLook:
		facts, warnings, err := q.readFacts(ctx, s.Tip, false)
		if err == nil && !facts.Past {
			facts.Lost, err = q.repairLandings(ctx, facts.Tip, s.Entries)
		}
		return queue.Event{Kind: queue.Looked, Facts: &facts, Warnings: warnings}, err
	case queue.DoPrepare:
		return q.prepareBatch(ctx, s, c)
	case queue.DoVerify:
		return q.checks.verifyTree(ctx, s, c)
	case queue.DoCheck:
		return q.requests.checkAtForge(ctx, s)
	case queue.DoLand:
		return q.landBatch(ctx, s, c)
	case queue.DoForesee:
		return q.conflicts.foreseeConflicts(ctx, s, c)
	case queue.DoPush:
		return q.pushTarget(ctx, c)
	case queue.DoPropose:
		return q.requests.openRequest(ctx, s, c)
	case queue.DoReview:
		return q.requests.lookAtRequests(ctx, s, c)
	}
	return queue.Event{}, fmt.Errorf("cannot carry out %q", c.Kind)
}

func (q *Queue) waitUntil(ctx context.Context, c queue.Command) (queue.Event, error) {
	if c.Until.IsZero() {
		<-ctx.Done()
		return queue.Event{}, ctx.Err()
	}
	process.Sleep(ctx, time.Until(c.Until))
	return queue.Event{Kind: queue.WaitOver}, ctx.Err()
}
