package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Bounds of what is copied into a workspace.
const (
	maxCopied = 50_000
	copyBytes = 1 << 30
)

// copyFiles copies the ignored files that the patterns name from the user's
// checkout, as far as they are not there. A file that git does not ignore is
// refused: it would be committed with the task's work. So is a link that leads out
// of the checkout. Open are files that the workspace does not ignore, since it is at
// another commit; they are not there.
func (p *clones) copyFiles(ctx context.Context, c *git.Clone) (open []string, err error) {
	if len(p.o.Copy) == 0 {
		return nil, nil
	}
	ignored, other, err := p.repo.Untracked(ctx, p.o.Root, p.o.Copy)
	if err != nil {
		return nil, fmt.Errorf("cannot find the files of workspace.copy: %w", err)
	}
	if len(other) > 0 {
		return nil, fmt.Errorf("cannot copy the files of workspace.copy: %s, so a task would commit it; add it "+
			"to .gitignore",
			namePaths(other, "is not ignored by git", "are not ignored by git"))
	}
	if len(ignored) > maxCopied {
		return nil, fmt.Errorf("cannot copy the files of workspace.copy: %d, and at most %d are allowed", len(ignored),
			maxCopied)
	}
	if len(ignored) == 0 {
		return nil, nil
	}
	to, err := os.OpenRoot(c.Top)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	copied, err := p.copyMissingFiles(ctx, to, ignored)
	if err != nil {
		return nil, fmt.Errorf("cannot copy the files of workspace.copy: %w", err)
	}
	scan, err := c.Scan(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range scan.Untracked {
		if slices.Contains(copied, name) {
			open, err = append(open, name), errors.Join(err, to.Remove(filepath.FromSlash(name)))
		}
	}
	return open, err
}

// describeOpenFiles warns that files are not ignored in a workspace.
func describeOpenFiles(open []string) string {
	return fmt.Sprintf("cannot copy the files of workspace.copy: %s at the commit that the task begins at; add it to "+
		".gitignore there", namePaths(open, "is not ignored", "are not ignored"))
}

// copyMissingFiles copies what is not there yet, and returns the names of that.
func (p *clones) copyMissingFiles(ctx context.Context, to *os.Root, names []string) (copied []string, err error) {
	from, err := os.OpenRoot(p.repo.Top)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	room := int64(copyBytes)
	for _, name := range names {
		if ctx.Err() != nil {
			return copied, ctx.Err()
		}
		if _, err := to.Lstat(filepath.FromSlash(name)); err == nil {
			continue
		}
		if dir := path.Dir(name); dir != "." {
			if err := to.MkdirAll(filepath.FromSlash(dir), 0o755); err != nil {
				return copied, err
			}
		}
		n, err := copyFileOrLink(from, to, filepath.FromSlash(name), room)
		if err != nil {
			return copied, fmt.Errorf("%q: %w", name, err)
		}
		copied = append(copied, name)
		room -= n
	}
	return copied, nil
}

// copyFileOrLink copies a file or a link, and returns the file's size.
func copyFileOrLink(from, to *os.Root, name string, room int64) (int64, error) {
	info, err := from.Lstat(name)
	if err != nil {
		return 0, err
	}
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		return 0, copyLink(from, to, name)
	case !info.Mode().IsRegular():
		return 0, errors.New("it is neither a file nor a link")
	}
	n, err := files.Copy(from, to, name, room)
	if errors.Is(err, files.ErrLarge) {
		err = fmt.Errorf("the files have more than %d MB", copyBytes>>20)
	}
	return n, err
}

// copyLink copies a link that stays in the checkout.
func copyLink(from, to *os.Root, name string) error {
	target, err := from.Readlink(name)
	if err != nil {
		return err
	}
	joined := filepath.Join(filepath.Dir(name), target)
	if filepath.IsAbs(target) || !filepath.IsLocal(joined) || strings.HasPrefix(filepath.ToSlash(joined), ".git/") {
		return fmt.Errorf("it is a link to %s, out of the checkout", target)
	}
	if _, err := from.Stat(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("it is a link to %s, out of the checkout", target)
	}
	return to.Symlink(target, name)
}
