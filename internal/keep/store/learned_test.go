package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
)

// What is stored is what the runs computed for themselves, and a step that is
// repeated teaches nothing twice.
func TestLearnedIsCountedOnce(t *testing.T) {
	t.Parallel()
	s, r := begun(t, "r1")
	credits := []strategy.Credit{
		{Class: failure.Timeout, Strategy: "aggressive-timeout", Success: true},
		{Class: failure.Timeout, Strategy: "skip-optional"},
		{Class: failure.TestFailure, Strategy: "diagnose", Success: true},
		{Class: failure.Timeout, Strategy: "aggressive-timeout", Success: true},
	}
	var want []strategy.Tally
	for i, c := range credits {
		step := stepOf(r, int64(i+2))
		step.Learned = []strategy.Credit{c}
		for range 2 {
			if err := s.Commit(t.Context(), step); err != nil {
				t.Fatal(err)
			}
		}
		want = strategy.Learn(want, c, strategy.Day(step.Event.At))
	}
	list, err := s.Learned(t.Context())
	if err != nil || len(list) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, l := range list {
		ours := strategy.Tally{}
		for _, w := range want {
			if w.Class == l.Class && w.Strategy == l.Strategy {
				ours = w
			}
		}
		if l.Tally != ours || l.UsedAt.IsZero() {
			t.Errorf("stored %+v, the run computed %+v", l, ours)
		}
	}
	if l := list[1]; l.Strategy != "aggressive-timeout" || l.Successes != 2 || l.Failures != 0 {
		t.Errorf("%+v", l)
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	s, r := begun(t, "r1")
	failed := func(n int, class failure.Class, transient bool, cost loop.MicroUSD, source string) *loop.Record {
		rec := record(n, 1)
		rec.Outcome, rec.Elapsed, rec.Cost, rec.CostSource = loop.Failed, 2*time.Second, cost, source
		rec.Failure = &failure.Analysis{Class: class, Transient: transient}
		return rec
	}
	good := record(4, 1)
	good.Outcome = loop.Success
	records := []*loop.Record{
		failed(1, failure.Network, true, 300, "reported"), failed(2, failure.TestFailure, false, 700, "none"),
		failed(3, failure.TestFailure, false, 500, "reported"), good,
	}
	for i, rec := range records {
		step := stepOf(r, int64(i+2))
		step.Record = rec
		step.Event.Kind = "iteration.ended"
		step.Event.Data = []byte(`{"next":{"kind":"run"}}`)
		if i >= 2 {
			step.Event.Data = []byte(`{"next":{"guard":"thrashing","message":"Thrashing ` + string('a'+rune(i)) + `"}}`)
		}
		if err := s.Commit(t.Context(), step); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.FailureStats(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	if f := list[0]; f.Class != failure.TestFailure || f.Count != 2 || f.Transient != 0 || f.Runs != 1 || f.TimeLost != 4 || f.MeanCostUSD == nil || *f.MeanCostUSD != 0.0005 {
		t.Errorf("%+v", f)
	}
	if f := list[1]; f.Class != failure.Network || f.Transient != 1 || *f.MeanCostUSD != 0.0003 {
		t.Errorf("%+v", f)
	}
	guards, err := s.GuardStats(t.Context())
	if err != nil || len(guards) != 1 {
		t.Fatalf("%+v, %v", guards, err)
	}
	if g := guards[0]; g.Guard != "thrashing" || g.Trips != 2 || g.Completed != 0 || g.Runs != 1 || g.Message != "Thrashing d" || g.LastRun != "r1" || g.Last.IsZero() {
		t.Errorf("%+v", g)
	}
	if refused, err := s.RefusalStats(t.Context()); err != nil || len(refused) != 0 {
		t.Errorf("%+v, %v", refused, err)
	}

	done := stepOf(r, 6)
	done.Run.Status = string(loop.Completed)
	if err := s.Commit(t.Context(), done); err != nil {
		t.Fatal(err)
	}
	if guards, err = s.GuardStats(t.Context()); err != nil || guards[0].Completed != 1 {
		t.Errorf("%+v, %v", guards, err)
	}
}

// A task that a guard blocked, and that a person had tried again in a run of its own, got there
// all the same.
func TestGuardThatATaskGotOver(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	for i, status := range []loop.Status{loop.Blocked, loop.Completed} {
		r := run(fmt.Sprint("r", i), "task-001")
		r.Kind, r.StartedAt = "task", noon.Add(time.Duration(i)*time.Hour)
		must(t, s.Create(t.Context(), r, event(r.ID, 1, "run.created"), nobody))
		step := stepOf(r, 2)
		step.Run.Status = string(status)
		if status == loop.Blocked {
			step.Event.Kind, step.Event.Data = "iteration.ended", []byte(`{"next":{"guard":"thrashing","message":"m"}}`)
		}
		must(t, s.Commit(t.Context(), step))
		guards, err := s.GuardStats(t.Context())
		if err != nil || len(guards) != 1 || guards[0].Completed != i {
			t.Errorf("after run %d: %+v, %v", i, guards, err)
		}
	}
}
