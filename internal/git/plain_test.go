package git

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/gittest"
)

// An index file is read as git lists it, and never read wrong.
func TestIndexIsReadAsGitListsIt(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	put(t, filepath.Join(dir, "d", "a file"), "a\n")
	put(t, filepath.Join(dir, "d", strings.Repeat("long", 60)), "long\n")
	put(t, filepath.Join(dir, "x.sh"), "x\n")
	for i := range 9 { // every length of the padding
		put(t, filepath.Join(dir, strings.Repeat("p", i+1)), "p\n")
	}
	if err := os.Symlink("a file", filepath.Join(dir, "d", "link")); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) string { return gittest.Git(t, dir, args...) }
	git("add", "-A")
	git("update-index", "--chmod=+x", "x.sh")
	git("commit", "-qm", "files")
	same := func(what string, plain bool) {
		t.Helper()
		got, tree, err := r.readIndex(r.Index)
		if err != nil {
			if plain {
				t.Errorf("%s: %v", what, err)
			}
			return
		}
		want, err := entries(t.Context(), r.call(lsEntries...))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v\nwant %v", what, got, err, want)
		}
		if written := git("write-tree", "--missing-ok"); tree != "" && tree != written {
			t.Errorf("%s: the tree %s, and git writes %s", what, tree, written)
		}
	}
	same("committed", true)
	git("read-tree", "--reset", "-u", "HEAD")
	if _, tree, err := r.readIndex(r.Index); err != nil || tree != git("rev-parse", "HEAD^{tree}") {
		t.Errorf("the tree of a checkout: %q, %v", tree, err)
	}
	put(t, filepath.Join(dir, "p"), "changed\n")
	git("add", "p")
	if _, tree, err := r.readIndex(r.Index); err != nil || tree != "" {
		t.Errorf("the tree of a changed index: %q, %v", tree, err)
	}
	same("changed", true)
	git("update-index", "--assume-unchanged", "pp")
	git("update-index", "--skip-worktree", "ppp")
	git("update-index", "--add", "--cacheinfo", "160000,"+git("rev-parse", "HEAD")+",module")
	put(t, filepath.Join(dir, "intended"), "i\n")
	git("add", "-N", "intended")
	if _, _, err := r.readIndex(r.Index); err != nil {
		t.Errorf("flags: %v", err)
	}
	got, _, err := r.readIndex(r.Index)
	if want, werr := entries(t.Context(), r.call(lsEntries...)); err != nil || werr != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("flags: %v, %v\nwant %v, %v", got, err, want, werr)
	}
	git("update-index", "--no-assume-unchanged", "pp")
	git("update-index", "--no-skip-worktree", "ppp")
	git("reset", "-q", "--hard")
	git("checkout", "-q", "-b", "other", "HEAD")
	put(t, filepath.Join(dir, "pp"), "theirs\n")
	git("commit", "-qam", "theirs")
	git("checkout", "-q", "-")
	put(t, filepath.Join(dir, "pp"), "ours\n")
	git("commit", "-qam", "ours")
	_, _ = run(t.Context(), call{dir: dir, args: []string{"merge", "-q", "other"}}) // it conflicts
	got, tree, err := r.readIndex(r.Index)
	if want, werr := entries(t.Context(), r.call(lsEntries...)); err != nil || werr != nil || !reflect.DeepEqual(got, want) || tree != "" {
		t.Errorf("in conflict: %v, %q, %v\nwant %v, %v", got, tree, err, want, werr)
	}
	git("reset", "-q", "--hard")
	for _, version := range []string{"4", "3", "2"} {
		git("update-index", "--index-version", version)
		same("version "+version, version != "4")
	}
	git("update-index", "--split-index")
	put(t, filepath.Join(dir, "split"), "s\n")
	git("add", "split")
	same("split", false)
}

