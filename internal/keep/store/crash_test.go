package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
)

// Writers are killed at random, many times, while others write to the same
// database. Every commit that was acknowledged is there, whole and in order,
// and the file is sound. The test waits for deeds of the writers, never for
// time.
func TestKilledWritersLoseNothing(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	random := rand.New(rand.NewPCG(1, 2))
	rounds, writers := 6, 3
	if testing.Short() {
		rounds = 2
	}
	acked := map[string]int64{}
	for round := range rounds {
		ids := make([]string, writers)
		running := make([]*process, writers)
		for i := range running {
			ids[i] = fmt.Sprintf("r%d-%d", round, i)
			running[i] = start(t, "write", path, ids[i])
		}
		for i, p := range running { // while the others go on
			last := int64(0)
			for range 1 + random.IntN(150) {
				last = acknowledged(t, p)
			}
			acked[ids[i]] = p.kill(t, last)
		}
		survived(t, path, acked)
	}
}

// acknowledged waits for the writer's next commit.
func acknowledged(t *testing.T, p *process) int64 {
	t.Helper()
	l := p.line()
	n, err := strconv.ParseInt(l, 10, 64)
	if err != nil {
		t.Fatalf("child says %q", l)
	}
	return n
}

// survived opens the database after the killing and holds it against what
// was acknowledged.
func survived(t *testing.T, path string, acked map[string]int64) {
	t.Helper()
	s, err := openAt(t.Context(), path)
	must(t, err)
	must(t, s.Check(t.Context()))
	for id, n := range acked {
		r, err := s.Run(t.Context(), id)
		must(t, err)
		// One more may be stored: killed between the commit and the word.
		if r.N < n || r.N > n+1 {
			t.Errorf("run %s is at %d, acknowledged was %d", id, r.N, n)
		}
		records, err := s.Iterations(t.Context(), id)
		must(t, err)
		if int64(len(records)) != r.N-1 {
			t.Errorf("run %s is at %d with %d iterations", id, r.N, len(records))
		}
		whole(t, s, id, r.N)
	}
	must(t, s.Close())
}

// whole checks that the events of a run are 1 to n, each once.
func whole(t *testing.T, s *Store, id string, n int64) {
	t.Helper()
	count, after := int64(0), int64(0)
	for {
		events, err := s.Events(t.Context(), id, after, MaxPage)
		must(t, err)
		for _, e := range events {
			count++
			if e.N != count {
				t.Fatalf("run %s: event %d stands at %d", id, e.N, count)
			}
			after = e.Seq
		}
		if len(events) < MaxPage {
			break
		}
	}
	if count != n {
		t.Errorf("run %s is at %d with %d events", id, n, count)
	}
}

// A process that is killed while it makes the database leaves one that the
// next process finishes.
func TestKilledWhileMakingTheDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, sign := range []string{"", "-wal", "-shm", "", "-wal", "-shm"} {
		path := filepath.Join(dir, fmt.Sprint(i), "pawl.db")
		p := start(t, "write", path, "r1")
		for { // the process that makes the file is at work: as near to its start as one can see
			if _, err := os.Stat(path + sign); err == nil {
				break
			}
			runtime.Gosched()
		}
		last := p.kill(t, 0)

		s, err := Open(t.Context(), path)
		if err != nil {
			t.Fatalf("killed when %q was there: %v", sign, err)
		}
		must(t, s.Check(t.Context()))
		// Killed before the run was there, or after: both are whole.
		if r, err := s.Run(t.Context(), "r1"); err == nil {
			whole(t, s, "r1", r.N)
		} else if last > 0 || !errors.Is(err, ErrNotFound) {
			t.Errorf("killed after event %d: %v", last, err)
		}
		must(t, s.Close())
	}
}
