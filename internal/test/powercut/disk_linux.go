package powercut

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	rootID = 1
	// sector is what a disk writes at once, whole or not at all.
	sector = 4096
)

// inode is a file, a folder or anything else that has a name.
type inode struct {
	id       uint64
	mode     uint32 // with the kind
	uid, gid uint32
	changed  time.Time // of the content
	links    uint32
	open     int
	gone     bool // without a name, and its room given back
	device   uint32

	data []byte
	// safe is what was there at the last sync, kept from the first change after
	// it; least is the least size since.
	safe  []byte
	dirty bool
	least int

	target  string            // of a symbolic link
	names   map[string]uint64 // of a folder: as everybody sees them
	durable map[string]uint64 // of a folder: as they were synced
}

func (n *inode) isDir() bool { return n.mode&syscall.S_IFMT == syscall.S_IFDIR }

// change is one entry that a folder got or lost; a rename is two at once.
type change struct{ sets []set }

type set struct {
	dir  uint64
	name string
	id   uint64 // 0 takes the name away
}

// disk is all of it. Its methods are called by many goroutines.
type disk struct {
	mu      sync.Mutex
	inodes  map[uint64]*inode
	last    uint64
	pending []change // names that were not synced, oldest first
	used    int64
	size    int64 // how much there is room for

	fuse int64 // changes until the power fails; below 0 is never
	off  bool
	cut  func() // called once when the power fails
}

func newDisk(cut func()) *disk {
	d := &disk{inodes: map[uint64]*inode{}, last: rootID, fuse: -1, cut: cut, size: 8 << 30}
	d.inodes[rootID] = &inode{id: rootID, mode: syscall.S_IFDIR | 0o755, links: 2, names: map[string]uint64{},
		durable: map[string]uint64{}, changed: time.Now()}
	return d
}

// tick is called before each change, and says whether there is power.
func (d *disk) tick() syscall.Errno {
	if d.off {
		return syscall.EIO
	}
	if d.fuse > 0 {
		d.fuse--
	}
	if d.fuse == 0 {
		d.off, d.fuse = true, -1
		d.cut()
		return syscall.EIO
	}
	return 0
}

func (d *disk) node(id uint64) (*inode, syscall.Errno) {
	n := d.inodes[id]
	switch {
	case d.off:
		return nil, syscall.EIO
	case n == nil:
		return nil, syscall.ESTALE
	}
	return n, 0
}

// touched keeps what was synced before the content changes.
func (n *inode) touched() {
	if !n.dirty {
		n.dirty, n.safe, n.least = true, slices.Clone(n.data), len(n.data)
	}
	n.changed = time.Now()
}

func (d *disk) resize(n *inode, size int) syscall.Errno {
	if grows := int64(size - len(n.data)); grows > 0 && d.used+grows > d.size {
		return syscall.ENOSPC
	}
	n.touched()
	d.used += int64(size - len(n.data))
	if size <= len(n.data) {
		n.data = n.data[:size]
	} else {
		n.data = append(n.data, make([]byte, size-len(n.data))...)
	}
	n.least = min(n.least, size)
	return 0
}

func (d *disk) write(n *inode, data []byte, off int) syscall.Errno {
	n.touched()
	if end := off + len(data); end > len(n.data) {
		if e := d.resize(n, end); e != 0 {
			return e
		}
	}
	copy(n.data[off:], data)
	return 0
}

// make enters a new inode under a name.
func (d *disk) make(dir *inode, name string, n *inode) syscall.Errno {
	switch {
	case dir.names[name] != 0:
		return syscall.EEXIST
	case len(name) > 255:
		return syscall.ENAMETOOLONG
	case d.used+sector > d.size:
		return syscall.ENOSPC
	}
	d.last++
	n.id, n.changed, n.links = d.last, time.Now(), 0
	if n.isDir() {
		n.names, n.durable, n.links = map[string]uint64{}, map[string]uint64{}, 1
	}
	d.inodes[n.id] = n
	d.enter(set{dir.id, name, n.id})
	return 0
}

// enter changes names, at once.
func (d *disk) enter(sets ...set) {
	for _, s := range sets {
		dir := d.inodes[s.dir]
		if old := d.inodes[dir.names[s.name]]; old != nil {
			old.links--
			if old.isDir() {
				old.links--
			}
			d.reclaim(old)
		}
		if s.id == 0 {
			delete(dir.names, s.name)
		} else {
			dir.names[s.name] = s.id
			d.inodes[s.id].links++
		}
		dir.changed = time.Now()
	}
	d.pending = append(d.pending, change{sets})
}

