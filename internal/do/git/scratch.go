package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/git/command"
)

// NewScratch makes a repository of its own in dir, which it makes, with a commit of r checked out on the branch main.
// It has the history of that commit and nothing else: what came later is in none of its objects, refs and files.
// With borrow it reads all objects of r instead. Who commits is as in r.
func (r *Repo) NewScratch(ctx context.Context, dir, commit string, borrow bool) (*Repo, error) {
	made, err := r.describeBorrowed(ctx)
	if err != nil {
		return nil, err
	}
	made.head, made.refs = "ref: refs/heads/main", packedRefs(CloneRefs{Branch: "main", Commit: commit}, nil)
	if borrow {
		made.objects = r.Objects
	}
	err = os.MkdirAll(dir, 0o700)
	if err == nil {
		err = r.writeGitDir(filepath.Join(dir, ".git"), made)
	}
	if err == nil && !borrow {
		to := filepath.Join(dir, ".git", "objects", "pack", "pack")
		pack := r.NewCall("pack-objects", "-q", "--revs", "--delta-base-offset", to)
		pack.Stdin = strings.NewReader(commit + "\n")
		_, err = command.Run(ctx, pack)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a repository of %.10s: %w", commit, err)
	}
	scratch, err := Open(ctx, dir)
	if err == nil {
		_, err = command.Run(ctx, scratch.NewCall("reset", "--quiet", "--hard", commit))
	}
	return scratch, err
}
