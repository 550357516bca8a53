package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// agentsOf tells who worked under which strategy.
func agentsOf(w *world) []string {
	_, records, _ := w.stored()
	var told []string
	for _, r := range records {
		told = append(told, fmt.Sprintf("%s %s", r.Strategy, r.Agent))
	}
	return told
}

// failing is an agent that leaves a change and a failed gate.
const failing = `
  - - append: {path: a.txt, content: "x"}
`

// An own strategy starts its agent, tells the agent what it says, and gives the
// place back when the work succeeds.
func TestAnOwnStrategyStartsItsAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, failing)
	w.agent("expert", `
  - - write: {path: cured.txt, content: "x"}
`)
	w.o.Policy.MaxIterations = 3
	w.o.Policy.Strategies = []strategy.Strategy{{
		Name: "ask", Priority: 20, Classes: []failure.Class{failure.TestFailure, failure.Unknown}, Agent: "expert", Instruction: "Ask the expert.",
	}}
	w.gate("tests", "test -e cured.txt")
	w.within().start()
	if told, want := agentsOf(w), []string{"default script", "ask expert", "default script"}; !slices.Equal(told, want) {
		t.Errorf("worked: %q, want %q", told, want)
	}
	if p := w.read(w.runDir("2", "prompt.md")); !strings.Contains(p, "Ask the expert.") {
		t.Errorf("the second prompt does not say it:\n%s", p)
	}
}

// A fixed strategy is in force from the first iteration on.
func TestAFixedStrategyIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, failing)
	w.agent("second", failing)
	w.o.Policy.Strategy, w.o.Policy.Fallback = strategy.FallbackProviders, []string{"second"}
	w.gate("tests", "test $PAWL_ITERATION -gt 1")
	w.within().start()
	if told, want := agentsOf(w), []string{"fallback-providers second", "fallback-providers script"}; !slices.Equal(told, want) {
		t.Errorf("worked: %q, want %q", told, want)
	}
}

// waitsOf are the reasons of the waits of a run, from the log of notices.
func waitsOf(lines []string) []string {
	var waits []string
	for _, l := range lines {
		if strings.HasPrefix(l, string(WaitStarted)) {
			waits = append(waits, l)
		}
	}
	return waits
}

// networkGate fails as a service does that does not exist, once.
const networkGate = `test $PAWL_ITERATION -gt 1 || { echo "curl: (7) Failed to connect to db.internal port 5432: Connection refused"; exit 7; }`

func TestATransientFailureIsWaitedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, failing)
	w.gate("fetch", networkGate)
	h := w.within()
	h.start()
	_, records, _ := w.stored()
	if len(records) != 2 || records[0].Failure == nil || records[0].Failure.Class != failure.Network {
		t.Fatalf("%+v", records)
	}
	if waits := waitsOf(h.lines); len(waits) != 1 {
		t.Errorf("waits: %q", h.lines)
	}
	if between := records[1].StartedAt.Sub(records[0].StartedAt.Add(records[0].Elapsed)); between < time.Second {
		t.Errorf("the next iteration came after %s", between)
	}
}

// retry_backoff none waits for nothing, and a failure of the work is worked on at once.
func TestNoBackoffNoWait(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{"transient": networkGate, "work": "test $PAWL_ITERATION -gt 1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, failing)
			w.o.Policy.Strategies = []strategy.Strategy{{
				Name: "at-once", Priority: 20, Classes: []failure.Class{failure.Network}, Instruction: "Again.", Backoff: strategy.NoBackoff,
			}}
			w.gate("fetch", command)
			h := w.within()
			h.start()
			w.holds(loop.Completed, "1.1 failed", "2.1 success")
			if waits := waitsOf(h.lines); len(waits) != 0 {
				t.Errorf("waits: %q", waits)
			}
		})
	}
}

// aggressive-timeout gives a slow gate twice its time.
func TestASlowGateGetsMoreTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.o.Gates = []gate.Spec{{Name: "slow", Command: "exec sleep 1000", Required: true, Timeout: 200 * time.Millisecond}}
	w.within().start()
	_, records, _ := w.stored()
	if len(records) != 2 || records[1].Strategy != "aggressive-timeout" {
		t.Fatalf("%+v", records)
	}
	if one, two := records[0].Gates[0], records[1].Gates[0]; one.Note != "timed out after 200ms" || two.Note != "timed out after 400ms" {
		t.Errorf("gates: %q, %q", one.Note, two.Note)
	}
}

// What a run learns is stored, and the next run starts from it.
func TestLearningGoesFromRunToRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, failing)
	w.gate("tests", "test $PAWL_ITERATION -gt 1")
	w.within().start()
	_, records, s := w.stored()
	class := records[0].Failure.Class
	db, err := store.Open(t.Context(), w.o.DB)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	list, err := db.Learned(t.Context())
	if err != nil || len(list) != 1 || list[0].Class != class || list[0].Strategy != "diagnose" || list[0].Successes != 1 {
		t.Fatalf("learned %+v, %v", list, err)
	}
	if len(s.Learned) != 1 || s.Learned[0] != list[0].Tally {
		t.Errorf("the run knows %+v, the database %+v", s.Learned, list[0].Tally)
	}
	w.within().start()
	_, _, again := w.stored()
	if len(again.Learned) != 1 || again.Learned[0].Wins <= s.Learned[0].Wins {
		t.Errorf("the second run knows %+v after %+v", again.Learned, s.Learned)
	}
}
