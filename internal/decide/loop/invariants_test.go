package loop_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/signal"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
)

// FuzzStep plays random histories and states what must always hold. The seeds
// reach each limit: iterations, wall clock, task time, cost, waits.
func FuzzStep(f *testing.F) {
	repeat := func(b byte, n int) []byte {
		out := make([]byte, n)
		for i := range out {
			out[i] = b
		}
		return out
	}
	for kind := range byte(4) {
		f.Add(kind, byte(3), byte(0), byte(0), repeat(0, 20))  // iterations
		f.Add(kind, byte(0), byte(1), byte(0), repeat(16, 20)) // wall clock
		f.Add(kind, byte(9), byte(2), byte(0), repeat(16, 20)) // task time
		f.Add(kind, byte(9), byte(0), byte(3), repeat(33, 20)) // cost
		f.Add(kind, byte(9), byte(0), byte(0), repeat(4, 60))  // waits
		f.Add(kind, byte(9), byte(0), byte(0), repeat(1, 20))  // breaker
		f.Add(kind|32, byte(9), byte(0), byte(9), []byte{6, 0, 6, 1, 6, 2, 6, 2, 9, 6, 4, 4, 4, 4, 10, 9, 6, 7, 0, 11, 3, 8, 12, 6, 5, 15, 0})
		f.Add(kind|96, byte(9), byte(0), byte(0), []byte{6, 9, 10, 6, 15, 11, 9, 6, 10})
		f.Add(kind, byte(2), byte(3), byte(2), []byte{0, 7, 8, 9, 10, 11, 12, 13, 14, 15, 4, 5, 7, 12, 1, 1, 1, 12, 2, 3})
	}
	f.Fuzz(func(t *testing.T, kind, limit, clock, money byte, script []byte) {
		if len(script) > 200 {
			script = script[:200]
		}
		p := randomPolicy(kind, limit, clock, money)
		w := &world{t: t, at: time.Unix(1_700_000_000, 0).UTC()}
		w.step(loop.Event{Kind: loop.Started, Policy: &p})
		for _, b := range script {
			e := w.event(b, p)
			if b&16 != 0 {
				e.Limited = w.limited(b)
			}
			w.step(e)
		}
	})
}

func randomPolicy(kind, limit, clock, money byte) loop.Policy {
	kinds := []loop.Kind{loop.Procedure, loop.Task, loop.Workflow, loop.Controlled}
	p := defaults(kinds[int(kind)%len(kinds)])
	p.MaxIterations = int(limit % 16)
	if p.MaxIterations == 0 && p.Kind != loop.Procedure {
		p.MaxIterations = 1
	}
	p.MaxWaits = 3
	p.PauseOnStuck = kind&16 != 0
	p.Review = kind&32 != 0
	if kind&64 != 0 {
		p.Reviewer = loop.Person
	}
	if clock&1 != 0 {
		p.Timeout = 50 * time.Second
	}
	if clock&2 != 0 {
		p.TaskTimeout = 40 * time.Second
	}
	if money > 0 {
		p.MaxCost = loop.MicroUSD(money) * 1_000_000
		p.MaxIterationCost = 2_000_000
	}
	p.Fallback = []string{"codex"}
	p.Mode = []strategy.Mode{strategy.Auto, strategy.Conservative, strategy.Aggressive}[int(clock)%3]
	if kind&32 != 0 {
		p.Strategy = strategy.Names()[int(limit)%len(strategy.Names())]
	}
	p.IterationTimeout, p.HasOptional = time.Duration(clock>>4)*time.Second, clock&8 != 0
	return p
}

type world struct {
	t     *testing.T
	s     loop.State
	at    time.Time
	trees int
}

