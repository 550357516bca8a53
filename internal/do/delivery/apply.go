package delivery

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
)

// This file is about bringing work into the person's files because they ask for it.

// Applied is the result of that, or with check what it would be. Kind is [deliver.Deliver], or there is
// a reason why nothing is changed.
type Applied struct {
	Delivered
	Conflicts []Conflict // that a person has to settle
	Changes   []git.Change
	Merged    bool // with what the person changed since the gates judged the work
}

// Apply puts the work together with what the person did since, and brings it into their
// files. With check it only finds out what it would do.
func (w *Workspace) Apply(ctx context.Context, check bool) (Applied, error) {
	if !check && !w.kept { // an agent may have been cut off
		w.ProtectUncommitted(ctx, w.o.Tell)
	}
	m, err := w.mergeSides(ctx, deliver.Facts{Requested: true})
	if err != nil {
		return Applied{}, err
	}
	if m.u, err = (apartFiles{w}).withApart(ctx, m.u); err != nil {
		return Applied{}, err
	}
	out, err := w.foreseeDelivery(ctx, m)
	switch {
	case err == nil && len(out.Conflicts) > 0: // a person can choose at once
		return out, w.storeConflicts(out.Conflicts)
	case err != nil || check:
		return out, err
	case out.Kind != deliver.Deliver:
		return out, nil
	}
	if !w.kept && w.agreed.Back > 0 { // what was taken back is wanted again
		if err := w.rewindFiles(ctx, m.u.N); err != nil {
			return out, err
		}
	}
	if m.came {
		if err := w.takeMerged(ctx, m.u.N, m); err != nil {
			return out, err
		}
	}
	out.Delivered, err = w.Deliver(ctx, Verdict{Iteration: -1, Requested: true})
	return out, err
}

// foreseeDelivery finds out what delivering comes to.
func (w *Workspace) foreseeDelivery(ctx context.Context, m merged) (out Applied, err error) {
	u := m.u
	if u.Changes = m.changesForPerson(); m.came { // what the person ignores now is theirs
		ignored, err := w.o.Person.Ignored(ctx, w.o.ID)
		if err != nil {
			return out, err
		}
		u.Changes = slices.DeleteFunc(u.Changes, func(ch git.Change) bool {
			return ch.OldObject == "" && ignored(ch.Path)
		})
	}
	out.Conflicts, out.Changes, out.Only, out.Merged = m.conflicts, u.allChanges(), u.Only, m.came
	from := w.agreed.Head
	if m.came {
		from, u.Head.Commit = m.now.Head.Commit, m.head
		if u.Commits, err = w.o.Person.Store.Count(ctx, from, m.head); err != nil {
			return out, err
		}
	}
	out.Commits, out.Files = u.Commits, len(out.Changes)
	if len(m.conflicts) > 0 {
		out.Decision = deliver.Decision{Kind: deliver.Wait, Why: "you and the agent both changed the same lines",
			Paths: lists.Each(m.conflicts, func(c Conflict) string { return c.Path })}
		return out, nil
	}
	f, err := w.gatherFacts(ctx, Verdict{Requested: true}, u)
	if err != nil {
		return out, err
	}
	if m.came {
		f.Place = deliver.Same
	}
	if f.Commits > 0 {
		if f.Staged, err = w.stagedOver(ctx, from, u); err != nil {
			return out, err
		}
	}
	out.Decision = deliver.Decide(f)
	return out, nil
}

// stagedOver are the paths for which the person staged something else than the commits have.
func (w *Workspace) stagedOver(ctx context.Context, from string, u Undelivered) ([]string, error) {
	none, err := w.o.Person.Store.EmptyTree(ctx)
	if err != nil {
		return nil, err
	}
	changes, err := w.tree.TreeChanges(ctx, cmp.Or(from, none), u.Head.Commit)
	if err != nil {
		return nil, err
	}
	index, err := w.o.Person.Repo.IndexEntries(ctx)
	if err != nil {
		return nil, err
	}
	_, over, err := carrier{w}.mergeStaged(ctx, index, changes, entriesOf(u.allChanges()))
	return over, err
}

// changesForPerson are the changes that bring what was put together into the person's files.
func (m merged) changesForPerson() (changes []git.Change) {
	if !m.came {
		return m.u.Changes
	}
	now, then := map[string]Side{}, map[string]Side{}
	for _, ch := range m.u.Changes {
		now[ch.Path], then[ch.Path] = sideBefore(ch), sideAfter(ch)
	}
	for _, ch := range m.mine {
		now[ch.Path] = sideAfter(ch)
		if _, isAgents := then[ch.Path]; !isAgents {
			then[ch.Path] = sideBefore(ch)
		}
	}
	for _, ch := range m.todo {
		then[ch.Path] = sideAfter(ch)
	}
	for _, path := range slices.Sorted(maps.Keys(then)) {
		if a, b := now[path], then[path]; a != b {
			changes = append(changes, git.Change{Path: path, OldMode: a.Mode, OldObject: a.Object, NewMode: b.Mode,
				NewObject: b.Object})
		}
	}
	return changes
}
