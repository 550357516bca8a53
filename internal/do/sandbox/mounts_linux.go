package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mountAll arranges the tree on a root of its own, and lets go of the machine's.
// The process must have a mount namespace of its own and the right to mount in it.
func mountAll(all []placement, root placement) error {
	// None that is made outside from now on comes in.
	private := unix.MountAttr{Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &private); err != nil {
		return fmt.Errorf("cannot have mounts of its own: %w", err)
	}
	trees, err := cloneAll(all)
	defer func() {
		for _, fd := range trees {
			_ = unix.Close(fd)
		}
	}()
	if err != nil {
		return err
	}
	if err := changeRoot(root); err != nil {
		return err
	}
	b := builder{trees: trees, pinned: map[string]bool{}}
	var open []string // hidden folders that are still being filled
	if root.sort == hidden {
		open = []string{"/"}
	}
	for _, one := range all {
		filled := isMountedInto(one.path, all)
		if err := b.mountPlacement(one, filled); err != nil {
			return err
		}
		if one.sort == hidden && filled {
			open = append(open, one.path)
		}
	}
	for _, dir := range open {
		closed := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
		if err := unix.MountSetattr(unix.AT_FDCWD, dir, 0, &closed); err != nil {
			return fmt.Errorf("cannot close %s: %w", dir, err)
		}
	}
	return nil
}

// builder fills the tree.
type builder struct {
	trees  map[string]int  // what is to be mounted, by path
	pinned map[string]bool // folders that cannot be moved
	empty  string          // a hidden folder in which nothing is mounted
}

// mountPlacement puts one placement into the tree.
func (b *builder) mountPlacement(one placement, filled bool) error {
	at, name := unix.AT_FDCWD, one.path
	if one.made || one.in != "" {
		var err error
		if at, name, err = b.makePoint(one); err != nil {
			return fmt.Errorf("cannot make room for %s: %w", one.path, err)
		}
		defer func() { _ = unix.Close(at) }()
	}
	switch one.sort {
	case linked:
		return nil
	case hidden:
		return b.hidePath(one.path, filled)
	}
	err := unix.MoveMount(b.trees[one.path], "", at, name, unix.MOVE_MOUNT_F_EMPTY_PATH)
	noPlace := errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
	leftOut := one.lax && noPlace
	if err == nil || leftOut {
		return nil
	}
	return fmt.Errorf("cannot mount %s: %w", one.path, err)
}

// emptyRoot are the options of the root of a box that is built from nothing.
const emptyRoot = "mode=0755,size=4m,nr_inodes=8192"

// changeRoot gives the process another root: an empty one, or what the machine has,
// read-only where it may not be written. Nothing leads back.
func changeRoot(root placement) error {
	const over = "/proc" // every machine has it, and what is there has been taken hold of
	if root.sort == hidden {
		if err := unix.Mount("tmpfs", over, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, emptyRoot); err != nil {
			return fmt.Errorf("cannot make an empty root: %w", err)
		}
	} else {
		trees, err := cloneAll([]placement{root})
		if err != nil {
			return err
		}
		err = unix.MoveMount(trees["/"], "", unix.AT_FDCWD, over, unix.MOVE_MOUNT_F_EMPTY_PATH)
		_ = unix.Close(trees["/"])
		if err != nil {
			return fmt.Errorf("cannot mount the root: %w", err)
		}
	}
	if err := unix.Chdir(over); err != nil {
		return fmt.Errorf("cannot enter its root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("cannot change its root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("cannot let go of the machine's root: %w", err)
	}
	return unix.Chdir("/")
}

// cloneAll takes hold of the originals, before anything covers them.
func cloneAll(all []placement) (map[string]int, error) {
	trees := map[string]int{}
	for _, one := range all {
		if one.sort == linked {
			continue
		}
		if one.sort == layered {
			fd, err := mountOverlay(one.over)
			if err != nil {
				return trees, err
			}
			trees[one.path] = fd
			continue
		}
		from := one.path
		if one.from != "" {
			from = one.from
		}
		if one.sort == hidden {
			from = os.DevNull // for what is no folder
		}
		fd, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			return trees, fmt.Errorf("cannot take hold of %s: %w", from, err)
		}
		trees[one.path] = fd
		if one.sort != readable {
			continue
		}
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
			return trees, fmt.Errorf("cannot make %s read-only: %w", from, err)
		}
	}
	return trees, nil
}

// mountOverlay is a mount of a folder whose changes go elsewhere. Where the kernel has
// none, as for a Scratch in an overlay, it is the empty folder for the changes.
func mountOverlay(o Over) (int, error) {
	from := cmp.Or(o.From, o.To)
	up, work := filepath.Join(o.Scratch, "up"), filepath.Join(o.Scratch, "work")
	for _, dir := range []string{up, work} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return -1, fmt.Errorf("cannot make room for changes of %s: %w", o.To, err)
		}
	}
	if info, err := os.Stat(from); err == nil && info.Mode().IsRegular() {
		up = filepath.Join(up, "file")
		if err := copyIfMissing(from, up); err != nil {
			return -1, err
		}
	} else if fd, err := overlayOf(from, up, work); err == nil {
		return fd, nil
	} else if o.Whole {
		up = from
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, up, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("cannot take hold of %s: %w", up, err)
	}
	return fd, nil
}

// copyIfMissing copies a file, if there is no copy yet.
func copyIfMissing(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot make room for changes of %s: %w", from, err)
	}
	return nil
}

