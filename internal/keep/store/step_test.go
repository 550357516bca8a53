package store

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/journal"
)

// An execution of a step is stored with its event, over its earlier state, and
// only by who owns the run.
func TestSteps(t *testing.T) {
	t.Parallel()
	s, r := begun(t, "r1")
	at := time.UnixMilli(1_000_000).UTC()
	st := StepRun{Run: "r1", Step: "build (linux)", N: 1, Iteration: 1, Attempt: 1, Status: StepRunning, Hash: "h", Input: "i", StartedAt: at, Record: json.RawMessage(`{"kind":"run"}`)}
	tell := func(kind string) journal.Event {
		e, err := journal.New("r1", 0, at, kind, journal.Step{Step: st.Step, N: st.N})
		must(t, err)
		return e
	}
	must(t, s.PutStep(t.Context(), r.Owner, st, tell(journal.StepStarted)))
	other := st
	other.Step = "test"
	must(t, s.PutStep(t.Context(), r.Owner, other, tell(journal.StepStarted)))
	st.Status, st.Elapsed, st.Output = StepSuccess, 1500*time.Millisecond, "out"
	must(t, s.PutStep(t.Context(), r.Owner, st, tell(journal.StepEnded)))

	list, err := s.StepsWithOutput(t.Context(), "r1")
	must(t, err)
	if len(list) != 2 || list[0].Step != st.Step || list[0].Status != StepSuccess || list[0].Output != "out" || list[0].Elapsed != st.Elapsed ||
		!list[0].StartedAt.Equal(at) || string(list[0].Record) != `{"kind":"run"}` || list[1].Status != StepRunning {
		t.Errorf("stored: %+v", list)
	}
	if list, err = s.Steps(t.Context(), "r1"); err != nil || list[0].Output != "" {
		t.Errorf("a listing has the output %q, %v", list[0].Output, err)
	}
	events, err := s.Events(t.Context(), "r1", 0, 100)
	must(t, err)
	if n := len(events); n != 4 || events[n-1].Kind != journal.StepEnded || events[n-1].N != 0 {
		t.Errorf("events: %+v", events)
	}

	stranger := r.Owner
	stranger.PID++
	if err := s.PutStep(t.Context(), stranger, st, tell(journal.StepEnded)); !errors.Is(err, ErrNotOwner) {
		t.Errorf("a stranger stored a step: %v", err)
	}
	st.Run = "none"
	e, err := journal.New("none", 0, at, journal.StepEnded, nil)
	must(t, err)
	if err := s.PutStep(t.Context(), r.Owner, st, e); !errors.Is(err, ErrNotFound) {
		t.Errorf("a step of no run: %v", err)
	}
}
