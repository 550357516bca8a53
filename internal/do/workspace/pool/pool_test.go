package pool

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/keep/store"
)

func TestTakeCollectRelease(t *testing.T) {
	t.Parallel()
	r := newRig(t, "a", "1\n", "d/b", "2\n", ".gitignore", "*.o\n")
	p := r.open()
	base := r.git(r.top, "rev-parse", "HEAD")
	w := r.take(p, "task-001")
	if w.Base != base || w.Branch != "pawl/task-001" || w.Kept || w.Dir != filepath.Join(r.o.StateDir, "workspaces", "task-001") {
		t.Errorf("workspace %+v", w)
	}
	if got := r.git(w.Dir, "status", "--porcelain=v2", "--branch"); got != "# branch.oid "+base+"\n# branch.head pawl/task-001" {
		t.Errorf("status of a new workspace:\n%s", got)
	}
	r.put(w.Dir, "a", "changed\n")
	r.put(w.Dir, "new file", "new\n")
	r.put(w.Dir, "x.o", "object\n")
	if err := os.Remove(filepath.Join(w.Dir, "d", "b")); err != nil {
		t.Fatal(err)
	}
	commit := r.collect(p, w)
	if got := r.git(r.top, "rev-parse", "refs/pawl/tasks/task-001"); got != commit {
		t.Errorf("refs/pawl/tasks/task-001 is %s, want %s", got, commit)
	}
	if got := r.git(r.top, "diff", "--name-status", base, commit); got != "M\ta\nD\td/b\nA\tnew file" {
		t.Errorf("collected:\n%s", got)
	}
	if got := r.git(r.top, "log", "-1", "--format=%an %ae %cn %s %P", commit); got != "Ann ann@example.com Ann task-001: work "+base {
		t.Errorf("commit is %q", got)
	}
	if got := r.git(w.Dir, "status", "--porcelain=v2", "--branch"); got != "# branch.oid "+commit+"\n# branch.head pawl/task-001" {
		t.Errorf("status after a collect:\n%s", got)
	}
	if again := r.collect(p, w); again != commit {
		t.Errorf("collecting twice gives %s, then %s", commit, again)
	}
	r.release(p, w, Landed)
	if pathExists(w.Dir) {
		t.Error("the folder of landed work is there")
	}
	if got := r.git(r.top, "for-each-ref", "refs/pawl"); got != "" {
		t.Errorf("refs after the landing:\n%s", got)
	}
}

// A board that was put back from a copy does not know the folders that were made since then.
func TestAFolderThatTheBoardDoesNotKnowStays(t *testing.T) {
	t.Parallel()
	r := newRig(t, "a", "1\n")
	w := r.take(r.open(), "task-001")
	r.put(w.Dir, "a", "work\n")
	r.o.Dir, r.o.StateDir, r.o.Store = filepath.Dir(w.Dir), t.TempDir(), nil // the board as it was before
	p := r.open()
	for range 2 {
		next := r.take(p, "task-001")
		notes := strings.Join(next.Notes, "\n")
		if next.Dir == w.Dir || filepath.Dir(next.Dir) != r.o.Dir || !strings.Contains(notes, w.Dir+" stays") {
			t.Errorf("workspace %+v", next)
		}
		r.put(next.Dir, "a", "again\n")
		r.collect(p, next)
		r.release(p, next, Landed)
	}
	if data, err := os.ReadFile(filepath.Join(w.Dir, "a")); err != nil || string(data) != "work\n" {
		t.Errorf("what was there is %q (%v)", data, err)
	}
}

