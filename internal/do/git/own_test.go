package git

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// own is pawl's own repository beside r.
func own(t *testing.T, r *Repo) *Repo {
	t.Helper()
	s, err := r.OpenOwn(t.Context(), filepath.Join(t.TempDir(), "store"))
	must(t, err)
	return s
}

func TestOwnRepositoryReadsAndDoesNotWrite(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	s := own(t, r)
	head := gittest.Git(t, dir, "rev-parse", "HEAD")
	before := gittest.Git(t, dir, "count-objects", "-v")
	commit, err := s.CommitAgain(t.Context(), head, gittest.Git(t, dir, "rev-parse", "HEAD^{tree}"), head)
	must(t, err)
	must(t, s.SetRefs(t.Context(), "refs/pawl/x", commit))
	if got, err := s.Find(t.Context(), "refs/pawl/x"); err != nil || got != commit {
		t.Errorf("found %s, %v", got, err)
	}
	if got, err := r.Find(t.Context(), commit); err != nil || got != "" {
		t.Errorf("the user's repository has %s, %v", got, err)
	}
	if got := gittest.Git(t, dir, "count-objects", "-v"); got != before {
		t.Errorf("the user's repository has\n%s\nand had\n%s", got, before)
	}
	if _, err := r.OpenOwn(t.Context(), t.TempDir()+"/a\nb"); err == nil {
		t.Error("a newline in a path was taken")
	}
}

// Another parent and another tree, and all else as it was: who, when, what; but not the
// signature, which would not hold.
func TestCommitAgain(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	first := gittest.Git(t, dir, "rev-parse", "HEAD")
	tree := gittest.Git(t, dir, "rev-parse", "HEAD^{tree}")
	const message = "Subject: ä\n\nauthor Eve <eve@example.com> 1 +0000\n\ntree 0\n\n\nthe end, without a line's end"
	text := "tree " + tree + "\nparent " + first + "\nparent " + first + "\n" +
		"author Bob \"B\" <bob@example.com> 1700000000 +0530\ncommitter Carol <> 1700000001 -0800\nencoding ISO-8859-1\n" +
		"gpgsig -----BEGIN PGP SIGNATURE-----\n \n author Eve <eve@example.com> 1 +0000\n -----END PGP SIGNATURE-----\nx-more 1\n\n" + message
	of := hashObject(t, dir, "commit", text)
	put(t, filepath.Join(dir, "a"), "2\n")
	gittest.Git(t, dir, "add", "a")
	other := gittest.Git(t, dir, "write-tree")
	who := "author Bob \"B\" <bob@example.com> 1700000000 +0530\ncommitter Carol <> 1700000001 -0800\nencoding ISO-8859-1\n\n" + message
	for parent, want := range map[string]string{
		first: "tree " + other + "\nparent " + first + "\n" + who, "": "tree " + other + "\n" + who,
	} {
		made, err := r.CommitAgain(t.Context(), of, other, parent)
		must(t, err)
		cmd := exec.CommandContext(t.Context(), "git", "cat-file", "commit", made)
		cmd.Dir = dir
		if got, err := cmd.Output(); err != nil || string(got) != want {
			t.Errorf("on %q: %v\n%s\nwant\n%s", parent, err, got, want)
		}
	}
	if _, err := r.CommitAgain(t.Context(), tree, other, ""); err == nil {
		t.Error("a tree was taken for a commit")
	}
}

