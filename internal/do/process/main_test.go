package process

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary plays two parts of its own in other processes, as a Reaper
// waits for every child of its process and a dead parent cannot be a test.
func TestMain(m *testing.M) {
	switch os.Getenv("PROCESS_TEST_PART") {
	case "reaper":
		playReaper()
	case "starter":
		playStarter()
	default:
		os.Exit(m.Run())
	}
	os.Exit(0)
}

// order is what the reaper part does: start a shell script, wait until it has
// written a line (when Ready) or has ended, then end what there is.
type order struct {
	Script   string
	Ready    bool
	Grace    time.Duration
	Handback bool // start with INT ignored and hand down the default
}

// report is what it found.
type report struct {
	Ended  Ended
	Code   int
	Signal string
	Idle   bool
	Out    string
	Err    string
}

func playReaper() {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		panic(err)
	}
	if o.Handback {
		signal.Ignore(syscall.SIGINT)
		HandDownDefaults()
	}
	r, err := NewReaper()
	if err != nil {
		panic(err)
	}
	read, write, err := Pipe(1 << 20)
	if err != nil {
		panic(err)
	}
	var rep report
	c, err := r.Start(Command{Args: []string{"/bin/sh", "-c", o.Script}, Env: os.Environ(), Stdout: write, Stderr: os.Stderr})
	_ = write.Close()
	if err != nil {
		rep.Err = err.Error()
	} else {
		lines := bufio.NewReader(read)
		if o.Ready {
			rep.Out, _ = lines.ReadString('\n')
		} else {
			<-c.Done()
		}
		rep.Ended = r.Terminate(context.Background(), o.Grace)
		<-c.Done()
		rep.Code, rep.Signal = c.Status().ExitStatus(), ""
		if c.Status().Signaled() {
			rep.Signal = c.Status().Signal().String()
		}
	}
	select {
	case <-r.Idle():
		rep.Idle = true
	default:
	}
	r.Close()
	_ = json.NewEncoder(os.Stdout).Encode(rep)
}

// playStarter starts a marked process that leaves its session, says so, and
// dies by KILL.
func playStarter() {
	d, err := StartDetached(Command{
		Args: []string{"/bin/sh", "-c", "echo started; exec sleep 1000"}, Env: os.Environ(), Stdout: os.Stdout,
	})
	if err != nil {
		panic(err)
	}
	<-d.Done()
}

// reap runs an order in a reaper process of its own and checks that nothing
// with the test's mark is left.
func reap(t *testing.T, o order) report {
	t.Helper()
	mark := newMark(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PROCESS_TEST_PART=reaper", mark)
	cmd.Stdin = strings.NewReader(mustJSON(o))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the reaper part failed: %v", err)
	}
	var rep report
	if err := json.Unmarshal(out, &rep); err != nil {
		t.Fatalf("bad report %q: %v", out, err)
	}
	if left := marked(mark); len(left) > 0 {
		t.Errorf("left behind: %+v", left)
	}
	return rep
}

func mustJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// newMark is a variable that no other test uses; what carries it is ended
// after the test.
func newMark(t *testing.T) string {
	t.Helper()
	mark := fmt.Sprintf("PROCESS_TEST_RUN=%d.%d", os.Getpid(), time.Now().UnixNano())
	t.Cleanup(func() { _, _ = Sweep(context.Background(), mark, 0) })
	return mark
}

func marked(mark string) []Proc {
	name, _, _ := strings.Cut(mark, "=")
	return sweep{mark: []byte(mark), name: []byte(name + "=")}.findMarked()
}
