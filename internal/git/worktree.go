package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pawl-dev/pawl/internal/files"
)

// Checkouts opens the work trees of a repository, linked ones too, in which a
// branch is checked out, or in which something is going on that will come back
// to it. One whose folder is gone is left out.
func (r *Repo) Checkouts(ctx context.Context, branch string) ([]*Repo, error) {
	out, err := run(ctx, r.call("worktree", "list", "--porcelain", "-z"))
	if err != nil {
		return nil, fmt.Errorf("cannot list the work trees: %w", err)
	}
	var found []*Repo
	for block := range strings.SplitSeq(string(out), "\x00\x00") {
		path, on, bare := "", "", false
		for line := range strings.SplitSeq(block, "\x00") {
			key, value, _ := strings.Cut(line, " ")
			switch key {
			case "worktree":
				path = value
			case "branch":
				on = value
			case "bare":
				bare = true
			}
		}
		if _, err := os.Stat(path); path == "" || bare || err != nil {
			continue
		}
		w, err := Open(ctx, path)
		if errors.Is(err, ErrNotRepository) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if on == branch || w.comesBackTo() == branch {
			found = append(found, w)
		}
	}
	return found, nil
}

// comesBackTo is the branch that a rebase or bisect in the work tree began on.
func (r *Repo) comesBackTo() string {
	for _, f := range []string{"rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"} {
		data, err := files.ReadBelow(r.Dir, f, refLimit)
		if err != nil {
			continue
		}
		name := strings.TrimSpace(string(data))
		if f == "BISECT_START" && !strings.HasPrefix(name, "refs/") {
			name = "refs/heads/" + name
		}
		return name
	}
	return ""
}