func hashObject(t *testing.T, dir, kind, text string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "hash-object", "-t", kind, "-w", "--stdin")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(text)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestMergeTrees(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	s := own(t, r)
	base := gittest.Commit(t, dir, "refs/heads/base", "base", "HEAD", "a", "1\n2\n3\n4\n5\n6\n7\n", "gone", "g\n", "both", "1\n", "d/x", "x\n")
	ours := gittest.Commit(t, dir, "refs/heads/ours", "ours", base, "a", "ours\n2\n3\n4\n5\n6\n7\n", "gone", "-", "mine", "m\n")
	theirs := gittest.Commit(t, dir, "refs/heads/theirs", "theirs", base, "a", "1\n2\n3\n4\n5\n6\ntheirs\n", "d/x", "y\n")
	clash := gittest.Commit(t, dir, "refs/heads/clash", "clash", base, "a", "clash\n2\n3\n4\n5\n6\n7\n", "gone", "changed\n", "d/x", "z\n")
	tree := func(commit string) string { return gittest.Git(t, dir, "rev-parse", commit+"^{tree}") }
	before := gittest.Git(t, dir, "count-objects", "-v")

	merged, conflicts, err := s.MergeTrees(t.Context(), tree(base), tree(ours), tree(theirs))
	if err != nil || len(conflicts) > 0 {
		t.Fatalf("conflicts %q, %v", conflicts, err)
	}
	show := func(name string) string { return gittest.Git(t, dir, "--git-dir="+s.Dir, "show", merged+":"+name) }
	if got := gittest.Git(t, dir, "--git-dir="+s.Dir, "ls-tree", "-r", "--name-only", merged); got != "a\nboth\nd/x\nmine" {
		t.Errorf("it has %q", got)
	}
	if show("a") != "ours\n2\n3\n4\n5\n6\ntheirs" || show("d/x") != "y" {
		t.Errorf("a is %q, d/x is %q", show("a"), show("d/x"))
	}
	merged, conflicts, err = s.MergeTrees(t.Context(), tree(base), tree(ours), tree(clash))
	slices.Sort(conflicts)
	if err != nil || merged != "" || !slices.Equal(conflicts, []string{"a", "gone"}) {
		t.Errorf("merged to %q, conflicts %q, %v", merged, conflicts, err)
	}
	if same, conflicts, err := s.MergeTrees(t.Context(), tree(base), tree(ours), tree(base)); err != nil || len(conflicts) > 0 || same != tree(ours) {
		t.Errorf("with nothing of theirs: %s, %q, %v", same, conflicts, err)
	}
	none, err := r.EmptyTree(t.Context())
	must(t, err)
	if all, conflicts, err := s.MergeTrees(t.Context(), none, tree(ours), none); err != nil || len(conflicts) > 0 || all != tree(ours) {
		t.Errorf("from nothing: %s, %q, %v", all, conflicts, err)
	}
	if got := gittest.Git(t, dir, "count-objects", "-v"); got != before {
		t.Errorf("the user's repository has\n%s\nand had\n%s", got, before)
	}
}

// The clone's repository has what is checked out, branches, tags and remote branches by
// name, the index and who commits, and nothing by which it could push, sign, filter or
// run a program.
func TestNewRepository(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	git := func(args ...string) string { return gittest.Git(t, dir, args...) }
	git("branch", "other")
	git("tag", "-a", "-m", "one", "v1")
	git("remote", "add", "origin", "https://user:secret@example.com/x.git")
	git("update-ref", "refs/remotes/origin/main", "HEAD")
	git("update-ref", "refs/pawl/runs/x/1", "HEAD")
	git("update-ref", "refs/notes/commits", "HEAD")
	put(t, filepath.Join(dir, "a"), "stashed\n")
	git("stash")
	for key, value := range map[string]string{
		"core.hooksPath": "/hooks", "core.sshCommand": "evil", "core.fsmonitor": "evil", "credential.helper": "evil", "commit.gpgSign": "true",
		"filter.x.clean": "evil", "include.path": "more", "core.autocrlf": "input", "core.ignoreCase": "false", "user.name": `Ann "A"`,
		"alias.x": "!evil", "rerere.enabled": "true", "url.evil.insteadOf": "https://",
	} {
		git("config", key, value)
	}
	put(t, filepath.Join(r.Dir, "hooks", "pre-commit"), "#!/bin/sh\nexit 1\n")
	put(t, r.Exclude, "private\n")
	put(t, filepath.Join(dir, "a"), "staged\n")
	put(t, filepath.Join(dir, "new"), "staged\n")
	put(t, filepath.Join(dir, "apart"), "staged\n")
	git("add", "a", "new", "apart")
	git("update-index", "--assume-unchanged", "new")
	put(t, filepath.Join(dir, "a"), "not staged\n")
	c := cloneOf(t, r, own(t, r).Objects)
	for _, name := range []string{"a", "new"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		put(t, filepath.Join(c.Top, name), string(data))
	}
	put(t, filepath.Join(c.Top, "apart"), "as a filter has it\n")
	put(t, filepath.Join(c.Top, "private"), "ignored\n")
	for round := range 2 { // the second is in the place of one that an agent had
		must(t, c.NewRepository(t.Context(), []string{"apart"}))
		agent := func(args ...string) string { return gittest.Git(t, c.Top, args...) }
		if got := agent("status", "--porcelain"); got != "AM a" && got != "MM a\nA  apart\nA  new" {
			t.Errorf("status:\n%s", got)
		}
		if got := agent("ls-files", "-v"); got != "H a\nh apart\nh new" {
			t.Errorf("the index has\n%s", got)
		}
		if got, want := agent("for-each-ref", "--format=%(refname) %(objectname)"), git("for-each-ref", "--format=%(refname) %(objectname)",
			"refs/heads", "refs/remotes", "refs/tags"); got != want {
			t.Errorf("refs\n%s\nwant\n%s", got, want)
		}
		if agent("rev-parse", "HEAD") != git("rev-parse", "HEAD") || agent("symbolic-ref", "HEAD") != "refs/heads/main" || agent("stash", "list") != "" {
			t.Errorf("HEAD is %s, the stash %q", agent("rev-parse", "HEAD"), agent("stash", "list"))
		}
		if got := agent("remote"); got != "" {
			t.Errorf("remotes: %s", got)
		}
		config := agent("config", "--local", "--list")
		for _, never := range []string{"evil", "secret", "/hooks", "include", "rerere", "alias"} {
			if strings.Contains(config, never) {
				t.Errorf("the configuration has %s:\n%s", never, config)
			}
		}
		for _, want := range []string{"core.autocrlf=input", `user.name=Ann "A"`, "commit.gpgsign=false", "gc.auto=0"} {
			if !strings.Contains(config, want) {
				t.Errorf("the configuration lacks %s:\n%s", want, config)
			}
		}
		if hooks, err := os.ReadDir(filepath.Join(c.Top, ".git", "hooks")); err != nil || len(hooks) > 0 {
			t.Errorf("hooks: %v, %v", hooks, err)
		}
		agent("commit", "-qm", "agent")
		if head, err := c.Head(); err != nil || head.Commit != agent("rev-parse", "HEAD") || head.Branch != "refs/heads/main" {
			t.Errorf("round %d: head %+v, %v", round, head, err)
		}
		agent("config", "core.hooksPath", "/mine")
	}
	if got := git("rev-parse", "stash@{0}^"); got != git("rev-parse", "HEAD") {
		t.Errorf("the user's HEAD is at %s", git("rev-parse", "HEAD"))
	}
}

