package benchmark

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// The board of the figures.
const (
	boardTasks  = 100_000
	boardImport = 10_000
	boardNeeds  = 2 // of each task
)

// manyDrafts are tasks that need two earlier ones each, also of the board
// before them; first is the number of the first one.
func manyDrafts(first, n int) []board.Draft {
	r := rand.New(rand.NewPCG(uint64(first), 7)) //nolint:gosec // the same board each time
	drafts := make([]board.Draft, n)
	for i := range drafts {
		c := board.Case{Title: fmt.Sprintf("Task %d of a large board", first+i), Ref: fmt.Sprintf("r%d", first+i)}
		for range min(boardNeeds, first+i) {
			c.Needs = append(c.Needs, fmt.Sprintf("r%d", r.IntN(first+i)))
		}
		drafts[i] = board.Draft{Line: i + 1, Case: c}
	}
	return drafts
}

// BenchmarkBoard is the board with 100,000 tasks and 200,000 dependencies, on
// disk: the next task, one more task, the start and landing of one.
func BenchmarkBoard(b *testing.B) {
	ctx := context.Background()
	db, next, err := benchmarkBoard(ctx, b)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	now := time.Now()
	var imports []float64
	for first := 0; first < boardTasks; first += boardImport {
		began := time.Now()
		if _, err := db.AddCases(ctx, manyDrafts(first, boardImport), board.Person, now); err != nil {
			b.Fatal(err)
		}
		imports = append(imports, time.Since(began).Seconds())
	}
	n := boardTasks
	for b.Loop() {
		report(b, "board: import of 10,000 tasks", median(imports), "s", atMost(2))
		report(b, "board: next of 100,000 tasks", millis(b, 200, func() error {
			_, ok, err := db.NextCaseOf(ctx, store.CaseFilter{}, nil)
			if err == nil && !ok {
				err = fmt.Errorf("no task is ready")
			}
			return err
		}), "ms", atMost(next))
		report(b, "board: adding one to 100,000", millis(b, 200, func() error {
			n++
			_, err := db.AddCases(ctx, manyDrafts(n-1, 1), board.Person, now)
			return err
		}), "ms", atMost(next))
		report(b, "board: next, start and landing of one", millis(b, 200, func() error { return landNext(ctx, db, now) }), "ms", nil)
	}
}

// benchmarkBoard is a new board and how many milliseconds its next task may take: in
// the database that PAWL_TEST_STORE_SERVER names, else in a file.
func benchmarkBoard(ctx context.Context, b *testing.B) (db *store.Store, next float64, err error) {
	b.Helper()
	dir := diskDir(b)
	if server := os.Getenv("PAWL_TEST_STORE_SERVER"); server != "" {
		db, err = store.OpenShared(ctx, store.Shared{Address: server, Repository: dir})
		return db, 5, err
	}
	db, err = store.Open(ctx, filepath.Join(dir, "pawl.db"))
	return db, 2, err
}

// BenchmarkBringOver brings a board of 10,000 tasks of a file to the database that
// PAWL_TEST_STORE_SERVER names, as 'pawl cluster import' does.
func BenchmarkBringOver(b *testing.B) {
	server := os.Getenv("PAWL_TEST_STORE_SERVER")
	if server == "" {
		b.Skip("PAWL_TEST_STORE_SERVER names no database")
	}
	ctx, now := context.Background(), time.Now()
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	from, err := store.Open(ctx, filepath.Join(diskDir(b), "pawl.db"))
	must(err)
	defer func() { _ = from.Close() }()
	_, err = from.AddCases(ctx, manyDrafts(0, boardImport), board.Person, now)
	must(err)
	for b.Loop() {
		db, err := store.OpenShared(ctx, store.Shared{Address: server, Repository: diskDir(b)})
		must(err)
		began := time.Now()
		_, _, err = db.Import(ctx, from, now, func(store.Owner) bool { return false })
		must(err)
		report(b, "board: bringing over 10,000 tasks", time.Since(began).Seconds(), "s", atMost(2))
		must(db.Close())
	}
}

func landNext(ctx context.Context, db *store.Store, now time.Time) error {
	next, ok, err := db.NextCaseOf(ctx, store.CaseFilter{}, nil)
	if err != nil || !ok {
		return fmt.Errorf("no next task: %v", err)
	}
	for _, action := range []board.Action{board.Start, board.Land} {
		if _, err := db.MoveCase(ctx, next.Case.ID, board.Change{Action: action, By: board.Pawl, At: now}); err != nil {
			return err
		}
	}
	return nil
}

// millis is the median of n calls in milliseconds.
func millis(b *testing.B, n int, do func() error) float64 {
	b.Helper()
	times := make([]float64, n)
	for i := range times {
		began := time.Now()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		times[i] = float64(time.Since(began).Microseconds()) / 1e3
	}
	return median(times)
}
