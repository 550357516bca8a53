package schedule

import (
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/loop"
)

// Health is what is known of the target by itself.
type Health string

// The healths. Nobody verifies the target while the queue stands still for
// another reason than a red one: tasks start on it as on a green one.
const (
	Unknown  Health = ""
	Green    Health = "green"
	Red      Health = "red"
	Diverged Health = "diverged" // from its remote, or it is gone: nothing lands until that is repaired
)

// Target is the branch that tasks start from and land on.
type Target struct {
	Health Health `json:"health,omitempty"`
	Why    string `json:"why,omitempty"` // of a red one: the commit, whose it is, and the gate
}

// Stuck is true while nothing lands on the target, and goes on once that is repaired.
func (t Target) Stuck() bool { return t.Health == Red || t.Health == Diverged }

// verifyAgain is after how long a verdict that did not come is asked for again.
const verifyAgain = time.Minute

// counted takes in what the board and the queue hold.
func (s *State) counted(e *Event) {
	s.Counts, s.Stale = e.Counts, false
	switch t := s.Counts.Target; {
	case !t.Stuck():
		s.RedSince = time.Time{}
	case s.RedSince.IsZero():
		s.RedSince = s.At
	}
	if s.Counts.Target.Health != Unknown {
		s.VerifyAt = time.Time{}
	}
}

// wary is true while only repairs may start.
func (s *State) wary() bool {
	h := s.Counts.Target.Health
	return s.Settings.WaitGreen && h != Green && h != Diverged
}

// awaited says why ready tasks do not start; "" when it is not for the target.
func (s *State) awaited() string {
	switch {
	case !s.wary(), s.Counts.Ready == 0, s.reached() != "":
		return ""
	case s.Counts.Target.Health == Unknown:
		return "the target is verified before tasks start on it"
	}
	return s.Counts.Target.Why + "; until then only its repair starts (pawl case add TITLE --tag " + board.RepairTag +
		"), or all with autopilot.on_red_target: work"
}

// verify asks for the verdict on the target that ready tasks wait for, or that
// those in the slots began from.
func (s *State) verify() (Command, bool) {
	due := s.VerifyAt.IsZero() || !s.VerifyAt.Add(verifyAgain).After(s.At)
	wanted := s.starts() || len(s.Slots) > 0
	if !s.Settings.Verify || s.Phase != Running || !due || !wanted || s.Counts.Target.Health != Unknown {
		return Command{}, false
	}
	s.VerifyAt = s.At
	return Command{Kind: Verify, Why: "is the target green, before tasks start on it"}, true
}

// awaitsTarget is true while ready tasks or verified work go on by themselves
// once the target is repaired, and that is not waited for too long yet.
func (s *State) awaitsTarget() bool {
	if !s.Counts.Target.Stuck() {
		return s.starts()
	}
	waiting := s.starts() || s.Counts.QueueHeld != ""
	if s.Settings.GreenFirst && s.Tally.Started == 0 && s.Counts.Queued == 0 {
		return false
	}
	return waiting && s.At.Before(s.RedSince.Add(s.Settings.TargetLimit))
}

// starts is true while ready tasks start by themselves once the target lets them.
func (s *State) starts() bool { return s.awaited() != "" && s.Mode == Auto }

// targetTime is when something is to be done about the target; zero for never.
func (s *State) targetTime() time.Time {
	switch {
	case !s.VerifyAt.IsZero():
		return s.VerifyAt.Add(verifyAgain)
	case !s.RedSince.IsZero():
		return s.RedSince.Add(s.Settings.TargetLimit)
	}
	return time.Time{}
}

// targetWait says that a target is waited for, and how long; "" it is not.
func (s *State) targetWait() string {
	if !s.Counts.Target.Stuck() || !s.awaitsTarget() {
		return ""
	}
	why := s.Counts.Target.Why
	if s.awaited() != "" {
		why = s.awaited()
	}
	if s.Settings.Keep {
		return why
	}
	return fmt.Sprintf("%s (it is waited for %s at most)", why, loop.Duration(s.Settings.TargetLimit))
}
