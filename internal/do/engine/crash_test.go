package engine

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/statefile"
)

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// held is an agent that works, waits to be let go, and ends its work.
const held = `
  - - append: {path: "{dir}/starts", content: "x"}
    - usage: {input: 10, output: 5, cost: 0.5}
    - say: up
    - run: "read x <{dir}/go"
    - write: {path: a.txt, content: "one"}
    - say: I am done.
  - - append: {path: "{dir}/starts", content: "x"}
    - usage: {input: 10, output: 5, cost: 0.25}
    - append: {path: a.txt, content: "more"}
    - say: Next is done.
`

func TestAnAgentThatStillRunsIsAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, held)
	w.fifo("go")
	p := w.start()
	p.await("agent text up")
	p.kill()
	q := w.resume()
	q.await("run resumed the agent is still running")
	if f, err := statefile.Read(statefile.Path(w.o.Root, "build")); err != nil || f.Owner == nil || f.Owner.PID != q.cmd.Process.Pid {
		t.Errorf("the state file does not name the new owner: %+v, %v", f, err)
	}
	w.open("go")
	q.await("end completed")
	w.holds(loop.Completed, "1.1 success", "2.1 success")
	run, records, _ := w.stored()
	if w.starts() != 2 || run.Cost != 750_000 || records[0].Cost != 500_000 || records[0].TokensIn != 10 {
		t.Errorf("%d starts, cost %d, first %+v", w.starts(), run.Cost, records[0])
	}
	if out := w.read(w.runDir("1", "agent.out")); !strings.Contains(out, "up") || !strings.Contains(out, "I am done.") {
		t.Errorf("the output is not whole: %s", out)
	}
	if prompt := w.read(w.runDir("1", "prompt.md")); !strings.Contains(prompt, "OODA") {
		t.Errorf("the prompt is not kept: %s", prompt)
	}
}

func TestAResultThatCameMeanwhileIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, held)
	w.fifo("go")
	p := w.start()
	p.await("agent text up")
	sup := w.supervisorOf()
	p.kill()
	w.open("go")
	sup.Supervisor.AwaitEnd(t.Context())
	w.resume().await("end completed")
	w.holds(loop.Completed, "1.1 success", "2.1 success")
	if w.starts() != 2 {
		t.Errorf("%d starts", w.starts())
	}
}

func TestKilledBeforeTheFirstAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, held)
	w.fifo("go")
	w.o.Hold = string(RunStarted)
	p := w.start()
	p.await(w.o.Hold)
	p.kill()
	q := w.resume()
	q.await("agent text up")
	w.open("go")
	q.await("end completed")
	w.holds(loop.Completed, "1.1 success", "2.1 success")
	if w.starts() != 2 {
		t.Errorf("%d starts", w.starts())
	}
	if tree := w.snapshot("ls-tree", "--name-only", "refs/pawl/runs/"+w.run()+"/0"); tree != "kept.txt" {
		t.Errorf("snapshot 0 has %q", tree)
	}
}

func TestKilledDuringTheSnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
  - - append: {path: "{dir}/starts", content: "x"}
    - usage: {input: 10, output: 5, cost: 0.5}
    - write: {path: a.txt, content: "one"}
    - write: {path: "{dir}/hold", content: ""}
`)
	w.o.Policy.MaxIterations = 1
	p := w.start(w.heldGit())
	w.awaitHeld()
	p.kill()
	w.letGit()
	w.know(onlyRun(w))
	w.resume().await("end completed")
	w.holds(loop.Completed, "1.1 success")
	if got := w.snapshot("show", "refs/pawl/runs/"+w.run()+"/1:a.txt"); got != "one" || w.starts() != 1 {
		t.Errorf("the snapshot has %q after %d starts", got, w.starts())
	}
}

// awaitHeld waits until git stops.
func (w *world) awaitHeld() {
	w.t.Helper()
	if _, err := os.ReadFile(w.path("held")); err != nil {
		w.t.Fatal(err)
	}
}

// letGit lets the held git do its part, which may come after its pawl's end.
func (w *world) letGit() {
	w.t.Helper()
	if err := os.Remove(w.path("hold")); err != nil {
		w.t.Fatal(err)
	}
	w.open("never")
}

// onlyRun is the run whose folder is there.
func onlyRun(w *world) string {
	w.t.Helper()
	entries, err := os.ReadDir(w.path("state/runs"))
	if err != nil || len(entries) != 1 {
		w.t.Fatalf("%d runs, %v", len(entries), err)
	}
	return entries[0].Name()
}

const quick = `
  - - append: {path: "{dir}/starts", content: "x"}
    - usage: {input: 10, output: 5, cost: 0.5}
    - append: {path: a.txt, content: "x"}
    - say: done
