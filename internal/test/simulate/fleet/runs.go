package fleet

import (
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/decide/signal"
)

// runPolicy is what every run may do.
var runPolicy = &loop.Policy{
	Kind: loop.Task, MaxIterations: 8, FailureThreshold: 5, Thrashing: 5, Stuck: 5, Repeated: 5, MaxWaits: 6,
	MaxWait: 6 * time.Hour,
	Costs:   loop.Costs{MaxCost: loop.NoLimit, MaxIterationCost: loop.NoLimit, MaxIterationCalls: loop.NoLimit}, Workers: loop.Workers{Agent: "a0"},
}

// takeUp begins the run of a task, or goes on with the one that is there.
func (w *world) takeUp(i int) {
	it := &w.items[i]
	it.begun = true
	past := schedule.Past{Run: it.run, Answered: it.answered}
	if it.reopened.Action != "" {
		past.History = []board.Entry{it.reopened}
	}
	way, why := schedule.Approach(past, runPolicy)
	w.tell(it.c.ID, "taken up: %s (%s)", way, why)
	switch way {
	case schedule.Fresh:
		it.run, it.answered, it.after = &loop.State{}, false, false
		w.step(i, loop.Event{Kind: loop.Started, Policy: runPolicy})
	case schedule.Answer:
		it.answered = false
		w.step(i, loop.Event{Kind: loop.Answered, Text: "do it"})
	case schedule.GoOn:
		w.goOn(i)
	}
}

// goOn takes a run up where it was left.
func (w *world) goOn(i int) {
	it := &w.items[i]
	s := it.run
	switch {
	case !s.Status.Active():
		w.step(i, loop.Event{Kind: loop.Resumed, Policy: runPolicy})
	case s.Command.Kind == loop.Wait: // how long it was to be, whatever the clock tells by now
		c := s.Command
		c.Until = c.Until.Add(min(0, c.Until.Sub(s.LastAt)-c.Until.Sub(w.clock.steady())))
		w.wait(i, c)
	case it.after: // its result is in its files
		it.after = false
		w.step(i, loop.Event{Kind: loop.IterationEnded, For: s.Command.Seq, Record: w.record(&s.Command)})
	default:
		w.report["lost iterations"]++
		w.step(i, loop.Event{Kind: loop.Recovered, For: s.Command.Seq, Record: blank(&s.Command, loop.Exit{Code: -1,
			Ended: loop.EndedLost})})
	}
}

// readopt is for a run that a pawl before left: its agent still runs, or its
// run has ended and nobody took note.
func (w *world) readopt(i int) {
	it := &w.items[i]
	it.begun = true
	w.report["adopted runs"]++
	switch {
	case it.run != nil && !it.run.Status.Active():
		w.rests(i)
	case it.after:
		w.goOn(i)
	}
}

// step takes one event of a run through the kernel, which stores it, and
// carries out what follows.
func (w *world) step(i int, e loop.Event) {
	it := &w.items[i]
	e.At, e.Seed = w.clock.steady(), w.rng.Uint64()
	w.report["events"]++
	before := it.run.Seq
	s, _ := w.rules.Loop(*it.run, e)
	*it.run, it.touched = s, w.clock.wall()
	if s.Seq == before {
		return
	}
	if w.killed(0) {
		return
	}
	switch c := s.Command; c.Kind {
	case loop.Run:
		w.iterate(i)
	case loop.Wait:
		w.report["waits for a provider"]++
		w.wait(i, c)
	case loop.Ask, loop.Finish:
		w.rests(i)
	default:
		w.broken(Table, []string{it.c.ID}, "the run of %s wants to %s", it.c.ID, c.Kind)
	}
}

// rests tells the autopilot what a run came to.
func (w *world) rests(i int) {
	it := &w.items[i]
	s := it.run
	o := schedule.Outcome{Status: s.Status, Why: s.Why, Question: s.Question != nil}
	w.tell(it.c.ID, "run: %s (%s)", s.Status, s.Why)
	w.mine(time.Millisecond, func() { w.pilot(schedule.Event{Kind: schedule.Ended, Case: it.c.ID, Outcome: o}) })
}

// iterate starts an agent. It goes on for a while when its pawl dies.
func (w *world) iterate(i int) {
	it := &w.items[i]
	if it.alive {
		w.broken(Once, []string{it.c.ID}, "a second agent is started on %s", it.c.ID)
	}
	it.alive = true
	it.agent++
	w.live++
	w.report["iterations"]++
	if w.live > w.o.Agents {
		w.broken(Slots, []string{it.c.ID}, "%d agents run in %d slots", w.live, w.o.Agents)
	}
	agent := it.agent
	w.clock.after(w.random(5*time.Minute), func() { w.agentEnds(i, agent, nil) })
}

