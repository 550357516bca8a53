package merge

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// among makes the rig one of several machines, which share the board.
func (r *rig) among() (bare, colleague string) {
	r.t.Helper()
	bare, colleague = r.upstream()
	r.o.Travel, r.o.Policy.Push = "origin", true
	return bare, colleague
}

// other is another machine: a clone of its own, and the same board.
func (r *rig) other(bare string) *rig {
	r.t.Helper()
	m := &rig{t: r.t, dir: folder(r.t), state: folder(r.t), store: r.store}
	m.git("clone", "-q", bare, ".")
	repo, err := git.OpenStore(r.t.Context(), m.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	m.o = options(m.state, repo, m.store)
	m.o.Gates, m.o.Travel, m.o.Policy.Push, m.o.Notify = r.o.Gates, "origin", true, m.note
	return m
}

// own commits something of a person's in the machine's clone.
func (r *rig) own(name string) {
	r.t.Helper()
	r.write(name, "own\n")
	r.git("add", name)
	r.git("commit", "-qm", "Own "+name)
}

// Where machines share the work the target is the remote's branch. What a person, or a
// run of a person's, commits in a clone is not verified with what lands, not pushed, and
// stops nothing: not there, and not on the machine that lands next.
func TestCommitsOfAClone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.o.Gates = gates("! test -f own.txt && ! test -f other.txt")
	bare, _ := r.among()
	base := r.git("rev-parse", "main")
	first := r.lands(base, "first.txt", "landed\n")
	if here, there := r.git("rev-parse", "main"), gittest.Git(t, bare, "rev-parse", "main"); here != there {
		t.Fatalf("the branch here is at %s, the remote at %s", here, there)
	}
	r.own("own.txt")
	own := r.git("rev-parse", "main")
	second, third := r.lands(base, "second.txt", "landed\n"), r.lands(base, "third.txt", "landed\n")
	if now := r.git("rev-parse", "main"); now != own {
		t.Errorf("the person's branch was moved to %s", now)
	}
	host, _ := os.Hostname()
	told := r.said(queue.NoteWarning)
	if len(told) != 2 { // once by each of the two that landed
		t.Errorf("told %q", told)
	}
	for _, part := range []string{"Own own.txt", r.dir, host, own[:7]} {
		if !strings.Contains(strings.Join(told, "\n"), part) {
			t.Errorf("%q is not in %q", part, told)
		}
	}

	m := r.other(bare)
	m.own("other.txt")
	fourth := m.lands(base, "fourth.txt", "landed\n")
	if err := m.queue().Ask(t.Context(), queue.Ask{Wish: queue.WishResume}); err != nil {
		t.Fatal(err)
	}
	m.drain(m.queue())
	for _, id := range []string{first, second, third, fourth} {
		if s := r.status(id); s != board.Done {
			t.Errorf("%s is %s: %v", id, s, r.left())
		}
	}
	if n := append(r.said(queue.NoteStopped), m.said(queue.NoteStopped)...); len(n) > 0 {
		t.Errorf("told %q", n)
	}
	files := gittest.Git(t, bare, "ls-tree", "--name-only", "main")
	if want := "a.txt\nb.txt\nfirst.txt\nfourth.txt\nsecond.txt\nthird.txt"; files != want {
		t.Errorf("the remote has %q", files)
	}
}

// A file of a person's does not hold up what lands on the remote: the clone stays where
// it is, and follows when the file is away.
func TestAFileInTheWayOfAClone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bare, _ := r.among()
	before := r.git("rev-parse", "main")
	r.write("a.txt", "mine, not committed\n")
	id := r.land("a.txt", "landed\n")
	if s := r.status(id); s != board.Done {
		t.Fatalf("it is %s: %v", s, r.left())
	}
	if r.git("rev-parse", "main") != before || r.read("a.txt") != "mine, not committed\n" {
		t.Error("the person's files were moved")
	}
	if told := r.said(queue.NoteWarning); len(told) != 1 || !strings.Contains(told[0], "a.txt is changed or untracked") {
		t.Errorf("told %q", told)
	}
	r.git("checkout", "-q", "a.txt")
	r.land("b.txt", "landed\n")
	if here, there := r.git("rev-parse", "main"), gittest.Git(t, bare, "rev-parse", "main"); here != there {
		t.Errorf("the branch here is at %s, the remote at %s", here, there)
	}
	if got := r.git("status", "--porcelain"); got != "" {
		t.Errorf("the checkout: %q", got)
	}
}

