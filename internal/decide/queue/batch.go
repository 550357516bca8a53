package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// InOrder is the queue as it would land now: what is ready first, then the rest.
func (s *State) InOrder(now time.Time) []Entry {
	list := slices.Clone(s.Entries)
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(-compareBools(a.isReady(now), b.isReady(now)), compareReady(&a, &b))
	})
	return list
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// compareReady orders entries that are ready: those that were passed over
// too often, then the higher priority, then the older.
func compareReady(a, b *Entry) int {
	aged := compareBools(b.Passed >= AgeLimit, a.Passed >= AgeLimit)
	if aged == 0 && a.Passed < AgeLimit {
		aged = cmp.Compare(b.Priority, a.Priority)
	}
	return cmp.Or(aged, cmp.Compare(a.Order, b.Order), strings.Compare(a.ID, b.ID))
}

// isReady reports whether the entry can be tried now.
func (e *Entry) isReady(now time.Time) bool {
	return e.Status == Waiting && len(e.Needs) == 0 && !now.Before(e.Until)
}

// chooseBatch gives the entries of the next batch, and why these.
func (s *turn) chooseBatch(now time.Time) ([]string, string) {
	if s.isCheckingFull() {
		return nil, ""
	}
	if s.Stop != nil {
		return s.nextRepair(now)
	}
	var list []Entry
	awaited := s.awaitedEntry()
	for i := range s.Entries {
		e := &s.Entries[i]
		first := awaited == nil || e.Outrun >= outrunLimit || compareReady(e, awaited) < 0
		if first && s.canTryEntry(e, now) {
			list = append(list, *e)
		}
	}
	slices.SortFunc(list, func(a, b Entry) int { return compareReady(&a, &b) })
	isReady := func(id string) bool { return slices.ContainsFunc(list, func(e Entry) bool { return e.ID == id }) }
	if slices.ContainsFunc(s.Suspects, func(id string) bool { return !isReady(id) }) {
		s.Suspects = nil // without one of them the others may be green
	}
	if n := len(s.Suspects); n > 0 {
		half := s.Suspects[:(n+1)/2]
		return slices.Clone(half), fmt.Sprintf("%s, red together: the first %d", fault.Numbered(n, "entry"), len(half))
	}
	most := s.mostOfBatch()
	if s.Policy.Propose {
		most = min(most, 1)
	}
	chosen := lists.Each(list[:min(len(list), most)], func(e Entry) string { return e.ID })
	return chosen, fmt.Sprintf("%d of %d that are ready", len(chosen), len(list))
}

// mostOfBatch is the most entries of the next batch: one where each is to be tried alone.
func (s *State) mostOfBatch() int {
	if s.Unverified && s.Policy.Batch > 1 {
		return min(s.Policy.Batch*UnverifiedBatches, MaxBatch)
	}
	return s.Window
}

// takeMerge takes in how the batch merges.
func (s *turn) takeMerge(e *Event) {
	p, b := e.Prepared, s.Batch
	s.Batch = nil
	if !s.seeTarget(&p.Facts, e.At) || b == nil || b.Tip != s.baseOfNext() {
		s.nextCommand(e.At)
		return
	}
	for i := range p.Steps {
		s.takeMergeOfEntry(&p.Steps[i], e.At)
		if entry := s.entryOfTask(p.Steps[i].ID); entry != nil && p.Steps[i].Later {
			entry.Apart = b.Tip
		}
	}
	b.Head, b.Result = p.Head, p.Result
	if n := len(s.Checking); n > 0 {
		b.Tree = s.Checking[n-1].Result
	} else {
		b.Tip, b.Tree = p.Tip, p.Tree
	}
	isOut := func(m Merged) bool { return !m.canBeLanded() || s.entryIndexOf(m.ID) < 0 }
	b.Steps = slices.DeleteFunc(slices.Clone(p.Steps), isOut)
	theirsToo := b.Theirs != "" && b.Head != b.Tip
	if len(b.Steps) == 0 && !theirsToo {
		s.nextCommand(e.At)
		return
	}
	s.Batch = b
	if b.Head == b.Tip && len(s.Checking) > 0 {
		s.setBatchApart(b)
		s.nextCommand(e.At)
		return
	}
	if b.Head == b.Tip {
		s.askToLand("nothing is left to change")
		return
	}
	s.askToVerify(b.Result, b.Head, "does it pass, merged onto "+shortCommit(b.Tip), false)
}

