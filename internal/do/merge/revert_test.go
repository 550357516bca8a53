package merge

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/keep/store"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// offerRevert returns what takes a task's landing back once the queue is asked.
func offerRevert(t *testing.T, q *Queue, id, why string) store.QueueAsk {
	t.Helper()
	ask, err := q.OfferRevert(t.Context(), id, "Add a file", why)
	if err != nil {
		t.Fatal(err)
	}
	return ask
}

func askQueue(t *testing.T, q *Queue, asks ...store.QueueAsk) {
	t.Helper()
	for _, ask := range asks {
		if _, err := q.o.Store.AskQueue(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
	}
}

// What landed is taken back once, however often that is asked, and lands again as another change. What landed
// since stays.
func TestALandingIsTakenBackOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id, commit := r.task("Add a file", r.git("rev-parse", "main"), "new.txt", "new\n")
	q := r.queue()
	r.add(q, id, commit, "Add a file")
	r.drain(q)
	other, more := r.task("Add another", r.git("rev-parse", "main"), "other.txt", "other\n")
	r.add(q, other, more, "Add another")
	r.drain(q)
	first, second, late := offerRevert(t, q, id, "wrong"), offerRevert(t, q, id, "wrong"), offerRevert(t, q, id, "slow")
	askQueue(t, q, first, second)
	if s := r.status(id); s != board.Review {
		t.Errorf("while its landing is queued to be reverted it is %s", s)
	}
	r.drain(q)
	taken := r.git("rev-parse", "main")
	if _, err := readFileErr(r.o.Repo.Top + "/new.txt"); err == nil || r.read("other.txt") != "other\n" {
		t.Errorf("the files are not as before that landing; left %v, said %v", r.left(), r.notes)
	}
	if s := r.status(id); s != board.Pending {
		t.Errorf("taken back, and it is %s", s)
	}
	askQueue(t, q, late)
	r.drain(q)
	if said := r.notes[len(r.notes)-1]; r.git("rev-parse", "main") != taken || said.Kind != queue.NoteRefused {
		t.Errorf("it was taken back a second time: %v", said)
	}
	again := r.commit("Once more", taken, "new.txt", "better\n")
	r.add(q, id, again, "Add a file")
	r.drain(q)
	if r.read("new.txt") != "better\n" || r.status(id) != board.Done {
		t.Errorf("it did not land again; left %v, said %v", r.left(), r.notes)
	}
}

// What an agent merges of a landing that is taken back has no markers either.
func TestARevertThatKeepsMarkersIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := &resolver{}
	a.make = func(p Problem, _ int) (string, error) {
		return r.commit("marks", p.Tip, "a.txt", "one\n<<<<<<< HEAD\n2\n=======\ntwo\n>>>>>>> c0ffee\nthree\n"), nil
	}
	r.o.Resolve = a.resolve
	q := r.queue()
	first, commit := r.task("First", r.git("rev-parse", "main"), "a.txt", "one\nTWO\nthree\n")
	r.add(q, first, commit, "First")
	r.drain(q)
	second, commit := r.task("Second", r.git("rev-parse", "main"), "a.txt", "one\n2\nthree\n")
	r.add(q, second, commit, "Second")
	r.drain(q)
	askQueue(t, q, offerRevert(t, q, first, "wrong"))
	r.drain(q)
	left := r.left()
	if len(left) != 1 || !strings.Contains(left[0], "the agent's merge is not whole: a.txt still has the markers") {
		t.Errorf("left %q", left)
	}
	if got := r.read("a.txt"); got != "one\n2\nthree\n" {
		t.Errorf("the target has %q", got)
	}
}

// A task that a person puts on hold while its landing is to be taken back stays on hold afterwards.
func TestHeldWhileTakenBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id, commit := r.task("Add a file", r.git("rev-parse", "main"), "new.txt", "new\n")
	q := r.queue()
	r.add(q, id, commit, "Add a file")
	r.drain(q)
	askQueue(t, q, offerRevert(t, q, id, "wrong"))
	hold := board.Change{Action: board.Block, By: board.Person, Why: "not before May", At: time.Now()}
	if _, err := r.o.Store.MoveCase(t.Context(), id, hold); err != nil {
		t.Fatal(err)
	}
	r.drain(q)
	if _, err := readFileErr(r.o.Repo.Top + "/new.txt"); err == nil {
		t.Errorf("it was not taken back; said %v", r.notes)
	}
	c, err := r.o.Store.Case(t.Context(), id)
	if err != nil || c.Status != board.Blocked || c.Why != hold.Why {
		t.Errorf("it is %s: %s (%v)", c.Status, c.Why, err)
	}
	free := board.Change{Action: board.Unblock, By: board.Person, At: time.Now()}
	if c, err = r.o.Store.MoveCase(t.Context(), id, free); err != nil || c.Status != board.Pending {
		t.Errorf("unblocked, it is %s: %v", c.Status, err)
	}
}

