package merge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/git"
)

// Trial is what came of each gate on the target as it is.
type Trial struct {
	Commit string
	// Cached is when the gates ran, where a stored verdict was taken; zero for now.
	Cached time.Time
	// Setup says why a clone cannot be set up; "" where it can. No gate ran then.
	Setup string
	Gates []loop.Gate
	// Why says of each gate, by its name, why it is red.
	Why map[string]string
	// Cold is true when the gates found the caches of the build tools empty.
	Cold bool
}

// Green is true if tasks can start from the target.
func (t Trial) Green() bool {
	return t.Setup == "" && !slices.ContainsFunc(t.Gates, gate.IsRed)
}

// Try runs each gate on the target, whatever is red before it, as the queue would: in a
// clone that was set up. A green verdict is stored, and taken again; a red one is never:
// what made it red may be repaired outside of the repository. Where the target has no file
// at the path own, it is tried with the one of the work tree: that will be committed next.
func (q *Queue) Try(ctx context.Context, own string) (Trial, error) {
	t := Trial{Why: map[string]string{}}
	var err error
	if t.Commit, err = q.o.Repo.Find(ctx, q.ref); err != nil {
		return t, err
	}
	if t.Commit == "" {
		return t, fmt.Errorf("cannot try the gates: %s has no commit yet", q.Branch())
	}
	tree, err := q.checks.withFile(ctx, &t, own)
	if err != nil {
		return t, err
	}
	key := recordKey(tree, Rules{Environment: q.o.Environment}, q.o.Gates, false)
	if r, ok, err := q.o.Store.GateRecord(ctx, key); err == nil && ok && r.Verdict.Green && !q.o.Again {
		t.Cached = r.At
		return t, json.Unmarshal(r.Gates, &t.Gates)
	}
	specs := slices.Clone(q.o.Gates)
	for i := range specs {
		specs[i].Required = false // the next one runs, too
	}
	rep, err := q.checks.runGates(ctx, t.Commit, tree, specs, false)
	switch {
	case err != nil:
		return t, err
	case rep.Stopped:
		return t, fmt.Errorf("cannot try the gates: they were interrupted")
	case rep.Failure != nil: // only a set-up is required here
		t.Setup = rep.Summary
		return t, nil
	}
	t.Gates, t.Cold = rep.Gates, rep.Cold
	for i := range t.Gates {
		t.Gates[i].Required = q.o.Gates[i].Required
		t.Why[t.Gates[i].Name] = reasonGateIsRed(rep.Warnings, t.Gates[i].Name)
	}
	if !t.Green() {
		return t, nil
	}
	return t, q.checks.putRecord(ctx, key, queue.Verdict{Tree: tree, Green: true, Summary: rep.Summary}, t.Gates)
}

// withFile is the tree of a trial. It has the file at path, which t.Commit need not have.
func (k *checks) withFile(ctx context.Context, t *Trial, path string) (string, error) {
	tree, err := k.o.Repo.TreeOf(ctx, t.Commit)
	if err != nil || path == "" {
		return tree, err
	}
	file, done, err := k.scratchIndex()
	if err != nil {
		return "", err
	}
	defer done()
	x := k.shadow.Over(k.o.Repo.Top).Index(file, nil)
	if err := x.ReadTree(ctx, tree); err != nil {
		return "", err
	}
	names, err := x.Names(ctx)
	if err != nil || slices.Contains(names, path) {
		return tree, err
	}
	if err := x.Add(ctx, []string{path}); err != nil {
		return "", err
	}
	if tree, err = x.WriteTree(ctx); err == nil {
		t.Commit, err = k.shadow.CommitTree(ctx, k.shadow.Who, tree, "pawl: the target with "+path, t.Commit)
	}
	return tree, err
}

// reasonGateIsRed finds the report's reason for an optional gate; "" for one that passed.
func reasonGateIsRed(warnings []string, name string) string {
	for _, w := range warnings {
		if why, is := strings.CutPrefix(w, "optional gate "+name+": "); is {
			return why
		}
	}
	return ""
}

// foreseeConflicts merges entries with the target, to see which will conflict, unless a
// rule resolves that.
func (cs *conflicts) foreseeConflicts(ctx context.Context, s *queue.State, c queue.Command) (queue.Event, error) {
	ev := queue.Event{Kind: queue.Foreseen}
	for _, id := range c.IDs {
		e, ok := s.Find(id)
		if !ok {
			continue
		}
		m, err := cs.tryMerge(ctx, c.To, &e)
		if err != nil { // one that can never be merged is reported when its turn comes
			_, err = cs.reasonUnmergeable(ctx, &e, err)
		}
		if err != nil {
			return ev, err
		}
		ahead := queue.Ahead{ID: id}
		if m.conflict != nil {
			for _, f := range m.conflict.Files {
				ahead.Paths = append(ahead.Paths, f.Path)
			}
		}
		ev.Ahead = append(ev.Ahead, ahead)
	}
	return ev, nil
}

// sortedChanges are the paths that differ between two commits.
func (t *target) sortedChanges(ctx context.Context, from, to string) ([]string, error) {
	changes, err := t.o.Repo.Changes(ctx, from, to)
	list := lists.Each(changes, func(c git.Change) string { return c.Path })
	slices.Sort(list)
	return list, err
}
