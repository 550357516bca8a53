package engine

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine/lanes"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// within is a run of the world in this process.
type within struct {
	w      *world
	opts   Options
	stops  chan loop.Cause
	killed chan struct{}
	lines  []string
	on     map[string]func() // by the start of a line, once
}

func (w *world) within() *within {
	w.t.Helper()
	opts, err := w.o.options(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	h := &within{w: w, opts: opts, stops: make(chan loop.Cause, 1), killed: make(chan struct{}), on: map[string]func(){}}
	h.opts.Stops, h.opts.Kill, h.opts.Notify = h.stops, h.killed, h.notice
	w.t.Cleanup(func() { _ = opts.Store.Close() })
	return h
}

func (h *within) notice(n Notice) {
	line := noticeLine(n)
	h.lines = append(h.lines, line)
	if id, ok := strings.CutPrefix(line, string(RunStarted)+" "); ok {
		h.w.know(id)
	}
	for start, f := range h.on {
		if strings.HasPrefix(line, start) {
			delete(h.on, start)
			f()
		}
	}
}

// count is how many notices start so.
func (h *within) count(start string) int {
	n := 0
	for _, l := range h.lines {
		if strings.HasPrefix(l, start) {
			n++
		}
	}
	return n
}

func (h *within) start() *Driver {
	h.w.t.Helper()
	d, err := Start(context.Background(), h.opts)
	if err != nil {
		h.w.t.Fatal(err)
	}
	return d
}

func (h *within) resume(e loop.Event) *Driver {
	h.w.t.Helper()
	d, err := h.tryResume(e)
	if err != nil {
		h.w.t.Fatal(err)
	}
	return d
}

func (h *within) tryResume(e loop.Event) (*Driver, error) {
	e.Policy = &h.opts.Plan.Policy
	return Resume(context.Background(), h.opts, h.w.run(), e)
}

// ask leaves a control row for the run, as pawl stop does.
func (h *within) ask(kind, text string) {
	h.w.t.Helper()
	_, err := h.opts.Store.AddControl(context.Background(), store.Control{Run: h.w.run(), Kind: kind, Text: text, At: time.Now()})
	if err != nil {
		h.w.t.Error(err)
	}
}

const hangs = `
  - - append: {path: "{dir}/starts", content: "x"}
    - usage: {input: 10, output: 5, cost: 0.5}
    - write: {path: half.txt, content: "half"}
    - say: up
    - hang: true
  - - append: {path: "{dir}/starts", content: "x"}
    - append: {path: a.txt, content: "x"}
`

func TestStopWhileTheAgentRuns(t *testing.T) {
	t.Parallel()
	for cause, status := range map[loop.Cause]loop.Status{
		loop.CauseInterrupt: loop.Interrupted, loop.CauseTerminate: loop.Interrupted, loop.CauseStop: loop.Stopped,
	} {
		w := newWorld(t, hangs)
		h := w.within()
		h.on["agent text up"] = func() { h.stops <- cause }
		h.start()
		w.holds(status, "1.1 neutral stop")
		if got := w.snapshot("show", "refs/pawl/runs/"+w.run()+"/1:half.txt"); got != "half" {
			t.Errorf("%s: the snapshot has %q", cause, got)
		}
		if run, _, _ := w.stored(); run.Cost != 500_000 {
			t.Errorf("%s: cost %d", cause, run.Cost)
		}
		w.within().resume(loop.Event{Kind: loop.Resumed})
		w.holds(loop.Completed, "1.1 neutral stop", "2.1 success")
	}
}

func TestStopByAnotherProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hangs)
	h := w.within()
	h.on["agent text up"] = func() { h.ask(store.ControlStop, "") }
	h.start()
	w.holds(loop.Stopped, "1.1 neutral stop")
	if rows, err := h.opts.Store.Controls(context.Background(), w.run()); err != nil || len(rows) != 0 {
		t.Errorf("the row is not taken: %+v, %v", rows, err)
	}
}

