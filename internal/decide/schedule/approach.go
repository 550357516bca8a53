package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// StartMode is how work on a task begins.
type StartMode string

// The modes.
const (
	Fresh  StartMode = "fresh"  // a new run, with its own allowance
	GoOn   StartMode = "go on"  // the run that is there is resumed
	Answer StartMode = "answer" // the run that is there resumes with a person's answer
	Accept StartMode = "accept" // nothing runs: the work of its run is taken as it is
)

// Past is the record of a task that is to be started again.
type Past struct {
	History []board.Entry
	// Run is the state of its last run; nil when there was none.
	Run *loop.State
	// RestedAt is the time at which that run came to rest, zero while it has not.
	RestedAt time.Time
	// Answered: a person's answer waits for it.
	Answered bool
	// RaisedAt is the time of the last change of the task's own limits.
	RaisedAt time.Time
	// Anew: the workspace of its run no longer exists.
	Anew bool
	// Sent: what was done there was sent to other machines.
	Sent bool
}

// Approach decides how a task is started. A retry, a redo and a rollback begin
// anew; what was stopped, crashed, unblocked or given more room resumes, with
// its history, its cost and what it has spent.
func Approach(p Past, pol *loop.Policy) (mode StartMode, why string) {
	if p.Run == nil {
		return Fresh, "it has no run yet"
	}
	if p.Answered && !p.Run.Status.Active() && p.Run.Status != loop.Completed {
		return Answer, "a person answered"
	}
	again, why := lastReopening(p.History)
	done := p.Run.Status == loop.Completed && !p.Anew && p.RestedAt.After(Since(p.History, board.Blocked))
	if done && again == board.Unblock {
		return Accept, "a person accepted its work"
	}
	if done && again == board.Return {
		return Fresh, why
	}
	if done && slices.Contains([]board.Action{board.Stop, board.Crash}, again) {
		return Accept, "its work is complete, but was not collected"
	}
	afterRest := !p.RestedAt.IsZero() && p.RaisedAt.After(p.RestedAt)
	raised := afterRest || why == board.LimitsRaised // the clock of the person's machine may differ
	if slices.Contains([]board.Action{board.Retry, board.Redo, board.Rollback}, again) && !raised {
		return Fresh, fmt.Sprintf("it starts over after %q", again)
	}
	switch active := p.Run.Status.Active(); {
	case active && p.Anew && !p.Sent: // what its agent did is not in the new one
		return Fresh, "the workspace of its run no longer exists"
	case active:
		return GoOn, "its run was interrupted"
	}
	if err := p.Run.CanResume(pol); err != nil {
		return Fresh, err.Error()
	}
	return GoOn, fmt.Sprintf("its run is %s and can continue", p.Run.Status)
}

// lastReopening gives the last action that made a task pending, and its reason; "" when it was added so.
func lastReopening(history []board.Entry) (board.Action, string) {
	for _, e := range slices.Backward(history) {
		if e.To == board.Pending && e.From != board.Pending {
			return e.Action, e.Why
		}
	}
	return "", ""
}

// Retried reports whether a person has the task begin anew, even if its workspace holds work.
func Retried(history []board.Entry) bool {
	action, _ := lastReopening(history)
	return action == board.Retry
}

// Since the time at which a task got a status last; zero for never.
func Since(history []board.Entry, s board.Status) time.Time {
	for _, e := range slices.Backward(history) {
		if e.To == s && e.From != s {
			return e.At
		}
	}
	return time.Time{}
}

