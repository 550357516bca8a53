//go:build unix

package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// This file opens what lies in a folder that agents write: a work tree, a .git,
// a .pawl. There every name may be a link to something outside, a pipe without a
// writer, or another name of a file outside. So each folder on the
// way is entered without following a link, only regular files are opened, and a
// file is replaced or begun anew, never written into. The folder itself, root,
// is the caller's: links that lead to it are followed.

// ErrLink is that a name on the way is a symbolic link.
var ErrLink = errors.New("it is a symbolic link, and pawl follows none in a work tree")

// ErrNotRegular is that a name is a folder, a pipe, a socket or a device.
var ErrNotRegular = errors.New("it is not a regular file")

// Below is the name of path as seen from root, where path lies below it. Links
// above root do not hide that it does.
func Below(root, path string) (name string, ok bool) {
	top, err := os.Stat(root)
	if err != nil || !filepath.IsAbs(path) {
		return "", false
	}
	path = filepath.Clean(path)
	for at := 1; at < len(path); at++ {
		if path[at] != filepath.Separator {
			continue
		}
		if info, err := os.Stat(path[:at]); err == nil && os.SameFile(info, top) {
			return path[at+1:], true
		}
	}
	return "", false
}

// NamesBelow are the names, as seen from root, of those of the paths that lie below it.
func NamesBelow(root string, paths []string) []string {
	var names []string
	for _, path := range paths {
		if name, ok := Below(root, path); ok {
			names = append(names, filepath.ToSlash(name))
		}
	}
	return names
}

// OpenBelow opens a regular file for reading.
func OpenBelow(root, name string) (*os.File, error) {
	var f *os.File
	err := Within(root, name, 0, func(dir int, base string) (err error) {
		f, err = OpenIn(dir, base, unix.O_RDONLY, 0)
		return err
	})
	return f, pathError("open", name, err)
}

// ReadBelow reads a regular file of at most limit bytes.
func ReadBelow(root, name string, limit int64) ([]byte, error) {
	f, err := OpenBelow(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = errors.New("it is larger than " + strconv.FormatInt(limit, 10) + " bytes")
	}
	if err != nil {
		return nil, pathError("read", name, err)
	}
	return data, nil
}

// ReplaceBelow is [Replace], and makes the folders on the way. What stands at the
// name is not written into, whatever it is.
func ReplaceBelow(root, name string, data []byte, mode os.FileMode, synced bool) error {
	return pathError("replace", name, writeBelow(root, name, data, mode, synced, true))
}

// MakeBelow makes a synced file that is there with its content or not at all. One
// that is there already is [fs.ErrExist].
func MakeBelow(root, name string, data []byte) error {
	return pathError("make", name, writeBelow(root, name, data, 0o600, true, false))
}

func writeBelow(root, name string, data []byte, mode os.FileMode, synced, over bool) error {
	return Within(root, name, 0o755, func(dir int, base string) error {
		temp, f, err := createTemp(dir, mode)
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		if err == nil && synced {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close())
		switch {
		case err != nil:
		case over:
			err = unix.Renameat(dir, temp, dir, base)
		default:
			if err = unix.Linkat(dir, temp, dir, base, 0); hasNoLinks(err) {
				err = createSyncedIn(dir, base, data, mode)
			}
		}
		if err != nil || !over {
			_ = unix.Unlinkat(dir, temp, 0)
		}
		if err != nil || !synced {
			return err
		}
		return unix.Fsync(dir)
	})
}

// hasNoLinks reports whether a file system refused a hard link since it has none, as exFAT.
func hasNoLinks(err error) bool {
	return slices.Contains([]error{unix.EPERM, unix.EOPNOTSUPP, unix.ENOSYS}, err)
}

// createSyncedIn makes a synced file where there are no hard links. A power loss may leave it empty.
func createSyncedIn(dir int, base string, data []byte, mode os.FileMode) error {
	f, err := OpenIn(dir, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, uint32(mode.Perm()))
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = unix.Unlinkat(dir, base, 0)
	}
	return err
}

