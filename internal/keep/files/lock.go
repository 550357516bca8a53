//go:build unix

package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// LockLimit is how long [Lock] waits for another process.
const LockLimit = time.Minute

// Lock opens path, which it makes if need be with the folder that it is in, and
// takes an exclusive lock on it, which ends when the file is closed by everyone
// who inherited it. It gives up when ctx is done, and after [LockLimit].
func Lock(ctx context.Context, path string) (*os.File, error) {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, LockLimit)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", path, err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("cannot lock %s: another pawl holds it: %w", path, ctx.Err()), f.Close())
		case <-tick.C:
		}
	}
}

// Holder names who keeps others from n bytes at at of the file: "process 1234
// (python3)", "another process" where the kind of lock does not say which, ""
// when there is none or it cannot be seen. The locks of fcntl count, not
// [Lock]'s. The caller must have no lock of its own on the file that ends with a
// descriptor (one of fcntl's old kind).
func Holder(path string, at, n int64) string { return holderOf(path, at, n, unix.F_RDLCK) }

// User says in the same words who has any lock there: who only reads counts, too.
func User(path string, at, n int64) string { return holderOf(path, at, n, unix.F_WRLCK) }

func holderOf(path string, at, n int64, kind int16) string {
	f, err := os.Open(path) //nolint:gosec // the path is the caller's choice
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	lock := unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: at, Len: n}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil || lock.Type == unix.F_UNLCK {
		return ""
	}
	if lock.Pid <= 0 {
		return "another process"
	}
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", lock.Pid)) // it may just have ended, or there is no /proc
	if len(name) == 0 {
		return fmt.Sprintf("process %d", lock.Pid)
	}
	return fmt.Sprintf("process %d (%s)", lock.Pid, strings.TrimSpace(string(name)))
}

// noRoom is what is left on a disk that counts as full, in bytes.
const noRoom = 1 << 20

// Free is how many bytes a user may still write on the disk of a folder: none where no
// new file can be made.
func Free(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil || lacksInodes(st) {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil //nolint:gosec // a block size is positive
}

// lacksInodes is true where a file system that counts its files has no room for more.
func lacksInodes(st unix.Statfs_t) bool { return st.Files > 0 && st.Ffree < 10 }

// FreeText says how much of a disk is free.
func FreeText(free uint64, dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err == nil && lacksInodes(st) {
		return "no more files can be made on the disk of " + dir + " (no inodes are free: df -i)"
	}
	return fmt.Sprintf("%d MB are free on the disk of %s", free/1e6, dir)
}

// Full reports whether the disk of a folder has less than a megabyte of room; no
// for one that does not say.
func Full(dir string) bool {
	free, err := Free(dir)
	return err == nil && free < noRoom
}
