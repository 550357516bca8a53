// Package blob reads files as a commit has them, and not as they lie in a checkout: for who must not depend on what
// somebody has checked out.
package blob

import (
	"context"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/git/command"
)

// List returns the names of the blobs that regular files have in a commit, by path. Paths are relative to the top of
// the repository, with slashes. What is not there, or is no regular file, is left out.
func List(ctx context.Context, r *git.Repo, commit string, paths []string) (map[string]string, error) {
	args := append([]string{"ls-tree", "-z", "--full-tree", commit, "--"},
		lists.Each(paths, func(p string) string { return ":(literal)" + p })...)
	entries, err := command.Records(ctx, r.NewCall(args...), "list files of "+commit)
	found := map[string]string{}
	for _, one := range entries {
		what, path, _ := strings.Cut(one, "\t")
		if f := strings.Fields(what); len(f) == 3 && strings.HasPrefix(f[0], "100") {
			found[path] = f[2]
		}
	}
	return found, err
}

// Content returns what a blob holds.
func Content(ctx context.Context, r *git.Repo, name string) ([]byte, error) {
	return command.Run(ctx, r.NewCall("cat-file", "blob", name))
}