// event turns one byte into an event that fits the state more often than not.
func (w *world) event(b byte, p loop.Policy) loop.Event {
	w.at = w.at.Add(time.Duration(b>>4) * time.Second)
	switch b & 15 {
	case 7:
		return loop.Event{Kind: loop.StopAsked, Cause: loop.CauseInterrupt}
	case 8:
		return loop.Event{Kind: loop.PauseAsked}
	case 9, 10:
		answers := []string{"approve", "reject: why", "again", "go on"}
		return loop.Event{Kind: loop.Answered, Text: answers[(b>>4+b&1)&3]}
	case 11:
		return loop.Event{Kind: loop.Resumed, Policy: &p}
	case 12:
		return loop.Event{Kind: []loop.EventKind{loop.Resumed, loop.Raised}[b>>4&1], Policy: &p}
	case 14:
		if w.s.Status == loop.Running {
			return loop.Event{Kind: loop.Throttled, For: w.s.Command.Seq, Text: []string{"", "put it in order"}[b>>4&1]}
		}
	case 13:
		return loop.Event{Kind: loop.Recovered, For: w.s.Command.Seq, Record: w.record(b, loop.Exit{Code: -1, Ended: loop.EndedLost})}
	}
	if w.s.Status == loop.Waiting {
		w.at = w.s.Command.Until
		return loop.Event{Kind: loop.WaitOver, For: w.s.Command.Seq}
	}
	if w.s.Command.Kind == loop.RunReview {
		return loop.Event{Kind: loop.Reviewed, For: w.s.Command.Seq, Review: w.review(b)}
	}
	return loop.Event{Kind: loop.IterationEnded, For: w.s.Command.Seq, Record: w.record(b, loop.Exit{Code: int(b & 1)})}
}

// limited is what another run may have met.
func (w *world) limited(b byte) []loop.Limited {
	classes := []failure.Class{failure.RateLimit, failure.QuotaExhausted, failure.ServiceUnavailable}
	one := loop.Limited{Agent: "claude", Class: classes[int(b)%3], Until: w.at.Add(time.Duration(b&15-2) * time.Second), Named: b&32 != 0, Times: int(b & 7), Run: "other"}
	if b&64 != 0 {
		one.Probe = "other"
	}
	if b&128 == 0 {
		return []loop.Limited{one}
	}
	two := one
	two.Agent, two.Until = "codex", w.at.Add(time.Hour)
	return []loop.Limited{two, one}
}

func (w *world) review(b byte) *loop.Review {
	v := &loop.Review{Verdict: loop.Undecided, Agent: "codex", Cost: loop.MicroUSD(b>>5) * 1_000_000, CostSource: "reported", Tries: 1}
	switch b & 15 {
	case 0, 6:
		v.Verdict = loop.Approved
	case 1, 14:
		v.Verdict = loop.Rejected
	case 3:
		v.Ended = loop.EndedStop
	case 4:
		v.Failure = &failure.Analysis{Class: failure.RateLimit, Kind: failure.Transient, Provider: true}
	case 5:
		v.Failure = &failure.Analysis{Class: failure.MissingCommand, Kind: failure.Permanent}
	}
	return v
}

func (w *world) record(b byte, exit loop.Exit) *loop.Record {
	c := w.s.Command
	r := &loop.Record{
		Number: c.Iteration, Attempt: c.Attempt, Elapsed: time.Duration(b>>4) * time.Second, Exit: exit, Progress: -1, Score: -1,
		TreeKnown: true, TreeBefore: "a", TreeAfter: string('a' + rune(w.trees%7)), Verified: true, Cost: loop.MicroUSD(b>>5) * 1_000_000, CostSource: "reported",
	}
	w.trees++
	switch b & 15 {
	case 1:
		r.Failure = &failure.Analysis{Class: failure.TestFailure, Kind: failure.Work, Fingerprint: "x"}
	case 3:
		r.Failure = &failure.Analysis{Class: failure.Network, Kind: failure.Transient, Transient: true, Fingerprint: "y"}
	case 15:
		r.Exit.Code = 1
		r.Failure = &failure.Analysis{Class: failure.QuotaExhausted, Kind: failure.Permanent, Provider: true, Fingerprint: "z"}
	case 4:
		r.Exit.Code = 1
		r.Failure = &failure.Analysis{Class: failure.RateLimit, Kind: failure.Transient, Provider: true}
	case 5:
		r.Signal = signal.Signal{Kind: signal.Pending, Text: "?"}
	case 6:
		r.Signal = signal.Signal{Kind: signal.Complete}
		r.Gates = []loop.Gate{{Name: "g", Required: true, Status: []loop.GateStatus{loop.GatePassed, loop.GateFailed}[b>>4&1]}}
	case 14:
		r.Signal = signal.Signal{Kind: signal.Blocked, Text: "why"}
	}
	return r
}

