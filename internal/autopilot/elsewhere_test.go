package autopilot

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/queue"
	"github.com/pawl-dev/pawl/internal/schedule"
	"github.com/pawl-dev/pawl/internal/store"
)

// answers are workers that answer every order alike.
type answers struct {
	Elsewhere
	outcome schedule.Outcome
}

func (a answers) Work(context.Context, board.Case, string, string, map[string]string) (schedule.Outcome, queue.Entry, error) {
	return a.outcome, queue.Entry{}, nil
}

// A worker whose run another one has taken gives the order back. The task is not kept out
// until a person comes, as where somebody resumed its run by hand: it is worked again.
func TestARunThatAnotherWorkerTook(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "pawl.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	p := &pilot{o: Options{Store: db, Elsewhere: answers{outcome: schedule.Outcome{Taken: true, Why: "another has it"}}}}
	o, err := p.order(t.Context(), newSlot(board.Case{ID: "task-001"}, false))
	if err != nil {
		t.Fatal(err)
	}
	v := schedule.Judge(o, schedule.Manner{Mode: schedule.Auto, Starts: 3, Tries: 1})
	if v.Bench || v.Action != board.Stop || v.Why == "" {
		t.Errorf("%+v is judged %+v", o, v)
	}
}
