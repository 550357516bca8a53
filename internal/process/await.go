package process

import (
	"context"
	"time"
)

// AwaitEnd waits until the process has ended, whoever's child it is: it looks
// in growing steps. It returns false when ctx is done first.
func (id Identity) AwaitEnd(ctx context.Context) bool {
	return poll(ctx, func() bool { return Look(id) != Living })
}

// poll asks in growing steps whether something is over, until it is or ctx is done.
func poll(ctx context.Context, over func() bool) bool {
	for pause := time.Millisecond; !over(); pause = min(2*pause, 50*time.Millisecond) {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return over()
		}
	}
	return true
}
