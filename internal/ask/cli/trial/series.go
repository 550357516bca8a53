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
	"github.com/pawl-dev/pawl/internal/decide/trial"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/process"
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

// wallet is the money of a trial. All machines of a shared board pay from it: what was begun, and what is kept for it,
// is on the board.
type wallet struct {
	b    *bench
	ctx  context.Context // done when a person ends the trial
	self store.Owner
	keys []string // of what is paid from it
}

// purchase is what may be paid for.
type purchase struct {
	key     string
	own     loop.MicroUSD // its loop.max_cost; 0 is none
	least   loop.MicroUSD // it begins with so much, even if own is more; 0 is own
	isWords bool          // if a machine leaves them, another one writes them
}

// How often it is looked whether others have stored something, and whether they live.
const (
	lookForNews  = 100 * time.Millisecond
	lookForDeath = 5 * time.Second
)

func (b *bench) openWallet(ctx context.Context, keys []string) (*wallet, error) {
	self, err := process.Self()
	return &wallet{b: b, ctx: ctx, self: storedrun.OwnerOf(self), keys: keys}, err
}

// choice is whether something begins now, and if not, why not.
type choice struct {
	begins   bool
	most     loop.MicroUSD // that it may cost; no amount is any
	isOthers bool          // it is made, or another process has begun it
	isLast   bool          // nothing else runs that could give money back
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

// holdMoney waits until the money reaches for something, and keeps it for it; see [wallet.chooseNext]. isOurs is false
// for what is made, and for an attempt that another machine has begun.
func (w *wallet) holdMoney(p purchase) (most loop.MicroUSD, isOurs bool, err error) {
	one := store.TrialAttempt{Key: p.key, Owner: w.self, Place: w.b.dir}
	seen, looked := int64(0), time.Time{}
	for ; w.ctx.Err() == nil; w.waitForMoney() {
		version, err := w.b.board.DataVersion(w.ctx)
		if err == nil && version == seen && time.Since(looked) < lookForDeath {
			continue
		}
		seen, looked = version, time.Now()
		var c choice
		if err == nil {
			_, err = w.b.board.TakeTrialAttempt(w.ctx, one, storedrun.Alive,
				func(begun map[string]store.TrialAttempt) (kept int64, begins bool) {
					c = w.chooseNext(p, begun)
					return int64(c.moneyKept(p)), c.begins
				})
		}
		switch {
		case w.ctx.Err() != nil:
		case err != nil, c.begins, c.isOthers:
			return c.most, c.begins, err
		case c.isLast:
			return 0, false, command.StatusError(command.ExitLimit)
		}
	}
	return 0, false, command.StatusError(command.ExitInterrupted)
}

// chooseNext lets begin what the money reaches for: where its own limit fits in. Without one it may cost all that is
// left, so that it begins only if that is as much as the dearest attempt took, and others wait until it has ended.
func (w *wallet) chooseNext(p purchase, begun map[string]store.TrialAttempt) (c choice) {
	before, isBegun := begun[p.key]
	isBound := isBegun && !p.isWords
	isElsewhere := isBound && !w.canContinue(before)
	c.isOthers = before.Result != nil || isElsewhere
	c.most, c.isLast = w.moneyLeft(p.key, begun)
	least := cmp.Or(p.least, p.own, w.dearestCost(begun))
	if isBegun {
		least = max(p.least, 1) // it was paid for in part
	}
	isEnough := c.most < 0 || c.most >= least
	c.begins = isEnough && !c.isOthers && before.Owner.PID == 0
	return c
}

func (w *wallet) waitForMoney() {
	select {
	case <-w.ctx.Done():
	case <-time.After(lookForNews):
	}
}

func (w *wallet) canContinue(a store.TrialAttempt) bool {
	return a.Owner.PID == 0 && a.Owner.Host == w.self.Host && a.Place == w.b.dir
}

// moneyLeft is the money that neither was spent nor is kept for something else, no amount without a limit; isLast is
// whether nothing else runs that could give some back.
func (w *wallet) moneyLeft(but string, begun map[string]store.TrialAttempt) (left loop.MicroUSD, isLast bool) {
	left, isLast = w.b.maxCost, true
	for _, key := range w.keys {
		if key != but {
			left -= loop.MicroUSD(begun[key].Cost)
			isLast = isLast && begun[key].Owner.PID == 0
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
	if err != nil {
		return err
	}
	return w.b.board.EndTrialAttempt(context.WithoutCancel(w.ctx), key, cost, text)
}

func (w *wallet) leavePaid(key string) error {
	return w.b.board.LeaveTrialAttempt(context.WithoutCancel(w.ctx), key)
}

// makeAttempts makes those that are missing, side by side, as far as the money reaches: first those that were begun.
func (b *bench) makeAttempts(ctx context.Context, j *judge, p plan) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	before, err := b.board.TrialAttempts(ctx, storedrun.Alive)
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
	order := slices.Concat(begun, fresh)
	w, err := b.openWallet(ctx, b.keysOfPlan(p))
	if err != nil {
		return err
	}
	err = sideBySide(len(order), b.parallel, func(i int) (bool, error) {
		return true, w.makeAttempt(j, p, order[i])
	})
	return errors.Join(err, b.explainMissing(ctx, p, err))
}

// explainMissing prints how many attempts are missing, where they are, and how to make them.
func (b *bench) explainMissing(ctx context.Context, p plan, ended error) error {
	begun, err := b.board.TrialAttempts(context.WithoutCancel(ctx), storedrun.Alive)
	missing, running, elsewhere := 0, 0, map[string]int{}
	for _, one := range p.Attempts {
		switch a, isBegun := begun[one.Key]; {
		case a.Result != nil:
		case a.Owner.PID != 0:
			running++
		default:
			missing++
			if isBegun && a.Place != b.dir {
				elsewhere[a.Owner.Host+", "+a.Place]++
			}
		}
	}
	switch status, isStatus := errors.AsType[command.StatusError](ended); {
	case isStatus && status == command.ExitLimit:
		b.app.Say("%s not made: what is left of --max-cost does not pay for the next. "+
			"Run it again with a higher limit to continue.", fault.Numbered(missing, "attempt"))
	case isStatus:
		b.app.Say("The trial is paused. Run the same command to continue; nothing is paid twice.")
	case ended == nil && running > 0:
		b.app.Say("Other machines are still making %s. See the result later: pawl trial report",
			fault.Numbered(running, "attempt"))
	}
	for place, n := range elsewhere {
		b.app.Say("%s begun on another machine: run the same command there to continue (%s)",
			fault.Numbered(n, "attempt"), place)
	}
	return err
}

// makeAttempt makes an attempt when the money reaches for it. One that used up what was left for it is resumed with
// what others give back.
func (w *wallet) makeAttempt(j *judge, p plan, next planned) error {
	for paid := (purchase{key: next.Key, own: next.MaxCost}); ; {
		most, isOurs, err := w.holdMoney(paid)
		if err != nil || !isOurs {
			return err
		}
		if err := w.b.announceAttempt(w.ctx, p, next); err != nil {
			return err
		}
		made, err := w.b.makeAttempt(w.ctx, j, next, most)
		if err == nil {
			err = w.storePaidResult(next.Key, made.Cost, made)
		} else {
			err = cmp.Or(w.leavePaid(next.Key), err)
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

// announceAttempt names an attempt that begins, the money that is spent, and what the rest may take.
func (b *bench) announceAttempt(ctx context.Context, p plan, next planned) error {
	begun, err := b.board.TrialAttempts(ctx, storedrun.Alive)
	if err != nil {
		return err
	}
	cost, millis, known, n, running := int64(0), int64(0), true, int64(0), int64(0)
	for _, one := range p.Attempts {
		var made trial.Attempt
		switch a := begun[one.Key]; {
		case a.Result != nil && json.Unmarshal(a.Result, &made) == nil:
			n, cost, millis, known = n+1, cost+made.Cost, millis+made.Millis, known && made.CostKnown
		case a.Owner.PID != 0:
			running++
		}
	}
	left := int64(len(p.Attempts)) - n
	b.app.Say("Attempt %d of %d: %s at %.10s %s", n+running, len(p.Attempts), next.Variant, next.Task.Commit,
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
	return nil
}
