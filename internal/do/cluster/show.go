package cluster

import (
	"context"
	"errors"
	"os/signal"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/store"
)

// seenEvery is how often a worker says what it has.
const seenEvery = 20 * time.Second

// showWorker reports what the worker has until ctx is done, and while what it has begun ends.
func (w *Worker) showWorker(ctx context.Context) error {
	if err := w.showRepeatedly(ctx); err != nil {
		return err
	}
	signal.Reset(syscall.SIGTERM, syscall.SIGINT) // the next one ends the process
	w.slots.closeSlots()
	w.mu.Lock()
	w.drains = true
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.o.Offer.Drain)
	defer cancel()
	go func() {
		w.busy.Wait()
		cancel()
	}()
	return w.showRepeatedly(ctx)
}

// showRepeatedly reports what the worker has, again and again until ctx is done, or another
// machine has the worker's name.
func (w *Worker) showRepeatedly(ctx context.Context) error {
	tick, same, look := time.NewTicker(seenEvery), time.NewTicker(sameEvery), time.NewTicker(lookEvery)
	defer tick.Stop()
	defer same.Stop()
	defer look.Stop()
	for see := true; ctx.Err() == nil; {
		var err error
		switch {
		case see && w.o.Seen != nil:
			err = w.o.Seen(ctx, w.slots.usedSlots(), w.drains)
		case !see && w.o.Same != nil:
			err = w.o.Same(ctx)
		}
		twin, isTwin := errors.AsType[*store.TwinError](err)
		switch {
		case isTwin:
			return refuseTwin(twin)
		case errors.Is(err, store.ErrGone):
			w.abandonAll(err)
			return err
		}
		select {
		case <-tick.C:
			see = true
		case <-same.C:
			see = false
		case <-look.C:
			see = w.o.Look != nil && w.o.Look(ctx)
		case <-ctx.Done():
		}
	}
	return nil
}

// lookEvery is how often a worker looks what it lacks.
const lookEvery = 5 * time.Second

// sameEvery is how often a worker looks whether its board is the same.
const sameEvery = 2 * time.Second

// abandonAll ends what is worked, and waits for that.
func (w *Worker) abandonAll(why error) {
	w.slots.closeSlots()
	w.mu.Lock()
	w.drains = true
	for _, s := range w.open {
		s.abandon(why)
	}
	w.mu.Unlock()
	w.busy.Wait()
}
