package schedule

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// nextCommand gives the first thing to be done: what ended is recorded before anything
// starts, and alerts come first.
func (s *State) nextCommand() Command {
	if s.Phase == "" || s.Phase == Finished {
		return Command{Kind: Rest, Why: "nothing has started, or all has ended"}
	}
	for _, step := range []func() (Command, bool){
		s.settleEndedRun, s.alertPerson, s.issueNextNote, s.instructRuns, s.fillFreeSlot, s.verifyTarget, s.endSession,
	} {
		if c, ok := step(); ok {
			return c
		}
	}
	return s.waitForEvent()
}

// settleEndedRun takes the first run that ended. One that only rests with the
// autopilot keeps its slot.
func (s *State) settleEndedRun() (Command, bool) {
	if s.Unstored && s.Phase != Stopping {
		return Command{}, false
	}
	for i := range s.Slots {
		l := &s.Slots[i]
		rests := l.Phase == Resting && s.Phase != Stopping
		if rests || l.End == nil {
			continue
		}
		if l.Phase == Pausing && l.End.Status == loop.Paused && !l.End.Question && s.Phase != Stopping {
			l.Phase = Resting
			continue
		}
		if s.Unstored { // the next start finds the task as a crash would leave it
			s.freeSlot(l.Case)
			return s.settleEndedRun()
		}
		v := s.judgeSlot(l)
		return Command{Kind: Settle, Case: l.Case, Settlement: v, Why: v.Why}, true
	}
	return Command{}, false
}

func (s *State) alertPerson() (Command, bool) {
	if len(s.Alerts) == 0 {
		return Command{}, false
	}
	text := s.Alerts[0]
	s.Alerts = s.Alerts[1:]
	return Command{Kind: Alert, Why: text}, true
}

func (s *State) issueNextNote() (Command, bool) {
	if len(s.Tells) == 0 {
		return Command{}, false
	}
	text := s.Tells[0]
	s.Tells = s.Tells[1:]
	return Command{Kind: Tell, Why: text}, true
}

// instructRuns passes on to the runs what the autopilot as a whole does.
func (s *State) instructRuns() (Command, bool) {
	for i := range s.Slots {
		l := &s.Slots[i]
		switch {
		case l.Phase == "", l.End != nil && l.Phase != Resting:
		case s.Phase == Stopping && l.Phase != Ending:
			l.Phase = Ending
			return Command{Kind: Stop, Case: l.Case, Cause: s.Cause, Kill: s.Killed, Why: s.Why}, true
		case l.Gone != "" && l.Phase != Ending:
			l.Phase = Ending
			return Command{Kind: Stop, Case: l.Case, Cause: loop.CauseSettled, Why: l.Gone}, true
		case s.Phase == Paused && l.Phase == Working:
			l.Phase = Pausing
			return Command{Kind: Pause, Case: l.Case, Why: s.Why}, true
		case s.Phase == Running && l.Phase == Resting:
			l.Phase, l.End = Working, nil
			return Command{Kind: Resume, Case: l.Case, Why: "the autopilot resumes"}, true
		}
	}
	return Command{}, false
}

// fillFreeSlot puts a task into a free slot.
func (s *State) fillFreeSlot() (Command, bool) {
	if len(s.Adopt) > 0 && len(s.Slots) < s.Settings.MaxParallel {
		id := s.Adopt[0]
		s.Adopt = s.Adopt[1:]
		s.Slots = append(s.Slots, Slot{Case: id, Phase: Working, Since: s.At})
		return Command{Kind: Start, Case: id, Adopt: true, Why: "it continues what an earlier pawl process left"}, true
	}
	if s.Phase != Running {
		s.dropChosen()
		return Command{}, false
	}
	for i := range s.Slots {
		if l := &s.Slots[i]; l.Phase == "" {
			l.Phase = Working
			s.Tally.Started++
			return Command{Kind: Start, Case: l.Case, Why: l.Why}, true
		}
	}
	if len(s.Slots) >= s.Settings.MaxParallel || s.Hold != "" {
		return Command{}, false
	}
	if len(s.Assigned) > 0 {
		return Command{Kind: Pick, Case: s.Assigned[0], Why: "assigned by a person"}, true
	}
	if s.Mode != Auto || s.Dry != "" || s.reasonTargetReached() != "" || s.isInDoubt() {
		return Command{}, false
	}
	why := fmt.Sprintf("%d of %d slots are taken", len(s.Slots), s.Settings.MaxParallel)
	return Command{Kind: Pick, Exclude: s.Excluded(), Repairs: s.allowsRepairsOnly(), Why: why}, true
}

// dropChosen forgets tasks that were chosen and not yet started.
func (s *State) dropChosen() {
	s.Slots = slices.DeleteFunc(s.Slots, func(l Slot) bool { return l.Phase == "" })
}

