package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/board"
)

// holdLock locks as other programs do, not through this package, until its
// stdin ends.
func holdLock(path string) error {
	f, err := os.OpenFile(path+"-shm", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: 120, Len: 1} // the writer's, in SQLite's index of the log
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock); err != nil {
		return err
	}
	fmt.Println("locked")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// A database that another program has locked: who waits says for whom, and goes
// on when it is free.
func TestALockedDatabase(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"))
	addAll(t, s, draft("a")) // makes the log's index
	p := start(t, "lock", s.Path(), "x")
	if l := p.line(); l != "locked" {
		t.Fatalf("the other program says %q", l)
	}
	_, err := s.write.conn.ExecContext(t.Context(), `PRAGMA busy_timeout = 1`)
	must(t, err)
	told, goOn := make(chan string, 1), make(chan struct{})
	s.OnWait(func(holder string) { told <- holder; <-goOn })
	done := make(chan error, 1)
	go func() {
		_, err := s.AddCases(t.Context(), []board.Draft{draft("b")}, board.Person, noon)
		done <- err
	}()
	want := fmt.Sprintf("which process %d", p.cmd.Process.Pid)
	if holder := <-told; !strings.HasPrefix(holder, want) {
		t.Errorf("it waits for %q, want %s", holder, want)
	}
	if err := s.explain(t.Context(), "add", sqlite3.BUSY); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), want[len("which "):]) {
		t.Errorf("who gives up is told %v", err)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // it was killed
	close(goOn)
	must(t, <-done)
	if holder := s.db.Waited(nil); holder != "which another process has locked" {
		t.Errorf("after the end it is locked by %q", holder)
	}
}
