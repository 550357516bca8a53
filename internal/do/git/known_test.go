package git

import (
	"context"
	"testing"

	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// What never changes is not asked for twice: the tree of an id, and that without files. A
// name may stand for another commit the next time.
func TestWhatNeverChanges(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end() // no git runs with it
	for _, format := range []string{"sha1", "sha256"} {
		dir := t.TempDir()
		gittest.Git(t, dir, "init", "-q", "--object-format="+format)
		gittest.Git(t, dir, "commit", "-q", "--allow-empty", "-m", "start")
		r, err := Open(t.Context(), dir)
		must(t, err)
		commit := gittest.Git(t, dir, "rev-parse", "HEAD")
		if tree, err := r.TreeOf(ended, commit); err == nil {
			t.Errorf("%s is the tree of a commit that was not asked for", tree)
		}
		none, err := r.EmptyTree(ended)
		must(t, err)
		for _, name := range []string{commit, "HEAD"} {
			if tree, err := r.TreeOf(t.Context(), name); err != nil || tree != none {
				t.Errorf("the tree of %s is %s, not %s: %v", name, tree, none, err)
			}
		}
		if tree, err := r.TreeOf(ended, commit); err != nil || tree != none {
			t.Errorf("asked again, the tree of the id is %q: %v", tree, err)
		}
		if tree, err := r.TreeOf(ended, "HEAD"); err == nil {
			t.Errorf("%s is the tree of HEAD, which was not asked for again", tree)
		}
	}
}
