package delivery

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
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
}

// BackOptions say what is taken back.
type BackOptions struct {
	Key        string      // by which the person's files were looked at
	Steps      []Step      // oldest first
	Deliveries []Delivered // of these iterations, oldest first
	Hold       string      // the file by which pawls keep out of each other's way
	Dry        bool        // only say what would be done
}

// TakeBack undoes steps of agents in the person's files: each file that is still as one of
// the steps left it becomes what the first of them began with. Any other is the person's:
// it stays, and is named. The branch goes back over the deliveries of these iterations, if
// its tip is what one of them delivered.
func TakeBack(ctx context.Context, person *workspace.Checkout, o BackOptions) (TakenBack, error) {
	var back TakenBack
	if err := os.MkdirAll(filepath.Dir(o.Hold), 0o700); err != nil {
		return back, err
	}
	lock, err := files.Lock(ctx, o.Hold, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return back, err
	}
	defer lock.Close()
	changes, broken, err := undoing(ctx, person, o.Steps)
	if err != nil {
		return back, err
	}
	moved := slices.DeleteFunc(slices.Clone(o.Deliveries), func(d Delivered) bool { return d.From == d.To })
	moved, to, why, err := branchBack(ctx, person, moved)
	if err != nil {
		return back, err
	}
	back.WhyNot = why
	if o.Dry {
		back.Carried = foreseen(person, changes)
	} else if back.Carried, err = person.Carry(ctx, o.Key, changes); err != nil {
		return back, err
	}
	back.Left = append(back.Left, broken...)
	if to == nil || o.Dry {
		return back, nil
	}
	newest := moved[len(moved)-1]
	move, err := person.Repo.BeginIndexMove(ctx, newest.To, *to, lock)
	if err != nil {
		back.WhyNot = err.Error()
		return back, nil //nolint:nilerr // the files are back, and the reason is told
	}
	defer move.End()
	staged, err := move.StagedOver(ctx, nil)
	if err != nil || len(staged) > 0 {
		back.WhyNot = "something is staged for " + cmp.Or(first(staged), "it")
		return back, err
	}
	name := cmp.Or(newest.Branch, "HEAD")
	if *to == "" {
		err = person.Repo.DeleteRef(ctx, name, newest.To, "pawl: roll back")
	} else {
		err = person.Repo.UpdateRef(ctx, name, *to, newest.To, "pawl: roll back")
	}
	if err != nil {
		back.WhyNot = err.Error()
		return back, nil //nolint:nilerr // as above
	}
	back.BranchTo = cmp.Or(*to, "before its first commit")
	return back, move.MoveIndex(ctx)
}

// foreseen is what carrying changes out would do.
func foreseen(person *workspace.Checkout, changes []git.Change) (b workspace.Carried) {
	differs := lists.Set(person.Differing(changes))
	for _, ch := range changes {
		switch {
		case differs[ch.Path]:
			b.Left = append(b.Left, workspace.Conflict{Path: ch.Path, Why: "it was changed meanwhile"})
		case person.Has(ch.Path, ch.NewMode, ch.NewObject):
		case ch.NewObject == "":
			b.Removed = append(b.Removed, ch.Path)
		default:
			b.Written = append(b.Written, ch.Path)
		}
	}
	return b
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// undoing are the changes that take steps back, and the paths that somebody else
// changed between two of them.
func undoing(ctx context.Context, person *workspace.Checkout, steps []Step,
) (changes []git.Change, broken []workspace.Conflict, err error) {
	type span struct {
		git.Change
		left   []Side // by the steps but the last
		broken bool
	}
	paths := map[string]*span{}
	var order []string
	for _, s := range steps {
		list, err := person.TreeChanges(ctx, s.Before, s.After)
		if err != nil {
			return nil, nil, err
		}
		for _, ch := range list {
			p, known := paths[ch.Path]
			if !known {
				paths[ch.Path] = &span{Change: ch}
				order = append(order, ch.Path)
				continue
			}
			p.broken = p.broken || sideAfter(p.Change) != sideBefore(ch)
			p.left = append(p.left, sideAfter(p.Change))
			p.NewMode, p.NewObject = ch.NewMode, ch.NewObject
		}
	}
	slices.Sort(order)
	for _, path := range order {
		p := paths[path]
		switch {
		case sideBefore(p.Change) == sideAfter(p.Change):
		case p.broken:
			broken = append(broken, workspace.Conflict{Path: path, Why: "you changed it between two iterations"})
		default:
			for _, s := range p.left { // a rollback to there went before
				if person.Has(path, s.Mode, s.Object) {
					p.NewMode, p.NewObject = s.Mode, s.Object
				}
			}
			changes = append(changes, git.Change{Path: path, OldMode: p.NewMode, OldObject: p.NewObject, NewMode: p.OldMode,
				NewObject: p.OldObject})
		}
	}
	return changes, broken, nil
}

// branchBack is the commit that the branch goes back to, over those of the deliveries that
// its tip has; nil is nowhere, and why.
func branchBack(ctx context.Context, person *workspace.Checkout, moved []Delivered,
) (over []Delivered, to *string, why string, err error) {
	if len(moved) == 0 {
		return nil, nil, "", nil
	}
	head, err := person.Repo.Head(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	last := len(moved) - 1
	for last > 0 && moved[last].To != head.Commit {
		last--
	}
	switch {
	case head.Branch != moved[last].Branch:
		return nil, nil, "another branch is checked out now", nil
	case head.Commit == moved[0].From:
		return nil, nil, "", nil
	case head.Commit != moved[last].To:
		return nil, nil, fmt.Sprintf("its tip %.10s is not a commit that was delivered", head.Commit), nil
	}
	if op := person.Repo.Busy(); op != "" {
		return nil, nil, "a " + op + " is going on", nil
	}
	moved = moved[:last+1]
	for i := 1; i < len(moved); i++ {
		if moved[i].From != moved[i-1].To {
			return nil, nil, "there are commits of yours between those that were delivered", nil
		}
	}
	return moved, &moved[0].From, "", nil
}
