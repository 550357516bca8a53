package supervisor

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// diskEvery is how often the free room is looked at: a fast disk takes a
// gigabyte or two in that time.
const diskEvery = time.Second

// diskGuard ends a job before it fills the disk of its folder: a full disk
// takes pawl's own records with it, and everything else on the machine.
type diskGuard struct {
	dir    string
	least  uint64 // bytes that must stay free
	ticker *time.Ticker
}

// newDiskGuard is one that never ticks when the job has no such limit.
func newDiskGuard(job Job) *diskGuard {
	g := &diskGuard{dir: job.Dir}
	if job.Limits.Room <= 0 {
		return g
	}
	free, ok := freeRoom(job.Dir)
	if !ok {
		return g
	}
	g.least = min(uint64(job.Limits.Room), free/10)
	g.ticker = time.NewTicker(diskEvery)
	return g
}

func (g *diskGuard) tick() <-chan time.Time {
	if g.ticker == nil {
		return nil
	}
	return g.ticker.C
}

// look says why the job must end; "" when there is room.
func (g *diskGuard) look() string {
	free, ok := freeRoom(g.dir)
	if !ok || free >= g.least {
		return ""
	}
	return fmt.Sprintf("only %.1f MB are free on the disk of %s; free some: what the agent wrote is the first suspect", float64(free)/1e6, g.dir)
}

func (g *diskGuard) stop() {
	if g.ticker != nil {
		g.ticker.Stop()
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
