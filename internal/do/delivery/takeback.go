package delivery

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/git/checkout"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Step is what one iteration changed: the trees of all files before and after it.
type Step struct{ Before, After string }

// TakenBack is what came of taking delivered work back.
type TakenBack struct {
	workspace.Carried
	// BranchTo is where the branch was moved; "" is that it was not. WhyNot says why it
	// stayed where it is; "" is that there was nothing to move.
	BranchTo string
	WhyNot   string
	// Persons are the paths that are as the person had them before a delivery: what they
	// changed there since the work began stays.
	Persons []string
}

// BackOptions say what is taken back.
type BackOptions struct {
	Key        string      // by which the person's files were looked at
	Steps      []Step      // oldest first
	Earlier    []Step      // what the agents did before, and is not taken back
	Deliveries []Delivered // of these iterations, oldest first
	All        []Delivered // of the run
	Hold       string      // the file by which pawls keep out of each other's way
	Dry        bool        // only say what would be done
}

// TakeBack undoes steps of agents in the person's files: each file that is still as one of
// the steps left it (later ones may never have been delivered, or are taken back already)
// becomes what the first of them began with, and one that was merged with changes of the
// person what it was before that delivery. Any other is the person's: it stays, and is
// named. The branch goes back over the deliveries of these iterations, the newest first,
// if its tip is what one of them delivered.
func TakeBack(ctx context.Context, person *workspace.Checkout, o BackOptions) (TakenBack, error) {
	var back TakenBack
	lock, err := files.Lock(ctx, o.Hold)
	if err != nil {
		return back, err
	}
	defer lock.Close()
	changes, broken, persons, err := undoSteps(ctx, person, o)
	if err != nil {
		return back, err
	}
	moved, why, err := branchBack(ctx, person, o.Deliveries)
	if err != nil {
		return back, err
	}
	back.WhyNot = why
	if o.Dry {
		back.Carried = predictCarried(person, changes)
	} else if back.Carried, err = person.Carry(ctx, o.Key, changes); err != nil {
		return back, err
	}
	back.Left = append(back.Left, broken...)
	back.Persons = slices.DeleteFunc(persons, func(path string) bool {
		return slices.ContainsFunc(back.Left, func(c workspace.Conflict) bool { return c.Path == path })
	})
	if len(moved) == 0 || o.Dry {
		return back, nil
	}
	to, newest := moved[0].From, moved[len(moved)-1]
	move, err := checkout.BeginIndexMove(ctx, person.Repo, newest.To, to, lock)
	if err != nil {
		back.WhyNot = err.Error()
		return back, nil // the files are back, and the reason is reported
	}
	defer move.End()
	staged, err := move.StagedOver(ctx, stagedAfter(o.All))
	if err != nil || len(staged) > 0 {
		back.WhyNot = "something is staged for " + cmp.Or(firstOrEmpty(staged), "it")
		return back, err
	}
	name := cmp.Or(newest.Branch, "HEAD")
	if to == "" {
		err = person.Repo.DeleteRef(ctx, name, newest.To, "pawl: roll back")
	} else {
		err = person.Repo.UpdateRef(ctx, name, to, newest.To, "pawl: roll back")
	}
	if err != nil {
		back.WhyNot = err.Error()
		return back, nil
	}
	back.BranchTo = cmp.Or(to, "before its first commit")
	again := slices.Collect(maps.Values(findStaged(o.Deliveries)))
	return back, move.MoveIndex(ctx, again...)
}

// predictCarried returns what carrying changes out would do.
func predictCarried(person *workspace.Checkout, changes []git.Change) (b workspace.Carried) {
	differs := lists.Set(person.Differing(changes))
	for _, ch := range changes {
		switch {
		case differs[ch.Path]:
			b.Left = append(b.Left, workspace.Conflict{Path: ch.Path, Why: "it was changed in the meantime"})
		case person.Has(ch.Path, ch.NewMode, ch.NewObject):
		case ch.NewObject == "":
			b.Removed = append(b.Removed, ch.Path)
		default:
			b.Written = append(b.Written, ch.Path)
		}
	}
	return b
}