func TestAWarmCloneHasNothingOfItsLastTask(t *testing.T) {
	t.Parallel()
	r := newRig(t, "a", "1\n", "d/b", "2\n", ".gitignore", "*.o\n")
	p := r.open()
	w := r.take(p, "task-001")
	inode, err := folderID(w.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"config", "core.hooksPath", "/tmp/evil"}, {"config", "alias.x", "!touch /tmp/evil"}, {"tag", "leftover"},
		{"checkout", "-q", "-b", "other"}, {"commit", "-q", "--allow-empty", "-m", "other"},
	} {
		r.git(w.Dir, args...)
	}
	r.put(w.Dir, "a", "2\n") // as long as it was
	r.put(w.Dir, "stashed", "x\n")
	r.git(w.Dir, "stash", "-u", "-q")
	r.put(w.Dir, ".git/hooks/post-checkout", "#!/bin/sh\ntouch /tmp/evil\n")
	r.put(w.Dir, "x.o", "object\n")
	r.put(w.Dir, "untracked/deep/file", "x\n")
	r.put(w.Dir, "d/b", "3\n")
	r.git(w.Dir, "init", "-q", "nested")
	r.put(w.Dir, ".gitignore", "\n")
	r.put(w.Own, "tree/runs/x1/index", "as large as the repository\n")
	r.release(p, w, Landed)
	if _, err := os.Stat(filepath.Join(w.Own, "tree", "runs")); !os.IsNotExist(err) {
		t.Errorf("what was known of the task's runs is there: %v", err)
	}

	r.put(r.top, "c", "3\n")
	r.git(r.top, "add", "c")
	r.git(r.top, "commit", "-qm", "second")
	v := r.take(p, "task-002")
	if again, err := folderID(v.Dir); err != nil || again != inode {
		t.Errorf("the clone is another one: %s, %s, %v", inode, again, err)
	}
	if got := r.git(v.Dir, "status", "--porcelain", "--ignored"); got != "" {
		t.Errorf("left of the last task:\n%s", got)
	}
	if got := r.git(v.Dir, "for-each-ref", "--format=%(refname)"); got != "refs/heads/main\nrefs/heads/pawl/task-002" {
		t.Errorf("refs:\n%s", got)
	}
	if got := r.git(v.Dir, "rev-parse", "HEAD"); got != r.git(r.top, "rev-parse", "HEAD") {
		t.Errorf("HEAD is %s", got)
	}
	if got := r.git(v.Dir, "config", "--local", "--list"); strings.Contains(got, "evil") {
		t.Errorf("configuration:\n%s", got)
	}
	if hooks, err := os.ReadDir(filepath.Join(v.Dir, ".git", "hooks")); err != nil || len(hooks) > 0 {
		t.Errorf("hooks %v, %v", hooks, err)
	}
	for name, want := range map[string]string{"a": "1\n", "d/b": "2\n", "c": "3\n", ".gitignore": "*.o\n"} {
		if got, err := os.ReadFile(filepath.Join(v.Dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
	// What the first task had and never collected is not lost.
	kept, err := p.Recoveries(t.Context(), "task-001")
	if err != nil || len(kept) != 1 {
		t.Fatalf("recoveries %v, %v", kept, err)
	}
	if got := r.git(r.top, "ls-tree", "-r", "--name-only", kept[0].Commit); got != ".gitignore\na\nd/b\nuntracked/deep/file\nx.o" {
		t.Errorf("recovered:\n%s", got)
	}
	if got := r.git(r.top, "log", "--format=%s", kept[0].Commit); !strings.Contains(got, "other") || !strings.Contains(got, "WIP on other") {
		t.Errorf("recovered history:\n%s", got)
	}
}

func TestAKeptWorkspaceIsTakenAsItWas(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.open()
	w := r.take(p, "task-001")
	r.put(w.Dir, "a", "work\n")
	locks := []string{".git/index.lock", ".git/HEAD.lock", ".git/refs/heads/pawl/task-001.lock"} // of a git that was killed
	for _, name := range locks {
		r.put(w.Dir, name, "")
	}
	if _, err := p.Take(t.Context(), "task-001", "HEAD"); !errors.Is(err, ErrTaken) {
		t.Errorf("taking it twice: %v", err)
	}
	r.release(p, w, Keep("it failed"))
	r.git(r.top, "commit", "-q", "--allow-empty", "-m", "next")
	v := r.take(p, "task-001")
	if !v.Kept || v.Base != w.Base || v.Ports != w.Ports {
		t.Errorf("taken again %+v, was %+v", v, w)
	}
	if got, err := os.ReadFile(filepath.Join(v.Dir, "a")); err != nil || string(got) != "work\n" {
		t.Errorf("a is %q, %v", got, err)
	}
	for _, name := range locks {
		if pathExists(filepath.Join(v.Dir, name)) {
			t.Errorf("%s is left", name)
		}
	}
	r.release(p, v, Stopped("you stopped it"))
	kept, err := p.Recoveries(t.Context(), "task-001")
	if err != nil || len(kept) != 1 || r.git(r.top, "show", kept[0].Commit+":a") != "work" {
		t.Errorf("recoveries %v, %v", kept, err)
	}
}

func TestAnIntegrationWorkspaceHasTheFilesOfItsCommit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.open()
	w, err := p.Integration(t.Context(), "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.Integration(t.Context(), "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	if w.Dir == v.Dir || w.Ports == v.Ports {
		t.Errorf("two at once: %+v and %+v", w, v)
	}
	r.put(w.Dir, "left", "by a gate\n")
	r.release(p, w, Landed)
	r.release(p, v, Landed)
	if got := r.git(r.top, "for-each-ref", "refs/pawl"); got != "" {
		t.Errorf("refs:\n%s", got)
	}
	all, err := p.List(t.Context())
	if err != nil || len(all) != 2 || all[0].State != warm || all[1].State != warm {
		t.Errorf("%+v, %v", all, err)
	}
}

// The user's own files, refs, index, stash and configuration are the same
// before and after, but for what is under refs/pawl/.
func TestTheUsersRepositoryIsUntouched(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(r.top, "a", "stashed\n")
	r.git(r.top, "stash", "-q")
	r.put(r.top, "a", "staged\n")
	r.git(r.top, "add", "a")
	r.put(r.top, "a", "not staged\n")
	r.put(r.top, "untracked", "x\n")
	r.git(r.top, "tag", "-am", "one", "v1")
	before := r.everything()
	p := r.open()
	w := r.take(p, "task-001")
	r.put(w.Dir, "a", "work\n")
	r.collect(p, w)
	r.release(p, w, Keep("kept"))
	if _, err := p.Clean(t.Context(), []string{"task-001"}, false); err != nil {
		t.Fatal(err)
	}
	after := r.everything()
	for name, sum := range before {
		if after[name] != sum {
			t.Errorf("%s changed: %s, was %s", name, after[name], sum)
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			t.Errorf("%s is new", name)
		}
	}
}

// everything is what the user has: each file of the work tree and of .git with
// its mode, content and time, objects and refs/pawl aside.
func (r *rig) everything() map[string]string {
	r.t.Helper()
	all := map[string]string{}
	err := filepath.Walk(r.top, func(name string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(r.top, name)
		if err != nil {
			return err
		}
		if rel == ".git/objects" || rel == ".git/refs/pawl" {
			return filepath.SkipDir
		}
		if info.IsDir() {
			all[rel] = info.Mode().String()
			return nil
		}
		data, err := os.ReadFile(name)
		all[rel] = info.Mode().String() + info.ModTime().String() + string(data)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// Work that was collected while it went on is collected as the same commit at its end:
// whoever has that needs nothing else.
func TestTheSameWorkIsOneCommit(t *testing.T) {
	r := newRig(t)
	p := r.open()
	w := r.take(p, "task-001")
	r.put(w.Dir, "a", "of the agent\n")
	_, first, err := p.Copy(t.Context(), w.ID, w.ID+": work")
	if err != nil {
		t.Fatal(err)
	}
	// The same, a day before: two commits of one second are one anyway.
	raw := r.git(r.top, "cat-file", "commit", first)
	earlier := regexp.MustCompile(`(?m)^(author|committer) (.*) \d+ (\S+)$`).ReplaceAllString(raw, "$1 $2 1700000000 $3")
	if err := os.WriteFile(filepath.Join(r.dir, "earlier"), []byte(earlier+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	earlier = r.git(r.top, "hash-object", "-t", "commit", "-w", filepath.Join(r.dir, "earlier"))
	if _, err := p.changeRow(t.Context(), w.ID, func(row *store.Workspace) { row.Head = earlier }); err != nil {
		t.Fatal(err)
	}
	if commit := r.collect(p, w); commit != earlier {
		t.Errorf("it is %s, not %s", commit, earlier)
	}
	r.put(w.Dir, "a", "changed again\n")
	r.git(w.Dir, "reset", "-q", "--soft", "HEAD~")
	if commit := r.collect(p, w); commit == earlier || r.git(r.top, "show", commit+":a") != "changed again" {
		t.Errorf("what changed was not collected: %s", commit)
	}
}
