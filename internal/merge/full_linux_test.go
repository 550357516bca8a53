package merge

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/queue"
)

// A database without room just after the target was moved: the queue says so,
// stands still, and stores the landing when there is room again.
func TestTheDatabaseIsFullForAWhile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	base := r.git("rev-parse", "main")
	small := folder(t)
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	r.state = small
	r.open()
	r.o.Dir = filepath.Join(folder(t), "queue")
	filler := filepath.Join(small, "filler")
	full := false
	r.o.point = func(name string) {
		if name == "before landed" && !full {
			full = true
			fill(t, filler)
		}
	}
	r.o.Notify = func(n queue.Note) {
		r.note(n)
		if n.Kind == queue.NoteTrouble {
			if err := os.Remove(filler); err != nil {
				t.Error(err)
			}
		}
	}
	id := r.land("a.txt", "landed\n")
	if s := r.status(id); s != board.Done {
		t.Errorf("it is %s: %v", s, r.left())
	}
	if n := r.said(queue.NoteTrouble); len(n) != 1 || !strings.Contains(n[0], "stands still until it can") {
		t.Errorf("told %q", n)
	}
	r.audit(base)
}

// fill leaves no room on a disk.
func fill(t *testing.T, name string) {
	f, err := os.Create(name)
	if err != nil {
		t.Error(err)
		return
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	_ = f.Close()
}
