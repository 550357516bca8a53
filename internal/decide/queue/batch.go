package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/fault"
)

// InOrder is the queue as it would land now: what is ready first, then the rest.
func (s *State) InOrder(now time.Time) []Entry {
	list := slices.Clone(s.Entries)
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(-compare(a.ready(now), b.ready(now)), before(&a, &b))
	})
	return list
}

func compare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// before is the order of entries that are ready: those that were passed over
// too often, then the higher priority, then the older.
func before(a, b *Entry) int {
	aged := compare(b.Passed >= AgeLimit, a.Passed >= AgeLimit)
	if aged == 0 && a.Passed < AgeLimit {
		aged = cmp.Compare(b.Priority, a.Priority)
	}
	return cmp.Or(aged, cmp.Compare(a.Order, b.Order), strings.Compare(a.ID, b.ID))
}

// ready is true for an entry that can be tried now.
func (e *Entry) ready(now time.Time) bool {
	return e.Status == Waiting && len(e.Needs) == 0 && !now.Before(e.Until)
}

// choose is the entries of the next batch, and why these.
func (s *State) choose(now time.Time) ([]string, string) {
	if s.full() {
		return nil, ""
	}
	if s.Stop != nil {
		return s.repairing(now)
	}
	var list []Entry
	awaited := s.awaited()
	for i := range s.Entries {
		e := &s.Entries[i]
		first := awaited == nil || e.Outrun >= outrunLimit || before(e, awaited) < 0
		if first && s.canTry(e, now) {
			list = append(list, *e)
		}
	}
	slices.SortFunc(list, func(a, b Entry) int { return before(&a, &b) })
	isReady := func(id string) bool { return slices.ContainsFunc(list, func(e Entry) bool { return e.ID == id }) }
	if slices.ContainsFunc(s.Suspects, func(id string) bool { return !isReady(id) }) {
		s.Suspects = nil // without one of them the others may be green
	}
	if n := len(s.Suspects); n > 0 {
		half := s.Suspects[:(n+1)/2]
		return slices.Clone(half), fmt.Sprintf("%s, red together: the first %d", fault.Numbered(n, "entry"), len(half))
	}
	most := s.width()
	if s.Policy.Propose {
		most = min(most, 1)
	}
	chosen := make([]string, 0, min(len(list), most))
	for _, e := range list[:min(len(list), most)] {
		chosen = append(chosen, e.ID)
	}
	return chosen, fmt.Sprintf("%d of %d that are ready", len(chosen), len(list))
}

// width is the most entries of the next batch. Whoever wants each alone gets that.
func (s *State) width() int {
	if s.Unverified && s.Policy.Batch > 1 {
		return min(s.Policy.Batch*UnverifiedBatches, MaxBatch)
	}
	return s.Window
}

// prepared takes in how the batch merges.
func (s *State) prepared(e *Event) {
	p, b := e.Prepared, s.Batch
	s.Batch = nil
	if !s.see(&p.Facts, e.At) || b == nil || b.Tip != s.onto() {
		s.next(e.At)
		return
	}
	for i := range p.Steps {
		s.merged(&p.Steps[i], e.At)
		if entry := s.at(p.Steps[i].ID); entry != nil && p.Steps[i].Later {
			entry.Apart = b.Tip
		}
	}
	b.Head, b.Result = p.Head, p.Result
	if n := len(s.Checking); n > 0 {
		b.Tree = s.Checking[n-1].Result
	} else {
		b.Tip, b.Tree = p.Tip, p.Tree
	}
	b.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(m Merged) bool { return !m.lands() || s.index(m.ID) < 0 })
	theirsToo := b.Theirs != "" && b.Head != b.Tip
	if len(b.Steps) == 0 && !theirsToo {
		s.next(e.At)
		return
	}
	s.Batch = b
	if b.Head == b.Tip && len(s.Checking) > 0 {
		s.setApart(b)
		s.next(e.At)
		return
	}
	if b.Head == b.Tip {
		s.land("nothing is left to change")
		return
	}
	s.verify(b.Result, b.Head, "does it pass, merged onto "+abbreviated(b.Tip), false)
}

