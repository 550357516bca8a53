package queue

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Step returns the state after e and the command that follows from it; the
// command is the open one when e changed nothing about it, and none when e did
// not fit. An event that is delivered twice does no harm. What the step means
// beside the command is in [State.Out].
//
// s is the caller's copy, and what it shares with the state before is not changed.
func Step(s State, e Event) (State, Command) {
	s.Out = Out{}
	if !s.isExpected(&e) {
		return s, Command{}
	}
	s.Entries, s.Checking = slices.Clone(s.Entries), slices.Clone(s.Checking)
	if s.Batch != nil {
		b := *s.Batch
		s.Batch = &b
	}
	if s.Stop != nil {
		stop := *s.Stop
		s.Stop = &stop
	}
	if s.Unpushed != nil {
		u := *s.Unpushed
		s.Unpushed = &u
	}
	for _, w := range e.Warnings {
		s.appendNote(NoteWarning, "", w)
	}
	if e.ClockSet != 0 {
		s.shiftTimes(e.ClockSet)
		s.Stepped = s.Stepped.Add(e.ClockSet)
	}
	s.adjustToClock(e.At)
	(&turn{State: &s}).takeEvent(&e)
	return s, s.Command
}

// turn is a step under way: it takes the event in, and decides what the queue does next. What
// the state answers and changes by itself is the state's own.
type turn struct {
	*State
	since time.Time // of the batch that is chosen again
}

// adjustToClock moves the ends of waits when the clock was set back unseen since the last
// step: else a wait of seconds would be one of hours.
func (s *State) adjustToClock(now time.Time) {
	by := now.Sub(s.Stepped)
	if s.Stepped.IsZero() || by >= 0 {
		s.Stepped = now
		return
	}
	s.Stepped = now
	s.shiftTimes(by)
}

// shiftTimes moves what is waited for: that much time has not passed.
func (s *State) shiftTimes(by time.Duration) {
	move := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(by)
		}
	}
	move(&s.Rest)
	move(&s.Ask)
	for i := range s.Checking {
		move(&s.Checking[i].Asked)
		move(&s.Checking[i].Busy)
	}
	if s.Unpushed != nil {
		move(&s.Unpushed.Until)
	}
	if s.Batch != nil {
		move(&s.Batch.Since)
	}
	if s.Stop != nil {
		move(&s.Stop.Again)
	}
	for i := range s.Entries {
		move(&s.Entries[i].Until)
	}
}

// isExpected is false for an answer to another command than the open one.
func (s *State) isExpected(e *Event) bool {
	switch e.Kind {
	case Opened:
		return e.Policy != nil && e.Facts != nil
	case Added, Asked, Resolved:
		return s.Command.Seq > 0
	case Prepared:
		return s.answersOpen(e, DoPrepare) && e.Prepared != nil
	case Verified:
		return s.answersOpen(e, DoVerify) && e.Verdict != nil && s.Batch != nil
	case Checked:
		return s.answersOpen(e, DoCheck) && len(s.Checking) > 0
	case Landed:
		return s.answersOpen(e, DoLand) && s.Batch != nil
	case Refused:
		return s.answersOpen(e, DoLand) && e.Refusal != nil
	case Foreseen:
		return s.answersOpen(e, DoForesee)
	case Pushed:
		return s.answersOpen(e, DoPush) && e.Push != nil
	case WaitOver:
		return s.answersOpen(e, DoWait)
	case Looked:
		return s.answersOpen(e, DoLook) && e.Facts != nil
	case Proposals:
		return (s.answersOpen(e, DoPropose) || s.answersOpen(e, DoReview))
	case Stumbled:
		return e.For == s.Command.Seq && s.Command.Kind != DoWait && s.Command.Kind != ""
	}
	return false
}

func (s *State) answersOpen(e *Event, kind CommandKind) bool {
	return e.For == s.Command.Seq && s.Command.Kind == kind
}

