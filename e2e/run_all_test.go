//go:build e2e && e2e_all

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/test/modelserver"
)

// These tests are pawl with each of the programs in every way in which a run
// goes on or is ended. Nothing that a run started may be left after any of
// them: every run looks for that.

func eachProgram(t *testing.T, test func(t *testing.T, p program)) {
	t.Parallel()
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			test(t, p)
		})
	}
}

// tries is how often each program makes a call that is refused with 429
// before it gives up.
var tries = map[string]int{"claude": 3, "codex": 2, "opencode": 9, "gemini": 3}

// limits are how a limit may be read: Gemini CLI calls one of a minute a
// quota, with the time to wait.
var limits = []string{"rate_limit", "quota_exhausted"}

// Without the gateway the program gives up; pawl waits, and does the same iteration again.
func TestLimitIsWaitedOut(t *testing.T) {
	eachProgram(t, func(t *testing.T, p program) {
		u, model := scene(t, p, "gateway: {enabled: never}\n")
		model.set(append(slices.Repeat([]modelserver.Reply{p.limited}, tries[p.name]), u.writes("done.txt")...)...)
		r, s := u.run(nil)
		if r.code != 0 || s.Status != "completed" || len(s.Iterations) != 2 {
			t.Fatalf("exit %d, %+v after %d calls\n%s", r.code, s, len(u.model.Calls()), r.stderr)
		}
		if first := s.Iterations[0]; first.Number != 1 || first.Outcome != "waited" || first.Failure == nil || !slices.Contains(limits, first.Failure.Class) {
			t.Errorf("the first attempt is %+v, %+v", first, first.Failure)
		}
		if second := s.Iterations[1]; second.Number != 1 || second.Attempt != 2 || !second.Complete {
			t.Errorf("the second attempt is %+v", second)
		}
	})
}

// A quota that lasts longer than a run may wait needs a person. OpenCode
// itself waits for it without a word, until its time is up.
func TestQuotaAsksAPerson(t *testing.T) {
	eachProgram(t, func(t *testing.T, p program) {
		u, model := scene(t, p, "loop: {max_wait: 10m, max_waits: 1, iteration_timeout: 40s}")
		model.set(p.quota)
		var flags []string
		if p.name == "opencode" {
			flags = []string{"--max-iterations", "1"}
		}
		r, s := u.run(nil, flags...)
		if n := len(s.Iterations); n < 1 || n > 2 || s.Iterations[0].Complete || s.Iterations[0].Failure == nil {
			t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
		}
		f := s.Iterations[0].Failure
		if p.name == "opencode" {
			if f.Class != "timeout" {
				t.Errorf("the failure is %+v", f)
			}
			return
		}
		if (r.code != 1 && r.code != 4) || !slices.Contains(limits, f.Class) {
			t.Errorf("exit %d, the failure is %+v\n%s", r.code, f, r.stderr)
		}
		if calls := len(u.model.Calls()); calls > 4 {
			t.Errorf("%d calls were made against a quota", calls)
		}
	})
}

func TestContextIsToldApart(t *testing.T) {
	eachProgram(t, func(t *testing.T, p program) {
		// Asides too: OpenCode would shorten the conversation again and again.
		u := newUser(t, p, serve(t, modelserver.Scenario{Replies: []modelserver.Reply{p.tooLong}}), "")
		r, s := u.run(nil, "--max-iterations", "1")
		if len(s.Iterations) != 1 || s.Iterations[0].Complete {
			t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
		}
		if f := s.Iterations[0].Failure; f == nil || f.Class != "context_length" {
			t.Errorf("the failure is %+v", f)
		}
	})
}

func TestOutageIsGotOver(t *testing.T) {
	eachProgram(t, func(t *testing.T, p program) {
		u, model := scene(t, p, "")
		model.set(append([]modelserver.Reply{p.overloaded}, u.writes("done.txt")...)...)
		r, s := u.run(nil)
		if r.code != 0 || len(s.Iterations) != 1 || s.Iterations[0].Attempt != 1 || !s.Iterations[0].Complete {
			t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
		}
	})
}

func TestBrokenStreamIsGotOver(t *testing.T) {
	eachProgram(t, func(t *testing.T, p program) {
		u, model := scene(t, p, "")
		model.set(append([]modelserver.Reply{{Text: "this stream breaks", Cut: 1}}, u.writes("done.txt")...)...)
		r, s := u.run(nil)
		if r.code != 0 || !s.Success {
			t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
		}
	})
}

// A page of a proxy is no answer. A program that asks for it again without
// end is ended.
func TestPageOfAProxy(t *testing.T) {
	eachProgram(t, func(t *testing.T, p program) {
		u, model := scene(t, p, "loop: {iteration_timeout: 40s}")
		model.set(page)
		r, s := u.run(nil, "--max-iterations", "1")
		if len(s.Iterations) != 1 || s.Iterations[0].Complete || s.Iterations[0].Failure == nil {
			t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
		}
	})
}