// A queue that is opened anew while a landing is to be taken back does not call the task done.
func TestARestartKeepsWhatIsTakenBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id, commit := r.task("Add a file", r.git("rev-parse", "main"), "new.txt", "new\n")
	q := r.queue()
	r.add(q, id, commit, "Add a file")
	r.drain(q)
	r.o.Gates = gates("test -e new.txt")
	q = r.queue()
	askQueue(t, q, offerRevert(t, q, id, "wrong"))
	r.drain(q)
	if s := r.status(id); s != board.Blocked {
		t.Fatalf("red without the work, and it is %s; left %v", s, r.left())
	}
	r.drain(r.queue())
	if s := r.status(id); s != board.Blocked {
		t.Errorf("after a restart it is %s", s)
	}
	if err := q.Ask(t.Context(), queue.Ask{Wish: queue.WishDrop, ID: id}); err != nil {
		t.Fatal(err)
	}
	r.drain(r.queue())
	if s := r.status(id); s != board.Done || r.read("new.txt") != "new\n" {
		t.Errorf("its landing stays, and it is %s", s)
	}
}

// Where the target was rewritten, what waits to be taken back waits for a person: merged, it would bring back what
// was rewritten. What is asked after that is refused.
func TestATargetIsRewrittenBeforeALandingIsTakenBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	start := r.git("rev-parse", "main")
	q := r.queue()
	first, commit := r.task("Add a file", start, "new.txt", "new\n")
	r.add(q, first, commit, "Add a file")
	second, more := r.task("Add another", start, "other.txt", "other\n")
	r.drain(q)
	r.add(q, second, more, "Add another")
	r.drain(q)
	askQueue(t, q, offerRevert(t, q, second, "wrong"))
	r.git("reset", "-q", "--hard", start)
	r.drain(q)
	askQueue(t, q, q.toQueueAsk(queue.Event{Kind: queue.Asked, Ask: &queue.Ask{Wish: queue.WishResume}}))
	r.drain(q)
	if left := r.left(); r.git("rev-parse", "main") != start || r.status(second) != board.Blocked ||
		!strings.Contains(strings.Join(left, "\n"), "is no longer on main") {
		t.Errorf("%s is %s, left %v, said %v", second, r.status(second), left, r.notes)
	}
	if _, err := q.OfferRevert(t.Context(), first, "Add a file", "wrong"); err == nil || !strings.Contains(err.Error(), "it was rewritten") {
		t.Errorf("told %v", err)
	}
}

// A machine whose clone is behind has a landing taken back, and finds which made a command red: with an engine the
// commit travels, and without one who lands makes it again.
func TestALandingIsTakenBackFromAnotherMachine(t *testing.T) {
	t.Parallel()
	for _, travel := range []string{"origin", ""} {
		r := newRig(t)
		bare, _ := r.among()
		m := r.other(bare)
		r.o.Travel, m.o.Travel = travel, travel
		start := r.git("rev-parse", "main")
		id := r.lands(start, "new.txt", "new\n")
		r.lands(start, "other.txt", "other\n")
		askQueue(t, m.queue(), offerRevert(t, m.queue(), id, "wrong"))
		found, err := m.queue().Bisect(t.Context(), gates("! test -e new.txt"), "", func(string, gate.Report) error { return nil })
		if travel == "" { // its branch is that of the clone
			err = nil
		} else if len(found.Tasks) != 1 || found.Tasks[0] != id {
			t.Errorf("found %+v (%v)", found, err)
		}
		r.drain(r.queue())
		if files := gittest.Git(t, bare, "ls-tree", "--name-only", "main"); err != nil || files != "a.txt\nb.txt\nother.txt" {
			t.Errorf("travel %q: %s is %s: %v, the remote has %q", travel, id, r.status(id), r.left(), files)
		}
	}
}
