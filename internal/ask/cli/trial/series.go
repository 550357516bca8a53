package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/trial"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// sideBySide calls do for 0, 1, … below n, at most width at once. None begins after one that returned false or an
// error. It waits for all, and returns the first error.
func sideBySide(n, width int, do func(int) (more bool, err error)) (first error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	next := 0
	begin := func() (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		i = next
		next++
		return i, i < n
	}
	for range min(width, n) {
		all.Go(func() {
			for i, ok := begin(); ok; i, ok = begin() {
				more, err := do(i)
				if more && err == nil {
					continue
				}
				mu.Lock()
				first, next = cmp.Or(first, err), n
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return first
}

// wallet is the money of a trial, from which attempts that run side by side are paid.
type wallet struct {
	b    *bench
	plan plan
	ctx  context.Context // done when a person ends the trial
	mu   sync.Mutex
	free *sync.Cond
	// reserved is the most that each running attempt may cost, by key.
	reserved map[string]loop.MicroUSD
}

// reserve waits until the money reaches for an attempt, and keeps it for it; most is what it may cost, and no amount
// is any. It reaches where loop.max_cost fits in. Without that key an attempt may cost all that is left, so that it
// begins only if that is as much as the dearest attempt took, and others wait until it has ended.
func (w *wallet) reserve(next planned) (most loop.MicroUSD, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		made, err := w.b.attemptsOf(w.plan)
		if err != nil {
			return 0, err
		}
		most, ok := w.mostFor(made, next)
		switch {
		case w.ctx.Err() != nil:
			return 0, command.StatusError(command.ExitInterrupted)
		case ok:
			w.b.sayNext(w.plan, made, len(w.reserved), next)
			w.reserved[next.Key] = most
			if next.MaxCost > 0 {
				w.reserved[next.Key] = min(most, next.MaxCost)
			}
			return most, nil
		case len(w.reserved) == 0:
			return 0, command.StatusError(command.ExitLimit)
		}
		w.free.Wait()
	}
}

// release gives back what an attempt did not use; alone is whether no other runs.
func (w *wallet) release(key string) (alone bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.reserved, key)
	w.free.Broadcast()
	return len(w.reserved) == 0, w.b.storeReport(w.plan)
}

func (w *wallet) mostFor(made []trial.Attempt, next planned) (most loop.MicroUSD, ok bool) {
	if w.b.maxCost < 0 {
		return -1, true
	}
	left, need := w.b.moneyLeft(made), loop.MicroUSD(1)
	for _, a := range made {
		need = max(need, loop.MicroUSD(a.Cost))
	}
	for _, most := range w.reserved {
		left -= most
	}
	need = cmp.Or(next.MaxCost, need)
	if w.b.isBegun(next.Key) {
		need = 1 // it was paid for in part
	}
	return left, left >= need
}

// moneyLeft subtracts the cost of words and attempts from --max-cost.
func (b *bench) moneyLeft(made []trial.Attempt) loop.MicroUSD {
	left := b.maxCost - b.described
	for _, a := range made {
		left -= loop.MicroUSD(a.Cost)
	}
	return left
}

func (b *bench) isBegun(key string) bool { return files.IsFile(b.attemptDir(key) + ".made") }

func (b *bench) isMade(key string) bool { return files.IsFile(b.attemptFile(key)) }

// makeAttempts makes those that are missing, side by side, as far as the money reaches: first those that were begun.
func (b *bench) makeAttempts(ctx context.Context, j *judge, p plan) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var begun, fresh []planned
	for _, one := range p.Attempts {
		switch isBegun := b.isBegun(one.Key); {
		case b.isMade(one.Key) && isBegun: // pawl was killed after it was stored
			if err := b.dropScratch(b.attemptDir(one.Key)); err != nil {
				return err
			}
		case b.isMade(one.Key):
		case isBegun:
			begun = append(begun, one)
		default:
			fresh = append(fresh, one)
		}
	}
	order := slices.Concat(begun, fresh)
	w := &wallet{b: b, plan: p, ctx: ctx, reserved: map[string]loop.MicroUSD{}}
	w.free = sync.NewCond(&w.mu)
	err := sideBySide(len(order), b.parallel, func(i int) (bool, error) {
		return true, w.makeAttempt(ctx, j, order[i])
	})
	switch status, isStatus := errors.AsType[command.StatusError](err); {
	case isStatus && status == command.ExitLimit:
		made, rerr := b.attemptsOf(p)
		b.app.Say("%s not made: what is left of --max-cost does not pay for the next. "+
			"Run it again with a higher limit to continue.", fault.Numbered(len(p.Attempts)-len(made), "attempt"))
		return errors.Join(err, rerr)
	case isStatus:
		b.app.Say("The trial is paused. Run the same command to continue; nothing is paid twice.")
	}
	return err
}

// makeAttempt makes an attempt when the money reaches for it. One that used up what was left for it is resumed with
// what others give back.
func (w *wallet) makeAttempt(ctx context.Context, j *judge, next planned) error {
	for {
		most, err := w.reserve(next)
		if err != nil {
			return err
		}
		err = w.b.makeAttempt(ctx, j, next, most)
		alone, rerr := w.release(next.Key)
		err = cmp.Or(err, rerr)
		status, isStatus := errors.AsType[command.StatusError](err)
		switch {
		case err != nil && !isStatus:
			return fmt.Errorf("%s at %.10s: %w", next.Variant, next.Task.Commit, err)
		case err == nil, alone, status != command.ExitLimit:
			return err
		}
	}
}

// sayNext names an attempt that begins, the money that is spent, and what the rest may take.
func (b *bench) sayNext(p plan, made []trial.Attempt, running int, next planned) {
	cost, millis, known := int64(0), int64(0), true
	for _, a := range made {
		cost, millis, known = cost+a.Cost, millis+a.Millis, known && a.CostKnown
	}
	n, left := int64(len(made)), int64(len(p.Attempts)-len(made))
	b.app.Say("Attempt %d of %d: %s at %.10s %s", len(made)+running+1, len(p.Attempts), next.Variant, next.Task.Commit,
		report.Line(next.Task.Title, 60))
	if n > 0 {
		money := fmt.Sprintf("spent %s; this and the rest may take %s and", loop.MicroUSD(cost),
			loop.MicroUSD(cost/n*left))
		if !known {
			money = "what it costs is unknown; this and the rest may take"
		}
		took := time.Duration(millis/n*left/int64(b.parallel)) * time.Millisecond
		b.app.Say("  %s %s", money, took.Round(time.Second))
	}
}
