package git

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// A scratch repository has a commit and what came before it. What came later is in none of its objects, refs and files,
// unless it borrows.
func TestScratch(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	early := gittest.Git(t, dir, "rev-parse", "HEAD")
	put(t, filepath.Join(dir, "a"), "later\n")
	gittest.Git(t, dir, "commit", "-qam", "later")
	gittest.Git(t, dir, "tag", "later")
	later := gittest.Git(t, dir, "rev-parse", "HEAD")
	for _, borrow := range []bool{false, true} {
		s, err := r.NewScratch(t.Context(), filepath.Join(t.TempDir(), "s"), early, borrow)
		must(t, err)
		if got := gittest.Git(t, s.Top, "log", "--all", "--format=%H"); got != early {
			t.Errorf("the log is %q", got)
		}
		if got := gittest.Git(t, s.Top, "status", "--porcelain") + gittest.Git(t, s.Top, "remote"); got != "" {
			t.Errorf("status and remotes are %q", got)
		}
		has := strings.Contains(gittest.Git(t, s.Top, "cat-file", "--batch-all-objects", "--batch-check"), later)
		if has != borrow {
			t.Errorf("borrows: %v; has what came later: %v", borrow, has)
		}
		if got := gittest.Git(t, s.Top, "config", "user.name"); got != gittest.Git(t, dir, "config", "user.name") {
			t.Errorf("who commits is %q", got)
		}
	}
}
