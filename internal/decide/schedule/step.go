package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// Step returns the state after e and the one command that follows. An event
// that does not fit changes nothing, and asks for what is to be done anyway.
func Step(s State, e Event) (State, Command) {
	s = s.cloneLists()
	if e.At.After(s.At) {
		s.At = e.At
	}
	s.takeEvent(&e)
	c := s.nextCommand()
	return s, c
}

// takeEvent makes what happened part of the state.
func (s *State) takeEvent(e *Event) {
	if s.Phase == "" && e.Kind != Began {
		return
	}
	switch e.Kind {
	case Began:
		s.beginSession(e)
	case Picked:
		s.takeSlot(e)
	case NotStarted:
		s.notStarted(e)
	case Ended:
		if l := s.slotOfTask(e.Case); l != nil && l.End == nil {
			end := e.Outcome
			l.End = &end
		}
	case Settled:
		s.countSettled(e)
	case Iterated:
		s.noteIteration(e)
	case Asked:
		s.takeRequest(e)
	case Limited:
		s.noteLimit(e)
	case Landed:
		s.Tally.Landed++
		s.lookAtBoardAgain()
	case Gone:
		if l := s.slotOfTask(e.Case); l != nil && l.Gone == "" {
			l.Gone = cmp.Or(e.Why, "it is no longer active")
			s.Alerts = append(s.Alerts, fmt.Sprintf("%s: %s; its run is ended", e.Case, l.Gone))
		}
	case Changed:
		s.lookAtBoardAgain()
	case Counted:
		s.noteCounts(e)
	case Started, Woken, Did:
	}
	s.releaseWhatIsOver()
}

func (s *State) beginSession(e *Event) {
	if s.Phase != "" {
		return
	}
	s.Settings, s.Mode, s.Phase = e.Settings, e.Settings.Mode, Running
	s.Mode = cmp.Or(s.Mode, Auto)
	s.Adopt = e.Cases[:min(len(e.Cases), max(0, s.Settings.MaxParallel))]
}

// takeSlot takes a slot for the task that was found, unless something came
// between.
func (s *State) takeSlot(e *Event) {
	s.noteCounts(e)
	assigned := e.Named != ""
	if assigned {
		s.Assigned = slices.DeleteFunc(s.Assigned, func(id string) bool { return id == e.Named })
	}
	switch {
	case e.Case == "" && assigned:
		s.Alerts = append(s.Alerts, e.Named+" cannot be started: "+e.Why)
	case e.Repairs != s.allowsRepairsOnly() && !assigned: // the target is another than was thought: once more
	case e.Case == "", !assigned && s.allowsRepairsOnly() && s.Counts.Target.Health == Unknown:
		s.Dry, s.Again = cmp.Or(s.reasonTargetAwaited(), e.Why, "no task is ready"), e.Again
	case s.Phase != Running || len(s.Slots) >= s.Settings.MaxParallel || s.slotOfTask(e.Case) != nil:
	case s.isOverReviewLimit() && !assigned:
		s.Dry = fmt.Sprintf("%d wait for review, and wip_limit is %d", s.Counts.Review, s.Settings.WIPLimit)
	default:
		s.Slots = append(s.Slots, Slot{Case: e.Case, Since: e.At, Why: reasonChosen(e, assigned)})
	}
}

func reasonChosen(e *Event, assigned bool) string {
	if assigned {
		return "assigned by a person"
	}
	return cmp.Or(e.Why, "it is the best ready task")
}

func (s *State) isOverReviewLimit() bool {
	return s.Settings.WIPLimit > 0 && s.Counts.Review >= s.Settings.WIPLimit
}

// notStarted takes a start that failed by whose fault it was.
func (s *State) notStarted(e *Event) {
	l := s.slotOfTask(e.Case)
	if l == nil || l.End != nil {
		return
	}
	switch e.Fault {
	case OfBoard: // somebody else was quicker; the next look sees the board as it is
		s.freeSlot(e.Case)
		s.Bench = append(s.Bench, Bench{Case: e.Case, Until: s.At.Add(boardPause), Why: e.Why})
	case OfMachine:
		l.End = &Outcome{Status: e.Outcome.Status, NotStarted: true, Machine: true, Lacks: e.Outcome.Lacks, Why: e.Why}
		if !e.Outcome.Lacks { // others need something else
			s.holdStarts(e.Why)
		}
	default:
		l.End = &Outcome{NotStarted: true, Setup: e.Outcome.Setup, Why: e.Why}
	}
}

// Times to wait.
const (
	boardPause = time.Second     // before a task that was not ready is looked at again
	firstWait  = time.Second     // before a start is tried again; doubles
	longest    = 5 * time.Minute // of any such wait
	lackPause  = time.Minute     // before the machines are asked again for what none had
)