// cloneOf is a clone of r without files, opened with further objects.
func cloneOf(t *testing.T, r *Repo, more ...string) *Clone {
	t.Helper()
	dir := t.TempDir()
	top, own := filepath.Join(dir, "work"), filepath.Join(dir, "own")
	for _, d := range []string{top, own} {
		must(t, os.Mkdir(d, 0o700))
	}
	c, err := OpenClone(t.Context(), r, top, own, nil, more...)
	must(t, err)
	return c
}

// What an agent committed comes into pawl's own repository, and what was made there comes
// to where the agent's git reads it.
func TestImportAndLend(t *testing.T) {
	t.Parallel()
	dir, r := repository(t, "r")
	s := own(t, r)
	c := cloneOf(t, r, s.Objects)
	base := gittest.Git(t, dir, "rev-parse", "HEAD")
	must(t, c.NewRepository(t.Context(), nil))
	put(t, filepath.Join(c.Top, "a"), "agent\n")
	gittest.Git(t, c.Top, "commit", "-qam", "agent")
	commit := gittest.Git(t, c.Top, "rev-parse", "HEAD")
	must(t, c.Import(t.Context(), s, base, commit))
	if got := gittest.Git(t, dir, "--git-dir="+s.Dir, "show", commit+":a"); got != "agent" {
		t.Errorf("a is %q", got)
	}
	for _, id := range []string{gittest.Git(t, c.Top, "rev-parse", "HEAD:a"), gittest.Git(t, c.Top, "rev-parse", "HEAD^{tree}"), strings.Repeat("0", 40)} {
		if err := c.Import(t.Context(), s, base, id); !errors.Is(err, ErrBroken) {
			t.Errorf("what is no commit was taken: %v", err)
		}
	}
	again, err := s.CommitAgain(t.Context(), commit, gittest.Git(t, c.Top, "rev-parse", "HEAD^{tree}"), base)
	must(t, err)
	other, err := s.CommitAgain(t.Context(), again, gittest.Git(t, c.Top, "rev-parse", "HEAD^{tree}"), again)
	must(t, err)
	must(t, c.Lend(t.Context(), s, base, other))
	must(t, c.SetHead(t.Context(), Head{Commit: other, Branch: "refs/heads/main"}))
	if got := gittest.Git(t, c.Top, "log", "--format=%s"); got != "agent\nagent\nfirst" {
		t.Errorf("the agent's log is %q", got)
	}
	if got := gittest.Git(t, c.Top, "status", "--porcelain"); got != "" {
		t.Errorf("status %q", got)
	}
	must(t, os.RemoveAll(filepath.Join(c.Top, ".git", "objects", "pack")))
	must(t, os.Symlink(r.Objects, filepath.Join(c.Top, ".git", "objects", "pack")))
	if err := c.Lend(t.Context(), s, base, other); !errors.Is(err, ErrBroken) {
		t.Errorf("lent through a link: %v", err)
	}
}

