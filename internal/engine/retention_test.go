package engine

import (
	"strings"
	"testing"
	"time"
)

// Snapshots go some time after the end of their run, when another run ends.
func TestSnapshotsOfOldRunsAreDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.o.Policy.MaxIterations = 1
	w.within().start()
	first := w.run()
	w.git("update-ref", "refs/pawl/runs/unknown/0", "HEAD")
	w.within().start()
	if refs := w.git("for-each-ref", "refs/pawl/runs"); !strings.Contains(refs, first) {
		t.Fatalf("without a limit the first run's snapshots are gone:\n%s", refs)
	}
	h := w.within()
	h.opts.Plan.SnapshotKeep = time.Nanosecond
	h.start()
	refs := w.git("for-each-ref", "refs/pawl/runs")
	if strings.Contains(refs, first) || !strings.Contains(refs, w.run()) || !strings.Contains(refs, "unknown") {
		t.Errorf("of %s, the last run %s and an unknown one these are kept:\n%s", first, w.run(), refs)
	}
}
