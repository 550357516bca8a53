package git

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/git/command"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// TestMain gives git a home of its own, so that the settings of whoever runs
// the tests do not matter.
func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// repository makes one with a commit, in a folder of the given name.
func repository(t *testing.T, name string) (string, *Repo) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, dir, "init", "-q")
	put(t, filepath.Join(dir, "a"), "1\n")
	gittest.Git(t, dir, "add", "a")
	gittest.Git(t, dir, "commit", "-qm", "first")
	r, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, r
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// places are the folders and the format of a repository.
func places(r *Repo) [7]string {
	return [7]string{r.Top, r.Dir, r.Common, r.Exclude, r.Index, r.Objects, r.Format}
}

func TestOpenFindsTheFolders(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plain", "with space", "new\nline", "not utf8 \xff", `quote " and \`} {
		dir, r := repository(t, name)
		want := unsharedRepoAt(dir, filepath.Join(dir, ".git"), filepath.Join(dir, ".git", "index"), "sha1")
		if places(r) != places(want) {
			t.Errorf("%q: got %+v", name, r)
		}
		if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(t.Context(), filepath.Join(dir, "sub")); err != nil || places(s) != places(want) {
			t.Errorf("%q: from a subfolder: %+v, %v", name, s, err)
		}
		if h, err := r.Head(t.Context()); err != nil || h.Branch != "refs/heads/main" || h.Commit != gittest.Git(t, dir, "rev-parse", "HEAD") {
			t.Errorf("%q: head %+v, %v", name, h, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir, _ := repository(t, "r")
	gittest.Git(t, dir, "init", "-q", "--bare", "bare")
	tests := map[string]string{"bare": "bare repository", ".git": "inside a git directory", "nothing": "is not a folder"}
	for sub, want := range tests {
		if _, err := Open(t.Context(), filepath.Join(dir, sub)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", sub, err)
		}
	}
	if _, err := Open(t.Context(), t.TempDir()); !errors.Is(err, ErrNotRepository) {
		t.Errorf("outside: got %v", err)
	}
}

func TestNoGit(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Open(t.Context(), t.TempDir()); !errors.Is(err, command.ErrNoGit) {
		t.Errorf("got %v", err)
	}
}

func TestOldGit(t *testing.T) {
	for version, want := range map[string]bool{
		"git version 2.37.9": false, "git version 1.9": false, "git version 2.38.0": true,
		"git version 2.39.5 (Apple Git-154)": true, "git version 3.0": true, "git version 2.40.1.windows.1": true, "odd": true,
	} {
		if got := isRecentVersion(version); got != want {
			t.Errorf("%s: %t", version, got)
		}
	}
	bin := t.TempDir()
	put(t, filepath.Join(bin, "git"), "#!/bin/sh\necho git version 2.30.2\n")
	if err := os.Chmod(filepath.Join(bin, "git"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	if _, err := Open(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "2.38 or newer") {
		t.Errorf("got %v", err)
	}
}

func TestCallersVariablesDoNotAimElsewhere(t *testing.T) {
	other, _ := repository(t, "other")
	dir, _ := repository(t, "mine")
	for _, v := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"} {
		t.Setenv(v, filepath.Join(other, ".git"))
	}
	r, err := Open(t.Context(), dir)
	if err != nil || r.Top != dir {
		t.Fatalf("got %+v, %v", r, err)
	}
}

func TestOutputIsCapped(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	put(t, filepath.Join(dir, "big"), strings.Repeat("x", 4<<20))
	id := gittest.Git(t, dir, "hash-object", "-w", "big")
	c := r.NewCall("cat-file", "blob", id)
	c.Max = 1000
	if _, err := command.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "is over") {
		t.Errorf("got %v", err)
	}
	if out, more, err := command.RunOnce(t.Context(), c); err != nil || !more || len(out) != 1000 {
		t.Errorf("got %d bytes, %v, %v", len(out), more, err)
	}
}

func TestErrorsSayWhatGitSaid(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	head := gittest.Git(t, dir, "rev-parse", "HEAD")
	err := r.UpdateRef(t.Context(), "refs/pawl/x", head, head, "no such ref yet")
	var e *command.Error
	if !errors.As(err, &e) || e.Command != "update-ref" || e.Code == 0 || !strings.Contains(err.Error(), "git update-ref: fatal") {
		t.Errorf("got %v", err)
	}
	if err := r.UpdateRef(t.Context(), "refs/pawl/x", head, r.Zero(), "new"); err != nil {
		t.Error(err)
	}
	if err := r.UpdateRef(t.Context(), "refs/pawl/x", head, r.Zero(), "again"); err == nil {
		t.Error("a ref was created twice")
	}
}

func TestRefs(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	s := shadow(t, r)
	head := gittest.Git(t, dir, "rev-parse", "HEAD")
	tree := gittest.Git(t, dir, "rev-parse", "HEAD^{tree}")
	c, err := s.Commit(t.Context(), tree, "title\n\nbody: \"x\"\n", head, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"refs/pawl/runs/a/0", "refs/pawl/runs/a/1", "refs/pawl/runs/ab/0"} {
		if err := r.UpdateRef(t.Context(), n, c, "", "x"); err != nil {
			t.Fatal(err)
		}
	}
	refs, err := r.Refs(t.Context(), "refs/pawl/runs/a/")
	if err != nil || len(refs) != 2 {
		t.Fatalf("got %+v, %v", refs, err)
	}
	got := refs[1]
	if got.Name != "refs/pawl/runs/a/1" || got.Commit != c || got.Tree != tree || !slices.Equal(got.Parents, []string{head}) ||
		strings.TrimSpace(got.Message) != "title\n\nbody: \"x\"" || got.When.IsZero() {
		t.Errorf("got %+v", got)
	}
	if err := r.DeleteRefs(t.Context(), refs); err != nil {
		t.Fatal(err)
	}
	if left := gittest.Git(t, dir, "for-each-ref", "--format=%(refname)", "refs/pawl"); left != "refs/pawl/runs/ab/0" {
		t.Errorf("left %q", left)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func shadow(t *testing.T, r *Repo) *Shadow {
	t.Helper()
	s, err := OpenShadow(t.Context(), r, r, filepath.Join(t.TempDir(), "state", "git"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestShadowKeepsBytes(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	put(t, filepath.Join(dir, ".gitattributes"), "* text=auto eol=lf ident filter=x working-tree-encoding=UTF-16\n")
	gittest.Git(t, dir, "config", "filter.x.clean", "false")
	gittest.Git(t, dir, "config", "core.autocrlf", "true")
	gittest.Git(t, dir, "config", "core.excludesFile", filepath.Join(dir, "my ignore"))
	put(t, filepath.Join(dir, "my ignore"), "skip\n")
	put(t, filepath.Join(dir, "skip"), "x")
	put(t, filepath.Join(dir, "crlf"), "$Id$\r\n")
	s := shadow(t, r)
	x := s.Index(filepath.Join(s.Dir, "..", "index"), nil)
	scan, err := x.Scan(t.Context(), ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{".gitattributes", "a", "crlf", "my ignore"}; !slices.Equal(scan.Untracked, want) {
		t.Fatalf("untracked %q", scan.Untracked)
	}
	if err := x.Add(t.Context(), scan.Untracked); err != nil {
		t.Fatal(err)
	}
	tree, err := x.WriteTree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	changes, _, err := s.Changes(t.Context(), gittest.Git(t, dir, "rev-parse", "HEAD^{tree}"), tree, false, 0)
	if err != nil || len(changes) != 3 || changes[1].Path != "crlf" || changes[1].OldObject != "" {
		t.Fatalf("got %+v, %v", changes, err)
	}
	id := changes[1].NewObject
	if want, err := r.BlobID(6, strings.NewReader("$Id$\r\n")); err != nil || want != id {
		t.Errorf("id %s, want %s, %v", id, want, err)
	}
	var got []string
	err = s.Blobs(t.Context(), []string{id, id}, func(i int, size int64, b io.Reader) error {
		if i == 0 {
			return nil // what is not read is passed over
		}
		data, err := io.ReadAll(b)
		got = append(got, fmt.Sprint(size, string(data)))
		return err
	})
	if err != nil || !slices.Equal(got, []string{"6$Id$\r\n"}) {
		t.Errorf("got %q, %v", got, err)
	}
	stop := errors.New("stop")
	if err := s.Blobs(t.Context(), []string{id, id}, func(int, int64, io.Reader) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if err := s.Blobs(t.Context(), []string{r.Zero()}, func(int, int64, io.Reader) error { return nil }); err == nil {
		t.Error("an object that is missing was read")
	}
	sizes, err := s.Sizes(t.Context(), []string{r.Zero(), id})
	if err != nil || !slices.Equal(sizes, []int64{-1, 6}) {
		t.Errorf("sizes %v, %v", sizes, err)
	}
}

// TestProgramsOfTrees looks for git, and for what git starts, beside the trees that an
// agent may write.
func TestProgramsOfTrees(t *testing.T) {
	top, r := repository(t, "r")
	gittest.Git(t, top, "config", "remote.origin.url", "ssh://127.0.0.1:1/none")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(top, "tools"), link); err != nil {
		t.Fatal(err)
	}
	marker := filepath.Join(t.TempDir(), "made")
	for _, name := range []string{"bin/git", "bin/ssh", "tools/git", "tools/ssh"} {
		put(t, filepath.Join(top, name), "#!/bin/sh\ntouch "+marker+"\n")
		if err := os.Chmod(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", strings.Join([]string{filepath.Join(top, "bin"), "bin", "", link, os.Getenv("PATH")}, ":"))
	t.Chdir(top)
	_, err := r.Fetch(t.Context(), "origin", "refs/heads/main", "refs/pawl/x")
	if err == nil {
		t.Error("something was fetched from nowhere")
	}
	elsewhere := *r // a clone's, whose repository is r
	elsewhere.Top = t.TempDir()
	if _, err := command.Run(t.Context(), (&Shadow{Repo: &elsewhere, Dir: r.Dir}).newCall("version")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program of the tree was run")
	}
}
