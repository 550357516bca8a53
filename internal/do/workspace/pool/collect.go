package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// listed is how many paths a refusal names.
const listed = 5

// Collect takes over the work of a task: what is uncommitted and not ignored is
// committed with the message, on what is checked out in the clone, and all of it
// comes into the user's repository as refs/pawl/tasks/<id>. It returns that
// commit; without any change it is the one that the work began at. The clone is
// moved to the commit too.
//
// [ErrRefused] says that the work cannot be taken over as it is: its history
// does not begin at the base, an object is broken, a path is none that git
// allows, a file is too large, a submodule was moved, or content has a filter
// program that pawl does not run. Nothing is changed then.
func (p *works) Collect(ctx context.Context, w Workspace, message string) (string, error) {
	row, commit, err := p.collectWork(ctx, w.ID, message, true)
	return commit, collectError(row, err)
}

// Copy is [Pool.Collect] for work that goes on: what is checked out in the clone
// stays as it is. It returns the commit that the work began at, too.
func (p *works) Copy(ctx context.Context, id, message string) (base, commit string, err error) {
	row, commit, err := p.collectWork(ctx, id, message, false)
	return row.Base, commit, collectError(row, err)
}

func collectError(row store.Workspace, err error) error {
	switch {
	case errors.Is(err, ErrRefused):
		return fmt.Errorf("the work of %s %w", row.ID, err)
	case err != nil:
		return fmt.Errorf("cannot collect the work of %s: %w", row.ID, err)
	}
	return nil
}

func (p *works) collectWork(
	ctx context.Context, id, message string, move bool,
) (row store.Workspace, commit string, err error) {
	if row, err = p.changeRow(ctx, id, func(*store.Workspace) {}); err != nil {
		return store.Workspace{ID: id}, "", err
	}
	commit, err = p.collectRow(ctx, row, message, move)
	return row, commit, err
}

func (p *works) collectRow(ctx context.Context, row store.Workspace, message string, move bool) (string, error) {
	c, release, err := p.openClone(ctx, row)
	if err != nil {
		return "", err
	}
	defer release()
	if _, err := c.RestoreAlternates(); err != nil {
		return "", refuseWork("%v", err)
	}
	head, err := c.Head()
	if err != nil {
		return "", refuseWork("%v", err)
	}
	was := head
	if head.Commit, err = p.commitOnBase(ctx, c, head.Commit, row.Base); err != nil {
		return "", err
	}
	commit, err := p.commitRest(ctx, c, head, row, message)
	if err != nil {
		return "", err
	}
	p.step("committed")
	if commit != row.Base {
		done, err := c.Deliver(ctx, row.Base, commit)
		defer done()
		if err != nil {
			return "", p.explainBroken(ctx, err)
		}
	}
	p.step("delivered")
	if err := p.repo.KeepRefs(ctx, basePrefix+row.ID+"/head", commit, taskPrefix+row.ID, commit); err != nil {
		return "", err
	}
	p.step("collected")
	if _, err := p.changeRow(ctx, row.ID, func(r *store.Workspace) { r.Head = commit }); err != nil {
		return "", err
	}
	if move && commit != was.Commit {
		_ = c.MoveHead(was, commit) // an agent may have put something in the way; the work is collected all the same
	}
	return commit, nil
}

