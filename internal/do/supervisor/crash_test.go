package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/process"
)

// held is a script that says "up", waits for the fifo, and then does rest.
func (r *run) held(name, rest string) string {
	return `echo up; read x <"` + r.fifo(name) + `"; ` + rest
}

func TestAKilledClientIsFollowedByAnother(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	job := r.job("1", r.held("go", "echo adopted; exit 3"))
	k := startKillable(t, r.o, job)
	k.await(t, "up")
	k.kill()

	c, status, err := Attach(context.Background(), r.o.RunDir)
	if err != nil {
		t.Fatal(err)
	}
	if status.Job == nil || status.Job.ID != "1" || status.StartedAt.IsZero() || status.Supervisor != k.supervisor {
		t.Errorf("status %+v", status)
	}
	r.open("go")
	saw := false
	got := must(t)(c.Run(context.Background(), *status.Job, onText("adopted", func() { saw = true })))
	if got.Exit.Code != 3 || got.Exit.Ended != "" || !saw || r.starts("1") != 1 {
		t.Errorf("got %+v, %d starts, saw the event: %v", got, r.starts("1"), saw)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	gone(t, k.supervisor)
}

// A supervisor that somebody ended before it answered is started once more.
func TestASupervisorIsKilledWhileItStarts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, dies string
		starts     int
		want       string
	}{
		{"once", `[ -e "$0.died" ] || { touch "$0.died"; kill -9 $$; }`, 2, ""},
		{"always", `kill -9 $$`, 2, "cannot start a supervisor: it ended before it answered, two times; "},
		{"and says why", `echo "no such library" >&2; exit 127`, 2, "(its log ends: no such library)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRun(t)
			script := filepath.Join(t.TempDir(), "pawl")
			text := fmt.Sprintf("#!/bin/sh\necho start >> \"$0.starts\"\n%s\nexec '%s' \"$@\"\n", c.dies, r.o.Exe)
			if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
			r.o.Exe = script
			client, err := Start(t.Context(), r.o)
			if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) {
				t.Errorf("Start: %v, want %q", err, c.want)
			}
			if err == nil {
				got := must(t)(client.Run(t.Context(), r.job("1", "exit 3"), nil))
				if got.Exit.Code != 3 {
					t.Errorf("got %+v", got)
				}
				if err := client.Close(); err != nil {
					t.Error(err)
				}
			}
			data, err := os.ReadFile(script + ".starts")
			if n := strings.Count(string(data), "start"); n != c.starts || err != nil {
				t.Errorf("it was started %d times, not %d (%v)", n, c.starts, err)
			}
		})
	}
}

// The supervisor of an attached client dies before the client asks for its job:
// nobody is left who would end the agent, so the client does.
func TestAnAttachedSupervisorDiesBeforeItIsAsked(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	job := r.job("1", r.held("go", "exit 3"))
	k := startKillable(t, r.o, job)
	k.await(t, "up")
	k.kill()
	c, status, err := Attach(context.Background(), r.o.RunDir)
	if err != nil {
		t.Fatal(err)
	}
	_ = status.Supervisor.Signal(syscall.SIGKILL)
	gone(t, k.supervisor)
	<-c.currentSession().gone
	if _, err := c.Run(context.Background(), *status.Job, nil); !errors.Is(err, ErrGone) {
		t.Errorf("Run: %v, want ErrGone", err)
	}
	if left, _ := process.Sweep(context.Background(), Mark(r.o.Run), 0); left.Found != 0 {
		t.Errorf("%d processes were left", left.Found)
	}
}

