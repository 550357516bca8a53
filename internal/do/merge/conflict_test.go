package merge

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// conflicting lands one change and queues another that was made beside it.
func (r *rig) conflicting(first, second []string) (id string) {
	r.t.Helper()
	base := r.git("rev-parse", "main")
	q := r.queue()
	other, commit := r.task("Theirs", base, first...)
	r.add(q, other, commit, "Theirs")
	r.drain(q)
	id, commit = r.task("Mine", base, second...)
	r.add(q, id, commit, "Mine")
	r.drain(q)
	return id
}

func TestSimpleConflictsAreSettledAndVerified(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first, second []string
		want          map[string]string
	}{
		"both added":      {[]string{"b.txt", "b\ntheirs\n"}, []string{"b.txt", "b\nmine\n"}, map[string]string{"b.txt": "b\ntheirs\nmine\n"}},
		"blanks":          {[]string{"b.txt", "  b\n"}, []string{"b.txt", "c\n"}, map[string]string{"b.txt": "c\n"}},
		"without newline": {[]string{"b.txt", "b\ntheirs"}, []string{"b.txt", "b\nmine"}, map[string]string{"b.txt": "b\ntheirs\nmine\n"}},
		"two places":      {[]string{"a.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\nx\n", "b.txt", "b\nx\n"}, []string{"a.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\ny\n", "b.txt", "b\ny\n"}, map[string]string{"a.txt": "one\ntwo\nthree\nfour\nfive\nsix\nseven\nx\ny\n", "b.txt": "b\nx\ny\n"}},
		"checksums":       {[]string{"go.sum", "a\nc\n"}, []string{"go.sum", "a\nb\n"}, map[string]string{"go.sum": "a\nb\nc\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			base := r.git("rev-parse", "main")
			r.o.Gates = gates("true")
			id := r.conflicting(tt.first, tt.second)
			if s := r.status(id); s != board.Done {
				t.Fatalf("it is %s: %v", s, r.left())
			}
			for path, want := range tt.want {
				if got := r.read(path); got != want {
					t.Errorf("%s is %q, want %q", path, got, want)
				}
			}
			if n := r.said(queue.NoteSettled); len(n) != 1 {
				t.Errorf("told %q", n)
			}
			r.audit(base)
		})
	}
}

// resolver is an agent that makes what a function says.
type resolver struct {
	mu    sync.Mutex
	asked []Problem
	make  func(p Problem, n int) (string, error)
}

func (a *resolver) resolve(_ context.Context, p Problem) (string, error) {
	a.mu.Lock()
	a.asked = append(a.asked, p)
	n := len(a.asked)
	a.mu.Unlock()
	return a.make(p, n)
}

func TestAMediumConflictGoesToAnAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	base := r.git("rev-parse", "main")
	r.o.Gates = gates("! grep -q '<<<' a.txt")
	a := &resolver{}
	a.make = func(p Problem, n int) (string, error) {
		if n == 1 {
			return "", errors.New("the agent gave up")
		}
		// A merge of both, as an agent makes it in its clone.
		clone := folder(t)
		gittest.Git(t, clone, "clone", "-q", "--shared", r.dir, ".")
		gittest.Git(t, clone, "checkout", "-q", "--detach", p.Tip)
		_, _ = try(clone, "merge", "-q", p.Entry.Commit)
		if err := os.WriteFile(filepath.Join(clone, "a.txt"), []byte("one\nTWO\n2\nthree\n"), 0o600); err != nil {
			t.Error(err)
		}
		gittest.Git(t, clone, "commit", "-qam", "both")
		commit := gittest.Git(t, clone, "rev-parse", "HEAD")
		r.git("fetch", "-q", clone, commit+":refs/pawl/tasks/solved")
		return commit, nil
	}
	r.o.Resolve = a.resolve
	id := r.conflicting([]string{"a.txt", "one\nTWO\nthree\n"}, []string{"a.txt", "one\n2\nthree\n"})
	if s := r.status(id); s != board.Done {
		t.Fatalf("it is %s: %v", s, r.left())
	}
	if got := r.read("a.txt"); got != "one\nTWO\n2\nthree\n" {
		t.Errorf("a.txt is %q", got)
	}
	if len(a.asked) != 2 {
		t.Fatalf("asked %d times", len(a.asked))
	}
	p := a.asked[0]
	if p.Entry.Title != "Mine" || p.Problem.Class != queue.Medium || len(p.Problem.Conflict.Files) != 1 || len(p.Landed) != 1 || !strings.Contains(p.Landed[0].Message, ": Theirs") {
		t.Errorf("the agent was told %+v", p)
	}
	r.audit(base)
}

