//go:build unix

package workspace

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
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

// restorer writes into a work tree. It enters every folder by its name in the
// one above and never follows a symbolic link, so it cannot be led outside of
// the tree or into .git.
type restorer struct {
	repo *git.Repo
	stay map[string]bool // folders that are kept when they become empty
}

func newRestorer(repo *git.Repo, stay ...string) *restorer {
	w := &restorer{repo: repo, stay: map[string]bool{}}
	for _, dir := range stay {
		for ; dir != "." && dir != "/" && dir != ""; dir = path.Dir(dir) {
			w.stay[dir] = true
		}
	}
	return w
}

// inFolder acts in the folder that p is in. Folders on the way are made with a mode
// that is not 0.
func (w *restorer) inFolder(p string, made os.FileMode, act func(at int, base string) error) error {
	for s := range strings.SplitSeq(p, "/") {
		if s == "" || s == "." || s == ".." || strings.EqualFold(s, ".git") || s == ".pawl" {
			return errPath
		}
	}
	entered := false
	err := files.Within(w.repo.Top, p, made, func(at int, base string) error {
		entered = true
		return act(at, base)
	})
	odd := errors.Is(err, files.ErrLink) || errors.Is(err, files.ErrNotRegular) || errors.Is(err, unix.ENOTDIR)
	if odd && !entered {
		return errBlocked
	}
	return err
}

// found is what is at a path.
type found struct {
	mode   string // as in a tree; empty when nothing is there
	object string
	dir    bool
	perm   os.FileMode

	anyMode bool // it is a file where modes are not kept
}

// findEntry reads what is at a name, without following it.
func (w *restorer) findEntry(at int, base string) (found, error) {
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
	f, err := files.OpenIn(at, base, unix.O_RDONLY, 0)
	if err != nil {
		return found{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return found{}, err
	}
	id, err := w.repo.BlobID(info.Size(), f)
	if err != nil {
		return found{}, err
	}
	out := found{mode: git.ModeFile, object: id, perm: info.Mode().Perm(), anyMode: w.repo.NoModes}
	if info.Mode()&0o100 != 0 {
		out.mode = git.ModeExec
	}
	return out, nil
}

// readEntryAt reads what is at a path.
func (w *restorer) readEntryAt(p string) (here found, err error) {
	err = w.inFolder(p, 0, func(at int, base string) (err error) {
		here, err = w.findEntry(at, base)
		return err
	})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, errBlocked) {
		return found{}, nil // a folder on its way is none: nothing is there
	}
	return here, err
}

func (f found) isSameContent(mode, object string) bool {
	if f.anyMode && mode != "" {
		mode = f.mode
	}
	isSame := f.dir || f.object == object
	return f.mode == mode && isSame
}

// removeUnchanged takes away what is at p if it is object, and then the folders above
// that are empty. A reason is returned when it was left.
func (w *restorer) removeUnchanged(p, mode, object string) (done bool, reason error) {
	err := w.inFolder(p, 0, func(at int, base string) error {
		here, err := w.findEntry(at, base)
		switch {
		case err != nil, here.mode == "":
			return err
		case !here.isSameContent(mode, object):
			return errMeanwhile
		}
		flags := 0
		if here.dir {
			flags = unix.AT_REMOVEDIR
		}
		err = unix.Unlinkat(at, base, flags)
		done = err == nil
		return err
	})
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if done {
		w.removeEmpty(path.Dir(p))
	}
	return done, err
}

// removeEmpty removes a folder and those above as long as they are empty.
func (w *restorer) removeEmpty(dir string) {
	for ; dir != "." && !w.stay[dir]; dir = path.Dir(dir) {
		err := w.inFolder(dir, 0, func(at int, base string) error { return unix.Unlinkat(at, base, unix.AT_REMOVEDIR) })
		if err != nil {
			return
		}
	}
}

// writeBlob puts a blob at the path of ch, if what is there is what ch says was
// there. Done is false without a reason when it is right already.
func (w *restorer) writeBlob(ch git.Change, size int64, body io.Reader) (done bool, reason error) {
	reason = w.inFolder(ch.Path, 0o777, func(at int, base string) error {
		here, err := w.findEntry(at, base)
		switch {
		case err != nil, here.isSameContent(ch.NewMode, ch.NewObject):
			return err
		case here.dir:
			if err := unix.Unlinkat(at, base, unix.AT_REMOVEDIR); err != nil {
				return errFolder
			}
		case !here.isSameContent(ch.OldMode, ch.OldObject):
			return errMeanwhile
		}
		temp := tempPrefix + rand.Text()
		if err = createEntry(at, temp, ch.NewMode, here.perm, size, body); err == nil {
			err = unix.Renameat(at, temp, at, base)
		}
		if done = err == nil; !done {
			_ = unix.Unlinkat(at, temp, 0) // it may not have been made
		}
		return err
	})
	return done, reason
}

// makeFolder makes an empty folder where nothing is.
func (w *restorer) makeFolder(p string) (done bool, reason error) {
	reason = w.inFolder(p, 0o777, func(at int, base string) error {
		here, err := w.findEntry(at, base)
		switch {
		case err != nil, here.dir:
			return err
		case here.mode != "":
			return errMeanwhile
		}
		err = unix.Mkdirat(at, base, 0o777)
		done = err == nil
		return err
	})
	return done, reason
}

// createEntry makes a new file or link. A file keeps the permissions of the one that
// it replaces, apart from execute bits.
func createEntry(at int, name, mode string, perm os.FileMode, size int64, body io.Reader) error {
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
	f, err := files.OpenIn(at, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, create)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, body)
	if err == nil && perm != 0 {
		perm &^= 0o111
		if mode == git.ModeExec {
			perm |= perm & 0o444 >> 2
		}
		err = f.Chmod(perm)
	}
	return errors.Join(err, f.Close())
}

// removeStrayFiles removes temporary files of a rollback that was killed.
func (w *restorer) removeStrayFiles(strays []string) {
	for _, p := range strays {
		err := w.inFolder(p, 0, func(at int, base string) error {
			_ = unix.Unlinkat(at, base, 0) // a folder of that name is not ours, and stays
			return nil
		})
		if err == nil {
			w.removeEmpty(path.Dir(p))
		}
	}
}