// agentEnds is the end of an agent's process. rec is what is known of it when
// it was ended.
func (w *world) agentEnds(i, agent int, rec *loop.Record) {
	it := &w.items[i]
	if it.agent != agent || !it.alive {
		return
	}
	it.alive = false
	w.live--
	if !w.up || !it.begun {
		it.after = rec == nil // else it was ended, and nobody knows
		return
	}
	c := it.run.Command
	if rec == nil {
		rec = w.record(&c)
	}
	w.step(i, loop.Event{Kind: loop.IterationEnded, For: c.Seq, Record: rec})
}

// kill ends an agent at once.
func (w *world) kill(i int) {
	it := &w.items[i]
	if it.alive {
		it.alive, it.after = false, false
		it.agent++
		w.live--
	}
}

// wait waits for a provider.
func (w *world) wait(i int, c loop.Command) {
	it := &w.items[i]
	it.agent++
	agent := it.agent
	took := max(0, c.Until.Sub(w.clock.steady()))
	if took > runPolicy.MaxWait {
		w.broken(Prompt, []string{it.c.ID}, "the run of %s waits for %s, and no wait is longer than %s", it.c.ID,
			took, runPolicy.MaxWait)
	}
	w.mine(took, func() {
		if it.agent == agent && it.run.Status == loop.Waiting {
			w.step(i, loop.Event{Kind: loop.WaitOver, For: c.Seq})
		}
	})
}

// control hands a wish to a run. A stop ends its agent after the grace.
func (w *world) control(i int, e loop.Event) {
	it := &w.items[i]
	if it.run == nil || !it.begun {
		return
	}
	if !it.run.Status.Active() && e.Kind == loop.PauseAsked {
		return
	}
	w.step(i, e)
	if e.Kind == loop.StopAsked && it.alive {
		agent, c := it.agent, it.run.Command
		w.mine(w.random(time.Second), func() {
			w.agentEnds(i, agent, blank(&c, loop.Exit{Code: -1, Ended: loop.EndedStop}))
		})
	}
}

func blank(c *loop.Command, exit loop.Exit) *loop.Record {
	return &loop.Record{Number: c.Iteration, Attempt: c.Attempt, Agent: c.Agent, Strategy: c.Strategy, Exit: exit,
		Progress: -1, Score: -1, Elapsed: time.Minute}
}

// record is how an iteration went.
func (w *world) record(c *loop.Command) *loop.Record {
	r := blank(c, loop.Exit{})
	r.Commits = 1
	if w.clock.now.Before(w.limited) {
		r.Exit.Code = 1
		r.Failure = &failure.Analysis{
			Class: failure.RateLimit, Kind: failure.Transient, Transient: true, Provider: true, Summary: "rate limit",
			Fingerprint: "rate", WaitUntil: w.limited.Add(w.clock.began),
		}
		return r
	}
	switch n := w.pick(1000); {
	case n < 15:
		r.Signal = signal.Signal{Kind: signal.Pending, Text: "which port?"}
	case n < 22:
		r.Signal = signal.Signal{Kind: signal.Blocked, Text: "no access"}
	case n < 25:
		r.Exit.Code = 1
		r.Failure = &failure.Analysis{Class: failure.Auth, Kind: failure.Permanent, Severity: failure.High,
			Summary: "bad key", Fingerprint: "auth"}
	case n < 120:
		r.Verified, r.Score = true, 500
		r.Signal = signal.Signal{Kind: signal.Complete}
		r.Gates = []loop.Gate{{Name: "tests", Required: true, Status: loop.GateFailed}}
		r.Failure = &failure.Analysis{
			Class: failure.TestFailure, Kind: failure.Work, Severity: failure.Medium, Step: "tests", Summary: "tests",
			Fingerprint: strconv.Itoa(w.pick(20)),
		}
	case n < 150:
		r.Exit = loop.Exit{Code: -1, Ended: loop.EndedTimeout}
		r.Failure = &failure.Analysis{Class: failure.Timeout, Kind: failure.Transient, Transient: true,
			Summary: "timed out", Fingerprint: "timeout"}
	case n < 600:
		r.Verified, r.Score = true, 1000
		r.Signal = signal.Signal{Kind: signal.Complete}
		r.Gates = []loop.Gate{{Name: "tests", Required: true, Status: loop.GatePassed}}
	}
	return r
}
