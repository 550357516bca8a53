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

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/keep/store/database"
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
	if err := s.explainError(t.Context(), "add", sqlite3.BUSY); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), want[len("which "):]) {
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

// losing is a database whose every error is that the connection was lost.
type losing struct{ database.Database }

func (losing) Lost(error) bool     { return true }
func (losing) Passing(error) bool  { return true }
func (losing) Waited(error) string { return "which cannot be reached" }

// A connection that is found lost, as that of a call that was given up, is opened again.
// Only a database that is away then is said to be.
func TestALostConnection(t *testing.T) {
	t.Parallel()
	for fails, want := range map[int]int{1: 0, 2: 1, 3: 1} {
		told, tries := 0, 0
		s := &DB{db: losing{}, tell: func(string) { told++ }}
		_, err := retryBusy(t.Context(), s, func() (int, error) {
			if tries++; tries <= fails {
				return 0, errors.New("lost")
			}
			return 1, nil
		})
		if err != nil || told != want {
			t.Errorf("after %d losses it was told %d times (%v)", fails, told, err)
		}
	}
}
