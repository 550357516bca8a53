package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mountAll arranges the tree. The process must have a mount namespace of its
// own and the right to mount in it.
func mountAll(all []placement) error {
	trees, err := cloneAll(all)
	defer func() {
		for _, fd := range trees {
			_ = unix.Close(fd)
		}
	}()
	if err != nil {
		return err
	}
	// Everything at once: no mount is left writable, and none that is made
	// outside from now on comes in.
	everything := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY, Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &everything); err != nil {
		return fmt.Errorf("cannot make the tree read-only: %w", err)
	}
	empty := ""
	var open []string // hidden folders that are still being filled
	for _, one := range all {
		if one.made || one.in != "" {
			if err := makePoint(trees, one); err != nil {
				return fmt.Errorf("cannot make room for %s: %w", one.path, err)
			}
		}
		if one.sort == linked {
			continue
		}
		if one.sort != hidden {
			err := attach(trees[one.path], one.path)
			noPlace := errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
			leftOut := one.lax && noPlace
			if err != nil && !leftOut {
				return err
			}
			continue
		}
		filled := fills(one.path, all)
		if err := hide(one.path, &empty, filled); err != nil {
			return err
		}
		if filled {
			open = append(open, one.path)
		}
	}
	for _, dir := range open {
		if err := unix.MountSetattr(unix.AT_FDCWD, dir, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("cannot close %s: %w", dir, err)
		}
	}
	return nil
}

// cloneAll takes hold of the originals, before anything covers them.
func cloneAll(all []placement) (map[string]int, error) {
	trees := map[string]int{}
	for _, one := range all {
		if one.sort == hidden || one.sort == linked {
			continue
		}
		if one.sort == layered {
			fd, err := overlay(one.over)
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

// overlay is a mount of a folder whose changes go elsewhere. Where the kernel has
// none, as for a Scratch in an overlay, it is the empty folder for the changes.
func overlay(o Over) (int, error) {
	up, work := filepath.Join(o.Scratch, "up"), filepath.Join(o.Scratch, "work")
	for _, dir := range []string{up, work} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return -1, fmt.Errorf("cannot make room for changes of %s: %w", o.To, err)
		}
	}
	if fd, err := overlayOf(o.To, up, work); err == nil {
		return fd, nil
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, up, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("cannot take hold of %s: %w", up, err)
	}
	return fd, nil
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

func attach(tree int, path string) error {
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("cannot mount %s: %w", path, err)
	}
	return nil
}

// fills is whether something is mounted in the hidden folder dir.
func fills(dir string, all []placement) bool {
	return slices.ContainsFunc(all, func(one placement) bool { return one.made && within(dir, one.path) })
}

// hide puts an empty folder, or the null device for anything else, over path.
// One empty folder serves all, but for those that something is mounted in.
func hide(path string, empty *string, own bool) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return nil // gone meanwhile, or out of reach anyway
	}
	if err != nil {
		return fmt.Errorf("cannot hide %s: %w", path, err)
	}
	if !info.IsDir() {
		if err := unix.Mount(os.DevNull, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("cannot hide %s: %w", path, err)
		}
		return nil
	}
	if !own && *empty != "" {
		if err := unix.Mount(*empty, path, "", unix.MS_BIND, ""); err != nil {
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
		*empty = path
	}
	return nil
}

// makePoint makes what one is mounted on: a folder for a folder, else a file.
// Of a link it makes the link. What an agent left in its place in a folder for
// temporary files goes, if it is no folder.
func makePoint(trees map[string]int, one placement) error {
	at, name := unix.AT_FDCWD, one.path
	if one.in != "" {
		at, name = trees[one.in], filepath.Base(one.path) // no way leads through what an agent made
	} else if err := os.MkdirAll(filepath.Dir(one.path), 0o755); err != nil {
		return err
	}
	folder := one.sort == hidden
	if tree, ok := trees[one.path]; ok {
		var st unix.Stat_t
		if err := unix.Fstat(tree, &st); err != nil {
			return err
		}
		folder = st.Mode&unix.S_IFMT == unix.S_IFDIR
	}
	for {
		err := makeAt(at, name, one, folder)
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

func makeAt(at int, name string, one placement, folder bool) error {
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
