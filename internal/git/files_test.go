package git

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/gittest"
)

// headByGit is what git says of HEAD.
func headByGit(t *testing.T, r *Repo) Head {
	t.Helper()
	out, err := run(t.Context(), r.headCall())
	h, err := r.readHead(t.Context(), out, err)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHeadIsReadFromFilesAsGitReadsIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		plain bool // no git is needed
		make  func(dir string)
	}{
		{"loose", true, func(string) {}},
		{"packed", true, func(dir string) { gittest.Git(t, dir, "pack-refs", "--all") }},
		{"packed and moved", true, func(dir string) {
			gittest.Git(t, dir, "pack-refs", "--all")
			gittest.Git(t, dir, "commit", "-q", "--allow-empty", "-m", "next")
		}},
		{"a longer name is packed", true, func(dir string) {
			gittest.Git(t, dir, "branch", "x/main")
			gittest.Git(t, dir, "branch", "main2")
			gittest.Git(t, dir, "pack-refs", "--all")
		}},
		{"detached", true, func(dir string) { gittest.Git(t, dir, "checkout", "-q", "--detach") }},
		{"no commit", true, func(dir string) { gittest.Git(t, dir, "checkout", "-q", "--orphan", "new") }},
		{"no commit, others packed", true, func(dir string) {
			gittest.Git(t, dir, "pack-refs", "--all")
			gittest.Git(t, dir, "checkout", "-q", "--orphan", "new")
		}},
		{"a branch that is another name", false, func(dir string) {
			gittest.Git(t, dir, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
			gittest.Git(t, dir, "symbolic-ref", "HEAD", "refs/heads/alias")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, format := range []string{"sha1", "sha256"} {
				dir := t.TempDir()
				gittest.Git(t, dir, "init", "-q", "-b", "main", "--object-format="+format)
				gittest.Git(t, dir, "commit", "-q", "--allow-empty", "-m", "first")
				c.make(dir)
				r, err := Open(t.Context(), dir)
				if err != nil {
					t.Fatal(err)
				}
				got, plain := r.readHeadFiles()
				if plain != c.plain {
					t.Errorf("%s: read from files: %v, want %v", format, plain, c.plain)
				}
				want := headByGit(t, r)
				if plain && got != want {
					t.Errorf("%s: got %+v, git says %+v", format, got, want)
				}
				if got, err := r.Head(t.Context()); err != nil || got != want {
					t.Errorf("%s: Head is %+v, %v, git says %+v", format, got, err, want)
				}
			}
		})
	}
}

func TestHeadOfALinkedWorktree(t *testing.T) {
	t.Parallel()
	dir, _ := repository(t, "main")
	linked := filepath.Join(t.TempDir(), "linked")
	gittest.Git(t, dir, "worktree", "add", "-q", "-b", "side", linked)
	gittest.Git(t, linked, "commit", "-q", "--allow-empty", "-m", "aside")
	r, err := Open(t.Context(), linked)
	if err != nil {
		t.Fatal(err)
	}
	got, plain := r.readHeadFiles()
	if want := headByGit(t, r); !plain || got != want || got.Branch != "refs/heads/side" {
		t.Errorf("got %+v, %v, git says %+v", got, plain, want)
	}
}

