package merge

import (
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/keep/store"
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
		t.Errorf("while its landing is to be taken back it is %s", s)
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
