package queue

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// How soon a red target is verified once more as it is, and one that is red for
// something that passes.
const (
	recheck     = 15 * time.Minute
	recheckSoon = 2 * time.Minute
)

// redTarget is true while the queue stands still since its target is red.
func (s *State) redTarget() bool { return s.Stop != nil && s.Stop.Cause == RedTarget }

// Repairing is true while the queue tries what may repair the target.
func (s *State) Repairing() bool { return s.redTarget() && s.Batch != nil && !s.Batch.Target }

// verifyTarget has the gates run on the target itself, when somebody waits for
// that, or when a red one is due once more. It is false when neither is so.
func (s *turn) verifyTarget(e *Event) bool {
	again := s.redTarget() && !e.At.Before(s.Stop.Again)
	if s.Green != "" && s.Stop == nil {
		s.Wanted = false
	}
	wanted := s.Wanted && s.Stop == nil
	if !again && !wanted {
		return false
	}
	s.Fresh = s.Fresh || again
	s.Batch = &Batch{N: s.Batches, Since: e.At, Tip: e.Facts.Tip, Tree: e.Facts.Tree, Target: true}
	s.askToVerify(e.Facts.Tree, e.Facts.Tip, "is the target green", false)
	return true
}

// judgeTarget takes the verdict on the target itself.
func (s *turn) judgeTarget(v *Verdict, now time.Time) {
	b := s.Batch
	s.Fresh = false
	if !v.Green {
		s.repairsNothing(b)
		s.stopQueue(RedTarget, s.alarmText(v, b.Tip), b.Tip, now)
		s.Stop.Again = now.Add(recheck)
		if v.Transient {
			s.Stop.Again = now.Add(recheckSoon)
		}
		s.nextCommand(now)
		return
	}
	s.Green, s.Wanted = b.Tree, false
	if s.redTarget() {
		why := "the target is green again"
		if s.Stop.Tip == b.Tip {
			why += " at the same commit: a gate is flaky, or what it needs works again"
		}
		s.resumeQueue(why)
	}
	if len(b.Steps) > 0 {
		s.halveOrBlame(b, now)
		return
	}
	s.dropBatch()
	s.nextCommand(now)
}

// alarmText names the commit, whose it is, and the gate. A check that is not reported has
// no author, and neither has what passes.
func (s *State) alarmText(v *Verdict, tip string) string {
	if v.Absent {
		return branchName(s.Target) + " cannot be judged: " + v.Summary + "; fix that, then: pawl queue resume"
	}
	if v.Transient {
		return fmt.Sprintf("%s cannot be judged, as a gate lacks what it needs: %s; checked again every 2 minutes; "+
			"the queue continues when it works", branchName(s.Target), v.Summary)
	}
	at := ""
	if v.By != "" {
		at = " at " + shortCommit(tip) + " " + v.By
	}
	return fmt.Sprintf("%s itself is red%s: %s; repair it, and the queue continues (checked again every 15 minutes; "+
		"for a flaky gate raise verification.retries)", branchName(s.Target), at, v.Summary)
}

// nextRepair gives the next entry to be tried on a red target, by itself: it may be
// what repairs that.
func (s *State) nextRepair(now time.Time) ([]string, string) {
	if !s.redTarget() {
		return nil, ""
	}
	var first *Entry
	for i := range s.Entries {
		e := &s.Entries[i]
		tried := e.RedOn == s.Stop.Tip
		before := first == nil || compareReady(e, first) < 0
		if before && !tried && e.isReady(now) {
			first = e
		}
	}
	if first == nil {
		return nil, ""
	}
	return []string{first.ID}, "does it repair the target"
}

// repairsNothing records that a batch left the target red, and blames no entry.
func (s *State) repairsNothing(b *Batch) {
	for i := range s.Entries {
		e := &s.Entries[i]
		if slices.ContainsFunc(b.Steps, func(m Merged) bool { return m.ID == e.ID }) {
			e.RedOn = b.Tip
		}
	}
	s.Fresh = false
	s.dropBatch()
}

// mayPushTarget is false while a person has to say what becomes of the target.
func (s *State) mayPushTarget() bool {
	stands := s.Stop != nil && !s.redTarget()
	return s.Policy.Push && !stands
}

// schedulePush has the target pushed, with the tasks that landed just now.
func (s *State) schedulePush(landed []string) {
	u := &Unpushed{IDs: landed}
	if s.Unpushed != nil {
		u.IDs = slices.Concat(s.Unpushed.IDs, landed)
	}
	s.Unpushed = u
}

// askToPush issues the push of what landed, when it is time for that.
func (s *turn) askToPush(now time.Time) bool {
	u := s.Unpushed
	if u == nil || !s.mayPushTarget() || s.Theirs != "" || now.Before(u.Until) {
		return false
	}
	s.openCommand(Command{Kind: DoPush, Why: "the target has moved", To: s.Tip})
	return true
}

// The waits before a push is tried again: they double from the first to the last.
const (
	firstPushWait = 10 * time.Second
	lastPushWait  = 5 * time.Minute
)

// applyPushResult takes in what came of a push. One that somebody else was quicker with is
// tried again once what they pushed is here.
func (s *turn) applyPushResult(e *Event) {
	p, u := e.Push, s.Unpushed
	why := cmp.Or(p.Diverged, p.Failed)
	if why == "" || u == nil {
		s.Unpushed = nil
		s.nextCommand(e.At)
		return
	}
	if u.Why != why && p.Diverged == "" {
		s.appendNote(NoteWarning, "", "the landing is only here, and was not pushed: "+why)
	}
	u.Until = e.At.Add(min(firstPushWait<<min(u.Tries, 10), lastPushWait))
	u.Tries++
	u.Why, u.Refused = why, p.Refused
	if p.Diverged != "" {
		s.Due = []CommandKind{DoLook}
	}
	s.nextCommand(e.At)
}

// askToJoin makes a batch of its own that joins the remote's commits with the target:
// nothing that waits is blamed for it.
func (s *turn) askToJoin(now time.Time) bool {
	if s.Theirs == "" || s.Stop != nil || len(s.Checking) > 0 {
		return false
	}
	s.Batches++
	s.Batch = &Batch{N: s.Batches, Theirs: s.Theirs, Since: now}
	if s.Unpushed != nil { // somebody was quicker: that is no push that fails
		s.Unpushed.Until, s.Unpushed.Tries = time.Time{}, 0
	}
	s.openCommand(Command{Kind: DoPrepare, Why: "somebody else pushed: both are merged", Batch: s.Batches,
		Commit: s.Theirs})
	return true
}

// redTogether is for a target and its remote that are red together.
func (s *turn) redTogether(b *Batch, now time.Time) {
	s.dropBatch()
	s.stopQueue(Diverged, fmt.Sprintf("%s here (%s) and at its remote (%s) each have commits of their own, and "+
		"together they are red: %s; repair that, and the queue continues",
		branchName(s.Target), shortCommit(b.Tip), shortCommit(b.Theirs), b.Red), b.Tip, now)
	s.Stop.Theirs = b.Theirs
	s.nextCommand(now)
}
