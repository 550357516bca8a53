package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/gittest"
)

// A file that makes another folder the repository, with a configuration of its own,
// is refused; a linked work tree is opened.
func TestCommonFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	top, linked := filepath.Join(dir, "top"), filepath.Join(dir, "linked")
	git := func(args ...string) { gittest.Git(t, dir, args...) }
	git("init", "-q", "top")
	git("-C", "top", "commit", "-q", "--allow-empty", "-m", "one")
	git("-C", "top", "worktree", "add", "-q", linked)
	git("clone", "-q", "top", "evil")
	for _, at := range []string{top, linked} {
		r, err := Open(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(r.Dir, "commondir")
		was, _ := os.ReadFile(file)
		if err := os.WriteFile(file, []byte(filepath.Join(dir, "evil", ".git")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err = Open(t.Context(), at); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", at, err)
		}
		if err = os.Remove(file); was != nil {
			err = os.WriteFile(file, was, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(t.Context(), linked); err != nil {
		t.Error(err)
	}
}
