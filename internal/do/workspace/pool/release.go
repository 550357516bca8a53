package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// How is what becomes of a workspace in which work has ended.
type How struct {
	landed bool
	save   bool
	gone   bool
	why    string
}

// Landed says that the work is on its target: the clone is cleaned and waits
// for another task. What was added after the last [Pool.Collect] goes to a recovery ref.
var Landed = How{landed: true, why: "its work has landed"}

// Keep leaves the workspace as it is for the retention; why is shown to people.
func Keep(why string) How { return How{why: why} }

// Stopped is [Keep] for a task that was stopped: its tree goes to a recovery ref too.
func Stopped(why string) How { return How{save: true, why: why} }

// GivenUp removes the workspace because a person asked for it. Commits and files go to
// a recovery ref.
func GivenUp(why string) How { return How{gone: true, why: why} }

// Release ends the use of a workspace that this process took.
func (p *Pool) Release(ctx context.Context, w Workspace, h How) error {
	if err := p.releaseClone(ctx, w.ID, h); err != nil {
		p.unowned.Store(w.ID, true) // the row may still say that this process works in it
		return fmt.Errorf("cannot release the workspace of %s: %w", w.ID, err)
	}
	return nil
}

func (p *Pool) releaseClone(ctx context.Context, id string, h How) error {
	row, err := p.changeRow(ctx, id, func(r *store.Workspace) { r.Why, r.Landed = h.why, h.landed })
	if err != nil {
		return err
	}
	switch {
	case row.Kind == kindIntegration:
		return p.recycleClone(ctx, row)
	case h.gone:
		if _, err := p.removeClone(ctx, row, true); err != nil {
			return errors.Join(err, p.disownRow(ctx, id, h.why+", but "+err.Error()))
		}
		return nil
	case h.landed && !p.o.KeepOnSuccess:
		_, err := p.saveWork(ctx, row, false)
		if err == nil {
			return p.recycleClone(ctx, row)
		}
		return errors.Join(err, p.keepForRetention(ctx, row.ID,
			fmt.Sprintf("its work has landed, but later changes cannot be saved: %v", err)))
	case h.save:
		_, err := p.saveWork(ctx, row, false)
		return errors.Join(err, p.keepForRetention(ctx, row.ID, h.why))
	}
	return p.keepForRetention(ctx, row.ID, h.why)
}

// keepForRetention makes a workspace nobody's for the retention.
func (p *rows) keepForRetention(ctx context.Context, id, why string) error {
	_, err := p.changeRow(ctx, id, func(r *store.Workspace) {
		r.State, r.Why, r.Owner = kept, why, store.Owner{}
		r.KeepUntil = time.Now().Add(p.o.Retention)
	})
	return err
}

// recycleClone cleans a clone whose work is safe, and lets it wait for another
// task. One that cannot be cleaned, or is one too many, is removed.
func (p *Pool) recycleClone(ctx context.Context, row store.Workspace) error {
	if err := p.proveFolder(row); err != nil {
		return p.keepForRetention(ctx, row.ID, "it cannot be proved to be the folder that was made: "+err.Error())
	}
	if who := processIn(row.Dir); who != "" {
		return p.keepForRetention(ctx, row.ID, row.Why+", but "+who) // the next sweep removes it
	}
	row, err := p.changeRow(ctx, row.ID, func(r *store.Workspace) { r.State = removing })
	if err != nil {
		return err
	}
	p.step("removing")
	if p.countWaiting(ctx) >= p.o.Warm || p.cleanFolder(ctx, row) != nil {
		return p.discardClone(ctx, row)
	}
	p.step("cleaned")
	if err := p.forgetTask(ctx, row); err != nil {
		return err
	}
	return p.o.Store.EditWorkspaces(ctx, func([]store.Workspace) (store.WorkspaceChange, error) {
		w := store.Workspace{
			ID: kindWarm + "-" + filepath.Base(row.Own), Kind: kindWarm, State: warm, Why: "waits for a task",
			Repo: row.Repo, Dir: p.warmCloneDir(row.Own),
			Own: row.Own, Folder: row.Folder, TakenAt: row.TakenAt, UpdatedAt: time.Now(),
		}
		return store.WorkspaceChange{Drop: []string{row.ID}, Put: []store.Workspace{w}}, nil
	})
}

