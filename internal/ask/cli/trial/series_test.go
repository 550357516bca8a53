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
		w := b.openWallet(t.Context(), keys)
		var mu sync.Mutex
		var spent, dearest loop.MicroUSD
		var running atomic.Int32
		met := make(chan bool) // two run at once
		err := sideBySide(len(keys), b.parallel, func(i int) (bool, error) {
			most, begins, err := w.holdMoney(purchase{key: keys[i], own: own})
			if err != nil || !begins {
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
	w := b.openWallet(ctx, []string{"one", "other"})
	if _, begins, err := w.holdMoney(purchase{key: "other"}); !begins || err != nil {
		t.Fatal(begins, err)
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

// What was made is made once, what was left half made is gone on with, and what is kept for both stays kept, also for a
// trial that begins again.
func TestMoneyOfTwoTrials(t *testing.T) {
	t.Parallel()
	b := &bench{app: &command.App{Stderr: io.Discard}, maxCost: 100, board: newBoard(t)}
	open := func() *wallet { return b.openWallet(t.Context(), []string{"made", "left", "dear", "words"}) }
	reserve := func(w *wallet, p purchase, most loop.MicroUSD, begins bool) {
		t.Helper()
		gotMost, got, err := w.holdMoney(p)
		if gotMost != most && begins || got != begins || err != nil {
			t.Errorf("%s: %d, %t, %v", p.key, gotMost, got, err)
		}
	}
	first, again := open(), open()
	reserve(first, purchase{key: "made", own: 30}, 100, true)
	if err := first.storePaidResult("made", 20, trial.Attempt{Cost: 20}); err != nil {
		t.Fatal(err)
	}
	reserve(first, purchase{key: "left", own: 30}, 80, true)
	reserve(first, purchase{key: "words", own: 60, least: 1}, 50, true)
	reserve(again, purchase{key: "made", own: 30}, 0, false)
	reserve(again, purchase{key: "words", own: 60, least: 1}, 50, true)
	if err := again.storePaidResult("words", 25, words{Text: "what to do"}); err != nil {
		t.Fatal(err)
	}
	reserve(again, purchase{key: "words", own: 60, least: 1}, 0, false)
	reserve(again, purchase{key: "left", own: 30}, 55, true)
	if err := again.storePaidResult("left", 30, trial.Attempt{}); err != nil {
		t.Fatal(err)
	}
	_, _, err := again.holdMoney(purchase{key: "dear", own: 30})
	if status, ok := errors.AsType[command.StatusError](err); !ok || status != command.ExitLimit {
		t.Errorf("25 are left for what may cost 30: %v", err)
	}
	reserve(again, purchase{key: "dear", own: 25}, 25, true)
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
