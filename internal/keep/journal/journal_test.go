package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// The journal is tested on the store that it has in real life.

var (
	noon  = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	owner = store.Owner{PID: 1, Start: "s", Boot: "b", Host: "h"}
)

func open(t *testing.T, path string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// story is a run that is told event by event.
type story struct {
	t     *testing.T
	store *store.Store
	id    string
	n     int64
}

func begin(t *testing.T, s *store.Store, id string) *story {
	t.Helper()
	st := &story{t: t, store: s, id: id, n: 1}
	e, err := journal.New(id, 1, noon, journal.RunCreated, journal.Created{Kind: "procedure", Name: id})
	if err == nil {
		err = s.Create(t.Context(), st.run(), e, func(store.Owner) bool { return false })
	}
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func (st *story) run() store.Run {
	return store.Run{ID: st.id, Name: st.id, Root: "/repo", Owner: owner, State: json.RawMessage(`{}`)}
}

// tell stores events of these kinds. It may run in another goroutine.
func (st *story) tell(kinds ...string) {
	st.t.Helper()
	for _, kind := range kinds {
		st.n++
		e := journal.Event{Run: st.id, N: st.n, At: noon, Kind: kind}
		if err := st.store.Commit(context.Background(), store.Step{Run: st.run(), Event: e}); err != nil {
			st.t.Error(err)
		}
	}
}

// kinds reads a sequence to its end: the kinds with their numbers, and the error.
func kinds(events func(func(journal.Event, error) bool)) (string, error) {
	var said []string
	for e, err := range events {
		if err != nil {
			return strings.Join(said, " "), err
		}
		said = append(said, fmt.Sprintf("%d:%s", e.N, e.Kind))
	}
	return strings.Join(said, " "), nil
}

func TestReadYieldsAllInOrder(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"))
	st, other := begin(t, s, "r1"), begin(t, s, "r2")
	for range 250 { // more than two pages
		st.tell(journal.IterationEnded)
		other.tell(journal.IterationEnded)
	}
	want, seq := int64(1), int64(0)
	for e, err := range journal.Read(t.Context(), s, "r1", 0) {
		if err != nil || e.N != want || e.Run != "r1" || e.Seq <= seq {
			t.Fatalf("event %d is %+v, %v", want, e, err)
		}
		want, seq = want+1, e.Seq
	}
	if want != 252 {
		t.Errorf("%d events", want-1)
	}
	if got, err := kinds(journal.Read(t.Context(), s, "r1", seq)); got != "" || err != nil {
		t.Errorf("after the last: %q, %v", got, err)
	}
	all := 0
	for _, err := range journal.Read(t.Context(), s, "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if all++; all == 300 {
			break // a reader may have enough
		}
	}
	if all != 300 {
		t.Errorf("%d events of all runs", all)
	}
}

func TestReadYieldsItsErrorLast(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"))
	begin(t, s, "r1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := kinds(journal.Read(ctx, s, "r1", 0)); got != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAppendKeepsItsData(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"))
	begin(t, s, "r1")
	notice := journal.Notice{Code: "VERIFICATION_EMPTY", Text: "no gates"}
	seq, err := journal.Append(t.Context(), s, "r1", noon, journal.Warning, notice)
	if err != nil {
		t.Fatal(err)
	}
	events, err := s.Events(t.Context(), "r1", seq-1, 1)
	if err != nil || len(events) != 1 {
		t.Fatalf("%v, %v", events, err)
	}
	var got journal.Notice
	if err := json.Unmarshal(events[0].Data, &got); err != nil || got != notice || events[0].Kind != journal.Warning || !events[0].At.Equal(noon) {
		t.Errorf("%+v, %v", events[0], err)
	}
	if _, err := journal.Append(t.Context(), s, "r1", noon, journal.Warning, func() {}); err == nil {
		t.Error("data that is no JSON was stored")
	}
}

func TestNewWithoutData(t *testing.T) {
	t.Parallel()
	e, err := journal.New("r1", 7, noon, journal.StopAsked, nil)
	if err != nil || e.Data != nil || e.N != 7 {
		t.Errorf("%+v, %v", e, err)
	}
}

// What is stored outlives the code: these are the words in users' databases.
func TestTheWordsOnDiskStay(t *testing.T) {
	t.Parallel()
	until := noon.Add(time.Hour)
	for _, c := range []struct {
		kind, word string
		data       any
		json       string
	}{
		{journal.RunCreated, "run.created", journal.Created{"task", "n", "/r", "a", 3}, `{"kind":"task","name":"n","root":"/r","agent":"a","max_iterations":3}`},
		{journal.RunResumed, "run.resumed", journal.Resumed{"paused", 7, true}, `{"from":"paused","pid":7,"adopted":true}`},
		{journal.IterationEnded, "iteration.ended", nil, ""},
		{journal.WaitStarted, "wait.started", journal.Wait{until, "limit"}, `{"until":"2026-11-20T13:00:00Z","why":"limit"}`},
		{journal.WaitOver, "wait.over", journal.Wait{}, `{}`},
		{journal.QuestionAsked, "question.asked", journal.Question{4, "q", []string{"x", "y"}}, `{"iteration":4,"text":"q","choices":["x","y"]}`},
		{journal.Answered, "answered", journal.Answer{"yes", "cli", 2, "o"}, `{"text":"yes","by":"cli","choice":2,"option":"o"}`},
		{journal.PauseAsked, "pause.asked", journal.Asked{"t", "web"}, `{"text":"t","by":"web"}`},
		{journal.StopAsked, "stop.asked", journal.Asked{}, `{}`},
		{journal.LimitsRaised, "limits.raised", journal.Limits{new(3), new(loop.MicroUSD(5)), time.Second, time.Minute}, `{"max_iterations":3,"max_cost_micro_usd":5,"timeout":1000000000,"task_timeout":60000000000}`},
		{journal.Paused, "paused", journal.End{"paused", "w", 1, 4, time.Second, 5, true}, `{"status":"paused","why":"w","iteration":1,"exit":4,"elapsed":1000000000,"cost_micro_usd":5,"cost_known":true}`},
		{journal.Recovered, "recovered", journal.Recovery{2, 1, false, "w"}, `{"iteration":2,"attempt":1,"why":"w"}`},
		{journal.Finished, "finished", journal.End{Status: "completed"}, `{"status":"completed","why":"","iteration":0,"exit":0,"elapsed":0,"cost_micro_usd":0,"cost_known":false}`},
		{journal.RolledBack, "rolled-back", journal.Rollback{3, "s", "r", "b", "a", "f", "t", "m", true, true}, `{"to":3,"snapshot":"s","recovery":"r","before":"b","after":"a","from_head":"f","to_head":"t","branch":"m","here":true,"undo":true}`},
		{journal.Warning, "warning", journal.Notice{"C", "t"}, `{"code":"C","text":"t"}`},
	} {
		e, err := journal.New("r", 1, noon, c.kind, c.data)
		if err != nil || c.kind != c.word || string(e.Data) != c.json {
			t.Errorf("%s, want %s\n got %s\nwant %s\n%v", c.kind, c.word, e.Data, c.json, err)
		}
	}
}
