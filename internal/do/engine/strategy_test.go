package engine

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
	"github.com/pawl-dev/pawl/internal/do/engine/attemptdir"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/gate"
)

// worse is an agent whose second iteration is worse than its first, by a gate
// that counts the tests in passing.txt.
const worse = `
  - - write: {path: passing.txt, content: "1"}
    - write: {path: best.txt, content: "best"}
  - - write: {path: passing.txt, content: "0"}
    - delete: best.txt
    - write: {path: junk.txt, content: "junk"}
  - - run: {command: "cp passing.txt {dir}/seen; ls >{dir}/files", must: true}
    - append: {path: more.txt, content: "x"}
`

// worseWorld has a gate in TAP, of which one of two tests fails at best.
func worseWorld(t *testing.T) *world {
	w := newWorld(t, worse)
	w.o.Policy.MaxIterations = 3
	w.o.Policy.FailureThreshold = 0
	w.gate("tests", `echo "TAP version 13"; echo "1..2"; if [ "$(cat passing.txt)" = 1 ]; then echo "ok 1 - a"; else echo "not ok 1 - a"; fi; echo "not ok 2 - b"; exit 1`)
	return w
}

// scores tells strategies and scores, for messages.
func scores(w *world) string {
	_, records, _ := w.stored()
	var all []string
	for _, r := range records {
		all = append(all, fmt.Sprintf("%d %s score %d", r.Number, r.Strategy, r.Score))
	}
	return strings.Join(all, "; ")
}

func TestRewindRestoresTheBestSnapshot(t *testing.T) {
	t.Parallel()
	w := worseWorld(t)
	h := w.within()
	h.start()
	if files := w.read("files"); w.read("seen") != "1" || !strings.Contains(files, "best.txt") || strings.Contains(files, "junk.txt") {
		t.Errorf("the third iteration saw %q and %q: %s\n%q", w.read("seen"), files, scores(w), h.lines)
	}
}

func TestRewindLeavesAPersonsWork(t *testing.T) {
	t.Parallel()
	w := worseWorld(t)
	h := w.within()
	h.on["iteration ended 2"] = func() { w.write("repo/mine.txt", "mine") }
	h.start()
	if w.read("seen") != "0" || !strings.Contains(w.read("files"), "junk.txt") || w.read("repo/mine.txt") != "mine" {
		t.Errorf("the third iteration saw %q and %q: %s", w.read("seen"), w.read("files"), scores(w))
	}
	if h.count("warning the files were not restored") != 1 {
		t.Errorf("nothing was said: %q", h.lines)
	}
}

// A rewind that was done just before pawl was killed is not done, and not
// complained about, again.
func TestKilledAfterTheRewind(t *testing.T) {
	t.Parallel()
	w := worseWorld(t)
	w.o.Hold = "iteration started 3"
	p := w.start()
	p.await(w.o.Hold)
	p.kill()
	h := w.within()
	_, _, s := w.stored()
	if _, err := h.opts.Tree.Rewind(t.Context(), w.run(), s.Command.Rewind, mustLook(t, h)); err != nil {
		t.Fatal(err)
	}
	q := w.resume()
	q.await("end")
	if w.read("seen") != "1" || q.saw("not restored") != 0 {
		t.Errorf("the third iteration saw %q: %q", w.read("seen"), q.seen)
	}
}

func mustLook(t *testing.T, h *within) string {
	t.Helper()
	now, err := h.opts.Tree.See(t.Context(), h.w.run())
	if err != nil {
		t.Fatal(err)
	}
	return now.Tree
}

func TestALongWaitUsesTheFallbackAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
  - - write: {path: half.txt, content: "half"}
    - rate_limit: {retry_after: 7h}
`)
	w.agent("second", `
  - - append: {path: a.txt, content: "x"}
