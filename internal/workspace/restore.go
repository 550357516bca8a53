//go:build unix

package workspace

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/git"
)

// tempPrefix begins the names of files that a rollback has half written. They
// are never in a snapshot, and the next rollback takes them away.
const tempPrefix = ".pawl-restore-"

// linkLimit is the length in bytes of a symbolic link's target.
const linkLimit = 4096

var (
	// errBlocked: a folder on the way to the path is a file or a symbolic link.
	errBlocked = errors.New("a folder on its way is a file or a symbolic link")
	errPath    = errors.New("its name cannot be in a work tree")
)

// restorer writes into a work tree. It opens every folder by its name in the
// one above and never follows a symbolic link, so it cannot be led outside of
// the tree or into .git.
type restorer struct {
	repo *git.Repo
	top  int             // the top level, open
	stay map[string]bool // folders that are kept when they become empty
}

func newRestorer(repo *git.Repo, stay ...string) (*restorer, error) {
	fd, err := unix.Open(repo.Top, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", repo.Top, err)
	}
	w := &restorer{repo: repo, top: fd, stay: map[string]bool{}}
	for _, dir := range stay {
		for ; dir != "." && dir != "/" && dir != ""; dir = path.Dir(dir) {
			w.stay[dir] = true
		}
	}
	return w, nil
}

func (w *restorer) close() { _ = unix.Close(w.top) } // a folder: nothing to lose

// parent opens the folder that p is in. The caller closes it.
func (w *restorer) parent(p string, create bool) (fd int, base string, err error) {
	parts := strings.Split(p, "/")
	for _, s := range parts {
		if s == "" || s == "." || s == ".." || strings.EqualFold(s, ".git") || s == ".pawl" {
			return -1, "", errPath
		}
	}
	fd, err = unix.Dup(w.top)
	if err != nil {
		return -1, "", err
	}
	unix.CloseOnExec(fd)
	for _, s := range parts[:len(parts)-1] {
		next, err := openFolder(fd, s, create)
		_ = unix.Close(fd)
		if err != nil {
			return -1, "", err
		}
		fd = next
	}
	return fd, parts[len(parts)-1], nil
}

func openFolder(at int, name string, create bool) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(at, name, flags, 0)
	if errors.Is(err, unix.ENOENT) && create {
		if err := unix.Mkdirat(at, name, 0o777); err != nil && !errors.Is(err, unix.EEXIST) {
			return -1, err
		}
		fd, err = unix.Openat(at, name, flags, 0)
	}
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return -1, errBlocked
	}
	return fd, err
}

// found is what is at a path.
type found struct {
	mode   string // as in a tree; empty when nothing is there
	object string
	dir    bool
	perm   uint32
}

// find reads what is at a name, without following it.
func (w *restorer) find(at int, base string) (found, error) {
	var st unix.Stat_t
	err := unix.Fstatat(at, base, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return found{}, nil
	}
	if err != nil {
		return found{}, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return found{mode: "040000", dir: true}, nil
	case unix.S_IFLNK:
		buf := make([]byte, linkLimit)
		n, err := unix.Readlinkat(at, base, buf)
		if err != nil {
			return found{}, err
		}
		id, err := w.repo.BlobID(int64(n), strings.NewReader(string(buf[:n])))
		return found{mode: git.ModeSymlink, object: id}, err
	case unix.S_IFREG:
		return w.findFile(at, base)
	default:
		return found{mode: "special"}, nil
	}
}

func (w *restorer) findFile(at int, base string) (found, error) {
	fd, err := unix.Openat(at, base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return found{}, err
	}
	f := os.NewFile(uintptr(fd), base)
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return found{}, err
	}
	id, err := w.repo.BlobID(info.Size(), f)
	if err != nil {
		return found{}, err
	}
	out := found{mode: git.ModeFile, object: id, perm: uint32(info.Mode().Perm())}
	if info.Mode()&0o100 != 0 {
		out.mode = git.ModeExec
	}
	return out, nil
}

func (f found) is(mode, object string) bool { return f.mode == mode && f.object == object }

// remove takes away what is at p if it is object, and then the folders above
// that are empty. A reason is returned when it was left.
func (w *restorer) remove(p, mode, object string) (done bool, reason error) {
	at, base, err := w.parent(p, false)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(at) }()
	here, err := w.find(at, base)
	switch {
	case err != nil:
		return false, err
	case here.mode == "":
		return false, nil
	case !here.is(mode, object):
		return false, errMeanwhile
	}
	if err := unix.Unlinkat(at, base, 0); err != nil {
		return false, err
	}
	w.removeEmpty(path.Dir(p))
	return true, nil
}

// removeEmpty removes a folder and those above as long as they are empty.
func (w *restorer) removeEmpty(dir string) {
	for ; dir != "." && !w.stay[dir]; dir = path.Dir(dir) {
		at, base, err := w.parent(dir, false)
		if err != nil {
			return
		}
		err = unix.Unlinkat(at, base, unix.AT_REMOVEDIR)
		_ = unix.Close(at)
		if err != nil {
			return
		}
	}
}

// write puts a blob at the path of ch, if what is there is what ch says was
// there. Done is false without a reason when it is right already.
func (w *restorer) write(ch git.Change, size int64, body io.Reader) (done bool, reason error) {
	at, base, err := w.parent(ch.Path, true)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(at) }()
	here, err := w.find(at, base)
	switch {
	case err != nil:
		return false, err
	case here.is(ch.NewMode, ch.NewObject):
		return false, nil
	case here.dir:
		if err := unix.Unlinkat(at, base, unix.AT_REMOVEDIR); err != nil {
			return false, errFolder
		}
	case here.mode != "" && !here.is(ch.OldMode, ch.OldObject):
		return false, errMeanwhile
	}
	temp := tempPrefix + rand.Text()
	if err := fill(at, temp, ch.NewMode, here.perm, size, body); err != nil {
		_ = unix.Unlinkat(at, temp, 0) // it may not have been made
		return false, err
	}
	if err := unix.Renameat(at, temp, at, base); err != nil {
		_ = unix.Unlinkat(at, temp, 0) // the rename's error matters more
		return false, err
	}
	return true, nil
}

// fill makes a new file or link. A file keeps the permissions of the one that
// it replaces, apart from execute bits.
func fill(at int, name, mode string, perm uint32, size int64, body io.Reader) error {
	if mode == git.ModeSymlink {
		if size > linkLimit {
			return errPath
		}
		target, err := io.ReadAll(body)
		if err != nil {
			return err
		}
		return unix.Symlinkat(string(target), at, name)
	}
	create := uint32(0o666)
	if mode == git.ModeExec {
		create = 0o777
	}
	fd, err := unix.Openat(at, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, create)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := io.Copy(f, body); err != nil {
		return errors.Join(err, f.Close())
	}
	if perm != 0 {
		perm &^= 0o111
		if mode == git.ModeExec {
			perm |= perm & 0o444 >> 2
		}
		if err := f.Chmod(os.FileMode(perm)); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}

// sweep removes temporary files of a rollback that was killed.
func (w *restorer) sweep(strays []string) {
	for _, p := range strays {
		at, base, err := w.parent(p, false)
		if err != nil {
			continue
		}
		_ = unix.Unlinkat(at, base, 0) // a folder of that name is not ours, and stays
		_ = unix.Close(at)
		w.removeEmpty(path.Dir(p))
	}
}
