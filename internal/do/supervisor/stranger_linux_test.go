package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Another user of the machine gets no answer from a supervisor, even where the
// rights of its folder let them reach its socket.
func TestStrangersGetNoAnswer(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	dir := shortDir(t)
	r := newRun(t)
	r.o.RunDir = filepath.Join(dir, "run")
	r.start()
	socket := filepath.Join(r.o.RunDir, socketName)
	for _, name := range []string{dir, r.o.RunDir, socket} {
		if err := os.Chmod(name, 0o777); err != nil { //nolint:gosec // that is what is tried
			t.Fatal(err)
		}
	}
	if n, err := askAs(0, socket); n <= 0 || err != nil {
		t.Errorf("its own user gets %d bytes, %v", n, err)
	}
	if n, err := askAs(65534, socket); n > 0 || err != nil {
		t.Errorf("another user gets %d bytes, %v", n, err)
	}
}

// A client tells nothing to a process of another user that sits at the socket of
// a run.
func TestStrangersAreToldNothing(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	dir := shortDir(t)
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // that is what is tried
		t.Fatal(err)
	}
	for user, want := range map[int]error{65534: errForeign, 0: ErrGone} { // root's hangs up without an answer
		socket := filepath.Join(dir, socketName)
		_ = os.Remove(socket)
		var fd int
		err := as(user, func() (err error) {
			fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			return errors.Join(err, unix.Bind(fd, &unix.SockaddrUnix{Name: socket}), unix.Listen(fd, 1))
		})
		if err != nil {
			t.Fatal(err)
		}
		told := make(chan int, 1)
		go func() {
			defer close(told)
			if conn, _, err := unix.Accept(fd); err == nil {
				n, _ := unix.Read(conn, make([]byte, 4096))
				told <- n
				_ = unix.Close(conn)
			}
		}()
		_, err = Probe(t.Context(), dir)
		if n := <-told; (n > 0) != (user == 0) {
			t.Errorf("user %d is told %d bytes", user, n)
		}
		if !errors.Is(err, want) {
			t.Errorf("at the socket of user %d: %v", user, err)
		}
		_ = unix.Close(fd)
	}
}

// shortDir is a new folder: the path of a socket must be short.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pawl") //nolint:usetesting // as above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// askAs asks a supervisor how it is, as a user, and returns the length of the
// first part of its answer.
func askAs(user int, socket string) (n int, err error) {
	err = as(user, func() (err error) {
		n, err = exchange(socket, `{"op":"status"}`+"\n")
		return err
	})
	return n, err
}

// as makes system calls as another user.
func as(user int, do func() error) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Only this thread is another user. It is never unlocked, so it ends here.
		runtime.LockOSThread()
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(user), uintptr(user), uintptr(user)); e != 0 {
			err = e
			return
		}
		err = do()
	}()
	<-done
	return err
}

// exchange does with system calls, which stay on their thread, what net does.
func exchange(socket, request string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: socket}); err != nil {
		return 0, err
	}
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 60})
	if err := unix.Send(fd, []byte(request), unix.MSG_NOSIGNAL); err != nil {
		return 0, nil // hung up already
	}
	n, err := unix.Read(fd, make([]byte, 4096))
	if err == unix.ECONNRESET {
		return 0, nil
	}
	return n, err
}
