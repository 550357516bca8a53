package terminal

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Command {
		os.Exit(sandbox.Main(os.Stderr))
	}
	os.Exit(m.Run())
}

// TestLimits: a person's command in a box has the limits of an agent's, and pawl has none afterwards.
func TestLimits(t *testing.T) {
	limits := sandbox.Limits{Processes: 100, Memory: 256 << 20}
	held, leave := sandbox.LimitGroup(limits)
	if leave(); !held && os.Getuid() == 0 {
		t.Skip("root is held by control groups only, and there are none to be had")
	}
	v := sandbox.Judge(sandbox.Normal, sandbox.Probe(t.Context()), false)
	if !v.Boxed {
		t.Skip("this machine gives no box")
	}
	dir := t.TempDir()
	before, _ := os.ReadFile("/proc/self/cgroup")
	status, err := Run(t.Context(), process.Command{
		Args: []string{"sh", "-c", `exec >said 2>&1; i=0; while [ $i -lt 400 ]; do sleep 1000 & i=$((i+1)); done; echo all of them`},
		Dir:  dir, Env: []string{"PATH=" + os.Getenv("PATH")},
	}, &sandbox.Policy{Write: []string{dir}, Means: v.Means, Limits: limits}, nil)
	said, _ := os.ReadFile(filepath.Join(dir, "said"))
	if err != nil || status == 0 || !strings.Contains(strings.ToLower(string(said)), "fork") {
		t.Errorf("it ended with %d, %v, want it refused to fork: %s", status, err, said)
	}
	if after, _ := os.ReadFile("/proc/self/cgroup"); !bytes.Equal(after, before) {
		t.Errorf("pawl is left in its group:\n%s", after)
	}
}

// TestRun: a person types at a command that has a terminal of its own, with job control.
func TestRun(t *testing.T) {
	person, screen, err := pty.Open()
	if err != nil {
		t.Skipf("this machine gives no terminals: %v", err)
	}
	defer func() { _, _ = person.Close(), screen.Close() }()
	if err := pty.Setsize(person, &pty.Winsize{Rows: 33, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(person); in.Scan(); {
			lines <- strings.TrimSuffix(in.Text(), "\r")
		}
	}()
	ended := make(chan int)
	go func() {
		status, err := Run(t.Context(), process.Command{
			Args: []string{"sh", "-c", `stty size; echo ready; read -r word; echo "word: $word"; : </dev/tty && exit 7`},
			Env:  []string{"PATH=" + os.Getenv("PATH")},
		}, nil, screen)
		if err != nil {
			t.Error(err)
		}
		ended <- status
	}()
	var said []string
	for line := range lines {
		said = append(said, line)
		switch line {
		case "ready":
			if _, err := person.WriteString("hello\n"); err != nil {
				t.Fatal(err)
			}
		case "word: hello":
			if status := <-ended; status != 7 {
				t.Errorf("it ended with %d, not 7", status)
			}
			if said[0] != "33 77" {
				t.Errorf("the size of its terminal is %q", said[0])
			}
			return
		}
	}
	t.Errorf("it said %q", said)
}

// A command whose terminal is hung up is asked to end before it is made to.
func TestHangUp(t *testing.T) {
	t.Parallel()
	a, err := Attach(process.Command{
		Args: []string{"sh", "-c", `trap 'kill $!; exit 5' TERM; sleep 1000 & echo ready; wait`},
		Env:  []string{"PATH=" + os.Getenv("PATH")},
	})
	if err != nil {
		t.Skipf("this machine gives no terminals: %v", err)
	}
	if in := bufio.NewScanner(a); !in.Scan() || in.Text() != "ready" {
		t.Errorf("it said %q: %v", in.Text(), in.Err())
	}
	for range 2 {
		if status := a.HangUp(); status != 5 {
			t.Errorf("it ended with %d, not 5", status)
		}
	}
}
