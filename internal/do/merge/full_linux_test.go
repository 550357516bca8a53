package merge

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
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
	if n := r.said(queue.NoteTrouble); len(n) != 1 || !strings.Contains(n[0], "is blocked until it can") {
		t.Errorf("told %q", n)
	}
	r.audit(base)
}

var everyPage = flag.Bool("full-disk-all", false, "fill the disk of a landing up to each of many sizes")

// The disk of the repository and the user's checkout is full but for so many bytes
// when a landing begins, or just before the target is moved: wherever it stops, the
// queue says so, nothing of the user's is touched, and with room again the task
// lands once and all of the checkout is up to date.
func TestTheDiskIsFullInTheMidstOfALanding(t *testing.T) {
	t.Parallel()
	left := []int{0, 8 << 10, 120 << 10, 240 << 10}
	if *everyPage {
		left = nil
		for n := 0; n <= 512<<10; n += 8 << 10 {
			left = append(left, n)
		}
	}
	for _, at := range []string{"before opened", "before ref"} {
		for _, bytes := range left {
			t.Run(fmt.Sprintf("%s, %d KiB left", at, bytes>>10), func(t *testing.T) {
				t.Parallel()
				landOnAFullDisk(t, at, bytes)
			})
		}
	}
}

func landOnAFullDisk(t *testing.T, at string, left int) {
	small := smallDisk(t)
	r := newRigIn(t, filepath.Join(small, "repo"))
	base := r.git("rev-parse", "main")
	files := []string{"a.txt", "changed\n"}
	for _, name := range []string{"new/one", "new/two", "three"} {
		files = append(files, name, noise(name, 100<<10))
	}
	id, commit := r.task("grow", base, files...)
	r.write("b.txt", "mine\n")
	r.write("mine.txt", "mine too\n")

	filler, full := filepath.Join(small, "filler"), false
	r.o.point = func(name string) {
		if name != at || full {
			return
		}
		full = true
		fillBut(t, small, left)
	}
	r.o.Notify = func(n queue.Note) {
		r.note(n)
		if n.Kind != queue.NoteTrouble {
			return
		}
		if b, mine := r.read("b.txt"), r.read("mine.txt"); b != "mine\n" || mine != "mine too\n" {
			t.Errorf("the user's files are %q and %q", b, mine)
		}
		_ = os.Remove(filler)
	}
	q := r.queue()
	r.add(q, id, commit, "grow")
	r.drain(q)
	said := r.said(queue.NoteTrouble)
	for _, text := range said {
		if !strings.Contains(text, "the disk of "+r.dir+"/.git is full, make room: cannot ") {
			t.Errorf("said %q", text)
		}
	}
	if left == 0 && len(said) == 0 {
		t.Error("nobody said that the disk is full")
	}
	_ = os.Remove(filler)
	if s := r.status(id); s != board.Done {
		t.Errorf("it is %s: %v", s, r.left())
	}
	if got := r.git("status", "--porcelain"); got != " M b.txt\n?? mine.txt" {
		t.Errorf("the checkout differs:\n%s", got)
	}
	for i := 0; i < len(files); i += 2 {
		if r.read(files[i]) != files[i+1] {
			t.Errorf("%s is not what landed", files[i])
		}
	}
	r.git("fsck", "--full")
	r.audit(base)
}

// noise is text that does not get smaller.
func noise(seed string, size int) string {
	text := make([]byte, size)
	x := uint64(len(seed)) + uint64(seed[0])<<8
	for i := range text {
		x = x*6364136223846793005 + 1442695040888963407
		text[i] = byte(x >> 56)
	}
	return string(text)
}

// smallDisk is a disk that can be filled.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := folder(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=6m"); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fillBut fills a disk but for some bytes, with a file of the name filler.
func fillBut(t *testing.T, disk string, left int) {
	reserve := filepath.Join(disk, "reserve")
	if err := os.WriteFile(reserve, make([]byte, left), 0o600); err != nil {
		t.Error(err)
	}
	fill(t, filepath.Join(disk, "filler"))
	if err := os.Remove(reserve); err != nil {
		t.Error(err)
	}
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