func TestAnAgentThatFailsLeavesItToAPerson(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := &resolver{make: func(Problem, int) (string, error) { return "", nil }}
	r.o.Resolve = a.resolve
	id := r.conflicting([]string{"a.txt", "one\nTWO\nthree\n"}, []string{"a.txt", "one\n2\nthree\n"})
	if s := r.status(id); s != board.Blocked {
		t.Errorf("it is %s", s)
	}
	if len(a.asked) != 2 {
		t.Errorf("asked %d times", len(a.asked))
	}
	equal(t, "left", r.left(), []string{id + " parked: the agent made no commit; it conflicts with main: 1 file, 1 line (a.txt) (after 2 attempts of an agent)"})
}

// An agent that cannot work now is started again, and that is no attempt.
func TestAnAgentThatCannotWorkIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := &resolver{make: func(_ Problem, n int) (string, error) {
		if n <= 3 {
			return "", &LaterError{Why: "the disk is full"}
		}
		return "", nil
	}}
	r.o.Resolve = a.resolve
	id := r.conflicting([]string{"a.txt", "one\nTWO\nthree\n"}, []string{"a.txt", "one\n2\nthree\n"})
	if len(a.asked) != 5 { // three in vain, and the two attempts that are allowed
		t.Errorf("asked %d times", len(a.asked))
	}
	equal(t, "told", r.said(queue.NoteWaiting), []string{id + " its agent cannot run now; pawl tries again: the disk is full"})
	equal(t, "left", r.left(), []string{id + " parked: the agent made no commit; it conflicts with main: 1 file, 1 line (a.txt) (after 2 attempts of an agent)"})
}

func TestComplexConflictsGoToAPerson(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first, second []string
		why           string
	}{
		"deleted":             {[]string{"a.txt", "-"}, []string{"a.txt", "changed\n"}, "a.txt: a modify/delete conflict"},
		"binary":              {[]string{"b.txt", "\x00one"}, []string{"b.txt", "\x00two"}, "b.txt: a binary file was changed on both sides"},
		"long":                {[]string{"a.txt", strings.Repeat("theirs\n", 30)}, []string{"a.txt", strings.Repeat("mine\n", 30)}, "1 file, 30 lines (a.txt)"},
		"a file and a folder": {[]string{"x", "file\n"}, []string{"x/y", "below\n"}, "a file/directory conflict"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			a := &resolver{make: func(Problem, int) (string, error) { return "", nil }}
			r.o.Resolve = a.resolve
			id := r.conflicting(tt.first, tt.second)
			left := r.left()
			if len(left) != 1 || !strings.HasPrefix(left[0], id+" parked: it conflicts with main: ") || !strings.Contains(left[0], tt.why) {
				t.Errorf("left %q, want %s", left, tt.why)
			}
			if s := r.status(id); s != board.Blocked || len(a.asked) > 0 {
				t.Errorf("it is %s, the agent was asked %d times", s, len(a.asked))
			}
		})
	}
}