func TestAJobThatEndsUnattendedIsFound(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	job := r.job("1", r.held("go", "exit 4"))
	k := startKillable(t, r.o, job)
	k.await(t, "up")
	k.kill()
	r.open("go")
	gone(t, k.supervisor)
	if got, ok, err := LoadResult(job.Files); !ok || err != nil || got.Exit.Code != 4 {
		t.Errorf("stored %+v, %v, %v", got, ok, err)
	}
	if _, _, err := Attach(context.Background(), r.o.RunDir); !errors.Is(err, ErrGone) {
		t.Errorf("Attach: %v, want ErrGone", err)
	}
	if got := must(t)(r.start().Run(context.Background(), job, nil)); got.Exit.Code != 4 || r.starts("1") != 1 {
		t.Errorf("got %+v, %d starts", got, r.starts("1"))
	}
}

func TestTheLeaseEndsAllThatIsUnattended(t *testing.T) {
	t.Parallel()
	k, job := startBriefly(t)
	k.kill()
	gone(t, k.supervisor)
	if got, ok, err := LoadResult(job.Files); !ok || err != nil || got.Exit.Ended != loop.EndedLease {
		t.Errorf("stored %+v, %v, %v", got.Exit, ok, err)
	}
}

// A client that is stopped, and not dead, does not renew either.
func TestTheLeaseEndsWhenTheClientIsStopped(t *testing.T) {
	t.Parallel()
	k, _ := startBriefly(t)
	if err := k.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	gone(t, k.supervisor)
	if err := k.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint("result ", loop.Exit{Code: -1, Signal: "killed", Ended: loop.EndedLease}, " <nil>")
	if got := k.await(t, "result"); got != want {
		t.Errorf("the client heard %q, want %q", got, want)
	}
}

func TestAKilledClientWithoutAJobLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	k := startKillable(t, r.o, Job{})
	k.kill()
	gone(t, k.supervisor)
}

func TestBothKilledIsSwept(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	job := r.job("1", `echo '{"kind":"usage","usage":{"input":5}}';`+tree)
	k := startKillable(t, r.o, job)
	k.await(t, "up")
	k.kill()
	if err := k.supervisor.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone(t, k.supervisor)
	if _, _, err := Attach(context.Background(), r.o.RunDir); !errors.Is(err, ErrGone) {
		t.Errorf("Attach: %v, want ErrGone", err)
	}
	ended, err := process.Sweep(context.Background(), Mark(r.o.Run), time.Millisecond)
	if err != nil || ended.Found < 3 || ended.Left > 0 {
		t.Errorf("Sweep: %+v, %v", ended, err)
	}
	got := must(t)(Lost(job))
	if got.Exit.Ended != loop.EndedLost || got.Agent.Usage.Input != 5 {
		t.Errorf("got %+v", got)
	}
	if again := must(t)(r.start().Run(context.Background(), job, nil)); again.Exit.Ended != loop.EndedLost || r.starts("1") != 1 {
		t.Errorf("the lost job ran again: %+v", again)
	}
}

// The supervisor is killed in every phase of a job. Whatever the moment: one
// start at most, a result that tells the truth, and nothing left.
func TestASupervisorKilledInAnyPhase(t *testing.T) {
	phases := map[string]func(t *testing.T, r *run, c *Client, id process.Identity) (Job, context.Context, func(agent.Event)){
		"before the job": func(t *testing.T, r *run, _ *Client, id process.Identity) (Job, context.Context, func(agent.Event)) {
			kill9(t, id)
			gone(t, id)
			return r.job("1", "echo up; exit 3"), context.Background(), nil
		},
		"while it runs": func(t *testing.T, r *run, _ *Client, id process.Identity) (Job, context.Context, func(agent.Event)) {
			return r.job("1", tree), context.Background(), onText("up", func() { kill9(t, id) })
		},
		"while it is ended": func(t *testing.T, r *run, _ *Client, id process.Identity) (Job, context.Context, func(agent.Event)) {
			ctx, cancel := context.WithCancel(context.Background())
			t.Cleanup(cancel)
			job := r.job("1", `trap 'echo told' TERM; echo up; while :; do sleep 1000 & wait $!; done`)
			job.Limits.Grace = time.Hour
			up, told := onText("up", cancel), onText("told", func() { kill9(t, id) })
			return job, ctx, func(e agent.Event) { up(e); told(e) }
		},
		"while its leftovers are ended": func(t *testing.T, r *run, _ *Client, id process.Identity) (Job, context.Context, func(agent.Event)) {
			job := r.job("1", `setsid sh -c 'trap "echo told" TERM; echo up; while :; do sleep 1000 & wait $!; done' & read x <"`+r.fifo("go")+`"`)
			job.Limits.Grace = time.Hour
			up, told := onText("up", func() { r.open("go") }), onText("told", func() { kill9(t, id) })
			return job, context.Background(), func(e agent.Event) { up(e); told(e) }
		},
	}
	for name, phase := range phases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRun(t)
			c := r.start()
			job, ctx, onEvent := phase(t, r, c, c.currentSession().status.Supervisor)
			got := must(t)(c.Run(ctx, job, onEvent))
			want := loop.Exit{Code: -1, Ended: loop.EndedLost}
			if name == "before the job" {
				want = loop.Exit{Code: 3}
			}
			if got.Exit != want || r.starts("1") != 1 {
				t.Errorf("got %+v, %d starts; want %+v once", got.Exit, r.starts("1"), want)
			}
		})
	}
}

