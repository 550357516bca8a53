package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// DefaultMaxFile is the size in bytes over which a file is left out.
const DefaultMaxFile = 50 << 20

// Options say how files are looked at.
type Options struct {
	// StateDir holds the private indexes and the ignore rules of runs. It must
	// lie outside of the work tree, where no agent writes.
	StateDir string
	// Store is the folder of pawl's own repository, in which snapshots are kept; "" is
	// "store" in StateDir.
	Store string
	// MaxFile is the size in bytes over which a file is left out of
	// snapshots; 0 is DefaultMaxFile.
	MaxFile int64
	// Hide are files and folders, absolute, that no
	// snapshot and no clone gets.
	Hide []string
}

// Checkout is a folder of files that git knows: the user's own work tree, or the clone
// of a task or a run. Its methods may be called from several goroutines and processes;
// those on one run wait for each other.
type Checkout struct {
	Root string // where pawl.yaml is: the top level or a folder in it
	// Repo is the user's repository. Of a clone it has the folder of its files, and the
	// user's rules; the clone's own .git is an agent's, and no git obeys it.
	Repo *git.Repo
	objects
	// Notes say what the end of the machine broke of the snapshots, to people.
	Notes []string

	of       *git.Repo  // the user's repository
	clone    *git.Clone // nil for the user's own work tree
	stateDir string
	maxFile  int64
	hide     []string

	mu     sync.Mutex
	global string // the user's own ignore file; "" is not known yet
	runs   map[string]memory
	last   git.Head // what a clone had checked out when that could be read last
	broken string   // why it cannot be read now; "" it can
}

// objects are what was seen of files: trees, snapshots and their differences.
type objects struct {
	// Store is pawl's own repository, which has the snapshots.
	Store  *git.Repo
	shadow *git.Shadow
}

// Place is where a clone is.
type Place struct {
	Top  string // its top level
	Root string // where work is done: Top, or a folder in it
	Own  string // pawl's folder for it, outside of Top
	Base string // the commit that it was made at; "" is before the first one
	Lent string // where its git reads the user's objects; "" is where they are
}

// Open makes ready to take snapshots of the work tree that root is in. Outside
// of a repository the error is [git.ErrNotRepository], without a git command
// [git.ErrNoGit]: the caller goes on without snapshots and says so.
func Open(ctx context.Context, root string, o Options) (*Checkout, error) {
	root, err := realPath(root)
	if err != nil {
		return nil, err
	}
	repo, err := git.Open(ctx, root)
	if err != nil {
		return nil, err
	}
	return openCheckout(ctx, root, repo, repo, o)
}

// OpenClone makes ready to take snapshots of a clone of the user's repository.
func OpenClone(ctx context.Context, of *git.Repo, at Place, o Options) (*Checkout, error) {
	root, err := realPath(at.Root)
	if err != nil {
		return nil, err
	}
	top, err := realPath(at.Top)
	if err != nil {
		return nil, err
	}
	repo := *of
	repo.Top = top
	c, err := openCheckout(ctx, root, of, &repo, o)
	if err != nil {
		return nil, err
	}
	c.clone, c.last = of.CloneAt(top, at.Own, c.Store.Objects), git.Head{Commit: at.Base}
	c.clone.Lent = at.Lent
	return c, nil
}

func realPath(dir string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return "", fmt.Errorf("cannot open the work tree: %w", err)
	}
	return dir, nil
}

func openCheckout(ctx context.Context, root string, of, repo *git.Repo, o Options) (*Checkout, error) {
	if o.StateDir == "" {
		return nil, errors.New("cannot open the work tree: no folder for its state was given")
	}
	state, err := filepath.Abs(o.StateDir)
	if err != nil {
		return nil, fmt.Errorf("cannot open the work tree: %w", err)
	}
	store, err := of.OpenOwn(ctx, cmp.Or(o.Store, filepath.Join(state, "store")))
	if err != nil {
		return nil, err
	}
	notes, err := store.AfterBoot(ctx, store.Dir)
	if err != nil {
		return nil, err
	}
	shadow, err := git.OpenShadow(ctx, of, store, filepath.Join(state, "git"))
	if err != nil {
		return nil, err
	}
	repo.NoModes = shadow.Repo.NoModes
	return &Checkout{
		Root: root, Repo: repo, objects: objects{store, shadow.Over(repo.Top)}, Notes: notes, of: of, stateDir: state,
		maxFile: cmp.Or(o.MaxFile, DefaultMaxFile), hide: files.NamesBelow(of.Top, o.Hide), runs: map[string]memory{},
	}, nil
}

