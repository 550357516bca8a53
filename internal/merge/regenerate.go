package merge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/gate"
	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/queue"
)

// Regeneration makes files that match a pattern (see [gate.Match]) anew by a
// command for sh -c, where they conflict.
type Regeneration struct {
	Files   []string
	Command string
	Timeout time.Duration // 0 is that of gates
}

func (r *Regeneration) has(path string) bool {
	return slices.ContainsFunc(r.Files, func(p string) bool { return gate.Match(p, path) })
}

// maxRemade is how many merges with files that were made anew are remembered.
const maxRemade = 2000

// regenerable names the commands of files in conflict that have one.
func (q *Queue) regenerable(c *queue.Conflict) {
	for i := range c.Files {
		f := &c.Files[i]
		n := slices.IndexFunc(q.o.Regenerate, func(r Regeneration) bool { return r.has(f.Path) })
		if n >= 0 && f.Regenerable() {
			f.Regenerate = q.o.Regenerate[n].Command
		}
	}
}

// regenerate completes a merge whose files in conflict are the target's for
// now: their commands make them anew from there, which keeps what is pinned.
// Where that changes nothing, they begin with the entry's as well: what comes
// out must be the same, or a side would be taken unseen.
func (q *Queue) regenerate(ctx context.Context, onto string, e *queue.Entry, m mergedTree) (mergedTree, error) {
	key := onto + e.Commit
	q.mu.Lock()
	known, ok := q.remade[key]
	q.mu.Unlock()
	if ok {
		m.tree = known
		return m, nil
	}
	tree, why, err := q.remake(ctx, onto, e, m.tree, &m)
	if err == nil && why == "" {
		why, err = q.tookSide(ctx, onto, e, tree, &m)
	}
	if err != nil {
		return m, err
	}
	if why != "" {
		m.pending.Regenerating = why
		for i := range m.pending.Files {
			m.pending.Files[i].Regenerate = ""
		}
		return mergedTree{conflict: m.pending}, nil
	}
	m.tree = tree
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.remade) >= maxRemade {
		clear(q.remade)
	}
	q.remade[key] = tree
	return m, nil
}

// tookSide says which file is what the target has, although from the entry's
// the commands make another one.
func (q *Queue) tookSide(ctx context.Context, onto string, e *queue.Entry, tree string, m *mergedTree) (string, error) {
	changed, err := q.changed(ctx, m.tree, tree)
	if err != nil || !slices.ContainsFunc(m.regenerated, func(p string) bool { return !changed[p] }) {
		return "", err
	}
	from, err := q.rewrite(ctx, m.tree, m.theirs)
	if err != nil {
		return "", err
	}
	other, why, err := q.remake(ctx, onto, e, from, m)
	if err != nil || why != "" {
		return why, err
	}
	differs, err := q.changed(ctx, tree, other)
	if err != nil {
		return "", err
	}
	for _, p := range m.regenerated {
		if !changed[p] && differs[p] {
			return fmt.Sprintf("%s was not made anew: %s leaves it as %s has it, and what the change did to it would be lost",
				p, strings.Join(m.commands, ", "), short(q.target)), nil
		}
	}
	return "", nil
}

// changed are the paths in which two trees differ.
func (q *Queue) changed(ctx context.Context, from, to string) (map[string]bool, error) {
	changes, err := q.o.Repo.Changes(ctx, from, to)
	set := make(map[string]bool, len(changes))
	for _, c := range changes {
		set[c.Path] = true
	}
	return set, err
}

// remake runs the commands of a merge on a tree in a folder of its own, and
// returns it with what they made of all files that they are for; or why not.
func (q *Queue) remake(ctx context.Context, onto string, e *queue.Entry, tree string, m *mergedTree,
) (made, why string, err error) {
	commit, err := q.shadow.CommitTree(ctx, q.who, tree, "pawl: make files of "+e.ID+" anew", onto, e.Commit)
	if err != nil {
		return "", "", err
	}
	ws, err := q.o.Integration(ctx, commit)
	if err != nil {
		return "", "", err
	}
	defer ws.Done(context.WithoutCancel(ctx))
	if err := holds(ctx, ws, tree); err != nil {
		return "", "", err
	}
	var rules []Regeneration
	var specs []gate.Spec
	for _, r := range q.o.Regenerate {
		if slices.Contains(m.commands, r.Command) {
			rules = append(rules, r)
			if slices.ContainsFunc(specs, func(s gate.Spec) bool { return s.Command == r.Command }) {
				continue
			}
			specs = append(specs, gate.Spec{Command: r.Command, Timeout: r.Timeout, Required: true, AllowEmpty: true,
				Retries: gate.Retries})
		}
	}
	rep, err := q.runCommands(ctx, ws, specs, nil)
	switch {
	case err != nil:
		return "", "", err
	case rep.Stopped:
		return "", "", fmt.Errorf("cannot make files of %s anew: the commands were cut off", e.ID)
	case !rep.Passed():
		return "", fmt.Sprintf("%s not made anew: %s", were(m.regenerated), rep.Summary), nil
	}
	if made, err = q.taken(ctx, ws.Dir, tree, rules); err != nil {
		return "", "", err
	}
	why, err = q.flaw(ctx, tree, made, m)
	return made, why, err
}

// taken is a tree with what a folder has of the files that rules are for.
func (q *Queue) taken(ctx context.Context, dir, tree string, rules []Regeneration) (string, error) {
	file, done, err := q.scratch()
	if err != nil {
		return "", err
	}
	defer done()
	x := q.shadow.Over(dir).Index(file, nil)
	if err := x.ReadTree(ctx, tree); err != nil {
		return "", err
	}
	scan, err := x.Scan(ctx)
	if err != nil {
		return "", err
	}
	paths := slices.DeleteFunc(slices.Concat(scan.Changed, scan.Gone, scan.Untracked), func(p string) bool {
		return !slices.ContainsFunc(rules, func(r Regeneration) bool { return r.has(p) })
	})
	if err := x.Add(ctx, paths); err != nil {
		return "", err
	}
	return x.WriteTree(ctx)
}

// flaw says which file that a command was to make is no file afterwards.
func (q *Queue) flaw(ctx context.Context, before, after string, m *mergedTree) (why string, err error) {
	changes, err := q.o.Repo.Changes(ctx, before, after)
	for _, c := range changes {
		file := c.NewMode == git.ModeFile || c.NewMode == git.ModeExec
		if !file && slices.Contains(m.regenerated, c.Path) {
			return fmt.Sprintf("%s was not made anew: %s left no file there", c.Path, strings.Join(m.commands, ", ")), nil
		}
	}
	return "", err
}

// were is a list of at most five paths with its verb.
func were(paths []string) string {
	switch n := len(paths); {
	case n == 1:
		return paths[0] + " was"
	case n > 5:
		return fmt.Sprintf("%s and %d more were", strings.Join(paths[:5], ", "), n-5)
	}
	return strings.Join(paths, ", ") + " were"
}
