// Package outputs finds what runs print: in this machine's folder of a run, else where
// all machines of a board look, to which the process that drives a run copies it while it grows.
//
//	the run's folder ── Copier ──▶ a shared folder ──▶ Open
//
// Anybody who reaches the shared folder may have put something there, so no link is
// followed out of a run's folder in it. What pawl needs for itself, such as the environment of an agent, is never
// copied there.
package outputs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/spool"
)

// Open opens the folder of a run's iteration: that below runs, a folder of this
// machine, else what the machines share.
func Open(runs string, shared *Folder, run, iteration string) (*os.Root, error) {
	if run != filepath.Base(run) || !filepath.IsLocal(run) {
		return nil, fmt.Errorf("%q is no run", run)
	}
	root, err := os.OpenRoot(filepath.Join(runs, run))
	if err == nil {
		root, err = intoFolder(root, iteration)
	}
	if shared != nil && errors.Is(err, fs.ErrNotExist) {
		return shared.openRun(run, iteration)
	}
	return root, err
}

// intoFolder goes to a folder below root, and closes root.
func intoFolder(root *os.Root, name string) (*os.Root, error) {
	defer func() { _ = root.Close() }()
	return root.OpenRoot(name)
}

// Remove removes what is shared of a run.
func Remove(shared *Folder, run string) error {
	if shared == nil {
		return nil
	}
	return shared.removeRun(run)
}

// Compact reduces what an iteration has left, once all that is needed to resume it is
// stored elsewhere: streams are packed, and of pawl's own notes only those stay that
// other machines may see.
func Compact(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return files.UnlessGone(err)
	}
	defer func() { _ = root.Close() }()
	return settleFolder(root, ".")
}

func settleFolder(root *os.Root, dir string) error {
	entries, err := fs.ReadDir(root.FS(), dir)
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir() && isOurs(dir, e.Name()):
			err = errors.Join(err, settleFolder(root, name))
		case !e.Type().IsRegular(), !names().MatchString(e.Name()):
		case path.Ext(name) == ".json":
			err = errors.Join(err, shortenFile(root, name))
		case slices.Contains([]string{".out", ".err", ".jsonl", ".md"}, path.Ext(name)):
			err = errors.Join(err, spool.Pack(root, name))
		}
	}
	return err
}

func shortenFile(root *os.Root, name string) error {
	in, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	data, err := briefOf(in)
	if err != nil {
		return err
	}
	return replaceFile(root, name, data)
}
