package supervisor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// smallDisk is a disk of 20 MB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=20m"); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// An agent that fills the disk is ended while there is room for pawl's records.
func TestADiskIsNotFilled(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	job := r.job("1", "head -c 19000000 /dev/zero >fill; echo filled; sleep 1000")
	job.Dir, job.Limits.Room = smallDisk(t), 1<<40
	got := must(t)(c.Run(context.Background(), job, nil))
	if got.Exit.Ended != loop.EndedDisk || !strings.Contains(got.Exit.Why, "MB are free on the disk of "+job.Dir) {
		t.Errorf("got %+v", got.Exit)
	}
}

// A job on a disk with little room is not ended for what was so before.
func TestADiskThatWasNearlyFull(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	dir := smallDisk(t)
	if err := os.WriteFile(filepath.Join(dir, "old"), make([]byte, 19_000_000), 0o600); err != nil {
		t.Fatal(err)
	}
	job := r.job("1", "sleep 1.5; echo done >small")
	job.Dir, job.Limits.Room = dir, 1<<40
	got := must(t)(c.Run(context.Background(), job, nil))
	if got.Exit.Ended != loop.NotEnded || got.Exit.Code != 0 {
		t.Errorf("got %+v", got.Exit)
	}
}
