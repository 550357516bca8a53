package supervisor

import (
	"context"
	"io/fs"
	"path/filepath"
	"time"
)

// watchEntries bounds one look at a tree.
const watchEntries = 500_000

// newerThan reports whether a file or folder below root changed after t, and
// when; the first one found ends the search. Git's objects and pawl's own
// files do not count. A tree over the bound counts as unchanged beyond it.
func newerThan(ctx context.Context, root string, t time.Time) (time.Time, bool) {
	var found time.Time
	seen := 0
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read cannot be seen to change
		}
		if seen++; seen > watchEntries || ctx.Err() != nil {
			return filepath.SkipAll
		}
		if d.IsDir() && skipped(path) {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // gone meanwhile: its folder's time says so
		}
		if at := changed(info); at.After(t) {
			found = at
			return filepath.SkipAll
		}
		return nil
	})
	return found, !found.IsZero()
}

func skipped(dir string) bool {
	name := filepath.Base(dir)
	return name == ".pawl" || (name == "objects" && filepath.Base(filepath.Dir(dir)) == ".git")
}
