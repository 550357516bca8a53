package outputs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/pawl-dev/pawl/internal/spool"
)

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
