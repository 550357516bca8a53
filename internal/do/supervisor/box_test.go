package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

// boxed is a job in a box that may write its folder.
func (r *run) boxed(id, script string) Job {
	r.t.Helper()
	v := sandbox.Judge(sandbox.Normal, sandbox.Probe(context.Background()), false)
	if !v.Boxed {
		r.t.Skip("this machine makes no box: ", v.Enforced, v.Refused)
	}
	job := r.job(id, script)
	place := sandbox.Place{Root: r.dir, State: r.o.RunDir, Temp: []string{"/tmp"}, Shown: []string{"/"}, UID: os.Getuid(), Spare: []int{os.Getpid()}}
	policy := place.Policy(sandbox.Normal, v, sandbox.DefaultLimits(), nil, nil)
	job.Box = &policy
	return job
}

func TestStopReachesIntoTheBox(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	job := r.boxed("1", `trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 1000 & wait $!; done`)
	job.Limits.Grace = time.Minute
	got := must(t)(c.Run(ctx, job, onText("up", cancel)))
	if got.Exit.Code != 9 || got.Exit.Ended != loop.EndedStop || !strings.Contains(got.Stdout.Head, "bye") {
		t.Errorf("got %+v, want its own exit 9", got)
	}
}

func TestNothingIsLeftOfABox(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	job := r.boxed("1", tree)
	job.Limits.Grace = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	got := must(t)(c.Run(ctx, job, onText("up", cancel)))
	if got.Exit.Ended != loop.EndedStop || got.Exit.Signal != "killed" || got.Killed == 0 {
		t.Errorf("got %+v, want a kill after the grace", got)
	}
	daemons := r.boxed("2", "setsid sleep 1000 & (setsid sh -c 'exec >&- 2>&-; sleep 1000' &); echo done")
	got = must(t)(c.Run(context.Background(), daemons, nil))
	if got.Exit.Code != 0 || got.Killed < 2 || got.Stdout.Head != "done\n" {
		t.Errorf("got %+v, want exit 0 and the daemons counted", got)
	}
}

// A login that a program renews by another file of the name is the person's afterwards, unless
// theirs is newer; what else it changes in its folder is the run's.
func TestRenewedLoginIsKept(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	own := t.TempDir()
	login, settings := filepath.Join(own, "auth"), filepath.Join(own, "settings")
	put := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(settings, "mine")
	for i, newer := range []bool{false, false, true} {
		put(login, "old")
		age := map[bool]time.Duration{true: time.Hour, false: -time.Hour}[newer]
		if err := os.Chtimes(login, time.Time{}, time.Now().Add(age)); err != nil {
			t.Fatal(err)
		}
		job := r.boxed(fmt.Sprint("w", i), `cd `+own+` && { cat auth || exit 42; } &&
echo new >t && mv t auth && ln -s /etc/passwd more && echo theirs >settings`)
		if !job.Box.Means.Mounts {
			t.Skip("this machine gives no mounts")
		}
		job.Box.Over = []sandbox.Over{{To: own, Back: []string{"auth", "more", "none"}}}
		got := must(t)(c.Run(context.Background(), job, nil))
		if got.Exit.Code == 42 { // the box has an empty folder then
			t.Skip("this machine mounts no overlay")
		}
		scratch := strings.ReplaceAll(strings.Trim(own, "/"), "/", "-")
		_ = os.Remove(filepath.Join(r.o.RunDir, "tmp", "over", scratch, "up", "more"))
		want := map[bool]string{true: "old", false: "new\n"}[newer]
		kept, err := os.ReadFile(login)
		others, oerr := os.ReadFile(settings)
		asItWas := oerr == nil && string(others) == "mine" && got.Exit.Code == 0 && got.Stdout.Head == "old"
		if err != nil || string(kept) != want || !asItWas {
			t.Errorf("%d: exit %+v, it read %q; the login is %q, want %q; the settings %q",
				i, got.Exit, got.Stdout.Head, kept, want, others)
		}
		if _, err := os.Lstat(filepath.Join(own, "more")); err == nil {
			t.Error("a link was written back")
		}
	}
}

