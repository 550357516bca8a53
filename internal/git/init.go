package git

import (
	"context"
	"fmt"
)

// Init makes a repository of a folder that has none, and commits all that is
// in it. It is for scratch repositories of pawl's own, e.g. the demo's; it
// needs no identity in the user's configuration.
func Init(ctx context.Context, dir, message string) error {
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "--all"},
		{"-c", "commit.gpgSign=false", "commit", "--quiet", "--no-verify", "--message=" + message},
	} {
		if _, err := run(ctx, call{dir: dir, env: pawl.environ(), args: args}); err != nil {
			return fmt.Errorf("cannot make a repository of %s: %w", dir, err)
		}
	}
	return nil
}