`

// heldGate runs until it is let go, unless the file "free" is there.
const heldGate = `echo x >>{dir}/gates; test -e {dir}/free || { echo up >{dir}/gated; read x <{dir}/go; }`

func TestKilledDuringAGate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.o.Policy.MaxIterations = 1
	w.gate("tests", heldGate)
	w.fifo("go")
	w.fifo("gated")
	p := w.start()
	p.await("gate started")
	_ = w.read("gated")
	p.kill()
	w.write("free", "")
	q := w.resume()
	q.await("end completed")
	w.holds(loop.Completed, "1.1 success")
	_, records, _ := w.stored()
	if w.starts() != 1 || strings.Count(w.read("gates"), "x") != 2 || !records[0].Verified || records[0].Gates[0].Status != loop.GatePassed {
		t.Errorf("%d starts, gates %q, record %+v", w.starts(), w.read("gates"), records[0])
	}
}

const limited = `
  - - append: {path: "{dir}/starts", content: "x"}
    - usage: {input: 10, output: 5, cost: 0.5}
    - write: {path: half.txt, content: "half"}
    - rate_limit: {retry_after: 1s}
  - - append: {path: "{dir}/starts", content: "x"}
    - usage: {input: 10, output: 5, cost: 0.25}
    - append: {path: a.txt, content: "more"}