// merged is what the merge of one entry means for it.
func (s *State) merged(m *Merged, now time.Time) {
	e := s.at(m.ID)
	if e == nil {
		return
	}
	switch {
	case m.Lost != "":
		s.park(e, m.Lost, nil, now)
	case m.Conflict != nil:
		s.conflict(e, m.Conflict, now)
	case m.Later:
		e.Why = "it conflicts with an entry that is tried before it"
	default:
		e.Ahead = nil
		if len(m.Settled) > 0 {
			s.Out.Notes = append(s.Out.Notes, Note{Kind: NoteSettled, ID: e.ID, Paths: m.Settled,
				Text: "a simple conflict was settled, and is verified: " + listed(m.Settled)})
		}
		if len(m.Regenerated) > 0 {
			text := fmt.Sprintf("made anew, and verified: %s (%s)", listed(m.Regenerated), listed(m.Commands))
			s.Out.Notes = append(s.Out.Notes, Note{Kind: NoteMade, ID: e.ID, Paths: m.Regenerated, Text: text})
		}
		if len(m.Kept) > 0 {
			s.Out.Notes = append(s.Out.Notes, Note{Kind: NoteKept, ID: e.ID, Paths: m.Kept,
				Text: "protected files stay as the target has them: " + listed(m.Kept)})
		}
	}
}

func (s *State) verify(tree, commit, why string, again bool) {
	s.do(Command{Kind: DoVerify, Why: why, Batch: s.Batch.N, IDs: ids(s.Batch.Steps), Tree: tree, Commit: commit,
		Again: again, Fresh: s.Fresh})
}

// verified takes in a gate record. One of another tree than the one that was
// asked about counts for nothing.
func (s *State) verified(e *Event) {
	v, b := e.Verdict, s.Batch
	want, commit := b.Result, b.Head
	if b.Target {
		want, commit = b.Tree, b.Tip
	}
	if v.Tree != want {
		s.drop()
		s.next(e.At)
		return
	}
	for _, w := range v.Warnings {
		s.note(NoteWarning, "", w)
	}
	if v.Retried && v.Green {
		s.note(NoteFlaky, only(b.Steps), "a gate was red, then green on the same tree: "+b.Red)
	}
	switch {
	case !v.Green && !v.Cached && !b.Retried:
		b.Retried, b.Red = true, v.Summary
		s.verify(want, commit, "once more, since it was red: "+v.Summary, true)
	case b.Target && v.Green && s.mustCheck(want):
		s.check(e.At)
	case b.Target:
		s.judged(v, e.At)
	case v.Green:
		s.green(v, e.At)
	default:
		s.red(v.Summary, e.At)
	}
}

func (s *State) green(v *Verdict, now time.Time) {
	if s.Unverified = v.Empty; v.Empty {
		s.note(NoteEmpty, "", "VERIFICATION_EMPTY: there are no gates, so nothing was verified")
	}
	why := "all required gates passed"
	switch {
	case v.Empty:
		why = "there are no gates"
	case v.Cached:
		why = "this very tree passed before"
	}
	if s.Policy.Propose {
		s.do(Command{Kind: DoPropose, Why: why, Batch: s.Batch.N, IDs: ids(s.Batch.Steps), Commit: s.Batch.Head,
			Tree: s.Batch.Result})
		return
	}
	if s.mustCheck(v.Tree) {
		s.check(now)
		return
	}
	s.land(why)
}

