package schedule

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/loop"
)

// StartMode is how work on a task begins.
type StartMode string

// The modes.
const (
	Fresh  StartMode = "fresh"  // a new run, with its own allowance
	GoOn   StartMode = "go on"  // the run that is there is resumed
	Answer StartMode = "answer" // the run that is there goes on with what a person answered
	Accept StartMode = "accept" // nothing runs: the work of its run is taken as it is
)

// Past is what is known of a task that is to be taken up.
type Past struct {
	History []board.Entry
	// Run is the state of its last run; nil when there was none.
	Run *loop.State
	// RestedAt is when that run came to rest, zero while it has not.
	RestedAt time.Time
	// Answered: a person's answer waits for it.
	Answered bool
	// RaisedAt is when the task's own limits were last changed.
	RaisedAt time.Time
	// Anew: the workspace that its run worked in is gone.
	Anew bool
	// Sent: what was done there was sent to other machines.
	Sent bool
}

// Approach decides how a task is taken up. A retry, a redo and a rollback begin
// anew; what was stopped, crashed, unblocked or given more room goes on, with
// its history, its cost and what it has spent.
func Approach(p Past, pol *loop.Policy) (mode StartMode, why string) {
	if p.Run == nil {
		return Fresh, "it has no run yet"
	}
	if p.Answered && !p.Run.Status.Active() && p.Run.Status != loop.Completed {
		return Answer, "a person answered"
	}
	again := reopened(p.History)
	done := p.Run.Status == loop.Completed && !p.Anew && p.RestedAt.After(Since(p.History, board.Blocked))
	if done && again == board.Unblock {
		return Accept, "a person accepted its work"
	}
	if done && slices.Contains([]board.Action{board.Stop, board.Crash}, again) {
		return Accept, "its work is complete, and was not collected"
	}
	raised := !p.RestedAt.IsZero() && p.RaisedAt.After(p.RestedAt)
	if slices.Contains([]board.Action{board.Retry, board.Redo, board.Rollback}, again) && !raised {
		return Fresh, fmt.Sprintf("it begins anew after %q", again)
	}
	switch active := p.Run.Status.Active(); {
	case active && p.Anew && !p.Sent: // what its agent did is not in the new one
		return Fresh, "the workspace that its run worked in is gone"
	case active:
		return GoOn, "its run was cut off"
	}
	if err := p.Run.CanResume(pol); err != nil {
		return Fresh, err.Error()
	}
	return GoOn, fmt.Sprintf("its run is %s and can go on", p.Run.Status)
}

// reopened is the last action that made a task pending; "" when it was added so.
func reopened(history []board.Entry) board.Action {
	for _, e := range slices.Backward(history) {
		if e.To == board.Pending && e.From != board.Pending {
			return e.Action
		}
	}
	return ""
}

// Retried is true for a task that a person has begin anew, whatever its
// workspace holds.
func Retried(history []board.Entry) bool { return reopened(history) == board.Retry }

// Since is when a task got a status last; zero for never.
func Since(history []board.Entry, s board.Status) time.Time {
	for _, e := range slices.Backward(history) {
		if e.To == s && e.From != s {
			return e.At
		}
	}
	return time.Time{}
}

// Found is an active task at the start of the autopilot, whose loop nobody drives.
type Found struct {
	Case     string
	ActiveAt time.Time // when it became active
	// Run is the state of its last run, nil for none, and TouchedAt when that
	// was last written.
	Run       *loop.State
	TouchedAt time.Time
	// Alive: its agent still runs, under its supervisor.
	Alive bool
}

// Recovery is what becomes of it.
type Recovery struct {
	Case  string
	Adopt bool // into a slot, as it is
	// Action moves the case, when it is not adopted.
	Action board.Action
	Why    string
}

// Recover decides about tasks that a crash left active. At most slots of them
// are adopted: agents that still run, and runs that had ended and whose end
// nobody has taken note of; the rest goes back to pending.
func Recover(found []Found, slots int) []Recovery {
	list := make([]Recovery, len(found))
	for i, f := range found {
		own := f.Run != nil && !f.TouchedAt.Before(f.ActiveAt)
		r := Recovery{Case: f.Case, Action: board.Crash, Why: "pawl was gone; its workspace is kept"}
		switch {
		case !own: // nothing was tried that could have failed
			r.Action, r.Why = board.Stop, "pawl was gone before its run began"
		case f.Run.Status.Active() && f.Alive && slots > 0:
			r, slots = Recovery{Case: f.Case, Adopt: true, Why: "its agent is still running"}, slots-1
		case f.Run.Status.Active():
		case f.Run.Status == loop.Interrupted, f.Run.Status == loop.Stopped,
			f.Run.Status == loop.Paused && f.Run.Question == nil:
			r = Recovery{Case: f.Case, Action: board.Stop, Why: "its run was " + string(f.Run.Status)}
		case slots > 0:
			r, slots = Recovery{Case: f.Case, Adopt: true, Why: "its run had ended: " + string(f.Run.Status)}, slots-1
		}
		list[i] = r
	}
	return list
}
