package checkout

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/do/git"
)

// CheckTakesWork refuses a checkout that no work can be delivered into as it is: something is half
// done in it, it cannot be written, or another program has its index and does not give it back
// within some seconds.
func CheckTakesWork(ctx context.Context, r *git.Repo) error {
	if busy := r.Busy(); busy != "" {
		end := "--abort"
		if busy == "bisect" {
			end = "reset"
		}
		return fault.Refuse("a %s is in progress in %s, so no work can be delivered", busy, r.Top).
			Hint("Finish it, or abort it: git %s %s", busy, end).
			Hint("Or have work wait until you apply it: run: {deliver: ask} in pawl.yaml")
	}
	if err := CheckWritable(r); err != nil {
		return err
	}
	_, err := WhenUnlocked(ctx, func() (*FastForward, error) { return nil, reasonIndexLocked(r) })
	return err
}

// reasonIndexLocked is [ErrIndexLocked] where another program has the index.
func reasonIndexLocked(r *git.Repo) error {
	name := r.Index + ".lock"
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) || isPawlLock(name) {
		return nil
	}
	return describeLocked(r)
}

// CheckWritable refuses a repository in which this user could not store objects, move branches
// or write files: root may have left some of it there, or its disk may be read-only.
func CheckWritable(r *git.Repo) error {
	for _, path := range writtenPaths(r) {
		err := syscall.Access(path, 2) // to write
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		e := fault.Refuse("cannot write %s, so no work could get into the repository: %v", path, err)
		var st syscall.Stat_t
		switch me := os.Getuid(); {
		case errors.Is(err, syscall.EROFS):
			return e.Hint("Mount it writable, or work in a clone elsewhere: git clone %s", strconv.Quote(r.Top))
		case syscall.Stat(path, &st) == nil && int(st.Uid) != me:
			return e.Hint("It belongs to user %d, and you are user %d. Make it yours: sudo chown -R %d %s",
				st.Uid, me, me, strconv.Quote(path))
		}
		return e.Hint("Make it writable: chmod -R u+w %s", strconv.Quote(path))
	}
	return nil
}

// writtenPaths lists the top of the work tree, and what in the git directory holds objects, refs
// and their logs: whatever the work is, a delivery or landing may write there.
func writtenPaths(r *git.Repo) []string {
	paths, logs := []string{r.Top, r.Dir, r.Common}, filepath.Join(r.Common, "logs")
	for _, below := range []string{r.Objects, filepath.Join(r.Common, "refs"), logs} {
		_ = filepath.WalkDir(below, func(path string, d fs.DirEntry, _ error) error {
			if d == nil {
				return nil // there is none yet
			}
			if d.IsDir() || below == logs {
				paths = append(paths, path)
			}
			if below == r.Objects && path != below && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		})
	}
	return paths
}