`)
	w.o.Policy.MaxWait, w.o.Policy.Fallback = 6*time.Hour, []string{"second"}
	w.within().start()
	w.holds(loop.Completed, "1.1 waited", "1.2 success", "2.1 success")
	_, records, _ := w.stored()
	if records[0].Agent != "script" || records[1].Agent != "second" {
		t.Errorf("agents %s, %s", records[0].Agent, records[1].Agent)
	}
	w.attemptKept("1", "1")
}

func TestTheDoubledTimeoutReachesTheAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
  - - run: cp {dir}/state/runs/$PAWL_RUN/1/begun.json {dir}/1.json
    - hang: true
  - - run: cp {dir}/state/runs/$PAWL_RUN/2/begun.json {dir}/2.json
    - write: {path: a.txt, content: "x"}
`)
	w.o.Policy.IterationTimeout = 2 * time.Second
	w.within().start()
	w.holds(loop.Completed, "1.1 failed timeout", "2.1 success")
	one, _ := attemptdir.LoadBegun(filepath.Join(w.dir, "1.json"))
	two, _ := attemptdir.LoadBegun(filepath.Join(w.dir, "2.json"))
	if one, two := one.Job.Limits.Wall, two.Job.Limits.Wall; one != 2*time.Second || two != 4*time.Second {
		t.Errorf("limits %v, %v", one, two)
	}
}

func TestOptionalGatesAreSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.o.Policy.HasOptional, w.o.Policy.FailureThreshold = true, 0
	w.o.Policy.MaxIterations = 3
	w.o.Policy.Strategies = []strategy.Strategy{{Name: "skip", Priority: 20, Classes: []failure.Class{failure.Timeout}, SkipOptional: true}}
	w.o.Gates = []gate.Spec{
		{Name: "slow", Command: "test $PAWL_ITERATION -gt 1 || { echo 'get: context deadline exceeded'; exit 1; }", Required: true},
		{Name: "lint", Command: "true"},
	}
	w.within().start()
	_, records, _ := w.stored()
	var told []string
	for _, r := range records {
		told = append(told, fmt.Sprintf("%s %d", r.Strategy, len(r.Gates)))
	}
	if want := []string{"default 2", "skip 1", "default 2"}; !slices.Equal(told, want) {
		t.Errorf("strategies and gates %q, want %q", told, want)
	}
}

// Of a long run the first, the best and the last 50 snapshots stay.
func TestOldSnapshotsAreDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.o.Policy.MaxIterations = 70
	h := w.within()
	h.start()
	snaps, err := h.opts.Tree.Snapshots(t.Context(), w.run())
	if err != nil {
		t.Fatal(err)
	}
	if len(snaps) != 51 || snaps[0].N != 0 || snaps[1].N != 21 || snaps[50].N != 70 {
		t.Errorf("%d snapshots, from %d, then %d", len(snaps), snaps[0].N, snaps[1].N)
	}
}

// The flags, limits and gates that a run was resumed with are those of the next
// resume, and what is shown of it.
func TestAResumeKeepsItsFlags(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.o.Flags = json.RawMessage(`{"max":"1"}`)
	w.o.Policy.Kind, w.o.Policy.MaxIterations = loop.Task, 1
	w.within().start()
	w.holds(loop.TimedOut, "1.1 success")
	n := w.events()
	if _, err := w.within().tryResume(loop.Event{Kind: loop.Resumed}); err == nil {
		t.Error("a run at its limit was resumed")
	}
	if run, _, _ := w.stored(); w.events() != n || run.EndedAt.IsZero() {
		t.Errorf("a refused resume changed the run: %+v", run)
	}
	w.o.Flags = json.RawMessage(`{"max":"2"}`)
	w.o.Policy.MaxIterations = 2
	w.o.Gates = []gate.Spec{{Name: "build", Command: "true", Required: true, Timeout: time.Minute}, {Command: "exit 0"}}
	w.within().resume(loop.Event{Kind: loop.Resumed})
	w.holds(loop.TimedOut, "1.1 success", "2.1 success")
	run, _, _ := w.stored()
	var s storedrun.Setup
	if err := json.Unmarshal(run.Setup, &s); err != nil || string(s.Flags) != `{"max":"2"}` || s.Base == "" {
		t.Errorf("set-up %s, %v", run.Setup, err)
	}
	want := []runplan.Check{
		{Name: "build", Command: "true", Required: true, Timeout: time.Minute},
		{Name: "exit 0", Command: "exit 0"},
	}
	if !slices.Equal(s.Checks, want) {
		t.Errorf("the checks are %+v, want %+v", s.Checks, want)
	}
}
