package workspace

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// benchmarkSnapshot takes one snapshot an iteration, each after the edits of
// an agent: files that change, and one that comes and goes.
func benchmarkSnapshot(b *testing.B, files, edits int) {
	p := newPlace(b)
	many(files, p)
	p.git("add", "-A")
	p.git("commit", "-qm", "many")
	p.snap(0)
	n := 0
	var took []time.Duration
	for b.Loop() {
		n++
		for i := range edits {
			p.write(fmt.Sprintf("d%02d/f%02d", i*7%(files/100), i), fmt.Sprintf("edit %d\n", n))
		}
		if edits > 0 && n%2 == 0 {
			p.write("new", fmt.Sprint(n))
		} else {
			p.remove("new")
		}
		begin := time.Now()
		p.snap(n)
		took = append(took, time.Since(begin))
	}
	reportMedian(b, took)
}

// reportMedian adds a figure that a busy machine disturbs less than the mean.
func reportMedian(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
}

func BenchmarkSnapshot100(b *testing.B)          { benchmarkSnapshot(b, 100, 3) }
func BenchmarkSnapshot100Unchanged(b *testing.B) { benchmarkSnapshot(b, 100, 0) }

func BenchmarkSnapshot5000(b *testing.B)          { benchmarkSnapshot(b, 5000, 20) }
func BenchmarkSnapshot5000Unchanged(b *testing.B) { benchmarkSnapshot(b, 5000, 0) }

// BenchmarkFirstSnapshot5000 is the start of a run: the private index is made
// from the user's.
func BenchmarkFirstSnapshot5000(b *testing.B) {
	p := newPlace(b)
	many(5000, p)
	p.git("add", "-A")
	p.git("commit", "-qm", "many")
	n := 0
	for b.Loop() {
		n++
		if _, err := p.c.Snapshot(b.Context(), fmt.Sprintf("r%d", n), 0, SnapshotOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// benchmarkIteration is all that the engine asks for in one iteration: a look
// before the agent, its edits, and a snapshot with the changes since then and since the
// run's start.
func benchmarkIteration(b *testing.B, files, edits int) {
	p := newPlace(b)
	many(files, p)
	p.git("add", "-A")
	p.git("commit", "-qm", "many")
	first := p.snap(0)
	n := 0
	var took []time.Duration
	for b.Loop() {
		n++
		begin := time.Now()
		before, err := p.c.See(b.Context(), "r1")
		if err != nil {
			b.Fatal(err)
		}
		spent := time.Since(begin)
		for i := range edits {
			p.write(fmt.Sprintf("d%02d/f%02d", i*7%(files/100), i), fmt.Sprintf("edit %d\n", n))
		}
		begin = time.Now()
		after := p.snap(n)
		for _, from := range []string{before.Tree, first.Tree} {
			if _, _, err := p.c.Changes(b.Context(), from, after.Tree); err != nil {
				b.Fatal(err)
			}
		}
		took = append(took, spent+time.Since(begin))
	}
	reportMedian(b, took)
}

func BenchmarkIteration100(b *testing.B)  { benchmarkIteration(b, 100, 3) }
func BenchmarkIteration5000(b *testing.B) { benchmarkIteration(b, 5000, 20) }
