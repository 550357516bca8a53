package queue

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// releaseForChange reports whether an entry may be changed now: while its batch lands it
// may not. A batch that it is in is given up.
func (s *State) releaseForChange(id string) bool {
	at := s.checkingIndexOf(id)
	if at >= 0 {
		s.Checking = s.Checking[:at]
	}
	tried := s.Batch != nil && slices.Contains(s.Batch.IDs, id)
	switch {
	case s.isLanding():
		return !tried
	case at < 0 && !tried:
		return true
	}
	s.dropBatch()
	s.Suspects = nil
	s.Command = Command{}
	return true
}

// issueNext issues the next command if none is open, or one that only waits.
func (s *turn) issueNext(now time.Time) {
	if s.Command.Kind == "" || s.Command.Kind == DoWait {
		s.nextCommand(now)
	}
}

// takeChange takes a task's change in. A second one for the same task replaces the
// first, and begins anew; the very same one changes nothing, unless it was parked: then
// its task was tried again.
func (s *turn) takeChange(ev *Event) {
	if ev.Entry == nil || ev.Entry.ID == "" || ev.Entry.Commit == "" {
		return
	}
	e := *ev.Entry
	if ev.Done {
		why := "it has landed already; for more work add a task that needs it"
		if e.Revert != "" {
			why = "it was already reverted"
		}
		s.appendNote(NoteRefused, e.ID, why)
		return
	}
	if old := s.entryOfTask(e.ID); old != nil {
		if old.Commit == e.Commit && old.Status != Parked {
			return
		}
		if !s.releaseForChange(e.ID) {
			s.appendNote(NoteRefused, e.ID, "it is being landed; a later change is a new landing")
			return
		}
		s.removeEntry(e.ID)
	}
	s.Arrived++
	e.forgetAttempts()
	e.Order, e.AddedAt, e.Passed, e.Ahead = s.Arrived, ev.At, 0, nil
	e.Needs = slices.Clone(e.Needs)
	if s.Policy.Ask {
		e.Status, e.Why = OnHold, "it lands when you release it: pawl queue release "+e.ID
	}
	s.Entries = append(s.Entries, e)
	s.moveEntry(e.ID, MoveQueued, "it waits to land on "+branchName(s.Target))
	s.joinBatch(&e, ev.At)
	s.issueNext(ev.At)
}

// joinFor is how long new entries join a batch that is being merged, which begins
// that anew each time: else a stream of them would keep a long merge from its end.
const joinFor = 2 * time.Second

// joinBatch lets a new entry into the batch that is being merged, while that has room
// and has just begun.
func (s *turn) joinBatch(e *Entry, now time.Time) {
	b := s.Batch
	if s.Command.Kind == DoPrepare && b != nil && len(b.IDs) < s.Window && len(s.Suspects) == 0 && !s.Policy.Propose &&
		e.isReady(now) && now.Sub(b.Since) < joinFor {
		s.since = b.Since
		s.Batches-- // it never was
		s.dropBatch()
		s.Command = Command{}
	}
}

func (s *State) moveEntry(id string, m Movement, why string) {
	s.Out.Cases = append(s.Out.Cases, CaseMove{ID: id, Move: m, Why: why})
}

// takeRequest carries out what a person wants.
func (s *turn) takeRequest(ev *Event) {
	a := ev.Ask
	if a == nil {
		return
	}
	switch a.Wish {
	case WishVerify:
		s.Wanted = true
	case WishLook:
		s.Ask, s.Rung = ev.At, true
		s.Due = append(s.Due, DoReview)
	case WishPause:
		s.pauseOrResume(a, ev.At)
	case WishResume:
		if s.Stop != nil {
			if s.Stop.Cause == Diverged {
				s.Ignored, s.Theirs = s.Stop.Theirs, ""
			}
			s.resumeQueue(cmp.Or(a.Why, "resumed by a person"))
			s.Green, s.Fresh = "", true
		}
		s.Rest, s.Stumbles, s.Stumbled = time.Time{}, 0, ""
	default:
		s.answerRequest(a)
	}
	s.issueNext(ev.At)
}

func (s *turn) pauseOrResume(a *Ask, now time.Time) {
	s.stopQueue(ByPerson, cmp.Or(a.Why, "paused by a person"), "", now)
	if !s.isLanding() {
		s.dropBatch()
		s.Command = Command{}
	}
}

func (s *turn) answerRequest(a *Ask) {
	e := s.entryOfTask(a.ID)
	if e == nil {
		s.appendNote(NoteRefused, a.ID, "it is not in the queue")
		return
	}
	if !s.releaseForChange(a.ID) {
		s.appendNote(NoteRefused, a.ID, "it is being landed")
		return
	}
	switch a.Wish {
	case WishHold:
		if e.Status == Waiting {
			e.Status, e.Why, e.Until = OnHold, cmp.Or(a.Why, "held by a person"), time.Time{}
			return
		}
		s.appendNote(NoteRefused, a.ID, fmt.Sprintf("it is %s, and only waiting entries can be held", e.Status))
	case WishRelease:
		if e.Status == OnHold {
			e.Status, e.Why = Waiting, ""
			return
		}
		s.appendNote(NoteRefused, a.ID, fmt.Sprintf("it is %s and not held", e.Status))
	case WishRetry:
		s.retryEntry(e, cmp.Or(a.Why, "retried by a person"))
	case WishSettle:
		if e.Status != Parked || e.Commit != a.From || a.Commit == "" {
			s.appendNote(NoteRefused, a.ID, "its conflict has changed since it was settled")
			return
		}
		s.retryEntry(e, "its conflict was settled by a person")
		e.Commit, e.Ahead = a.Commit, nil
	case WishDrop:
		s.dropEntry(e, cmp.Or(a.Why, "removed from the queue by a person"))
		s.removeEntry(e.ID)
	default:
		s.appendNote(NoteRefused, a.ID, "unknown wish "+string(a.Wish))
	}
}

// retryEntry tries an entry anew, with all its attempts.
func (s *State) retryEntry(e *Entry, why string) {
	if e.Status == Parked {
		s.moveEntry(e.ID, MoveQueued, why)
	}
	s.Fresh = true
	e.forgetAttempts()
}

// forgetAttempts forgets what was tried with an entry.
func (e *Entry) forgetAttempts() {
	e.Status, e.Why, e.Until, e.Waits, e.Request = Waiting, "", time.Time{}, 0, ""
	e.Attempts, e.Outrun, e.Solved, e.Plain, e.Problem, e.RedOn, e.Apart = 0, 0, "", false, nil, "", ""
}

// dropEntry removes an entry; its work stays where it is.
func (s *State) dropEntry(e *Entry, why string) {
	s.appendNote(NoteDropped, e.ID, why)
	if e.Revert != "" {
		s.moveEntry(e.ID, MoveKept, "its landing is not reverted: "+why)
		return
	}
	s.moveEntry(e.ID, MoveDropped, "not landed: "+why)
}