// takeMergeOfEntry takes in what the merge of one entry means for it.
func (s *turn) takeMergeOfEntry(m *Merged, now time.Time) {
	e := s.entryOfTask(m.ID)
	if e == nil {
		return
	}
	switch {
	case m.Lost != "":
		s.parkEntry(e, m.Lost, nil, now)
	case m.Conflict != nil:
		s.handOutConflict(e, m.Conflict, now)
	case m.Later:
		e.Why = "it conflicts with an entry before it"
	default:
		e.Ahead = nil
		if len(m.Settled) > 0 {
			s.Out.Notes = append(s.Out.Notes, Note{Kind: NoteSettled, ID: e.ID, Paths: m.Settled,
				Text: "a simple conflict was settled, and is verified: " + firstOfList(m.Settled)})
		}
		if len(m.Regenerated) > 0 {
			text := fmt.Sprintf("regenerated, verified: %s (%s)", firstOfList(m.Regenerated), firstOfList(m.Commands))
			s.Out.Notes = append(s.Out.Notes, Note{Kind: NoteMade, ID: e.ID, Paths: m.Regenerated, Text: text})
		}
		if m.Many != "" {
			s.Out.Notes = append(s.Out.Notes, Note{Kind: NoteMany, ID: e.ID, Text: "it adds " + m.Many})
		}
		if len(m.Kept) > 0 {
			s.Out.Notes = append(s.Out.Notes, Note{Kind: NoteKept, ID: e.ID, Paths: m.Kept,
				Text: "protected files keep the version of the target: " + firstOfList(m.Kept)})
		}
	}
}

func (s *turn) askToVerify(tree, commit, why string, again bool) {
	s.openCommand(Command{Kind: DoVerify, Why: why, Batch: s.Batch.N, IDs: taskIDsOf(s.Batch.Steps), Tree: tree,
		Commit: commit, Target: s.Batch.Target,
		Again: again, Fresh: s.Fresh})
}

// takeVerdict takes in a gate record. One of another tree than the one that was
// asked about counts for nothing.
func (s *turn) takeVerdict(e *Event) {
	v, b := e.Verdict, s.Batch
	want, commit := b.Result, b.Head
	if b.Target {
		want, commit = b.Tree, b.Tip
	}
	if v.Tree != want {
		s.dropBatch()
		s.nextCommand(e.At)
		return
	}
	for _, w := range v.Warnings {
		s.appendNote(NoteWarning, "", w)
	}
	if v.Retried && v.Green {
		s.appendNote(NoteFlaky, onlyEntry(b.Steps), "a gate was red, then green on the same tree: "+b.Red)
	}
	switch {
	case !v.Green && !v.Cached && !b.Retried:
		b.Retried, b.Red = true, v.Summary
		s.askToVerify(want, commit, "once more, since it was red: "+v.Summary, true)
	case b.Target && v.Green && s.mustCheck(want):
		s.askForgeToCheck(e.At)
	case b.Target:
		s.judgeTarget(v, e.At)
	case v.Green:
		s.takeGreen(v, e.At)
	default:
		s.narrowRedBatch(v.Summary, e.At)
	}
}

func (s *turn) takeGreen(v *Verdict, now time.Time) {
	if s.Unverified = v.Empty; v.Empty {
		s.appendNote(NoteEmpty, "", "VERIFICATION_EMPTY: there are no gates, so nothing was verified")
	}
	why := "all required gates passed"
	switch {
	case v.Empty:
		why = "there are no gates"
	case v.Cached:
		why = "the same tree passed before"
	}
	if s.Policy.Propose {
		s.openCommand(Command{Kind: DoPropose, Why: why, Batch: s.Batch.N, IDs: taskIDsOf(s.Batch.Steps),
			Commit: s.Batch.Head,
			Tree:   s.Batch.Result})
		return
	}
	if s.mustCheck(v.Tree) {
		s.askForgeToCheck(now)
		return
	}
	s.askToLand(why)
}

// narrowRedBatch halves what is tried together, down to one entry; before that one is
// blamed, the target must be green by itself. A check that is not reported is
// mostly missing for all commits, so there the target comes first.
func (s *turn) narrowRedBatch(summary string, now time.Time) {
	b := s.Batch
	b.Red = summary
	if len(s.Checking) > 0 {
		s.setBatchApart(b)
		s.nextCommand(now)
		return
	}
	if len(b.Steps) > 1 && !b.Absent {
		s.halveBatch(b, now)
		return
	}
	if b.Theirs != "" {
		s.redTogether(b, now)
		return
	}
	if s.redTarget() {
		s.repairsNothing(b)
		s.nextCommand(now)
		return
	}
	s.Window = max(1, s.Window/2)
	if s.Green == b.Tree {
		s.halveOrBlame(b, now)
		return
	}
	b.Target, b.Retried = true, false
	s.askToVerify(b.Tree, b.Tip, "is the target red by itself", false)
}

