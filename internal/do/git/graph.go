package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git/command"
)

// Find is the commit that a ref or another name stands for; empty when
// there is none.
func (r *History) Find(ctx context.Context, name string) (string, error) {
	c := r.NewCall("rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	commit, err := command.Text(ctx, c, "find "+name)
	if code := command.ExitCode(err); code == 1 || code == 128 {
		return "", nil
	}
	return commit, err
}

// TreeOf is the tree of a commit. That of an id never changes, so git is asked for it once.
func (r *History) TreeOf(ctx context.Context, commit string) (string, error) {
	return treesOf.Get(r.Objects+"\x00"+commit, r.isObjectID(commit), func() (string, error) {
		c := r.NewCall("rev-parse", "--verify", "--quiet", "--end-of-options", commit+"^{tree}")
		return command.Text(ctx, c, "find the tree of "+commit)
	})
}

var treesOf command.Known // by the store and the id of a commit

// FilesOf are the paths of all files of a commit or a tree.
func (r *History) FilesOf(ctx context.Context, commit string) ([]string, error) {
	c := r.NewCall("ls-tree", "-r", "-z", "--name-only", commit)
	c.Max = namesMost
	return command.Records(ctx, c, "list the files of "+commit)
}

// IsAncestor reports whether one commit can be reached from another, or is it.
// A commit that is not in the store is no ancestor.
func (r *History) IsAncestor(ctx context.Context, commit, of string) (bool, error) {
	if commit == of {
		return true, nil
	}
	_, err := command.Run(ctx, r.NewCall("merge-base", "--is-ancestor", commit, of))
	switch {
	case err == nil:
		return true, nil
	case command.ExitCode(err) == 1:
		return false, nil
	}
	if found, ferr := r.Find(ctx, commit); ferr == nil && found == "" {
		return false, nil
	}
	return false, fmt.Errorf("cannot compare %s with %s: %w", commit, of, err)
}

// Whole reports whether the commits want are there, with all that have does not have.
// An empty have is nothing.
func (r *History) Whole(ctx context.Context, have string, want ...string) bool {
	c := r.NewCall("rev-list", "--objects", "--quiet", "--stdin")
	c.Stdin = reachable(have, want)
	_, err := command.Run(ctx, c)
	return err == nil
}

// reachable is the input by which git walks what the commits want have and have does not. An empty
// have is nothing.
func reachable(have string, want []string) io.Reader {
	in := strings.Join(want, "\n") + "\n"
	if have != "" {
		in += "^" + have + "\n"
	}
	return strings.NewReader(in)
}

// Unreachable returns those commits of a list that cannot be reached from to;
// one that is not in the store cannot.
func (r *History) Unreachable(ctx context.Context, list []string, to string) (map[string]bool, error) {
	gone := map[string]bool{}
	if len(list) == 0 {
		return gone, nil
	}
	ask := r.NewCall("cat-file", "--batch-check=%(objecttype)", "--buffer")
	ask.Stdin = strings.NewReader(strings.Join(list, "\n") + "\n")
	out, err := command.Run(ctx, ask)
	if err != nil {
		return nil, fmt.Errorf("cannot look for commits: %w", err)
	}
	var in strings.Builder
	kinds := strings.Split(string(out), "\n")
	for i, id := range list {
		if i >= len(kinds) || kinds[i] != "commit" {
			gone[id] = true
			continue
		}
		in.WriteString(id + "\n")
	}
	in.WriteString("^" + to + "\n")
	walk := r.NewCall("rev-list", "--stdin")
	walk.Stdin = strings.NewReader(in.String())
	if out, err = command.Run(ctx, walk); err != nil {
		return nil, fmt.Errorf("cannot look for commits: %w", err)
	}
	outside := strings.Fields(string(out))
	for _, id := range list {
		if slices.Contains(outside, id) {
			gone[id] = true
		}
	}
	return gone, nil
}

// Base is a best common ancestor of two commits; empty when they have none.
func (r *History) Base(ctx context.Context, a, b string) (string, error) {
	out, err := command.Run(ctx, r.NewCall("merge-base", a, b))
	if command.ExitCode(err) == 1 {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot find where %s and %s part: %w", a, b, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Changes lists how one tree or commit differs from another, by path, without
// renames.
func (r *History) Changes(ctx context.Context, from, to string) ([]Change, error) {
	all, _, err := r.diffTree(ctx, r.NewCall(), from, to, false, 0)
	return all, err
}

// Author is who wrote a commit, and its message.
func (r *History) Author(ctx context.Context, commit string) (name, message string, err error) {
	out, err := command.Run(ctx, r.NewCall("log", "-1", "-z", "--no-show-signature", "--format=%an%n%B", commit, "--"))
	if err != nil {
		return "", "", fmt.Errorf("cannot find who wrote %s: %w", commit, err)
	}
	name, message, _ = strings.Cut(strings.Trim(string(out), "\x00\n"), "\n")
	return name, message, nil
}

// Own are commits that can be reached from to and not from from, the last first, each as
// its short name and the first line of its message.
func (r *History) Own(ctx context.Context, from, to string, limit int) ([]string, error) {
	return command.Records(ctx, r.NewCall("log", "-z", "--no-show-signature", "--format=%h %s",
		fmt.Sprintf("-n%d", limit), "^"+from, to, "--"), "list commits")
}

// Landing is a merge on the first-parent line of a branch.
type Landing struct{ Commit, Message string }

// Landings lists the merges on the first-parent line of to that cannot be
// reached from from and change one of the paths, the last first, at most limit.
func (r *History) Landings(ctx context.Context, from, to string, paths []string, limit int) ([]Landing, error) {
	args := walkSince(from, "log", "--first-parent", "-m", "-z", "--format=%H%n%B", fmt.Sprintf("-n%d", limit),
		"--no-show-signature", to)
	args = append(append(args, "--"), lists.Each(paths, func(p string) string { return ":(literal)" + p })...)
	out, err := command.Run(ctx, r.NewCall(args...))
	if err != nil {
		return nil, fmt.Errorf("cannot list what landed: %w", err)
	}
	var list []Landing
	for _, one := range command.SplitRecords(out) {
		id, message, ok := strings.Cut(strings.TrimLeft(one, "\n"), "\n")
		if !ok {
			return nil, errors.New("cannot list what landed: odd answer")
		}
		list = append(list, Landing{Commit: id, Message: strings.TrimSpace(message)})
	}
	return list, nil
}

// BeforeSeries is the commit before those that end in commit and are the ones of a branch, or what a rebase made of
// them; "" where there are none. own is a merge on the branch onto which others may have put more: what comes with
// its second parent is the branch's, too.
func (r *History) BeforeSeries(ctx context.Context, own, head, commit string) (string, error) {
	if here, err := r.Find(ctx, head); err != nil || here == "" {
		return "", err
	}
	list := func(args ...string) ([]string, error) {
		args = append([]string{"log", "-z", "--no-show-signature"}, args...)
		return command.Records(ctx, r.NewCall(append(args, "--")...), "list the commits of a branch")
	}
	const identity = "%an%n%ae%n%at%n%s"
	branch, err := list("--format="+identity, "^"+own+"^1", own)
	more, merr := list("--format="+identity, "--first-parent", "^"+own, head)
	branch = append(branch, more...)
	line, lerr := list("--format=%P%n"+identity, "--first-parent", fmt.Sprintf("-n%d", len(branch)), commit)
	before := ""
	for _, one := range line {
		parents, who, _ := strings.Cut(one, "\n")
		at := slices.Index(branch, who)
		if at < 0 || parents == "" {
			break
		}
		branch = slices.Delete(branch, at, at+1)
		first, _, isMerge := strings.Cut(parents, " ")
		if before = first; isMerge {
			break
		}
	}
	return before, errors.Join(err, merr, lerr)
}

// walkSince adds to a walk that it ends at a commit; an empty one is none.
func walkSince(from string, args ...string) []string {
	if from != "" {
		args = append(args, "^"+from)
	}
	return args
}

// SetRef points a ref to a commit only if it is at old, in a transaction of
// git's. Changed is true when it is not: nothing has happened then. What was
// moved survives a power loss, if objects did ([History.SyncObjects]).
func (r *RefStore) SetRef(ctx context.Context, name, commit, old, reason string) (changed bool, err error) {
	err = r.KeepRef(ctx, name, commit, old, reason)
	if err == nil {
		return false, nil
	}
	var e *command.Error
	if !errors.As(err, &e) {
		return false, err
	}
	now, ferr := r.Find(ctx, name)
	if ferr == nil && now != old {
		return true, nil
	}
	return false, fmt.Errorf("cannot move %s: %w", name, err)
}

const (
	tipsLimit = 300 // commits that are bound together
	tagsLimit = 100 // tags that a clone gets
)

// Tips are the commits that branches, remote branches and tags are at, without
// repetition; of many, the 300 that were committed last.
func (r *History) Tips(ctx context.Context) ([]string, error) {
	out, err := command.Run(ctx, r.NewCall("for-each-ref", "--sort=-creatordate",
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
		if len(f) < 2 || f[0] != "commit" || seen[f[1]] {
			continue
		}
		seen[f[1]] = true
		if tips = append(tips, f[1]); len(tips) == tipsLimit {
			break
		}
	}
	return tips, nil
}

// CommitWithParents stores a commit that has the commits as parents, so that one ref
// keeps all of them. Its files are those of one of them. The same commits make the same one.
func (r *History) CommitWithParents(ctx context.Context, commits []string) (string, error) {
	c := r.NewCall()
	c.Env = append(c.Env, "GIT_AUTHOR_DATE=@0 +0000", "GIT_COMMITTER_DATE=@0 +0000")
	parents := slices.Compact(slices.Sorted(slices.Values(commits)))
	return commitTree(ctx, c, pawl, parents[0]+"^{tree}", "pawl: what workspaces borrow\n", parents)
}

// Tags are the tags in the history of a commit, the newest first; of many, the
// first 100. Commit is what the ref is at: a tag object or a commit.
func (r *History) Tags(ctx context.Context, commit string) (all []Ref, objects []string, err error) {
	out, err := command.Run(ctx, r.NewCall("for-each-ref", "--sort=-creatordate", fmt.Sprintf("--count=%d", tagsLimit),
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
	pack := c.Of.NewCall("pack-objects", "-q", "--stdout")
	pack.Stdin = strings.NewReader(strings.Join(objects, "\n") + "\n")
	data, err := command.Run(ctx, pack)
	if err == nil {
		store := c.newCall("index-pack", "--stdin")
		store.Env = append(store.Env, "GIT_OBJECT_DIRECTORY="+filepath.Join(c.Top, ".git", "objects"))
		store.Stdin = bytes.NewReader(data)
		_, err = command.Run(ctx, store)
	}
	if err != nil {
		return fmt.Errorf("cannot copy tags: %w", err)
	}
	return nil
}