// countWaiting is how many clones wait for a task.
func (p *rows) countWaiting(ctx context.Context) int {
	all, err := p.o.Store.Workspaces(ctx)
	if err != nil {
		return 0 // the next write says it
	}
	n := 0
	for _, r := range all {
		if r.Kind == kindWarm {
			n++
		}
	}
	return n
}

// cleanFolder leaves nothing of the task in the folder: .git goes as a whole, and
// the files become those of the last checkout by pawl's own index, which no agent
// could write. Then the folder moves to where it waits.
func (p *clones) cleanFolder(ctx context.Context, row store.Workspace) error {
	c, release, err := p.openClone(ctx, row)
	if err != nil {
		return err
	}
	defer release()
	if err := files.RemoveAll(filepath.Join(row.Dir, ".git")); err != nil {
		return err
	}
	if err := c.Clean(ctx, row.Base); err != nil {
		return err
	}
	if err := c.Trim(); err != nil {
		return err
	}
	// What pawl knows of the task's runs here has an index for each.
	if err := files.RemoveAll(filepath.Join(row.Own, "tree", "runs")); err != nil {
		return err
	}
	p.step("emptied")
	if err := os.Rename(row.Dir, p.warmCloneDir(row.Own)); err != nil {
		return err
	}
	return files.Sync(p.o.Dir) // the row is written next, and synced
}

// forgetTask drops what belongs to the task and not to its clone.
func (p *clones) forgetTask(ctx context.Context, row store.Workspace) error {
	if err := p.freePorts(ctx, row.Dir); err != nil {
		return err
	}
	drop := []string{basePrefix + row.ID + "/"}
	if row.Landed {
		drop = append(drop, taskPrefix+row.ID)
	}
	return p.repo.DropRefs(ctx, drop...)
}

// discardClone removes folder and row of a clone in which nothing is that could be
// lost.
func (p *clones) discardClone(ctx context.Context, row store.Workspace) error {
	for _, dir := range []string{row.Dir, p.warmCloneDir(row.Own)} {
		if err := files.RemoveAll(dir); err != nil {
			return fmt.Errorf("cannot remove %s: %w", dir, err)
		}
	}
	if err := files.Sync(p.o.Dir); err != nil { // a folder must not come back without its row
		return fmt.Errorf("cannot remove %s: %w", row.Dir, err)
	}
	p.step("removed")
	if err := p.forgetTask(ctx, row); err != nil {
		return err
	}
	if err := files.RemoveAll(row.Own); err != nil {
		return fmt.Errorf("cannot remove %s: %w", row.Own, err)
	}
	return p.dropWorkspaceRow(ctx, row.ID)
}

// proveFolder checks that the folder of a row is the one that was made for it.
func (p *clones) proveFolder(row store.Workspace) error {
	if row.Repo != p.repo.Common {
		return fmt.Errorf("it belongs to the repository %s", row.Repo)
	}
	if row.Kind == kindTask && row.Branch != branchPrefix+row.ID {
		return fmt.Errorf("its branch is %s", row.Branch)
	}
	if filepath.Dir(row.Dir) != p.o.Dir {
		return fmt.Errorf("%s is not among the workspaces in %s", row.Dir, p.o.Dir)
	}
	id, err := folderID(row.Dir)
	if err != nil {
		return err
	}
	if id != row.Folder {
		return fmt.Errorf("%s is another folder than the one that was made", row.Dir)
	}
	return nil
}

// saved is what [works.saveWork] came to.
type saved struct {
	Ref  string   // empty when all was on a ref of the repository already
	Left []string // paths that are on no ref: repositories in the clone, large files
}

// saveWork keeps what a workspace has and no ref of the user's repository, under
// the next recovery ref: the files as the tree, what is checked out as the first
// parent, other branches of the clone as further ones. With always there is a ref
// also when all is on another one.
func (p *works) saveWork(ctx context.Context, row store.Workspace, always bool) (saved, error) {
	c, release, err := p.openClone(ctx, row)
	if err != nil {
		return saved{}, err
	}
	defer release()
	s, err := p.saveEverything(ctx, c, row, always)
	if err != nil && ctx.Err() == nil && !git.OfMachine(err) && !p.isDiskFull() {
		s, err = p.saveFiles(ctx, c, row)
	}
	return s, err
}