func kill9(t *testing.T, id process.Identity) {
	t.Helper()
	if err := id.Signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// The kill races with the end of the job and the writing of its result.
func TestASupervisorKilledAtTheEnd(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	for i := range 15 {
		id := fmt.Sprint(i)
		job := r.job(id, "echo up; exit 3")
		self := c.currentSession().status.Supervisor
		raced := make(chan struct{})
		got := must(t)(c.Run(context.Background(), job, onText("up", func() {
			go func() {
				defer close(raced)
				// Each round hits a little later.
				for range i * 2000 {
					_ = process.Alive
				}
				_ = self.Signal(syscall.SIGKILL)
			}()
		})))
		stored, ok, err := LoadResult(job.Files)
		if !ok || err != nil || stored.Exit != got.Exit || r.starts(id) > 1 {
			t.Errorf("round %d: got %+v, stored %+v, %v, %v, %d starts", i, got.Exit, stored.Exit, ok, err, r.starts(id))
		}
		if got.Exit.Code != 3 && got.Exit.Ended != loop.EndedLost {
			t.Errorf("round %d: got %+v", i, got.Exit)
		}
		if got.Exit.Code == 3 && len(got.Stdout.Head) == 0 {
			t.Errorf("round %d: a result without its output: %+v", i, got)
		}
		select {
		case <-raced:
		default: // the event was dropped with the connection
		}
		_ = self.Signal(syscall.SIGKILL)
		gone(t, self)
	}
}

// Client and supervisor died after the start, and nobody asked for Lost.
func TestAJobThatWasStartedIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	job := r.job("1", tree)
	k := startKillable(t, r.o, job)
	k.await(t, "up")
	k.kill()
	kill9(t, k.supervisor)
	gone(t, k.supervisor)
	if _, err := process.Sweep(context.Background(), Mark(r.o.Run), 0); err != nil {
		t.Fatal(err)
	}
	got := must(t)(r.start().Run(context.Background(), job, nil))
	if got.Exit.Ended != loop.EndedLost || r.starts("1") != 1 || got.Stdout.Head != "up\n" {
		t.Errorf("got %+v, %d starts", got, r.starts("1"))
	}
}

func TestTheLaterClientTakesOver(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	job := r.job("1", r.held("go", "exit 3"))
	type answer struct {
		r   Result
		err error
	}
	up, first := make(chan struct{}), make(chan answer, 1)
	go func() {
		got, err := c.Run(context.Background(), job, onText("up", func() { close(up) }))
		first <- answer{got, err}
	}()
	<-up
	later, status, err := Attach(context.Background(), r.o.RunDir)
	if err != nil {
		t.Fatal(err)
	}
	if a := <-first; !errors.Is(a.err, ErrTaken) {
		t.Errorf("the earlier client got %+v, want ErrTaken", a)
	}
	r.open("go")
	if got := must(t)(later.Run(context.Background(), *status.Job, nil)); got.Exit.Code != 3 {
		t.Errorf("got %+v", got)
	}
	if err := later.Close(); err != nil {
		t.Error(err)
	}
}