// What the agent left behind in the background ends with its iteration.
func TestBackgroundEndsWithTheIteration(t *testing.T) {
	eachProgram(t, func(t *testing.T, p program) {
		left := newLeft(t)
		u, model := scene(t, p, left.settings())
		model.set(append([]modelserver.Reply{{Tools: []modelserver.Tool{p.shell(left.background())}}}, u.writes("done.txt")...)...)
		r, s := u.run(nil)
		if r.code != 0 || !s.Success {
			t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
		}
		left.gone(t)
	})
}

// Each program is ended in each phase, in each way.
func TestEndsInEachPhase(t *testing.T) {
	eachProgram(t, func(t *testing.T, p program) {
		for name, phase := range phases {
			for way, end := range ends {
				t.Run(name+", "+way, func(t *testing.T) {
					t.Parallel()
					left := newLeft(t)
					u, model := scene(t, p, end.settings+left.settings())
					model.set(phase.replies(p, left)...)
					r, s := u.run(func(pawl *os.Process) {
						for range phase.calls {
							select {
							case <-model.asked:
							case <-time.After(2 * time.Minute):
								t.Error("the model was not asked")
							}
						}
						if phase.shell {
							left.begun(t)
						}
						end.do(t, u, pawl)
					}, "--max-iterations", "1")
					if r.code != end.code || len(s.Iterations) != 1 {
						t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
					}
					if it := s.Iterations[0]; it.Ended != end.ended || it.Complete {
						t.Errorf("the iteration ended by %q, complete is %v", it.Ended, it.Complete)
					}
					if phase.shell {
						left.gone(t)
					}
				})
			}
		}
	})
}

// phase is what a program is doing when it is ended.
type phase struct {
	calls   int  // model calls until then
	shell   bool // a shell command has begun
	replies func(program, left) []modelserver.Reply
}

var phases = map[string]phase{
	"waiting for the model": {calls: 1, replies: func(program, left) []modelserver.Reply {
		return []modelserver.Reply{{Hang: true}}
	}},
	"running a shell command": {calls: 1, shell: true, replies: func(p program, l left) []modelserver.Reply {
		return []modelserver.Reply{{Text: "It runs.", Tools: []modelserver.Tool{p.shell(l.foreground())}}, {Hang: true}}
	}},
	"with a background process": {calls: 2, shell: true, replies: func(p program, l left) []modelserver.Reply {
		return []modelserver.Reply{{Text: "It runs.", Tools: []modelserver.Tool{p.shell(l.background())}}, {Hang: true}}
	}},
}

// end is a way in which an agent is ended.
type end struct {
	settings string
	code     int // with one iteration at most, which is then the last one
	ended    string
	do       func(t *testing.T, u *user, pawl *os.Process)
}

var ends = map[string]end{
	"time limit": {
		settings: "loop: {iteration_timeout: 60s}\n", code: 3, ended: "timeout",
		do: func(*testing.T, *user, *os.Process) {},
	},
	"pawl stop": {code: 130, ended: "stop", do: func(t *testing.T, u *user, _ *os.Process) {
		if r := u.do(nil, "stop", "fix"); r.code != 0 {
			t.Errorf("pawl stop: exit %d, %s", r.code, r.stderr)
		}
	}},
	"Ctrl+C": {code: 130, ended: "stop", do: func(t *testing.T, _ *user, pawl *os.Process) {
		if err := pawl.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
	}},
}

// left is a process that an agent's shell command starts, and that does not
// want to end. It leaves its session and ignores what it can.
type left struct{ pid, ready string }

func newLeft(t *testing.T) left {
	t.Helper()
	// A path that is no destruction for the level normal.
	dir, err := os.MkdirTemp("/tmp", "pawl-left-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l := left{pid: filepath.Join(dir, "pid"), ready: filepath.Join(dir, "ready")}
	if err := syscall.Mkfifo(l.ready, 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

// settings let an agent write there.
func (l left) settings() string { return "safety: {write: [" + filepath.Dir(l.pid) + "]}\n" }

func (l left) stubborn() string {
	// Opened for both, the pipe takes a line before anybody reads it.
	return "trap \"\" TERM HUP INT; echo $$ > " + l.pid + "; echo >&3; exec tail -f /dev/null"
}

// foreground has env at its beginning, as Gemini CLI takes a plain sh -c away
// and runs the quoted rest.
func (l left) foreground() string {
	return "env sh -c '" + l.stubborn() + "' 3<>" + l.ready
}

func (l left) background() string {
	return "nohup setsid sh -c '" + l.stubborn() + "' >/dev/null 2>&1 3<>" + l.ready + " & echo started"
}

// begun waits until the process runs.
func (l left) begun(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile(l.ready, os.O_RDWR, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	if err := f.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Error(err)
		return
	}
	if _, err := f.Read(make([]byte, 1)); err != nil {
		t.Errorf("the shell command did not begin: %v", err)
	}
}

// gone is a failure if the process still runs, with or without its mark.
func (l left) gone(t *testing.T) {
	t.Helper()
	b, err := os.ReadFile(l.pid)
	if err != nil {
		t.Errorf("the shell command did not run: %v", err)
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Errorf("the process's number: %v", err)
		return
	}
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err == nil && bytes.Contains(cmdline, []byte("/dev/null")) {
		t.Errorf("process %d is left: %q", pid, cmdline)
	}
}
