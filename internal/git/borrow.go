package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Borrow makes a repository with the work tree top, an empty folder, that
// reads the objects of r without having them: at the folder objects, which is
// made beside it and leads to the store of r. It gets the checked-out branch,
// branches, tags, the index and who commits, and nothing else: no remotes, no
// hooks, no stash, no other configuration. No file is checked out.
//
// Whoever shows the new repository where r's own store is out of sight shows
// that store at objects.
func (r *Repo) Borrow(ctx context.Context, top, objects string) error {
	head, err := r.Head(ctx)
	if err != nil {
		return err
	}
	branch := strings.TrimPrefix(head.Branch, "refs/heads/")
	if branch == "" {
		branch = "main"
	}
	init := call{dir: top, args: []string{"init", "-q", "--template=", "--object-format=" + r.Format, "--initial-branch=" + branch, "."}}
	if _, err := run(ctx, init); err != nil {
		return err
	}
	dir := filepath.Join(top, ".git")
	if err := r.lend(dir, objects); err != nil {
		return err
	}
	in := func(stdin io.Reader, args ...string) error {
		_, err := run(ctx, call{dir: top, args: args, stdin: stdin, env: []string{"GIT_DIR=" + dir, "GIT_WORK_TREE=" + top}})
		return err
	}
	if err := r.copyRefs(ctx, head, in); err != nil {
		return err
	}
	if err := r.copyIdentity(ctx, in); err != nil {
		return err
	}
	all, err := r.IndexEntries(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	var lines strings.Builder
	for _, e := range all {
		fmt.Fprintf(&lines, "%s %s %d\t%s\x00", e.Mode, e.Object, e.Stage, e.Path)
	}
	return in(strings.NewReader(lines.String()), "update-index", "-z", "--add", "--index-info")
}

// lend makes the folders by which the git directory dir finds r's objects.
func (r *Repo) lend(dir, objects string) error {
	if strings.Contains(objects+r.Objects, "\n") {
		return errors.New("cannot borrow objects: there is a newline in a path")
	}
	for _, d := range []string{filepath.Join(objects, "info"), filepath.Join(dir, "hooks"), filepath.Join(dir, "info")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	for _, f := range []struct{ name, text string }{
		{filepath.Join(objects, "info", "alternates"), r.Objects}, {filepath.Join(dir, "objects", "info", "alternates"), objects},
	} {
		if err := os.WriteFile(f.name, []byte(f.text+"\n"), 0o600); err != nil {
			return err
		}
	}
	for from, to := range map[string]string{r.Exclude: filepath.Join(dir, "info", "exclude"), filepath.Join(r.Common, "shallow"): filepath.Join(dir, "shallow")} {
		data, err := os.ReadFile(from)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(to, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// copyRefs gives branches and tags, and what is checked out.
func (r *Repo) copyRefs(ctx context.Context, head Head, in func(io.Reader, ...string) error) error {
	out, err := run(ctx, r.call("for-each-ref", "--format=create %(refname) %(objectname)", "refs/heads", "refs/tags", "refs/remotes"))
	if err != nil {
		return err
	}
	if len(out) > 0 {
		if err := in(strings.NewReader(string(out)), "update-ref", "--stdin", "--no-deref"); err != nil {
			return err
		}
	}
	if head.Branch == "" && head.Commit != "" {
		return in(nil, "update-ref", "--no-deref", "HEAD", head.Commit)
	}
	return nil
}

// copyIdentity gives who commits, where the repository says so itself.
func (r *Repo) copyIdentity(ctx context.Context, in func(io.Reader, ...string) error) error {
	settings, err := r.Config(ctx)
	if err != nil {
		return err
	}
	last := map[string]string{}
	for _, s := range settings {
		last[s.Key] = s.Value
	}
	for _, key := range []string{"user.name", "user.email", "core.excludesfile", "core.ignorecase", "core.precomposeunicode", "core.autocrlf", "core.eol"} {
		if v, ok := last[key]; ok {
			if err := in(nil, "config", key, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// Take copies what the tree want needs and the tree have does not, from the
// objects of other into r's. It takes no refs and no commits.
func (r *Repo) Take(ctx context.Context, other *Repo, want, have string) error {
	pack := other.call("pack-objects", "-q", "--revs", "--stdout")
	pack.stdin = strings.NewReader(want + "\n^" + have + "\n")
	data, err := run(ctx, pack)
	if err != nil {
		return fmt.Errorf("cannot read what was changed: %w", err)
	}
	unpack := r.call("unpack-objects", "-q")
	unpack.stdin = strings.NewReader(string(data))
	if _, err := run(ctx, unpack); err != nil {
		return fmt.Errorf("cannot keep what was changed: %w", err)
	}
	return nil
}
