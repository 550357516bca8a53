package trial

import (
	"cmp"
	"context"
	"encoding/json"
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
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
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

// wallet is the money of a trial. What was begun, and what is kept for it, is on the board.
type wallet struct {
	b    *bench
	ctx  context.Context // done when a person ends the trial
	keys []string        // of what is paid from it

	mu      sync.Mutex
	running map[string]bool // what has begun and not ended, by key
	ended   chan struct{}   // closed when one ends; then another channel takes its place
}

// purchase is what may be paid for.
type purchase struct {
	key   string
	own   loop.MicroUSD // its loop.max_cost; 0 is none
	least loop.MicroUSD // it begins with so much, even if own is more; 0 is own
}

func (b *bench) openWallet(ctx context.Context, keys []string) *wallet {
	return &wallet{b: b, ctx: ctx, keys: keys, running: map[string]bool{}, ended: make(chan struct{})}
}

// choice is whether something begins now, and if not, why not.
type choice struct {
	begins bool
	most   loop.MicroUSD // that it may cost; no amount is any
	isMade bool
	isLast bool // nothing else runs that could give money back
}

// moneyKept is the money that is kept for what begins: its own limit, or what is left where that is less.
func (c choice) moneyKept(p purchase) loop.MicroUSD {
	switch {
	case c.most < 0:
		return p.own
	case p.own == 0:
		return c.most
	}
	return min(p.own, c.most)
}

// holdMoney waits until the money reaches for something, and keeps it for it; see [wallet.chooseNext]. begins is false
// for what is made.
func (w *wallet) holdMoney(p purchase) (most loop.MicroUSD, begins bool, err error) {
	for {
		c, ended, err := w.beginNext(p)
		switch {
		case w.ctx.Err() != nil:
			return 0, false, command.StatusError(command.ExitInterrupted)
		case err != nil, c.begins, c.isMade:
			return c.most, c.begins, err
		case c.isLast:
			return 0, false, command.StatusError(command.ExitLimit)
		}
		select {
		case <-w.ctx.Done():
		case <-ended:
		}
	}
}

// beginNext has something begin if the money reaches for it. Else ended is closed when that may have changed.
func (w *wallet) beginNext(p purchase) (c choice, ended <-chan struct{}, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	begun, err := w.b.board.TrialAttempts(w.ctx)
	if err != nil {
		return c, w.ended, err
	}
	if c = w.chooseNext(p, begun); c.begins {
		err = w.b.board.PutTrialAttempt(w.ctx, store.TrialAttempt{Key: p.key, Cost: int64(c.moneyKept(p))})
		w.running[p.key] = err == nil
	}
	return c, w.ended, err
}

// chooseNext lets begin what the money reaches for: where its own limit fits in. Without one it may cost all that is
// left, so that it begins only if that is as much as the dearest attempt took, and others wait until it has ended.
func (w *wallet) chooseNext(p purchase, begun map[string]store.TrialAttempt) (c choice) {
	before, isBegun := begun[p.key]
	c.isMade = before.Result != nil
	c.most, c.isLast = w.moneyLeft(p.key, begun)
	least := cmp.Or(p.least, p.own, w.dearestCost(begun))
	if isBegun {
		least = max(p.least, 1) // it was paid for in part
	}
	isEnough := c.most < 0 || c.most >= least
	c.begins = isEnough && !c.isMade
	return c
}

// moneyLeft is the money that neither was spent nor is kept for something else, no amount without a limit; isLast is
// whether nothing else runs that could give some back.
func (w *wallet) moneyLeft(but string, begun map[string]store.TrialAttempt) (left loop.MicroUSD, isLast bool) {
	left, isLast = w.b.maxCost, true
	for _, key := range w.keys {
		if key != but {
			left -= loop.MicroUSD(begun[key].Cost)
			isLast = isLast && !w.running[key]
		}
	}
	if w.b.maxCost < 0 {
		return -1, isLast
	}
	return max(left, 0), isLast
}

// dearestCost is the cost of the dearest attempt that was made.
func (w *wallet) dearestCost(begun map[string]store.TrialAttempt) loop.MicroUSD {
	most := int64(1)
	for _, key := range w.keys {
		if begun[key].Result != nil {
			most = max(most, begun[key].Cost)
		}
	}
	return loop.MicroUSD(most)
}

// storePaidResult stores the result of what was paid for.
func (w *wallet) storePaidResult(key string, cost int64, result any) error {
	text, err := json.Marshal(result)
	if err == nil {
		made := store.TrialAttempt{Key: key, Cost: cost, Result: text}
		err = w.b.board.PutTrialAttempt(context.WithoutCancel(w.ctx), made)
	}
	w.leavePaid(key)
	return err
}

// leavePaid ends what is not made. What is kept for it stays kept.
func (w *wallet) leavePaid(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, key)
	close(w.ended)
	w.ended = make(chan struct{})
}