// halveOrBlame takes a batch that is red on a green target.
func (s *turn) halveOrBlame(b *Batch, now time.Time) {
	if len(b.Steps) > 1 {
		s.halveBatch(b, now)
		return
	}
	s.blameEntry(b, now)
}

// halveBatch tries the entries of a batch in smaller ones.
func (s *turn) halveBatch(b *Batch, now time.Time) {
	moving := taskIDsOf(b.Steps)
	s.Window = max(1, len(moving)/2)
	s.Suspects = moving
	s.dropBatch()
	s.nextCommand(now)
}

// blameEntry takes one entry that is red on a green target.
func (s *turn) blameEntry(b *Batch, now time.Time) {
	s.Fresh = false
	s.dropBatch()
	m := b.Steps[0]
	s.Suspects = nil // without it the others may be green
	if e := s.entryOfTask(m.ID); e != nil {
		switch why := e.namedForWhy() + " is red on " + branchName(s.Target) + ": " + b.Red; {
		case len(m.pathsByRule()) > 0 && !e.Plain:
			e.Plain = true
			paths := firstOfList(m.pathsByRule())
			s.appendNote(NoteRed, e.ID, why+"; what was settled by rule in "+paths+" goes to an agent")
		default:
			s.appendNote(NoteRed, e.ID, why)
			s.askToResolve(e, why, &Problem{Class: Medium, Tip: b.Tip, Red: b.Red, Said: b.Log}, now)
		}
	}
	s.nextCommand(now)
}

func (s *State) isLanding() bool { return s.Batch != nil && s.Batch.Landing }

func (s *turn) askToLand(why string) {
	b := s.Batch
	b.Landing = true
	s.openCommand(Command{Kind: DoLand, Why: why, Batch: b.N, IDs: taskIDsOf(b.Steps), From: b.Tip, To: b.Head,
		Commit: b.Head,
		Tree:   b.Result})
}

// takeLanding takes the batch out of the queue.
func (s *turn) takeLanding(e *Event) {
	b := s.Batch
	s.Fresh = false
	s.dropBatch()
	s.countPassedOver(b, e.At)
	for i := range b.Steps {
		m := &b.Steps[i]
		if entry := s.entryOfTask(m.ID); entry != nil {
			s.removeLandedEntry(*entry, Landing{Commit: m.Commit, Tree: b.Result, Batch: b.N, From: b.Tip, To: b.Head,
				Empty: m.Empty, At: e.At, Regenerated: m.Regenerated, Many: m.Many})
		}
	}
	if s.Tip = b.Head; b.Head != b.Tip {
		s.Green, s.Wanted = b.Result, false
		if s.redTarget() {
			s.resumeQueue("the target is green again")
		}
		s.Window = min(s.Window+1, s.Policy.Batch)
		s.Due = []CommandKind{DoForesee}
		if b.Theirs != "" {
			target := branchName(s.Target)
			s.appendNote(NoteMoved, "", "the commits of the remote are merged with "+target+", and verified")
		}
		switch {
		case s.Policy.Push && e.Push != nil:
			s.Unpushed = nil
		case s.Policy.Push:
			s.schedulePush(taskIDsOf(b.Steps))
		}
	}
	s.nextCommand(e.At)
}

// removeLandedEntry takes an entry out whose change is on the target.
func (s *State) removeLandedEntry(e Entry, l Landing) {
	l.Task, l.Run = e.ID, e.Run
	why := fmt.Sprintf("landed on %s as %s", branchName(s.Target), shortCommit(l.Commit))
	if l.Empty {
		why = fmt.Sprintf("nothing to change: %s has it already, at %s", branchName(s.Target), shortCommit(l.Commit))
	}
	if len(l.Regenerated) > 0 {
		why += ", with regenerated files: " + firstOfList(l.Regenerated)
	}
	if l.Many != "" {
		why += ", with " + l.Many
	}
	move, note := MoveLanded, NoteLanded
	if l.Revert = e.Revert != ""; l.Revert {
		move, note = MoveReopen, NoteReverted
		why = fmt.Sprintf("reverted on %s by %s: %s", branchName(s.Target), shortCommit(l.Commit), e.Revert)
	}
	s.Out.Landings = append(s.Out.Landings, l)
	reason := why
	if e.Result != "" && move == MoveLanded {
		reason = e.Result + "; " + why
	}
	s.Out.Cases = append(s.Out.Cases, CaseMove{ID: e.ID, Move: move, Why: reason})
	s.Out.Notes = append(s.Out.Notes, Note{Kind: note, ID: e.ID, Text: why, Commit: l.Commit})
	s.removeEntry(e.ID)
	for i := range s.Entries {
		s.Entries[i].Needs = withoutValue(s.Entries[i].Needs, e.ID)
	}
}

