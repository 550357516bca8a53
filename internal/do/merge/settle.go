package merge

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Sides is a conflict as a person resolves it: the lines of the target and of an entry
// that waits for a person in each place.
type Sides struct {
	Task   string      `json:"task"`
	Title  string      `json:"title"`
	Target string      `json:"target" doc:"The branch."`
	Commit string      `json:"commit" doc:"The task's. It goes back with what settles the conflict."`
	Tip    string      `json:"tip" doc:"The target's commit. It goes back, too."`
	Files  []SidesFile `json:"files" nullable:"false" doc:"In conflict, in the order in which they are settled."`
}

// SidesFile is one file in conflict.
type SidesFile struct {
	Path   string      `json:"path"`
	Why    string      `json:"why" doc:"What is more than lines, such as modify/delete; empty for a conflict of lines."`
	Ours   bool        `json:"ours" doc:"The target has the file."`
	Theirs bool        `json:"theirs" doc:"The task has it."`
	Hunks  []SidesHunk `json:"hunks" nullable:"false" doc:"Empty where only a whole side can be taken."`
}

// SidesHunk is one place where both changed the same lines. Lines have no line feeds.
type SidesHunk struct {
	Before []string `json:"before" nullable:"false" doc:"The lines before it."`
	Base   []string `json:"base" nullable:"false"`
	Ours   []string `json:"ours" nullable:"false" doc:"The target's."`
	Theirs []string `json:"theirs" nullable:"false" doc:"The task's."`
	After  []string `json:"after" nullable:"false" doc:"The lines after it."`
}

// Choice resolves one file: a whole side, or the lines of each of its places.
type Choice struct {
	Take  string     `json:"take,omitempty" enum:"ours,theirs" doc:"The side whose file is taken, or removed where it has none."`
	Hunks [][]string `json:"hunks,omitempty" maxItems:"10000" doc:"The lines of each place, in order; in place of take."`
}

const (
	sidesMost    = 4 << 20 // bytes of all texts of a conflict that are shown
	sidesContext = 5       // lines around a place
)

// unsettled is a merge that git could not finish.
type unsettled struct {
	entry queue.Entry
	tree  string
	files []queue.File
	texts []threeWay
}

// Sides is the conflict of an entry that waits for a person, with the target as it is now.
func (q *Queue) Sides(ctx context.Context, id string) (Sides, error) {
	if q.isShared() { // another machine may be who lands
		if _, err := q.askRemote(ctx, true); err != nil {
			return Sides{}, err
		}
	}
	tip, err := q.Tip(ctx)
	if err != nil {
		return Sides{}, err
	}
	u, err := q.conflicts.mergeUnresolved(ctx, id, tip)
	if err != nil {
		return Sides{}, err
	}
	out := Sides{Task: id, Title: u.entry.Title, Target: branchName(q.ref), Commit: u.entry.Commit, Tip: tip}
	left := sidesMost
	for i := range u.files {
		f, t := &u.files[i], &u.texts[i]
		side := SidesFile{Path: f.Path, Why: f.Structural(), Ours: t.ours.Object != "", Theirs: t.theirs.Object != "",
			Hunks: []SidesHunk{}}
		for j := range f.Hunks {
			side.Hunks = append(side.Hunks, hunkSides(&f.Hunks[j], t.parts[j], t.parts[j+1]))
		}
		size := 0
		for _, h := range side.Hunks {
			size += bytesOfLines(h.Before, h.Base, h.Ours, h.Theirs, h.After)
		}
		if left -= size; left < 0 {
			side.Why, side.Hunks = "it is too long to be shown here", []SidesHunk{}
		}
		out.Files = append(out.Files, side)
	}
	return out, nil
}

func bytesOfLines(texts ...[]string) (n int) {
	for _, t := range texts {
		for _, l := range t {
			n += len(l)
		}
	}
	return n
}

func hunkSides(h *queue.Hunk, before, after []byte) SidesHunk {
	all := func(l []string) []string { return append([]string{}, l...) }
	first, last := splitLines(before), splitLines(after)
	return SidesHunk{
		Before: first[max(0, len(first)-sidesContext):], After: last[:min(len(last), sidesContext)],
		Base: all(h.Base), Ours: all(h.Ours), Theirs: all(h.Theirs),
	}
}

func splitLines(text []byte) []string {
	lines := slices.Collect(strings.Lines(string(text)))
	return lists.Each(lines, func(line string) string { return strings.TrimSuffix(line, "\n") })
}

