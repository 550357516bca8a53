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
	if !s.fits(&e) {
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
		s.note(NoteWarning, "", w)
	}
	if e.ClockSet != 0 {
		s.shift(e.ClockSet)
		s.Stepped = s.Stepped.Add(e.ClockSet)
	}
	s.setBack(e.At)
	s.take(&e)
	s.since = time.Time{}
	return s, s.Command
}

// setBack moves what is waited for when the clock was set back since the last
// step, and nobody saw it: else a wait of seconds would be one of hours.
func (s *State) setBack(now time.Time) {
	by := now.Sub(s.Stepped)
	if s.Stepped.IsZero() || by >= 0 {
		s.Stepped = now
		return
	}
	s.Stepped = now
	s.shift(by)
}

// shift moves what is waited for: that much time has not passed.
func (s *State) shift(by time.Duration) {
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

// fits is false for an answer to another command than the open one.
func (s *State) fits(e *Event) bool {
	switch e.Kind {
	case Opened:
		return e.Policy != nil && e.Facts != nil
	case Added, Asked, Resolved:
		return s.Command.Seq > 0
	case Prepared:
		return s.answers(e, DoPrepare) && e.Prepared != nil
	case Verified:
		return s.answers(e, DoVerify) && e.Verdict != nil && s.Batch != nil
	case Checked:
		return s.answers(e, DoCheck) && len(s.Checking) > 0
	case Landed:
		return s.answers(e, DoLand) && s.Batch != nil
	case Refused:
		return s.answers(e, DoLand) && e.Refusal != nil
	case Foreseen:
		return s.answers(e, DoForesee)
	case Pushed:
		return s.answers(e, DoPush) && e.Push != nil
	case WaitOver:
		return s.answers(e, DoWait)
	case Looked:
		return s.answers(e, DoLook) && e.Facts != nil
	case Proposals:
		return (s.answers(e, DoPropose) || s.answers(e, DoReview))
	case Stumbled:
		return e.For == s.Command.Seq && s.Command.Kind != DoWait && s.Command.Kind != ""
	}
	return false
}

func (s *State) answers(e *Event, kind CommandKind) bool {
	return e.For == s.Command.Seq && s.Command.Kind == kind
}

// take changes s. Each event either leaves the open command as it is, or ends
// with another one.
func (s *State) take(e *Event) {
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
		s.opened(e)
	case Added:
		s.added(e)
	case Asked:
		s.asked(e)
	case Prepared:
		s.prepared(e)
	case Verified:
		s.verified(e)
	case Checked:
		s.checked(e)
	case Landed:
		s.landed(e)
	case Refused:
		s.refused(e)
	case Foreseen:
		s.foreseen(e)
		s.next(e.At)
	case Pushed:
		s.pushed(e)
	case Resolved:
		s.resolved(e)
	case WaitOver:
		s.due(e.At)
		s.next(e.At)
	case Looked:
		s.looked(e)
	case Proposals:
		s.proposals(e, answered == DoReview)
	case Stumbled:
		s.stumbled(e, answered)
	}
}

// opened begins the work of a process. A landing that was under way is carried
// out again; anything else is decided anew.
func (s *State) opened(e *Event) {
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
	if s.landing() {
		s.land("finish what was begun")
		return
	}
	s.drop()
	if s.see(e.Facts, e.At) {
		s.lost(e.Facts.Lost)
	}
	if len(s.proposed()) > 0 {
		s.Due = []CommandKind{DoReview} // the host may have merged since
	}
	if s.redTarget() {
		s.Stop.Again = e.At
		s.Due = append(s.Due, DoLook)
	}
	s.next(e.At)
}

// see takes in where the target is. It is false when the queue stops, or when what
// the remote has comes first.
func (s *State) see(f *Facts, now time.Time) bool {
	before, name, do := s.Tip, short(s.Target), "make it"
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
		s.stop(Missing, "there is no branch "+name+"; "+do+", and the queue goes on", "", now)
		return false
	case diverged && s.Stop.isFor(f):
		return false
	case diverged && s.Theirs == "":
		s.stop(Diverged, f.Diverged, f.Tip, now)
		s.Stop.Theirs = f.Theirs
		return false
	case before == "" || f.Tip == before:
	case !f.Past && !known:
		s.Tip, s.Green, s.Suspects = f.Tip, "", nil
		s.stop(Rewritten, fmt.Sprintf("%s was rewritten: %s is not a descendant of %s, where the queue left it; look at "+
			"it, then: pawl queue resume",
			name, abbreviated(f.Tip), abbreviated(before)), f.Tip, now)
		s.lost(f.Lost)
		return false
	default:
		if len(s.Entries) > 0 {
			s.note(NoteMoved, "", fmt.Sprintf("%s was moved from %s to %s; what waits is merged onto that", name,
				abbreviated(before), abbreviated(f.Tip)))
		}
		s.Green, s.Suspects = "", nil
	}
	s.Tip = f.Tip
	if s.Stop != nil && s.Stop.awaits() {
		switch {
		case s.Stop.Cause == Diverged && !diverged:
			s.goOn("the target and its remote are together again")
		case s.Stop.Cause != RedTarget, s.Stop.Tip != f.Tip:
			s.goOn("the target has changed")
		}
	}
	return s.Theirs == ""
}