// A branch that was rewritten at the remote, or is gone there, stops the queue, which
// says where that is. What a person took out of it is not pushed again.
func TestARewrittenBranchOfTheRemote(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		r := newRig(t)
		bare, _ := r.among()
		before := gittest.Git(t, bare, "rev-parse", "main")
		r.land("first.txt", "landed\n")
		rewrite := func() { gittest.Git(t, bare, "update-ref", "refs/heads/main", before) }
		if late {
			r.o.point = func(name string) {
				if name == "before sent" {
					rewrite()
				}
			}
		} else {
			rewrite()
		}
		id := r.lands(before, "second.txt", "landed\n")
		if n := r.said(queue.NoteStopped); len(n) != 1 || !strings.Contains(n[0], "main at origin was rewritten") {
			t.Errorf("told %q", n)
		}
		if now := gittest.Git(t, bare, "rev-parse", "main"); now != before || r.status(id) == board.Done {
			t.Errorf("the remote is at %s; it is %s", now, r.status(id))
		}
		r.o.point = nil
		if err := r.queue().Ask(t.Context(), queue.Ask{Wish: queue.WishResume}); err != nil {
			t.Fatal(err)
		}
		r.drain(r.queue())
		if s := r.status(id); s != board.Done {
			t.Errorf("then it is %s: %v", s, r.left())
		}
		if files := gittest.Git(t, bare, "ls-tree", "--name-only", "main"); files != "a.txt\nb.txt\nsecond.txt" {
			t.Errorf("the remote has %q", files)
		}

		gittest.Git(t, bare, "update-ref", "-d", "refs/heads/main")
		r.lands(before, "third.txt", "landed\n")
		if n := r.said(queue.NoteStopped); len(n) != 2 || !strings.Contains(n[1], "there is no branch main at origin") {
			t.Errorf("told %q", n)
		}
	}
}

// What was pushed counts, whatever ended before that was stored, and whoever goes on.
func TestAPushThatWasCutOff(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bare, colleague := r.among()
	id, commit := r.task("One", "main", "one.txt", "landed\n")
	q := r.queue()
	r.add(q, id, commit, "One")
	q.o.point = func(name string) {
		if name == "after sent" {
			_ = r.store.Close()
		}
	}
	if err := q.Drain(t.Context()); err == nil {
		t.Fatal("it was stored")
	}
	gittest.Git(t, colleague, "pull", "-q")
	r.colleagueCommits(colleague, "theirs.txt")
	r.open()
	if s := r.status(id); s == board.Done {
		t.Fatal("it was stored")
	}
	m := r.other(bare)
	m.drain(m.queue())
	if s := r.status(id); s != board.Done {
		t.Errorf("it is %s: %v", s, r.left())
	}
	if n := strings.Count(gittest.Git(t, bare, "log", "--format=%B", "main"), "Pawl-Task: "+id); n != 1 {
		t.Errorf("it landed %d times", n)
	}
}

// The database lost that a run's work landed, and the work was done again, in other words. It
// is not landed twice, and is no conflict.
func TestWhatLandedIsNotLandedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bare, _ := r.among()
	base := r.git("rev-parse", "main")
	q := r.queue()
	for i, text := range []string{"done\n", "done again\n"} {
		id, commit := r.task("Change", base, "first.txt", text)
		if err := q.Add(t.Context(), Entry{ID: id, Run: "run1", Commit: commit, Base: base, Title: "Change"}); err != nil {
			t.Fatal(err)
		}
		r.drain(q)
		if s := r.status(id); s != board.Done {
			t.Errorf("try %d is %s: %v", i, s, r.left())
		}
	}
	if got := gittest.Git(t, bare, "show", "main:first.txt"); got != "done" {
		t.Errorf("the remote has %q", got)
	}
	if n := gittest.Git(t, bare, "rev-list", "--count", "--first-parent", base+"..main"); n != "1" {
		t.Errorf("%s commits landed", n)
	}
}

// Another machine landed, and then the remote went away. Who takes over has an old copy of the
// remote's branch, and concludes nothing from it: nothing was rewritten, and no work is lost.
func TestTakingOverWhileTheRemoteIsAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bare, _ := r.among()
	base := r.git("rev-parse", "main")
	m := r.other(bare)
	m.lands(base, "first.txt", "landed\n")
	r.lands(base, "second.txt", "landed\n")
	q := m.queue()
	id, commit := m.task("Third", base, "third.txt", "landed\n")
	m.add(q, id, commit, "Third")
	if err := os.Rename(bare, bare+".away"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	q.o.Notify = func(n queue.Note) {
		m.note(n)
		if n.Kind == queue.NoteTrouble || n.Kind == queue.NoteStopped {
			cancel()
		}
	}
	if err := q.Work(ctx); err != nil {
		t.Fatal(err)
	}
	if told := m.said(queue.NoteTrouble); len(told) != 1 || !strings.Contains(told[0], "origin") {
		t.Errorf("told %q", told)
	}
	if done, err := q.Absorb(t.Context()); done || err != nil {
		t.Errorf("what is asked is taken in: %v (%v)", done, err)
	}
	if err := os.Rename(bare+".away", bare); err != nil {
		t.Fatal(err)
	}
	m.drain(m.queue())
	if s := m.status(id); s != board.Done {
		t.Errorf("it is %s: %v", s, m.left())
	}
	for _, told := range append(m.said(queue.NoteStopped), m.said(queue.NoteWarning)...) {
		t.Errorf("told %q", told)
	}
}
