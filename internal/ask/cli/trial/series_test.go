package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/trial"
)

// Attempts that run side by side never cost more than the trial may, all that fit in are made, and those that have no
// limit of their own run alone.
func TestMoneySideBySide(t *testing.T) {
	t.Parallel()
	for _, own := range []loop.MicroUSD{500_000, 0} {
		b := &bench{app: &command.App{Stderr: io.Discard}, dir: filepath.Join(t.TempDir(), "trial"), maxCost: 5_000_000, parallel: 4}
		var p plan
		for n := range 40 {
			p.Attempts = append(p.Attempts, planned{Key: fmt.Sprint(n), MaxCost: own})
		}
		w := &wallet{b: b, plan: p, ctx: t.Context(), reserved: map[string]loop.MicroUSD{}}
		w.free = sync.NewCond(&w.mu)
		var mu sync.Mutex
		var spent, dearest loop.MicroUSD
		var running atomic.Int32
		met := make(chan bool) // two run at once
		err := sideBySide(len(p.Attempts), b.parallel, func(i int) (bool, error) {
			most, err := w.reserve(p.Attempts[i])
			if err != nil {
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
			made := trial.Attempt{Cost: int64(cost), CostKnown: true}
			err = storeJSON(b.attemptFile(p.Attempts[i].Key), made)
			running.Add(-1)
			_, rerr := w.release(p.Attempts[i].Key)
			return true, errors.Join(err, rerr)
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
	b := &bench{app: &command.App{Stderr: io.Discard}, dir: filepath.Join(t.TempDir(), "trial"), maxCost: 1, parallel: 2}
	w := &wallet{b: b, ctx: ctx, reserved: map[string]loop.MicroUSD{"other": 1}}
	w.free = sync.NewCond(&w.mu)
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := w.reserve(planned{Key: "one"})
		ended <- err
	}()
	end()
	if _, err := w.release("other"); err != nil {
		t.Error(err)
	}
	if status, ok := errors.AsType[command.StatusError](<-ended); !ok || status != command.ExitInterrupted {
		t.Error(status)
	}
}