// refuseWork makes an error for the agent or the person who can cure it.
func refuseWork(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// explainBroken makes a refusal of an error by git about the clone's objects.
func (p *works) explainBroken(ctx context.Context, err error) error {
	var said *git.Error
	ofGit := errors.As(err, &said) || errors.Is(err, git.ErrBroken)
	if ofGit && ctx.Err() == nil && !git.OfMachine(err) && !p.isDiskFull() {
		return refuseWork("%v", err)
	}
	return err
}

// isDiskFull reports whether a disk that work is collected on has no room: git does not
// always say so.
func (p *clones) isDiskFull() bool {
	return files.Full(p.o.Dir) || files.Full(p.o.StateDir) || files.Full(p.repo.Common)
}

// commitOnBase returns what is checked out as a commit that follows the base. A history
// that was rewritten beyond that, as by an amended commit, becomes one commit on it: the
// files are what counts.
func (p *works) commitOnBase(ctx context.Context, c *git.Clone, head, base string) (string, error) {
	if head == "" {
		return "", refuseWork("the branch that is checked out has no commit; check out one that begins at %s", base)
	}
	if head == base {
		return head, nil
	}
	follows, err := c.BasedOn(ctx, head, base)
	if err == nil && !follows {
		head, err = c.CommitAgain(ctx, head, base)
	}
	if err != nil {
		return "", p.explainBroken(ctx, err)
	}
	return head, nil
}

// commitRest commits what is uncommitted and not ignored, and returns the commit
// that has all of the work: the last one that was collected, if that has it.
func (p *works) commitRest(
	ctx context.Context, c *git.Clone, head git.Head, row store.Workspace, message string,
) (string, error) {
	base := row.Base
	if err := c.ResetIndex(ctx, head.Commit); err != nil {
		return "", p.explainBroken(ctx, err)
	}
	// Sizes first: a scan reads the content of what was committed.
	if large, err := p.committedLarge(ctx, c, base, head.Commit); err != nil {
		return "", p.explainBroken(ctx, err)
	} else if len(large) > 0 {
		return "", p.refuseLarge(large)
	}
	if moved := c.StagedModules(ctx); len(moved) > 0 {
		return "", refuseModules(moved, head.Commit)
	}
	scan, err := c.Scan(ctx)
	if err != nil {
		return "", p.explainBroken(ctx, err)
	}
	paths, filtered, _, err := siftPaths(ctx, c, scan)
	if err != nil {
		return "", p.explainBroken(ctx, err)
	}
	if len(filtered) > 0 {
		return "", refuseFiltered(filtered)
	}
	if large := p.listTooLarge(c, paths); len(large) > 0 {
		return "", p.refuseLarge(large)
	}
	if err := c.StagePaths(ctx, paths, scan.Gone); err != nil {
		return "", p.explainBroken(ctx, err)
	}
	tree, err := c.Tree(ctx)
	if err != nil {
		return "", p.explainBroken(ctx, err)
	}
	if err := p.checkChanges(ctx, c, base, tree); err != nil {
		return "", err
	}
	was, err := c.TreeOf(ctx, head.Commit)
	if err != nil {
		return "", p.explainBroken(ctx, err)
	}
	if was == tree {
		return head.Commit, nil
	}
	if p.o.SignOff {
		message = c.Who().SignOff(message)
	}
	if row.Head != "" && c.Made(ctx, row.Head, tree, message, head.Commit) {
		return row.Head, nil
	}
	return c.Commit(ctx, tree, message, head.Commit)
}

// listTooLarge returns those of the paths whose files are over the limit.
func (p *works) listTooLarge(c *git.Clone, paths []string) []string {
	var large []string
	for _, name := range paths {
		info, err := os.Lstat(filepath.Join(c.Top, filepath.FromSlash(name)))
		if err == nil && info.Mode().IsRegular() && info.Size() > p.o.MaxFile {
			large = append(large, name)
		}
	}
	return large
}

// committedLarge are the paths that a commit changes and whose files, as they are
// on disk, are over the limit.
func (p *works) committedLarge(ctx context.Context, c *git.Clone, base, commit string) ([]string, error) {
	if commit == base {
		return nil, nil
	}
	changes, err := c.Changes(ctx, base, commit)
	if err != nil {
		return nil, err
	}
	var written []string
	for _, ch := range changes {
		if ch.NewObject != "" && ch.NewMode != git.ModeNested {
			written = append(written, ch.Path)
		}
	}
	large := p.listTooLarge(c, written)
	filtered, err := c.Filtered(ctx, large) // on disk it is not what was committed
	return slices.DeleteFunc(large, func(name string) bool { return slices.Contains(filtered, name) }), err
}

// siftPaths sorts the paths of a scan: those to stage; changed ones whose content a
// program filters; and repositories in the clone, which git cannot hold.
// Files of LFS that a setup filled in, and that nobody changed since, are none of
// these: what is staged, their pointers, stays.
func siftPaths(ctx context.Context, c *git.Clone, scan git.Scan) (paths, filtered, nested []string, err error) {
	all := slices.Clone(scan.Changed)
	for _, name := range scan.Untracked {
		if strings.HasSuffix(name, "/") {
			nested = append(nested, name)
		} else {
			all = append(all, name)
		}
	}
	if filtered, err = c.Filtered(ctx, all); err != nil || len(filtered) == 0 {
		return all, nil, nested, err
	}
	is := lists.Set(filtered)
	paths = slices.DeleteFunc(all, func(name string) bool { return is[name] })
	filtered, err = c.ChangedLFS(ctx, filtered)
	return paths, filtered, nested, err
}

func refuseFiltered(paths []string) error {
	return refuseWork("%s by a program that .gitattributes names (such as LFS), which pawl does not run; change it "+
		"outside of a task", namePaths(paths, "is filtered", "are filtered"))
}

func refuseModules(paths []string, base string) error {
	return refuseWork("%s: the commit of a submodule is in no repository but the workspace's; undo that with "+
		"git checkout %s -- PATH, or take a new one out with git rm --cached PATH",
		namePaths(paths, "is a submodule that was moved", "are submodules that were moved"), base)
}

// checkChanges refuses changes that the user's repository cannot hold whole.
func (p *works) checkChanges(ctx context.Context, c *git.Clone, base, tree string) error {
	changes, err := c.Changes(ctx, base, tree)
	if err != nil {
		return p.explainBroken(ctx, err)
	}
	var modules, written, blobs []string
	for _, ch := range changes {
		switch {
		case ch.NewMode == git.ModeNested:
			modules = append(modules, ch.Path)
		case ch.NewObject != "":
			written, blobs = append(written, ch.Path), append(blobs, ch.NewObject)
		}
	}
	if len(modules) > 0 {
		return refuseModules(modules, base)
	}
	filtered, err := c.Filtered(ctx, written)
	if err != nil {
		return p.explainBroken(ctx, err)
	}
	if len(filtered) > 0 {
		return refuseFiltered(filtered)
	}
	sizes, err := c.Sizes(ctx, blobs)
	if err != nil {
		return p.explainBroken(ctx, err)
	}
	var large []string
	for i, size := range sizes {
		if size > p.o.MaxFile {
			large = append(large, written[i])
		}
	}
	if len(large) > 0 {
		return p.refuseLarge(large)
	}
	return nil
}

func (p *works) refuseLarge(paths []string) error {
	return refuseWork("%s over %s; remove or ignore it, or raise snapshot.max_file",
		namePaths(paths, "is a file", "are files"), sizeText(p.o.MaxFile))
}

// sizeText is a limit in bytes in the unit that it was set in.
func sizeText(n int64) string {
	switch {
	case n%1e6 == 0:
		return fmt.Sprintf("%d MB", n/1e6)
	case n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// namePaths names paths, of many the first, with the verb that fits their number.
func namePaths(paths []string, one, many string) string {
	quoted := lists.Each(paths[:min(len(paths), listed)], func(name string) string { return fmt.Sprintf("%q", name) })
	text := strings.Join(quoted, ", ")
	if n := len(paths) - listed; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	if len(paths) == 1 {
		return text + " " + one
	}
	return text + " " + many
}