// takeEvent changes s. Each event either leaves the open command as it is, or ends
// with another one.
func (s *turn) takeEvent(e *Event) {
	answered := s.Command.Kind
	if e.For == s.Command.Seq && e.For > 0 {
		s.Command = Command{} // it is answered
		again := answered == s.Stumbled || e.Kind == Landed
		if again && e.Kind != Stumbled {
			s.Stumbles, s.Stumbled = 0, ""
		}
	}
	if e.Kind == WaitOver && !e.At.Before(s.Rest) {
		s.Rest = time.Time{}
	}
	switch e.Kind {
	case Opened:
		s.takeOpening(e)
	case Added:
		s.takeChange(e)
	case Asked:
		s.takeRequest(e)
	case Prepared:
		s.takeMerge(e)
	case Verified:
		s.takeVerdict(e)
	case Checked:
		s.takeChecks(e)
	case Landed:
		s.takeLanding(e)
	case Refused:
		s.takeRefusal(e)
	case Foreseen:
		s.takeForesight(e)
		s.nextCommand(e.At)
	case Pushed:
		s.applyPushResult(e)
	case Resolved:
		s.takeResolution(e)
	case WaitOver:
		s.doWhatIsDue(e.At)
		s.nextCommand(e.At)
	case Looked:
		s.applyTargetFacts(e)
	case Proposals:
		s.takeProposals(e, answered == DoReview)
	case Stumbled:
		s.takeOwnFailure(e, answered)
	}
}

// takeOpening begins the work of a process. A landing that was under way is carried
// out again; anything else is decided anew.
func (s *turn) takeOpening(e *Event) {
	if !e.Policy.Checks || e.Policy.Key != s.Policy.Key {
		s.Checking, s.Checked = nil, ""
	}
	s.Policy = *e.Policy
	s.Policy.Batch = min(max(s.Policy.Batch, 0), MaxBatch)
	s.Window = cmp.Or(s.Window, s.Policy.Batch)
	s.Window = min(s.Window, s.Policy.Batch)
	s.Unverified, s.Green, s.Wanted = false, "", false // the gates may be others now
	s.Stumbles, s.Stumbled, s.Rest = 0, "", time.Time{}
	switch {
	case !s.Policy.Push:
		s.Unpushed = nil
	case s.Unpushed != nil:
		s.Unpushed = &Unpushed{IDs: s.Unpushed.IDs} // this process tries anew
	}
	for i := range s.Entries {
		// What was in the user's checkout then may be gone by now.
		if e := &s.Entries[i]; e.Status == Waiting && e.Waits > 0 {
			e.Waits, e.Until = 0, time.Time{}
		}
	}
	if s.isLanding() {
		s.askToLand("finish what was started")
		return
	}
	s.dropBatch()
	if s.Stop != nil && s.Stop.Cause == Broken {
		s.Stop = nil // this process tries anew
	}
	if s.seeTarget(e.Facts, e.At) {
		s.warnOfLost(e.Facts.Lost)
	}
	if len(s.proposedEntries()) > 0 {
		s.Due = []CommandKind{DoReview} // the host may have merged since
	}
	if s.redTarget() {
		s.Stop.Again = e.At
		s.Due = append(s.Due, DoLook)
	}
	s.nextCommand(e.At)
}