func (w *world) step(e loop.Event) {
	w.t.Helper()
	e.At = w.at
	kept := marshal(w.t, w.s)
	before := w.s
	after, c := loop.Step(before, e)
	if marshal(w.t, before) != kept {
		w.t.Fatalf("%s changed the state before it", e.Kind)
	}
	w.check(before, after, e, c)
	var restored loop.State
	if err := json.Unmarshal([]byte(kept), &restored); err != nil {
		w.t.Fatal(err)
	}
	again, c2 := loop.Step(restored, e)
	if marshal(w.t, again) != marshal(w.t, after) || !reflect.DeepEqual(c.Kind, c2.Kind) {
		w.t.Fatalf("%s decides otherwise after the state went through JSON", e.Kind)
	}
	twice, none := loop.Step(after, e)
	if none.Kind != loop.NoCommand || marshal(w.t, twice) != marshal(w.t, after) {
		w.t.Fatalf("%s delivered twice gave %+v", e.Kind, none)
	}
	w.s = after
}

// check is what must always hold.
func (w *world) check(before, after loop.State, e loop.Event, c loop.Command) {
	t := w.t
	p := after.Policy
	if before.Status == loop.Completed && (c.Kind != loop.NoCommand || after.Status != loop.Completed) {
		t.Fatalf("a completed run did %s after %s", c.Kind, e.Kind)
	}
	if c.Kind == loop.NoCommand || c.Kind == loop.Noted {
		return
	}
	if c.Seq != before.Seq+1 || after.Command.Seq != c.Seq {
		t.Fatalf("command %d after %d", c.Seq, before.Seq)
	}
	w.checkStrategy(before, after, c)
	if after.Iteration < before.Iteration || after.Spent.Cost < before.Spent.Cost || after.Spent.Wall < before.Spent.Wall {
		t.Fatal("something that was used up came back")
	}
	switch c.Kind {
	case loop.Run:
		if after.Status != loop.Running || c.Iteration != after.Iteration+1 {
			t.Fatalf("iteration %d runs while %d are used up and the run is %s", c.Iteration, after.Iteration, after.Status)
		}
		if after.Limit > 0 && c.Iteration > after.Limit {
			t.Fatalf("iteration %d of at most %d", c.Iteration, after.Limit)
		}
		if p.MaxCost >= 0 && (after.Spent.Cost >= p.MaxCost || c.Limits.Cost > p.MaxCost-after.Spent.Cost) {
			t.Fatalf("iteration for %d with %d of %d spent", c.Limits.Cost, after.Spent.Cost, p.MaxCost)
		}
		if p.Timeout > 0 && (after.Spent.Wall >= p.Timeout || c.Limits.Wall > p.Timeout-after.Spent.Wall) {
			t.Fatalf("iteration of %s with %s of %s used", c.Limits.Wall, after.Spent.Wall, p.Timeout)
		}
		if p.TaskTimeout > 0 && (after.Spent.Active >= p.TaskTimeout || c.Limits.Wall > p.TaskTimeout-after.Spent.Active) {
			t.Fatalf("iteration of %s with %s of %s used", c.Limits.Wall, after.Spent.Active, p.TaskTimeout)
		}
	case loop.RunReview:
		if after.Status != loop.Running || after.PendingReview == nil || c.Iteration != after.Iteration || c.Review != after.PendingReview.Tries {
			t.Fatalf("try %d of a review of iteration %d after %d, held %v, the run is %s", c.Review, c.Iteration, after.Iteration, after.PendingReview != nil, after.Status)
		}
		if p.MaxCost >= 0 && (c.Limits.Cost <= 0 || c.Limits.Cost > p.MaxCost-after.Spent.Cost) {
			t.Fatalf("review for %d with %d of %d spent", c.Limits.Cost, after.Spent.Cost, p.MaxCost)
		}
	case loop.Wait:
		if after.Status != loop.Waiting || !c.Until.After(e.At) || after.Waits > p.MaxWaits {
			t.Fatalf("wait %d until %s at %s", after.Waits, c.Until, e.At)
		}
	default:
		if after.Status.Active() || after.Status == "" || c.Why == "" {
			t.Fatalf("%s with status %q and reason %q", c.Kind, after.Status, c.Why)
		}
	}
	if after.Status == loop.Completed && p.Review && strings.Contains(c.Why, " passed") && !strings.Contains(c.Why, "Reached max") &&
		!strings.HasSuffix(c.Why, " approves") {
		t.Fatalf("completed without a review: %s", c.Why)
	}
	if after.Status == loop.Completed && e.Record != nil && e.Record.RedGate() && after.Iteration < after.Limit {
		t.Fatal("completed on a red gate before the maximum")
	}
}

