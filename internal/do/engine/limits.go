package engine

import (
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"

	"context"
)

// throttled is the event of a command that was not begun: its agent may not be called
// yet, or the run is stopped before that.
func (w *limitedJobs) throttled(c loop.Command) input {
	return input{event: w.stampEvent(loop.Event{Kind: loop.Throttled, For: c.Seq})}
}

// onAgentEvent shows an event of the agent, and notes that a model answered.
func (w *limitedJobs) onAgentEvent(ctx context.Context, e agent.Event) {
	w.Answered(ctx, e)
	n := Notice{Kind: AgentEvent, Event: e}
	if e.Kind == agent.NearLimit && w.near != nil {
		n = Notice{Kind: Warning}
		n.Text, n.NearCost = w.near.state.NearUse(e.Cost, e.Calls)
		w.near.cost = w.near.cost || n.NearCost
	}
	w.notify(n)
}

// performWait carries out a wait.
func (w *limitedJobs) performWait(ctx context.Context, c loop.Command) loop.Event {
	w.Await(ctx, c)
	return w.stampEvent(loop.Event{Kind: loop.WaitOver, For: c.Seq})
}

// nearTime is what a person was told of limits on time while an iteration runs: an
// agent may work for hours, and the kernel warns at its end only.
type nearTime struct {
	mu               sync.Mutex
	over             bool
	own, ofRun, cost bool       // what was warned of
	state            loop.State // as the iteration began
}

// watchTime tells a person when 80 % of a limit on time is used, from an iteration's
// beginning on until the function that it returns is called.
func (w *limitedJobs) watchTime(s loop.State, since time.Time) (stop func()) {
	if s.Command.Kind != loop.Run {
		return func() {}
	}
	told := &nearTime{state: s}
	w.near = told
	var timers []*time.Timer
	for _, near := range s.TimesNear() {
		timers = append(timers, time.AfterFunc(max(0, near.After-time.Since(since)), func() {
			if told.markWarned(near.OfRun) {
				w.o.Log.Warn(near.Text, "run", w.id)
				w.notify(Notice{Kind: Warning, Text: near.Text, NearTime: near.OfRun})
			}
		}))
	}
	return func() {
		told.mu.Lock()
		told.over = true
		told.mu.Unlock()
		for _, t := range timers {
			t.Stop()
		}
	}
}

// markWarned is false after the end.
func (n *nearTime) markWarned(ofRun bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return false
	}
	n.own, n.ofRun = n.own || !ofRun, n.ofRun || ofRun
	return true
}
