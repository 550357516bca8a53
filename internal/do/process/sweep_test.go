package process

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

func TestSweepEndsWhatADeadParentLeft(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	t.Parallel()
	mark, other := newMark(t), newMark(t)
	innocent := exec.Command("/bin/sh", "-c", "echo started; exec sleep 1000")
	innocent.Env = append(os.Environ(), other)
	begin(t, innocent)

	starter := exec.Command(os.Args[0])
	starter.Env = append(os.Environ(), "PROCESS_TEST_PART=starter", mark)
	begin(t, starter)
	_ = starter.Process.Kill()
	_ = starter.Wait()
	if left := marked(mark); len(left) != 1 {
		t.Fatalf("%d marked processes are left, want the one that left the session", len(left))
	}

	ended, err := Sweep(context.Background(), mark, time.Minute)
	if err != nil || ended.Found != 1 || ended.Left != 0 {
		t.Errorf("Sweep: %+v, %v; want one found and ended", ended, err)
	}
	if left := marked(mark); len(left) != 0 {
		t.Errorf("left behind: %+v", left)
	}
	if len(marked(other)) != 1 {
		t.Error("a process with another mark was ended")
	}
}

// begin starts cmd, waits for its first line, and ends it after the test.
func begin(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%v said nothing: %v", cmd.Args, err)
	}
}

func TestSweepSparesItself(t *testing.T) {
	t.Setenv("PROCESS_TEST_SELF", "x")
	// The test's own environment was fixed at its start; a child with the mark
	// sweeps, and must survive it.
	if os.Getenv("PROCESS_TEST_CHILD") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestSweepSparesItself$")
		cmd.Env = append(os.Environ(), "PROCESS_TEST_CHILD=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	ended, err := Sweep(context.Background(), "PROCESS_TEST_SELF=x", 0)
	if err != nil || ended.Found != 0 {
		t.Errorf("Sweep: %+v, %v; want nothing found", ended, err)
	}
}

func TestSweepRefusesAMarkThatMeansNothing(t *testing.T) {
	for _, mark := range []string{"", "X", "X=", "=x"} {
		if _, err := Sweep(context.Background(), mark, 0); err == nil {
			t.Errorf("mark %q is accepted", mark)
		}
	}
}

func TestParseStat(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	p, ok := readProc(os.Getpid())
	if !ok || p.PID != os.Getpid() || p.Parent != os.Getppid() || p.Start == 0 || p.Zombie {
		t.Errorf("got %+v, %v", p, ok)
	}
}

// A process may end between the look at the table and that at its environment,
// which is empty from then on. It is not one that cleared its environment.
func TestAProcessThatEndsMeanwhileIsSeenToEnd(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "echo started; exec sleep 1000")
	begin(t, cmd)
	p, ok := readProc(cmd.Process.Pid)
	if !ok || hasEnded(p) {
		t.Fatalf("a living process: %+v, %v", p, ok)
	}
	later := p
	later.Start++
	if !hasEnded(later) {
		t.Error("a later process of the same pid counts as the same")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if !hasEnded(p) {
		t.Error("a process that was reaped counts as living")
	}
}

func TestIdentityTellsTheDeadFromTheLiving(t *testing.T) {
	self, err := Self()
	if err != nil || Look(self) != Living || !Alive(self) {
		t.Fatalf("this process: %+v, %v", self, err)
	}
	later := self
	later.Start++
	if Look(later) != Dead {
		t.Error("a later process with the same pid counts as the same")
	}
	reboot := self
	reboot.Boot = "another"
	if Look(reboot) != Dead {
		t.Error("a process from before a reboot counts as alive")
	}
	far := reboot
	far.Host = "elsewhere.invalid"
	if Look(far) != Unknown || !Alive(far) {
		t.Error("a process of another host must count as unknown, so as alive")
	}
	boxed := self
	boxed.Space = "pid:[1]"
	if Look(boxed) != Unknown {
		t.Error("a process of another pid namespace must be unknown")
	}

	d, err := StartDetached(Command{Args: []string{"/bin/sh", "-c", "exec sleep 1000"}, Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	id, err := Identify(d.PID)
	if err != nil || Look(id) != Living {
		t.Fatalf("a living child: %+v, %v", id, err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if id.AwaitEnd(cancelled) {
		t.Error("AwaitEnd says that a living process has ended")
	}
	if err := id.Signal(9); err != nil {
		t.Fatal(err)
	}
	if !id.AwaitEnd(context.Background()) || Look(id) != Dead {
		t.Error("a killed process counts as alive")
	}
	<-d.Done()
	if id.Signal(9) == nil {
		t.Error("a dead process was signalled")
	}
}