// AppendBelow adds data at the end of a file. One that has another name too, or is
// no regular file, may be somebody else's: it is left, and the name is given to a
// new file. So is one that has more than limit bytes.
func AppendBelow(root, name string, data []byte, limit int64) error {
	other := false
	err := Within(root, name, 0o755, func(dir int, base string) error {
		f, err := OpenIn(dir, base, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT, 0o644)
		if errors.Is(err, ErrLink) || errors.Is(err, ErrNotRegular) {
			other = true
			return nil
		}
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err = unix.Fstat(int(f.Fd()), &st); err == nil { //nolint:gosec // a descriptor is small
			if other = st.Nlink > 1 || st.Size > limit; !other {
				_, err = f.Write(data)
			}
		}
		return errors.Join(err, f.Close())
	})
	if err == nil && other {
		return ReplaceBelow(root, name, data, 0o644, false)
	}
	return pathError("append to", name, err)
}

// RemoveBelow removes a file, or a link without what it leads to. One that is not
// there is no error.
func RemoveBelow(root, name string) error {
	err := Within(root, name, 0, func(dir int, base string) error { return unix.Unlinkat(dir, base, 0) })
	return pathError("remove", name, UnlessGone(err))
}

// UnlessGone is nil for an error of a file that is not there.
func UnlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Within calls act with the folder that name lies in, open, and its last part. No
// link is followed; folders on the way are made with a mode that is not 0.
func Within(root, name string, made os.FileMode, act func(dir int, base string) error) error {
	if !filepath.IsLocal(name) {
		return errors.New("it does not lie below " + root)
	}
	const how = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	dir, err := unix.Open(root, how, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	parts := strings.Split(filepath.Clean(name), string(filepath.Separator))
	last := len(parts) - 1
	for _, part := range parts[:last] {
		if made != 0 {
			if err := unix.Mkdirat(dir, part, uint32(made)); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
		next, err := unix.Openat(dir, part, how|unix.O_NOFOLLOW, 0)
		if err != nil {
			return reasonNot(dir, part, err)
		}
		_ = unix.Close(dir)
		dir = next
	}
	return act(dir, parts[last])
}

// OpenIn opens a regular file in a folder that is open.
func OpenIn(dir int, base string, how int, mode uint32) (*os.File, error) {
	const careful = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, base, how|careful, mode)
	if err != nil {
		return nil, reasonNot(dir, base, err)
	}
	f := os.NewFile(uintptr(fd), base) //nolint:gosec // a descriptor is small
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotRegular
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// reasonNot names what stands at a name that could not be opened, where it is not
// what was looked for.
func reasonNot(dir int, base string, err error) error {
	var st unix.Stat_t
	if unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return ErrLink
	case unix.S_IFREG, unix.S_IFDIR:
		return err
	}
	return ErrNotRegular
}

var temporaries atomic.Uint64

// createTemp makes a file of a new name.
func createTemp(dir int, mode os.FileMode) (name string, f *os.File, err error) {
	for range 1000 {
		name = ".pawl-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(temporaries.Add(1), 36)
		f, err = OpenIn(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, uint32(mode.Perm()))
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err == nil {
		err = f.Chmod(mode)
	}
	return name, f, err
}

func pathError(what, name string, err error) error {
	var known *fs.PathError
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &fs.PathError{Op: what, Path: name, Err: err}
}

// Changed returns when what is at a path came to be, got its name or was changed last:
// the kernel's own record, which cannot be set. A link is not followed.
func Changed(path string) (time.Time, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return time.Time{}, pathError("look at", path, err)
	}
	return time.Unix(st.Ctim.Unix()), nil
}

// SetTime gives a file, or a link itself, the time of its last change.
func SetTime(path string, to time.Time) error {
	at := unix.NsecToTimespec(to.UnixNano())
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
}
