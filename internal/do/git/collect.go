package git

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/pawl-dev/pawl/internal/do/git/command"
)

// ErrBroken says that an agent left its clone's .git in a state in which what is
// checked out cannot be read.
var ErrBroken = errors.New("the clone's repository is broken")

// ResetIndex makes pawl's index of the clone start from a commit, so that a file
// that was committed although it is ignored counts as tracked; what is known of
// files that did not change is kept.
// A commit with too many files is [ErrBroken].
func (c *Clone) ResetIndex(ctx context.Context, commit string) error {
	if err := c.checkCountable(ctx, commit); err != nil {
		return err
	}
	if _, err := command.Run(ctx, c.newCall("read-tree", "-m", commit)); err != nil {
		if _, err := command.Run(ctx, c.newCall("read-tree", "--reset", commit)); err != nil {
			return fmt.Errorf("cannot read commit %s: %w", commit, err)
		}
	}
	return nil
}

// namesMost is how many bytes the names of all files of a commit may have: some two
// million files.
const namesMost = 128 << 20

// checkCountable refuses a commit that has more files than can be looked at. A few trees, each many
// times in the next, have any number, and git would keep all in memory.
func (c *Clone) checkCountable(ctx context.Context, commit string) error {
	k := c.newCall("ls-tree", "-r", "-z", "--name-only", commit)
	k.Max = namesMost
	_, more, err := command.RunOnce(ctx, k)
	if err == nil && more {
		err = fmt.Errorf("%w: commit %s has too many files", ErrBroken, commit)
	}
	return err
}

// Scan compares the work tree with what was staged.
func (c *Clone) Scan(ctx context.Context) (Scan, error) { return c.index.Scan(ctx, ScanOptions{}) }

// StagePaths stages paths as they are on disk, and takes off those that are gone. A
// link in the place of a folder hides what was below it.
func (c *Clone) StagePaths(ctx context.Context, paths, gone []string) error {
	if err := c.index.Remove(ctx, gone); err != nil {
		return fmt.Errorf("cannot read the work tree: %w", err)
	}
	if err := c.index.Add(ctx, paths); err != nil {
		return fmt.Errorf("cannot read the work tree: %w", err)
	}
	return nil
}

// Tree stores what is staged.
func (c *Clone) Tree(ctx context.Context) (string, error) { return c.index.WriteTree(ctx) }

