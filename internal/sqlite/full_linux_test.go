package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// On a disk without room a commit is refused with a clear error, nothing
// breaks, and it goes on when there is room again.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "small")
	must(t, os.Mkdir(dir, 0o700))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	s := open(t, filepath.Join(dir, "pawl.db"))
	ctx, r := t.Context(), run("r1", "build")
	must(t, s.Create(ctx, r, event("r1", 1, "x"), nobody))
	n, err := fill(ctx, s, r)
	if !errors.Is(err, ErrUnwritable) {
		t.Fatalf("full: %v", err)
	}
	holds(t, s, n)

	// A second pawl finds no room even for what it needs to look.
	if other, err := Open(ctx, filepath.Join(dir, "other", "pawl.db")); err == nil {
		must(t, other.Close())
	} else if !errors.Is(err, ErrUnwritable) {
		t.Errorf("another database on a full disk: %v", err)
	}

	must(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=4m"))
	step := stepOf(r, n+1)
	step.Record = record(int(n+1), 1)
	must(t, s.Commit(ctx, step))
	holds(t, s, n+1)
	must(t, s.Check(ctx))
}
