package engine

import (
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

func TestASupervisorKilledUnderAnAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, held)
	w.fifo("go")
	p := w.start()
	p.await("agent text up")
	if err := w.supervisorOf().Supervisor.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.await("end completed")
	w.holds(loop.Completed, "1.1 neutral lost", "2.1 success")
	if run, _, _ := w.stored(); run.Cost != 750_000 || w.starts() != 2 {
		t.Errorf("cost %d, %d starts", run.Cost, w.starts())
	}
}

// The same under an agent that was adopted, whose supervisor this pawl did not
// start.
func TestASupervisorKilledUnderAnAdoptedAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, held)
	w.fifo("go")
	p := w.start()
	p.await("agent text up")
	p.kill()
	q := w.resume()
	q.await("run resumed the agent is still running")
	_ = w.supervisorOf().Supervisor.Signal(syscall.SIGKILL)
	q.await("end completed")
	w.holds(loop.Completed, "1.1 neutral lost", "2.1 success")
}

func TestASupervisorKilledUnderAGate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.o.Policy.MaxIterations = 1
	w.gate("tests", heldGate)
	w.fifo("go")
	w.fifo("gated")
	p := w.start()
	p.await("gate started")
	_ = w.read("gated")
	w.write("free", "")
	_ = w.supervisorOf().Supervisor.Signal(syscall.SIGKILL)
	p.await("end completed")
	w.holds(loop.Completed, "1.1 success")
	if w.starts() != 1 || strings.Count(w.read("gates"), "x") != 2 {
		t.Errorf("%d starts, gates %q", w.starts(), w.read("gates"))
	}
}

// Whenever the supervisor is idle, between agent and gate, its end costs nothing.
func TestASupervisorKilledBetweenJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
  - - append: {path: "{dir}/starts", content: "x"}
    - write: {path: a.txt, content: "one"}
    - write: {path: "{dir}/hold", content: ""}
  - - append: {path: "{dir}/starts", content: "x"}
`)
	w.gate("tests", "true")
	p := w.start(w.heldGit())
	p.await(string(RunStarted))
	w.awaitHeld()
	sup := w.supervisorOf().Supervisor
	_ = sup.Signal(syscall.SIGKILL)
	sup.AwaitEnd(t.Context())
	w.letGit()
	p.await("end completed")
	w.holds(loop.Completed, "1.1 success", "2.1 neutral")
}
