package workspace

import (
	"context"

	"github.com/pawl-dev/pawl/internal/git"
)

// FileChanges lists how one tree or commit differs from another, by path with
// renames found and lines counted, at most limit paths; more says that there
// are others.
func (c *Checkout) FileChanges(ctx context.Context, from, to string, limit int) (all []git.FileChange, more bool, err error) {
	return c.shadow.FileChanges(ctx, from, to, limit)
}

// DiffFile is the patch of one path, as [Checkout.Diff] is that of all; oldPath
// is where a renamed file was, or empty.
func (c *Checkout) DiffFile(ctx context.Context, from, to, path, oldPath string, limit int) (patch string, cut bool, err error) {
	return c.shadow.DiffFile(ctx, from, to, path, oldPath, limit)
}