// mergeUnresolved merges the commit of an entry that waits for a person onto a commit of the target.
func (cs *conflicts) mergeUnresolved(ctx context.Context, id, tip string) (unsettled, error) {
	var u unsettled
	row, _, err := cs.o.Store.Queue(ctx, cs.ref)
	if err != nil {
		return u, err
	}
	e, ok := row.State.Find(id)
	if !ok || e.Status != queue.Parked || e.Problem == nil || e.Problem.Conflict == nil {
		return u, fault.Refuse("%s has no conflict that waits for you", id)
	}
	m, err := cs.o.Repo.MergeTree(ctx, tip, e.Commit)
	if err != nil {
		return u, err
	}
	if m.Clean {
		return u, fault.Refuse("%s no longer conflicts with %s; it can be tried again", id, branchName(cs.ref))
	}
	c, texts, err := cs.readConflict(ctx, m)
	if err != nil {
		return u, err
	}
	if c.More > 0 {
		return u, fault.Refuse("%s conflicts in %d files, too many to settle here", id,
			len(c.Files)+c.More)
	}
	u = unsettled{entry: e, tree: m.Tree}
	for i, f := range c.Files {
		t := texts[i]
		if t.ours.Object == "" && t.theirs.Object == "" && t.base.Object == "" {
			continue // git's remark about a file that it could merge
		}
		if slices.ContainsFunc(f.Hunks, func(h queue.Hunk) bool { return !isLegible(h.Base, h.Ours, h.Theirs) }) {
			f.Binary, f.Hunks = true, nil
		}
		u.files, u.texts = append(u.files, f), append(u.texts, t)
	}
	return u, nil
}

// isLegible reports whether the lines go through JSON as they are.
func isLegible(texts ...[]string) bool {
	return !slices.ContainsFunc(texts, func(t []string) bool {
		return slices.ContainsFunc(t, func(l string) bool { return !utf8.ValidString(l) })
	})
}

// Settle replaces an entry's commit by a merge of it with the target, in which each file
// in conflict is what a person chose. It is queued again, and verified like any other.
// Commit and tip are those that the person saw: later commits of the target are merged
// when it is the entry's turn.
func (q *Queue) Settle(ctx context.Context, id, commit, tip string, choices []Choice) error {
	stale := fault.Refuse("the conflict of %s has changed since this page showed it; nothing was changed", id).
		Hint("Reload the page")
	kept, err := q.o.Repo.Find(ctx, queuedTaskRef(id))
	if err != nil {
		return err
	}
	if past, err := q.o.Repo.IsAncestor(ctx, tip, q.targetRef()); err != nil || !past {
		return cmp.Or[error](err, stale)
	}
	u, err := q.conflicts.mergeUnresolved(ctx, id, tip)
	if err != nil {
		return err
	}
	asked, err := q.asksToSettle(ctx, id)
	if err != nil {
		return err
	}
	if asked || u.entry.Commit != commit || len(choices) != len(u.files) {
		return stale
	}
	merged, err := q.conflicts.settledCommit(ctx, u, tip, choices)
	if err != nil {
		return err
	}
	done, err := q.keepObjects(ctx, tip, merged)
	defer done()
	if err != nil {
		return err
	}
	if q.o.Repo.UpdateRef(ctx, queuedTaskRef(id), merged, kept, "pawl: settled by a person") != nil {
		return stale // another page was first
	}
	return q.Ask(ctx, queue.Ask{Wish: queue.WishSettle, ID: id, From: commit, Commit: merged})
}

// asksToSettle reports whether the queue has not yet taken in how a person resolved an entry.
func (q *Queue) asksToSettle(ctx context.Context, id string) (bool, error) {
	asks, err := q.o.Store.QueueAsks(ctx, q.ref, asksMax)
	return slices.ContainsFunc(asks, func(a store.QueueAsk) bool {
		ask := a.Event.Ask
		return ask != nil && ask.Wish == queue.WishSettle && ask.ID == id
	}), err
}

// settledCommit is a merge with what a person chose for each file in conflict.
func (cs *conflicts) settledCommit(ctx context.Context, u unsettled, tip string, choices []Choice) (string, error) {
	var put []git.Entry
	for i, c := range choices {
		f, t := &u.files[i], &u.texts[i]
		switch {
		case c.Take == "ours":
			put = append(put, treeEntryAt(f.Path, t.ours))
		case c.Take == "theirs":
			put = append(put, treeEntryAt(f.Path, t.theirs))
		case len(f.Hunks) == 0 || len(c.Hunks) != len(f.Hunks):
			return "", fault.Refuse("cannot settle %s: %d places are settled, and it has %d", f.Path,
				len(c.Hunks), len(f.Hunks))
		default:
			object, err := cs.shadow.Store(ctx, bytes.NewReader(t.fillHunks(c.Hunks)))
			if err != nil {
				return "", err
			}
			put = append(put, git.Entry{Path: f.Path, Mode: t.ours.Mode, Object: object})
		}
	}
	tree, err := cs.rewriteTree(ctx, u.tree, put)
	if err != nil {
		return "", err
	}
	return cs.shadow.CommitTree(ctx, cs.shadow.Who, tree, "Settle the conflict of "+u.entry.Subject(),
		u.entry.Commit, tip)
}
