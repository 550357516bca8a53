package pool

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-dev/pawl/internal/keep/files"
)

// A disk without room for a workspace: nothing of it is left, and with room
// again it can be taken. A repository without room: nothing of the work is lost.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	r := newRig(t, "a", "1\n", "large", strings.Repeat("x", 3<<20))
	looks := 0
	r.o.Free = func(string) (uint64, error) { // it fills just now
		if looks++; looks == 1 {
			return 1 << 40, nil
		}
		return 0, nil
	}
	r.o.Dir = r.small("workspaces", "2m")
	p := r.open()
	if _, err := p.Take(t.Context(), "task-001", "HEAD"); !errors.Is(err, ErrDisk) {
		t.Errorf("taken without room: %v", err)
	}
	if all, err := p.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("left %+v, %v", all, err)
	}
	if there, err := os.ReadDir(p.o.Dir); err != nil || len(there) != 0 {
		t.Errorf("left %v, %v", there, err)
	}
	p.o.Free = files.Free
	p.o.Dir = filepath.Join(r.dir, "room")
	if err := os.Mkdir(p.o.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.release(p, r.take(p, "task-001"), Landed)
}

// When the repository is full, the workspace stays as it is, and is removed once
// its work can be saved.
func TestAFullRepository(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	top := filepath.Join(r.small("disk", "2m"), "repo")
	r.git(r.dir, "clone", "-q", "--no-hardlinks", r.top, top)
	r.top, r.o.Root = top, top
	r.o.Free = func(string) (uint64, error) { return 1 << 40, nil } // it fills later
	p := r.open()
	w := r.take(p, "task-001")
	noise := make([]byte, 1<<20)
	for i := range noise { // nothing that can be packed
		noise[i] = byte((i*i*31 + i*7) >> 3)
	}
	for _, name := range []string{"one", "two", "three", "four"} {
		r.put(w.Dir, name, name+string(noise))
	}
	filler := filepath.Join(filepath.Dir(top), "filler")
	fillUp(t, filler)
	if commit, err := p.Collect(t.Context(), w, "work"); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("collected %q without room: %v", commit, err)
	}
	if err := p.Release(t.Context(), w, GivenUp("test")); err == nil {
		t.Error("removed without room to save what is in it")
	}
	if _, err := os.Stat(filepath.Join(w.Dir, "one")); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	r.remove(filepath.Join(w.Dir, "three"))
	r.remove(filepath.Join(w.Dir, "four"))
	if out, err := tryGit(r.top, "fsck"); err != nil {
		t.Errorf("the repository is broken: %s", out)
	}
	if e, ok, err := find(t, p, "task-001"); err != nil || !ok || e.State != kept || e.Process != 0 {
		t.Errorf("%+v, %v, %v", e, ok, err)
	}
	if all, err := p.Clean(t.Context(), []string{"task-001"}, false); err != nil || len(all) != 1 || !all[0].Remove || pathExists(w.Dir) {
		t.Errorf("%+v, %v", all, err)
	}
	if kept, err := p.Recoveries(t.Context(), "task-001"); err != nil || len(kept) != 1 {
		t.Errorf("recoveries %v, %v", kept, err)
	}
}

// small mounts a small disk.
func (r *rig) small(name, size string) string {
	r.t.Helper()
	dir := filepath.Join(r.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		r.t.Skipf("cannot mount a small disk here: %v", err)
	}
	r.t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fillUp writes a file until there is no room.
func fillUp(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{64 << 10, 4 << 10} {
		piece := make([]byte, size)
		for err == nil {
			_, err = f.Write(piece)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
}
