package queue

import (
	"slices"
	"time"
)

// This file is about work that is green here and waits for the forge's CI. Meanwhile
// what gets ready is merged onto it, verified here and given to the forge too.

// MaxChecking is how many batches the forge checks at once.
const MaxChecking = 3

// The forge is asked soon at first, then less often: forty calls an hour where each
// time takes two.
const (
	firstAsk = time.Second
	lastAsk  = 3 * time.Minute
)

// mustCheck reports whether a tree that is green here has to be green at the forge, too.
func (s *State) mustCheck(tree string) bool { return s.Policy.Checks && tree != s.Checked }

// askForgeToCheck gives the batch, which is green here, to the forge.
func (s *turn) askForgeToCheck(now time.Time) {
	b := *s.Batch
	b.Asked, b.Busy = now, now
	for slices.ContainsFunc(s.Checking, func(o Batch) bool { return o.Place == b.Place }) {
		b.Place++
	}
	s.Checking = append(s.Checking, b)
	s.Ask = now
	s.dropBatch()
	s.nextCommand(now)
}

// askForChecks issues the question what the checks have come to, when it is time for that.
func (s *turn) askForChecks(now time.Time) bool {
	stands := s.Stop != nil && !s.redTarget()
	if stands || len(s.Checking) == 0 || now.Before(s.Ask) {
		return false
	}
	b := &s.Checking[0]
	s.openCommand(Command{Kind: DoCheck, Why: "are the forge's checks green", Batch: b.N, IDs: taskIDsOf(b.Steps)})
	return true
}

// takeChecks takes in what the forge says of the first batch; no verdict is not yet.
func (s *turn) takeChecks(e *Event) {
	b, v := s.Checking[0], e.Verdict
	if v == nil {
		if e.Busy {
			s.Checking[0].Busy = e.At
		}
		s.Ask = e.At.Add(min(max(e.At.Sub(b.Asked)/4, firstAsk), lastAsk))
		s.nextCommand(e.At)
		return
	}
	s.Batch, s.Checking = &b, s.Checking[1:]
	if len(s.Checking) > 0 {
		s.Checking[0].Asked, s.Checking[0].Busy, s.Ask = e.At, e.At, e.At
	}
	switch {
	case v.Green:
		s.Checked = v.Tree
	default: // what was merged onto it is worth nothing
		s.Checking = nil
	}
	switch {
	case b.Target:
		s.judgeTarget(v, e.At)
	case v.Green:
		s.askToLand("the forge's checks are green")
	default:
		b.Log, b.Absent = v.Log, v.Absent
		s.narrowRedBatch(v.Summary, e.At)
	}
}

// baseOfNext gives the commit that the next batch is merged onto; "" is the target's.
func (s *State) baseOfNext() string {
	if n := len(s.Checking); n > 0 {
		return s.Checking[n-1].Head
	}
	return ""
}

// isCheckingFull is true while nothing can be merged onto what the forge checks.
func (s *State) isCheckingFull() bool {
	n := len(s.Checking)
	if n == 0 {
		return false
	}
	return n >= MaxChecking || len(s.Suspects) > 0 || s.Stop != nil || s.Checking[0].Target ||
		s.Checking[0].Theirs != ""
}

// InCheck reports whether the forge checks the work of the entry now.
func (s *State) InCheck(id string) bool { return s.checkingIndexOf(id) >= 0 }

func (s *State) checkingIndexOf(id string) int {
	return slices.IndexFunc(s.Checking, func(b Batch) bool { return slices.Contains(b.IDs, id) })
}

// canTryEntry reports whether the entry can be in the next batch.
func (s *State) canTryEntry(e *Entry, now time.Time) bool {
	apart := e.Apart != "" && e.Apart == s.baseOfNext()
	return e.isReady(now) && !apart && !s.InCheck(e.ID)
}

// setBatchApart records that a batch does not go with what the forge checks. No entry is
// blamed: each is tried again once that has landed, or has not.
func (s *State) setBatchApart(b *Batch) {
	for _, id := range b.IDs {
		if e := s.entryOfTask(id); e != nil && e.Status == Waiting {
			e.Apart, e.Why = b.Tip, "it conflicts with what the forge is checking now, and waits for that"
		}
	}
	s.dropBatch()
}