func TestObeyed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config  [][2]string
		places  []string
		drivers bool
	}{
		"nothing":              {nil, nil, false},
		"hooks that are links": {nil, []string{"real/settings"}, false},
		"hooks":                {[][2]string{{"core.hooksPath", ".githooks"}}, []string{".githooks"}, false},
		"husky's":              {[][2]string{{"core.hooksPath", ".husky/_"}}, []string{".husky/_", ".husky"}, false},
		"hooks elsewhere":      {[][2]string{{"core.hooksPath", "/etc/hooks"}}, nil, false},
		"attributes":           {[][2]string{{"core.attributesFile", "tools/attributes"}}, []string{"tools/attributes"}, false},
		"includes": {[][2]string{{"include.path", "../shared.gitconfig"}, {"includeIf.onbranch:main.path", "../x/y"}},
			[]string{"shared.gitconfig", "x/y"}, false},
		"LFS":           {[][2]string{{"filter.lfs.clean", "git-lfs clean -- %f"}, {"filter.lfs.required", "true"}}, nil, false},
		"a filter":      {[][2]string{{"filter.git-crypt.smudge", "git-crypt smudge"}}, nil, true},
		"a process":     {[][2]string{{"filter.a.b.process", "x"}}, nil, true},
		"a text":        {[][2]string{{"diff.pdf.textconv", "pdftotext"}}, nil, true},
		"a merge":       {[][2]string{{"merge.ours.driver", "true"}}, nil, true},
		"no programs":   {[][2]string{{"diff.pdf.binary", "true"}, {"merge.ours.name", "x"}, {"diff.renames", "true"}, {"merge.tool", "x"}}, nil, false},
		"behind a link": {[][2]string{{"include.path", "../link/settings"}}, []string{"link/settings", "real/settings"}, false},
		"not there yet": {[][2]string{{"core.hooksPath", "link/hooks"}}, []string{"link/hooks", "real/hooks"}, false},
		"programs of the tree": {[][2]string{{"core.fsmonitor", "real/settings"}, {"alias.x", "!sh ./link/settings -v"},
			{"core.sshCommand", "link/none"}, {"diff.x.command", "real"}},
			[]string{"real/settings", "link/settings", "real/settings", "link/none", "real/none"}, true},
		"programs that are not there yet": {[][2]string{{"core.sshCommand", "sh tools/ssh"}, {"credential.helper", "!sh cred"},
			{"core.editor", "tools/ed.sh"}, {"alias.y", "!make -f my.mk"}, {"sequence.editor", "vim"}, {"user.name", "a/b c.d"}},
			[]string{"tools/ssh", "cred", "tools/ed.sh", "my.mk"}, false},
		"in another way": {[][2]string{{"CORE.HOOKSPATH", "./Hooks/"}}, []string{"Hooks"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, r := repository(t, "r")
			for _, kv := range c.config {
				gittest.Git(t, dir, "config", kv[0], kv[1])
			}
			put(t, filepath.Join(dir, "real", "settings"), "")
			if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			if name == "hooks that are links" {
				hooks := filepath.Join(dir, ".git", "hooks")
				put(t, filepath.Join(hooks, "post-commit"), "")
				for name, to := range map[string]string{"pre-commit": "../../link/settings", "pre-push": "/etc/hostname"} {
					if err := os.Symlink(to, filepath.Join(hooks, name)); err != nil {
						t.Fatal(err)
					}
				}
			}
			places, drivers, err := r.Obeyed(t.Context())
			slices.Sort(places)
			slices.Sort(c.places)
			if err != nil || !slices.Equal(places, c.places) || drivers != c.drivers {
				t.Errorf("places %q, drivers %v, %v; want %q, %v", places, drivers, err, c.places, c.drivers)
			}
		})
	}
}

// What the person's variables name is obeyed, too: by git, and by shells that it starts.
func TestObeyedByVariables(t *testing.T) {
	dir, r := repository(t, "r")
	put(t, filepath.Join(dir, "env.sh"), "")
	put(t, filepath.Join(dir, "src", "main"), "")
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(dir, "settings"))
	t.Setenv("BASH_ENV", filepath.Join(dir, "env.sh"))
	t.Setenv("PYTHONPATH", filepath.Join(dir, "src")+":"+filepath.Join(dir, "none"))
	places, _, err := r.Obeyed(t.Context())
	slices.Sort(places)
	if want := []string{"env.sh", "settings"}; err != nil || !slices.Equal(slices.Compact(places), want) {
		t.Errorf("%q, %v; want %q", places, err, want)
	}
}