// What comes in over the socket may be anything.
func TestTheSupervisorOutlivesNonsense(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	for _, text := range []string{"", "\n", "{}\n", "null\n", `{"op":"run"}` + "\n", `{"op":"kill"}` + "\n", "\x00\xff\n", `{"op":"attach"`} {
		conn, err := dialSupervisor(context.Background(), r.o.RunDir)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(text))
		_ = conn.CloseWrite()
		_, _ = net.Conn(conn).Read(make([]byte, 1000))
		_ = conn.Close()
	}
	if got := must(t)(c.Run(context.Background(), r.job("1", "exit 3"), nil)); got.Exit.Code != 3 {
		t.Errorf("got %+v", got)
	}
}

// A client that reads nothing for a while loses the oldest events, and no answer.
func TestASlowClientLosesEventsOnly(t *testing.T) {
	t.Parallel()
	l := &link{kick: make(chan struct{}, 1)}
	l.sendReply(reply{Op: opRenewed})
	text, err := json.Marshal(agent.Event{Kind: agent.Text, Text: strings.Repeat("x", flushAt)})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 * maxLive / flushAt {
		l.sendReply(reply{Op: opEvents, Events: []json.RawMessage{text}})
	}
	l.sendReply(reply{Op: opResult, ID: "1"})
	bytes := 0
	messages := l.takeQueued()
	for _, m := range messages {
		bytes += len(m)
	}
	if last := string(messages[len(messages)-1]); bytes > maxLive+1000 || len(messages) < maxLive/flushAt/2 || !strings.Contains(last, `"result"`) {
		t.Errorf("%d messages of %d bytes, the last %.40s", len(messages), bytes, last)
	}
	if first := string(messages[len(messages)-2]); !strings.Contains(first, `"renewed"`) {
		t.Errorf("the answers are not all there, or before the events: %.40s", first)
	}
}

func TestNewerThanSeesChangesThatCount(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{".git/objects/aa", ".pawl/state", "src"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	future := time.Now().Add(time.Hour)
	later := future.Add(time.Hour)
	touch := func(name string) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, later, later); err != nil {
			t.Fatal(err)
		}
	}
	touch(".git/objects/aa/bb")
	touch(".pawl/state/x")
	if _, ok := newerThan(t.Context(), dir, future); ok {
		t.Error("git's objects or pawl's own files count")
	}
	touch("src/main.go")
	if at, ok := newerThan(t.Context(), dir, future); !ok || !at.Equal(later) {
		t.Errorf("a changed file is not seen: %v, %v", at, ok)
	}
	if _, ok := newerThan(t.Context(), filepath.Join(dir, "absent"), future); ok {
		t.Error("a folder that does not exist has changed")
	}
}

func TestStoredResultsKeepTheirNames(t *testing.T) {
	const old = `{"id":"1","started_at":"2026-01-02T03:04:05Z","elapsed":7,"exit":{"code":1,"ended":"idle"},"killed":2,` +
		`"stdout":{"bytes":3,"head":"abc"},"stderr":{"bytes":0},"agent":{"message":"m","terminal":"ok","usage":{},` +
		`"cost_micro_usd":5,"cost_source":"reported","calls":1,"turns":1,"tools":0,"retries":0}}`
	var r Result
	if err := json.Unmarshal([]byte(old), &r); err != nil {
		t.Fatal(err)
	}
	if r.ID != "1" || r.Exit.Ended != loop.EndedIdle || r.Killed != 2 || r.Stdout.Head != "abc" || r.Agent.Cost != 5 {
		t.Errorf("got %+v", r)
	}
}