// red halves what is tried together, down to one entry; before that one is
// blamed, the target must be green by itself. A check that is not reported is
// mostly missing for all commits, so there the target comes first.
func (s *State) red(summary string, now time.Time) {
	b := s.Batch
	b.Red = summary
	if len(s.Checking) > 0 {
		s.setApart(b)
		s.next(now)
		return
	}
	if len(b.Steps) > 1 && !b.Absent {
		s.halve(b, now)
		return
	}
	if b.Theirs != "" {
		s.redTogether(b, now)
		return
	}
	if s.redTarget() {
		s.repairsNothing(b)
		s.next(now)
		return
	}
	s.Window = max(1, s.Window/2)
	if s.Green == b.Tree {
		s.suspect(b, now)
		return
	}
	b.Target, b.Retried = true, false
	s.verify(b.Tree, b.Tip, "is the target red by itself", false)
}

// suspect is for a batch that is red on a green target.
func (s *State) suspect(b *Batch, now time.Time) {
	if len(b.Steps) > 1 {
		s.halve(b, now)
		return
	}
	s.blame(b, now)
}

// halve tries the entries of a batch in smaller ones.
func (s *State) halve(b *Batch, now time.Time) {
	moving := ids(b.Steps)
	s.Window = max(1, len(moving)/2)
	s.Suspects = moving
	s.drop()
	s.next(now)
}

// blame is for one entry that is red on a green target.
func (s *State) blame(b *Batch, now time.Time) {
	s.Fresh = false
	s.drop()
	m := b.Steps[0]
	s.Suspects = nil // without it the others may be green
	if e := s.at(m.ID); e != nil {
		switch why := "it is red on " + short(s.Target) + ": " + b.Red; {
		case len(m.ruled()) > 0 && !e.Plain:
			e.Plain = true
			s.note(NoteRed, e.ID, why+"; what was settled by rule in "+listed(m.ruled())+" goes to an agent")
		default:
			s.note(NoteRed, e.ID, why)
			s.resolve(e, why, &Problem{Class: Medium, Tip: b.Tip, Red: b.Red, Said: b.Log}, now)
		}
	}
	s.next(now)
}

func (s *State) landing() bool { return s.Batch != nil && s.Batch.Landing }

func (s *State) land(why string) {
	b := s.Batch
	b.Landing = true
	s.do(Command{Kind: DoLand, Why: why, Batch: b.N, IDs: ids(b.Steps), From: b.Tip, To: b.Head, Commit: b.Head,
		Tree: b.Result})
}

// landed takes the batch out of the queue.
func (s *State) landed(e *Event) {
	b := s.Batch
	s.Fresh = false
	s.drop()
	s.pass(b, e.At)
	for i := range b.Steps {
		m := &b.Steps[i]
		if entry := s.at(m.ID); entry != nil {
			s.done(*entry, Landing{Commit: m.Commit, Tree: b.Result, Batch: b.N, From: b.Tip, To: b.Head, Empty: m.Empty,
				At: e.At, Regenerated: m.Regenerated})
		}
	}
	if s.Tip = b.Head; b.Head != b.Tip {
		s.Green, s.Wanted = b.Result, false
		if s.redTarget() {
			s.goOn("the target is green again")
		}
		s.Window = min(s.Window+1, s.Policy.Batch)
		s.Due = []CommandKind{DoForesee}
		if b.Theirs != "" {
			s.note(NoteMoved, "", "what the remote has is brought together with "+short(s.Target)+", and verified")
		}
		if s.Policy.Push {
			s.toPush(ids(b.Steps))
		}
	}
	s.next(e.At)
}

// done is for an entry whose change is on the target.
func (s *State) done(e Entry, l Landing) {
	l.Task, l.Run = e.ID, e.Run
	why := fmt.Sprintf("landed on %s as %s", short(s.Target), abbreviated(l.Commit))
	if l.Empty {
		why = fmt.Sprintf("nothing to change: %s has it already, at %s", short(s.Target), abbreviated(l.Commit))
	}
	if len(l.Regenerated) > 0 {
		why += ", with files made anew: " + listed(l.Regenerated)
	}
	s.Out.Landings = append(s.Out.Landings, l)
	s.Out.Cases = append(s.Out.Cases, CaseMove{ID: e.ID, Move: MoveLanded, Why: why})
	s.Out.Notes = append(s.Out.Notes, Note{Kind: NoteLanded, ID: e.ID, Text: why, Commit: l.Commit})
	s.remove(e.ID)
	for i := range s.Entries {
		s.Entries[i].Needs = without(s.Entries[i].Needs, e.ID)
	}
}

