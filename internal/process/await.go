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
		if !Sleep(ctx, pause) {
			return over()
		}
	}
	return true
}

// Sleep waits for d. It is false when ctx is done first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