// seeTarget takes in where the target is. It is false when the queue stops, or when what
// the remote has comes first.
func (s *State) seeTarget(f *Facts, now time.Time) bool {
	before, name, do := s.Tip, branchName(s.Target), "make it"
	if f.Remote != "" {
		name, do = name+" at "+f.Remote, "push it there"
	}
	known := s.Stop != nil && s.Stop.Cause == Rewritten
	s.Theirs = ""
	diverged := f.Diverged != "" && f.Theirs != s.Ignored
	if diverged && s.Policy.Push && !f.Apart {
		s.Theirs = f.Theirs
	}
	if f.Tip != before || diverged {
		s.Checking = nil
	}
	switch {
	case f.Tip == "":
		s.stopQueue(Missing, "there is no branch "+name+"; "+do+", and the queue continues", "", now)
		return false
	case diverged && s.Stop.stillHoldsFor(f):
		return false
	case diverged && s.Theirs == "":
		s.stopQueue(Diverged, f.Diverged, f.Tip, now)
		s.Stop.Theirs = f.Theirs
		return false
	case before == "" || f.Tip == before:
	case !f.Past && !known:
		s.Tip, s.Green, s.Suspects = f.Tip, "", nil
		s.stopQueue(Rewritten, fmt.Sprintf("%s was rewritten: %s is not a descendant of %s, where the queue left it; "+
			"check it, then: pawl queue resume",
			name, shortCommit(f.Tip), shortCommit(before)), f.Tip, now)
		s.warnOfLost(f.Lost)
		return false
	default:
		if len(s.Entries) > 0 {
			s.appendNote(NoteMoved, "", fmt.Sprintf("%s was moved from %s to %s; what waits is merged onto that", name,
				shortCommit(before), shortCommit(f.Tip)))
		}
		s.Green, s.Suspects = "", nil
	}
	s.Tip = f.Tip
	if s.Stop != nil && s.Stop.awaitsTarget() {
		switch {
		case s.Stop.Cause == Diverged && !diverged:
			s.resumeQueue("the target and its remote have the same commits again")
		case s.Stop.Cause == Missing, s.Stop.Cause == Diverged, s.Stop.Tip != f.Tip:
			s.resumeQueue("the target has changed")
		}
	}
	return s.Theirs == ""
}

func (s *State) warnOfLost(list []string) {
	if len(list) > 0 {
		s.Out.Notes = append(s.Out.Notes, Note{Kind: NoteWarning,
			Text: fmt.Sprintf("%d done tasks are no longer on %s", len(list), branchName(s.Target)), Paths: list})
	}
}

// nextCommand issues what is to be done now.
func (s *turn) nextCommand(now time.Time) {
	if now.Before(s.Rest) {
		s.issueWait(now)
		return
	}
	if s.isLanding() {
		s.askToLand("finish what was started")
		return
	}
	for len(s.Due) > 0 {
		kind := s.Due[0]
		s.Due = s.Due[1:]
		if s.Stop != nil && kind != DoLook {
			continue
		}
		if s.issueFollowUp(kind) {
			return
		}
	}
	s.Due = nil
	if s.askToPush(now) || s.askToJoin(now) || s.askForChecks(now) {
		return
	}
	if s.Wanted && s.Stop == nil && len(s.Checking) == 0 {
		s.issueFollowUp(DoLook)
		return
	}
	if list, why := s.chooseBatch(now); len(list) > 0 {
		s.Batches++
		s.Batch = &Batch{N: s.Batches, IDs: list, Since: cmp.Or(s.since, now), Tip: s.baseOfNext()}
		s.openCommand(Command{Kind: DoPrepare, Why: why, IDs: list, Batch: s.Batches, From: s.baseOfNext()})
		return
	}
	s.issueWait(now)
}

// Times at which a queue that has nothing to do looks around.
const (
	reviewEvery = 2 * time.Minute  // open pull requests
	lookEvery   = 10 * time.Second // a target that is red, missing or diverged
)

// issueWait issues a wait until the next time that counts.
func (s *turn) issueWait(now time.Time) {
	until, why := time.Time{}, "nothing is ready to land"
	if e := s.awaitedEntry(); e != nil {
		why = "it waits for the agent at " + e.ID
	}
	soon := func(t time.Time) {
		switch {
		case t.IsZero():
		case until.IsZero(), t.Before(until):
			until = t
		}
	}
	if now.Before(s.Rest) {
		s.openCommand(Command{Kind: DoWait, Why: "an operation failed; the queue tries again", Until: s.Rest})
		return
	}
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.isProposed() {
			soon(now.Add(reviewEvery))
		}
		switch {
		case e.Status == Parked, e.Status == Waiting && s.Stop == nil && now.Before(e.Until):
			soon(e.Until)
		}
	}
	if u := s.Unpushed; u != nil && s.mayPushTarget() {
		soon(u.Until)
	}
	goesOn := s.Stop == nil || s.redTarget()
	if goesOn && len(s.Checking) > 0 {
		why = "the forge's checks are still running"
		soon(s.Ask)
	}
	if s.Stop != nil {
		why = s.Stop.Why
		if s.Stop.awaitsTarget() {
			soon(now.Add(lookEvery))
		}
	}
	s.openCommand(Command{Kind: DoWait, Why: why, Until: until})
}

