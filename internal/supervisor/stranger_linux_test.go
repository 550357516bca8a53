package supervisor

import (
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
	dir, err := os.MkdirTemp("/tmp", "pawl") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
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

// askAs asks a supervisor how it is, as a user, and returns the length of the
// first part of its answer.
func askAs(user int, socket string) (n int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Only this thread is another user. It is never unlocked, so it ends here.
		runtime.LockOSThread()
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(user), uintptr(user), uintptr(user)); e != 0 {
			err = e
			return
		}
		n, err = exchange(socket, `{"op":"status"}`+"\n")
	}()
	<-done
	return n, err
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
