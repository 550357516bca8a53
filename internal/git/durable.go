package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/internal/files"
)

// Git by default syncs packs, and neither single objects, refs nor folders: what
// it wrote may be empty or gone after a power loss. What must not be is synced
// here, when it matters, all of it at once.

// SyncObjects makes the commits want, with all that have does not have, survive a
// power loss. An empty have is nothing.
func (r *Repo) SyncObjects(ctx context.Context, have string, want ...string) error {
	c := r.call("rev-list", "--objects", "--no-object-names", "--stdin")
	in := strings.Join(want, "\n") + "\n"
	if have != "" {
		in += "^" + have + "\n"
	}
	c.stdin = strings.NewReader(in)
	out, err := run(ctx, c)
	if err != nil {
		return fmt.Errorf("cannot list what is to be kept: %w", err)
	}
	paths := []string{r.Objects, filepath.Join(r.Objects, "pack")}
	for line := range strings.Lines(string(out)) {
		id := strings.TrimSpace(line)
		if !r.isID(id) {
			continue
		}
		name := r.loosePath(id)
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
			paths = append(paths, name, filepath.Dir(name))
		}
	}
	if err := files.Sync(paths...); err != nil {
		return fmt.Errorf("cannot keep objects on the disk: %v", err)
	}
	return nil
}

// loosePath is where an object is that is in no pack.
func (r *Repo) loosePath(id string) string { return filepath.Join(r.Objects, id[:2], id[2:]) }

// syncRefs makes refs that were moved, and what their logs say, survive a power loss.
func (r *Repo) syncRefs(names ...string) error {
	paths := []string{r.Common}
	add := func(top, name string) {
		file := filepath.Join(top, name)
		paths = append(paths, files.Folders(file, top)...) // git synced the file
		log := filepath.Join(top, "logs", name)
		if _, err := os.Lstat(log); err == nil {
			paths = append(append(paths, log), files.Folders(log, top)...)
		}
	}
	add(r.Dir, "HEAD") // its log tells of the branch that is checked out
	for _, name := range names {
		add(r.Common, name)
	}
	if err := files.Sync(paths...); err != nil {
		return fmt.Errorf("cannot keep refs on the disk: %v", err)
	}
	return nil
}
