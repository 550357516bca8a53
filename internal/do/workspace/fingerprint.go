package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/git"
)

const (
	hookLimit  = 1 << 20 // bytes of a hook that count, with its size
	hooksLimit = 10000   // files of the hooks folder that are looked at
)

// Fingerprint stands for what in a git directory can make git run a program or
// hide something. A part that is not there is "".
type Fingerprint struct {
	Hooks      string `json:"hooks"`      // names, kinds, modes and content of the hooks folder
	Config     string `json:"config"`     // configuration of the repository and the work tree
	Attributes string `json:"attributes"` // info/attributes
	// Places are the names that lead git elsewhere; "" is not known. Head is the text
	// of HEAD. These do not make two differ: see [Checkout.PutBack].
	Places string `json:"places,omitempty"`
	Head   string `json:"head,omitempty"`
	// Replace are the refs by which git reads one object in the place of another; ""
	// is not known.
	Replace string `json:"replace,omitempty"`
	// Marks are the entries of the index whose files git does not look at.
	Marks string `json:"marks,omitempty"`
}

// Differs names the parts in which two differ, for a person.
func (f Fingerprint) Differs(other Fingerprint) []string {
	var parts []string
	if f.Hooks != other.Hooks {
		parts = append(parts, "git hooks")
	}
	if f.Config != other.Config {
		parts = append(parts, "git configuration")
	}
	if f.Attributes != other.Attributes {
		parts = append(parts, "info/attributes")
	}
	return parts
}

// ConfigFingerprint reads the fingerprint of the repository. The settings of
// single branches (branch.<name>.*), which a mere "git push -u" or "git switch"
// writes, do not count. The hooks folder is the one that git would use.
func (c *Checkout) ConfigFingerprint(ctx context.Context) (Fingerprint, error) {
	var f Fingerprint
	settings, err := c.Repo.Config(ctx)
	hooks := filepath.Join(c.Repo.Common, "hooks")
	if err != nil {
		if ctx.Err() != nil {
			return f, err
		}
		// Git cannot read it: then the bytes stand for it.
		f.Config = hashFiles(filepath.Join(c.Repo.Common, "config"), filepath.Join(c.Repo.Dir, "config.worktree"))
	} else {
		f.Config = hashSettings(settings)
		hooks = c.hooksFolder(settings)
	}
	f.Attributes = hashFiles(filepath.Join(c.Repo.Common, "info", "attributes"))
	if f.Hooks, err = hashFolder(ctx, hooks); err != nil {
		return f, err
	}
	found, err := c.places(ctx, settings)
	if err != nil {
		return f, err
	}
	f.Places, f.Head, f.Marks = packPlaces(found), c.head(), c.marked()
	f.Replace, err = c.replacing(ctx)
	return f, err
}

// marked are the marks of the index as it was last seen.
func (c *Checkout) marked() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.marks
}

// hooksFolder is core.hooksPath, or the usual place. The value that pawl's own
// calls set is not looked at.
func (c *Checkout) hooksFolder(settings []git.Setting) string {
	dir := filepath.Join(c.Repo.Common, "hooks")
	for _, s := range settings {
		if s.Key != "core.hookspath" || s.Scope == "command" || s.Value == "" {
			continue
		}
		dir = named(s.Value, c.Repo.Top)
	}
	return dir
}

func hashSettings(all []git.Setting) string {
	h := sha256.New()
	for _, s := range all {
		own := s.Scope == "local" || s.Scope == "worktree"
		if own && !strings.HasPrefix(s.Key, "branch.") {
			fmt.Fprintf(h, "%s\x00%s\x00%s\x00", s.Scope, s.Key, s.Value)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func hashFiles(names ...string) string {
	h := sha256.New()
	some := false
	for _, name := range names {
		info, err := os.Lstat(name)
		if err != nil {
			continue
		}
		some = true
		fmt.Fprintf(h, "%s\x00", filepath.Base(name))
		hashNode(h, name, info)
	}
	if !some {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// hashNode adds what a path is: kind, mode, and content or target.
func hashNode(h hash.Hash, name string, info fs.FileInfo) {
	fmt.Fprintf(h, "%v %d\x00", info.Mode(), info.Size())
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, _ := os.Readlink(name)
		fmt.Fprintf(h, "%s\x00", target)
		if to, err := os.Stat(name); err == nil && to.Mode().IsRegular() {
			hashContent(h, name)
		}
	case info.Mode().IsRegular():
		hashContent(h, name)
	}
}

func hashContent(h hash.Hash, name string) {
	f, err := os.Open(name)
	if err != nil {
		fmt.Fprint(h, "unreadable\x00")
		return
	}
	defer f.Close()
	if _, err := io.Copy(h, io.LimitReader(f, hookLimit)); err != nil {
		fmt.Fprint(h, "unreadable\x00")
	}
}

// hashFolder hashes a folder with all below it; "" if it is not there or empty.
func hashFolder(ctx context.Context, dir string) (string, error) {
	var names []string
	// The folder itself may be a link: then the one that it leads to counts.
	if to, err := filepath.EvalSymlinks(dir); err == nil {
		dir = to
	}
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return nil //nolint:nilerr // what cannot be read is not a hook that git could run
		}
		if names = append(names, name); len(names) > hooksLimit {
			return fmt.Errorf("cannot check the git hooks: %s has over %d files", dir, hooksLimit)
		}
		return ctx.Err()
	})
	if err != nil || len(names) == 0 {
		return "", err
	}
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("cannot check the git hooks: %w", err)
		}
		if info.IsDir() {
			fmt.Fprintf(h, "%s\x00dir\x00", name)
			continue
		}
		fmt.Fprintf(h, "%s\x00", name)
		hashNode(h, name, info)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
