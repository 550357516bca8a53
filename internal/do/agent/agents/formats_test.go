package agents

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/test/reading"
)

// samples are a few lines of each format.
var samples = reading.Samples

func sampled() []string { return slices.Sorted(maps.Keys(samples)) }

// A format without samples misses all that follows.
func TestEveryFormatHasSamples(t *testing.T) {
	t.Parallel()
	for _, name := range Formats() {
		if name != "acp" && len(samples[name]) == 0 { // its own tests have some
			t.Errorf("reading.Samples has none of %s", name)
		}
	}
}

// FuzzFormats: whatever arrives, totals never fall below nothing, texts are
// bounded, and a stream has exactly one last word.
func FuzzFormats(f *testing.F) {
	names := sampled()
	for i, name := range names {
		f.Add(uint8(i), []byte(strings.Join(samples[name], "\n"))) //nolint:gosec // a handful of names
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		name := names[int(which)%len(names)]
		p, err := Parser(name, ParserOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c, last := agent.NewCollector(), agent.Event{}
		take := func(e agent.Event) {
			c.Add(e)
			last = e
			if c.Tokens() < 0 || c.Calls() < 0 || c.Turns() < 0 {
				t.Fatalf("%s: a total is negative after %+v", name, e)
			}
			if len(e.Tool) > 1000 || len(e.Command) > 5000 || len(e.Session) > max(1000, len(b)) {
				t.Fatalf("%s: unbounded event %+v", name, e)
			}
		}
		for line := range bytes.Lines(b) {
			p.Line(bytes.TrimSuffix(line, []byte("\n")), len(line)%7 == 0, take)
		}
		ended := last.Kind == agent.End
		p.Close(take)
		if last.Kind != agent.End && !ended && c.Outcome().Terminal == "" {
			t.Fatalf("%s: the stream has no end", name)
		}
	})
}

// A stream in another program's format is never taken for a success.
func TestFormatsMixedUp(t *testing.T) {
	t.Parallel()
	for _, name := range sampled() {
		for _, other := range sampled() {
			// Of these the second reads the first's lines on purpose.
			family := []string{"amp", "claude", "cursor", "qwen"}
			if name == other || name == "text" || (slices.Contains(family, name) && slices.Contains(family, other)) {
				continue
			}
			got := collect(t, name, []byte(strings.Join(samples[other], "\n")))
			if got.Terminal == ok {
				t.Errorf("%s takes %s for a success: %+v", name, other, got)
			}
		}
	}
}

func TestUnknownEventsAreKept(t *testing.T) {
	t.Parallel()
	for _, name := range sampled() {
		if name == "text" {
			continue
		}
		got := collect(t, name, []byte("{\"type\":\"novelty\",\"data\":{}}\nWarning: no JSON\n{\"type\":\"mess"))
		if got.Unknown != 3 || got.Terminal != missing {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkFormats is the streams as they are in practice.
func BenchmarkFormats(b *testing.B) {
	for _, name := range sampled() {
		b.Run(name, func(b *testing.B) { parse(b, name, reading.Stream(name)) })
	}
}

func parse(b *testing.B, name string, lines [][]byte) {
	b.Helper()
	p, err := Parser(name, ParserOptions{})
	if err != nil {
		b.Fatal(err)
	}
	total := 0
	for _, l := range lines {
		total += len(l) + 1
	}
	b.SetBytes(int64(total))
	b.ReportAllocs()
	began := processorTime()
	for b.Loop() {
		for _, l := range lines {
			p.Line(l, false, func(agent.Event) {})
		}
	}
	// A machine that is shared says more by its processor's time than by the clock.
	b.ReportMetric(float64(total)*float64(b.N)/1e6/(processorTime()-began).Seconds(), "MB/cpu-s")
}