// Found is an active task at the start of the autopilot, whose loop no process drives.
type Found struct {
	Case     string
	ActiveAt time.Time // when it became active
	// Run is the state of its last run, nil for none, and TouchedAt when that
	// was last written.
	Run       *loop.State
	TouchedAt time.Time
	// Alive: its agent still runs, under its supervisor.
	Alive bool
	// Ordered: an engine has it worked, perhaps before its run is there.
	Ordered bool
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
// are adopted: agents that still run, and runs that had ended and whose end is
// not recorded; the rest goes back to pending.
func Recover(found []Found, slots int) []Recovery {
	list := make([]Recovery, len(found))
	for i, f := range found {
		own := f.Run != nil && !f.TouchedAt.Before(f.ActiveAt)
		r := Recovery{Case: f.Case, Action: board.Crash, Why: "pawl had ended; its workspace is kept"}
		switch {
		case f.Ordered && slots > 0:
			r, slots = Recovery{Case: f.Case, Adopt: true, Why: "it is being worked on"}, slots-1
		case !own: // nothing was tried that could have failed
			r.Action, r.Why = board.Stop, "pawl ended before its run started"
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

// Racers are the agents that race for a task: those of its tag, else those of the
// settings. Fewer than two is no race. "" is the agent that tasks have anyway.
func Racers(tags, settings []string) []string {
	names := settings
	for _, t := range tags {
		list, ok := strings.CutPrefix(t, board.RaceTag)
		if !ok {
			continue
		}
		names = strings.Split(list, "+")
		if n, err := strconv.Atoi(list); err == nil {
			names = make([]string, max(0, min(n, board.MaxRacers)))
		}
	}
	return names[:min(len(names), board.MaxRacers)]
}

// RaceTrouble describes a fault in the tag of a task that names its racers; "" is none.
func RaceTrouble(tags []string) string {
	for _, t := range tags {
		list, ok := strings.CutPrefix(t, board.RaceTag)
		if !ok {
			continue
		}
		wrong := fmt.Sprintf("the tag %.60q starts no race: write race:2 to race:%d, or race:claude+codex",
			t, board.MaxRacers)
		names := strings.Split(list, "+")
		n, err := strconv.Atoi(list)
		switch {
		case errors.Is(err, strconv.ErrRange), n < 0, slices.Contains(names, ""):
			return wrong
		case err != nil && len(names) == 1:
			return fmt.Sprintf("%s; for one agent write agent:%.60s", wrong, list)
		case max(n, len(names)) > board.MaxRacers:
			return fmt.Sprintf("the tag %.60q asks for too many agents: %d race, which is the most", t, board.MaxRacers)
		}
	}
	return ""
}

// PicksBest reports whether a race for a task lasts until all of its agents have
// ended, and the best work wins: by its tag, pick:best or pick:first, else by the
// settings.
func PicksBest(tags []string, setting bool) bool {
	for _, t := range tags {
		if how, ok := strings.CutPrefix(t, board.PickTag); ok {
			setting = how == "best"
		}
	}
	return setting
}

// Merit has the criteria by which the work of racing agents is compared.
type Merit struct {
	Score int // of its gates, per mille; -1 is not known
	Files int // that it changed
	Lines int // that it added and deleted
}

// Beats reports whether work is better than other work: it changes something, then its
// gates' score is higher, then it is smaller. Equal work does not.
func (m Merit) Beats(other Merit) bool {
	if (m.Files > 0) != (other.Files > 0) {
		return m.Files > 0
	}
	return cmp.Or(cmp.Compare(other.Score, m.Score), cmp.Compare(m.Lines, other.Lines),
		cmp.Compare(m.Files, other.Files)) < 0
}

// RacedFor reports whether a race for a task is over: its work was verified once. The
// agent that won continues alone then.
func RacedFor(history []board.Entry) bool {
	return slices.ContainsFunc(history, func(e board.Entry) bool { return e.Action == board.Verify })
}

// Stands reports whether what the run of a racer came to still holds, so that it is not
// run again: pawl itself made the task pending since, and no person did.
func Stands(history []board.Entry, run loop.State, rested time.Time) bool {
	switch run.Status {
	case loop.Running, loop.Waiting, loop.Paused, loop.Interrupted, loop.Stopped:
		return false
	}
	for _, e := range slices.Backward(history) {
		own := e.Action == board.Stop || e.Action == board.Crash
		if e.To == board.Pending && !own {
			return rested.After(e.At)
		}
	}
	return true
}
