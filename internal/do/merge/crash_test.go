package merge

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/store"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// landAndDie is a pawl that lands what is queued and kills itself at a point:
// the nth time that it comes there.
func landAndDie(args []string) int {
	dir, state, gate, point, travel := args[0], args[1], args[2], args[3], args[4]
	ctx := context.Background()
	db, err := store.Open(ctx, filepath.Join(state, "pawl.db"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	repo, err := git.OpenStore(ctx, dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	o := options(state, repo, db)
	if gate != "" {
		o.Gates = gates(gate)
	}
	o.Travel, o.Policy.Push = strings.TrimPrefix(travel, pushHere), travel != ""
	o.point = func(name string) {
		if name == point {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // it is on its way
		}
	}
	q, err := Open(ctx, o)
	if err == nil {
		err = q.Drain(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// pushHere, in place of the remote of other machines, has a killed pawl push what it lands.
const pushHere = "push"

// killed lands in a pawl of its own that dies at a point.
func (r *rig) killed(gate, point string) {
	r.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := exec.Command(exe, landCommand, r.dir, r.state, gate, point, r.o.Travel).CombinedOutput()
	if err == nil || !strings.Contains(err.Error(), "killed") {
		r.t.Fatalf("it was to be killed at %q: %v\n%s", point, err, out)
	}
}

var points = []string{
	"before opened", "after opened", "before added", "after added", "before prepared", "after prepared", "before verified", "after verified",
	"files locked", "before ref", "after ref", "after files", "before landed", "after landed",
}

func TestKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			base := r.git("rev-parse", "main")
			gate := "test -f x.txt"
			r.o.Gates = gates(gate)
			q := r.queue()
			var ids []string
			for _, name := range []string{"x", "y"} {
				id, commit := r.task("Add "+name, base, name+".txt", name+"\n", "a.txt", "-")
				r.add(q, id, commit, "Add "+name)
				ids = append(ids, id)
			}
			r.write("b.txt", "edited\n")
			r.killed(gate, point)
			r.drain(r.queue())
			for _, id := range ids {
				if s := r.status(id); s != board.Done {
					t.Errorf("%s is %s: %v %v", id, s, r.left(), r.notes)
				}
			}
			if got := r.git("status", "--porcelain"); got != " M b.txt" {
				t.Errorf("the checkout: %q", got)
			}
			r.audit(base)
		})
	}
}

// A machine is lost for good while it lands, or just after. Another one with a clone of
// its own goes on, and each task lands once: what counts as done is at the remote.
func TestAMachineIsLostAtEachPoint(t *testing.T) {
	t.Parallel()
	for _, point := range []string{
		"after verified", "before sent", "after sent", "before ref", "after ref", "before landed", "after landed", "before pushed",
	} {
		for _, how := range []string{"lost", "again"} {
			t.Run(point+" "+how, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				bare, colleague := r.upstream()
				r.o.Travel, r.o.Policy.Push = "origin", true
				base := r.git("rev-parse", "main")
				q := r.queue()
				var ids []string
				for _, name := range []string{"x", "y"} {
					id, commit := r.task("Add "+name, base, name+".txt", name+"\n")
					r.git("push", "-q", "origin", commit+":"+git.WorkRef(id, commit))
					r.add(q, id, commit, "Add "+name)
					ids = append(ids, id)
				}
				r.killed("", point)
				if how == "lost" {
					repo, err := git.OpenStore(t.Context(), colleague)
					if err != nil {
						t.Fatal(err)
					}
					r.o.Repo, r.o.Dir = repo, folder(t)
				}
				r.drain(r.queue())
				for _, id := range ids {
					if s := r.status(id); s != board.Done {
						t.Errorf("%s is %s: %v %v", id, s, r.left(), r.notes)
					}
				}
				log := gittest.Git(t, bare, "log", "--first-parent", "--format=%(trailers:key=Pawl-Task,valueonly)", "main")
				for _, id := range ids {
					if n := strings.Count(log, id); n != 1 {
						t.Errorf("%s landed %d times at the remote", id, n)
					}
				}
				if here := gittest.Git(t, r.o.Repo.Top, "rev-parse", "main"); here != gittest.Git(t, bare, "rev-parse", "main") {
					t.Error("the remote has something else")
				}
			})
		}
	}
}

// TestKilledBetweenFiles is a kill in the middle of git's own work: some files
// are as they are to be, others as they were, and the lock of the index is left.
func TestKilledBetweenFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, name := range []string{"moved", "not-moved", "deleted", "not-deleted", "edited"} {
		r.write(name, "before\n")
	}
	r.git("add", ".")
	r.git("commit", "-qm", "files")
	base := r.git("rev-parse", "main")
	q := r.queue()
	id, commit := r.task("Change", base, "moved", "after\n", "not-moved", "after\n", "deleted", "-", "not-deleted", "-", "edited", "after\n", "made", "new\n", "not-made", "new\n")
	r.add(q, id, commit, "Change")
	r.killed("", "after ref")
	lock := filepath.Join(r.dir, ".git", "index.lock")
	if _, err := os.Lstat(lock); err != nil {
		t.Fatal("no lock is left: the test tests nothing")
	}
	r.write("moved", "after\n")
	r.write("made", "new\n")
	r.write("edited", "mine, in the meantime\n")
	if err := os.Remove(filepath.Join(r.dir, "deleted")); err != nil {
		t.Fatal(err)
	}
	r.drain(r.queue())
	if s := r.status(id); s != board.Done {
		t.Fatalf("it is %s: %v", s, r.notes)
	}
	if got := r.git("status", "--porcelain"); got != " M edited" {
		t.Errorf("the checkout: %q", got)
	}
	if got := r.read("moved") + r.read("not-moved") + r.read("made") + r.read("not-made") + r.read("edited"); got != "after\nafter\nnew\nnew\nmine, in the meantime\n" {
		t.Errorf("the files: %q", got)
	}
	if w := r.said(queue.NoteWarning); len(w) != 1 || !strings.Contains(w[0], "edited") {
		t.Errorf("told %q", w)
	}
	r.audit(base)
}

