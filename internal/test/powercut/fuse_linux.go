package powercut

import (
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// server answers the kernel. Nobody but the kernel changes the disk, so it may
// remember all it was told.
type server struct {
	fuse.RawFileSystem

	d *disk
}

const remember = time.Hour

func newServer(d *disk) *server { return &server{fuse.NewDefaultRawFileSystem(), d} }

func (s *server) attr(n *inode, out *fuse.Attr) {
	out.Ino, out.Mode, out.Nlink, out.Rdev = n.id, n.mode, n.links, n.device
	out.Uid, out.Gid = n.uid, n.gid
	out.Size = uint64(len(n.data))
	if n.target != "" {
		out.Size = uint64(len(n.target))
	}
	out.Blocks, out.Blksize = (out.Size+511)/512, sector
	out.SetTimes(&n.changed, &n.changed, &n.changed)
}

func (s *server) entry(n *inode, out *fuse.EntryOut) {
	out.NodeId, out.Generation = n.id, 1
	out.SetEntryTimeout(remember)
	out.SetAttrTimeout(remember)
	s.attr(n, &out.Attr)
}

func (s *server) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	dir, e := s.d.node(h.NodeId)
	if e != 0 {
		return fuse.Status(e)
	}
	id := dir.names[name]
	if id == 0 {
		return fuse.ENOENT
	}
	s.entry(s.d.inodes[id], out)
	return fuse.OK
}

func (s *server) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	n, e := s.d.node(in.NodeId)
	if e != 0 {
		return fuse.Status(e)
	}
	out.SetTimeout(remember)
	s.attr(n, &out.Attr)
	return fuse.OK
}

func (s *server) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	n, e := s.change(in.NodeId)
	if e != 0 {
		return fuse.Status(e)
	}
	if mode, ok := in.GetMode(); ok {
		n.mode = n.mode&syscall.S_IFMT | mode&0o7777
	}
	if uid, ok := in.GetUID(); ok {
		n.uid = uid
	}
	if gid, ok := in.GetGID(); ok {
		n.gid = gid
	}
	if size, ok := in.GetSize(); ok {
		if e := s.d.resize(n, int(size)); e != 0 { //nolint:gosec // sizes of tests
			return fuse.Status(e)
		}
	}
	if when, ok := in.GetMTime(); ok {
		n.changed = when
	}
	out.SetTimeout(remember)
	s.attr(n, &out.Attr)
	return fuse.OK
}

// change is the node that a call is about to change, if there is power.
func (s *server) change(id uint64) (*inode, syscall.Errno) {
	if e := s.d.tick(); e != 0 {
		return nil, e
	}
	return s.d.node(id)
}

func (s *server) add(h *fuse.InHeader, name string, n *inode, out *fuse.EntryOut) fuse.Status {
	dir, e := s.change(h.NodeId)
	if e == 0 {
		n.uid, n.gid = h.Uid, h.Gid
		e = s.d.make(dir, name, n)
	}
	if e != 0 {
		return fuse.Status(e)
	}
	s.entry(n, out)
	return fuse.OK
}

func (s *server) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return s.add(&in.InHeader, name, &inode{mode: in.Mode, device: in.Rdev}, out)
}

func (s *server) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return s.add(&in.InHeader, name, &inode{mode: in.Mode&0o7777 | syscall.S_IFDIR}, out)
}

func (s *server) Symlink(_ <-chan struct{}, h *fuse.InHeader, to, name string, out *fuse.EntryOut) fuse.Status {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return s.add(h, name, &inode{mode: syscall.S_IFLNK | 0o777, target: to}, out)
}

func (s *server) Readlink(_ <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	n, e := s.d.node(h.NodeId)
	if e != 0 {
		return nil, fuse.Status(e)
	}
	return []byte(n.target), fuse.OK
}

func (s *server) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	n := &inode{mode: in.Mode&0o7777 | syscall.S_IFREG}
	if st := s.add(&in.InHeader, name, n, &out.EntryOut); st != fuse.OK {
		return st
	}
	n.open++
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	return fuse.OK
}

func (s *server) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	n, e := s.d.node(in.NodeId)
	if e == 0 && in.Flags&syscall.O_TRUNC != 0 {
		if n, e = s.change(in.NodeId); e == 0 {
			e = s.d.resize(n, 0)
		}
	}
	if e != 0 {
		return fuse.Status(e)
	}
	n.open++
	if in.Flags&syscall.O_TRUNC == 0 {
		out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	}
	return fuse.OK
}

func (s *server) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	n, e := s.d.node(in.NodeId)
	if e != 0 {
		return nil, fuse.Status(e)
	}
	if in.Offset >= uint64(len(n.data)) {
		return fuse.ReadResultData(nil), fuse.OK
	}
	return fuse.ReadResultData(buf[:copy(buf, n.data[in.Offset:])]), fuse.OK
}

