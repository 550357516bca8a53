package merge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// BenchmarkLandings lands tasks that do not conflict, without gates, in batches
// of the default size, with the target checked out. One operation is one landing.
func BenchmarkLandings(b *testing.B) {
	r := newRig(b)
	commits := r.many(b.N)
	var drafts []board.Draft
	for i := range commits {
		drafts = append(drafts, board.Draft{Case: board.Case{Type: board.Task, Title: fmt.Sprintf("Task %d", i)}})
	}
	cases, err := r.store.AddCases(b.Context(), drafts, board.Person, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	q := r.queue()
	for i, c := range cases {
		r.add(q, c.ID, commits[i], c.Title)
	}
	b.ResetTimer()
	r.drain(q)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "landings/s")
	if left := r.left(); len(left) > 0 {
		b.Fatalf("%d are left: %s", len(left), left[0])
	}
}

// many makes commits on the target, each of which adds a file of its own.
func (r *rig) many(n int) []string {
	r.t.Helper()
	base := r.git("rev-parse", "main")
	var in strings.Builder
	for i := range n {
		text := fmt.Sprintf("file %d\n", i)
		fmt.Fprintf(&in, "commit refs/keep/%d\ncommitter Ann <ann@example.com> 1770372000 +0000\ndata 4\nmake\nfrom %s\nM 100644 inline d%d/f%d.txt\ndata %d\n%s\n", i, base, i%10, i, len(text), text)
	}
	gittest.Import(r.t, r.dir, in.String())
	commits := make([]string, n)
	for i := range n {
		commits[i] = r.git("rev-parse", fmt.Sprintf("refs/keep/%d", i))
	}
	return commits
}