// checkStrategy is what must always hold of the choice: a fixed strategy stays,
// the agent is one of the policy's, and an iteration teaches at most one thing,
// of the strategy that it was run with.
func (w *world) checkStrategy(before, after loop.State, c loop.Command) {
	t, p := w.t, after.Policy
	if p.Strategy != "" && after.Strategy != p.Strategy {
		t.Fatalf("strategy %s in a run with %s", after.Strategy, p.Strategy)
	}
	if c.Kind == loop.Run && (c.Strategy != after.Strategy || c.Agent != p.Agent && !slices.Contains(p.Fallback, c.Agent)) {
		t.Fatalf("agent %s with %s", c.Agent, c.Strategy)
	}
	if n := len(c.Learned); n > 1 || n == 1 && (c.Learned[0].Strategy != before.Trial.Strategy || c.Learned[0].Class != before.Trial.Class) {
		t.Fatalf("learned %+v after the trial of %+v", c.Learned, before.Trial)
	}
	if after.Fallback < 0 || after.Fallback > len(p.Fallback) {
		t.Fatalf("fallback agent %d of %d", after.Fallback, len(p.Fallback))
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// BenchmarkStep is the figure "loop decisions": a run of a thousand
// iterations, one in three failing.
func BenchmarkStep(b *testing.B) {
	p := defaults(loop.Procedure)
	p.FailureThreshold, p.Thrashing, p.Repeated, p.MaxIterations = 0, 0, 0, 1000
	at := time.Unix(1_700_000_000, 0)
	good := loop.Record{Verified: true, Progress: -1, Score: 1000, TreeKnown: true, TreeBefore: "a", TreeAfter: "b", Commits: 1}
	bad := good
	bad.Exit.Code, bad.Score = 1, 1000
	bad.TreeAfter = "a"
	bad.Failure = &failure.Analysis{Class: failure.TestFailure, Kind: failure.Work, Fingerprint: "x", Summary: "tests failed"}
	var s loop.State
	var c loop.Command
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if s.Status != loop.Running {
			s, c = loop.Step(loop.State{}, loop.Event{Kind: loop.Started, At: at, Policy: &p})
		}
		r := &good
		if i%3 == 0 {
			r = &bad
		}
		s, c = loop.Step(s, loop.Event{Kind: loop.IterationEnded, At: at, For: c.Seq, Record: r})
	}
}