// reclaim gives back the room of a file that nobody can reach. Its content stays
// for the cut, which may bring the name back.
func (d *disk) reclaim(n *inode) {
	if int32(n.links) <= 0 && n.open == 0 && !n.isDir() && !n.gone { //nolint:gosec // it counts names
		d.used -= int64(len(n.data))
		n.gone = true
	}
}

func (d *disk) sync(n *inode) { n.dirty, n.safe = false, nil }

// syncDir makes the names of a folder safe, and what was done before to folders
// that share a rename with it.
func (d *disk) syncDir(ids ...uint64) {
	in := map[uint64]bool{}
	for _, id := range ids {
		in[id] = true
	}
	var now, later []change
	for _, c := range slices.Backward(d.pending) {
		if !slices.ContainsFunc(c.sets, func(s set) bool { return in[s.dir] }) {
			later = append(later, c)
			continue
		}
		for _, s := range c.sets {
			in[s.dir] = true
		}
		now = append(now, c)
	}
	slices.Reverse(now)
	slices.Reverse(later)
	d.pending = later
	for _, c := range now {
		c.apply(d)
	}
}

func (c change) apply(d *disk) {
	for _, s := range c.sets {
		if s.id == 0 {
			delete(d.inodes[s.dir].durable, s.name)
		} else {
			d.inodes[s.dir].durable[s.name] = s.id
		}
	}
}

// settle makes all of it safe.
func (d *disk) settle() {
	for _, c := range d.pending {
		c.apply(d)
	}
	d.pending = nil
	for _, n := range d.inodes {
		d.sync(n)
	}
}

// survive makes the disk what is left of it after a power cut, and gives it power.
func (d *disk) survive(r *rand.Rand) {
	if n := len(d.pending); n > 0 {
		d.surviveNames(r)
	}
	d.pending = nil
	reached := map[uint64]*inode{}
	d.reach(rootID, reached)
	d.inodes, d.used = reached, 0
	for _, id := range slices.Sorted(maps.Keys(reached)) {
		n := reached[id]
		n.open, n.gone = 0, false
		if n.isDir() {
			n.names = maps.Clone(n.durable)
		}
		if n.dirty {
			n.data = torn(r, n.safe, n.data, n.least)
		}
		d.sync(n)
		d.used += int64(len(n.data))
	}
	d.count()
	d.off, d.fuse = false, -1
}

// surviveNames chooses which folders had the luck to be written in time: up to
// a moment all of them, after it each for itself.
func (d *disk) surviveNames(r *rand.Rand) {
	until := 0
	switch r.IntN(4) {
	case 0:
	case 1:
		until = len(d.pending)
	default:
		until = r.IntN(len(d.pending) + 1)
	}
	late := slices.Clone(d.pending[until:])
	for _, c := range d.pending[:until] {
		c.apply(d)
	}
	d.pending = late
	dirs := map[uint64]bool{}
	for _, c := range late {
		for _, s := range c.sets {
			dirs[s.dir] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(dirs)) {
		if r.IntN(2) == 0 {
			d.syncDir(id)
		}
	}
}

func (d *disk) reach(id uint64, into map[uint64]*inode) {
	n := d.inodes[id]
	if n == nil || into[id] != nil {
		return
	}
	into[id] = n
	for _, below := range n.durable {
		d.reach(below, into)
	}
}

// count makes the numbers of links what the names say.
func (d *disk) count() {
	for _, n := range d.inodes {
		n.links = 0
	}
	d.inodes[rootID].links = 1
	for _, n := range d.inodes {
		if !n.isDir() {
			continue
		}
		n.links++
		for name, id := range n.names {
			if below := d.inodes[id]; below != nil {
				below.links++
			} else {
				delete(n.names, name)
			}
		}
	}
}

// torn is what a disk may have of a file that was old when it was synced, and
// now when the power failed. Nothing is lost below least but to what was written.
func torn(r *rand.Rand, old, now []byte, least int) []byte {
	switch r.IntN(4) {
	case 0:
		return old
	case 1:
		return now
	}
	sizes := []int{least, len(old), len(now), least + r.IntN(max(len(old), len(now))-least+1)}
	out := make([]byte, sizes[r.IntN(len(sizes))])
	for at := 0; at < len(out); at += sector {
		from := [][]byte{old, now, nil}
		if at < least {
			from = from[:2]
		}
		if choice := from[r.IntN(len(from))]; at < len(choice) {
			copy(out[at:min(at+sector, len(out))], choice[at:])
		}
	}
	return out
}
