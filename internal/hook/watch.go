package hook

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/queue"
)

// About is what its notices do not say of a run. A field that does not apply is empty.
type About struct {
	Name        string // of the procedure or workflow
	Case, Title string
	Workspace   string
	Branch      string
}

// Watch makes events of the notices of one run, and fires them: the start, 80 %
// and all of its cost, its pause, its questions, and how it ended. The notices
// are those of one engine.Driver, one at a time. A stop by a person is no
// event.
func (r *Runner) Watch(ctx context.Context, a About) func(engine.Notice) {
	if r == nil {
		return func(engine.Notice) {}
	}
	w := watcher{about: a}
	return func(n engine.Notice) {
		for _, e := range w.events(n) {
			r.Fire(ctx, e)
		}
	}
}

type watcher struct {
	about  About
	warned bool         // of the cost
	late   bool         // of the time
	last   *loop.Record // the iteration that ended last
}

func (w *watcher) events(n engine.Notice) []Event {
	var out []Event
	switch n.Kind {
	case engine.RunStarted, engine.RunResumed:
		w.warned, w.late = n.State.Warned, n.State.Late
		e := w.event(Start, n)
		e.Why = ""
		if n.Kind == engine.RunResumed {
			e.Why = "it goes on"
		}
		return append(out, e)
	case engine.Warning:
		if n.NearTime && !w.late {
			w.late = true
			e := w.event(Budget, n)
			e.Why = n.Text
			return append(out, e)
		}
	case engine.IterationEnded:
		w.last = n.Record
	case engine.RunEnded:
		return append(w.budget(n), w.ended(n)...)
	}
	return w.budget(n)
}

// budget tells once that 80 % of the cost or of the time is spent, and that all of
// the cost is. A limit on time that ended the run is an error, which names it.
func (w *watcher) budget(n engine.Notice) []Event {
	limit := n.State.Policy.MaxCost
	if n.State.Late && !w.late && n.Kind != engine.RunEnded {
		w.late = true
		e := w.event(Budget, n)
		e.Why = n.State.NearTime()
		return []Event{e}
	}
	spent := n.Kind == engine.RunEnded && n.State.Status == loop.TimedOut && limit >= 0 && n.State.Spent.Cost >= limit
	near := n.State.Warned && !w.warned
	if !spent && !near {
		return nil
	}
	w.warned = true
	e := w.event(Budget, n)
	e.Why = fmt.Sprintf("cost %s is over 80 %% of the limit %s", n.State.Spent.Cost, limit)
	if spent {
		e.Why = fmt.Sprintf("cost %s has reached the limit %s", n.State.Spent.Cost, limit)
	}
	return []Event{e}
}

// ended tells how the run came to rest. A guard that ends a run asks a person,
// too.
func (w *watcher) ended(n engine.Notice) []Event {
	var out []Event
	switch n.State.Status {
	case loop.Completed:
		out = append(out, w.event(Complete, n))
	case loop.Paused:
		out = append(out, w.event(Pause, n))
	case loop.Aborted, loop.FailedRun, loop.TimedOut, loop.Exhausted:
		e := w.event(Error, n)
		e.Error, e.asks = w.trouble(n), n.State.Question != nil
		out = append(out, e)
	}
	if q := n.State.Question; q != nil {
		e := w.event(Escalation, n)
		e.Question = &Question{Text: q.Text, Options: q.Options, Answer: "pawl answer " + n.Run + ` "…"`}
		out = append(out, e)
	}
	return out
}

// trouble is what ended the run: its guard, else the last failure, else a limit.
func (w *watcher) trouble(n engine.Notice) *Trouble {
	c := n.Command
	t := &Trouble{Code: string(n.State.Status), Message: n.State.Why, Severity: "high"}
	if w.last != nil && w.last.Failure != nil && n.State.Status != loop.TimedOut {
		f := w.last.Failure
		t.Code, t.Message, t.Severity = string(f.Class), f.Summary, string(f.Severity)
	}
	if c.Guard != "" {
		t.Code = c.Guard
		if c.Message != "" {
			t.Message = c.Message
		}
	}
	return t
}

func (w *watcher) event(name Name, n engine.Notice) Event {
	s, a := n.State, w.about
	e := Event{
		Name: name, At: n.At, Case: a.Case, Title: a.Title, Run: n.Run, Subject: a.Name,
		Workspace: a.Workspace, Branch: a.Branch,
		Agent: s.Policy.Agent, Status: string(s.Status), Why: s.Why, Iterations: s.Iteration, Duration: s.Spent.Wall,
	}
	if w.last != nil {
		e.Agent = w.last.Agent
	}
	e.CostUSD = s.Spent.Cost.Dollars(s.Spent.CostKnown)
	return e
}

// OfNote makes an event of a note of the merge queue; ok is false for a note that
// is no event.
func OfNote(n queue.Note, target string) (e Event, ok bool) {
	e = Event{Case: n.ID, Target: target, Why: n.Text}
	if n.ID == "" {
		e.Subject = "the merge queue of " + target
	}
	switch n.Kind {
	case queue.NoteLanded:
		e.Name, e.Status, e.Commit, e.Why = PostMerge, "done", n.Commit, ""
	case queue.NoteConflict:
		e.Name, e.Conflict = Conflict, &Clash{Level: string(n.Class), Files: n.Paths}
	case queue.NoteEscalated:
		e.Name, e.Status = Escalation, "blocked"
		e.Question = &Question{Text: n.Text, Answer: "pawl queue retry " + n.ID + ", or pawl queue drop " + n.ID}
	case queue.NoteStopped:
		e.Name, e.Status = Escalation, "paused"
		e.Question = &Question{Text: n.Text, Answer: "pawl queue resume"}
	default:
		return e, false
	}
	return e, true
}

// BeforeLanding is the event of an entry that is about to land.
func BeforeLanding(e queue.Entry, target, commit string) Event {
	return Event{Name: PreMerge, Case: e.ID, Title: e.Title, Run: e.Run, Target: target, Commit: commit}
}
