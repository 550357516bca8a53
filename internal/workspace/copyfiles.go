package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/files"
)

// The most that one ignored folder, one large file or one nested repository may have to
// be copied; what has more is left out.
const (
	mostBytes = 4 << 30
	mostFiles = 500_000
)

// copyAll copies the work tree to the folder top, without git's folder, and names what
// is too large. These are looked at for that.
func (c *Checkout) copyAll(ctx context.Context, top string, these []string) (left []string, err error) {
	from, err := os.OpenRoot(c.Repo.Top)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	to, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	for _, p := range these {
		if p = strings.TrimSuffix(p, "/"); tooLarge(from, p) {
			left = append(left, p)
		}
	}
	return left, fs.WalkDir(from.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && d == nil:
			return err
		case err != nil || p == ".":
			return nil //nolint:nilerr // what cannot be read is not copied
		case p == ".git" || ours(p) || slices.Contains(left, p):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return copyOne(from, to, p, d)
	})
}

// tooLarge measures what is at a path. Counting ends where it is too much.
func tooLarge(from *os.Root, path string) bool {
	bytes, count := int64(0), 0
	_ = fs.WalkDir(from.FS(), path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read is not copied
		}
		count++
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		if bytes > mostBytes || count > mostFiles {
			return fs.SkipAll
		}
		return nil
	})
	return bytes > mostBytes || count > mostFiles
}

// copyOne copies a file, a folder without what is in it, or a link. What is anything
// else, cannot be read, or goes meanwhile, is passed over.
func copyOne(from, to *os.Root, p string, d fs.DirEntry) (err error) {
	switch {
	case d.IsDir():
		err = to.Mkdir(p, 0o700)
	case d.Type()&fs.ModeSymlink != 0:
		var target string
		if target, err = from.Readlink(p); err == nil {
			err = to.Symlink(target, p)
		}
	case d.Type().IsRegular():
		_, err = files.Copy(from, to, p, mostBytes)
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}