func TestOthersAreToldOfConflictsToCome(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	base := r.git("rev-parse", "main")
	q := r.queue()
	first, commit := r.task("First", base, "a.txt", "one\nTWO\n")
	second, other := r.task("Second", base, "a.txt", "one\n2\n")
	third, apart := r.task("Third", base, "c.txt", "c\n")
	for _, e := range []Entry{
		{ID: first, Commit: commit, Title: "First"},
		{ID: second, Commit: other, Title: "Second", Needs: []string{"task-099"}},
		{ID: third, Commit: apart, Title: "Third", Needs: []string{"task-099"}},
	} {
		if err := q.Add(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	r.o.Policy.Batch = 1
	r.drain(r.queue())
	equal(t, "told", r.said(queue.NoteAhead), []string{second + " will conflict with main in a.txt"})
}

func TestAnAgentThatDropsASideIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		solve func(*rig, Problem) string
		want  string
	}{
		"the target as it was": {func(r *rig, p Problem) string {
			return r.git("commit-tree", p.Tip+"^{tree}", "-p", p.Tip, "-p", p.Entry.Commit, "-m", "theirs")
		}, "the agent merged nothing of the task"},
		"something else": {func(r *rig, p Problem) string {
			return r.commit("else", p.Tip, "other.txt", "other\n")
		}, "the agent merged nothing of the task"},
		"one of two files": {func(r *rig, p Problem) string {
			return r.commit("part", p.Tip, "new.txt", "new\n")
		}, "the agent dropped what the task changed in \"a.txt\""},
		"one of two places": {func(r *rig, p Problem) string {
			return r.commit("place", p.Tip, "a.txt", "one\nTWO\nthree\n4\n5\n", "new.txt", "new\n")
		}, "the agent's merge is not whole: a.txt lacks what the task has there"},
		"markers": {func(r *rig, p Problem) string {
			return r.commit("marks", p.Tip, "a.txt", "one\n<<<<<<< HEAD\nTWO\n=======\n2\n>>>>>>> c0ffee\nthree\n4\n5\n", "new.txt", "new\n")
		}, "the agent's merge is not whole: a.txt still has the markers of its conflict"},
		"the target's lines": {func(r *rig, p Problem) string {
			return r.commit("mine", p.Tip, "a.txt", "one\n2\nthree\n4\n5\n", "new.txt", "new\n")
		}, "the agent's merge is not whole: a.txt lacks what the target has there"},
	} {
		r := newRig(t)
		a := &resolver{}
		a.make = func(p Problem, _ int) (string, error) { return tt.solve(r, p), nil }
		r.o.Resolve = a.resolve
		id := r.conflicting([]string{"a.txt", "one\nTWO\nthree\n"},
			[]string{"a.txt", "one\n2\nthree\n4\n5\n", "new.txt", "new\n"})
		if left := r.left(); len(left) != 1 || !strings.Contains(left[0], tt.want) {
			t.Errorf("%s: left %q", name, left)
		}
		if s := r.status(id); s != board.Blocked {
			t.Errorf("%s: it is %s", name, s)
		}
	}
}

func TestWithoutAnAgentAPersonIsAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, stop := context.WithCancel(t.Context())
	a := &resolver{}
	a.make = func(Problem, int) (string, error) {
		stop() // pawl ends while the agent works
		<-ctx.Done()
		return "", ctx.Err()
	}
	base := r.git("rev-parse", "main")
	first, commit := r.task("First", base, "a.txt", "one\nTWO\nthree\n")
	second, other := r.task("Second", base, "a.txt", "one\n2\nthree\n")
	r.o.Resolve = a.resolve
	q := r.queue()
	r.add(q, first, commit, "First")
	r.add(q, second, other, "Second")
	if err := q.Work(ctx); err != nil {
		t.Fatal(err)
	}
	if left := r.left(); len(left) != 1 || !strings.HasPrefix(left[0], second+" resolving: ") {
		t.Fatalf("left %q", left)
	}
	r.o.Resolve = nil // the next pawl has none
	r.drain(r.queue())
	if left := r.left(); len(left) != 1 || !strings.HasPrefix(left[0], second+" parked: ") {
		t.Errorf("left %q", left)
	}
}

func TestWhatCanNeverBeMergedGoesToAPerson(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue()
	alien, _ := r.task("Alien", "main")
	root := r.git("commit-tree", r.git("rev-parse", "main^{tree}"), "-m", "no parent")
	r.add(q, alien, root, "Alien")
	gone, commit := r.task("Gone", "main", "x.txt", "x\n")
	r.add(q, gone, commit, "Gone")
	for _, ref := range strings.Fields(r.git("for-each-ref", "--format=%(refname)", "--points-at="+commit)) {
		r.git("update-ref", "-d", ref)
	}
	r.git("-c", "gc.reflogExpireUnreachable=now", "gc", "-q", "--prune=now")
	r.drain(q)
	left := strings.Join(r.left(), "\n")
	if !strings.Contains(left, "no commit in common") || !strings.Contains(left, "is no longer in the repository") {
		t.Errorf("left %s", left)
	}
}
