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
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/spool"
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

// Settle makes less of what an iteration has left, once all that is needed of it to go
// on is stored elsewhere: streams are packed, and of what pawl noted for itself only
// that stays which other machines may see.
func Settle(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return unlessGone(err)
	}
	defer func() { _ = root.Close() }()
	return settle(root, ".")
}

func settle(root *os.Root, dir string) error {
	entries, err := fs.ReadDir(root.FS(), dir)
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir() && isOurs(dir, e.Name()):
			err = errors.Join(err, settle(root, name))
		case !e.Type().IsRegular(), !names().MatchString(e.Name()):
		case path.Ext(name) == ".json":
			err = errors.Join(err, shorten(root, name))
		case slices.Contains([]string{".out", ".err", ".jsonl", ".md"}, path.Ext(name)):
			err = errors.Join(err, spool.Pack(root, name))
		}
	}
	return err
}

func shorten(root *os.Root, name string) error {
	in, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	return mark(in, root, name, 0, 0)
}

const (
	shareEvery = 250 * time.Millisecond // how soon other machines see what a run prints
	shareBound = 10 * time.Second       // how long a run waits at its end for the last of it
)

// Share copies what a run prints into its folder dir to the folder that machines share, or
// nothing where shared is "", until stop is called. A folder that cannot be written holds
// nothing up: it is told once, and what is missing is copied when it can be written again.
func Share(dir, shared, run string, warn func(string)) (stop func()) {
	if shared == "" {
		return func() {}
	}
	c := NewCopier(dir, shared, run)
	ends, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		c.share(ends, warn)
	}()
	return func() {
		close(ends)
		select {
		case <-ended:
		case <-time.After(shareBound):
			warn("cluster.files does not answer; other machines do not see all that the run printed")
		}
	}
}

func (c *Copier) share(ends <-chan struct{}, warn func(string)) {
	tick := time.NewTicker(shareEvery)
	defer tick.Stop()
	told := false
	for all := true; ; all = told {
		err := c.Copy(all)
		if err != nil && !told {
			warn(fmt.Sprintf("other machines do not see what the run prints until cluster.files can be written: %v", err))
		}
		told = err != nil
		select {
		case <-tick.C:
		case <-ends:
			if err := c.Copy(true); err != nil {
				warn(fmt.Sprintf("other machines do not see all that the run printed: %v", err))
			}
			return
		}
	}
}