// What is cut off, or of no known form, is git's to read.
func TestBrokenIndexIsNotRead(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	put(t, filepath.Join(dir, "f"), "f\n")
	gittest.Git(t, dir, "add", "-A")
	whole, err := os.ReadFile(r.Index)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "index")
	for n := range whole {
		if err := os.WriteFile(file, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if all, _, err := r.readIndex(file); err == nil {
			t.Errorf("%d of %d bytes are read as %v", n, len(whole), all)
		}
	}
	if all, tree, err := r.readIndex(file + "-none"); err != nil || len(all) > 0 || tree != "" {
		t.Errorf("no file: %v, %q, %v", all, tree, err)
	}
}

// Tips and lists of refs from files are those of git.
func TestRefsAreReadFromFilesAsGitReadsThem(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	git := func(args ...string) string { return gittest.Git(t, dir, args...) }
	commit := func() string {
		git("commit", "-q", "--allow-empty", "-m", "c")
		return git("rev-parse", "HEAD")
	}
	tips := func(what string, files bool, want ...string) {
		t.Helper()
		if _, ok := r.tipFiles(); ok != files {
			t.Errorf("%s: read from files is %v", what, ok)
		}
		got, err := r.Tips(t.Context())
		slices.Sort(got)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, slices.Compact(want)) {
			t.Errorf("%s: %v, %v; want %v", what, got, err, want)
		}
	}
	first := commit()
	git("branch", "a/b")
	second := commit()
	tips("loose", true, first, second)
	git("update-ref", "refs/remotes/origin/main", first)
	git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	git("tag", "light", first)
	tips("a symbolic ref and a tag", true, first, second)
	git("tag", "-a", "-m", "v1", "v1", first)
	tips("a tag object", false, first, second)
	tips("a tag object that is known", true, first, second)
	git("pack-refs", "--all")
	third := commit()
	tips("packed, and one moved since", true, first, third)
	for _, prefix := range []string{"refs/pawl/", "refs/heads/none/", "refs/tags/"} {
		list := git("for-each-ref", prefix)
		if r.noRefs(prefix) != (list == "") {
			t.Errorf("%s: none is %v, and git lists %q", prefix, r.noRefs(prefix), list)
		}
	}
	for _, prefix := range []string{"refs/heads/", "refs/pawl/", "refs/tags/"} {
		names, err := r.RefNames(t.Context(), prefix)
		slices.Sort(names)
		if want := strings.Fields(git("for-each-ref", "--format=%(refname)", prefix)); err != nil || !slices.Equal(names, want) {
			t.Errorf("%s: %v, %v; want %v", prefix, names, err, want)
		}
	}
	git("repack", "-adq")
	fresh, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := fresh.tipFiles(); ok {
		t.Error("commits in a pack were taken for known")
	}
	put(t, filepath.Join(r.Common, "refs", "heads", "odd"), "rubbish\n")
	if _, ok := r.tipFiles(); ok {
		t.Error("a broken ref was read from files")
	}
}

// Refs are removed by name and below a prefix, wherever they are, and no other.
func TestRefsAreDroppedWhereverTheyAre(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	git := func(args ...string) string { return gittest.Git(t, dir, args...) }
	git("commit", "-q", "--allow-empty", "-m", "c")
	names := []string{"refs/pawl/base/t1/base", "refs/pawl/base/t1/x/tips", "refs/pawl/base/t10/base", "refs/pawl/queue/t1", "refs/pawl/queue/t10"}
	for _, c := range []struct {
		name  string
		files bool // without git
		make  func()
	}{
		{"files", true, func() {}},
		{"packed", false, func() { git("pack-refs", "--all") }},
		{"packed and moved since", false, func() {
			git("pack-refs", "--all")
			git("commit", "-q", "--allow-empty", "-m", "next")
			git("update-ref", names[3], "HEAD")
		}},
		{"with a log", false, func() {
			git("update-ref", "-d", names[3])
			git("update-ref", "--create-reflog", "-m", "test", names[3], "HEAD")
		}},
	} {
		for _, n := range names {
			git("update-ref", n, "HEAD")
		}
		c.make()
		drop := []string{"refs/pawl/base/t1/", "refs/pawl/queue/t1", "refs/pawl/queue/none", "refs/pawl/none/"}
		if c.files != r.dropRefFiles(drop) {
			t.Errorf("%s: without git is %v", c.name, !c.files)
		}
		if err := r.DropRefs(t.Context(), drop...); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := strings.Fields(git("for-each-ref", "--format=%(refname)", "refs/pawl")); !slices.Equal(got, []string{names[2], names[4]}) {
			t.Errorf("%s: left %v", c.name, got)
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git", "refs", "pawl", "base", "t1")); err == nil {
			t.Errorf("%s: an empty folder is left", c.name)
		}
	}
	// What is nobody's but the user's is git's to remove, and a link leads nowhere.
	outside := t.TempDir()
	put(t, filepath.Join(outside, "kept"), git("rev-parse", "HEAD")+"\n")
	if err := os.Symlink(outside, filepath.Join(dir, ".git", "refs", "pawl", "link")); err != nil {
		t.Fatal(err)
	}
	if r.dropRefFiles([]string{"refs/heads/"}) {
		t.Error("a branch was removed without git")
	}
	_ = r.dropRefFiles([]string{"refs/pawl/link/kept"})
	if _, err := os.Lstat(filepath.Join(outside, "kept")); err != nil {
		t.Error(err)
	}
}

