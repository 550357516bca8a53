package benchmark

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/agents"
	"github.com/pawl-dev/pawl/internal/test/reading"
)

// formats are all stream formats, sorted.
func formats() []string {
	var names []string
	for name := range reading.Samples {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// BenchmarkParsing is a stream of each format as they are, where most bytes
// are results of tools. The rate is for a second of the processor.
func BenchmarkParsing(b *testing.B) {
	for b.Loop() {
		for _, name := range formats() {
			report(b, "parsing, "+name, parsed(b, name), "MB/s", atLeast(20))
		}
	}
}

func parsed(b *testing.B, name string) float64 {
	b.Helper()
	p, err := agents.Parser(name, agents.ParserOptions{})
	if err != nil {
		b.Fatal(err)
	}
	lines, total, events := reading.Stream(name), 0, 0
	for _, l := range lines {
		total += len(l) + 1
	}
	rates := make([]float64, samples)
	for i := range rates {
		n, began, used := 0, time.Now(), processorTime()
		for time.Since(began) < 100*time.Millisecond {
			for _, l := range lines {
				p.Line(l, false, func(agent.Event) { events++ })
			}
			n++
		}
		rates[i] = float64(total) * float64(n) / 1e6 / (processorTime() - used).Seconds()
	}
	if events == 0 {
		b.Fatalf("%s: the parser found no event", name)
	}
	return median(rates)
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// talkTo names the file to which the agent of BenchmarkLimitNoticed writes.
const talkTo = "BENCHMARK_TALK_TO"

// talk is an agent that passes a limit and notes how long it takes until it is
// asked to end, in nanoseconds.
func talk(path string) {
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	began := time.Now()
	fmt.Println(`{"type":"usage","input":1,"output":1,"calls":2}`)
	<-terms
	if err := os.WriteFile(path, []byte(strconv.FormatInt(time.Since(began).Nanoseconds(), 10)), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// BenchmarkLimitNoticed is the time from an agent's write of the event that
// passes a limit to the TERM that it gets for it.
func BenchmarkLimitNoticed(b *testing.B) {
	const rounds = 31
	dir := diskDir(b)
	told := filepath.Join(dir, "told")
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	p := newProject(b, dir, "talker", fmt.Sprintf("%s=%q exec %q", talkTo, told, exe))
	p.write("pawl.yaml", fmt.Sprintf("agents:\n  noop: {command: [%q], output: script}\nprocedures:\n  noop: {agent: noop, act: [{content: talk}]}\n", p.agentPath)+
		"safety: {limits: {permissive: {max_api_calls_per_iteration: 1}}}\n")
	for b.Loop() {
		times := make([]float64, rounds)
		for i := range times {
			times[i] = p.noticed(told)
		}
		slices.Sort(times)
		report(b, "a limit is noticed after", median(times), "ms", atMost(50))
		report(b, "a limit is noticed after, longest", times[rounds-1], "ms", nil)
	}
}

// noticed runs one iteration and returns what its agent noted, in milliseconds.
func (p *project) noticed(told string) float64 {
	p.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runBound)
	defer cancel()
	out, _ := p.command(ctx, 1).CombinedOutput() // a run that reached a limit fails
	text, err := os.ReadFile(told)
	if err != nil {
		p.b.Fatalf("the agent was not asked to end: %v\n%s", err, out)
	}
	if err := os.Remove(told); err != nil {
		p.b.Fatal(err)
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		p.b.Fatal(err)
	}
	return float64(n) / 1e6
}
