package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// defaults are the guards of a run that sets none.
func defaultGuards(t *testing.T) agent.Guards {
	t.Helper()
	c, err := config.Load(config.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	l := c.Loop
	return agent.Guards{Repeats: l.RepeatThreshold, EmptyCalls: l.MaxEmptyCalls, Retries: l.MaxRetries, RetryTime: l.RetryTimeout.Std()}
}

// runaway are the recordings of programs that never give up and say so. The
// others that never end are silent: the idle limit is for them.
var runaway = map[string]loop.Ended{"codex/refused": loop.EndedRetries, "codex/par0": loop.EndedRetries}

// recordedFor is how long the longest recording took.
const recordedFor = 5 * time.Minute

// Guards end no recorded run but those that run away, neither when its events
// come at once nor when they take as long as the longest did.
func TestGuardsOverRecordings(t *testing.T) {
	t.Parallel()
	limits := defaultGuards(t)
	for _, file := range streamsOf(t, "*") {
		program := filepath.Base(filepath.Dir(file))
		name := program + "/" + strings.TrimSuffix(filepath.Base(file), ".stdout")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stream, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if trip := watched(t, program, stream, limits, 0); trip.Ended != loop.NotEnded {
				t.Errorf("all at once: %+v", trip)
			}
			if trip := watched(t, program, stream, limits, recordedFor); trip.Ended != runaway[name] {
				t.Errorf("over %v: %+v, want %q", recordedFor, trip, runaway[name])
			}
		})
	}
}

// watched is the first trip over a stream whose lines are spread over a time,
// from its first retry on, or else from its start.
func watched(t *testing.T, program string, stream []byte, limits agent.Guards, over time.Duration) agent.Trip {
	t.Helper()
	p, err := Parser(program, ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g, first := agent.NewGuard(limits), agent.Trip{}
	began := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	all, n := strings.SplitAfter(string(stream), "\n"), 0
	from := strings.Count(before(string(stream), "Reconnecting..."), "\n")
	at := func() time.Time {
		return began.Add(over * time.Duration(max(0, n-from)) / time.Duration(len(all)-from))
	}
	take := func(e agent.Event) {
		if trip, tripped := g.Add(e, at()); tripped && first.Ended == loop.NotEnded {
			first = trip
		}
	}
	for i, line := range all {
		n = i
		if trip, tripped := g.Expired(at()); tripped && first.Ended == loop.NotEnded {
			first = trip
		}
		p.Line([]byte(strings.TrimSuffix(line, "\n")), false, take)
	}
	if trip, tripped := g.Expired(began.Add(over)); tripped && first.Ended == loop.NotEnded {
		first = trip
	}
	p.Close(take)
	return first
}

// before is what stands before the first word, "" when it does not occur.
func before(s, word string) string {
	head, _, found := strings.Cut(s, word)
	if !found {
		return ""
	}
	return head
}