func (s *State) lost(list []string) {
	if len(list) > 0 {
		s.Out.Notes = append(s.Out.Notes, Note{Kind: NoteWarning,
			Text: fmt.Sprintf("%d done tasks are not on %s any more", len(list), short(s.Target)), Paths: list})
	}
}

// next issues what is to be done now.
func (s *State) next(now time.Time) {
	if now.Before(s.Rest) {
		s.wait(now)
		return
	}
	if s.landing() {
		s.land("finish what was begun")
		return
	}
	for len(s.Due) > 0 {
		kind := s.Due[0]
		s.Due = s.Due[1:]
		if s.Stop != nil && kind != DoLook {
			continue
		}
		if s.follow(kind) {
			return
		}
	}
	s.Due = nil
	if s.pushes(now) || s.joins(now) || s.asks(now) {
		return
	}
	if s.Wanted && s.Stop == nil && len(s.Checking) == 0 {
		s.follow(DoLook)
		return
	}
	if list, why := s.choose(now); len(list) > 0 {
		s.Batches++
		s.Batch = &Batch{N: s.Batches, IDs: list, Since: cmp.Or(s.since, now), Tip: s.onto()}
		s.do(Command{Kind: DoPrepare, Why: why, IDs: list, Batch: s.Batches, From: s.onto()})
		return
	}
	s.wait(now)
}

// Times at which a queue that has nothing to do looks around.
const (
	reviewEvery = 2 * time.Minute  // open pull requests
	lookEvery   = 10 * time.Second // a target that is red, missing or diverged
)

// wait issues a wait until the next time that counts.
func (s *State) wait(now time.Time) {
	until, why := time.Time{}, "nothing is ready to land"
	if e := s.awaited(); e != nil {
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
		s.do(Command{Kind: DoWait, Why: "pawl could not do its part; it tries again", Until: s.Rest})
		return
	}
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.proposed() {
			soon(now.Add(reviewEvery))
		}
		switch {
		case e.Status == Parked, e.Status == Waiting && s.Stop == nil && now.Before(e.Until):
			soon(e.Until)
		}
	}
	if u := s.Unpushed; u != nil && s.mayPush() {
		soon(u.Until)
	}
	goesOn := s.Stop == nil || s.redTarget()
	if goesOn && len(s.Checking) > 0 {
		why = "the forge's checks go on"
		soon(s.Ask)
	}
	if s.Stop != nil {
		why = s.Stop.Why
		if s.Stop.awaits() {
			soon(now.Add(lookEvery))
		}
	}
	s.do(Command{Kind: DoWait, Why: why, Until: until})
}

// do makes c the open command. The same wait again is no new command.
func (s *State) do(c Command) {
	if o := s.Command; c.Kind == DoWait && o.Kind == DoWait && o.Why == c.Why && o.Until.Equal(c.Until) {
		return
	}
	s.Seq++
	c.Seq = s.Seq
	s.Command = c
}

// due does what has its time at a wait's end.
func (s *State) due(now time.Time) {
	for i := range s.Entries {
		if e := &s.Entries[i]; e.Status == Parked && !e.Until.IsZero() && !now.Before(e.Until) {
			s.overdue(e, now)
		}
	}
	s.Entries = slices.DeleteFunc(s.Entries, func(e Entry) bool { return e.Status == "" })
	switch {
	case s.Stop != nil && s.Stop.awaits():
		s.Due = []CommandKind{DoLook}
	case len(s.proposed()) > 0:
		s.Due = []CommandKind{DoReview}
	}
}

// stumbled is pawl's own failure: disk, database, git. It blames no entry.
func (s *State) stumbled(e *Event, over CommandKind) {
	s.Stumbles++
	s.Stumbled = over
	rest := min(time.Second<<min(s.Stumbles-1, 9), 5*time.Minute)
	s.Rest = e.At.Add(rest)
	if s.Stumbles == 1 || s.Stumbles == 4 {
		s.note(NoteTrouble, "", fmt.Sprintf("%s; the queue tries again in %s", e.Why, rest))
	}
	if !s.landing() {
		if s.Batch != nil && s.Batch.Theirs != "" {
			s.Theirs = s.Batch.Theirs // both are still to be brought together
		}
		s.drop()
	}
	s.wait(e.At)
}

// drop gives the batch up. Its entries are where they were.
func (s *State) drop() { s.Batch, s.Due = nil, nil }

// stop makes the queue stand still, with one alarm.
func (s *State) stop(cause Cause, why, tip string, now time.Time) {
	same := s.Stop != nil && s.Stop.Cause == cause
	if same && (s.Stop.Tip == tip || cause == Diverged) {
		now = s.Stop.Since
	} else {
		s.note(NoteStopped, "", why)
	}
	s.Stop = &Stop{Cause: cause, Why: why, Tip: tip, Since: now}
}

func (s *State) goOn(why string) {
	s.Stop = nil
	s.note(NoteResumed, "", "the queue goes on: "+why)
}

func (s *State) note(kind NoteKind, id, text string) {
	s.Out.Notes = append(s.Out.Notes, Note{Kind: kind, ID: id, Text: text})
}

// looked is the answer to a look at a target that stopped the queue, or that
// somebody wants to be verified.
func (s *State) looked(e *Event) {
	if s.see(e.Facts, e.At) && s.verifyTarget(e) {
		return
	}
	s.next(e.At)
}

func ids(steps []Merged) []string {
	return lists.Each(steps, func(one Merged) string { return one.ID })
}