// saveEverything saves files and commits.
func (p *works) saveEverything(ctx context.Context, c *git.Clone, row store.Workspace, always bool) (saved, error) {
	if _, err := c.RestoreAlternates(); err != nil {
		return saved{}, err
	}
	head, err := c.Head()
	if err != nil {
		return saved{}, err
	}
	start := cmp.Or(head.Commit, row.Base)
	tree, left, err := p.enterAll(ctx, c, start)
	if err != nil {
		return saved{}, err
	}
	parents, err := c.Heads(ctx, append(c.Tips(maxTips), start), row.Base, row.Head)
	if err != nil {
		return saved{}, err
	}
	was, err := c.TreeOf(ctx, start)
	if err != nil {
		return saved{}, err
	}
	if was == tree && len(parents) == 0 && !always {
		return saved{Left: left}, nil
	}
	parents = slices.DeleteFunc(parents, func(id string) bool { return id == start })
	parents = append([]string{start}, parents...)
	ref, err := p.makeRecovery(ctx, c, row, tree, parents)
	return saved{ref, left}, err
}

// maxTips is how many branches of a clone are saved.
const maxTips = 200

// saveFiles saves the files of a clone whose repository is broken.
func (p *works) saveFiles(ctx context.Context, c *git.Clone, row store.Workspace) (saved, error) {
	if err := c.DropAgentObjects(); err != nil {
		return saved{}, err
	}
	tree, left, err := p.enterAll(ctx, c, row.Base)
	if err != nil {
		return saved{}, err
	}
	ref, err := p.makeRecovery(ctx, c, row, tree, []string{row.Base})
	return saved{ref, append(left, ".git (it is broken: its commits could not be read)")}, err
}

// enterAll stages all files that are not ignored, on top of a commit, and returns
// what cannot be stored.
func (p *works) enterAll(ctx context.Context, c *git.Clone, on string) (tree string, left []string, err error) {
	if err := c.ResetIndex(ctx, on); err != nil {
		return "", nil, err
	}
	scan, err := c.Scan(ctx)
	if err != nil {
		return "", nil, err
	}
	paths, filtered, left, err := siftPaths(ctx, c, scan)
	if err != nil {
		return "", nil, err
	}
	paths = append(paths, filtered...) // as they are on disk: nothing lands of a recovery
	large := p.listTooLarge(c, paths)
	left = slices.Concat(left, large, c.StagedModules(ctx))
	paths = slices.DeleteFunc(paths, func(name string) bool { return slices.Contains(large, name) })
	if err := c.StagePaths(ctx, paths, scan.Gone); err != nil {
		return "", nil, err
	}
	tree, err = c.Tree(ctx)
	return tree, left, err
}

// makeRecovery makes the next recovery ref.
func (p *works) makeRecovery(ctx context.Context, c *git.Clone, row store.Workspace, tree string, parents []string,
) (string, error) {
	commit, err := c.Commit(ctx, tree, fmt.Sprintf("pawl %s: the workspace as it was\n\nPawl-Task: %s\n", row.ID,
		row.ID),
		parents...)
	if err != nil {
		return "", err
	}
	done, err := c.Deliver(ctx, row.Base, commit)
	defer done()
	if err != nil {
		return "", err
	}
	p.step("saved")
	before, err := p.Recoveries(ctx, row.ID)
	if err != nil {
		return "", err
	}
	next := 1
	if n := len(before); n > 0 {
		next = before[n-1].N + 1
	}
	ref := fmt.Sprintf("%s%s/%d", recoveryPrefix, row.ID, next)
	if err := p.repo.KeepRef(ctx, ref, commit, p.repo.Zero(), "pawl"); err != nil { // what it keeps is removed next
		return "", fmt.Errorf("cannot keep the files of the workspace: %w", err)
	}
	p.step("kept")
	return ref, nil
}