func (s *server) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	n, e := s.change(in.NodeId)
	if e == 0 {
		e = s.d.write(n, data, int(in.Offset)) //nolint:gosec // sizes of tests
	}
	if e != 0 {
		return 0, fuse.Status(e)
	}
	return uint32(len(data)), fuse.OK //nolint:gosec // at most what one call writes
}

func (s *server) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if n, e := s.d.node(in.NodeId); e == 0 {
		n.open--
		s.d.reclaim(n)
	}
}

func (s *server) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

func (s *server) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	n, e := s.change(in.NodeId)
	if e != 0 {
		return fuse.Status(e)
	}
	s.d.sync(n)
	return fuse.OK
}

func (s *server) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if _, e := s.change(in.NodeId); e != 0 {
		return fuse.Status(e)
	}
	s.d.syncDir(in.NodeId)
	return fuse.OK
}

func (s *server) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return s.remove(h, name, false)
}

func (s *server) Rmdir(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return s.remove(h, name, true)
}

func (s *server) remove(h *fuse.InHeader, name string, isDir bool) fuse.Status {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	dir, e := s.change(h.NodeId)
	if e != 0 {
		return fuse.Status(e)
	}
	n := s.d.inodes[dir.names[name]]
	switch {
	case n == nil:
		return fuse.ENOENT
	case isDir && !n.isDir():
		return fuse.ENOTDIR
	case !isDir && n.isDir():
		return fuse.EISDIR
	case len(n.names) > 0:
		return fuse.Status(syscall.ENOTEMPTY)
	}
	s.d.enter(set{dir.id, name, 0})
	return fuse.OK
}

const noReplace = 1 // RENAME_NOREPLACE

func (s *server) Rename(_ <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	dir, e := s.change(in.NodeId)
	if e != 0 {
		return fuse.Status(e)
	}
	dest, e := s.d.node(in.Newdir)
	if e != 0 {
		return fuse.Status(e)
	}
	id, old := dir.names[from], s.d.inodes[dest.names[to]]
	switch {
	case in.Flags&^noReplace != 0:
		return fuse.EINVAL
	case id == 0:
		return fuse.ENOENT
	case old != nil && in.Flags&noReplace != 0:
		return fuse.Status(syscall.EEXIST)
	case old != nil && len(old.names) > 0:
		return fuse.Status(syscall.ENOTEMPTY)
	case old != nil && old.id == id:
		return fuse.OK
	}
	s.d.enter(set{dest.id, to, id}, set{dir.id, from, 0})
	if moved := s.d.inodes[id]; moved.isDir() {
		moved.links++ // the name that is gone was no folder's end
	}
	return fuse.OK
}

func (s *server) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	dir, e := s.change(in.NodeId)
	if e != 0 {
		return fuse.Status(e)
	}
	n, e := s.d.node(in.Oldnodeid)
	if e != 0 {
		return fuse.Status(e)
	}
	if dir.names[name] != 0 {
		return fuse.Status(syscall.EEXIST)
	}
	s.d.enter(set{dir.id, name, n.id})
	s.entry(n, out)
	return fuse.OK
}

func (s *server) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, _ *fuse.OpenOut) fuse.Status {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	_, e := s.d.node(in.NodeId)
	return fuse.Status(e)
}

// ReadDir gives names in the order of their inodes, from the one after the
// offset: names that come and go meanwhile do not move the others.
func (s *server) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	dir, e := s.d.node(in.NodeId)
	if e != 0 {
		return fuse.Status(e)
	}
	names := slices.SortedFunc(maps.Keys(dir.names), func(a, b string) int {
		if dir.names[a] != dir.names[b] {
			return int(dir.names[a]) - int(dir.names[b]) //nolint:gosec // they count from one
		}
		if a < b {
			return -1
		}
		return 1
	})
	for _, name := range names {
		n := s.d.inodes[dir.names[name]]
		if n.id <= in.Offset {
			continue
		}
		if !out.AddDirEntry(fuse.DirEntry{Name: name, Mode: n.mode, Ino: n.id, Off: n.id}) {
			break
		}
	}
	return fuse.OK
}

func (s *server) ReleaseDir(*fuse.ReleaseIn) {}

func (s *server) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.d.off {
		return fuse.EIO
	}
	out.Bsize, out.Frsize, out.NameLen = sector, sector, 255
	out.Blocks = uint64(s.d.size / sector) //nolint:gosec // never below 0
	out.Bfree = uint64(max(s.d.size-s.d.used, 0) / sector)
	out.Bavail, out.Files, out.Ffree = out.Bfree, 1<<30, 1<<29
	return fuse.OK
}
