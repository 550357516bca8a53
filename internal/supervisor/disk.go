package supervisor

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/process"
)

// diskEvery is how often the free room is looked at: a fast disk takes a
// gigabyte or two in that time.
const diskEvery = time.Second

// leastFree is how many bytes must stay free on the disk of the job's folder: a
// full disk takes pawl's own records with it, and everything else on the
// machine. 0 is no such limit.
func leastFree(job Job) uint64 {
	free, err := files.Free(job.Dir)
	if job.Limits.Room <= 0 || err != nil {
		return 0
	}
	return min(uint64(job.Limits.Room), free/10)
}

// watchDisk ends the job before it fills the disk.
func (t *task) watchDisk(ctx context.Context, least uint64) {
	for least > 0 && process.Sleep(ctx, diskEvery) {
		if free, err := files.Free(t.job.Dir); err == nil && free < least {
			const why = "only %.1f MB are free on the disk of %s; free some: what the agent wrote is the first suspect"
			t.endFor(loop.EndedDisk, fmt.Sprintf(why, float64(free)/1e6, t.job.Dir))
			return
		}
	}
}
