package workspace

import (
	"context"

	"github.com/pawl-dev/pawl/internal/git"
)

// changesLimit is the number of changed paths that are listed.
const changesLimit = 10000

// Changes lists how one tree or commit differs from another, by path, with
// renames found. It lists at most 10,000; more says that there are others.
func (c *Checkout) Changes(ctx context.Context, from, to string) (all []git.Change, more bool, err error) {
	return c.shadow.Changes(ctx, from, to, true, changesLimit)
}

// Commits is the number of commits that to has and from has not. Either may
// be empty: no commit.
func (c *Checkout) Commits(ctx context.Context, from, to string) (int, error) {
	return c.Repo.Count(ctx, from, to)
}

// Diff is the patch from one tree or commit to another, of some paths or of all,
// at most limit bytes of it, and whether it was cut. No program of the repository's
// configuration has a part in it; binary files are named only.
func (c *Checkout) Diff(ctx context.Context, from, to string, limit int, paths ...string,
) (patch string, cut bool, err error) {
	return c.shadow.Diff(ctx, from, to, limit, paths...)
}

// FileChanges lists how one tree or commit differs from another, by path with
// renames found and lines counted, at most limit paths; more says that there
// are others.
func (c *Checkout) FileChanges(ctx context.Context, from, to string, limit int,
) (all []git.FileChange, more bool, err error) {
	return c.shadow.FileChanges(ctx, from, to, limit)
}

// DiffStat counts the files and lines that differ.
func (c *Checkout) DiffStat(ctx context.Context, from, to string) (git.Stat, error) {
	return c.shadow.DiffStat(ctx, from, to)
}