// Head is what is checked out. What a clone's agent committed comes into the store; a
// clone whose repository cannot be read has what it had last, and [Checkout.Broken]
// says why.
func (c *Checkout) Head(ctx context.Context) (git.Head, error) {
	if c.clone == nil {
		return c.Repo.Head(ctx)
	}
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	head, err := c.clone.Head()
	if err == nil && head.Commit != "" && head.Commit != last.Commit {
		err = c.clone.Import(ctx, c.Store, last.Commit, head.Commit)
	}
	if err != nil && !errors.Is(err, git.ErrBroken) {
		return head, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken = ""; err != nil {
		c.broken = err.Error()
		return c.last, nil
	}
	c.last = head
	return head, nil
}

// Broken is why the repository of a clone could not be read when it was looked at last;
// "" when it could.
func (c *Checkout) Broken() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// Clone is the clone; nil for the user's own work tree.
func (c *Checkout) Clone() *git.Clone { return c.clone }

// isHidden reports whether a path is to be kept from snapshots and clones.
func (c *Checkout) isHidden(p string) bool {
	return slices.ContainsFunc(c.hide, func(h string) bool { return p == h || strings.HasPrefix(p, h+"/") })
}

// rootBelowTop is Root relative to the top level, with slashes; empty if it is the
// top level.
func (c *Checkout) rootBelowTop() string {
	rel, err := filepath.Rel(c.Repo.Top, c.Root)
	if err != nil || rel == "." || strings.HasPrefix(rel, "..") {
		return ""
	}
	return filepath.ToSlash(rel)
}

// IgnoreOwnFolder keeps pawl's folder out of git by a .gitignore in it: no file of the user's
// is changed.
func (c *Checkout) IgnoreOwnFolder() error {
	const name = ".pawl/.gitignore"
	// A power cut may have left an empty file behind.
	if rules, err := files.ReadBelow(c.Root, name, rulesLimit); err == nil && len(rules) > 0 {
		return nil
	}
	if err := files.ReplaceBelow(c.Root, name, []byte("*\n"), 0o644, true); err != nil {
		return fmt.Errorf("cannot write %s: %w", filepath.Join(c.Root, name), err)
	}
	return nil
}

// changesLimit is the number of changed paths that are listed.
const changesLimit = 10000

// Changes lists how one tree or commit differs from another, by path, with
// renames found. It lists at most 10,000; more says that there are others.
func (c *objects) Changes(ctx context.Context, from, to string) (all []git.Change, more bool, err error) {
	return c.shadow.Changes(ctx, from, to, true, changesLimit)
}

// Commits is the number of commits that to has and from has not. Either may
// be empty: no commit.
func (c *objects) Commits(ctx context.Context, from, to string) (int, error) {
	return c.Store.Count(ctx, from, to)
}

// Diff is the patch from one tree or commit to another, of some paths or of all,
// at most limit bytes of it, and whether it was cut. No program of the repository's
// configuration has a part in it; binary files are named only.
func (c *objects) Diff(ctx context.Context, from, to string, limit int, paths ...string,
) (patch string, cut bool, err error) {
	return c.shadow.Diff(ctx, from, to, limit, paths...)
}

// DiffAround is Diff with so many unchanged lines around each change.
func (c *objects) DiffAround(ctx context.Context, from, to string, limit, around int, paths ...string,
) (patch string, cut bool, err error) {
	return c.shadow.DiffAround(ctx, from, to, limit, around, paths...)
}

// FileChanges lists how one tree or commit differs from another, by path with
// renames found and lines counted, at most limit paths; more says that there
// are others.
func (c *objects) FileChanges(ctx context.Context, from, to string, limit int,
) (all []git.FileChange, more bool, err error) {
	return c.shadow.FileChanges(ctx, from, to, limit)
}

// DiffStat counts the files and lines that differ.
func (c *objects) DiffStat(ctx context.Context, from, to string) (git.Stat, error) {
	return c.shadow.DiffStat(ctx, from, to)
}

// LayRules makes scratch the place of a verdict's changes of .git, with the rules of a new clone in it: a gate
// that asks git what is new or changed would else believe what an agent told git to ignore. isClone is false
// for the user's own work tree, which has rules of its own.
func (c *Checkout) LayRules(ctx context.Context, scratch string) (isClone, isFolder bool, err error) {
	if c.clone == nil {
		return false, false, nil
	}
	if err := files.RemoveAll(scratch); err != nil {
		return false, false, err
	}
	isFolder, err = c.clone.LayRules(ctx, filepath.Join(scratch, "up"))
	return err == nil, isFolder, err
}
