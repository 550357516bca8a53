package merge

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/git"
)

// integration is a folder with a commit checked out.
func (q *Queue) integration(ctx context.Context, commit string) (Workspace, error) {
	if q.o.Integration != nil {
		return q.o.Integration(ctx, commit)
	}
	dir := filepath.Join(q.o.Dir, "integration")
	if err := git.CheckoutShared(ctx, q.o.Repo, dir, commit); err != nil {
		return Workspace{}, err
	}
	return Workspace{Dir: dir, Done: func(context.Context) {}}, nil
}

// holds makes sure that what is tested is what is to land.
func holds(ctx context.Context, ws Workspace, tree string) error {
	repo, err := ws.Repo, error(nil)
	if repo == nil {
		repo, err = git.Open(ctx, ws.Dir)
	}
	if err != nil {
		return err
	}
	head, err := repo.Head(ctx)
	if err != nil {
		return err
	}
	is, err := repo.TreeOf(ctx, head.Commit)
	if err != nil {
		return err
	}
	if is != tree {
		return fmt.Errorf("cannot verify in %s: it has the tree %s checked out and not %s", ws.Dir, is, tree)
	}
	return nil
}