func backoffAfter(tries int) time.Duration {
	return min(longest, firstWait<<min(max(0, tries-1), 10))
}

// holdStarts starts nothing for a while: the machine has to recover.
func (s *State) holdStarts(why string) {
	if s.Hold == "" || !s.Until.After(s.At) { // else another slot met the same just now
		s.Holds++
	}
	if s.Hold == "" && s.Holds == 1 {
		s.Alerts = append(s.Alerts, "nothing is started for now: "+why)
	}
	s.Hold, s.Until = why, s.At.Add(backoffAfter(s.Holds))
}

// releaseWhatIsOver ends what has lasted long enough.
func (s *State) releaseWhatIsOver() {
	s.endPause()
	if s.Hold != "" && !s.Until.After(s.At) {
		s.Hold, s.Until, s.Unstored = "", time.Time{}, false
		s.lookAtBoardAgain()
	}
	if !s.Again.IsZero() && !s.Again.After(s.At) {
		s.lookAtBoardAgain()
	}
	over := func(b Bench) bool { return !b.Until.IsZero() && !b.Until.After(s.At) }
	if !slices.ContainsFunc(s.Bench, func(b Bench) bool { return over(b) && !b.Seen }) {
		return
	}
	s.lookAtBoardAgain()
	s.Bench = slices.DeleteFunc(s.Bench, func(b Bench) bool { return over(b) && b.Tries == 0 })
	for i := range s.Bench {
		s.Bench[i].Seen = s.Bench[i].Seen || over(s.Bench[i])
	}
}

// countSettled counts what became of a task, and frees its slot.
func (s *State) countSettled(e *Event) {
	l := s.slotOfTask(e.Case)
	if l == nil || l.End == nil {
		return
	}
	if e.Fault != "" {
		s.Unstored = true
		s.holdStarts(e.Why)
		return
	}
	v, end := s.judgeSlot(l), *l.End
	if !end.NotStarted {
		s.Holds = 0
	}
	s.countOutcome(end, v, s.startsFailed(e.Case))
	switch {
	case end.NotStarted && !v.Bench && v.Action == board.Stop && v.Failed:
		s.benchForStart(e.Case, end.Why)
	case end.NotStarted && end.Lacks:
		s.removeBench(e.Case)
		s.Bench = append(s.Bench, Bench{Case: e.Case, Until: s.At.Add(lackPause), Why: end.Why, Lacks: true})
	case end.NotStarted && end.Machine: // another task goes first: it shows whether it is the machine
		s.removeBench(e.Case)
		s.Bench = append(s.Bench, Bench{Case: e.Case, Until: s.Until.Add(boardPause), Why: end.Why})
	case end.Person != "" && v.Action == board.Stop:
		s.noteHaltedAgent(e.Case, &end)
	case !v.Later.IsZero():
		s.removeBench(e.Case)
		s.Bench = append(s.Bench, Bench{Case: e.Case, Until: v.Later, Why: v.Why})
	case v.Bench:
		s.removeBench(e.Case)
		s.Bench = append(s.Bench, Bench{Case: e.Case, Why: v.Why})
	default:
		s.removeBench(e.Case)
	}
	s.freeSlot(e.Case)
	if v.Alert != "" {
		s.Alerts = append(s.Alerts, e.Case+": "+v.Alert)
	}
	s.afterError(end, v)
}

// benchForStart keeps a task out that could not be started, longer each time.
func (s *State) benchForStart(id, why string) {
	b := Bench{Case: id, Tries: s.startsFailed(id) + 1, Why: why}
	b.Until = s.At.Add(backoffAfter(b.Tries))
	s.removeBench(id)
	s.Bench = append(s.Bench, b)
}

// startsFailed counts how often the start of a task has failed until now.
func (s *State) startsFailed(id string) int {
	if b := s.benchEntryOf(id); b != nil {
		return b.Tries
	}
	return 0
}

func (s *State) countOutcome(o Outcome, v Settlement, tries int) {
	t := &s.Tally
	switch {
	case o.NotStarted && v.Action != board.Fail, o.Taken, !v.Later.IsZero():
	case v.Worked && v.Action != board.Block:
		t.Completed++
		if v.Action == board.Land {
			t.Landed++
		}
	case v.Action == board.Fail:
		t.Failed++
	case v.Action == board.Expire:
		t.TimedOut++
	case v.Action == board.Block:
		t.Blocked++
	case v.Action == board.Stop, v.Action == board.Return:
		t.Stopped++
	}
	switch {
	case v.Failed && o.NotStarted && !o.Setup && tries > 0: // one task that cannot be started is one error
	case v.Failed:
		s.Errors++
	case v.Worked:
		s.Errors, s.Halt.Past = 0, s.Halt.Case != ""
	}
}