// pass counts for those who were ready and older than one that went first.
func (s *State) pass(b *Batch, now time.Time) {
	last := int64(0)
	for _, m := range b.Steps {
		if e := s.at(m.ID); e != nil {
			last = max(last, e.Order)
		}
	}
	for i := range s.Entries {
		if e := &s.Entries[i]; e.ready(now) && e.Order < last && !slices.Contains(b.IDs, e.ID) && !s.InCheck(e.ID) {
			e.Passed++
		}
	}
}

// The waits for a file in the user's checkout: they double from the first to the last.
const (
	firstWait = 2 * time.Second
	lastWait  = time.Minute
)

// refused is a landing that was not made: nothing has changed.
func (s *State) refused(e *Event) {
	r, b := e.Refusal, s.Batch
	s.Checking = nil // it is merged onto what did not land
	s.drop()
	if r.Moved {
		s.next(e.At)
		return
	}
	blocked := r.IDs
	if len(blocked) == 0 && b != nil {
		blocked = ids(b.Steps)
	}
	for _, id := range blocked {
		entry := s.at(id)
		if entry == nil {
			continue
		}
		if entry.Why != r.Why {
			s.note(NoteWaiting, id, r.Why)
		}
		entry.Until, entry.Why = e.At.Add(min(firstWait<<min(entry.Waits, 10), lastWait)), r.Why
		entry.Waits++
	}
	s.next(e.At)
}

// follow issues what comes after a landing; false when there is nothing to do.
func (s *State) follow(kind CommandKind) bool {
	switch kind {
	case DoForesee:
		return s.foresee()
	case DoLook:
		s.do(Command{Kind: DoLook, Why: "has the target changed"})
		return true
	case DoReview:
		list := s.proposed()
		if len(list) > 0 {
			s.do(Command{Kind: DoReview, Why: "pull requests are open", IDs: list, Fresh: s.Rung})
			s.Rung = false
		}
		return len(list) > 0
	}
	return false
}

// foresee looks at entries that are not about to be tried anyway.
func (s *State) foresee() bool {
	var list []string
	for i, e := range s.InOrder(time.Time{}) {
		next := i < s.width() && e.ready(time.Time{})
		if !next && !s.InCheck(e.ID) && e.Problem == nil && e.Status != Proposed && len(list) < MaxForeseen {
			list = append(list, e.ID)
		}
	}
	if len(list) > 0 {
		s.do(Command{Kind: DoForesee, Why: "which others will conflict now", IDs: list, To: s.Tip})
	}
	return len(list) > 0
}

func (s *State) foreseen(ev *Event) {
	for _, a := range ev.Ahead {
		e := s.at(a.ID)
		if e == nil {
			continue
		}
		if len(a.Paths) > 0 && !slices.Equal(e.Ahead, a.Paths) {
			s.Out.Notes = append(s.Out.Notes, Note{Kind: NoteAhead, ID: e.ID, Paths: a.Paths,
				Text: "will conflict with " + short(s.Target) + " in " + listed(a.Paths)})
		}
		e.Ahead = a.Paths
	}
}

// short is a branch as people name it.
func short(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }

// abbreviated is a commit as people name it.
func abbreviated(commit string) string { return commit[:min(len(commit), 10)] }

// listed names the first few of a list.
func listed(list []string) string {
	const most = 5
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// only is the entry of a batch of one; "" for more.
func only(steps []Merged) string {
	if len(steps) == 1 {
		return steps[0].ID
	}
	return ""
}
