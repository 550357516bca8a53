package autopilot

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/autopilot/overview"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// answers are workers that answer every order alike.
type answers struct {
	Elsewhere
	outcome schedule.Outcome
	works   bool
	look    error
}

func (a answers) Look(context.Context, string) error { return a.look }

func (a answers) Work(context.Context, board.Case, string, string, map[string]string) (schedule.Outcome, queue.Entry, error) {
	return a.outcome, queue.Entry{}, nil
}

func (a answers) Works(context.Context, string) (bool, error) { return a.works, nil }

// A worker whose run another one has taken gives the order back. The task is not kept out
// until a person comes, as where somebody resumed its run by hand: it is worked again.
func TestARunThatAnotherWorkerTook(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "pawl.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	p := newAttempts(Options{Store: db, Machines: Machines{Elsewhere: answers{outcome: schedule.Outcome{Taken: true, Why: "another has it"}}}}, 0)
	o, err := p.orderWork(t.Context(), newSlotOfTask(board.Case{ID: "task-001"}, false))
	if err != nil {
		t.Fatal(err)
	}
	v := schedule.Judge(o, schedule.Manner{Mode: schedule.Auto, Starts: 3, Tries: 1})
	if v.Bench || v.Action != board.Stop || v.Why == "" {
		t.Errorf("%+v is judged %+v", o, v)
	}
}

// The database lost the end of a run whose task was settled. Nobody takes the run up, so the
// next autopilot ends it; not what an engine has worked, or what may go on.
func TestTheEndOfARunWasLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		move  []board.Action
		works bool
		want  loop.Status
	}{
		{[]board.Action{board.Start, board.Verify}, false, loop.Interrupted},
		{[]board.Action{board.Start, board.Verify}, true, loop.Running},
		{[]board.Action{board.Start, board.Stop}, false, loop.Running},
	} {
		db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "pawl.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		_, err = db.AddCases(t.Context(), []board.Draft{{Case: board.Case{Title: "One"}}}, board.Person, time.Now())
		for _, a := range c.move {
			_, merr := db.MoveCase(t.Context(), "task-001", board.Change{Action: a, By: board.Pawl, At: time.Now()})
			err = errors.Join(err, merr)
		}
		running(t, db)
		p := newAttempts(Options{Store: db, Machines: Machines{Elsewhere: answers{works: c.works}}}, 0)
		err = errors.Join(err, p.endLostRuns(t.Context(), []store.Worker{{PID: 1}}))
		r, rerr := db.Run(t.Context(), "r1")
		if err := errors.Join(err, rerr); err != nil || r.Status != string(c.want) {
			t.Errorf("%+v: the run is %s: %s (%v)", c, r.Status, r.Why, err)
		}
	}
}

// running stores a run of task-001, r1, that has an owner.
func running(t *testing.T, db *store.Store) {
	t.Helper()
	run := store.Run{ID: "r1", Kind: "task", Name: "task-001", Status: string(loop.Running), State: []byte("{}"), Setup: []byte("{}"), Owner: store.Owner{PID: 1, Start: "1", Boot: "b"}}
	e, err := journal.New("r1", 1, time.Now(), journal.RunCreated, struct{}{})
	if err == nil {
		err = db.Create(t.Context(), run, e, func(store.Owner) bool { return false })
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What the engine is not told of at once is asked of the run once.
func TestAskedWhileTheEngineIsAway(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "pawl.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	running(t, db)
	p := newAttempts(Options{Store: db, Machines: Machines{Elsewhere: answers{look: errors.New("away")}}}, 0)
	what := store.Control{Kind: store.ControlStop}
	for range 3 {
		if begun, err := p.forwardControl(t.Context(), "task-001", &what); !begun || err == nil {
			t.Errorf("its run has begun: %v; %v", begun, err)
		}
	}
	if rows, err := db.Controls(t.Context(), "r1"); err != nil || len(rows) != 1 {
		t.Errorf("the run is asked %d times (%v)", len(rows), err)
	}
}

// Why ready tasks are not started can be read, until they are started or put aside.
func TestIdle(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "pawl.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	drafts := []board.Draft{{Case: board.Case{Title: "One"}}, {Case: board.Case{Title: "Two"}}, {Case: board.Case{Title: "Three"}}}
	if _, err := db.AddCases(t.Context(), drafts, board.Person, time.Now()); err != nil {
		t.Fatal(err)
	}
	change := board.Change{Action: board.Block, By: board.Person, At: time.Now()}
	if _, err := db.MoveCase(t.Context(), "task-003", change); err != nil {
		t.Fatal(err)
	}
	soon := time.Now().Add(time.Hour)
	state := schedule.State{Holding: schedule.Holding{Hold: "m1: no room", Until: soon}, Bench: []schedule.Bench{
		{Case: "task-001", Why: "m1: no room", Until: soon}, {Case: "task-002", Why: "stopped by 'pawl stop'"}, {Case: "task-003"},
		{Case: "task-009"},
	}}
	row := store.Autopilot{Session: "s", State: encodeJSON(state), Options: encodeJSON(handed{}), Phase: "running"}
	if _, err := db.TakeAutopilot(t.Context(), row, func(store.Owner) bool { return false }); err != nil {
		t.Fatal(err)
	}
	idle, err := overview.IdleOf(t.Context(), db)
	want := []string{
		"nothing starts until " + soon.Local().Format(time.TimeOnly) + ": m1: no room",
		"task-002 is not started: stopped by 'pawl stop'. Give it back: pawl case start task-002",
	}
	if err != nil || len(idle.KeptOut) != 2 || !slices.Equal(idle.Lines(), want) {
		t.Errorf("it says %q of %+v (%v)", idle.Lines(), idle.KeptOut, err)
	}
}

// A person raises the limits of a task while it runs, on a machine whose clock is behind or ahead. Its run gets the
// room once: what it was planned with already is no more room.
func TestLimitsRaisedOnAnotherMachine(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "pawl.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	_, err = db.AddCases(t.Context(), []board.Draft{{Case: board.Case{Title: "One"}}}, board.Person, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p := newAttempts(Options{Store: db}, 0)
	l := newSlotOfTask(board.Case{ID: "task-001"}, false)
	for n, skew := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		if _, err := p.readLimits(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if p.hasMoreRoom(t.Context(), l) {
			t.Errorf("before they are raised by a clock that is %s ahead it has more room", skew)
		}
		limits := store.CaseLimits{MaxIterations: 10 + n, At: time.Now().Add(skew)}
		if err := db.SetCaseLimits(t.Context(), "task-001", limits); err != nil {
			t.Fatal(err)
		}
		if !p.hasMoreRoom(t.Context(), l) {
			t.Errorf("raised by a clock that is %s ahead it has no more room", skew)
		}
	}
}