// TreeOf is the tree of a commit that the clone or its lender has.
func (c *Clone) TreeOf(ctx context.Context, commit string) (string, error) {
	out, err := command.Run(ctx, c.newCall("rev-parse", "--verify", "-q", commit+"^{tree}"))
	if err != nil {
		return "", fmt.Errorf("%w: commit %s cannot be read: %v", ErrBroken, commit, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Changes lists how tree to differs from tree from.
func (c *Clone) Changes(ctx context.Context, from, to string) ([]Change, error) {
	all, _, err := c.shadow.Changes(ctx, from, to, false, 0)
	return all, err
}

// Sizes are the sizes of blobs in bytes, in order; -1 for one that cannot be read.
func (c *Clone) Sizes(ctx context.Context, objects []string) ([]int64, error) {
	return c.shadow.Sizes(ctx, objects)
}

// Filtered returns those paths that .gitattributes gives to a program which
// filters content.
func (c *Clone) Filtered(ctx context.Context, paths []string) ([]string, error) {
	return filteredBy(ctx, c.newCall(), paths)
}

func filteredBy(ctx context.Context, c call, paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	values, err := readAttributes(ctx, c, paths, "filter")
	if err != nil {
		return nil, err
	}
	unfiltered := func(p string) bool { return values[p] == "" || values[p] == "set" }
	return slices.DeleteFunc(slices.Clone(paths), unfiltered), nil
}

// Who is the person whom git's configuration names, else pawl.
func (c *Clone) Who() Person { return identityOf(c.settings) }

// Commit stores a commit of a tree by the person whom git's configuration
// names, else by pawl. It is on no branch.
func (c *Clone) Commit(ctx context.Context, tree, message string, parents ...string) (string, error) {
	return commitTree(ctx, c.newCall(), c.Who(), tree, message, parents)
}

// Made reports whether the lender's commit is what [Clone.Commit] made of these, at
// another time.
func (c *Clone) Made(ctx context.Context, commit, tree, message, parent string) bool {
	out, err := command.Run(ctx, c.Of.NewCall("cat-file", "commit", commit))
	text := string(out)
	begins := strings.HasPrefix(text, "tree "+tree+"\nparent "+parent+"\nauthor ")
	ends := strings.HasSuffix(strings.TrimRight(text, "\n"), "\n\n"+strings.TrimRight(message, "\n"))
	return err == nil && begins && ends
}

// BasedOn reports whether commit has base in its history, as the clone and its
// lender have it.
func (c *Clone) BasedOn(ctx context.Context, commit, base string) (bool, error) {
	_, err := command.Run(ctx, c.newCall("merge-base", "--is-ancestor", base, commit))
	if command.ExitCode(err) == 1 {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%w: the history of %s cannot be read: %v", ErrBroken, commit, err)
	}
	return true, nil
}

// Deliver brings the commits want, with all that have does not have, into the
// lender, where they survive a power loss. Each object is checked as for a fetch with
// transfer.fsckObjects, names of paths too; with a broken one nothing is stored. No
// ref is made: no gc removes the objects until done, which is never nil, is called.
func (c *Clone) Deliver(ctx context.Context, have string, want ...string) (done func(), err error) {
	if done, err = c.Of.takeObjects(ctx, c.newCall(), c.Own, have, want); err != nil {
		return done, err
	}
	return done, c.Of.SyncObjects(ctx, have, want...)
}

// MoveHead moves what is checked out in the clone to a commit that the lender
// has, and its index to what was staged last, so that the agent sees what was
// committed for it. The files stay as they are.
func (c *Clone) MoveHead(head Head, commit string) error {
	return c.writeRefs([2]string{cmp.Or(head.Branch, "HEAD"), commit})
}

// SetHead makes a commit what is checked out in the clone, on a branch or, without one,
// detached, and gives it the index of that commit. The files stay as they are. An empty
// commit is a branch before its first one.
func (c *Clone) SetHead(ctx context.Context, to Head) error {
	err := c.writeAlternates()
	switch {
	case err != nil:
	case to.Commit == "":
		_, err = command.Run(ctx, c.newCall("read-tree", "--empty"))
	default:
		err = c.ResetIndex(ctx, to.Commit)
	}
	if err != nil {
		return err
	}
	switch {
	case to.Branch == "":
		return c.writeRefs([2]string{"HEAD", to.Commit})
	case to.Commit == "":
		_ = c.withGitDir(func(root *os.Root) error { return root.Remove(to.Branch) }) // it may not be there
		return c.writeRefs([2]string{"HEAD", "ref: " + to.Branch})
	}
	return c.writeRefs([2]string{to.Branch, to.Commit}, [2]string{"HEAD", "ref: " + to.Branch})
}

// writeRefs writes files of the agent's .git that say what is checked out, and gives it the index
// of the last checkout.
func (c *Clone) writeRefs(refs ...[2]string) error {
	err := c.withGitDir(func(root *os.Root) error {
		for _, f := range refs {
			if err := root.MkdirAll(filepath.Dir(f[0]), 0o777); err != nil { //nolint:gosec // git's own mode, less the umask
				return err
			}
			if err := root.WriteFile(f[0]+".lock", []byte(f[1]+"\n"), 0o666); err != nil { //nolint:gosec // as above
				return err
			}
			if err := root.Rename(f[0]+".lock", f[0]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.giveIndex()
}

// headsLimit is the number of commits of a clone that are looked at.
const headsLimit = 100_000

// Heads are the commits that can be reached from the ids, and neither from another
// such commit nor from one of not. What is no commit, and an empty id, does not count.
func (c *Clone) Heads(ctx context.Context, ids []string, not ...string) ([]string, error) {
	var in strings.Builder
	for _, id := range ids {
		in.WriteString(id + "\n")
	}
	for _, id := range not {
		if id != "" {
			in.WriteString("^" + id + "\n")
		}
	}
	k := c.newCall("rev-list", "--ignore-missing", "--parents", "--max-count="+strconv.Itoa(headsLimit), "--stdin")
	k.Stdin = strings.NewReader(in.String())
	out, err := command.Run(ctx, k)
	if err != nil {
		return nil, fmt.Errorf("%w: its history cannot be read: %v", ErrBroken, err)
	}
	var commits []string
	parents := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		commits = append(commits, f[0])
		for _, id := range f[1:] {
			parents[id] = true
		}
	}
	return slices.DeleteFunc(commits, func(id string) bool { return parents[id] }), nil
}

// Ignored lists what is in the work tree and ignored; a folder of which all is
// ignored is one entry, which ends with a slash.
func (c *Clone) Ignored(ctx context.Context) ([]string, error) { return c.index.ListIgnored(ctx) }

// Trim removes the objects that were made for commits of the clone; what was
// delivered is the lender's.
func (c *Clone) Trim() error {
	if err := os.RemoveAll(c.shadow.Repo.Objects); err != nil {
		return fmt.Errorf("cannot remove the objects of a clone: %w", err)
	}
	return nil
}

// Attach checks out a branch at a commit in the clone, and gives it the index of
// the last checkout. The files stay as they are.
func (c *Clone) Attach(branch, commit string) error {
	name := "refs/heads/" + branch
	return c.writeRefs([2]string{name, commit}, [2]string{"HEAD", "ref: " + name})
}

// pointerLimit is more bytes than a pointer file of LFS has.
const pointerLimit = 1024

// pointer is git's content of a file that LFS keeps elsewhere.
type pointer struct {
	sum  string // SHA-256 of the content
	size int64
}

func readPointer(text string) (pointer, bool) {
	var p pointer
	version := false
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch key {
		case "version":
			version = strings.HasPrefix(value, "https://git-lfs.github.com/spec/")
		case "oid":
			p.sum = strings.TrimPrefix(value, "sha256:")
		case "size":
			p.size, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	return p, version && len(p.sum) == 64
}

// ChangedLFS returns those of the staged paths whose content on disk is not what
// the staged pointer stands for. The others are as a checkout by LFS leaves them.
func (c *Clone) ChangedLFS(ctx context.Context, paths []string) (others []string, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	root, err := os.OpenRoot(c.Top)
	if err != nil {
		return nil, fmt.Errorf("cannot read the work tree: %w", err)
	}
	defer root.Close()
	entries, err := c.index.Entries(ctx)
	if err != nil {
		return nil, err
	}
	staged := make(map[string]string, len(entries))
	for _, e := range entries {
		if e.Mode == ModeFile || e.Mode == ModeExec {
			staged[e.Path] = e.Object
		}
	}
	var ask, ids []string
	for _, name := range paths {
		if id, ok := staged[name]; ok {
			ask, ids = append(ask, name), append(ids, id)
		} else {
			others = append(others, name)
		}
	}
	err = c.shadow.Blobs(ctx, ids, func(i int, size int64, body io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(body, pointerLimit))
		if err != nil {
			return err
		}
		if want, ok := readPointer(string(text)); size >= pointerLimit || !ok || !hasContent(root, ask[i], want) {
			others = append(others, ask[i])
		}
		return nil
	})
	return others, err
}

// hasContent reports whether a file has the content that a pointer stands for.
func hasContent(root *os.Root, name string, want pointer) bool {
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() != want.size {
		return false
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, want.size+1)); err != nil {
		return false
	}
	return hex.EncodeToString(h.Sum(nil)) == want.sum
}
