package git

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

const (
	tipsLimit = 300 // commits that are bound together
	tagsLimit = 100 // tags that a clone gets
)

// Tips are the commits that branches, remote branches and tags are at, without
// repetition; of many, the 300 that were committed last.
func (r *Repo) Tips(ctx context.Context) ([]string, error) {
	out, err := run(ctx, r.call("for-each-ref", "--sort=-creatordate",
		"--format=%(objecttype) %(objectname) %(*objecttype) %(*objectname)",
		"refs/heads", "refs/remotes", "refs/tags"))
	if err != nil {
		return nil, fmt.Errorf("cannot list refs: %w", err)
	}
	var tips []string
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		if f[0] == "tag" {
			f = f[2:]
		}
		if len(f) < 2 || f[0] != "commit" {
			continue
		}
		if seen[f[1]] {
			continue
		}
		seen[f[1]] = true
		if tips = append(tips, f[1]); len(tips) == tipsLimit {
			break
		}
	}
	return tips, nil
}

// CommitWithParents stores a commit without files that has the commits as parents, so that
// one ref keeps all of them. The same commits make the same one.
func (r *Repo) CommitWithParents(ctx context.Context, commits []string) (string, error) {
	tree, err := r.emptyTree(ctx)
	if err != nil {
		return "", fmt.Errorf("cannot store a commit: %w", err)
	}
	c := r.call()
	c.env = append(c.env, "GIT_AUTHOR_DATE=@0 +0000", "GIT_COMMITTER_DATE=@0 +0000")
	parents := slices.Compact(slices.Sorted(slices.Values(commits)))
	return commitTree(ctx, c, pawl, tree, "pawl: what workspaces borrow\n", parents)
}

// Tags are the tags in the history of a commit, the newest first; of many, the
// first 100. Commit is what the ref is at: a tag object or a commit.
func (r *Repo) Tags(ctx context.Context, commit string) (all []Ref, objects []string, err error) {
	out, err := run(ctx, r.call("for-each-ref", "--sort=-creatordate", fmt.Sprintf("--count=%d", tagsLimit),
		"--merged="+commit,
		"--format=%(objecttype) %(objectname) %(refname)", "refs/tags"))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot list tags: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		if len(f) < 3 || !plainRef(f[2]) {
			continue
		}
		all = append(all, Ref{Name: f[2], Commit: f[1]})
		if f[0] == "tag" {
			objects = append(objects, f[1])
		}
	}
	return all, objects, nil
}

// copyTags stores tag objects in the agent's .git, since no pin keeps them in
// the lender. They stay a pack there: objects that the lender has are not unpacked.
func (c *Clone) copyTags(ctx context.Context, objects []string) error {
	if len(objects) == 0 {
		return nil
	}
	pack := c.Of.call("pack-objects", "-q", "--stdout")
	pack.stdin = strings.NewReader(strings.Join(objects, "\n") + "\n")
	data, err := run(ctx, pack)
	if err == nil {
		store := c.call("index-pack", "--stdin")
		store.env = append(store.env, "GIT_OBJECT_DIRECTORY="+filepath.Join(c.Top, ".git", "objects"))
		store.stdin = bytes.NewReader(data)
		_, err = run(ctx, store)
	}
	if err != nil {
		return fmt.Errorf("cannot copy tags: %w", err)
	}
	return nil
}
