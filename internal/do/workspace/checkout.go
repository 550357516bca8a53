package workspace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// DefaultMaxFile is the size in bytes over which a file is left out.
const DefaultMaxFile = 50 << 20

// Options say how a checkout is used.
type Options struct {
	// StateDir holds the private indexes and the ignore rules of runs. It must
	// lie outside of the work tree, where no agent writes.
	StateDir string
	// MaxFile is the size in bytes over which a file is left out of
	// snapshots; 0 is DefaultMaxFile.
	MaxFile int64
}

// Checkout is the user's own work tree. Its methods may be called from several
// goroutines and processes; those on one run wait for each other.
type Checkout struct {
	Root string    // where pawl.yaml is: the top level of the work tree or a folder in it
	Repo *git.Repo // the repository

	shadow   *git.Shadow
	stateDir string
	maxFile  int64

	mostNames int // see placesLimit

	mu       sync.Mutex
	runs     map[string]memory
	unmade   map[string]bool // refs that are recorded and not made yet
	links    []string        // nested repositories in the user's index, now or before
	folded   []string        // folders of its files, now or before
	linksKey string          // state of the index file then
	marks    string          // see markOf: what it has of them
	unsafe   bool            // it has an entry that no checkout may write
	base     string          // commit that was checked out when refs were first looked at
	seen     map[string]bool // what refs were at
	moved    []string        // nested repositories in what refs were moved to
	refsKey  string          // state of the files of refs then
	refsWere map[string]string
	refsTold []string // what became of refs and was not asked for yet
}

// Open makes ready to take snapshots of the work tree that root is in. Outside
// of a repository the error is [git.ErrNotRepository], without a git command
// [git.ErrNoGit]: the caller goes on without snapshots and says so.
func Open(ctx context.Context, root string, o Options) (*Checkout, error) {
	if o.StateDir == "" {
		return nil, errors.New("cannot open the work tree: no folder for its state was given")
	}
	o.MaxFile = cmp.Or(o.MaxFile, DefaultMaxFile)
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, fmt.Errorf("cannot open the work tree: %w", err)
	}
	if root, err = filepath.Abs(root); err != nil {
		return nil, fmt.Errorf("cannot open the work tree: %w", err)
	}
	repo, err := git.Open(ctx, root)
	if err != nil {
		return nil, err
	}
	state, err := filepath.Abs(o.StateDir)
	if err != nil {
		return nil, fmt.Errorf("cannot open the work tree: %w", err)
	}
	shadow, err := git.OpenShadow(ctx, repo, filepath.Join(state, "git"))
	if err != nil {
		return nil, err
	}
	return &Checkout{
		Root: root, Repo: repo, shadow: shadow, stateDir: state, maxFile: o.MaxFile, runs: map[string]memory{},
		mostNames: placesLimit,
	}, nil
}

// inside is Root relative to the top level, with slashes; empty if it is the
// top level.
func (c *Checkout) inside() string {
	rel, err := filepath.Rel(c.Repo.Top, c.Root)
	if err != nil || rel == "." || strings.HasPrefix(rel, "..") {
		return ""
	}
	return filepath.ToSlash(rel)
}

// Exclude adds pawl's folder to the repository's info/exclude, once. It keeps
// what the file has and never edits a .gitignore. Linked worktrees share the
// file; callers at the same time wait for each other.
func (c *Checkout) Exclude(ctx context.Context) error {
	rule := "/.pawl/"
	if dir := c.inside(); dir != "" {
		rule = "/" + escapeGlob(dir) + "/.pawl/"
	}
	if err := c.addExclude(ctx, rule); err != nil {
		return fmt.Errorf("cannot add %s to %s: %w", rule, c.Repo.Exclude, err)
	}
	return nil
}

// hasRule reports whether a rule is a line of a file.
func hasRule(text []byte, rule string) bool {
	for line := range bytes.Lines(text) {
		if strings.TrimRight(string(line), " \t\r\n") == rule {
			return true
		}
	}
	return false
}

func (c *Checkout) addExclude(ctx context.Context, rule string) error {
	path := c.Repo.Exclude
	name, below := files.Below(c.Repo.Common, path)
	if !below {
		return errors.New("it is outside of the git folder")
	}
	// An agent may hold the lock, so it is not waited for without need.
	if old, err := files.ReadBelow(c.Repo.Common, name, rulesLimit); err == nil && hasRule(old, rule) {
		return nil
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // git's own mode for this folder
		return err
	}
	lock, err := files.Lock(ctx, dir, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer lock.Close()
	mode := os.FileMode(0o644)
	if info, err := os.Lstat(path); err == nil {
		if !info.Mode().IsRegular() {
			return errors.New("it is not a plain file")
		}
		mode = info.Mode().Perm()
	}
	old, err := files.ReadBelow(c.Repo.Common, name, rulesLimit)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if hasRule(old, rule) {
		return nil
	}
	if len(old) > 0 && old[len(old)-1] != '\n' {
		old = append(old, '\n')
	}
	return files.ReplaceBelow(c.Repo.Common, name, append(old, rule+"\n"...), mode, true)
}

// changesLimit is the number of changed paths that are listed.
const changesLimit = 10000

// Changes lists how one tree or commit differs from another, by path, with
// renames found. It lists at most 10,000; more says that there are others.
func (c *Checkout) Changes(ctx context.Context, from, to string) (all []git.Change, more bool, err error) {
	return c.shadow.Changes(ctx, from, to, true, changesLimit)
}

// Commits is the number of commits that to has and from has not. Either may
// be empty: no commit.
func (c *Checkout) Commits(ctx context.Context, from, to string) (int, error) {
	return c.Repo.Count(ctx, from, to)
}

// Diff is the patch from one tree or commit to another, of some paths or of all,
// at most limit bytes of it, and whether it was cut. No program of the repository's
// configuration has a part in it; binary files are named only.
func (c *Checkout) Diff(ctx context.Context, from, to string, limit int, paths ...string,
) (patch string, cut bool, err error) {
	return c.shadow.Diff(ctx, from, to, limit, paths...)
}

// FileChanges lists how one tree or commit differs from another, by path with
// renames found and lines counted, at most limit paths; more says that there
// are others.
func (c *Checkout) FileChanges(ctx context.Context, from, to string, limit int,
) (all []git.FileChange, more bool, err error) {
	return c.shadow.FileChanges(ctx, from, to, limit)
}

// DiffStat counts the files and lines that differ.
func (c *Checkout) DiffStat(ctx context.Context, from, to string) (git.Stat, error) {
	return c.shadow.DiffStat(ctx, from, to)
}
