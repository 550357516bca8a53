package benchmark

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
	"github.com/pawl-dev/pawl/internal/do/workspace"
)

const samples = 9

// perSecond repeats work, which does n things, and returns the median of how
// many are done in a second of the processor, the garbage collector's share
// included.
func perSecond(n float64, work func()) float64 {
	work()
	rates := make([]float64, samples)
	for i := range rates {
		count := 0
		began, used := time.Now(), processorTime()
		for time.Since(began) < 200*time.Millisecond {
			work()
			count++
		}
		rates[i] = n * float64(count) / (processorTime() - used).Seconds()
	}
	return median(rates)
}

// BenchmarkDecisions is loop.Step in runs of a thousand iterations, one in
// three failing.
func BenchmarkDecisions(b *testing.B) {
	for b.Loop() {
		report(b, "loop decisions in a second", perSecond(1000, func() { thousand(b) }), "/s", atLeast(200_000))
	}
}

func thousand(b *testing.B) {
	p := loop.Policy{
		Kind: loop.Procedure, MaxIterations: 1001, Stuck: 5, MaxWaits: 5, MaxWait: 6 * time.Hour,
		Costs: loop.Costs{MaxCost: loop.NoLimit, MaxIterationCost: loop.NoLimit, MaxIterationCalls: loop.NoLimit}, Workers: loop.Workers{Agent: "claude"},
	}
	at := time.Unix(1_700_000_000, 0)
	good := loop.Record{Verified: true, Progress: -1, Score: 1000, TreeKnown: true, TreeBefore: "a", TreeAfter: "b", Commits: 1}
	bad := good
	bad.Exit.Code, bad.TreeAfter = 1, "a"
	bad.Failure = &failure.Analysis{Class: failure.TestFailure, Kind: failure.Work, Fingerprint: "x", Summary: "tests failed"}
	s, c := loop.Step(loop.State{}, loop.Event{Kind: loop.Started, At: at, Policy: &p})
	for i := range 1000 {
		r := &good
		if i%3 == 0 {
			r = &bad
		}
		r.Number = c.Iteration
		s, c = loop.Step(s, loop.Event{Kind: loop.IterationEnded, At: at, For: c.Seq, Record: r})
	}
	if s.Iteration != 1000 || c.Kind != loop.Run {
		b.Fatalf("after 1000 decisions: iteration %d, %s (%s)", s.Iteration, c.Kind, c.Why)
	}
}

// BenchmarkFailure is what is done with the output of a failed gate.
func BenchmarkFailure(b *testing.B) {
	line := "ok  \texample.com/calc\t0.01s\n[10:20:30] compiled module 17 of 300 in 12 ms\n"
	output := strings.Repeat(line, 1_000_000/len(line)) + "--- FAIL: TestA (0.00s)\n    a_test.go:3: got 1, want 2\nFAIL\n"
	choose := func() {
		a := failure.Analyse(failure.Evidence{Source: "gate", ExitCode: 1, Output: output})
		if a.Class != failure.TestFailure {
			b.Fatalf("classified as %s", a.Class)
		}
		strategy.Next(&strategy.Situation{Current: strategy.Default, Class: a.Class})
	}
	for b.Loop() {
		rate := perSecond(1, choose)
		report(b, "failure classification", rate*float64(len(output))/1e6, "MB/s", nil)
		report(b, "a strategy for 1 MB of output", 1000/rate, "ms", atMost(100))
	}
}

// BenchmarkCheckpoint is a snapshot of a tree of 5,000 files after an agent
// changed twenty of them and added one.
func BenchmarkCheckpoint(b *testing.B) {
	const rounds = 21
	dir := diskDir(b)
	p := newProject(b, dir, "large", "exit 0")
	p.fill(5000)
	p.commit()
	ctx, cancel := context.WithTimeout(context.Background(), runBound)
	defer cancel()
	c, err := workspace.Open(ctx, p.dir, workspace.Options{StateDir: p.state})
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	take := func() workspace.Snapshot {
		n++
		s, err := c.Snapshot(ctx, "r1", n, workspace.SnapshotOptions{})
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	last := take()
	for b.Loop() {
		wall, _ := interleave(rounds, 1, func() cost {
			for i := range 20 {
				p.write(fmt.Sprintf("d%02d/f%02d", i*2, i), fmt.Sprintf("edit %d\n", n))
			}
			p.write("new", fmt.Sprint(n))
			began := time.Now()
			s := take()
			wall := time.Since(began)
			if s.Tree == last.Tree {
				b.Fatal("the snapshot does not show the edits")
			}
			last = s
			return cost{wall: wall}
		})
		report(b, "snapshot of 5,000 files", wall[0]/1000, "ms", atMost(200))
	}
}
