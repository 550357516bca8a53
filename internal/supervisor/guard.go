package supervisor

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/loop"
)

// walkBound is the longest look at a tree that a guard takes.
const walkBound = 10 * time.Second

// watchdog asks the guards of a run, which is read on one goroutine while its
// time passes on another.
type watchdog struct {
	mu    sync.Mutex
	guard *agent.Guard
	// tools is how many of the agent's tools run, as far as its stream says.
	tools atomic.Int32
	// due gets the time at which retries have gone on for too long.
	due   chan time.Time
	doubt chan agent.Trip // trips that count only if no file changed
	end   func(loop.Ended, string)
	root  string
}

func newWatchdog(job Job, end func(loop.Ended, string)) *watchdog {
	return &watchdog{guard: agent.NewGuard(job.Guards), due: make(chan time.Time, 1), doubt: make(chan agent.Trip, 1), end: end, root: job.Watch}
}

// see takes the next event.
func (w *watchdog) see(e agent.Event) {
	switch e.Kind {
	case agent.ToolStart:
		w.tools.Add(1)
	case agent.ToolEnd:
		w.tools.Store(max(0, w.tools.Load()-1))
	case agent.Text, agent.End:
		if !e.Sub {
			w.tools.Store(0)
		}
	}
	w.mu.Lock()
	trip, tripped := w.guard.Add(e, time.Now())
	if tripped {
		w.guard.Forgive()
	}
	due := w.guard.Deadline()
	w.mu.Unlock()
	if !due.IsZero() {
		select {
		case w.due <- due:
		default:
		}
	}
	if !tripped {
		return
	}
	if trip.Since.IsZero() || w.root == "" {
		w.end(trip.Ended, trip.Why)
		return
	}
	select {
	case w.doubt <- trip:
	default: // the one before is still looked at
	}
}

// expired says whether the agent's own retries have gone on for too long, and
// else when that is worth asking again.
func (w *watchdog) expired(at time.Time) (trip agent.Trip, tripped bool, again time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	trip, tripped = w.guard.Expired(at)
	return trip, tripped, w.guard.Deadline()
}

// look settles a doubt: the trip counts when no file below the root changed
// since it began. The goroutine ends within walkBound, or with ctx.
func (w *watchdog) look(ctx context.Context, trip agent.Trip, done func()) {
	go func() {
		defer done()
		ctx, cancel := context.WithTimeout(ctx, walkBound)
		defer cancel()
		if _, changed := newerThan(ctx, w.root, trip.Since); !changed && ctx.Err() == nil {
			w.end(trip.Ended, trip.Why)
		}
	}()
}

// guardian is the part of a watch that asks the watchdog.
type guardian struct {
	dog    *watchdog
	timer  *time.Timer
	ctx    context.Context
	cancel context.CancelFunc
	walks  sync.WaitGroup
	busy   atomic.Bool
}

func newGuardian(dog *watchdog) *guardian {
	g := &guardian{dog: dog, timer: time.NewTimer(time.Hour)}
	g.timer.Stop()
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// doubts and dues are the watchdog's; nil, which is silent, without one.
func (g *guardian) doubts() <-chan agent.Trip {
	if g.dog == nil {
		return nil
	}
	return g.dog.doubt
}

func (g *guardian) dues() <-chan time.Time {
	if g.dog == nil {
		return nil
	}
	return g.dog.due
}

// settle looks at the tree, at one doubt at a time.
func (g *guardian) settle(trip agent.Trip) {
	if !g.busy.CompareAndSwap(false, true) {
		return
	}
	g.walks.Add(1)
	g.dog.look(g.ctx, trip, func() {
		g.busy.Store(false)
		g.walks.Done()
	})
}

func (g *guardian) wake(at time.Time) { g.timer.Reset(max(time.Until(at), time.Millisecond)) }

// ask ends the job when its retries have gone on for too long.
func (g *guardian) ask() {
	trip, tripped, again := g.dog.expired(time.Now())
	switch {
	case tripped:
		g.dog.end(trip.Ended, trip.Why)
	case !again.IsZero():
		g.wake(again)
	}
}

func (g *guardian) stop() {
	g.timer.Stop()
	g.cancel()
	g.walks.Wait()
}

// alive is whether a tool of the agent runs although nothing is heard of it:
// its stream says so, or a process was started after the agent's last word.
// Programs that say nothing before a tool has ended are seen by the latter.
func (t *task) alive(dog *watchdog) bool {
	if !t.job.Limits.Tools || dog == nil {
		return false
	}
	if dog.tools.Load() > 0 {
		return true
	}
	seen := time.Unix(0, t.seen.Load())
	if !seen.After(t.started) {
		return false // what runs from the start on is part of the program
	}
	youngest, known := t.reaper.Youngest()
	return known && youngest.After(seen.Add(slack))
}

// slack is how exactly the start of a process is known.
const slack = 20 * time.Millisecond

// printed is the most output of one job, and what its longest message is of
// it; both count bytes.
func (m *meter) printed() {
	most := m.limits.Printed
	if most <= 0 || m.passed {
		return
	}
	why := ""
	switch {
	case m.bytes+m.noise.Load() > most:
		why = tooMuch(most)
	case m.silent > most/4:
		why = fmt.Sprintf("one message of the agent is longer than %s and has no end; raise loop.max_output if that is as it should be", megabytes(most/4))
	}
	if why != "" {
		m.passed = true
		m.pass(loop.EndedOutput, why)
	}
}

// hear counts what comes on stderr, on a goroutine of its own.
func (m *meter) hear(p []byte) {
	n := m.noise.Add(int64(len(p)))
	if most := m.limits.Printed; most > 0 && n > most && n-int64(len(p)) <= most {
		m.pass(loop.EndedOutput, tooMuch(most))
	}
}

// countPrinted ends a job without a parser that prints more than most bytes.
func countPrinted(most int64, pass func(loop.Ended, string)) func([]byte) {
	var printed atomic.Int64
	return func(p []byte) {
		if n := printed.Add(int64(len(p))); n > most && n-int64(len(p)) <= most {
			pass(loop.EndedOutput, "the command printed more than "+megabytes(most))
		}
	}
}

func tooMuch(most int64) string {
	return fmt.Sprintf("the agent printed more than %s; see what it prints, or raise loop.max_output", megabytes(most))
}

func megabytes(n int64) string {
	if n < 10_000_000 {
		return fmt.Sprintf("%d kB", n/1000)
	}
	return fmt.Sprintf("%d MB", n/1_000_000)
}