// countPassedOver counts for those who were ready and older than one that went first.
func (s *State) countPassedOver(b *Batch, now time.Time) {
	last := int64(0)
	for _, m := range b.Steps {
		if e := s.entryOfTask(m.ID); e != nil {
			last = max(last, e.Order)
		}
	}
	for i := range s.Entries {
		if e := &s.Entries[i]; e.isReady(now) && e.Order < last && !slices.Contains(b.IDs, e.ID) && !s.InCheck(e.ID) {
			e.Passed++
		}
	}
}

// The waits for a file in the user's checkout: they double from the first to the last.
const (
	firstWait = 2 * time.Second
	lastWait  = time.Minute
)

// takeRefusal takes in a landing that was not made: nothing has changed.
func (s *turn) takeRefusal(e *Event) {
	r, b := e.Refusal, s.Batch
	s.Checking = nil // it is merged onto what did not land
	s.dropBatch()
	if r.Moved {
		s.nextCommand(e.At)
		return
	}
	if r.Commits && b != nil && len(b.Steps) > 0 {
		s.takeRefusedCommits(b, r.Why, e.At)
		return
	}
	blocked := r.IDs
	if len(blocked) == 0 && b != nil {
		blocked = taskIDsOf(b.Steps)
	}
	for _, id := range blocked {
		entry := s.entryOfTask(id)
		if entry == nil {
			continue
		}
		if entry.Why != r.Why {
			s.appendNote(NoteWaiting, id, r.Why)
		}
		entry.Until, entry.Why = e.At.Add(min(firstWait<<min(entry.Waits, 10), lastWait)), r.Why
		entry.Waits++
	}
	s.nextCommand(e.At)
}

// issueFollowUp issues what comes after a landing; false when there is nothing to do.
func (s *turn) issueFollowUp(kind CommandKind) bool {
	switch kind {
	case DoForesee:
		return s.askToForesee()
	case DoLook:
		s.openCommand(Command{Kind: DoLook, Why: "has the target changed"})
		return true
	case DoReview:
		list := s.proposedEntries()
		if len(list) > 0 {
			s.openCommand(Command{Kind: DoReview, Why: "pull requests are open", IDs: list, Fresh: s.Rung})
			s.Rung = false
		}
		return len(list) > 0
	}
	return false
}

// askToForesee looks at entries that are not about to be tried anyway.
func (s *turn) askToForesee() bool {
	var list []string
	for i, e := range s.InOrder(time.Time{}) {
		next := i < s.mostOfBatch() && e.isReady(time.Time{})
		if !next && !s.InCheck(e.ID) && e.Problem == nil && e.Status != Proposed && len(list) < MaxForeseen {
			list = append(list, e.ID)
		}
	}
	if len(list) > 0 {
		s.openCommand(Command{Kind: DoForesee, Why: "which others will conflict now", IDs: list, To: s.Tip})
	}
	return len(list) > 0
}

func (s *turn) takeForesight(ev *Event) {
	for _, a := range ev.Ahead {
		e := s.entryOfTask(a.ID)
		if e == nil {
			continue
		}
		if len(a.Paths) > 0 && !slices.Equal(e.Ahead, a.Paths) {
			s.Out.Notes = append(s.Out.Notes, Note{Kind: NoteAhead, ID: e.ID, Paths: a.Paths,
				Text: "will conflict with " + branchName(s.Target) + " in " + firstOfList(a.Paths)})
		}
		e.Ahead = a.Paths
	}
}

// branchName gives a branch as people name it.
func branchName(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }

// shortCommit gives a commit as people name it.
func shortCommit(commit string) string { return commit[:min(len(commit), 10)] }

// firstOfList names the first few of a list.
func firstOfList(list []string) string {
	const most = 5
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// onlyEntry gives the entry of a batch of one; "" for more.
func onlyEntry(steps []Merged) string {
	if len(steps) == 1 {
		return steps[0].ID
	}
	return ""
}
