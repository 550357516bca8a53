package queue

import (
	"cmp"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/fault"
)

// handOutConflict gives a conflict that no rule resolves to an agent or a person.
func (s *turn) handOutConflict(e *Entry, c *Conflict, now time.Time) {
	class, why := Classify(*c)
	if class == Simple {
		class = Medium // what a rule resolved was red, or could not be resolved after all
	}
	why = fmt.Sprintf("%s conflicts with %s: %s", e.namedForWhy(), branchName(s.Target), why)
	if c.Regenerating != "" {
		why += "; " + c.Regenerating
	}
	if e.Solved != "" && e.Solved != s.Tip {
		e.Outrun++
		why += "; others landed while it was merged"
	}
	s.Out.Notes = append(s.Out.Notes, Note{Kind: NoteConflict, ID: e.ID, Text: why, Paths: c.Paths(), Class: class})
	told := len(s.Out.Notes) - 1
	s.askToResolve(e, why, &Problem{Class: class, Tip: s.Tip, Conflict: c}, now)
	s.Out.Notes[told].Parked = e.Status == Parked
}

// namedForWhy names the entry at the beginning of a sentence.
func (e *Entry) namedForWhy() string {
	if e.Revert != "" {
		return "reverting it"
	}
	return "it"
}

// askToResolve hands an entry to an agent while it has attempts, and else to a person.
func (s *turn) askToResolve(e *Entry, why string, p *Problem, now time.Time) {
	counted := e.Attempts - e.Outrun
	p.Why = cmp.Or(p.Why, why)
	if p.Class == Complex || !s.Policy.Resolve || counted >= s.Policy.Retries {
		if p.Class != Complex && e.Attempts > 0 {
			why = fmt.Sprintf("%s (after %s of an agent)", why, fault.Numbered(e.Attempts, "attempt"))
		}
		s.parkEntry(e, why, p, now)
		return
	}
	e.Attempts++
	e.Solved = ""
	e.Status, e.Why, e.Problem, e.Until = Resolving, why, p, time.Time{}
	s.appendNote(NoteResolving, e.ID, fmt.Sprintf("an agent works on it, attempt %d of %d: %s", counted+1,
		s.Policy.Retries,
		why))
	if e.Outrun >= outrunLimit {
		s.appendNote(NoteWaiting, e.ID, "the queue waits for this agent, since others landed before its work")
	}
}

// outrunLimit is how often others may land while an agent works on an entry,
// before the queue waits for it: else a busy target would starve it.
const outrunLimit = 2

// awaitedEntry gives the first entry in order whose agent the queue waits for; nil none.
func (s *State) awaitedEntry() *Entry {
	var first *Entry
	for i := range s.Entries {
		e := &s.Entries[i]
		if s.Policy.Resolve && e.Status == Resolving && e.Outrun >= outrunLimit {
			if first == nil || compareReady(e, first) < 0 {
				first = e
			}
		}
	}
	return first
}

// parkEntry puts an entry aside until a person acts, or the time for that is over.
func (s *State) parkEntry(e *Entry, why string, p *Problem, now time.Time) {
	e.Status, e.Why, e.Problem, e.Until = Parked, why, p, time.Time{}
	if s.Policy.Timeout > 0 {
		e.Until = now.Add(s.Policy.Timeout)
	}
	s.appendNote(NoteEscalated, e.ID, why)
	s.moveEntry(e.ID, MoveBlocked, why)
}

// endOverdue ends the wait of a parked entry about which no person answered. One that
// leaves loses its status.
func (s *State) endOverdue(e *Entry, now time.Time) {
	switch s.Policy.Action {
	case Skip:
		s.dropEntry(e, "nobody answered in time: "+e.Why)
		e.Status = ""
	case Retry:
		s.retryEntry(e, "nobody answered in time; it is tried again")
	case Notify:
		s.appendNote(NoteEscalated, e.ID, "still: "+e.Why)
		e.Until = now.Add(s.Policy.Timeout)
	default:
		s.appendNote(NoteEscalated, e.ID, "nobody answered in time; it stays parked until: pawl queue retry "+e.ID)
		e.Until = time.Time{}
	}
}

