package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/text"
	"github.com/pawl-dev/pawl/internal/do/boxnet"
	"github.com/pawl-dev/pawl/internal/do/egress"
	"github.com/pawl-dev/pawl/internal/do/netstack"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

// The test binary is the supervisor, and a client that can be killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "__supervise" {
		if err := Serve(context.Background(), os.Args[2], testParsers, func() (Rest, error) {
			return Rest{Ways: boxnet.Ways{Proxy: egress.Out(os.Getenv), Stack: netstack.Serve}, Models: playModels}, nil
		}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == sandbox.Command {
		os.Exit(sandbox.Main(os.Stderr))
	}
	if len(os.Args) > 3 && os.Args[1] == "__ask" {
		os.Exit(ask(os.Args[2], os.Args[3]))
	}
	if len(os.Args) > 2 && os.Args[1] == "__sit" {
		os.Exit(sit(os.Args[2]))
	}
	if len(os.Args) > 1 && os.Args[1] == "__client" {
		playClient()
		os.Exit(0)
	}
	code := m.Run()
	// Orphans of all tests fall to this process, those without a mark too.
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		fmt.Fprintln(os.Stderr, "left behind: a child,", pid, err)
		code = 1
	}
	os.Exit(code)
}

// ask sends a line to a socket and prints what comes first.
func ask(socket, line string) int {
	conn, err := net.DialTimeout("unix", socket, time.Minute)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	_, _ = fmt.Fprintln(conn, line)
	answer, _ := bufio.NewReader(conn).ReadString('\n')
	fmt.Print(answer)
	return 0
}

// sit listens at a socket, says so, and prints what it is told.
func sit(socket string) int {
	l, err := net.Listen("unix", socket)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("sits")
	conn, err := l.Accept()
	if err != nil {
		return 1
	}
	told, _ := bufio.NewReader(conn).ReadString('\n')
	fmt.Print(told)
	return 0
}

func testParsers(name string, _ Job) (agent.Parser, error) {
	switch name {
	case "text":
		return text.New(nil), nil
	case "json":
		return eventLines{}, nil
	case "panic":
		return panics{}, nil
	}
	return nil, errors.New("unknown format " + name)
}

// eventLines reads lines that are events in JSON already; others are text.
type eventLines struct{}

func (eventLines) Line(line []byte, _ bool, emit func(agent.Event)) {
	var e agent.Event
	if json.Unmarshal(line, &e) != nil || e.Kind == "" {
		e = agent.Event{Kind: agent.Text, Text: string(line)}
	}
	emit(e)
}

func (eventLines) Close(func(agent.Event)) {}

type panics struct{}

func (panics) Line([]byte, bool, func(agent.Event)) { panic("hostile") }
func (panics) Close(func(agent.Event))              {}

// clientOrder is what the client part does: start a supervisor, run a job, or
// stay idle if the job has no ID.
type clientOrder struct {
	Options Options
	Job     Job
}

// playClient says on stdout how far it came: "up", then the text of each
// event, then the result.
func playClient() {
	var o clientOrder
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		panic(err)
	}
	c, err := Start(context.Background(), o.Options)
	if err != nil {
		panic(err)
	}
	fmt.Println("up", c.currentSession().status.Supervisor.PID)
	if o.Job.ID == "" {
		<-c.currentSession().gone
	}
	r, err := c.Run(context.Background(), o.Job, func(e agent.Event) { fmt.Println(e.Text) })
	fmt.Println("result", r.Exit, err)
	_ = c.Close()
}

// killable is a client in a process of its own.
type killable struct {
	cmd        *exec.Cmd
	lines      *bufio.Scanner
	supervisor process.Identity
}

