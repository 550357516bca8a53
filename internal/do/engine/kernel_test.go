package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// elsewhere is a kernel that keeps the state in the driver's place.
type elsewhere struct {
	last    *loop.Decision
	pending *loop.Decision
	heard   []loop.EventKind
	deaf    loop.EventKind // it is cut off when it hears this one
	late    bool           // it is cut off after it has decided
	before  func(loop.EventKind)
}

var errCut = errors.New("cut off")

func (k *elsewhere) Pending() *loop.Decision { return k.pending }

func (k *elsewhere) Step(_ context.Context, _ string, s loop.State, e loop.Event) (loop.State, loop.Command, error) {
	if p := k.pending; p != nil && e.Kind == loop.Started {
		k.last = p
		return p.State, p.Whole(), nil
	}
	if e.Kind == k.deaf && !k.late {
		return s, loop.Command{}, errCut
	}
	k.heard = append(k.heard, e.Kind)
	if k.before != nil {
		k.before(e.Kind)
	}
	k.decide(e)
	if e.Kind == k.deaf {
		return s, loop.Command{}, errCut
	}
	return k.last.State, k.last.Whole(), nil
}

func (k *elsewhere) decide(e loop.Event) {
	var s loop.State
	if k.last != nil {
		s = k.last.State
	}
	d := loop.Decide(s, e)
	k.last = &d
}

// withKernel starts a run whose kernel is elsewhere, in this process, and returns
// what resumes it after the kernel decided once more.
func (w *world) withKernel(k *elsewhere) (resume func() (*Driver, error), err error) {
	w.t.Helper()
	o, err := w.o.options(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = o.Store.Close() })
	o.Kernel = k
	o.Notify = func(n Notice) {
		if n.Kind == RunStarted {
			w.know(n.Run)
		}
	}
	_, err = Start(w.t.Context(), o)
	return func() (*Driver, error) {
		k.pending, k.deaf = k.last, ""
		return Resume(w.t.Context(), o, w.run(), loop.Event{Kind: loop.Resumed, Policy: &o.Plan.Policy})
	}, err
}

// While a run waits nobody drives it. Whoever keeps its state says when the wait
// is over.
func TestAWaitIsGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "\n  - rate_limit: {retry_after: 1h}\n"+works[1:])
	w.o.Policy.MaxIterations = 1
	k := &elsewhere{}
	resume, err := w.withKernel(k)
	if !errors.Is(err, ErrWaits) {
		t.Fatalf("the run ended with %v", err)
	}
	k.decide(loop.Event{Kind: loop.WaitOver, At: time.Now(), For: k.last.State.Command.Seq})
	if _, err := resume(); err != nil {
		t.Fatal(err)
	}
	w.holds(loop.Completed, "1.1 waited", "1.2 success")
}

// What was decided and not stored is stored by the next one: nothing is decided,
// and nothing done, twice.
func TestADecisionThatWasNotStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, works)
	w.o.Policy.MaxIterations = 1
	k := &elsewhere{deaf: loop.IterationEnded, late: true}
	resume, err := w.withKernel(k)
	if !errors.Is(err, errCut) {
		t.Fatalf("the run ended with %v", err)
	}
	if _, err := resume(); err != nil {
		t.Fatal(err)
	}
	w.holds(loop.Completed, "1.1 success")
	if n := w.starts(); n != 1 || len(k.heard) != 2 {
		t.Errorf("%d starts, and the kernel heard %q", n, k.heard)
	}
}

// The database crashes while its run goes on, and comes back without what was stored
// last. What it lost is stored again; what is not known any more ends the session.
func TestTheDatabaseLosesTheLastSteps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		without int // the first iteration that it lost; 0 is the run itself
		later   bool
	}{{"a step", 1, false}, {"the run", 0, false}, {"more than is known", 0, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, strings.ReplaceAll(works+works[1:], "write: {path: a.txt", "append: {path: a.txt"))
			w.o.Policy.Kind, w.o.Policy.MaxIterations = loop.Task, 2
			lost, decided := "", 0
			k := &elsewhere{late: true}
			k.before = func(loop.EventKind) {
				if decided == c.without {
					lost = w.copyOfTheDatabase()
				}
				if decided++; decided == 3 {
					w.restore(lost)
				}
			}
			if c.later {
				k.deaf = loop.IterationEnded
			}
			resume, err := w.withKernel(k)
			if c.later && errors.Is(err, errCut) {
				_, err = resume()
			}
			if c.later != errors.Is(err, store.ErrNotFound) || (err != nil && !c.later) {
				t.Fatalf("the run ended with %v", err)
			}
			if !c.later {
				w.holds(loop.TimedOut, "1.1 success", "2.1 success")
			}
		})
	}
}

// tables of what is stored of a run.
var tables = []string{"runs", "setups", "events", "iterations"}

func (w *world) sql(do string) {
	w.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+w.o.DB+"?_txlock=immediate")
	if err == nil {
		_, err = db.ExecContext(w.t.Context(), do)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) copyOfTheDatabase() string {
	w.t.Helper()
	name := filepath.Join(w.t.TempDir(), "copy.db")
	w.sql("VACUUM INTO '" + name + "'")
	return name
}

func (w *world) restore(name string) {
	w.t.Helper()
	do := "ATTACH '" + name + "' AS old; BEGIN IMMEDIATE;"
	for _, table := range tables {
		do += fmt.Sprintf(" DELETE FROM main.%[1]s; INSERT INTO main.%[1]s SELECT * FROM old.%[1]s;", table)
	}
	w.sql(do + " COMMIT; DETACH old")
}

// The database lost a run in a crash, whose kernel has decided more of it since. The run
// is begun where the kernel is.
func TestARunThatTheDatabaseLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, works)
	w.o.Policy.MaxIterations = 1
	k := &elsewhere{deaf: loop.IterationEnded, late: true}
	if _, err := w.withKernel(k); !errors.Is(err, errCut) {
		t.Fatalf("the run ended with %v", err)
	}
	o, err := w.o.options(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Store.Close() })
	o.Kernel, k.pending, k.deaf = k, k.last, ""
	d, err := Start(t.Context(), o)
	if err != nil || d.State().Status != loop.Completed || w.starts() != 1 {
		t.Errorf("after %d starts it is %+v (%v)", w.starts(), d, err)
	}
}

// The kernel did not hear of an iteration that ended. The next one finds its
// result; where its files are gone, it says that the iteration was lost.
func TestAnOrderIsBegunOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		gone  bool
		event loop.EventKind
	}{{"here", false, loop.IterationEnded}, {"elsewhere", true, loop.Recovered}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, works)
			w.o.Policy.MaxIterations = 1
			k := &elsewhere{deaf: loop.IterationEnded}
			resume, err := w.withKernel(k)
			if !errors.Is(err, errCut) {
				t.Fatalf("the run ended with %v", err)
			}
			if c.gone { // as on a machine that has other iterations of it
				if err := os.RemoveAll(filepath.Join(w.o.State, "runs", w.run(), "1")); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := resume(); err != nil {
				t.Fatal(err)
			}
			if n := w.starts(); k.heard[1] != c.event || (n != 1 && !c.gone) {
				t.Errorf("%d starts, and the kernel heard %q", n, k.heard)
			}
		})
	}
}
