package queue

import (
	"fmt"
	"slices"
	"time"
)

// recheck is how soon a red target is verified once more as it is.
const recheck = 15 * time.Minute

// redTarget is true while the queue stands still since its target is red.
func (s *State) redTarget() bool { return s.Stop != nil && s.Stop.Cause == RedTarget }

// Repairing is true while the queue tries what may repair the target.
func (s *State) Repairing() bool {
	return s.redTarget() && s.Batch != nil && !s.Batch.Target
}

// verifyTarget has the gates run on the target itself, when somebody waits for
// that, or when a red one is due once more. It is false when neither is so.
func (s *State) verifyTarget(e *Event) bool {
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
	s.verify(e.Facts.Tree, e.Facts.Tip, "is the target green", false)
	return true
}

// judged is the verdict on the target itself.
func (s *State) judged(v *Verdict, now time.Time) {
	b := s.Batch
	s.Fresh = false
	if !v.Green {
		s.repairsNothing(b)
		s.stop(RedTarget, s.alarm(v, b.Tip), b.Tip, now)
		s.Stop.Again = now.Add(recheck)
		s.next(now)
		return
	}
	s.Green, s.Wanted = b.Tree, false
	if s.redTarget() {
		why := "the target is green again"
		if s.Stop.Tip == b.Tip {
			why += " at the same commit: a gate is flaky, or what it needs is back"
		}
		s.goOn(why)
	}
	if len(b.Steps) > 0 {
		s.suspect(b, now)
		return
	}
	s.drop()
	s.next(now)
}

// alarm names the commit, whose it is, and the gate. A check that is not reported is
// nobody's.
func (s *State) alarm(v *Verdict, tip string) string {
	if v.Absent {
		return fmt.Sprintf("%s cannot be judged: %s; repair that, then: pawl queue resume", short(s.Target), v.Summary)
	}
	at := ""
	if v.By != "" {
		at = " at " + abbreviated(tip) + " " + v.By
	}
	return fmt.Sprintf("%s is red itself%s: %s; repair it, and the queue goes on (it looks again every 15 minutes; "+
		"for a flaky gate raise verification.retries)", short(s.Target), at, v.Summary)
}

// repairing is the next entry to be tried on a red target, by itself: it may be
// what repairs that.
func (s *State) repairing(now time.Time) ([]string, string) {
	if !s.redTarget() {
		return nil, ""
	}
	var first *Entry
	for i := range s.Entries {
		e := &s.Entries[i]
		tried := e.RedOn == s.Stop.Tip
		if !tried && e.ready(now) && (first == nil || before(e, first) < 0) {
			first = e
		}
	}
	if first == nil {
		return nil, ""
	}
	return []string{first.ID}, "does it repair the target"
}

// repairsNothing keeps of a batch that it left the target red, and blames nobody.
func (s *State) repairsNothing(b *Batch) {
	for i := range s.Entries {
		e := &s.Entries[i]
		if slices.ContainsFunc(b.Steps, func(m Merged) bool { return m.ID == e.ID }) {
			e.RedOn = b.Tip
		}
	}
	s.Fresh = false
	s.drop()
}