// countRunning returns how much has begun and not ended.
func (w *wallet) countRunning() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.running)
}

// makeAttempts makes those that are missing, side by side, as far as the money reaches: first those that were begun.
func (b *bench) makeAttempts(ctx context.Context, j *judge, p plan) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	before, err := b.board.TrialAttempts(ctx)
	if err != nil {
		return err
	}
	var begun, fresh []planned
	for _, one := range p.Attempts {
		switch hasFiles := files.IsFile(b.attemptDir(one.Key) + ".made"); {
		case before[one.Key].Result != nil && hasFiles: // pawl was killed after it was stored
			if err := b.dropScratch(b.attemptDir(one.Key)); err != nil {
				return err
			}
		case before[one.Key].Result != nil:
		case hasFiles:
			begun = append(begun, one)
		default:
			fresh = append(fresh, one)
		}
	}
	order, w := slices.Concat(begun, fresh), b.openWallet(ctx, b.keysOfPlan(p))
	err = sideBySide(len(order), b.parallel, func(i int) (bool, error) {
		return true, w.makeAttempt(j, p, order[i])
	})
	if status, isStatus := errors.AsType[command.StatusError](err); isStatus {
		return errors.Join(err, b.explainMissing(ctx, p, int(status)))
	}
	return err
}

// explainMissing prints how many attempts are missing, and how to make them.
func (b *bench) explainMissing(ctx context.Context, p plan, status int) error {
	if status != command.ExitLimit {
		b.app.Say("The trial is paused. Run the same command to continue; nothing is paid twice.")
		return nil
	}
	made, err := b.attemptsOf(context.WithoutCancel(ctx), p)
	b.app.Say("%s not made: what is left of --max-cost does not pay for the next. "+
		"Run it again with a higher limit to continue.", fault.Numbered(len(p.Attempts)-len(made), "attempt"))
	return err
}

// makeAttempt makes an attempt when the money reaches for it. One that used up what was left for it is resumed with
// what others give back.
func (w *wallet) makeAttempt(j *judge, p plan, next planned) error {
	for paid := (purchase{key: next.Key, own: next.MaxCost}); ; {
		most, begins, err := w.holdMoney(paid)
		if err != nil || !begins {
			return err
		}
		if err := w.sayNext(p, next); err != nil {
			return err
		}
		made, err := w.b.makeAttempt(w.ctx, j, next, most)
		if err == nil {
			err = w.storePaidResult(next.Key, made.Cost, made)
		} else {
			w.leavePaid(next.Key)
		}
		status, isStatus := errors.AsType[command.StatusError](err)
		switch {
		case err == nil:
			w.b.app.Say("%s at %.10s: %s", next.Variant, next.Task.Commit, made.Outcome())
			return errors.Join(w.b.dropScratch(w.b.attemptDir(next.Key)), w.b.storeReport(w.ctx, p))
		case !isStatus:
			return fmt.Errorf("%s at %.10s: %w", next.Variant, next.Task.Commit, err)
		case status != command.ExitLimit:
			return err
		}
		paid.least = most + 1
	}
}

// sayNext names an attempt that begins, the money that is spent, and what the rest may take.
func (w *wallet) sayNext(p plan, next planned) error {
	made, err := w.b.attemptsOf(w.ctx, p)
	if err != nil {
		return err
	}
	cost, millis, known, n := int64(0), int64(0), true, int64(len(made))
	for _, a := range made {
		cost, millis, known = cost+a.Cost, millis+a.Millis, known && a.CostKnown
	}
	left := int64(len(p.Attempts)) - n
	w.b.app.Say("Attempt %d of %d: %s at %.10s %s", len(made)+w.countRunning(), len(p.Attempts), next.Variant,
		next.Task.Commit, report.Line(next.Task.Title, 60))
	if n > 0 {
		money := fmt.Sprintf("spent %s; this and the rest may take %s and", loop.MicroUSD(cost),
			loop.MicroUSD(cost/n*left))
		if !known {
			money = "what it costs is unknown; this and the rest may take"
		}
		took := time.Duration(millis/n*left/int64(w.b.parallel)) * time.Millisecond
		w.b.app.Say("  %s %s", money, took.Round(time.Second))
	}
	return nil
}
