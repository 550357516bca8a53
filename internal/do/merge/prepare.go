package merge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/git"
)

// prepareBatch merges the entries of a batch, one onto the other, from where the
// target is now.
func (q *Queue) prepareBatch(ctx context.Context, s *queue.State, c queue.Command) (queue.Event, error) {
	facts, warnings, err := q.readFacts(ctx, s.Tip, true)
	if err != nil {
		return queue.Event{}, err
	}
	if c.Commit != "" && facts.Theirs != "" {
		return q.prepareTheirs(ctx, facts, warnings, c.Batch)
	}
	out := &queue.Prepare{Facts: facts, Head: facts.Tip, Result: facts.Tree}
	e := queue.Event{Kind: queue.Prepared, Prepared: out, Warnings: warnings}
	diverged := facts.Diverged != "" && facts.Theirs != s.Ignored
	if facts.Tip == "" || !facts.Past || diverged {
		if !facts.Past {
			out.Lost, err = q.repairLandings(ctx, facts.Tip, s.Entries)
		}
		return e, err
	}
	at := place{tip: facts.Tip, head: facts.Tip, tree: facts.Tree}
	if c.From != "" { // what the forge checks now
		at.tip, at.head = c.From, c.From
		if at.tree, err = q.o.Repo.TreeOf(ctx, c.From); err != nil {
			return e, err
		}
	}
	onto := at.tip
	var landed []queue.Entry
	for _, id := range c.IDs {
		entry, ok := s.Find(id)
		if !ok {
			continue
		}
		m, next, err := q.mergeEntry(ctx, at, &entry, c.Batch)
		if err != nil {
			return e, err
		}
		if c.From != "" && m.Conflict != nil { // nothing of that is on the target yet
			m.Conflict, m.Later = nil, true
		}
		if next != at {
			landed = append(landed, entry)
		}
		at = next
		out.Steps = append(out.Steps, m)
	}
	out.Head, out.Result = at.head, at.tree
	if len(landed) > 1 {
		message := queue.BatchMessage(landed, c.Batch)
		out.Head, err = q.shadow.CommitTree(ctx, q.shadow.Who, at.tree, message, onto, at.head)
	}
	if err == nil && out.Head != onto {
		err = q.pinCommits(ctx, onto, out.Head)
	}
	return e, err
}

// prepareTheirs merges what the remote has with the target.
func (q *Queue) prepareTheirs(ctx context.Context, f queue.Facts, warnings []string, batch int64) (queue.Event, error) {
	out := &queue.Prepare{Facts: f, Head: f.Tip, Result: f.Tree}
	e := queue.Event{Kind: queue.Prepared, Prepared: out, Warnings: warnings}
	merged, err := q.conflicts.mergeTrees(ctx, f.Tip, &queue.Entry{ID: q.remote.name, Commit: f.Theirs})
	switch {
	case err != nil:
		return e, err
	case merged.conflict != nil:
		out.Apart = true
		out.Diverged += "; they conflict in " + strings.Join(merged.conflict.Paths(), ", ")
		return e, nil
	}
	out.Diverged = ""
	subject := fmt.Sprintf("Merge what %s has on %s\n\nPawl-Batch: %d\n",
		q.remote.name, branchName(q.remote.ref), batch)
	if out.Head, err = q.shadow.CommitTree(ctx, q.shadow.Who, merged.tree, subject, f.Tip, f.Theirs); err == nil {
		out.Result, err = merged.tree, q.pinCommits(ctx, f.Tip, out.Head)
	}
	return e, err
}

// pinCommits keeps what is to land until it has, whatever gc the user runs. The command to land it
// will be on the disk before it is carried out.
func (t *target) pinCommits(ctx context.Context, tip, head string) error {
	done, err := t.keepObjects(ctx, tip, head)
	defer done()
	if err == nil {
		err = t.o.Repo.SetRefs(ctx, t.pinnedRef(), head)
	}
	return err
}

// keepObjects stores a commit once more, with all that the tip does not have, so that it survives a power
// loss, and any gc until done is called: a ref is to lead to it then.
func (t *target) keepObjects(ctx context.Context, tip, head string) (done func(), err error) {
	if done, err = t.o.Repo.TakeHeld(ctx, t.o.Repo, t.o.Dir, tip, head); err == nil {
		err = t.o.Repo.SyncObjects(ctx, tip, head)
	}
	return done, err
}

// pinnedRef is the ref of what is to land next.
func (t *target) pinnedRef() string { return "refs/pawl/landing/" + branchName(t.ref) }

// place is how far a batch has come.
type place struct{ tip, head, tree string }