func firstOrEmpty(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// undoSteps are the changes that take steps back, the paths that somebody else changed
// between two of them, and those of which changes are what the person had.
func undoSteps(ctx context.Context, person *workspace.Checkout, o BackOptions,
) (changes []git.Change, broken []workspace.Conflict, persons []string, err error) {
	type history struct {
		first  Side   // what the first step began with
		left   []Side // what each left
		broken bool   // one began with neither
	}
	paths := map[string]*history{}
	add := func(list []git.Change) {
		for _, ch := range list {
			p := paths[ch.Path]
			if p == nil {
				p = &history{first: sideBefore(ch)}
				paths[ch.Path] = p
			}
			before := sideBefore(ch)
			if before != p.first && !slices.Contains(p.left, before) {
				p.broken = true
			}
			p.left = append(p.left, sideAfter(ch))
		}
	}
	for _, s := range o.Steps {
		list, err := person.TreeChanges(ctx, s.Before, s.After)
		if err != nil {
			return nil, nil, nil, err
		}
		add(list)
	}
	for _, d := range o.Deliveries {
		add(lists.Each(d.Apart, changeOfPiece))
	}
	mine, err := findOverwritten(ctx, person, o.Deliveries, slices.Concat(o.Earlier, o.Steps))
	if err != nil {
		return nil, nil, nil, err
	}
	for path := range mine { // what only the person had, and a delivery took away
		if paths[path] == nil {
			paths[path] = &history{first: sideAfter(mine[path]), left: []Side{sideAfter(mine[path])}}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		p := paths[path]
		is := func(s Side) bool { return person.Has(path, s.Mode, s.Object) }
		now := p.left[len(p.left)-1]
		if i := slices.IndexFunc(p.left, is); i >= 0 {
			now = p.left[i]
		}
		over, isOver := mine[path]
		info, err := os.Lstat(filepath.Join(person.Repo.Top, filepath.FromSlash(path)))
		isFolder := err == nil && info.IsDir() && over.NewObject == "" // what is in it is taken back, too
		isAsDelivered := isFolder || is(sideAfter(over))
		switch {
		case isOver && isAsDelivered:
			changes, persons = append(changes, reverseChange(over)), append(persons, path)
		case now == p.first || is(p.first):
		case p.broken:
			broken = append(broken, workspace.Conflict{Path: path, Why: "you changed it between two iterations"})
		default:
			changes = append(changes, git.Change{Path: path, OldMode: now.Mode, OldObject: now.Object,
				NewMode: p.first.Mode, NewObject: p.first.Object})
		}
	}
	return changes, broken, persons, nil
}

// findOverwritten finds, by path, what the newest of deliveries made of files of which the
// person had a version of their own then: one that no step began with or left.
func findOverwritten(ctx context.Context, person *workspace.Checkout, deliveries []Delivered, steps []Step,
) (map[string]git.Change, error) {
	over := map[string]git.Change{}
	for _, d := range deliveries {
		if d.Before == "" {
			continue // it is a rollback that is undone
		}
		list, err := person.TreeChanges(ctx, d.Before, d.After)
		if err != nil {
			return nil, err
		}
		for _, ch := range list {
			if last, ok := over[ch.Path]; ok && sideAfter(last) == sideBefore(ch) {
				ch.OldMode, ch.OldObject = last.OldMode, last.OldObject
			}
			over[ch.Path] = ch
		}
	}
	for _, s := range steps {
		if len(over) == 0 {
			break
		}
		list, err := person.TreeChanges(ctx, s.Before, s.After)
		if err != nil {
			return nil, err
		}
		for _, ch := range list {
			isAgents := []Side{sideBefore(ch), sideAfter(ch)}
			if was, ok := over[ch.Path]; ok && slices.Contains(isAgents, sideBefore(was)) {
				delete(over, ch.Path)
			}
		}
	}
	return over, nil
}

// branchBack lists the deliveries that moved the branch and that it still has, oldest
// first; none, and why, where it stays.
func branchBack(ctx context.Context, person *workspace.Checkout,
	all []Delivered) (moved []Delivered, why string, err error) {
	moved = slices.DeleteFunc(slices.Clone(all), func(d Delivered) bool { return d.From == d.To })
	if len(moved) == 0 {
		return nil, "", nil
	}
	head, err := person.Repo.Head(ctx)
	if err != nil {
		return nil, "", err
	}
	here := func(d Delivered) bool { return head == git.Head{Commit: d.To, Branch: d.Branch} }
	for len(moved) > 1 && !here(moved[len(moved)-1]) && slices.ContainsFunc(moved, here) {
		moved = moved[:len(moved)-1] // it was taken back already
	}
	newest := moved[len(moved)-1]
	switch {
	case head == git.Head{Commit: moved[0].From, Branch: moved[0].Branch}:
		return nil, "", nil
	case head.Branch != newest.Branch:
		return nil, "another branch is checked out now", nil
	case head.Commit != newest.To:
		return nil, fmt.Sprintf("its newest commit %.10s is not the one that was delivered last", head.Commit), nil
	}
	if op := person.Repo.Busy(); op != "" {
		return nil, "a " + op + " is in progress", nil
	}
	chain := []Delivered{newest}
	for _, d := range slices.Backward(moved[:len(moved)-1]) {
		if d.To == chain[0].From { // else it was taken back before the one that follows
			chain = append([]Delivered{d}, chain...)
		}
	}
	if chain[0].From != moved[0].From {
		return nil, "you made commits between those that were delivered", nil
	}
	return chain, "", nil
}
