package delivery

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// This file is about what no snapshot has: large files, files of submodules and of other
// repositories, and empty folders. It is delivered like all else, as the workspace has it
// then, and kept with the run while it is not.

// Piece is a change of such a file or folder. What is stored outlives the code: names must
// not change.
type Piece struct {
	Path   string `json:"path"`
	Before Side   `json:"before"`
	After  Side   `json:"after"`
}

func pieceOfChange(ch git.Change) Piece { return Piece{ch.Path, sideBefore(ch), sideAfter(ch)} }

func changeOfPiece(p Piece) git.Change {
	return git.Change{Path: p.Path, OldMode: p.Before.Mode, OldObject: p.Before.Object, NewMode: p.After.Mode,
		NewObject: p.After.Object}
}

// keptApart is what is stored of it while it is not delivered.
type keptApart struct {
	Pieces []Piece              `json:"pieces"`
	Only   []workspace.Conflict `json:"only"`
}

// apartFiles finds, keeps and notes what no snapshot has of the work in a Workspace.
type apartFiles struct{ *Workspace }

// withApart adds to work what no snapshot has of it, as it is in the workspace.
func (w apartFiles) withApart(ctx context.Context, u Undelivered) (Undelivered, error) {
	file := filepath.Join(runWorkFolder(w.o.StateDir, w.run), apartFile)
	var k keptApart
	if w.kept {
		err := files.UnlessGone(files.ReadJSON(file, &k))
		u.Apart, u.Only = lists.Each(k.Pieces, changeOfPiece), k.Only
		return u, err
	}
	was, err := w.readApart()
	if err == nil {
		u.Apart, u.Only, err = w.tree.ApartWork(ctx, w.o.Person, w.run, u.skipped, was, w.agreed.Tree)
	}
	if err != nil {
		return u, fmt.Errorf("cannot find the run's changes to files outside of snapshots: %w", err)
	}
	if len(u.Apart)+len(u.Only) == 0 {
		return u, files.UnlessGone(os.Remove(file))
	}
	if err := w.keepObjects(ctx, "apart", u.Apart); err != nil {
		return u, err
	}
	return u, files.ReplaceJSON(file, keptApart{lists.Each(u.Apart, pieceOfChange), u.Only}, true)
}

// mirrorApart brings what no snapshot has; was is what both had of it when that was done last.
func (w apartFiles) mirrorApart(ctx context.Context, seen workspace.Seen, was workspace.Apart) error {
	next := 0
	now, left, err := w.tree.Mirror(ctx, w.o.Person, seen, w.run, was, func(n int) {
		if n >= next {
			w.o.Tell(fmt.Sprintf("%d files that git ignores are copied into the workspace", n))
			next = 4 * n
		}
	})
	if n := len(left); n > 0 && was == nil {
		w.o.Tell(fmt.Sprintf("the workspace lacks %s that git ignores and that are too large to be copied, first: %s",
			fault.Numbered(n, "path"), left[0]))
	}
	if err != nil {
		return err
	}
	return w.keepApart(now)
}

// keepApart stores what both have of what no snapshot has.
func (w apartFiles) keepApart(now workspace.Apart) error {
	if maps.Equal(now, w.apart) {
		return nil
	}
	w.apart = now
	return files.ReplaceJSON(filepath.Join(w.at.Own, apartFile), now, false)
}

// readApart reads what both had of what no snapshot has when it was made the same last.
func (w apartFiles) readApart() (workspace.Apart, error) {
	if w.apart != nil || w.kept {
		return w.apart, nil
	}
	err := files.ReadJSON(filepath.Join(w.at.Own, apartFile), &w.apart)
	if w.apart == nil {
		w.apart = workspace.Apart{}
	}
	return w.apart, files.UnlessGone(err)
}

// keepObjects keeps the contents of changes from being collected.
func (w apartFiles) keepObjects(ctx context.Context, name string, changes []git.Change) error {
	none, err := w.o.Person.Store.EmptyTree(ctx)
	if err != nil {
		return err
	}
	var all []git.Change
	for _, ch := range changes {
		for _, side := range []Side{sideBefore(ch), sideAfter(ch)} {
			if side.Object != "" && side.Mode != workspace.ModeFolder {
				all = append(all, git.Change{Path: side.Object, NewMode: git.ModeFile, NewObject: side.Object})
			}
		}
	}
	tree, err := w.tree.TreeWith(ctx, w.run, none, all)
	if err != nil {
		return err
	}
	return w.o.Person.KeepTree(ctx, w.run, name, tree)
}

// noteApart notes that what no snapshot has is in the person's files now.
func (w apartFiles) noteApart(ctx context.Context, d Delivered, left []workspace.Conflict) error {
	if len(d.Apart) == 0 {
		return nil
	}
	if err := w.keepObjects(ctx, fmt.Sprintf("apart-%d", d.Iteration), lists.Each(d.Apart, changeOfPiece)); err != nil {
		return err
	}
	if w.kept {
		return files.UnlessGone(os.Remove(filepath.Join(w.at.Own, apartFile)))
	}
	was, err := w.readApart()
	if err != nil {
		return err
	}
	isLeft := lists.Set(lists.Each(left, func(c workspace.Conflict) string { return c.Path }))
	came := lists.Pick(d.Apart, func(p Piece) (git.Change, bool) { return changeOfPiece(p), !isLeft[p.Path] })
	now, err := w.tree.SameApart(w.o.Person, was, came)
	if err != nil {
		return err
	}
	return w.keepApart(now)
}

// countFiles says how many files and folders a delivery is of.
func (d Delivered) countFiles() string {
	folders := 0
	for _, p := range d.Apart {
		if p.After.Mode == workspace.ModeFolder || p.Before.Mode == workspace.ModeFolder {
			folders++
		}
	}
	text := fault.Numbered(d.Files-len(d.Left)-folders, "file")
	if folders > 0 {
		text += ", " + fault.Numbered(folders, "empty folder")
	}
	return text
}

// OnlyThere says to the person what of the work is in the workspace alone, in the folder
// dir, and how it comes into their files at top; nothing where there is nothing.
func OnlyThere(only []workspace.Conflict, dir, top, run string) (lines []string) {
	for _, c := range only {
		if dir == "" {
			lines = append(lines,
				fmt.Sprintf("Only in the workspace, which is gone or belongs to a later run: %q (%s)", c.Path, c.Why))
			continue
		}
		lines = append(lines, fmt.Sprintf("Only in the workspace: %q (%s). Copy it: cp -R %s %s", c.Path, c.Why,
			fault.QuoteShell(filepath.Join(dir, c.Path)), fault.QuoteShell(filepath.Join(top, filepath.Dir(c.Path)))))
	}
	if len(lines) > 0 && dir != "" {
		lines = append(lines, "Check what the agent made first: pawl run shell "+run)
	}
	return lines
}