// mergeEntry merges one entry onto what is there, and says what is there then.
func (q *Queue) mergeEntry(ctx context.Context, at place, e *queue.Entry, batch int64) (queue.Merged, place, error) {
	m := queue.Merged{ID: e.ID}
	if e.Revert != "" {
		if on, err := q.o.Repo.IsAncestor(ctx, e.Base, at.tip); err != nil || !on {
			m.Lost = fmt.Sprintf("what it landed, %.10s, is no longer on %s: pawl queue drop %s", e.Base,
				branchName(q.ref), e.ID)
			return m, at, err
		}
	}
	merged, err := q.conflicts.mergeTrees(ctx, at.head, e)
	if err == nil {
		m.Empty, err = q.hasLanded(ctx, at.tip, e)
	}
	switch {
	case m.Empty:
		m.Commit = at.head
		return m, at, nil
	case err != nil:
		m.Lost, err = q.conflicts.reasonUnmergeable(ctx, e, err)
		return m, at, err
	case merged.conflict != nil:
		return q.notMerged(ctx, at, e, m, merged.conflict)
	}
	m.Settled, m.Regenerated, m.Commands = merged.settled, merged.regenerated, merged.commands
	changes, err := q.o.Repo.Changes(ctx, at.tree, merged.tree)
	if err != nil {
		return m, at, err
	}
	m.Many = deliver.ManyNew(git.Added(changes))
	tree, kept, err := q.keepProtected(ctx, merged.tree, changes, e.Allow)
	if err != nil {
		return m, at, err
	}
	m.Kept = kept
	if tree == at.tree {
		m.Empty, m.Commit = true, at.head
		return m, at, nil
	}
	message, err := q.landingMessage(ctx, e, batch)
	if err == nil {
		m.Commit, err = q.shadow.CommitTree(ctx, q.shadow.Who, tree, message, at.head, e.Commit)
	}
	if err != nil {
		return m, at, err
	}
	return m, place{tip: at.tip, head: m.Commit, tree: tree}, nil
}

// maxSince is how many landings since the work of an entry began are looked at.
const maxSince = 1000

// hasLanded is true when the run of an entry has landed already. A database that machines share
// may have lost that, and the work was done again.
func (t *target) hasLanded(ctx context.Context, tip string, e *queue.Entry) (bool, error) {
	if t.o.Travel == "" || e.Run == "" || e.Base == "" {
		return false, nil
	}
	landed, err := t.o.Repo.Landings(ctx, e.Base, tip, nil, maxSince)
	return slices.ContainsFunc(landed, func(l git.Landing) bool {
		return slices.Contains(strings.Split(l.Message, "\n"), "Pawl-Run: "+e.Run)
	}), err
}

// reasonUnmergeable: a merge that failed can never be made; other errors are returned.
func (cs *conflicts) reasonUnmergeable(ctx context.Context, e *queue.Entry, err error) (string, error) {
	gone := "its commit " + e.Commit + " is no longer in the repository"
	if cs.o.Store.BoardName() != "" {
		gone = fmt.Sprintf("its commit %s is not in the repository on %s, which lands", e.Commit, cs.o.Owner.Host)
	}
	if errors.Is(err, errMissing) {
		return gone, nil
	}
	var failed *git.Error
	if !errors.As(err, &failed) {
		return "", err
	}
	if strings.Contains(failed.Stderr, "unrelated histories") {
		return "it has no commit in common with the target", nil
	}
	if cs.o.Travel != "" { // it is there, or the remote could not be asked
		return "", err
	}
	if commit, ferr := cs.o.Repo.Find(ctx, e.Commit); ferr == nil && commit == "" {
		return gone, nil
	}
	return "", err
}

// notMerged decides whether a conflict is with the target or with an entry before it.
func (q *Queue) notMerged(ctx context.Context, at place, e *queue.Entry, m queue.Merged, c *queue.Conflict,
) (queue.Merged, place, error) {
	if at.head != at.tip {
		alone, err := q.conflicts.mergeTrees(ctx, at.tip, e)
		if err != nil {
			return m, at, err
		}
		if alone.conflict == nil {
			m.Later = true
			return m, at, nil
		}
		c = alone.conflict
	}
	m.Conflict = c
	return m, at, nil
}

// keepProtected puts protected files of a merged tree back to what is there
// before the merge, by its changes, but for those that the entry may change.
func (q *Queue) keepProtected(ctx context.Context, merged string, changes []git.Change, allow []string,
) (tree string, kept []string, err error) {
	now, err := q.rulesNow(ctx)
	if err != nil {
		return "", nil, err
	}
	rules := now.Protect
	rules.Allow = slices.Concat(rules.Allow, allow)
	list := lists.Each(changes, func(c git.Change) gate.Change {
		return gate.Change{Path: c.Path, Status: c.Status, Link: c.IsLink()}
	})
	kept = append(kept, lists.Each(gate.Tampered(list, rules), func(v gate.Violation) string { return v.Path })...)
	if len(kept) == 0 {
		return merged, nil, nil
	}
	var back []git.Entry
	for _, c := range changes {
		if slices.Contains(kept, c.Path) {
			back = append(back, git.Entry{Path: c.Path, Mode: c.OldMode, Object: c.OldObject})
		}
	}
	tree, err = q.rewriteTree(ctx, merged, back)
	return tree, kept, err
}

// rewriteTree is a tree with some paths replaced; an entry without an object takes
// its path away.
func (t *target) rewriteTree(ctx context.Context, tree string, entries []git.Entry) (string, error) {
	file, done, err := t.scratchIndex()
	if err != nil {
		return "", err
	}
	defer done()
	return t.shadow.Index(file, nil).TreeWith(ctx, tree, entries)
}

// landingMessage writes the message for the merge of an entry.
func (t *target) landingMessage(ctx context.Context, e *queue.Entry, batch int64) (message string, err error) {
	if message = e.Subject(); e.Worded {
		_, message, err = t.o.Repo.Author(ctx, e.Commit)
	}
	return git.AddTrailers(message, queue.Trailers([]queue.Entry{*e}, batch)), err
}