// afterError pauses when too much has failed.
func (s *State) afterError(end Outcome, v Settlement) {
	if failed := v.Failed || v.endsBadly(); s.Phase != Running || !failed {
		return
	}
	switch most := s.Settings.ErrorThreshold; {
	case v.Failed && most > 0 && s.Errors >= most:
		why := fmt.Sprintf("%s in a row failed or hit a guard, and error_threshold is %d",
			fault.Numbered(s.Errors, "task"), most)
		if end.NotStarted {
			why += ": " + end.Why
		}
		s.pauseFor(why)
	case s.Settings.PauseOnError && v.endsBadly():
		s.pauseFor("a task failed, and pause_on_error is set")
	default:
		return
	}
	s.Alerts = append(s.Alerts, "paused: "+s.Why+"; see what failed, then: pawl autopilot resume"+s.limitPause())
}

// limitPause has a pause end by itself, and says so.
func (s *State) limitPause() string {
	limit := s.Settings.PauseLimit
	if limit <= 0 {
		return ""
	}
	s.Ends = s.At.Add(limit)
	return fmt.Sprintf(" (it ends by itself after %s)", loop.Duration(limit))
}

// endPause ends the session when a pause after errors has lasted long enough.
func (s *State) endPause() {
	if s.Phase != Paused || s.Ends.IsZero() || s.Ends.After(s.At) {
		return
	}
	s.Phase, s.Alone, s.Ends = Stopping, true, time.Time{}
	s.Why = fmt.Sprintf("%s; it was paused for %s", s.Why, loop.Duration(s.Settings.PauseLimit))
}

func (s *State) pauseFor(why string) { s.Phase, s.Why = Paused, why }

// judgeSlot gives the settlement of a slot whose run ended.
func (s *State) judgeSlot(l *Slot) Settlement {
	m := Manner{
		Mode: s.Mode, Review: s.Settings.Review || s.Settings.Batch, Ending: l.Phase == Ending || s.Phase == Stopping,
		Gone: l.Gone, Tries: s.startsFailed(l.Case) + 1, Starts: s.Settings.MaxStarts,
		Alone: s.Halt == Halt{Case: l.Case, Past: true},
	}
	m.Starts = cmp.Or(m.Starts, DefaultStarts)
	isFirst := m.Tries == 1 || l.End.Setup
	if most := s.Settings.ErrorThreshold; isFirst && most > 0 && s.Errors+1 >= most {
		m.Starts = m.Tries + 1 // the pause that follows is enough
	}
	return Judge(*l.End, m)
}

func (s *State) takeRequest(e *Event) {
	switch e.Ask {
	case AskPause:
		if s.Phase == Running {
			s.pauseFor(cmp.Or(e.Why, "paused by a person"))
		}
		s.Ends = time.Time{} // a person knows of it
	case AskResume:
		s.resumeWork()
		s.Environment.Again = false
	case AskStop:
		s.beginStopping(e)
	case AskMode:
		if e.Mode == Auto || e.Mode == SemiAuto {
			s.Mode = e.Mode
			s.lookAtBoardAgain()
		}
	case AskSlots:
		s.Settings.MaxParallel = max(1, e.Settings.MaxParallel)
		s.lookAtBoardAgain()
	case AskStart:
		if s.slotOfTask(e.Case) == nil && !slices.Contains(s.Assigned, e.Case) {
			s.removeBench(e.Case)
			s.Assigned = append(s.Assigned, e.Case)
		}
	}
}

func (s *State) resumeWork() {
	if s.Phase != Paused {
		return
	}
	s.Phase, s.Why, s.Errors, s.Ends, s.Halt = Running, "", 0, time.Time{}, Halt{}
	s.lookAtBoardAgain()
}

func (s *State) beginStopping(e *Event) {
	if s.Phase == Finished {
		return
	}
	if s.Phase != Stopping {
		s.WasPaused = s.Phase == Paused
		s.Phase, s.Why, s.Cause = Stopping, cmp.Or(e.Why, stopCauseText(e.Cause)), e.Cause
	}
	if e.Kill && !s.Killed {
		s.Killed = true
		for i := range s.Slots {
			if s.Slots[i].Phase == Ending {
				s.Slots[i].Phase = Working // its stop is sent again
			}
		}
	}
}

// stopCauseText names who wants the autopilot to stop.
func stopCauseText(cause loop.Cause) string {
	switch cause {
	case loop.CauseTerminate:
		return "it was terminated by the signal TERM"
	case loop.CauseHangup:
		return "the terminal hung up"
	}
	return "stopped by a person"
}
