package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/test/gittest"
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

// A move of files goes through no link that an agent put in the place of what it
// writes.
func TestMoveThroughNoLink(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "links")
	at := gittest.Git(t, dir, "rev-parse", "HEAD")
	put(t, filepath.Join(dir, "more"), "1\n")
	gittest.Git(t, dir, "add", "-A")
	gittest.Git(t, dir, "commit", "-q", "-m", "more")
	to := gittest.Git(t, dir, "rev-parse", "HEAD")
	gittest.Git(t, dir, "reset", "-q", "--hard", at)
	out := filepath.Join(t.TempDir(), "rc")
	put(t, out, "mine")
	hold := holdFile(t)
	for _, name := range []string{"pawl-index", "pawl-index.lock", "pawl-lock"} {
		if err := os.Symlink(out, filepath.Join(r.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	a, err := r.BeginFastForward(t.Context(), at, to, hold)
	if err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, dir, "update-ref", "HEAD", to)
	left, err := a.Move(t.Context())
	a.End()
	if err != nil || len(left) > 0 {
		t.Fatalf("left %q, %v", left, err)
	}
	if says := gittest.Git(t, dir, "status", "--porcelain"); says != "" {
		t.Errorf("status says %q", says)
	}
	if err := os.Rename(r.Index, out+".index"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(out, r.Index); err != nil {
		t.Fatal(err)
	}
	if a, err := r.BeginFastForward(t.Context(), at, to, hold); err == nil {
		a.End()
		t.Error("an index that is a link was used")
	}
	if data, err := os.ReadFile(out); err != nil || string(data) != "mine" {
		t.Errorf("outside is %q, %v", data, err)
	}
}
