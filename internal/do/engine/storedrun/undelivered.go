package storedrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// LastVerdict is what is known of the work after the last iteration that ended.
func LastVerdict(s loop.State) delivery.Verdict {
	v := delivery.Verdict{Iteration: s.Iteration, Completed: s.Status == loop.Completed}
	for _, p := range slices.Backward(s.Recent) {
		if p.Outcome != loop.Neutral || p.Cut {
			v.Green, v.Gated = p.Outcome == loop.Success && !p.Cut, p.Score >= 0
			break
		} // it changed nothing, and the gates were not red
	}
	return v
}

// NeedsPerson reports whether a run failed with a question, or for what only a person can cure.
func NeedsPerson(s loop.State) bool {
	needs := s.Question != nil || strings.HasPrefix(s.Why, failure.PersonNeeded)
	return needs && s.Status == loop.FailedRun
}

// WaitsForDelivery is true for a run that is over, whose verified work is not delivered.
func WaitsForDelivery(run store.Run) bool {
	why := ReasonUndelivered(run)
	return why != "" && why != deliver.NotVerified && why != deliver.TakenBack && !run.EndedAt.IsZero()
}

// ReasonUndelivered reads why work of a run is not delivered; "" is that there is none.
func ReasonUndelivered(run store.Run) string {
	var s Setup
	_ = json.Unmarshal(run.Setup, &s) // a run without one has no workspace
	return s.Undelivered
}

// endedWithoutPawl is true for a run that is over and whose pawl did not come to say so: what its
// last iteration came to may not be delivered.
func endedWithoutPawl(run store.Run) bool {
	status := loop.Status(run.Status)
	_, over := RestOf(status)
	return over && !status.Active() && run.EndedAt.IsZero()
}

// DiedUndelivered is true for a run in a private workspace whose pawl died between its
// last iteration and the delivery of that.
func DiedUndelivered(run store.Run) bool { return endedWithoutPawl(run) && !Alive(run.Owner) }

// FinishEarlier delivers what the last run of the workspace ended with, where its pawl
// died before that. It comes before another run begins there, and before that one is
// resumed. note says what was done; "" is that nothing was left to do.
func FinishEarlier(ctx context.Context, db *store.Store, w *delivery.Workspace) (note string, err error) {
	id := w.Agreed().Run
	run, err := db.Run(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	var s Setup
	if err == nil && json.Unmarshal(run.Setup, &s) == nil {
		if d := w.LastNotIn(s.Deliveries); d != nil { // its pawl died before it noted that
			err = RecordDelivery(ctx, db, id, *d)
		}
	}
	if err != nil || !endedWithoutPawl(run) {
		return "", err
	}
	var d delivery.Delivered
	state, err := StateOf(run)
	if err = errors.Join(err, w.Continue(ctx, id)); err == nil {
		d, err = w.Deliver(ctx, LastVerdict(state))
	}
	if err == nil {
		err = editSetup(ctx, db, id, journal.WorkDelivered, d, func(s *Setup) { s.NoteDelivery(d) })
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot deliver the work of run %s: %w", id, err)
	case d.Kind == deliver.Deliver:
		note = fmt.Sprintf("run %s had ended before its work was delivered; delivered it now: %s", id, d.Text())
	case d.Files > 0 || d.Commits > 0:
		note = fmt.Sprintf("the work of run %s is not delivered: %s; see it: pawl show %s --diff", id, d.Why, id)
	}
	return note, nil
}

// ClearUndelivered notes, with the reason, that nothing of a run at rest is to be delivered any more.
func ClearUndelivered(ctx context.Context, db *store.Store, id, why string) error {
	return noteUndelivered(ctx, db, id, why, func(s *Setup) bool {
		is := s.Undelivered != ""
		s.Choose, s.Undelivered = false, ""
		return is
	})
}

// NoteConflicts notes that a person has to choose before the work of a run at rest can be delivered, and why.
func NoteConflicts(ctx context.Context, db *store.Store, id, why string) error {
	return noteUndelivered(ctx, db, id, why, func(s *Setup) bool {
		is := s.Undelivered != "" && !s.Choose
		s.Choose, s.Undelivered = true, why
		return is
	})
}

// NoteConflictsResolved notes that a person has chosen for each file that they and the agent of a run
// at rest both changed. The work is still to be delivered.
func NoteConflictsResolved(ctx context.Context, db *store.Store, id string) error {
	const why = "its conflicts are resolved"
	return noteUndelivered(ctx, db, id, why, func(s *Setup) bool {
		is := s.Choose
		s.Choose, s.Undelivered = false, why
		return is
	})
}

// noteUndelivered changes what is stored of a run's undelivered work, with a warning, if edit finds something to change.
func noteUndelivered(ctx context.Context, db *store.Store, id, why string, edit func(*Setup) bool) error {
	run, err := db.Run(ctx, id)
	var s Setup
	if err != nil || json.Unmarshal(run.Setup, &s) != nil || !edit(&s) {
		return err
	}
	return editSetup(ctx, db, id, journal.Warning, journal.Notice{Text: why}, func(s *Setup) { edit(s) })
}

// RecordDelivery notes that work of a run at rest was delivered.
func RecordDelivery(ctx context.Context, db *store.Store, id string, d delivery.Delivered) error {
	return editSetup(ctx, db, id, journal.WorkDelivered, d, func(s *Setup) { s.NoteDelivery(d) })
}
