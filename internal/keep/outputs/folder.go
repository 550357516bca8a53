package outputs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Folder is one that all machines of a board have, with a folder for each board. The first is never
// made: where it is missing, a disk of the network is not there.
type Folder struct{ Path, Board string }

func (f Folder) String() string { return f.Path }

func (f Folder) openIteration(run, iteration string) (*os.Root, error) {
	root, err := f.openRunFolder(run, false)
	if err != nil {
		return nil, err
	}
	return intoFolder(root, iteration)
}

func (f Folder) removeRun(run string) error {
	board, err := f.openBoardFolder(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = board.Close() }()
	return board.RemoveAll(run)
}

// openRunFolder opens the folder of a run.
func (f Folder) openRunFolder(run string, made bool) (*os.Root, error) {
	board, err := f.openBoardFolder(made)
	if err != nil {
		return nil, err
	}
	defer func() { _ = board.Close() }()
	return enterFolder(board, run, made)
}

func (f Folder) openBoardFolder(made bool) (*os.Root, error) {
	given, err := os.OpenRoot(f.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = given.Close() }()
	return enterFolder(given, f.Board, made)
}

// enterFolder opens a folder that is in another one itself: no link leads to it. One that is
// made is for the same people as the one that it is in.
func enterFolder(in *os.Root, name string, made bool) (*os.Root, error) {
	if made {
		if err := makeFolder(in, name); err != nil {
			return nil, err
		}
	}
	entry, err := in.Lstat(name)
	if err != nil {
		return nil, err
	}
	next, err := in.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if opened, err := next.Stat("."); err != nil || !os.SameFile(entry, opened) {
		_ = next.Close()
		linked := fmt.Errorf("%s in %s is no folder of its own: pawl follows no link there", name, in.Name())
		return nil, errors.Join(err, linked)
	}
	return next, nil
}

// makeFolder makes a folder, unless it is there.
func makeFolder(in *os.Root, name string) error {
	err := in.Mkdir(name, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	mode, err := permissionsOf(in)
	return errors.Join(err, in.Chmod(name, mode))
}

// permissionsOf is who may do what with a folder.
func permissionsOf(folder *os.Root) (fs.FileMode, error) {
	info, err := folder.Stat(".")
	if err != nil {
		return 0, err
	}
	return info.Mode() & (fs.ModePerm | fs.ModeSetgid), nil
}

// appendPart stores what a stream has from at to end, and what comes after it is added to it.
// At 0 it is another stream than before: it gets another file, so that who reads the one
// before notices. After an error the same is stored again.
func appendPart(to *os.Root, name string, in io.ReaderAt, at, end int64) error {
	if at == 0 {
		if err := files.UnlessGone(to.Remove(name)); err != nil {
			return err
		}
	}
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	if at == 0 {
		err = openToReaders(out, to)
	}
	if err == nil {
		_, err = io.Copy(io.NewOffsetWriter(out, at), io.NewSectionReader(in, at, end-at))
	}
	return errors.Join(err, out.Close())
}

// replaceFile has a file take the place of the one before, whole.
func replaceFile(in *os.Root, name string, data []byte) error {
	temp := path.Join(path.Dir(name), ".new")
	_ = in.Remove(temp) // what a crash has left
	out, err := in.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	if err := errors.Join(err, openToReaders(out, in), out.Close()); err != nil {
		return err
	}
	return in.Rename(temp, name)
}

// openToReaders lets those read a file who may read the folder.
func openToReaders(f *os.File, in *os.Root) error {
	mode, err := permissionsOf(in)
	if err != nil {
		return err
	}
	return f.Chmod(mode & 0o666)
}
