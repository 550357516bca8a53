package store

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/keep/journal"
)

// The tests run with real files, and where two processes matter with real
// ones: the test binary again, told by childEnv what to do.
const childEnv = "PAWL_TEST_SQLITE_CHILD"

func TestMain(m *testing.M) {
	if job := os.Getenv(childEnv); job != "" {
		os.Exit(child(strings.Fields(job)))
	}
	os.Exit(m.Run())
}

// child does one job: "JOB PATH ID". What it has done it says on stdout, one
// line a deed, when the deed is done.
func child(job []string) int {
	ctx := context.Background()
	s, err := openAt(ctx, job[1])
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	defer func() { _ = s.Close() }()
	switch job[0] {
	case "create":
		err = s.Create(ctx, run(job[2], "same"), event(job[2], 1, "created"), func(Owner) bool { return true })
	case "cases":
		for i := 0; i < 30 && err == nil; i++ {
			_, err = s.AddCases(ctx, []board.Draft{draft(fmt.Sprint(job[2], i))}, board.Person, noon)
		}
	case "lock":
		err = holdLock(job[1])
	case "write":
		err = writeForEver(ctx, s, job[2])
	}
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	fmt.Println("done")
	return 0
}

// writeForEver commits step after step, and acknowledges each on stdout. It
// ends when it is killed, or when nobody reads its stdout.
func writeForEver(ctx context.Context, s *Store, id string) error {
	if err := s.Create(ctx, run(id, id), event(id, 1, "created"), nobody); err != nil {
		return err
	}
	for n := int64(2); ; n++ {
		step := stepOf(run(id, id), n)
		step.Record = record(int(n), 1)
		commit := s.Commit
		if n%16 == 0 {
			commit = durable(s)
		}
		if err := commit(ctx, step); err != nil {
			return err
		}
		if _, err := fmt.Println(n); err != nil {
			return err
		}
	}
}

// process is a child that is running.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func start(t *testing.T, job ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join(job, " "))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, err := cmd.StdinPipe() // some go on until it is closed
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return &process{cmd, bufio.NewScanner(out)}
}

// line waits for the next line; "" is the end.
func (p *process) line() string {
	if !p.lines.Scan() {
		return ""
	}
	return p.lines.Text()
}

// kill ends the child as kill -9 does, and returns the last number that it
// had acknowledged.
func (p *process) kill(t *testing.T, last int64) int64 {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for l := p.line(); l != ""; l = p.line() {
		n, err := strconv.ParseInt(l, 10, 64)
		if err != nil {
			t.Fatalf("child says %q", l)
		}
		last = n
	}
	_ = p.cmd.Wait() // it was killed
	return last
}

func open(t testing.TB, path string) *Store {
	t.Helper()
	s, err := openAt(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func openAt(ctx context.Context, path string) (*Store, error) {
	if strings.HasPrefix(path, "postgres:") {
		return OpenShared(ctx, Shared{Address: path})
	}
	return Open(ctx, path)
}

func newPath(t testing.TB) string {
	t.Helper()
	if address := another(); address != "" {
		return address
	}
	return filepath.Join(t.TempDir(), "pawl.db")
}

func fresh(t testing.TB) *Store {
	t.Helper()
	return open(t, newPath(t))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var (
	noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	us   = Owner{PID: 100, Start: "s100", Boot: "b", Host: "h"}
	them = Owner{PID: 200, Start: "s200", Boot: "b", Host: "h"}
)

func nobody(Owner) bool    { return false }
func everybody(Owner) bool { return true }

// run is a run of ours as it is at its start.
func run(id, name string) Run {
	return Run{
		ID: id, Kind: "procedure", Name: name, Root: "/repo", Status: "running",
		State: json.RawMessage(`{"phase":"start"}`), Setup: json.RawMessage(`{"flags":["-v"]}`),
		MaxIterations: 10, Agent: "script", Owner: us, StartedAt: noon,
	}
}

func event(id string, n int64, kind string) journal.Event {
	return journal.Event{
		Run: id, N: n, At: noon.Add(time.Duration(n) * time.Second), Kind: kind,
		Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)),
	}
}

// stepOf is step n of the run r.
func stepOf(r Run, n int64) Step {
	r.Iteration = int(n)
	r.State = json.RawMessage(fmt.Sprintf(`{"at":%d}`, n))
	return Step{Run: r, Event: event(r.ID, n, "iteration.ended")}
}

func record(number, attempt int) *loop.Record {
	return &loop.Record{
		Number: number, Attempt: attempt, StartedAt: noon, Elapsed: 1500 * time.Microsecond, Agent: "script",
		Progress: -1, Score: 900, Outcome: loop.Success, Files: []string{"a.go"},
		Gates: []loop.Gate{{Name: "tests", Required: true, Status: loop.GatePassed, Total: -1}},
	}
}

// begun is a store with one run of ours, created with event 1.
func begun(t testing.TB, id string) (*Store, Run) {
	t.Helper()
	s, r := fresh(t), run(id, "build")
	must(t, s.Create(t.Context(), r, event(id, 1, "run.created"), nobody))
	return s, r
}

func readAll(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(f)
	must(t, err)
	return string(b)
}

// durable commits as [RunTables.Commit] does, and waits for the disk.
func durable(s *Store) func(context.Context, Step) error {
	return func(ctx context.Context, step Step) error { return s.commitStep(ctx, powerSafe, step) }
}
