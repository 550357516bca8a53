package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/process"
)

// runRefs runs a command that moves refs. Git itself waits ten seconds for the
// lock of a ref. Is it there then, who has it may be dead: git was killed. Such
// locks are removed if
//
//   - they are those of refs, of HEAD or of packed-refs, and files of this user;
//   - no git works in the repository after they were seen, so that nobody holds them.
//
// The lock of an index is never removed: there may be something in it. Time is
// what git waits, and no clock.
func (r *Repo) runRefs(ctx context.Context, c call) error {
	_, err := run(ctx, c)
	if lockIn(err) == "" {
		return err
	}
	seen := r.refLocks()
	holders, ok := process.Users("git", r.Top, r.Common, r.Dir)
	if !ok || len(holders) > 0 || seen[lockIn(err)] == nil || !c.again() {
		return err
	}
	now := r.refLocks()
	for path, was := range seen {
		if same(was, now[path]) {
			_ = os.Remove(path) // or git says that it is there
		}
	}
	_, err = run(ctx, c)
	return err
}

// lockIn is the lock that a command failed at; empty for any other error.
func lockIn(err error) string {
	var e *Error
	if !errors.As(err, &e) {
		return ""
	}
	_, path, _ := strings.Cut(e.Stderr, "Unable to create '")
	path, _, there := strings.Cut(path, "': File exists")
	if !there {
		return ""
	}
	return path
}

// refLocks are the locks of refs that are files of this user, by path.
func (r *Repo) refLocks() map[string]os.FileInfo {
	locks := map[string]os.FileInfo{}
	add := func(path string) {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() {
			return
		}
		if own, ok := info.Sys().(*syscall.Stat_t); ok && int(own.Uid) == os.Geteuid() {
			locks[path] = info
		}
	}
	for _, dir := range []string{r.Dir, r.Common} {
		add(filepath.Join(dir, "HEAD.lock"))
		add(filepath.Join(dir, "packed-refs.lock"))
		_ = filepath.WalkDir(filepath.Join(dir, "refs"), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".lock") {
				add(path)
			}
			return nil // what cannot be read is left
		})
	}
	return locks
}

// LeftLocks are the locks of refs, index and configuration that came to be after a time
// and that nobody can hold: no git works in the repository. Names are paths; a folder
// is in git's way as a file is. Pawl's own locks do not count.
func (r *Repo) LeftLocks(since time.Time) []string {
	var left []string
	add := func(path string) {
		at, err := files.Changed(path)
		if err == nil && !at.Before(since.Add(-clockStep)) && !ownLock(path) {
			left = append(left, path)
		}
	}
	for _, dir := range slices.Compact([]string{r.Dir, r.Common}) {
		for _, name := range []string{"index", "HEAD", "packed-refs", "config", "config.worktree", "shallow"} {
			add(filepath.Join(dir, name+".lock"))
		}
		_ = filepath.WalkDir(filepath.Join(dir, "refs"), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".lock") {
				return nil //nolint:nilerr // what cannot be read is left
			}
			add(path)
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		})
	}
	if len(left) == 0 {
		return nil
	}
	if holders, ok := process.Users("git", r.Top, r.Common, r.Dir); !ok || len(holders) > 0 {
		return nil
	}
	return left
}

// clockStep is more than the clock of a file system is behind.
const clockStep = time.Second

// ownLock is whether a lock is a pawl's.
func ownLock(path string) bool {
	dir, name := filepath.Split(path)
	data, err := files.ReadBelow(dir, name, int64(len(lockMark)))
	return err == nil && string(data) == lockMark
}

// same reports whether a lock was not given back and taken again.
func same(was, is os.FileInfo) bool {
	return was != nil && is != nil && os.SameFile(was, is) && was.ModTime().Equal(is.ModTime()) && was.Size() == is.Size()
}
