package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git/command"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// OpenOwn makes or refreshes a repository of pawl's own at dir that reads the objects
// of r without having them. It has no files, and no agent reaches it. Snapshots are
// kept in it, so that the user's repository has nothing of pawl's.
func (r *Repo) OpenOwn(_ context.Context, dir string) (*Repo, error) {
	if strings.Contains(dir+r.Objects, "\n") {
		return nil, errors.New("cannot make pawl's own repository: there is a newline in a path")
	}
	config := "[core]\n\trepositoryFormatVersion = 1\n\tbare = false\n\tlogAllRefUpdates = false\n" +
		"[gc]\n\tauto = 0\n[extensions]\n\tobjectFormat = " + r.Format + "\n"
	if err := keepGitDir(dir, config, plain); err != nil {
		return nil, err
	}
	shallow := filepath.Join(dir, "shallow")
	data, err := files.ReadBelow(r.Common, "shallow", packedLimit)
	if errors.Is(err, os.ErrNotExist) {
		_ = os.Remove(shallow) // mostly not there
	} else if err == nil {
		err = keepFile(shallow, data)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot make pawl's own repository: %w", err)
	}
	if err := keepFile(filepath.Join(dir, "objects", "info", "alternates"), []byte(r.Objects+"\n")); err != nil {
		return nil, fmt.Errorf("cannot make pawl's own repository: %w", err)
	}
	return unsharedRepoAt(dir, dir, filepath.Join(dir, "index"), r.Format), nil
}

// unsharedRepoAt is a repository of which nothing is shared, with the git directory dir.
func unsharedRepoAt(top, dir, index, format string) *Repo {
	return &Repo{RefStore{History{Folders{
		Top: top, Dir: dir, Common: dir, Exclude: filepath.Join(dir, "info", "exclude"), Index: index,
		Objects: filepath.Join(dir, "objects"), Format: format,
	}}}}
}

// CloneAt is the clone at top that was made of r, whose folder of pawl's is own. It
// reads and writes nothing: [OpenClone] makes it ready for calls that use its index.
// more are further folders of objects that pawl's own calls read.
func (r *Repo) CloneAt(top, own string, more ...string) *Clone {
	dir := filepath.Join(own, "git")
	c := &Clone{Of: r, Top: top, Own: own, more: more}
	c.shadow = &Shadow{Dir: dir, Repo: unsharedRepoAt(top, dir, filepath.Join(own, "index"), r.Format)}
	c.index = c.shadow.Index(c.shadow.Repo.Index, nil)
	return c
}

// Import copies a commit of the clone, with all that have does not have, into the
// repository into. Each object is checked as for a fetch with transfer.fsckObjects.
// A commit that into has already is not looked at. The error is [ErrBroken] when the
// clone's objects cannot be read, or are not what their names say.
func (c *Clone) Import(ctx context.Context, into *Repo, have, commit string) error {
	if found, err := into.Find(ctx, commit); err != nil || found == commit {
		return err
	}
	if _, err := c.RestoreAlternates(); err != nil {
		return fmt.Errorf("%w: %v", ErrBroken, err)
	}
	if err := c.writeAlternates(); err != nil {
		return err
	}
	done, err := into.takeObjects(ctx, c.shadow.newCall(), c.Own, have, []string{commit})
	done() // objects are collected there only when refs are dropped
	if err != nil && ctx.Err() == nil && !OfMachine(err) {
		return fmt.Errorf("%w: %v", ErrBroken, err)
	}
	if err != nil {
		return err
	}
	if found, err := into.Find(ctx, commit); err != nil || found == commit {
		return err
	}
	return fmt.Errorf("%w: %s, which it has checked out, is not a commit", ErrBroken, commit)
}

// Lend copies commits of the repository from, with all that have does not have, to
// where the agent's git in the clone reads them.
func (c *Clone) Lend(ctx context.Context, from *Repo, have string, want ...string) error {
	objects := filepath.Join(c.Top, ".git", "objects")
	for _, dir := range []string{filepath.Dir(objects), objects, filepath.Join(objects, "pack")} {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			return fmt.Errorf("%w: %s is not a folder", ErrBroken, dir)
		}
	}
	there := *c.shadow.Repo
	there.Objects = objects
	store := *c.shadow
	store.Repo, store.objects = &there, objects
	done, err := takePackInto(ctx, store.newCall, &there, from.NewCall(), c.Own, have, want)
	done() // an agent's git collects nothing
	return err
}

