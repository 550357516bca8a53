package supervisor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// apart makes a process start in namespaces of its own.
func apart(flags uintptr) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Cloneflags: flags}
	if flags&unix.CLONE_NEWUSER != 0 {
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	}
	return a
}

// place is where a stranger may be; without flags it is here.
type place struct {
	name  string
	flags uintptr
}

// places are those that this user can be in, here last.
func places() []place {
	out := []place{{"user and mount namespace", unix.CLONE_NEWUSER | unix.CLONE_NEWNS}, {"user namespace", unix.CLONE_NEWUSER}}
	if os.Getuid() == 0 {
		out = append(out, place{"mount namespace", unix.CLONE_NEWNS})
	}
	return append(out, place{name: "here"})
}

// A supervisor answers who knows its secret and is where it is.
func TestASupervisorServesItsOwnPawl(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	r.o.RunDir = filepath.Join(shortDir(t), "run")
	c := r.start()
	socket := filepath.Join(r.o.RunDir, socketName)
	for _, at := range places() {
		for _, secret := range []string{"", "wrong", readSecret(r.o.RunDir)} { // the last one takes the run over
			for _, o := range []op{opStatus, opAttach} {
				cmd := exec.Command(os.Args[0], "__ask", socket, fmt.Sprintf(`{"op":%q,"secret":%q}`, o, secret))
				cmd.SysProcAttr = apart(at.flags)
				out, err := cmd.Output()
				if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.ENOSPC) {
					t.Logf("%s: %v", at.name, err)
					continue
				}
				served := strings.Contains(string(out), `"status"`) || strings.Contains(string(out), `"ready"`)
				knows := len(secret) > len("wrong")
				if served != (at.flags == 0 && knows) {
					t.Errorf("%s: %s with secret %q is told %q, %v", at.name, o, secret, out, err)
				}
			}
		}
	}
	// The one who knew it has taken the run over.
	if _, err := c.Run(context.Background(), r.job("1", "true"), nil); !errors.Is(err, ErrTaken) {
		t.Errorf("got %v, want that the run was taken over", err)
	}
	gone(t, c.currentSession().status.Supervisor) // who took it over has gone
}

// A client tells nothing to who sits at the socket of a run from elsewhere.
func TestAClientTalksToItsOwnSupervisor(t *testing.T) {
	t.Parallel()
	for _, at := range places() {
		dir := shortDir(t)
		cmd := exec.Command(os.Args[0], "__sit", filepath.Join(dir, socketName))
		cmd.SysProcAttr = apart(at.flags)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Logf("%s: %v", at.name, err)
			continue
		}
		said := bufio.NewReader(out)
		if line, err := said.ReadString('\n'); err != nil {
			t.Fatal(line, err)
		}
		_, err = Probe(t.Context(), dir)
		told, _ := io.ReadAll(said)
		_ = cmd.Wait()
		if (at.flags == 0) != (len(told) > 0) || (at.flags == 0) == errors.Is(err, errForeign) {
			t.Errorf("%s: it is told %q, and the client says %v", at.name, told, err)
		}
	}
}

// A supervisor that ends while it is reached has gone; it is no stranger, also
// while nobody has waited for it.
func TestAPeerThatEndsHasGone(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(shortDir(t), socketName)
	cmd := exec.Command(os.Args[0], "__sit", socket)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	conn := c.(*net.UnixConn)
	if err := checkPeer(conn); err != nil {
		t.Errorf("while it lives: %v", err)
	}
	_ = cmd.Process.Kill()
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	unwaited := checkPeer(conn)
	_ = cmd.Wait()
	if waited := checkPeer(conn); !errors.Is(unwaited, ErrGone) || !errors.Is(waited, ErrGone) {
		t.Errorf("got %v, then %v; want %v", unwaited, waited, ErrGone)
	}
}

// Nobody gets a job without a box out of a supervisor whose run has one.
func TestAJobWithoutABoxIsRefused(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	r.o.Unboxed = false
	c := r.start()
	if _, err := c.Run(context.Background(), r.job("1", "true"), nil); err == nil || !strings.Contains(err.Error(), "no sandbox") {
		t.Errorf("got %v, want it refused", err)
	}
	if got := must(t)(c.Run(context.Background(), r.boxed("2", "exit 3"), nil)); got.Exit.Code != 3 || r.starts("1") != 0 {
		t.Errorf("got %+v, %d starts of what was refused", got.Exit, r.starts("1"))
	}
}

// The input is a copy: its file keeps mode, owner and text, whatever a job does
// to its stdin.
func TestTheInputIsNotTheFile(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	input := filepath.Join(r.dir, "prompt")
	if err := os.WriteFile(input, []byte("do this\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const script = `cat; chmod 777 /dev/stdin && echo changed the copy; echo more >>/dev/stdin; echo more >/dev/stdin; truncate -s 0 /dev/stdin; true`
	for _, job := range []Job{r.job("1", script), r.boxed("2", script)} {
		job.Stdin = input
		got := must(t)(c.Run(context.Background(), job, nil))
		if want := "do this\nchanged the copy\n"; got.Stdout.Head != want {
			t.Errorf("box %v: %q, %q; want %q", job.Box != nil, got.Stdout.Head, got.Stderr.Head, want)
		}
		info, err := os.Stat(input)
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := os.ReadFile(input); info.Mode() != 0o600 || string(text) != "do this\n" {
			t.Errorf("box %v: the file has mode %v and %q", job.Box != nil, info.Mode(), text)
		}
	}
}

// Signals while a peer is looked at, as Go's runtime sends them, are no end of it.
func TestAPeerLivesThroughSignals(t *testing.T) {
	t.Parallel()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := connectionOfFile(os.NewFile(uintptr(fds[0]), "ours"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ours.Close(); _ = unix.Close(fds[1]) }()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread, done := unix.Gettid(), make(chan struct{})
	var sender sync.WaitGroup
	sender.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				_ = unix.Tgkill(os.Getpid(), thread, unix.SIGURG)
			}
		}
	})
	if !isPeerAlive(ours, ending) {
		t.Error("a process that lives is taken for gone")
	}
	close(done)
	sender.Wait()
}