// takeResolution takes in the end of an agent's run at an entry. What it made is new
// work: it is merged and verified like any other.
func (s *turn) takeResolution(ev *Event) {
	r := ev.Resolution
	if r == nil {
		return
	}
	e := s.entryOfTask(r.ID)
	if e == nil || e.Status != Resolving || e.Attempts != r.Attempt {
		return
	}
	if r.Commit == "" {
		why := cmp.Or(r.Why, "the agent made no commit")
		if e.Problem.Why != "" {
			why += "; " + e.Problem.Why
		}
		s.askToResolve(e, why, e.Problem, ev.At)
	} else {
		e.Solved = e.Problem.Tip
		e.Commit, e.Status, e.Why, e.Problem, e.Plain = r.Commit, Waiting, "", nil, false
	}
	s.issueNext(ev.At)
}

// proposedEntries gives the entries with a pull request that somebody may merge.
func (s *State) proposedEntries() []string {
	var list []string
	for i := range s.Entries {
		if s.Entries[i].isProposed() {
			list = append(list, s.Entries[i].ID)
		}
	}
	return list
}

// isProposed is true while somebody may merge the entry's pull request. A parked
// one may still be merged as it is.
func (e *Entry) isProposed() bool {
	parkedRequest := e.Status == Parked && e.Request != ""
	return parkedRequest || e.Status == Proposed
}

// takeProposals takes in what became of pull requests. Merged is done, with the
// host's commit. Asked: the host was asked, and opened none.
func (s *turn) takeProposals(ev *Event, asked bool) {
	b := s.Batch
	s.dropBatch()
	for _, r := range ev.Requests {
		e := s.entryOfTask(r.ID)
		switch {
		case e == nil:
		case r.Merged != "":
			l := Landing{Commit: r.Merged, Since: r.Since, To: r.Merged, At: ev.At}
			if b != nil {
				l.Batch = b.N
			}
			s.removeLandedEntry(*e, l)
		case e.Status == Parked: // only that it was merged counts
		case asked && e.Status != Proposed: // a person had something else done meanwhile
		case r.Refused != "":
			s.remakeRefused(e, r.Refused, ev.At)
		case r.Closed != "":
			s.parkEntry(e, r.Closed, nil, ev.At)
			e.Request = ""
		case r.URL != "":
			s.takeProposal(e, &r, ev.At)
		}
	}
	s.nextCommand(ev.At)
}

// heardLimit is how many names of what was said are kept.
const heardLimit = 1000

// takeProposal takes in how an open pull request is. What people say begins the
// attempts of an agent anew; what checks say does not.
func (s *turn) takeProposal(e *Entry, r *Request, now time.Time) {
	why := "its pull request is open: " + r.URL
	if e.Request != r.URL {
		s.appendNote(NoteProposed, e.ID, why)
	}
	if r.Why != "" {
		why += "; " + r.Why
		if e.Why != why {
			s.appendNote(NoteWaiting, e.ID, r.Why)
		}
	}
	e.Status, e.Why, e.Request, e.Seen = Proposed, why, r.URL, r.Seen
	e.Heard = append(e.Heard, r.Heard...)
	e.Heard = e.Heard[max(0, len(e.Heard)-heardLimit):]
	switch {
	case r.Pushed != "":
		e.Commit, e.Status = r.Pushed, Waiting
		e.Why = "somebody pushed to its pull request: that is verified, and gone on from"
		s.appendNote(NoteWaiting, e.ID, e.Why)
	case r.Said != "":
		e.Attempts, e.Outrun = 0, 0
		problem := &Problem{Class: Medium, Tip: s.Tip, Said: r.Said}
		s.askToResolve(e, "changes are wanted in its pull request", problem, now)
	case r.Red != "":
		problem := &Problem{Class: Medium, Tip: s.Tip, Said: r.Red}
		s.askToResolve(e, "the checks of its pull request are red", problem, now)
	case r.Behind:
		e.Status, e.Why = Waiting, "its pull request is updated to "+branchName(s.Target)
	}
}