// openCommand makes c the open command. The same wait again is no new command.
func (s *turn) openCommand(c Command) {
	if o := s.Command; c.Kind == DoWait && o.Kind == DoWait && o.Why == c.Why && o.Until.Equal(c.Until) {
		return
	}
	s.Seq++
	c.Seq = s.Seq
	s.Command = c
}

// doWhatIsDue does what has its time at a wait's end.
func (s *turn) doWhatIsDue(now time.Time) {
	for i := range s.Entries {
		if e := &s.Entries[i]; e.Status == Parked && !e.Until.IsZero() && !now.Before(e.Until) {
			s.endOverdue(e, now)
		}
	}
	s.Entries = slices.DeleteFunc(s.Entries, func(e Entry) bool { return e.Status == "" })
	switch {
	case s.Stop != nil && s.Stop.awaitsTarget():
		s.Due = []CommandKind{DoLook}
	case len(s.proposedEntries()) > 0:
		s.Due = []CommandKind{DoReview}
	}
}

// triesOfLasting is how often what does not pass by itself is tried before the queue stands still.
const triesOfLasting = 4

// takeOwnFailure takes in pawl's own failure: disk, database, git. It blames no entry.
func (s *turn) takeOwnFailure(e *Event, over CommandKind) {
	s.Stumbles++
	s.Stumbled = over
	rest := min(time.Second<<min(s.Stumbles-1, 9), 5*time.Minute)
	s.Rest = e.At.Add(rest)
	switch {
	case e.Lasting && s.Stumbles >= triesOfLasting && !s.isLanding():
		s.stopQueue(Broken, e.Why+"; fix that, then: pawl queue resume", s.Tip, e.At)
		s.Rest = time.Time{}
	case s.Stumbles == 1, s.Stumbles == triesOfLasting:
		s.appendNote(NoteTrouble, "", fmt.Sprintf("%s; the queue tries again in %s", e.Why, rest))
	}
	if !s.isLanding() {
		if s.Batch != nil && s.Batch.Theirs != "" {
			s.Theirs = s.Batch.Theirs // both are still to be brought together
		}
		s.dropBatch()
	}
	s.issueWait(e.At)
}

// dropBatch gives the batch up. Its entries are where they were.
func (s *State) dropBatch() { s.Batch, s.Due = nil, nil }

// stopQueue makes the queue stand still, with one alarm.
func (s *State) stopQueue(cause Cause, why, tip string, now time.Time) {
	switch same := s.Stop != nil && s.Stop.Cause == cause; {
	case same && s.Stop.Tip == tip, same && cause == Diverged:
		now = s.Stop.Since
	default:
		s.appendNote(NoteStopped, "", why)
	}
	s.Stop = &Stop{Cause: cause, Why: why, Tip: tip, Since: now}
}

func (s *State) resumeQueue(why string) {
	s.Stop = nil
	s.Stumbles, s.Stumbled, s.Rest = 0, "", time.Time{}
	s.appendNote(NoteResumed, "", "the queue continues: "+why)
}

func (s *State) appendNote(kind NoteKind, id, text string) {
	s.Out.Notes = append(s.Out.Notes, Note{Kind: kind, ID: id, Text: text})
}

// applyTargetFacts takes the answer to a look at a target that stopped the queue, or that
// somebody wants to be verified.
func (s *turn) applyTargetFacts(e *Event) {
	if s.seeTarget(e.Facts, e.At) && s.verifyTarget(e) {
		return
	}
	s.nextCommand(e.At)
}

func taskIDsOf(steps []Merged) []string {
	return lists.Each(steps, func(one Merged) string { return one.ID })
}