// NewRepository gives the clone a new .git, in the place of one that it has: what is
// checked out in the lender, its branches, tags and remote branches by name, its index,
// and who commits. Remotes, hooks, stash and other configuration stay out. Paths in
// apart are shown to the agent's git as they are in the index, whatever their files
// hold: programs that are not run there filter them.
func (c *Clone) NewRepository(ctx context.Context, apart []string) error {
	dir := filepath.Join(c.Top, ".git")
	if err := files.RemoveAll(dir); err != nil {
		return fmt.Errorf("cannot remove the clone's old repository: %w", err)
	}
	m, err := c.Of.describeBorrowed(ctx)
	if err != nil {
		return err
	}
	m.objects = c.lenderObjects()
	if err := c.Of.writeGitDir(dir, m); err != nil {
		return fmt.Errorf("cannot make the clone's repository: %w", err)
	}
	all, err := c.Of.IndexEntries(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		all[i].Assumed = all[i].Assumed || slices.Contains(apart, all[i].Path)
	}
	return unsharedRepoAt(c.Top, dir, filepath.Join(dir, "index"), c.Of.Format).writeIndex(ctx, all)
}

// CommitAgain stores a commit of a tree on a parent with author, committer, times and
// message of another commit. An empty parent is none.
func (r *History) CommitAgain(ctx context.Context, of, tree, parent string) (string, error) {
	return commitAgain(ctx, r.NewCall, of, tree, parent)
}

// CommitAgain stores what a commit of the clone holds as one on a parent, with its
// author, committer, times and message.
func (c *Clone) CommitAgain(ctx context.Context, of, parent string) (string, error) {
	tree, err := c.TreeOf(ctx, of)
	if err != nil {
		return "", err
	}
	return commitAgain(ctx, c.newCall, of, tree, parent)
}

func commitAgain(ctx context.Context, calls func(...string) call, of, tree, parent string) (string, error) {
	out, err := command.Run(ctx, calls("cat-file", "commit", of))
	if err != nil {
		return "", fmt.Errorf("cannot read commit %s: %w", of, err)
	}
	head, message, _ := strings.Cut(string(out), "\n\n")
	text := "tree " + tree + "\n"
	if parent != "" {
		text += "parent " + parent + "\n"
	}
	for line := range strings.SplitSeq(head, "\n") {
		key, _, _ := strings.Cut(line, " ")
		if key == "author" || key == "committer" || key == "encoding" { // a signature would not hold
			text += line + "\n"
		}
	}
	c := calls("hash-object", "-t", "commit", "-w", "--stdin")
	c.Stdin = strings.NewReader(text + "\n" + message)
	return command.Text(ctx, c, "store a commit")
}

// Since are the commits that lead from one commit to another, oldest first, each after
// its parents, with those.
func (r *History) Since(ctx context.Context, from, to string) (commits [][]string, err error) {
	out, err := command.Run(ctx, r.NewCall(walkSince(from, "rev-list", "--reverse", "--topo-order", "--parents", to)...))
	if err != nil {
		return nil, fmt.Errorf("cannot list commits: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		commits = append(commits, strings.Fields(line))
	}
	return commits, nil
}

// MergeTrees merges two trees that come from a third one, in the store of r. Conflicts
// are the paths that could not be merged; then there is no tree.
func (r *History) MergeTrees(ctx context.Context, base, ours, theirs string,
) (tree string, conflicts []string, err error) {
	root, err := commitTree(ctx, r.NewCall(), pawl, base, "base", nil)
	if err != nil {
		return "", nil, err
	}
	var sides [2]string
	for i, t := range []string{ours, theirs} {
		if sides[i], err = commitTree(ctx, r.NewCall(), pawl, t, "side", []string{root}); err != nil {
			return "", nil, err
		}
	}
	m, err := r.MergeTree(ctx, sides[0], sides[1])
	if err != nil || m.Clean {
		return m.Tree, nil, err
	}
	return "", lists.Union(nil, lists.Each(m.Stages, func(e Entry) string { return e.Path })...), nil
}

// Filtered returns the paths whose content a program filters by the attributes of the work tree,
// such as LFS.
func (r *Repo) Filtered(ctx context.Context, paths []string) ([]string, error) {
	return filteredBy(ctx, r.NewCall(), paths)
}
