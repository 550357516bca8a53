package git

import (
	"context"
	"fmt"
	"io"
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
	if tips, ok := r.tipFiles(); ok {
		return tips, nil
	}
	out, err := run(ctx, r.call("for-each-ref", "--sort=-creatordate", "--format=%(objecttype) %(objectname) %(*objecttype) %(*objectname)",
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
		id := f[1]
		if f[0] == "tag" {
			f = f[2:]
		}
		if len(f) < 2 || f[0] != "commit" {
			continue
		}
		r.peeled.Store(id, f[1])
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

// tipFiles are the tips as the files of the repository say, if what each stands
// for is certain.
func (r *Repo) tipFiles() ([]string, bool) {
	refs, ok := r.refFiles(tipsLimit, "refs/heads/", "refs/remotes/", "refs/tags/")
	if !ok {
		return nil, false
	}
	tips := make([]string, 0, len(refs))
	for _, ref := range refs {
		tip, known := r.peel(ref.id)
		if !known {
			return nil, false
		}
		tips = append(tips, tip)
	}
	slices.Sort(tips)
	return slices.Compact(tips), true
}

// Bind stores a commit without files that has the commits as parents, so that
// one ref keeps all of them. The same commits make the same one.
func (r *Repo) Bind(commits []string) (string, error) {
	sorted := slices.Sorted(slices.Values(commits))
	tree, err := r.writeLoose("tree", nil)
	if err != nil {
		return "", fmt.Errorf("cannot store a commit: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, id := range slices.Compact(sorted) {
		fmt.Fprintf(&b, "parent %s\n", id)
	}
	b.WriteString("author pawl <pawl@localhost> 0 +0000\ncommitter pawl <pawl@localhost> 0 +0000\n\npawl: what workspaces borrow\n")
	id, err := r.writeLoose("commit", []byte(b.String()))
	if err != nil {
		return "", fmt.Errorf("cannot store a commit: %w", err)
	}
	return id, nil
}

// Tags are the tags in the history of a commit, the newest first; of many, the
// first 100. Commit is what the ref is at: a tag object or a commit.
func (r *Repo) Tags(ctx context.Context, commit string) (all []Ref, objects []string, err error) {
	if r.noRefs("refs/tags/") {
		return nil, nil, nil
	}
	out, err := run(ctx, r.call("for-each-ref", "--sort=-creatordate", fmt.Sprintf("--count=%d", tagsLimit), "--merged="+commit,
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
// the lender.
func (c *Clone) copyTags(ctx context.Context, objects []string) error {
	agents := Repo{Format: c.Of.Format, Objects: filepath.Join(c.Top, ".git", "objects")}
	lender := Shadow{Repo: c.Of, Dir: c.Of.Dir}
	return lender.Blobs(ctx, objects, func(i int, _ int64, body io.Reader) error {
		data, err := io.ReadAll(io.LimitReader(body, treeLimit))
		if err != nil {
			return err
		}
		id, err := agents.writeLoose("tag", data)
		if err == nil && id != objects[i] {
			err = fmt.Errorf("cannot copy tag %s: it is not whole", objects[i])
		}
		return err
	})
}
