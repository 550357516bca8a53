package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// However steps are delivered (twice, late, too early, by somebody else, with
// another content, cancelled), the run's story is 1..N without gaps, each event
// once, and the state is that of event N.
func TestCommitExactlyOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			deliverAtRandom(t, rand.New(rand.NewPCG(seed, 1)))
		})
	}
}

func deliverAtRandom(t *testing.T, random *rand.Rand) {
	s, r := begun(t, "r1")
	last := int64(1)
	for range 200 {
		n := max(1, last-2+random.Int64N(5)) // two before the last one to two after it
		step := stepOf(r, n)
		if n == 1 {
			step.Event = event("r1", 1, "run.created")
		}
		step.Record = record(int(n), 1)
		ctx, cancel := context.WithCancel(t.Context())
		var want error
		switch trouble := random.IntN(10); {
		case trouble == 0:
			cancel()
			want = context.Canceled
		case trouble == 1:
			step.Run.Owner = them
			want = ErrNotOwner
		case n > last+1:
			want = ErrOutOfOrder
		case n <= last && random.IntN(3) == 0:
			step.Event.Kind = "another"
			want = ErrOutOfOrder
		}
		err := s.Commit(ctx, step)
		cancel()
		if !errors.Is(err, want) {
			t.Fatalf("event %d after %d: %v, want %v", n, last, err, want)
		}
		if err == nil {
			last = max(last, n)
		}
		holds(t, s, last)
	}
}

// holds checks what is stored of r1 when its last event is n.
func holds(t *testing.T, s *Store, n int64) {
	t.Helper()
	r, err := s.Run(t.Context(), "r1")
	must(t, err)
	state := fmt.Sprintf(`{"at":%d}`, n)
	if n == 1 {
		state = `{"phase":"start"}`
	}
	if r.N != n || string(r.State) != state {
		t.Fatalf("run is at %d with %s, want %d", r.N, r.State, n)
	}
	events, err := s.Events(t.Context(), "r1", 0, MaxPage)
	must(t, err)
	if int64(len(events)) != n {
		t.Fatalf("%d events, want %d", len(events), n)
	}
	for i, e := range events {
		if e.N != int64(i)+1 || (i > 0 && e.Seq <= events[i-1].Seq) {
			t.Fatalf("event %d is %+v", i+1, e)
		}
	}
	records, err := s.Iterations(t.Context(), "r1")
	must(t, err)
	if int64(len(records)) != n-1 {
		t.Fatalf("%d iterations, want %d", len(records), n-1)
	}
}

func TestTheLastCommitCanBeRepeated(t *testing.T) {
	t.Parallel()
	s, r := begun(t, "r1")
	end := stepOf(r, 2)
	end.Run.EndedAt = noon
	must(t, s.Commit(t.Context(), end))
	must(t, s.Commit(t.Context(), end)) // though nobody owns the run now
	if err := s.Commit(t.Context(), stepOf(r, 3)); !errors.Is(err, ErrNotOwner) {
		t.Errorf("a step after the end: %v", err)
	}
	unowned := stepOf(r, 3)
	unowned.Run.Owner = Owner{}
	if err := s.Commit(t.Context(), unowned); !errors.Is(err, ErrNotOwner) {
		t.Errorf("a step by nobody: %v", err)
	}
	if err := s.Commit(t.Context(), stepOf(run("nope", "x"), 2)); !errors.Is(err, ErrNotFound) {
		t.Errorf("a step of no run: %v", err)
	}
	mixed := stepOf(r, 3)
	mixed.Event.Run = "other"
	if err := s.Commit(t.Context(), mixed); err == nil {
		t.Error("an event of another run")
	}
}

func TestIterations(t *testing.T) {
	t.Parallel()
	s, r := begun(t, "r1")
	ctx := t.Context()
	waited := record(1, 1)
	waited.Outcome = loop.Waited
	for i, rec := range []*loop.Record{waited, record(1, 2), record(2, 1), record(2, 1), record(10, 1)} {
		step := stepOf(r, int64(i)+2)
		step.Record = rec
		if i == 3 {
			rec.Outcome = loop.Failed // the same iteration again: the later one counts
		}
		must(t, s.Commit(ctx, step))
	}
	failed := record(2, 1)
	failed.Outcome = loop.Failed
	want := []loop.Record{*waited, *record(1, 2), *failed, *record(10, 1)}
	got, err := s.Iterations(ctx, "r1")
	must(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("all\n got %+v\nwant %+v", got, want)
	}
	for n, want := range map[int][]loop.Record{-1: nil, 0: nil, 2: want[2:], 4: want, 9: want} {
		got, err := s.LastIterations(ctx, "r1", n)
		must(t, err)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("last %d\n got %+v\nwant %+v", n, got, want)
		}
	}
}

