package git

import (
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git/command"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// What is checked out is read alike from a repository and, without git, from a
// clone's .git.
func TestHead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		branch string // empty: detached
		broken bool   // in a clone
		make   func(dir string)
	}{
		{"loose", "refs/heads/main", false, func(string) {}},
		{"packed", "refs/heads/main", false, func(dir string) { gittest.Git(t, dir, "pack-refs", "--all") }},
		{"packed and moved", "refs/heads/main", false, func(dir string) {
			gittest.Git(t, dir, "pack-refs", "--all")
			gittest.Git(t, dir, "commit", "-q", "--allow-empty", "-m", "next")
		}},
		{"a longer name is packed", "refs/heads/main", false, func(dir string) {
			gittest.Git(t, dir, "branch", "x/main")
			gittest.Git(t, dir, "branch", "main2")
			gittest.Git(t, dir, "pack-refs", "--all")
		}},
		{"detached", "", false, func(dir string) { gittest.Git(t, dir, "checkout", "-q", "--detach") }},
		{"no commit", "refs/heads/new", false, func(dir string) { gittest.Git(t, dir, "checkout", "-q", "--orphan", "new") }},
		{"no commit, others packed", "refs/heads/new", false, func(dir string) {
			gittest.Git(t, dir, "pack-refs", "--all")
			gittest.Git(t, dir, "checkout", "-q", "--orphan", "new")
		}},
		{"a branch that is another name", "refs/heads/main", true, func(dir string) {
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
				want := Head{Branch: c.branch}
				if c.branch != "refs/heads/new" {
					want.Commit = gittest.Git(t, dir, "rev-parse", "HEAD")
				}
				if got, err := r.Head(t.Context()); err != nil || got != want {
					t.Errorf("%s: Head is %+v, %v, want %+v", format, got, err, want)
				}
				clone := Clone{Of: r, Top: dir}
				if got, err := clone.Head(); (err != nil) != c.broken || err == nil && got != want {
					t.Errorf("%s: Head of a clone is %+v, %v, want %+v", format, got, err, want)
				}
			}
		})
	}
}

