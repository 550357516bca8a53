package workspace

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/files"
)

// What a copy takes over of the files that no snapshot has: ignored ones,
// large ones, nested repositories.
const (
	carryBytes = 256 << 20
	carryFiles = 50_000
	viewsLimit = 64 // what is more is left out
)

// burden is a file or folder that no snapshot has, with its size.
type burden struct {
	path  string
	bytes int64
	files int
}

// carry copies what no snapshot has to the work tree top, the small before the
// large. Where a limit is reached it makes room for a view of the original.
func (c *Checkout) carry(ctx context.Context, top string, paths []string) (copied, error) {
	var plan copied
	to, err := os.OpenRoot(top)
	if err != nil {
		return plan, err
	}
	defer to.Close()
	from, err := os.OpenRoot(c.Repo.Top)
	if err != nil {
		return plan, err
	}
	defer from.Close()
	bytes, count := int64(carryBytes), carryFiles
	for _, b := range c.weigh(from, paths) {
		switch {
		case b.bytes <= bytes && b.files <= count:
			bytes, count = bytes-b.bytes, count-b.files
			err = copyInto(ctx, from, to, b.path)
		case len(plan.Views) < viewsLimit:
			plan.Views = append(plan.Views, b.path)
			err = makeRoom(from, to, b.path)
		default:
			plan.Left = append(plan.Left, b.path)
		}
		if err != nil {
			return plan, err
		}
	}
	return plan, nil
}

// weigh measures what is at each path, and sorts by size. Counting ends at the
// limits, over which nothing is copied.
func (c *Checkout) weigh(from *os.Root, paths []string) []burden {
	var all []burden
	for _, p := range paths {
		p = strings.TrimSuffix(p, "/")
		if p == "" || ours(p) || slices.ContainsFunc(all, func(b burden) bool { return b.path == p }) {
			continue
		}
		b := burden{path: p}
		_ = fs.WalkDir(from.FS(), p, func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // what cannot be read is not copied
			}
			b.files++
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
				b.bytes += info.Size()
			}
			if b.files > carryFiles || b.bytes > carryBytes {
				return fs.SkipAll
			}
			return nil
		})
		if b.files > 0 {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b burden) int {
		return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.path, b.path))
	})
	return all
}

// copyInto copies files, folders and links; what is anything else, is there
// already, cannot be read, or goes meanwhile, is passed over.
func copyInto(ctx context.Context, from, to *os.Root, path string) error {
	if err := to.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return fs.WalkDir(from.FS(), path, func(p string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		switch {
		case d.IsDir():
			err = to.Mkdir(p, 0o700)
		case d.Type()&fs.ModeSymlink != 0:
			var target string
			if target, err = from.Readlink(p); err == nil {
				err = to.Symlink(target, p)
			}
		case d.Type().IsRegular():
			_, err = files.Copy(from, to, p, carryBytes)
		}
		if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		return err
	})
}

// makeRoom makes what the original is shown on.
func makeRoom(from, to *os.Root, path string) error {
	info, err := from.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		return to.MkdirAll(path, 0o700)
	}
	if err := to.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := to.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}
