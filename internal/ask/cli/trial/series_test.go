package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/trial"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Attempts that run side by side never cost more than the trial may, all that fit in are made, and those that have no
// limit of their own run alone.
func TestMoneySideBySide(t *testing.T) {
	t.Parallel()
	for _, own := range []loop.MicroUSD{500_000, 0} {
		b := &bench{app: &command.App{Stderr: io.Discard}, maxCost: 5_000_000, parallel: 4, board: newBoard(t)}
		keys := make([]string, 40)
		for n := range keys {
			keys[n] = fmt.Sprint(n)
		}
		w, err := b.openWallet(t.Context(), keys)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var spent, dearest loop.MicroUSD
		var running atomic.Int32
		met := make(chan bool) // two run at once
		err = sideBySide(len(keys), b.parallel, func(i int) (bool, error) {
			most, isOurs, err := w.holdMoney(purchase{key: keys[i], own: own})
			if err != nil || !isOurs {
				return false, err
			}
			if now := running.Add(1); own == 0 && now > 1 {
				t.Errorf("%d run at once", now)
			}
			if own > 0 && i < 2 {
				select {
				case met <- true:
				case <-met:
				}
			}
			mu.Lock()
			cost := loop.MicroUSD(rand.IntN(500_000)) //nolint:gosec // of a test
			cost = min(cost, most)
			spent, dearest = spent+cost, max(dearest, cost)
			if spent > b.maxCost {
				t.Errorf("%s are spent", spent)
			}
			mu.Unlock()
			running.Add(-1)
			return true, w.storePaidResult(keys[i], int64(cost), trial.Attempt{Cost: int64(cost), CostKnown: true})
		})
		if status, ok := errors.AsType[command.StatusError](err); !ok || status != command.ExitLimit {
			t.Errorf("it ended with %v", err)
		}
		if left := b.maxCost - spent; left >= max(own, dearest) {
			t.Errorf("%s are left, which pay for one more", left)
		}
	}
}

// Whatever ends first, those that were begun are the first ones without a gap, and no more begin than are wanted.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	for width := 1; width < 6; width++ {
		var done [100]atomic.Bool
		var n atomic.Int32
		err := sideBySide(len(done), width, func(i int) (bool, error) {
			done[i].Store(true)
			return n.Add(1) < 20, nil
		})
		gap := -1
		for i := range done {
			if !done[i].Load() && gap < 0 {
				gap = i
			}
			if done[i].Load() && gap >= 0 {
				t.Errorf("width %d: %d began, %d did not", width, i, gap)
			}
		}
		if err != nil || gap < 20 || gap > 20+width {
			t.Errorf("width %d: %d began: %v", width, gap, err)
		}
	}
	bad := errors.New("bad")
	if err := sideBySide(9, 3, func(i int) (bool, error) { return true, map[int]error{4: bad}[i] }); !errors.Is(err, bad) {
		t.Error(err)
	}
}

// Who waits for money hears that a person ended the trial.
func TestWaitForMoneyEnds(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	b := &bench{app: &command.App{Stderr: io.Discard}, maxCost: 1, parallel: 2, board: newBoard(t)}
	w, err := b.openWallet(ctx, []string{"one", "other"})
	if err != nil {
		t.Fatal(err)
	}
	if _, isOurs, err := w.holdMoney(purchase{key: "other"}); !isOurs || err != nil {
		t.Fatal(isOurs, err)
	}
	ended := make(chan error)
	go func() {
		_, _, err := w.holdMoney(purchase{key: "one"})
		ended <- err
	}()
	end()
	if status, ok := errors.AsType[command.StatusError](<-ended); !ok || status != command.ExitInterrupted {
		t.Error(status)
	}
}

// Two clones of one board make each attempt once, and pay from one wallet. What one of them left half made is its own,
// but words that it did not write are written by the other.
func TestMoneyOfTwoClones(t *testing.T) {
	t.Parallel()
	db := newBoard(t)
	open := func(dir string) *wallet {
		b := &bench{app: &command.App{Stderr: io.Discard}, maxCost: 100, board: db, dir: dir}
		w, err := b.openWallet(t.Context(), []string{"made", "running", "left", "dear", "words"})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	reserve := func(w *wallet, p purchase, most loop.MicroUSD, isOurs bool) {
		t.Helper()
		gotMost, gotOurs, err := w.holdMoney(p)
		if gotMost != most && isOurs || gotOurs != isOurs || err != nil {
			t.Errorf("%s in %s: %d, %t, %v", p.key, w.b.dir, gotMost, gotOurs, err)
		}
	}
	one, two := open("one"), open("two")
	reserve(one, purchase{key: "made", own: 30}, 100, true)
	if err := one.storePaidResult("made", 20, trial.Attempt{Cost: 20}); err != nil {
		t.Fatal(err)
	}
	reserve(one, purchase{key: "running", own: 30}, 80, true)
	reserve(one, purchase{key: "left", own: 30}, 50, true)
	reserve(one, purchase{key: "words", least: 1, isWords: true}, 20, true)
	for _, key := range []string{"left", "words"} {
		if err := one.leavePaid(key); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"made", "running", "left"} {
		reserve(two, purchase{key: key, own: 30}, 0, false)
	}
	reserve(two, purchase{key: "words", least: 1, isWords: true}, 20, true)
	if err := two.storePaidResult("words", 5, words{Text: "what to do"}); err != nil {
		t.Fatal(err)
	}
	reserve(one, purchase{key: "words", least: 1, isWords: true}, 0, false)
	reserve(one, purchase{key: "left", own: 30}, 45, true)
	err := errors.Join(one.storePaidResult("left", 30, trial.Attempt{}),
		one.storePaidResult("running", 25, trial.Attempt{}))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = two.holdMoney(purchase{key: "dear", own: 30})
	if status, ok := errors.AsType[command.StatusError](err); !ok || status != command.ExitLimit {
		t.Errorf("20 are left for what may cost 30: %v", err)
	}
	reserve(two, purchase{key: "dear", own: 20}, 20, true)
}

func newBoard(t *testing.T) *store.Store {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "pawl.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// A red tree is judged again: if it is green then, its tests are flaky.
func TestJudgeRedTwice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seen []verdict
		want verdict
	}{
		{[]verdict{green}, green},
		{[]verdict{unclear}, unclear},
		{[]verdict{red, red}, red},
		{[]verdict{red, green}, flaky},
		{[]verdict{red, unclear}, red},
	} {
		runs := 0
		got, why, err := judgeRedTwice(func() (verdict, string, error) {
			runs++
			return c.seen[runs-1], fmt.Sprint(runs), nil
		})
		if got != c.want || why != "1" || err != nil || runs != len(c.seen) {
			t.Errorf("%v: %s, %s, %v after %d runs", c.seen, got, why, err, runs)
		}
	}
}
