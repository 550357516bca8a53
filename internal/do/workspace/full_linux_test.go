package workspace

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

var everyPage = flag.Bool("full-disk-all", false, "fill the disk of a snapshot and of a way back up to each of many sizes")

// A disk that is full but for so many bytes: a snapshot and a way back that fail
// change nothing of the user's, and say that it is the disk; with room again both
// do what they are to do.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	left := []int{0, 64 << 10, 216 << 10}
	if *everyPage {
		left = nil
		for n := 0; n <= 400<<10; n += 8 << 10 {
			left = append(left, n)
		}
	}
	for _, bytes := range left {
		t.Run(fmt.Sprintf("%d KiB left", bytes>>10), func(t *testing.T) {
			t.Parallel()
			onAFullDisk(t, bytes)
		})
	}
}

// A git that is killed whenever it takes a file in: that file is not left out, as if it
// were too large, but the snapshot is not taken.
func TestAFileThatTheMachineDoesNotLetIn(t *testing.T) {
	p := newPlace(t, "kept", "1\n")
	before := p.snap(0)
	own, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	text := "#!/bin/sh\ncase \" $* \" in *' update-index '*) kill -9 $$ ;; esac\nexec " + own + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(text), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", bin+":"+path)
	p.write("small", "one small file\n")
	snap, err := p.c.Snapshot(t.Context(), "r1", 1, SnapshotOptions{})
	if !errors.Is(err, ErrMachine) || !strings.Contains(err.Error(), "killed by signal 9") {
		t.Errorf("left out %q: %v", snap.Skipped, err)
	}
	t.Setenv("PATH", path)
	if snap := p.snap(1); snap.Tree == before.Tree || len(snap.Skipped) > 0 {
		t.Errorf("taken later: %+v", snap)
	}
}

func onAFullDisk(t *testing.T, left int) {
	p := barePlace(t)
	disk := filepath.Dir(p.top) // of the files and of the snapshots
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	if err := os.Mkdir(p.top, 0o755); err != nil {
		t.Fatal(err)
	}
	p.git("init", "-q")
	p.write("kept", "kept\n")
	p.write("large", noise(1, 200<<10))
	p.write(".gitignore", "filler\n")
	p.git("add", "-A")
	p.git("commit", "-qm", "first")
	p.open(Options{})
	before := p.snap(0)
	p.write("kept", "changed\n")
	p.write("large", noise(2, 200<<10))
	p.write("new", noise(3, 100<<10))
	p.git("add", "new")
	status := p.git("status", "--porcelain")

	room := p.fill(left)
	snap, err := p.c.Snapshot(t.Context(), "r1", 1, SnapshotOptions{})
	if err != nil && !strings.Contains(err.Error(), "is full, make room") {
		t.Errorf("said %q", err)
	}
	if left == 0 && err == nil {
		t.Error("a snapshot was taken without room")
	}
	if err != nil && !errors.Is(err, ErrMachine) {
		t.Errorf("blamed on the work: %v", err)
	}
	room()
	if got := p.git("status", "--porcelain"); got != status {
		t.Errorf("the user's tree is\n%s\nand was\n%s", got, status)
	}
	if err != nil {
		snap = p.snap(1)
	}
	if got := p.stored("show", snap.Commit+":kept"); got != "changed" || len(p.stored("show", snap.Commit+":new")) < 90<<10 {
		t.Errorf("the snapshot has %q", got)
	}

	room = p.fill(left)
	_, err = p.c.Rewind(t.Context(), "r1", 0, snap.Tree)
	room()
	if left == 0 && err == nil {
		t.Error("went back without room")
	}
	if err != nil {
		if !strings.Contains(err.Error(), "no space left on device") && !strings.Contains(err.Error(), "No space left on device") && !strings.Contains(err.Error(), "couldn't write") && !strings.Contains(err.Error(), "Out of diskspace") {
			t.Errorf("said %q", err)
		}
		p.back(0)
	}
	if seen, err := p.c.See(t.Context(), "r1"); err != nil || seen.Tree != before.Tree {
		t.Errorf("on the way back the tree is %s, %v, want %s:\n%s", seen.Tree, err, before.Tree, p.git("status", "--porcelain"))
	}
	p.stored("fsck", "--full")
}

// fill leaves so many bytes on the disk of the work tree; call what it returns to
// make room.
func (p *place) fill(left int) (room func()) {
	p.t.Helper()
	reserve, filler := filepath.Join(p.top, ".git", "reserve"), filepath.Join(p.top, ".git", "filler")
	if err := os.WriteFile(reserve, make([]byte, left), 0o600); err != nil {
		p.t.Fatal(err)
	}
	f, err := os.Create(filler)
	if err != nil {
		p.t.Fatal(err)
	}
	for piece := make([]byte, 4096); err == nil; {
		_, err = f.Write(piece)
	}
	_ = f.Close()
	if err := os.Remove(reserve); err != nil {
		p.t.Fatal(err)
	}
	return func() {
		if err := os.Remove(filler); err != nil {
			p.t.Fatal(err)
		}
	}
}

// noise is text that does not get smaller.
func noise(seed uint64, size int) string {
	text := make([]byte, size)
	for i := range text {
		seed = seed*6364136223846793005 + 1442695040888963407
		text[i] = byte(seed >> 56)
	}
	return string(text)
}
