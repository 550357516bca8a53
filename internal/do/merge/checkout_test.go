package merge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// land queues one change and lands what can be.
func (r *rig) land(files ...string) (id string) {
	r.t.Helper()
	return r.lands(r.git("rev-parse", "main"), files...)
}

// lands has a change land that began at a commit.
func (r *rig) lands(base string, files ...string) (id string) {
	r.t.Helper()
	q := r.queue()
	id, commit := r.task("Change", base, files...)
	r.add(q, id, commit, "Change")
	r.drain(q)
	return id
}

func TestLocalChangesElsewhereStay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("mode.sh", "#!/bin/sh\n")
	r.git("add", ".")
	r.git("commit", "-qm", "more")
	base := r.git("rev-parse", "main")
	r.write("b.txt", "edited, not staged\n")
	r.write("staged.txt", "staged\n")
	r.git("add", "staged.txt")
	r.write("staged.txt", "staged, then edited\n")
	r.write("untracked name\nwith newline", "mine\n")
	r.git("stash", "list")
	before := r.git("status", "--porcelain", "-z") + r.git("diff") + r.git("diff", "--cached")
	id := r.land("a.txt", "landed\n", "dir/sub/new.txt", "new\n", "mode.sh", "-")
	if s := r.status(id); s != board.Done {
		t.Fatalf("it is %s: %v", s, r.left())
	}
	if after := r.git("status", "--porcelain", "-z") + r.git("diff") + r.git("diff", "--cached"); after != before {
		t.Errorf("before %q\nafter  %q", before, after)
	}
	if r.read("a.txt")+r.read("dir/sub/new.txt")+r.read("staged.txt")+r.read("b.txt") != "landed\nnew\nstaged, then edited\nedited, not staged\n" {
		t.Error("files are not as they are to be")
	}
	if _, err := os.Lstat(filepath.Join(r.dir, "mode.sh")); err == nil {
		t.Error("a file that was deleted is there")
	}
	r.audit(base)
}

func TestAnOverlapWaits(t *testing.T) {
	t.Parallel()
	for name, overlap := range map[string]func(r *rig){
		"edited": func(r *rig) { r.write("a.txt", "mine\n") },
		"staged": func(r *rig) { r.write("a.txt", "mine\n"); r.git("add", "a.txt") },
		"staged and undone": func(r *rig) {
			r.write("a.txt", "mine\n")
			r.git("add", "a.txt")
			r.git("show", "HEAD:b.txt")
			r.write("a.txt", "one\n")
		},
		"deleted":                  func(r *rig) { _ = os.Remove(filepath.Join(r.dir, "a.txt")) },
		"untracked":                func(r *rig) { r.write("new.txt", "mine\n") },
		"ignored":                  func(r *rig) { r.write(".git/info/exclude", "new.txt\n"); r.write("new.txt", "mine\n") },
		"in the place of a folder": func(r *rig) { r.write("dir", "mine\n") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			base := r.git("rev-parse", "main")
			q := r.queue()
			other, commit := r.task("Other", base, "c.txt", "c\n")
			overlap(r)
			before := r.git("status", "--porcelain", "-z", "--ignored") + r.git("diff") + r.git("diff", "--cached")
			id, own := r.task("Change", base, "a.txt", "landed\n", "new.txt", "new\n", "dir/x.txt", "x\n")
			r.add(q, id, own, "Change")
			r.add(q, other, commit, "Other")
			r.drain(q)
			if s := r.status(other); s != board.Done {
				t.Errorf("the other is %s: %v", s, r.left())
			}
			left := r.left()
			if len(left) != 1 || !strings.HasPrefix(left[0], id+" waiting: ") || !strings.Contains(left[0], r.dir) {
				t.Errorf("left %q", left)
			}
			if n := len(r.said(queue.NoteWaiting)); n != 1 {
				t.Errorf("told %q", r.said(queue.NoteWaiting))
			}
			if after := r.git("status", "--porcelain", "-z", "--ignored") + r.git("diff") + r.git("diff", "--cached"); after != before {
				t.Errorf("before %q\nafter  %q", before, after)
			}
			r.audit(base)
		})
	}
}

func TestAMergeUnderWayWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.git("checkout", "-q", "-b", "side")
	r.write("b.txt", "side\n")
	r.git("commit", "-qam", "side")
	r.git("checkout", "-q", "main")
	r.write("b.txt", "main\n")
	r.git("commit", "-qam", "main")
	r.git("checkout", "-q", "side")
	_ = r.tryGit("rebase", "-q", "main") // stops at the conflict: main itself is not checked out
	if id := r.land("c.txt", "c\n"); r.status(id) != board.Done {
		t.Errorf("a rebase of another branch: %v", r.left())
	}
	r.git("rebase", "--abort")
	r.git("checkout", "-q", "main")
	_ = r.tryGit("rebase", "-q", "side") // of main: it will come back to main
	id := r.land("d.txt", "d\n")
	if left := r.left(); len(left) != 1 || !strings.Contains(left[0], "a rebase is in progress in "+r.dir) {
		t.Errorf("a rebase of the target: %q", left)
	}
	if r.status(id) == board.Done {
		t.Error("it landed")
	}
}