// A durable commit waits for the disk; the others, before and after, do not.
func TestDurableIsFullForOneTransaction(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	s, ctx := fresh(t), t.Context()
	synchronous := func(d durability) (level int) {
		must(t, s.runWrite(ctx, d, func(ctx context.Context, _ *statements) error {
			return s.write.conn.QueryRowContext(ctx, `PRAGMA synchronous`).Scan(&level)
		}))
		return level
	}
	const normal, full = 1, 2
	for _, c := range []struct {
		d    durability
		want int
	}{{crashSafe, normal}, {powerSafe, full}, {crashSafe, normal}} {
		if got := synchronous(c.d); got != c.want {
			t.Errorf("durable %v: synchronous = %d, want %d", c.d, got, c.want)
		}
	}
	r := run("r1", "build")
	must(t, s.Create(ctx, r, event("r1", 1, "x"), nobody))
	must(t, s.commitStep(ctx, powerSafe, stepOf(r, 2)))
	if got := synchronous(crashSafe); got != normal {
		t.Errorf("after a durable commit: synchronous = %d", got)
	}
}

// Who waits for the writer and is cancelled gives up, and has stored nothing.
func TestCancelledWhileWaiting(t *testing.T) {
	t.Parallel()
	s, r := begun(t, "r1")
	ctx, cancel := context.WithCancelCause(t.Context())
	must(t, s.runWrite(t.Context(), crashSafe, func(context.Context, *statements) error {
		errs := make(chan error)
		go func() { errs <- s.Commit(ctx, stepOf(r, 2)) }()
		cancel(errors.New("enough"))
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled commit: %v", err)
		}
		return nil
	}))
	must(t, s.Commit(t.Context(), stepOf(r, 2)))
}

// A panic in a transaction leaves the store usable and nothing stored.
func TestPanicRollsBack(t *testing.T) {
	t.Parallel()
	s, r := begun(t, "r1")
	func() {
		defer func() { _ = recover() }()
		_ = s.runWrite(t.Context(), powerSafe, func(ctx context.Context, w *statements) error {
			_, _ = insertEvent(ctx, w, event("r1", 2, "lost"))
			panic("boom")
		})
	}()
	must(t, s.Commit(t.Context(), stepOf(r, 2)))
	if r, err := s.Run(t.Context(), "r1"); err != nil || r.N != 2 {
		t.Errorf("run is at %d, %v", r.N, err)
	}
}

func BenchmarkCommit(b *testing.B) {
	for _, c := range []struct {
		name   string
		commit func(*Store) func(context.Context, Step) error
	}{
		{"normal", func(s *Store) func(context.Context, Step) error { return s.Commit }},
		{"durable", durable},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, r := begun(b, "r1")
			commit, n := c.commit(s), int64(1)
			for b.Loop() {
				n++
				step := stepOf(r, n)
				step.Record = record(int(n), 1)
				must(b, commit(b.Context(), step))
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
		})
	}
}

// A commit in the steady state of a long run, with states of real size.
func BenchmarkCommitLargeState(b *testing.B) {
	s, r := begun(b, "r1")
	r.Setup = []byte(fmt.Sprintf("%q", make([]byte, 2000)))
	state := []byte(fmt.Sprintf("%q", make([]byte, 4000)))
	n := int64(1)
	for b.Loop() {
		n++
		step := stepOf(r, n)
		step.Run.State, step.Event.At = state, noon.Add(time.Duration(n))
		must(b, s.Commit(b.Context(), step))
	}
}

func BenchmarkLastIterationsOfManyThousand(b *testing.B) {
	s, r := begun(b, "r1")
	for n := int64(2); n < 20_000; n++ {
		step := stepOf(r, n)
		step.Record = record(int(n), 1)
		must(b, s.Commit(b.Context(), step))
	}
	for b.Loop() {
		records, err := s.LastIterations(b.Context(), "r1", 20)
		if err != nil || len(records) != 20 {
			b.Fatal(len(records), err)
		}
	}
}

// After a statement that fails, a transaction does nothing more, and returns nothing. The
// next one begins anew.
func TestAFailedStatementEndsItsTransaction(t *testing.T) {
	s := fresh(t)
	v, err := changeValue(t.Context(), s.DB, crashSafe, "try it",
		func(ctx context.Context, w *statements) (int, error) {
			w.Do(ctx, `DELETE FROM nowhere`)
			if _, err := w.Exec(ctx, `DELETE FROM runs`); err == nil {
				t.Error("a statement after the one that failed was executed")
			}
			return 1, nil
		})
	if v != 0 || err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("it returns %d, and the error %v", v, err)
	}
	must(t, s.DropEvents(t.Context(), time.Now()))
}