func startKillable(t *testing.T, o Options, job Job) *killable {
	t.Helper()
	k, err := launch(t, o, job)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func launch(t *testing.T, o Options, job Job) (*killable, error) {
	t.Helper()
	data, err := json.Marshal(clientOrder{o, job})
	if err != nil {
		return nil, err
	}
	k := &killable{cmd: exec.Command(os.Args[0], "__client")}
	k.cmd.Stdin = strings.NewReader(string(data))
	k.cmd.Stderr = os.Stderr
	out, err := k.cmd.StdoutPipe()
	if err == nil {
		err = k.cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { k.kill() })
	k.lines = bufio.NewScanner(out)
	up, err := k.reach("up")
	if err != nil {
		return nil, err
	}
	pid := 0
	if _, err := fmt.Sscanf(up, "up %d", &pid); err != nil {
		return nil, err
	}
	k.supervisor, err = process.Identify(pid)
	return k, err
}

// startBriefly starts a client whose job is up, with a short lease: the shortest
// that this machine, as busy as it is, can keep up so long.
func startBriefly(t *testing.T) (*killable, Job) {
	t.Helper()
	for lease := 100 * time.Millisecond; ; lease *= 2 {
		r := newRun(t)
		r.o.Lease = lease
		job := r.job("1", tree)
		job.Limits.Grace = time.Millisecond
		k, err := launch(t, r.o, job)
		if err == nil {
			_, err = k.reach("up")
		}
		switch {
		case err == nil:
			return k, job
		case lease > time.Minute:
			t.Fatal(err)
		}
	}
}

// await reads lines up to one that starts with want.
func (k *killable) await(t *testing.T, want string) string {
	t.Helper()
	line, err := k.reach(want)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func (k *killable) reach(want string) (string, error) {
	for k.lines.Scan() {
		if strings.HasPrefix(k.lines.Text(), want) {
			return k.lines.Text(), nil
		}
	}
	return "", fmt.Errorf("the client ended before %q", want)
}

func (k *killable) kill() {
	_ = k.cmd.Process.Signal(syscall.SIGKILL)
	_ = k.cmd.Wait()
}

// run is one run of a test: a folder, a mark, and the promise that nothing of
// it is left at the end.
type run struct {
	t   *testing.T
	o   Options
	dir string
}

func newRun(t *testing.T) *run {
	t.Helper()
	dir := t.TempDir()
	r := &run{t: t, dir: dir, o: Options{
		RunDir: filepath.Join(dir, "run"), Exe: os.Args[0], Args: []string{"__supervise"},
		Lease: time.Minute, Unboxed: true, Run: fmt.Sprintf("test-%d-%d", os.Getpid(), time.Now().UnixNano()),
	}}
	t.Cleanup(func() {
		if left := marked(Mark(r.o.Run)); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
		_, _ = process.Sweep(context.Background(), Mark(r.o.Run), 0)
	})
	return r
}

// marked lists the processes that carry mark.
func marked(mark string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		env, _ := os.ReadFile(f)
		if strings.Contains("\x00"+string(env), "\x00"+mark+"\x00") {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
			found = append(found, f+" "+string(line))
		}
	}
	return found
}

func (r *run) start() *Client {
	r.t.Helper()
	c, err := Start(context.Background(), r.o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			r.t.Error(err)
		}
	})
	return c
}

// job is a shell script as a job. COUNT is a file that counts its starts.
func (r *run) job(id, script string) Job {
	return Job{
		ID: id, Files: filepath.Join(r.o.RunDir, "job"+id), Dir: r.dir,
		Args:   []string{"/bin/sh", "-c", "echo >>\"$COUNT\"; " + script},
		Env:    append(os.Environ(), "COUNT="+r.counter(id)),
		Parser: "json",
	}
}

func (r *run) counter(id string) string { return filepath.Join(r.dir, "count"+id) }

// starts is how often the job was started.
func (r *run) starts(id string) int {
	data, _ := os.ReadFile(r.counter(id))
	return strings.Count(string(data), "\n")
}

// fifo makes a pipe in the file system to hold a job back with.
func (r *run) fifo(name string) string {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// gone waits for the end of a process.
func gone(t *testing.T, id process.Identity) {
	t.Helper()
	if !id.AwaitEnd(t.Context()) {
		t.Fatalf("process %d does not end", id.PID)
	}
}

// must takes the result of a run that has one.
func must(t *testing.T) func(Result, error) Result {
	t.Helper()
	return func(r Result, err error) Result {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// onText calls f at the first text event that is want.
func onText(want string, f func()) func(agent.Event) {
	done := false
	return func(e agent.Event) {
		if e.Text == want && !done {
			done = true
			f()
		}
	}
}