// escapeLayer keeps what separates layers from being taken for it.
var escapeLayer = strings.NewReplacer(`\`, `\\`, ":", `\:`)

func overlayOf(lower, up, work string) (int, error) {
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(fs) }()
	err = errors.Join(
		unix.FsconfigSetString(fs, "lowerdir", escapeLayer.Replace(lower)), unix.FsconfigSetString(fs, "upperdir", up),
		unix.FsconfigSetString(fs, "workdir", work), unix.FsconfigSetFlag(fs, "userxattr"),
	)
	if err == nil {
		err = unix.FsconfigCreate(fs)
	}
	if err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

// isMountedInto is whether something is mounted in the hidden folder dir.
func isMountedInto(dir string, all []placement) bool {
	return slices.ContainsFunc(all, func(one placement) bool { return one.made && isWithin(dir, one.path) })
}

// hidePath puts an empty folder over path, or the null device if that is none.
// One empty folder serves all, but for those that something is mounted in.
func (b *builder) hidePath(path string, own bool) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return nil // gone meanwhile, or out of reach anyway
	}
	if err != nil {
		return fmt.Errorf("cannot hide %s: %w", path, err)
	}
	if !info.IsDir() {
		if err := unix.MoveMount(b.trees[path], "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("cannot hide %s: %w", path, err)
		}
		return nil
	}
	if !own && b.empty != "" {
		if err := unix.Mount(b.empty, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("cannot hide %s: %w", path, err)
		}
		return nil
	}
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	if !own {
		flags |= unix.MS_RDONLY
	}
	if err := unix.Mount("tmpfs", path, "tmpfs", flags, "mode=0755,size=64k,nr_inodes=512"); err != nil {
		return fmt.Errorf("cannot hide %s: %w", path, err)
	}
	if !own {
		b.empty = path
	}
	return nil
}

// makePoint makes what one is mounted on, a folder for a folder, else a file, and
// the folders that lead there. Of a link it makes the link. It returns the folder in
// which that is, which is the caller's to close. What an agent left in its place in a
// folder for temporary files goes, if it is no folder: no way leads through that. The
// folders there cannot be moved: another one in their place would be believed.
func (b *builder) makePoint(one placement) (dir int, name string, err error) {
	top := cmp.Or(one.in, "/")
	at, from := unix.AT_FDCWD, "/"
	if one.in != "" {
		at, from = b.trees[one.in], "."
	}
	if dir, err = unix.Openat(at, from, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return dir, "", err
	}
	names := strings.Split(strings.Trim(one.path[len(top):], "/"), "/")
	name = names[len(names)-1]
	for i, step := range names[:len(names)-1] {
		if err := ensureNameAt(dir, step, placement{}, true); err != nil {
			return dir, "", err
		}
		if path := filepath.Join(top, filepath.Join(names[:i+1]...)); one.in != "" && !b.pinned[path] {
			b.pinned[path] = true
			if err := pinFolder(dir, step); err != nil {
				return dir, "", err
			}
		}
		next, err := unix.Openat(dir, step, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return dir, "", err
		}
		_ = unix.Close(dir)
		dir = next
	}
	folder := one.sort == hidden
	if tree, ok := b.trees[one.path]; ok && !folder {
		var st unix.Stat_t
		if err := unix.Fstat(tree, &st); err != nil {
			return dir, "", err
		}
		folder = st.Mode&unix.S_IFMT == unix.S_IFDIR
	}
	return dir, name, ensureNameAt(dir, name, one, folder)
}

// pinFolder mounts a folder on itself: what is mounted cannot be moved.
func pinFolder(dir int, name string) error {
	const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_SYMLINK_NOFOLLOW
	tree, err := unix.OpenTree(dir, name, flags)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(tree) }()
	return unix.MoveMount(tree, "", dir, name, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// ensureNameAt makes one name of a folder what is wanted there, if it is not so.
func ensureNameAt(at int, name string, one placement, folder bool) error {
	for {
		err := createNameAt(at, name, one, folder)
		if !errors.Is(err, unix.EEXIST) {
			return err
		}
		var st unix.Stat_t
		if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		kind := st.Mode & unix.S_IFMT
		want := uint32(unix.S_IFREG)
		if folder {
			want = unix.S_IFDIR
		}
		if kind == want && one.sort != linked {
			return nil
		}
		if err := unix.Unlinkat(at, name, 0); err != nil {
			return err
		}
	}
}

func createNameAt(at int, name string, one placement, folder bool) error {
	switch {
	case one.sort == linked:
		return unix.Symlinkat(one.from, at, name)
	case folder:
		return unix.Mkdirat(at, name, 0o755)
	}
	return unix.Mknodat(at, name, unix.S_IFREG|0o600, 0)
}

// newTerminals gives the box terminals of its own: those of the user's windows
// could be read and written else.
func newTerminals() error {
	if _, err := os.Stat("/dev/pts/ptmx"); err != nil {
		return nil //nolint:nilerr // a machine without terminals
	}
	const flags, options = unix.MS_NOSUID | unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"
	if err := unix.Mount("devpts", "/dev/pts", "devpts", flags, options); err != nil {
		return fmt.Errorf("cannot make terminals: %w", err)
	}
	if info, err := os.Lstat("/dev/ptmx"); err != nil || info.Mode()&os.ModeSymlink != 0 {
		return nil //nolint:nilerr // a link to pts/ptmx
	}
	if err := unix.Mount("/dev/pts/ptmx", "/dev/ptmx", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("cannot make terminals: %w", err)
	}
	return nil
}