func TestADoneContextInterrupts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hangs)
	h := w.within()
	ctx, cancel := context.WithCancel(context.Background())
	h.on["agent text up"] = cancel
	if _, err := Start(ctx, h.opts); err != nil {
		t.Fatal(err)
	}
	w.holds(loop.Interrupted, "1.1 neutral stop")
}

// The second Ctrl+C does not wait for an agent that ignores the first.
func TestKillEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
  - - ignore_term: true
    - say: up
    - hang: true
`)
	h := w.within()
	h.on["agent text up"] = func() { h.stops <- loop.CauseInterrupt; close(h.killed) }
	h.start()
	w.holds(loop.Interrupted, "1.1 neutral stop")
	if _, records, _ := w.stored(); records[0].Exit.Signal != "killed" {
		t.Errorf("exit %+v", records[0].Exit)
	}
}

func TestStopInAGate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.o.Policy.MaxIterations = 2
	w.gate("first", "true")
	w.gate("tests", heldGate)
	w.fifo("go")
	w.fifo("gated")
	h := w.within()
	h.on["gate started tests"] = func() {
		go func() { // the notice comes before the gate runs
			_ = w.read("gated")
			h.stops <- loop.CauseInterrupt
		}()
	}
	h.start()
	w.holds(loop.Interrupted, "1.1 neutral stop")
	_, records, _ := w.stored()
	if r := records[0]; r.Verified || r.Gates[0].Status != loop.GatePassed || r.Gates[1].Status != loop.GateNotRun {
		t.Errorf("record %+v", r)
	}
	w.write("free", "")
	w.within().resume(loop.Event{Kind: loop.Resumed})
	w.holds(loop.Completed, "1.1 neutral stop", "2.1 success")
}

func TestStopInAWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
  - - rate_limit: {retry_after: 1h}
  - - append: {path: a.txt, content: "x"}
`)
	for _, kind := range []string{store.ControlStop, store.ControlPause} {
		w.o.Policy.MaxIterations = 1
		h := w.within()
		h.on[string(WaitStarted)] = func() { h.ask(kind, "") }
		h.start()
		w.holds(map[string]loop.Status{store.ControlStop: loop.Stopped, store.ControlPause: loop.Paused}[kind], "1.1 waited")
		w.within().resume(loop.Event{Kind: loop.Resumed})
		w.holds(loop.Completed, "1.1 waited", "1.2 success")
	}
}

func TestStopInASnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
  - - write: {path: a.txt, content: "one"}
    - write: {path: "{dir}/hold", content: ""}
  - - append: {path: a.txt, content: "two"}
`)
	p := w.start(w.heldGit())
	p.await(string(RunStarted))
	w.awaitHeld()
	h := w.within()
	h.ask(store.ControlStop, "")
	w.awaitStopAsked()
	w.letGit()
	p.await("end stopped")
	w.holds(loop.Stopped, "1.1 success")
	if got := w.snapshot("show", "refs/pawl/runs/"+w.run()+"/1:a.txt"); got != "one" {
		t.Errorf("the snapshot has %q", got)
	}
}

// awaitStopAsked waits until the run has stored that it is to stop.
func (w *world) awaitStopAsked() {
	w.t.Helper()
	for {
		if _, _, s := w.stored(); s.StopAsked != loop.NoCause {
			return
		}
		if w.t.Context().Err() != nil {
			w.t.Fatal("the stop is not stored")
		}
	}
}

func TestPauseAtTheEndOfTheIteration(t *testing.T) {
	t.Parallel()
	w := newWorld(t, held)
	w.fifo("go")
	p := w.start()
	p.await("agent text up")
	h := w.within()
	h.ask(store.ControlPause, "")
	for asked := false; !asked; {
		_, _, s := w.stored()
		asked = s.PauseAsked
	}
	w.open("go")
	p.await("end paused")
	w.holds(loop.Paused, "1.1 success")
	w.resume().await("end completed")
	w.holds(loop.Completed, "1.1 success", "2.1 success")
}

// A stop that its pawl did not live to carry out is carried out first; who
// resumes wants the run to go on after it.
func TestAStopOfTheSessionBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
  - - append: {path: "{dir}/starts", content: "x"}
    - ignore_term: true
    - say: up
    - run: "read x <{dir}/go"
  - - append: {path: "{dir}/starts", content: "x"}
    - append: {path: a.txt, content: "x"}
`)
	w.fifo("go")
	p := w.start()
	p.await("agent text up")
	w.within().ask(store.ControlStop, "")
	w.awaitStopAsked()
	p.kill()
	q := w.resume()
	q.await("end completed")
	w.holds(loop.Completed, "1.1 neutral stop", "2.1 success")
	if w.starts() != 2 {
		t.Errorf("%d starts", w.starts())
	}
}

