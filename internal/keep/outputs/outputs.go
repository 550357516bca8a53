// Package outputs finds what runs print: in this machine's folder of a run, else where
// all machines of a board look, to which whoever drives a run copies it while it grows.
//
//	the run's folder ── Copier ──▶ a shared folder ─────────────▶ Open
//	                          └──▶ objects in a bucket ── mirror ──▶ Open
//
// Anybody who reaches the shared place may have put something there, so no link is
// followed out of a run's folder in it, and of a bucket only names are taken that a
// run has. What pawl needs for itself, such as the environment of an agent, is never
// copied there.
package outputs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/spool"
)

// Shared is where all machines of a board find what its runs print: a [Folder] or a
// [Bucket]. Nil is nowhere.
type Shared interface {
	// open opens the folder of a run's iteration; an error is [fs.ErrNotExist] where
	// there is nothing of it.
	open(run, iteration string) (*os.Root, error)
	// look says that an iteration that is open is still looked at.
	look(run, iteration string)
	// place is where a run's files go.
	place(run string) place
	remove(run string) error
	// every is how often what is new goes there.
	every() time.Duration
	// Close removes what this process has kept of it.
	Close() error
}

// place takes the files of one run, between begin and end. Names have slashes.
type place interface {
	begin() error
	end() error
	// fresh begins a folder anew.
	fresh(dir string) error
	// add stores what a stream has from at to end, and what comes after it is to be
	// added to. At 0 it is another stream than before. After an error the same is
	// stored again.
	add(name string, in io.ReaderAt, at, end int64) error
	// put stores a small file whole.
	put(name string, data []byte) error
	drop(name string) error
}

// Open opens the folder of a run's iteration: that below runs, a folder of this
// machine, else what the machines share.
func Open(runs string, shared Shared, run, iteration string) (*os.Root, error) {
	if run != filepath.Base(run) || !filepath.IsLocal(run) {
		return nil, fmt.Errorf("%q is no run", run)
	}
	root, err := os.OpenRoot(filepath.Join(runs, run))
	if err == nil {
		root, err = into(root, iteration)
	}
	if shared != nil && errors.Is(err, fs.ErrNotExist) {
		return shared.open(run, iteration)
	}
	return root, err
}

// Look says that the folder of an iteration which [Open] has opened is still looked at:
// after a minute without, it need not have what is new.
func Look(shared Shared, run, iteration string) {
	if shared != nil {
		shared.look(run, iteration)
	}
}

// into goes to a folder below root, and closes root.
func into(root *os.Root, name string) (*os.Root, error) {
	defer func() { _ = root.Close() }()
	return root.OpenRoot(name)
}

// Remove removes what is shared of a run.
func Remove(shared Shared, run string) error {
	if shared == nil {
		return nil
	}
	return shared.remove(run)
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
	data, err := briefOf(in)
	if err != nil {
		return err
	}
	return replace(root, name, data)
}