// The configuration is asked for again when one of its files changed.
func TestConfigIsReadAgainWhenItChanged(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	value := func() string {
		t.Helper()
		all, err := r.Config(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return latest(all)["pawl.test"]
	}
	for _, want := range []string{"one", "one", "two"} {
		gittest.Git(t, dir, "config", "pawl.test", want)
		if got := value(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	included := filepath.Join(t.TempDir(), "more")
	put(t, included, "[pawl]\n\ttest = three\n")
	gittest.Git(t, dir, "config", "include.path", included)
	if got := value(); got != "three" {
		t.Errorf("included: %q", got)
	}
	put(t, included, "[pawl]\n\ttest = four\n")
	if got := value(); got != "four" {
		t.Errorf("included and changed: %q", got)
	}
}

// What is known of the configuration of a clone that was just made is what git says.
func TestConfigOfANewCloneIsKnown(t *testing.T) {
	t.Parallel()
	dir, of := repository(t, "r")
	put(t, filepath.Join(dir, "f"), "f\n")
	git := func(args ...string) { gittest.Git(t, dir, args...) }
	git("add", "-A")
	git("commit", "-q", "-m", "c")
	head := gittest.Git(t, dir, "rev-parse", "HEAD")
	clone := func(name string) *Repo {
		t.Helper()
		own := filepath.Join(t.TempDir(), name)
		lock, err := os.CreateTemp(t.TempDir(), "lock")
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		c, err := OpenClone(t.Context(), of, filepath.Join(own, "top"), filepath.Join(own, "own"), lock)
		if err == nil {
			err = os.Mkdir(c.Top, 0o700)
		}
		if err == nil {
			err = c.Checkout(t.Context(), head)
		}
		if err == nil {
			err = c.Furnish(t.Context(), CloneRefs{Branch: "pawl/x", Commit: head})
		}
		if err != nil {
			t.Fatal(err)
		}
		return c.Repo(t.Context())
	}
	for _, set := range [][]string{nil, {"core.autocrlf", "input"}, {"user.name", "Ann # Lee"}, {"core.sharedRepository", "0660"}} {
		if set != nil {
			git("config", set[0], set[1])
		}
		r := clone("plain")
		if r.configured.sum == "" {
			t.Errorf("%v: git is asked", set)
		}
		got, err := r.Config(t.Context())
		if want, werr := r.readConfig(t.Context()); err != nil || werr != nil || !slices.Equal(got, want) {
			t.Errorf("%v: %v, %v\nwant %v, %v", set, got, err, want, werr)
		}
		gittest.Git(t, r.Top, "config", "pawl.agent", "was here")
		if all, err := r.Config(t.Context()); err != nil || latest(all)["pawl.agent"] != "was here" {
			t.Errorf("%v: changed: %v, %v", set, all, err)
		}
	}
	for _, set := range [][]string{{"user.name", `Ann "the" Lee`}, {"include.path", filepath.Join(t.TempDir(), "more")}} {
		git("config", set[0], set[1])
		if r := clone("odd"); r.configured.sum != "" {
			t.Errorf("%v: git is not asked", set)
		}
	}
}