// pawl stop of a run without a pawl ends its agent; resume goes on.
func TestAnUnattendedRunIsEndedAndResumed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hangs)
	p := w.start()
	p.await("agent text up")
	p.kill()
	if err := lanes.EndUnattended(context.Background(), w.path(w.runDir()), w.run()); err != nil {
		t.Fatal(err)
	}
	w.nothingRuns()
	w.resume().await("end completed")
	told := w.told()
	if len(told) != 2 || told[1] != "2.1 success" || w.starts() != 2 {
		t.Errorf("told %q, %d starts", told, w.starts())
	}
}

func TestAnAnswerGoesIntoTheNextPrompt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
  - - say: "<promise>PENDING: which port?</promise>"
  - - expect_prompt: "use port 8080"
    - append: {path: a.txt, content: "x"}
  - - append: {path: a.txt, content: "x"}
`)
	h := w.within()
	h.start()
	w.holds(loop.Pending, "1.1 asked")
	if _, err := h.tryResume(loop.Event{Kind: loop.Resumed}); err == nil {
		t.Error("a question was passed over")
	}
	h.ask(store.ControlAnswer, "use port 8080")
	if _, err := h.tryResume(loop.Event{Kind: loop.Resumed}); err == nil {
		t.Error("a question was passed over")
	}
	if rows, _ := h.opts.Store.Controls(context.Background(), w.run()); len(rows) != 1 {
		t.Fatalf("a refused resume took the answer: %+v", rows)
	}
	h.resume(loop.Event{Kind: loop.Answered, Text: "use port 8080"})
	w.holds(loop.Completed, "1.1 asked", "2.1 success", "3.1 success")
	if rows, _ := h.opts.Store.Controls(context.Background(), w.run()); len(rows) != 0 {
		t.Errorf("the answer is not taken: %+v", rows)
	}
}

func TestALimitOfZeroAllowsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.o.Policy.MaxIterationCalls = 0
	w.within().start()
	w.holds(loop.FailedRun, "1.1 failed")
	if w.starts() != 0 {
		t.Error("the agent was started")
	}
}

func TestTicksComeWhileSomethingRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, held)
	w.fifo("go")
	h := w.within()
	h.on[string(Tick)] = func() { go w.open("go") }
	h.start()
	w.holds(loop.Completed, "1.1 success", "2.1 success")
	if h.count(string(Tick)) == 0 {
		t.Error("no tick")
	}
}

// Neither goroutines nor descriptors grow with the iterations.
func TestManyIterationsKeepNothing(t *testing.T) {
	w := newWorld(t, `
  - - say: done
`)
	w.o.Policy.MaxIterations, w.o.NoGit = 300, true
	w.o.Policy.Stuck = 0
	h := w.within()
	var first, last [2]int
	h.on["iteration started 20."] = func() { first = grown(t) }
	h.on["iteration started 300."] = func() { last = grown(t) }
	h.start()
	w.holdsMany(300)
	if last[0] > first[0]+3 || last[1] > first[1]+3 {
		t.Errorf("goroutines and descriptors: %v, then %v", first, last)
	}
}

func (w *world) holdsMany(n int) {
	w.t.Helper()
	run, records, _ := w.stored()
	if run.Status != string(loop.Completed) || len(records) != n {
		w.t.Errorf("%s after %d iterations", run.Status, len(records))
	}
}

// grown counts what must not grow.
func grown(t *testing.T) [2]int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("descriptors cannot be counted here")
	}
	return [2]int{goroutines(), len(files)}
}
