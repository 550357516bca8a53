package queue

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// mayPush is false while a person has to say what becomes of the target.
func (s *State) mayPush() bool {
	stands := s.Stop != nil && !s.redTarget()
	return s.Policy.Push && !stands
}

// toPush has the target pushed, with the tasks that landed just now.
func (s *State) toPush(landed []string) {
	u := &Unpushed{IDs: landed}
	if s.Unpushed != nil {
		u.IDs = slices.Concat(s.Unpushed.IDs, landed)
	}
	s.Unpushed = u
}

// pushes issues the push of what landed, when it is time for that.
func (s *State) pushes(now time.Time) bool {
	u := s.Unpushed
	if u == nil || !s.mayPush() || s.Theirs != "" || now.Before(u.Until) {
		return false
	}
	s.do(Command{Kind: DoPush, Why: "the target has moved", To: s.Tip})
	return true
}

// The waits before a push is tried again: they double from the first to the last.
const (
	firstPushWait = 10 * time.Second
	lastPushWait  = 5 * time.Minute
)

// pushed takes in what came of a push. One that somebody else was quicker with is
// tried again once what they pushed is here.
func (s *State) pushed(e *Event) {
	p, u := e.Push, s.Unpushed
	why := cmp.Or(p.Diverged, p.Failed)
	if why == "" || u == nil {
		s.Unpushed = nil
		s.next(e.At)
		return
	}
	if u.Why != why && p.Diverged == "" {
		s.note(NoteWarning, "", "the landing is here, and was not pushed: "+why)
	}
	u.Until = e.At.Add(min(firstPushWait<<min(u.Tries, 10), lastPushWait))
	u.Tries++
	u.Why, u.Refused = why, p.Refused
	if p.Diverged != "" {
		s.Due = []CommandKind{DoLook}
	}
	s.next(e.At)
}

// joins has what the remote has brought together with the target, in a batch of
// its own: nothing that waits is blamed for it.
func (s *State) joins(now time.Time) bool {
	if s.Theirs == "" || s.Stop != nil || len(s.Checking) > 0 {
		return false
	}
	s.Batches++
	s.Batch = &Batch{N: s.Batches, Theirs: s.Theirs, Since: now}
	if s.Unpushed != nil { // somebody was quicker: that is no push that fails
		s.Unpushed.Until, s.Unpushed.Tries = time.Time{}, 0
	}
	s.do(Command{Kind: DoPrepare, Why: "somebody else pushed: both are brought together", Batch: s.Batches,
		Commit: s.Theirs})
	return true
}

// redTogether is for a target and its remote that are red together.
func (s *State) redTogether(b *Batch, now time.Time) {
	s.drop()
	s.stop(Diverged, fmt.Sprintf("%s here (%s) and at its remote (%s) each have commits of their own, and together they are "+
		"red: %s; repair that, and the queue goes on", short(s.Target), abbreviated(b.Tip), abbreviated(b.Theirs),
		b.Red), b.Tip, now)
	s.Stop.Theirs = b.Theirs
	s.next(now)
}