`

func TestKilledDuringAWait(t *testing.T) {
	t.Parallel()
	for _, hold := range []string{string(WaitStarted), "iteration started 1.2"} {
		w := newWorld(t, limited)
		w.o.Policy.MaxIterations = 1
		w.o.Hold = hold
		p := w.start()
		p.await(hold)
		p.kill()
		w.resume().await("end completed")
		w.holds(loop.Completed, "1.1 waited", "1.2 success")
		w.attemptKept("1", "1")
		if w.starts() != 2 {
			t.Errorf("%d starts", w.starts())
		}
	}
}

// attemptKept checks that the files and the snapshot of an attempt that was cut
// off are there beside those of the iteration.
func (w *world) attemptKept(n, attempt string) {
	w.t.Helper()
	for _, name := range []string{"prompt.md", "begun.json", "agent.out", "agent.result.json"} {
		if w.read(w.runDir(n, attempt, name)) == "" || w.read(w.runDir(n, name)) == "" {
			w.t.Errorf("%s of the attempt or of the iteration is not kept", name)
		}
	}
	w.snapshot("show", "refs/pawl/runs/"+w.run()+"/"+n+"-"+attempt+":half.txt")
	w.snapshot("show", "refs/pawl/runs/"+w.run()+"/"+n+":a.txt")
}

// An attempt's files are moved after the wait is stored; killed in between, the
// next attempt finds them in its way.
func TestAnAttemptsFilesAreNotWrittenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, limited)
	w.o.Policy.MaxIterations = 1
	w.o.Hold = string(WaitStarted)
	p := w.start()
	p.await(w.o.Hold)
	p.kill()
	w.resume().await("end completed")
	w.attemptKept("1", "1")
}

func TestKilledBetweenCommitAndStateFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.o.Policy.MaxIterations = 3
	w.o.Hold = "iteration started 2"
	p := w.start()
	p.await(w.o.Hold)
	p.kill()
	w.write("repo/.pawl/state/build.json", `{"iteration":0,"status":"running","run":"`+w.run()+`"}`)
	w.resume().await("end completed")
	w.holds(loop.Completed, "1.1 success", "2.1 success", "3.1 success")
	if w.starts() != 3 {
		t.Errorf("%d starts", w.starts())
	}
}

func TestKilledWhileFinishing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.o.Hold = "iteration ended 2"
	p := w.start()
	p.await(w.o.Hold)
	sup := w.supervisorOf()
	p.kill()
	sup.Supervisor.AwaitEnd(t.Context())
	w.resume().await("error the run is completed")
	w.holds(loop.Completed, "1.1 success", "2.1 success")
	if run, _, _ := w.stored(); run.EndedAt.IsZero() {
		t.Error("the run has no end")
	}
	n := w.events()
	w.resume().await("error the run is completed")
	if w.events() != n {
		t.Error("a refused resume wrote to the journal")
	}
}

func (w *world) events() int64 {
	w.t.Helper()
	run, _, _ := w.stored()
	return run.N
}

func TestBothKilledLosesOneIteration(t *testing.T) {
	t.Parallel()
	w := newWorld(t, held)
	w.fifo("go")
	p := w.start()
	p.await("agent text up")
	sup := w.supervisorOf()
	p.kill()
	if err := sup.Supervisor.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	sup.Supervisor.AwaitEnd(t.Context())
	w.o.Hold, w.o.Resume = "iteration started 2", w.run()
	q := w.start()
	q.await(w.o.Hold)
	if f, err := statefile.Read(statefile.Path(w.o.Root, "build")); err != nil || f.InterruptedIteration != 1 || f.Iteration != 1 {
		t.Errorf("state file %+v, %v", f, err)
	}
	q.kill()
	w.resume().await("end completed")
	w.holds(loop.Completed, "1.1 neutral lost", "2.1 success")
	_, records, _ := w.stored()
	if r := records[0]; w.starts() != 2 || r.Cost != 500_000 || r.TokensIn != 10 || r.Failure == nil {
		t.Errorf("%d starts; the lost attempt: %+v", w.starts(), r)
	}
}

// The run's folder is gone, and with it whether the agent was started: it may
// have been paid for, so it does not run again.
func TestALostFolderLosesOneIteration(t *testing.T) {
	t.Parallel()
	w := newWorld(t, held)
	w.fifo("go")
	p := w.start()
	p.await("agent text up")
	sup := w.supervisorOf()
	p.kill()
	_ = sup.Supervisor.Signal(syscall.SIGKILL)
	sup.Supervisor.AwaitEnd(t.Context())
	if err := os.RemoveAll(w.path(w.runDir())); err != nil {
		t.Fatal(err)
	}
	w.resume().await("end completed")
	w.holds(loop.Completed, "1.1 neutral lost", "2.1 success")
	if w.starts() != 2 {
		t.Errorf("%d starts", w.starts())
	}
}

func TestTheLeaseEndsTheAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, held)
	w.fifo("go")
	w.o.Lease = 3000 // long enough for a busy machine to come to the agent
	p := w.start()
	p.await("agent text up")
	sup := w.supervisorOf()
	p.kill()
	sup.Supervisor.AwaitEnd(t.Context())
	w.resume().await("end completed")
	w.holds(loop.Completed, "1.1 neutral lease", "2.1 success")
	if run, _, _ := w.stored(); run.Cost != 750_000 || w.starts() != 2 {
		t.Errorf("cost %d, %d starts", run.Cost, w.starts())
	}
}

func TestPawlIsStoppedForLongerThanTheLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t, held)
	w.fifo("go")
	w.o.Lease = 3000 // long enough for a busy machine to come to the agent
	p := w.start()
	p.await("agent text up")
	sup := w.supervisorOf()
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	sup.Supervisor.AwaitEnd(t.Context())
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.await("end completed")
	w.holds(loop.Completed, "1.1 neutral lease", "2.1 success")
}

// What a pawl left is ended also when nobody goes on with the run.
func TestArchiveEndsWhatIsLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, held)
	w.fifo("go")
	p := w.start()
	p.await("agent text up")
	sup := w.supervisorOf()
	p.kill()
	_ = sup.Supervisor.Signal(syscall.SIGKILL)
	sup.Supervisor.AwaitEnd(t.Context())
	opts, err := w.o.options(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = opts.Store.Close() }()
	if err := storedrun.Archive(context.Background(), opts.Store, w.run(), "left behind"); err != nil {
		t.Fatal(err)
	}
	w.nothingRuns()
	if run, _, _ := w.stored(); run.Owner.PID != 0 || run.EndedAt.IsZero() {
		t.Errorf("the row is %+v", run)
	}
}