func (r *rig) tryGit(args ...string) error { _, err := try(r.dir, args...); return err }

func TestDetachedLinkedAndOtherBranches(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	base := r.git("rev-parse", "main")
	r.git("checkout", "-q", "--detach")
	linked := filepath.Join(folder(t), "linked")
	r.git("worktree", "add", "-q", linked, "main")
	gone := filepath.Join(folder(t), "gone")
	r.git("worktree", "add", "-q", "--force", gone, "main")
	if err := os.RemoveAll(gone); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(linked, "b.txt"), []byte("edited in the linked one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if id := r.land("a.txt", "landed\n"); r.status(id) != board.Done {
		t.Fatalf("%v", r.left())
	}
	if got := r.git("rev-parse", "HEAD"); got != base || r.read("a.txt") == "landed\n" {
		t.Errorf("the detached checkout moved: %s", got)
	}
	if got := string(readFile(t, filepath.Join(linked, "a.txt"))); got != "landed\n" {
		t.Errorf("the linked work tree has %q", got)
	}
	if got := gittest.Git(t, linked, "status", "--porcelain"); got != " M b.txt" {
		t.Errorf("the linked work tree: %q", got)
	}
}

func TestABareRepository(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bare := filepath.Join(folder(t), "bare.git")
	gittest.Git(t, r.dir, "clone", "-q", "--bare", r.dir, bare)
	linked := filepath.Join(folder(t), "linked")
	gittest.Git(t, bare, "worktree", "add", "-q", linked, "main")
	repo, err := git.OpenStore(t.Context(), bare)
	if err != nil {
		t.Fatal(err)
	}
	base := r.git("rev-parse", "main")
	id, commit := r.task("Change", base, "a.txt", "landed\n")
	gittest.Git(t, bare, "fetch", "-q", r.dir, commit+":refs/pawl/x")
	r.o.Repo, r.o.Gates, r.o.Local = repo, gates("grep landed a.txt"), true
	r.o.Integration = integration(r.state, repo)
	q := r.queue()
	r.add(q, id, commit, "Change")
	r.drain(q)
	if s := r.status(id); s != board.Done {
		t.Fatalf("it is %s: %v %v", s, r.left(), r.notes)
	}
	if got := string(readFile(t, filepath.Join(linked, "a.txt"))) + gittest.Git(t, linked, "status", "--porcelain"); got != "landed\n" {
		t.Errorf("the linked work tree: %q", got)
	}
}

func TestTheIndexIsHeldBySomebodyElse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	lock := filepath.Join(r.dir, ".git", "index.lock")
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	id := r.land("a.txt", "landed\n")
	if left := r.left(); len(left) != 1 || !strings.Contains(left[0], "another git command holds the index") {
		t.Errorf("left %q", left)
	}
	if _, err := os.Lstat(lock); err != nil {
		t.Error("somebody else's lock is gone")
	}
	if r.status(id) == board.Done {
		t.Error("it landed")
	}
}

func TestTheTargetMovesMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	once := false
	r.o.point = func(name string) {
		if name != "before ref" || once {
			return
		}
		once = true
		tree := r.git("rev-parse", "main^{tree}")
		r.git("update-ref", "refs/heads/main", r.git("commit-tree", tree, "-p", "main", "-m", "by a person"))
	}
	id := r.land("a.txt", "landed\n")
	if s := r.status(id); s != board.Done {
		t.Fatalf("it is %s: %v", s, r.left())
	}
	if got := r.git("log", "--first-parent", "--format=%s", "-2", "main"); got != id+": Change\nby a person" {
		t.Errorf("the history is %q", got)
	}
	if got := r.git("status", "--porcelain"); got != "" {
		t.Errorf("the checkout: %q", got)
	}
}

func TestARewrittenTargetPausesAndNamesWhatIsLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	base := r.git("rev-parse", "main")
	first := r.land("a.txt", "landed\n")
	r.git("reset", "-q", "--hard", base)
	r.write("z.txt", "z\n")
	r.git("add", ".")
	r.git("commit", "-qm", "another history")
	second := r.land("b.txt", "landed\n")
	if s := r.status(second); s == board.Done {
		t.Error("the queue went on")
	}
	if n := r.said(queue.NoteStopped); len(n) != 1 || !strings.Contains(n[0], "rewritten") {
		t.Errorf("told %q", n)
	}
	var lost []string
	for _, n := range r.notes {
		if n.Kind == queue.NoteWarning {
			lost = append(lost, n.Paths...)
		}
	}
	equal(t, "lost", lost, []string{first})
	if s := r.status(first); s != board.Done {
		t.Errorf("the lost one is %s", s)
	}
	q := r.queue()
	if err := q.Ask(t.Context(), queue.Ask{Wish: queue.WishResume}); err != nil {
		t.Fatal(err)
	}
	r.drain(q)
	if s := r.status(second); s != board.Done {
		t.Errorf("after the resume it is %s: %v", s, r.left())
	}
}
