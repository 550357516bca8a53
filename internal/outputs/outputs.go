// Package outputs finds what runs print: in this machine's folder of a run, else in
// the folder that all machines of a board share, into which whoever drives a run
// copies it while it grows. Anybody who reaches the shared folder may have put
// something there, so no link is followed out of a run's folder in it. What pawl
// needs for itself, such as the environment of an agent, is never copied there.
package outputs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Open opens the folder of a run, or one below it: that below runs, a folder of this
// machine, else that below shared, which has one board. Shared is "" for none.
func Open(runs, shared, run string, below ...string) (*os.Root, error) {
	if run != filepath.Base(run) || !filepath.IsLocal(run) {
		return nil, fmt.Errorf("%q is no run", run)
	}
	name := path.Join(below...)
	root, err := os.OpenRoot(filepath.Join(runs, run))
	if err == nil {
		root, err = into(root, name)
	}
	if shared == "" || !errors.Is(err, fs.ErrNotExist) {
		return root, err
	}
	root, err = ofRun(shared, run, false)
	if err != nil {
		return nil, err
	}
	return into(root, name)
}

// into goes to a folder below root, and closes root.
func into(root *os.Root, name string) (*os.Root, error) {
	if name == "" {
		return root, nil
	}
	defer func() { _ = root.Close() }()
	return root.OpenRoot(name)
}

// Remove removes what is shared of a run.
func Remove(shared, run string) error {
	board, err := ofBoard(shared, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = board.Close() }()
	return board.RemoveAll(run)
}

// ofRun opens the shared folder of a run.
func ofRun(shared, run string, made bool) (*os.Root, error) {
	board, err := ofBoard(shared, made)
	if err != nil {
		return nil, err
	}
	defer func() { _ = board.Close() }()
	return step(board, run, made)
}

// ofBoard opens the board's folder in the one that was given, which is never made:
// where it is missing, a disk of the network is not there.
func ofBoard(shared string, made bool) (*os.Root, error) {
	given, err := os.OpenRoot(filepath.Dir(shared))
	if err != nil {
		return nil, err
	}
	defer func() { _ = given.Close() }()
	return step(given, filepath.Base(shared), made)
}

// step opens a folder that is in another one itself: no link leads to it. One that is
// made is for the same people as the one that it is in.
func step(in *os.Root, name string, made bool) (*os.Root, error) {
	if made {
		if err := in.Mkdir(name, 0o700); err == nil {
			mode, err := modeOf(in)
			if err != nil {
				return nil, err
			}
			if err := in.Chmod(name, mode); err != nil {
				return nil, err
			}
		} else if !errors.Is(err, fs.ErrExist) {
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

// modeOf is who may do what with a folder.
func modeOf(folder *os.Root) (fs.FileMode, error) {
	info, err := folder.Stat(".")
	if err != nil {
		return 0, err
	}
	return info.Mode() & (fs.ModePerm | fs.ModeSetgid), nil
}
