package benchmark

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/test/reading"
)

// BenchmarkMemory is what an agent that prints 1 GB costs in private memory of
// pawl and its supervisor, over an agent that prints a line.
func BenchmarkMemory(b *testing.B) {
	dir := diskDir(b)
	quiet := newProject(b, dir, "quiet", "echo a line; sleep 1")
	loud := newProject(b, dir, "loud", "yes 'the quick brown fox jumps over the lazy dog, and so on until the line is long enough to be one' | head -c 1000000000")
	single := newProject(b, dir, "single", "head -c 1000000000 /dev/zero | tr '\\0' x")
	for b.Loop() {
		// One round: a peak is no matter of a busy machine.
		base := quiet.peak()
		report(b, "memory, quiet agent", base, "MiB", nil)
		report(b, "memory, 1 GB in lines, adds", loud.peak()-base, "MiB", atMost(40))
		report(b, "memory, 1 GB in one line, adds", single.peak()-base, "MiB", atMost(40))
	}
}

// endless lets an agent print what it likes: the stream is the same again and
// again, and its totals are absurd.
const endless = `
loop: {repeat_threshold: 0, max_empty_calls: 0, max_retries: 0, retry_timeout: 0, max_turns: 0, max_output: 0}
safety: {limits: {permissive: {max_cost_per_iteration: 1000000, max_total_cost: 1000000, max_api_calls_per_iteration: 1000000000}}}
`

// BenchmarkStreamMemory is what 1 GB of stream costs in private memory of pawl
// and its supervisor. BenchmarkMemory has the same for text. A gigabyte takes
// up to a minute, so the formats are those of the programs that the end-to-end
// tests drive; PAWL_BENCH_FORMATS=all measures every one.
func BenchmarkStreamMemory(b *testing.B) {
	dir := diskDir(b)
	names := []string{"claude", "codex", "gemini", "opencode"}
	if os.Getenv("PAWL_BENCH_FORMATS") == "all" {
		names = slices.DeleteFunc(formats(), func(name string) bool { return name == "text" })
	}
	for _, name := range names {
		b.Run(name, func(b *testing.B) { streamMemory(b, dir, name) })
	}
}

func streamMemory(b *testing.B, dir, name string) {
	b.Helper()
	quiet := newProject(b, dir, name+"-quiet", "echo a line; sleep 1")
	p := newProject(b, dir, name, fmt.Sprintf("yes \"$(cat %q)\" | head -c 1000000000", filepath.Join(dir, name, "stream")))
	var stream strings.Builder
	for _, l := range reading.Stream(name) {
		stream.Write(l)
		stream.WriteByte('\n')
	}
	p.write("../stream", stream.String())
	p.write("pawl.yaml", fmt.Sprintf("agents:\n  noop: {command: [%q], output: %s}\nprocedures:\n  noop: {agent: noop, act: [{content: do nothing}]}\n", p.agentPath, name)+endless)
	for b.Loop() {
		report(b, "memory, 1 GB of "+name+", adds", p.peak()-quiet.peak(), "MiB", atMost(40))
	}
}

// peak runs one iteration and returns the most private memory, in MiB, that
// pawl and its supervisor had together when they were looked at.
func (p *project) peak() float64 {
	p.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runBound)
	defer cancel()
	return p.peakOf(p.command(ctx, 1))
}

// peakOf is the peak of a command; how it ends is for it to say: 0, or 3 at a limit.
func (p *project) peakOf(c *exec.Cmd) float64 {
	p.b.Helper()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		p.b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	most, both := 0, false
	for {
		select {
		case err := <-ended:
			if err != nil && c.ProcessState.ExitCode() != 3 || !both {
				p.b.Fatalf("%v: %v (supervisor seen: %v)\n%s", c.Args, err, both, out.String())
			}
			return float64(most) / 1024
		case <-tick.C:
			sum := private(c.Process.Pid)
			for _, pid := range children(c.Process.Pid) {
				if n := private(pid); n > 0 {
					sum += n
					both = true
				}
			}
			most = max(most, sum)
		}
	}
}

// children are the direct ones: the supervisor.
func children(pid int) []int {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var pids []int
	for _, f := range files {
		data, _ := os.ReadFile(f)
		for word := range strings.FieldsSeq(string(data)) {
			var n int
			if _, err := fmt.Sscan(word, &n); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// private is the memory in KiB that a process shares with nobody; 0 when it
// has gone.
func private(pid int) int {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(data)) {
		var n int
		if _, err := fmt.Sscanf(line, "Private_Dirty: %d kB", &n); err == nil {
			return n
		}
	}
	return 0
}