// A pipe in the place of .git keeps nobody waiting for who writes to it.
func TestPipeInThePlaceOfGit(t *testing.T) {
	t.Parallel()
	c := &Clone{Top: t.TempDir()}
	if err := syscall.Mkfifo(filepath.Join(c.Top, ".git"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := c.Head()
	tips := c.Tips(1)
	if !errors.Is(err, ErrBroken) || tips != nil {
		t.Errorf("read %v, %v", err, tips)
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
	want := Head{Commit: gittest.Git(t, linked, "rev-parse", "HEAD"), Branch: "refs/heads/side"}
	if got, err := r.Head(t.Context()); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestRefsInAReftable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := command.Run(t.Context(), call{Dir: dir, Args: []string{"init", "-q", "-b", "main", "--ref-format=reftable"}})
	if err != nil {
		t.Skip("this git has no reftable")
	}
	gittest.Git(t, dir, "commit", "-q", "--allow-empty", "-m", "first")
	r, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	h, err := r.Head(t.Context())
	if err != nil || h.Branch != "refs/heads/main" {
		t.Fatalf("got %+v, %v", h, err)
	}
	if err := r.SetRefs(t.Context(), "refs/pawl/runs/r/1", h.Commit); err != nil {
		t.Fatal(err)
	}
	if got := gittest.Git(t, r.Top, "rev-parse", "refs/pawl/runs/r/1"); got != h.Commit {
		t.Errorf("the ref is at %s", got)
	}
}

func TestSetRefs(t *testing.T) {
	t.Parallel()
	const name = "refs/pawl/runs/r/1"
	dir, r := repository(t, "r")
	git := func(args ...string) string { return gittest.Git(t, dir, args...) }
	for _, then := range [][]string{nil, {"pack-refs", "--all", "--prune"}, {"repack", "-adq"}} {
		if then != nil {
			git(then...)
		}
		git("commit", "-q", "--allow-empty", "-m", "next")
		want := git("rev-parse", "HEAD")
		if err := r.SetRefs(t.Context(), name, want); err != nil {
			t.Fatal(err)
		}
		if got := git("rev-parse", name); got != want {
			t.Errorf("after %v the ref is at %s, want %s", then, got, want)
		}
	}
	if r.SetRefs(t.Context(), name, strings.Repeat("1", len(r.Zero()))) == nil {
		t.Error("a commit that does not exist was kept")
	}
}

func TestCommitIsByPawlOrByWhomIsSaid(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	s := shadow(t, r)
	tree, head := gittest.Git(t, dir, "rev-parse", "HEAD^{tree}"), gittest.Git(t, dir, "rev-parse", "HEAD")
	const format = "--format=%T%n%P%n%an%n%ae%n%cn%n%ce%n%B"
	own, err := s.Commit(t.Context(), tree, "a title\n\nKey: value\n", "", head)
	if err != nil {
		t.Fatal(err)
	}
	want := tree + "\n" + head + "\npawl\npawl@localhost\npawl\npawl@localhost\na title\n\nKey: value"
	if got := strings.TrimSpace(gittest.Git(t, dir, "log", "-1", format, own)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	who := Person{Name: "Zoë van Dam-2", Email: "zoe+git@example.com"}
	id, err := s.CommitTree(t.Context(), who, tree, "m\n", head)
	if err != nil {
		t.Fatal(err)
	}
	if got := gittest.Git(t, dir, "log", "-1", "--format=%an %ae %cn %ce", id); got != "Zoë van Dam-2 zoe+git@example.com Zoë van Dam-2 zoe+git@example.com" {
		t.Errorf("got %q", got)
	}
	if _, err := s.Commit(t.Context(), tree, "m\n", strings.Repeat("1", len(head))); err == nil {
		t.Error("a parent that does not exist was taken")
	}
	gittest.Git(t, dir, "fsck", "--strict")
}

// One commit keeps others, and is the same for the same ones.
func TestCommitWithParents(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	first := gittest.Git(t, dir, "rev-parse", "HEAD")
	gittest.Git(t, dir, "commit", "-q", "--allow-empty", "-m", "next")
	second := gittest.Git(t, dir, "rev-parse", "HEAD")
	bound, err := r.CommitWithParents(t.Context(), []string{first, second, first})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.CommitWithParents(t.Context(), []string{second, first}); err != nil || again != bound {
		t.Errorf("got %s, %v, then %s", bound, err, again)
	}
	parents := strings.Fields(gittest.Git(t, dir, "log", "-1", "--format=%P", bound))
	if want := slices.Sorted(slices.Values([]string{first, second})); !slices.Equal(parents, want) {
		t.Errorf("parents %v, want %v", parents, want)
	}
}

func TestChangesAreThoseOfTreesAndCommits(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	s := shadow(t, r)
	put(t, filepath.Join(dir, "more"), "more")
	gittest.Git(t, dir, "add", "-A")
	from, to := gittest.Git(t, dir, "rev-parse", "HEAD^{tree}"), gittest.Git(t, dir, "write-tree")
	want, _, err := s.Changes(t.Context(), from, to, true, 0)
	if err != nil || len(want) != 1 || want[0].Status != 'A' || want[0].Path != "more" || want[0].OldObject != "" {
		t.Fatalf("got %+v, %v", want, err)
	}
	if at, err := r.Changes(t.Context(), gittest.Git(t, dir, "rev-parse", "HEAD"), to); err != nil || !reflect.DeepEqual(at, want) {
		t.Errorf("from the commit: %+v, %v", at, err)
	}
}

// Tips are what branches, remote branches and tags lead to; symbolic refs and tag
// objects add nothing.
func TestTips(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	git := func(args ...string) string { return gittest.Git(t, dir, args...) }
	first := git("rev-parse", "HEAD")
	git("branch", "a/b")
	git("commit", "-q", "--allow-empty", "-m", "c")
	second := git("rev-parse", "HEAD")
	git("update-ref", "refs/remotes/origin/main", first)
	git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	git("tag", "light", first)
	git("tag", "-a", "-m", "v1", "v1", first)
	for _, then := range []string{"", "pack-refs --all"} {
		if then != "" {
			git(strings.Fields(then)...)
		}
		got, err := r.Tips(t.Context())
		slices.Sort(got)
		if want := slices.Sorted(slices.Values([]string{first, second})); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v; want %v", then, got, err, want)
		}
	}
}

// Refs are removed by name and below a prefix, wherever they are, and no other.
func TestRefsAreDroppedWhereverTheyAre(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	git := func(args ...string) string { return gittest.Git(t, dir, args...) }
	names := []string{
		"refs/pawl/base/t1/base", "refs/pawl/base/t1/x/tips", "refs/pawl/base/t10/base", "refs/pawl/queue/t1", "refs/pawl/queue/t10",
	}
	for name, then := range map[string]func(){
		"files":  func() {},
		"packed": func() { git("pack-refs", "--all") },
		"with a log": func() {
			git("update-ref", "-d", names[3])
			git("update-ref", "--create-reflog", "-m", "test", names[3], "HEAD")
		},
	} {
		for _, n := range names {
			git("update-ref", n, "HEAD")
		}
		then()
		err := r.DropRefs(t.Context(), "refs/pawl/base/t1/", "refs/pawl/queue/t1", "refs/pawl/queue/none", "refs/pawl/none/")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		refs, err := r.Refs(t.Context(), "refs/pawl/")
		left := lists.Each(refs, func(r Ref) string { return r.Name })
		if want := []string{names[2], names[4]}; err != nil || !slices.Equal(left, want) {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
}

// Configuration is what git says, included files too.
func TestConfig(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	included := filepath.Join(t.TempDir(), "more")
	put(t, included, "[pawl]\n\ttest = two\n")
	gittest.Git(t, dir, "config", "pawl.test", "one")
	gittest.Git(t, dir, "config", "pawl.path", "~/x")
	gittest.Git(t, dir, "config", "include.path", included)
	all, err := r.Config(t.Context())
	if err != nil || latestValues(all)["pawl.test"] != "two" {
		t.Errorf("got %v, %v", all, err)
	}
	if path, err := r.ConfigPath(t.Context(), "pawl.path"); err != nil || !filepath.IsAbs(path) {
		t.Errorf("got %q, %v", path, err)
	}
	if none, err := r.ConfigPath(t.Context(), "pawl.none"); err != nil || none != "" {
		t.Errorf("got %q, %v", none, err)
	}
}

func TestSignOff(t *testing.T) {
	t.Parallel()
	who := Person{Name: "Zoë", Email: "zoe@example.com"}
	const line = "Signed-off-by: Zoë <zoe@example.com>\n"
	for message, want := range map[string]string{
		"one":                     "one\n\n" + line,
		"one: two\n":              "one: two\n\n" + line,
		"one\n\ntext: yes\nno\n":  "one\n\ntext: yes\nno\n\n" + line,
		"one\n\nPawl-Task: x\n\n": "one\n\nPawl-Task: x\n" + line,
		"one\n\nA: x\nB-c: y z\n": "one\n\nA: x\nB-c: y z\n" + line,
	} {
		if got := who.SignOff(message); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}