// reftable is a repository whose refs are not files.
func reftable(t *testing.T) *Repo {
	t.Helper()
	dir := t.TempDir()
	cmd := prepare(t.Context(), call{dir: dir, args: []string{"init", "-q", "-b", "main", "--ref-format=reftable"}})
	if cmd.cmd.Run() != nil {
		t.Skip("this git has no reftable")
	}
	gittest.Git(t, dir, "commit", "-q", "--allow-empty", "-m", "first")
	r, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRefsInAReftable(t *testing.T) {
	t.Parallel()
	r := reftable(t)
	if h, plain := r.readHeadFiles(); plain {
		t.Errorf("read %+v from files", h)
	}
	h, err := r.Head(t.Context())
	if err != nil || h.Branch != "refs/heads/main" {
		t.Fatalf("got %+v, %v", h, err)
	}
	if err := shadow(t, r).Keep(t.Context(), "refs/pawl/runs/r/1", h.Commit); err != nil {
		t.Fatal(err)
	}
	if got := gittest.Git(t, r.Top, "rev-parse", "refs/pawl/runs/r/1"); got != h.Commit {
		t.Errorf("the ref is at %s", got)
	}
}

func TestFilesOfAReftableAreNotRead(t *testing.T) {
	t.Parallel()
	_, r := repository(t, "r")
	commit := headByGit(t, r).Commit
	if err := os.Mkdir(filepath.Join(r.Common, "reftable"), 0o755); err != nil {
		t.Fatal(err)
	}
	if r.writeRef("refs/pawl/runs/r/1", commit) == nil {
		t.Error("a ref was written as a file")
	}
	put(t, filepath.Join(r.Dir, "HEAD"), "ref: refs/heads/.invalid\n")
	if h, plain := r.readHeadFiles(); plain {
		t.Errorf("read %+v from files", h)
	}
}

func TestKeep(t *testing.T) {
	t.Parallel()
	const name = "refs/pawl/runs/r/1"
	dir, r := repository(t, "r")
	s := shadow(t, r)
	made := 0
	at := func() string { return gittest.Git(t, dir, "for-each-ref", "--format=%(objectname)", name) }
	keep := func(message string) string {
		t.Helper()
		id, err := s.Commit(t.Context(), gittest.Git(t, dir, "rev-parse", "HEAD^{tree}"), message, gittest.Git(t, dir, "rev-parse", "HEAD"))
		if err != nil {
			t.Fatal(err)
		}
		if made++; made == 1 {
			err = r.writeRef(name, id)
		} else {
			err = s.Keep(t.Context(), name, id)
		}
		if err != nil {
			t.Error(err)
		}
		if at() != id {
			t.Errorf("the ref is at %s, want %s", at(), id)
		}
		return id
	}
	first := keep("one\n")
	gittest.Git(t, dir, "pack-refs", "--all", "--prune")
	second := keep("two\n")
	if r.writeRef(name, first) == nil || at() != second {
		t.Errorf("a ref that is there was replaced without git: %s", at())
	}

	lock := filepath.Join(r.Common, name+".lock")
	put(t, lock, "")
	if s.Keep(t.Context(), name, first) == nil || at() != second {
		t.Errorf("a ref that someone else has locked is at %s", at())
	}
	if _, err := os.Stat(lock); err != nil {
		t.Error("someone else's lock is gone")
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	// A pack has the commit: git does it.
	gittest.Git(t, dir, "repack", "-adq")
	gittest.Git(t, dir, "prune-packed", "-q")
	if r.writeRef(name, second) == nil {
		t.Error("a commit was not looked for")
	}
	if err := s.Keep(t.Context(), name, second); err != nil || at() != second {
		t.Errorf("the ref is at %s: %v", at(), err)
	}
	if s.Keep(t.Context(), name, strings.Repeat("1", len(first))) == nil {
		t.Error("a commit that is not there was kept")
	}
	for _, other := range []string{"refs/heads/main", "refs/pawl/../heads/main", "refs/pawl/a.lock", "refs/pawl//a"} {
		if r.writeRef(other, second) == nil {
			t.Errorf("%s was written", other)
		}
	}
	left, err := os.ReadDir(filepath.Dir(lock))
	if err != nil || len(left) != 1 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	gittest.Git(t, dir, "fsck", "--strict")
}

func TestCommitIsWhatGitMakes(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	s := shadow(t, r)
	tree, head := gittest.Git(t, dir, "rev-parse", "HEAD^{tree}"), gittest.Git(t, dir, "rev-parse", "HEAD")
	own, err := s.writeCommit(Person{"pawl", "pawl@localhost"}, tree, "a title\n\nKey: value\n", []string{head})
	if err != nil {
		t.Fatal(err)
	}
	const format = "--format=%T%n%P%n%an%n%ae%n%cn%n%ce%n%B"
	want := tree + "\n" + head + "\npawl\npawl@localhost\npawl\npawl@localhost\na title\n\nKey: value"
	if got := strings.TrimSpace(gittest.Git(t, dir, "log", "-1", format, own)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, who := range []Person{{"Zoë van Dam-2", "zoe+git@example.com"}, {" Ann <x>. ", "<ann@example.com>"}, {"Bob\n", "bob@example.com"}} {
		id, err := s.CommitTree(t.Context(), who, tree, "m\n", head)
		if err != nil {
			t.Fatal(err)
		}
		by := s.Repo.call("commit-tree", tree, "-p", head)
		by.stdin, by.env = strings.NewReader("m\n"), append(by.env, "GIT_AUTHOR_NAME="+who.Name, "GIT_AUTHOR_EMAIL="+who.Email, "GIT_COMMITTER_NAME="+who.Name, "GIT_COMMITTER_EMAIL="+who.Email)
		out, err := run(t.Context(), by)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := gittest.Git(t, dir, "log", "-1", format, id), gittest.Git(t, dir, "log", "-1", format, strings.TrimSpace(string(out))); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	s.stored.Clear()
	gittest.Git(t, dir, "repack", "-adq")
	gittest.Git(t, dir, "prune-packed", "-q")
	if _, err := s.writeCommit(Person{"pawl", "pawl@localhost"}, tree, "m\n", []string{head}); err == nil {
		t.Error("objects in a pack were taken for certain")
	}
	if _, err := s.Commit(t.Context(), tree, "m\n", head); err != nil {
		t.Fatal(err)
	}
	if _, err := s.writeCommit(Person{"pawl", "pawl@localhost"}, tree, "n\n", []string{head}); err != nil {
		t.Errorf("objects that git found are forgotten: %v", err)
	}
	if _, err := s.Commit(t.Context(), tree, "m\n", strings.Repeat("1", len(head))); err == nil {
		t.Error("a parent that is not there was taken")
	}
	gittest.Git(t, dir, "fsck", "--strict")
}

// TestTreesAreComparedAsGitDoes changes a tree at random and compares every
// answer with that of git.
func TestTreesAreComparedAsGitDoes(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	s := shadow(t, r)
	rnd := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "a.b", "a/b", "a-b", "b/c/d", "b/c/e", "b/x", "c d", "\xff", "z/z/z/z"}
	var trees []string
	for range 25 {
		for range 4 {
			name := filepath.Join(dir, names[rnd.IntN(len(names))])
			switch rnd.IntN(5) {
			case 0:
				_ = os.RemoveAll(name) // it need not be there
			case 1:
				_ = os.Symlink(fmt.Sprint(rnd.IntN(3)), name) // only if it is free
			case 2:
				_ = os.Chmod(name, 0o755) //nolint:gosec // the execute bit is the point; only if it is there
			default:
				_ = os.MkdirAll(filepath.Dir(name), 0o755)                     // unless a file is in the way
				_ = os.WriteFile(name, []byte(fmt.Sprint(rnd.IntN(5))), 0o600) // unless a folder is
			}
		}
		gittest.Git(t, dir, "add", "-A")
		trees = append(trees, gittest.Git(t, dir, "write-tree"))
	}
	for i, from := range trees {
		for _, to := range trees[i:] {
			out, err := run(t.Context(), s.call("diff-tree", "-r", "-z", "--raw", "--no-renames", from, to))
			if err != nil {
				t.Fatal(err)
			}
			want, _, err := s.readChanges(records(out), 0)
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.diffLoose(from, to)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("got %+v, %v, git says %+v", got, err, want)
			}
		}
	}
}

func TestTreeThatIsNotWhatItsNameSays(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	s := shadow(t, r)
	put(t, filepath.Join(dir, "more"), "more")
	gittest.Git(t, dir, "add", "-A")
	from, to := gittest.Git(t, dir, "rev-parse", "HEAD^{tree}"), gittest.Git(t, dir, "write-tree")
	want, _, err := s.Changes(t.Context(), from, to, true, 0)
	if err != nil || len(want) != 1 {
		t.Fatalf("got %+v, %v", want, err)
	}
	if at, _, err := s.Changes(t.Context(), gittest.Git(t, dir, "rev-parse", "HEAD"), to, true, 0); err != nil || !reflect.DeepEqual(at, want) {
		t.Errorf("from the commit: %+v, %v", at, err)
	}
	data, err := os.ReadFile(r.loosePath(to))
	if err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, dir, "gc", "-q")
	if got, _, err := s.Changes(t.Context(), from, to, true, 0); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("from a pack: %+v, %v", got, err)
	}
	other := strings.Repeat("2", len(to))
	put(t, r.loosePath(other), string(data))
	if _, _, err := r.readLoose(other); err == nil {
		t.Error("an object with the wrong content was read")
	}
}
