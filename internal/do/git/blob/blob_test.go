package blob_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/git/blob"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// What is in the checkout does not matter, names are no patterns, and links and folders are no files.
func TestFilesOfACommit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "-q")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.yaml", "old")
	write("[ab].yaml", "odd")
	if err := os.Symlink("a.yaml", filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, dir, "add", ".")
	gittest.Git(t, dir, "commit", "-qm", "x")
	write("a.yaml", "new")
	r, err := git.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	found, err := blob.List(t.Context(), r, "HEAD", []string{"[ab].yaml", "link.yaml", "none.yaml"})
	if err != nil || len(found) != 1 || found["[ab].yaml"] == "" {
		t.Errorf("%v, %v", found, err)
	}
	found, err = blob.List(t.Context(), r, "HEAD", []string{"a.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := blob.Content(t.Context(), r, found["a.yaml"])
	if string(text) != "old" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := blob.List(t.Context(), r, "nothing", []string{"a.yaml"}); err == nil {
		t.Error("a commit that is not there has files")
	}
}
