package outputs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"
)

// Folder is one that all machines have, with a folder for each board. The first is never
// made: where it is missing, a disk of the network is not there.
type Folder struct{ Path, Board string }

func (f Folder) String() string { return f.Path }

// Close does nothing.
func (f Folder) Close() error { return nil }

func (f Folder) every() time.Duration { return 250 * time.Millisecond }

func (f Folder) open(run, iteration string) (*os.Root, error) {
	root, err := f.ofRun(run, false)
	if err != nil {
		return nil, err
	}
	return into(root, iteration)
}

func (f Folder) look(string, string) {}

func (f Folder) remove(run string) error {
	board, err := f.ofBoard(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = board.Close() }()
	return board.RemoveAll(run)
}

func (f Folder) place(run string) place { return &folderOfRun{in: f, run: run} }

// ofRun opens the folder of a run.
func (f Folder) ofRun(run string, made bool) (*os.Root, error) {
	board, err := f.ofBoard(made)
	if err != nil {
		return nil, err
	}
	defer func() { _ = board.Close() }()
	return step(board, run, made)
}

func (f Folder) ofBoard(made bool) (*os.Root, error) {
	given, err := os.OpenRoot(f.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = given.Close() }()
	return step(given, f.Board, made)
}

// step opens a folder that is in another one itself: no link leads to it. One that is
// made is for the same people as the one that it is in.
func step(in *os.Root, name string, made bool) (*os.Root, error) {
	if made {
		if err := mkdir(in, name); err != nil {
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

// mkdir makes a folder, unless it is there.
func mkdir(in *os.Root, name string) error {
	err := in.Mkdir(name, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	mode, err := modeOf(in)
	return errors.Join(err, in.Chmod(name, mode))
}

// modeOf is who may do what with a folder.
func modeOf(folder *os.Root) (fs.FileMode, error) {
	info, err := folder.Stat(".")
	if err != nil {
		return 0, err
	}
	return info.Mode() & (fs.ModePerm | fs.ModeSetgid), nil
}

// folderOfRun is the folder of a run in a shared one.
type folderOfRun struct {
	in   Folder
	run  string
	root *os.Root
}

func (f *folderOfRun) begin() (err error) {
	f.root, err = f.in.ofRun(f.run, true)
	return err
}

func (f *folderOfRun) end() error { return f.root.Close() }

func (f *folderOfRun) fresh(dir string) error {
	if err := f.root.RemoveAll(dir); err != nil {
		return err
	}
	return mkdir(f.root, dir)
}

// add gives another stream another file, so that who reads the one before notices.
func (f *folderOfRun) add(name string, in io.ReaderAt, at, end int64) error {
	if at == 0 {
		if err := f.drop(name); err != nil {
			return err
		}
	}
	out, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	if at == 0 {
		err = open(out, f.root)
	}
	if err == nil {
		_, err = io.Copy(io.NewOffsetWriter(out, at), io.NewSectionReader(in, at, end-at))
	}
	return errors.Join(err, out.Close())
}

func (f *folderOfRun) put(name string, data []byte) error { return replace(f.root, name, data) }

func (f *folderOfRun) drop(name string) error { return unlessGone(f.root.Remove(name)) }

// replace has a file take the place of the one before, whole.
func replace(in *os.Root, name string, data []byte) error {
	temp := path.Join(path.Dir(name), ".new")
	_ = in.Remove(temp) // what a crash has left
	out, err := in.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	if err := errors.Join(err, open(out, in), out.Close()); err != nil {
		return err
	}
	return in.Rename(temp, name)
}

// open lets those read a file who may read the folder.
func open(f *os.File, in *os.Root) error {
	mode, err := modeOf(in)
	if err != nil {
		return err
	}
	return f.Chmod(mode & 0o666)
}