// How a command ends in a box is how the job ends, and who asks it to end asks
// it alone, and once.
func TestEndsInABox(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	for i, tt := range []struct {
		script string
		want   loop.Exit
	}{
		{"exit 3", loop.Exit{Code: 3}},
		{"exit 200", loop.Exit{Code: 200}},
		{"kill -9 $$", loop.Exit{Code: -1, Signal: "killed"}},
		{"kill -USR1 $$", loop.Exit{Code: -1, Signal: "user defined signal 1"}},
	} {
		if got := must(t)(c.Run(context.Background(), r.boxed(fmt.Sprint("e", i), tt.script), nil)); got.Exit != tt.want || got.Killed != 0 {
			t.Errorf("%s: %+v, %d killed; want %+v", tt.script, got.Exit, got.Killed, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	job := r.boxed("ask", `trap 'n=$((n+1))' TERM
(trap 'echo child asked' TERM; echo child; while :; do sleep 1000 & wait $!; done) & child=$!
while [ -z "$n" ]; do wait $child; done; kill -9 $child; echo asked $n; exit 5`)
	job.Limits.Ask, job.Limits.Grace = time.Minute, time.Minute
	got := must(t)(c.Run(ctx, job, onText("child", cancel)))
	if got.Exit.Code != 5 || !strings.Contains(got.Stdout.Head, "asked 1\n") || strings.Contains(got.Stdout.Head, "child asked") {
		t.Errorf("got %+v, %q", got.Exit, got.Stdout.Head)
	}
}

// Pawl and its supervisor are killed: what emptied its environment and left its
// session ends with the box, though nobody looks for it.
func TestABoxEndsWithItsSupervisor(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	job := r.boxed("1", `exec 3>"`+r.fifo("held")+`"
env -i setsid sh -c 'trap "" HUP TERM INT; (setsid sleep 1000 &); sleep 1000' & echo up; sleep 1000`)
	if !job.Box.Means.PID {
		t.Skip("this machine gives no process namespace")
	}
	held, err := os.OpenFile(filepath.Join(r.dir, "held"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	k := startKillable(t, r.o, job)
	k.await(t, "up")
	k.kill()
	kill9(t, k.supervisor)
	// The fifo ends when the last one that holds it has ended.
	if n, err := held.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("read %d, %v", n, err)
	}
}

func TestABoxCannotHarmItsSupervisor(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	supervisor := c.currentSession().status.Supervisor.PID
	job := r.boxed("1", fmt.Sprintf(`kill -9 %d; kill -9 %d; kill -9 $PPID; ls %s/*; echo x >%s/job1.result.json; echo still here`,
		supervisor, os.Getpid(), r.o.RunDir, r.o.RunDir))
	got := must(t)(c.Run(context.Background(), job, nil))
	if got.Exit.Code != 0 || !strings.Contains(got.Stdout.Head, "still here") || strings.Contains(got.Stdout.Head, "job1") {
		t.Errorf("got %+v", got)
	}
	refused := 0
	for _, words := range []string{"ermission denied", "not permitted", "o such process"} {
		refused += strings.Count(got.Stderr.Head, words)
	}
	// In a process namespace its parent is the box's init, which hears no KILL from inside.
	want := 3
	if job.Box.Means.PID {
		want = 2
	}
	if refused < want {
		t.Errorf("it was refused %d times, want %d: %s", refused, want, got.Stderr.Head)
	}
}

func TestABoxCannotTakeAllProcesses(t *testing.T) {
	t.Parallel()
	if held, leave := sandbox.LimitGroup(sandbox.Limits{Processes: 1 << 20}); !held && os.Getuid() == 0 {
		leave()
		t.Skip("root is held by control groups only, and there are none to be had")
	} else {
		leave()
	}
	r := newRun(t)
	c := r.start()
	job := r.boxed("1", `i=0; while [ $i -lt 400 ]; do sleep 1000 & i=$((i+1)); done; echo all of them`)
	job.Box.Limits = sandbox.Limits{Processes: 100}
	job.Limits.Grace = 10 * time.Millisecond
	got := must(t)(c.Run(context.Background(), job, nil))
	if strings.Contains(got.Stdout.Head, "all of them") || !strings.Contains(strings.ToLower(got.Stderr.Head), "fork") {
		t.Errorf("got %+v, want it refused to fork", got)
	}
}

func TestStartErrorsInABoxAreResults(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	for i, tt := range []struct {
		change func(*Job)
		code   int
		want   string
	}{
		{func(j *Job) { j.Args = []string{"no-such-agent"} }, 127, "not found in PATH"},
		{func(j *Job) { j.Args = []string{"/"} }, 126, "is a folder"},
		{func(j *Job) { j.Args = []string{"./none"} }, 127, "does not exist"},
		{func(j *Job) { j.Args = nil }, 127, "empty"},
		{func(j *Job) { j.Dir = "/no/such/folder" }, -1, "working folder"},
		{func(j *Job) { j.Box.Binds = []sandbox.Bind{{From: "/no/such/folder", To: "/tmp"}} }, -1, "/no/such/folder"},
	} {
		job := r.boxed(fmt.Sprint("s", i), "true")
		job.Files = filepath.Join(r.o.RunDir, fmt.Sprint("s", i))
		tt.change(&job)
		if len(job.Box.Binds) > 0 && !job.Box.Means.Mounts {
			continue
		}
		got := must(t)(c.Run(context.Background(), job, nil))
		if got.Exit.Code != tt.code || !strings.Contains(got.Error, tt.want) {
			t.Errorf("got code %d, %q; want code %d and %q", got.Exit.Code, got.Error, tt.code, tt.want)
		}
	}
}

func TestClosedBoxHasItsProxyAndDoors(t *testing.T) {
	t.Parallel()
	v := sandbox.Judge(sandbox.Paranoid, sandbox.Probe(context.Background()), false)
	bash, err := exec.LookPath("bash")
	if v.Refused != "" || err != nil {
		t.Skip(v.Refused, err)
	}
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = outside.Close() }()
	go func() {
		for {
			c, err := outside.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("hello from outside\n"))
			_ = c.Close()
		}
	}()
	port := outside.Addr().(*net.TCPAddr).Port
	r := newRun(t)
	c := r.start()
	job := r.boxed("1", "")
	job.Args = []string{bash, "-c", fmt.Sprintf(`
exec 3<>/dev/tcp/127.0.0.1/%d && read -r line <&3 && echo "$line"
exec 4<>/dev/tcp/127.0.0.1/%d && printf 'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n' >&4 && read -r line <&4 && echo "$line"
echo x >/dev/tcp/192.0.2.1/80 || echo unreachable`, port, sandbox.ProxyPort)}
	job.Box.Means, job.Box.Closed, job.Box.Own = v.Means, true, false
	job.Box.Reach, job.Box.Doors = []string{"api.example.org"}, []int{port}
	got := must(t)(c.Run(context.Background(), job, nil))
	for _, want := range []string{"hello from outside", "HTTP/1.1 403", "unreachable"} {
		if !strings.Contains(got.Stdout.Head, want) {
			t.Errorf("%q is not in %q, %q", want, got.Stdout.Head, got.Stderr.Head)
		}
	}
	if len(got.Unreached) != 1 || !strings.Contains(got.Unreached[0], "evil.example:443") {
		t.Errorf("unreached %q, want the host that was refused", got.Unreached)
	}
}
