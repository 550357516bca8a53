package powercut

import (
	"bytes"
	"math/rand/v2"
	"syscall"
	"testing"
)

func add(t *testing.T, d *disk, dir *inode, name string, mode uint32) *inode {
	t.Helper()
	n := &inode{mode: mode}
	if e := d.make(dir, name, n); e != 0 {
		t.Fatal(e)
	}
	return n
}

func write(t *testing.T, d *disk, n *inode, text string) {
	t.Helper()
	if e := d.write(n, []byte(text), 0); e != 0 {
		t.Fatal(e)
	}
}

// What was synced is there after every power cut, whole; what was not is lost
// after some.
func TestSurvive(t *testing.T) {
	t.Parallel()
	lost, empty, old, kept := 0, 0, 0, 0
	for seed := range uint64(300) {
		d := newDisk(func() {})
		root := d.inodes[rootID]
		safe := add(t, d, root, "safe", syscall.S_IFREG)
		write(t, d, safe, "safe")
		d.sync(safe)
		changed := add(t, d, root, "changed", syscall.S_IFREG)
		write(t, d, changed, "before")
		d.sync(changed)
		dir := add(t, d, root, "dir", syscall.S_IFDIR)
		d.syncDir(rootID)
		write(t, d, changed, "after.")
		fresh := add(t, d, dir, "fresh", syscall.S_IFREG)
		write(t, d, fresh, "fresh")

		d.survive(rand.New(rand.NewPCG(seed, 1))) //nolint:gosec // it repeats
		if n := d.inodes[root.names["safe"]]; n == nil || string(n.data) != "safe" {
			t.Fatalf("seed %d: what was synced is %+v", seed, n)
		}
		switch n := d.inodes[root.names["changed"]]; {
		case n == nil:
			t.Fatalf("seed %d: a name that was synced is gone", seed)
		case string(n.data) == "before":
			old++
		case string(n.data) != "after.":
			t.Fatalf("seed %d: %q", seed, n.data)
		}
		switch n := d.inodes[dir.names["fresh"]]; {
		case n == nil:
			lost++
		case string(n.data) == "fresh":
			kept++
		case len(bytes.Trim(n.data, "\x00")) == 0:
			empty++
		default:
			if string(n.data) != "fresh"[:min(len(n.data), len("fresh"))] {
				t.Fatalf("seed %d: %q", seed, n.data)
			}
		}
	}
	if lost == 0 || empty == 0 || old == 0 || kept == 0 {
		t.Errorf("of 300 power cuts %d lost a name, %d the content, %d a change, and %d nothing", lost, empty, old, kept)
	}
}

// A rename is there as a whole or not at all, whichever of its folders is synced.
func TestRenameIsOne(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		d := newDisk(func() {})
		root := d.inodes[rootID]
		a, b := add(t, d, root, "a", syscall.S_IFDIR), add(t, d, root, "b", syscall.S_IFDIR)
		file := add(t, d, a, "file", syscall.S_IFREG)
		d.settle()
		d.enter(set{b.id, "file", file.id}, set{a.id, "file", 0})
		if seed%3 == 0 {
			d.syncDir(a.id)
		}
		d.survive(rand.New(rand.NewPCG(seed, 1))) //nolint:gosec // it repeats
		from, to := a.names["file"] != 0, b.names["file"] != 0
		if from == to || seed%3 == 0 && from {
			t.Fatalf("seed %d: in the old folder: %v, in the new one: %v", seed, from, to)
		}
		if n := d.inodes[file.id]; n == nil || n.links != 1 {
			t.Fatalf("seed %d: %+v", seed, n)
		}
	}
}

// A synced file that was removed is gone after a power cut, or whole: no disk
// frees what has a name.
func TestRemovedIsWhole(t *testing.T) {
	t.Parallel()
	back := 0
	for seed := range uint64(200) {
		d := newDisk(func() {})
		file := add(t, d, d.inodes[rootID], "file", syscall.S_IFREG)
		write(t, d, file, "synced")
		d.settle()
		d.enter(set{rootID, "file", 0})
		d.survive(rand.New(rand.NewPCG(seed, 1))) //nolint:gosec // it repeats
		n := d.inodes[file.id]
		if n != nil && (string(n.data) != "synced" || d.used != int64(len("synced"))) {
			t.Fatalf("seed %d: %q is back, and %d bytes are used", seed, n.data, d.used)
		}
		if n != nil {
			back++
		}
	}
	if back == 0 || back == 200 {
		t.Errorf("the file is back after %d of 200 power cuts", back)
	}
}

// A full disk refuses what does not fit, and takes it when there is room again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	d := newDisk(func() {})
	n := add(t, d, d.inodes[rootID], "file", syscall.S_IFREG)
	d.size = d.used + 10
	if e := d.write(n, make([]byte, 11), 0); e != syscall.ENOSPC {
		t.Errorf("11 bytes in 10: %v", e)
	}
	write(t, d, n, "0123456789")
	d.enter(set{rootID, "file", 0})
	if d.used != 0 {
		t.Errorf("%d bytes are in use by nothing", d.used)
	}
}

// The power fails once, before the change that was named.
func TestTick(t *testing.T) {
	t.Parallel()
	cut := 0
	d := newDisk(func() { cut++ })
	d.fuse = 3
	for i := range 6 {
		if e := d.tick(); (e == 0) != (i < 2) {
			t.Errorf("change %d: %v", i+1, e)
		}
	}
	if cut != 1 {
		t.Errorf("the power failed %d times", cut)
	}
}