// reasonTargetReached names which target of the sprint is reached; "" when none is. What
// runs already counts for a number of tasks: no more is started than needed.
func (s *State) reasonTargetReached() string {
	switch n := s.Settings.Count; {
	case n > 0 && s.Tally.Completed >= n:
		return fmt.Sprintf("%d of %d tasks are complete", s.Tally.Completed, n)
	case n > 0 && s.Tally.Completed+len(s.Slots) >= n:
		return fmt.Sprintf("%d of %d tasks are complete or run", s.Tally.Completed+len(s.Slots), n)
	}
	if t := s.Settings.Until; !t.IsZero() && !t.After(s.At) {
		return "its time is up"
	}
	if most := s.Settings.Plan; most > 0 && s.Counts.Plan >= most {
		return fmt.Sprintf("%d %% of the plan is used, of %d %%", s.Counts.Plan, most)
	}
	return ""
}

// endSession ends the session when nothing is left to do.
func (s *State) endSession() (Command, bool) {
	if len(s.Slots) > 0 {
		return Command{}, false
	}
	if s.Phase == Stopping {
		return s.finishSession(s.Why), true
	}
	if s.Phase == Paused || len(s.Assigned) > 0 {
		return Command{}, false
	}
	if s.Stale && s.reasonTargetReached() != "" {
		s.Stale = false
		return Command{Kind: Count, Why: "looking for what is left"}, true
	}
	if s.isQueueAtWork() || s.awaitsTarget() {
		return Command{}, false
	}
	if why := s.reasonTargetReached(); why != "" {
		return s.finishSession(why), true
	}
	if s.Mode != Auto || s.Settings.Keep || s.Dry == "" || s.Hold != "" || s.waitsForTime() {
		return Command{}, false
	}
	why := s.Dry
	if s.Counts.QueueHeld != "" && s.reasonTargetAwaited() == "" {
		why += "; " + s.Counts.QueueHeld
	}
	return s.finishSession(why), true
}

// isQueueAtWork is true while the queue works on what is verified.
func (s *State) isQueueAtWork() bool { return s.Counts.Queued > 0 && s.Counts.QueueHeld == "" }

// waitsForTime is true when tasks are kept out for a time only.
func (s *State) waitsForTime() bool {
	return s.Again.After(s.At) || slices.ContainsFunc(s.Bench, func(b Bench) bool { return b.Until.After(s.At) })
}

func (s *State) finishSession(why string) Command {
	s.Phase, s.Why = Finished, why
	return Command{Kind: Finish, Why: why, Exit: s.exitStatus()}
}

// Pawl's exit statuses, as far as they are decided here.
const (
	exitOK          = 0
	exitFailed      = 1
	exitPerson      = 4
	exitHangup      = 129
	exitInterrupted = 130
	exitTerminated  = 143
)

// exitStatus puts a stop first, then what waits for a person, then what failed.
func (s *State) exitStatus() int {
	switch {
	case s.Cause == loop.CauseHangup:
		return exitHangup
	case s.Cause == loop.CauseTerminate:
		return exitTerminated
	case s.Cause != loop.NoCause:
		return exitInterrupted
	case s.Counts.Waiting > 0, s.Counts.QueueHeld != "", s.reasonTargetAwaited() != "":
		return exitPerson
	case s.Tally.Failed+s.Tally.TimedOut+s.Counts.Failed > 0:
		return exitFailed
	case s.Alone:
		return exitPerson
	}
	return exitOK
}

// waitForEvent waits for the next event, or for the first time that means something.
func (s *State) waitForEvent() Command {
	c := Command{Kind: Rest, Why: s.reasonIdle()}
	earlier := func(t time.Time) {
		if !t.After(s.At) {
			return
		}
		if c.Until.IsZero() || t.Before(c.Until) {
			c.Until = t
		}
	}
	earlier(s.Until)
	earlier(s.Settings.Until)
	earlier(s.Ends)
	earlier(s.Again)
	earlier(s.targetTime())
	for _, b := range s.Bench {
		earlier(b.Until)
	}
	return c
}

// reasonIdle gives the words for why nothing is to be done.
func (s *State) reasonIdle() string {
	switch {
	case s.Phase != Running:
		return s.Why
	case s.Hold != "":
		return s.Hold
	case len(s.Slots) >= s.Settings.MaxParallel:
		return fmt.Sprintf("all %d slots are taken", s.Settings.MaxParallel)
	case s.targetWait() != "":
		return s.targetWait()
	case s.reasonTargetReached() != "":
		return s.reasonTargetReached()
	case s.isInDoubt():
		return fmt.Sprintf("the first iterations of %s failed in the same way: it may be the environment",
			joinWithAnd(s.Environment.Cases))
	case s.Mode == SemiAuto:
		return "semi-auto: you assign the tasks"
	case s.Dry != "":
		return s.Dry
	}
	return "it waits"
}
