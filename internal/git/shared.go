package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// CheckoutShared makes dir a clone that borrows the objects of r, has no
// branch, and holds a commit with nothing beside it but what git ignores. A
// clone that is there is used again; one that git cannot use any more is made
// anew. The folder is pawl's own.
func CheckoutShared(ctx context.Context, r *Repo, dir, commit string) error {
	if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
		if err := checkoutClean(ctx, dir, commit); err == nil || ctx.Err() != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot use the folder for verification: %v", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("cannot clear the folder for verification: %v", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the folder for verification: %v", err)
	}
	init := call{dir: dir, args: []string{"init", "-q", "--template=", "--object-format=" + r.Format, "--initial-branch=none", "."}}
	if _, err := run(ctx, init); err != nil {
		return err
	}
	own := filepath.Join(dir, ".git")
	info := filepath.Join(own, "objects", "info")
	err := os.MkdirAll(info, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(info, "alternates"), []byte(r.Objects+"\n"), 0o600)
	}
	if data, rerr := os.ReadFile(filepath.Join(r.Common, "shallow")); rerr == nil && err == nil {
		err = os.WriteFile(filepath.Join(own, "shallow"), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot make the clone for verification: %v", err)
	}
	return checkoutClean(ctx, dir, commit)
}

func checkoutClean(ctx context.Context, dir, commit string) error {
	_ = os.Remove(filepath.Join(dir, ".git", "index.lock")) // nobody else uses it
	for _, args := range [][]string{
		{"checkout", "-q", "--detach", "--force", commit},
		{"clean", "-q", "-f", "-f", "-d"},
	} {
		if _, err := run(ctx, call{dir: dir, args: args}); err != nil {
			return fmt.Errorf("cannot check %s out for verification: %w", commit, err)
		}
	}
	return nil
}
