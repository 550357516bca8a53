package supervisor

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/loop"
)

// diskEvery is how often the free room is looked at: a fast disk takes a
// gigabyte or two in that time.
const diskEvery = time.Second

// leastFree is how many bytes must stay free on the disk of the job's folder: a
// full disk takes pawl's own records with it, and everything else on the
// machine. 0 is no such limit.
func leastFree(job Job) uint64 {
	free, ok := freeRoom(job.Dir)
	if job.Limits.Room <= 0 || !ok {
		return 0
	}
	return min(uint64(job.Limits.Room), free/10)
}

// watchDisk ends the job before it fills the disk.
func (t *task) watchDisk(ctx context.Context, least uint64) {
	for least > 0 && sleep(ctx, diskEvery) {
		if free, ok := freeRoom(t.job.Dir); ok && free < least {
			const why = "only %.1f MB are free on the disk of %s; free some: what the agent wrote is the first suspect"
			t.endFor(loop.EndedDisk, fmt.Sprintf(why, float64(free)/1e6, t.job.Dir))
			return
		}
	}
}

// freeRoom is what a user may still write on the disk of a folder.
func freeRoom(dir string) (bytes uint64, ok bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true //nolint:gosec // its type differs between systems
}