func TestTwoWorkers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	base := r.git("rev-parse", "main")
	var ids []string
	q := r.queue()
	for _, name := range []string{"u", "v", "w", "x", "y", "z"} {
		id, commit := r.task("Add "+name, base, name+".txt", name+"\n")
		r.add(q, id, commit, "Add "+name)
		ids = append(ids, id)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var all []*exec.Cmd
	for range 3 {
		cmd := exec.Command(exe, landCommand, r.dir, r.state, "true", "never", "")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	for _, cmd := range all {
		_ = cmd.Wait() // one that found the queue taken says so and fails
	}
	r.o.Gates = gates("true")
	r.drain(r.queue())
	for _, id := range ids {
		if s := r.status(id); s != board.Done {
			t.Errorf("%s is %s", id, s)
		}
	}
	if got := r.git("status", "--porcelain"); got != "" {
		t.Errorf("the checkout: %q", got)
	}
	r.audit(base)
}

func TestOneWorkerAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.queue()
	other := r.o.Owner
	other.PID = 1 // somebody who lives
	r.o.Alive = func(o store.Owner) bool { return o.PID == 1 }
	q.o.Alive = r.o.Alive
	if _, err := r.store.TakeQueue(t.Context(), q.ref, other, time0(), r.o.Alive); err != nil {
		t.Fatal(err)
	}
	err := q.Drain(t.Context())
	if err == nil || !strings.Contains(err.Error(), "another pawl lands on refs/heads/main: process 1") {
		t.Errorf("got %v", err)
	}
}

// A landing is taken back once, wherever pawl is killed meanwhile, and what landed since stays.
func TestKilledAtEachPointOfARevert(t *testing.T) {
	t.Parallel()
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			gate := "test -f a.txt"
			r.o.Gates = gates(gate)
			id := r.land("new.txt", "new\n")
			other := r.land("other.txt", "other\n")
			start := r.git("rev-parse", "main")
			q := r.queue()
			offerRevert(t, q, id, "never asked") // killed before it was stored
			askQueue(t, q, offerRevert(t, q, id, "wrong"))
			r.write("b.txt", "edited\n")
			r.killed(gate, point)
			askQueue(t, q, offerAgain(t, q, id)...)
			r.drain(r.queue())
			if s, o := r.status(id), r.status(other); s != board.Pending || o != board.Done {
				t.Errorf("it is %s, the other %s; left %v, said %v", s, o, r.left(), r.notes)
			}
			if got := r.git("log", "--first-parent", "--format=%s", start+"..main"); got != id+": Revert Add a file" {
				t.Errorf("these landed: %q", got)
			}
			if got := r.git("status", "--porcelain") + r.git("diff", "--name-only", start, "main"); got != " M b.txtnew.txt" {
				t.Errorf("the checkout and what changed: %q", got)
			}
			r.drain(r.queue())
			if got := r.git("rev-list", "--count", "--first-parent", start+"..main"); got != "1" {
				t.Errorf("%s landings", got)
			}
		})
	}
}

// offerAgain is a person who asks once more, where that is not refused.
func offerAgain(t *testing.T, q *Queue, id string) []store.QueueAsk {
	t.Helper()
	ask, err := q.OfferRevert(t.Context(), id, "Add a file", "wrong")
	if err != nil {
		return nil
	}
	return []store.QueueAsk{ask}
}
