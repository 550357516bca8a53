package git

import (
	"context"
	"fmt"
	"path/filepath"
)

// AfterBoot takes away what a power loss broke of a clone's objects, so that its files
// can be saved. An error is that the clone cannot be worked in; its files are as they are.
func (c *Clone) AfterBoot(ctx context.Context, base string) error {
	dir := filepath.Join(c.Top, ".git")
	agents := &Repo{Top: c.Top, Dir: dir, Common: dir, Objects: filepath.Join(dir, "objects"), Format: c.Of.Format}
	for _, r := range []*Repo{agents, c.shadow.Repo} {
		if _, err := r.dropBroken(ctx, filepath.Join(c.Own, "after-power-loss")); err != nil {
			return err
		}
	}
	head, err := c.Head()
	if err != nil {
		return err
	}
	if _, err := run(ctx, c.call("rev-list", "--objects", "--quiet", head.Commit, "^"+base)); err != nil {
		return fmt.Errorf("%w: the history of %q is not whole", ErrBroken, head.Commit)
	}
	return nil
}
