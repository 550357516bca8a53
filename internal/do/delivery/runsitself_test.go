package delivery_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// What git's configuration includes runs by itself, and so does a link that leads to it.
func TestRunsItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "-q")
	if err := os.MkdirAll(filepath.Join(dir, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, dir, "config", "include.path", "../link/settings")
	repo, err := git.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(".claude .claudette .pawl/state/b.json .pawlrc link linked real/other real/settings settings " +
		"sub/.envrc sub/.pawl/x sub/.vscode x.go")
	patterns := []string{".envrc", ".vscode/tasks.json", ".claude/hooks/**", "*/x/y"}
	got, err := delivery.RunsItself(t.Context(), repo, all, patterns)
	want := []string{".claude", ".pawl/state/b.json", "link", "real/settings", "sub/.envrc", "sub/.pawl/x", "sub/.vscode"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// Git takes a folder with HEAD, objects and refs for a repository, and obeys its settings and
// hooks: also one that is made whole by what comes.
func TestBareRepositoriesRunByThemselves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "-q")
	gittest.Git(t, dir, "init", "-q", "--bare", "data/b.git")
	if err := os.MkdirAll(filepath.Join(dir, "half", "refs"), 0o755); err != nil {
		t.Fatal(err)
	}
	repo, err := git.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields("data/b.git/hooks/post-checkout data/b.git/config half/HEAD half/objects/x half/config " +
		"r/head r/Objects/x r/refs/x r/sub/config w/HEAD w/commondir")
	all := slices.Concat(want, strings.Fields("data/x HEAD objects/x refs/x lone/HEAD lone/config lone/refs/x"))
	got, err := delivery.RunsItself(t.Context(), repo, all, nil)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}
