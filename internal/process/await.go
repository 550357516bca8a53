package process

import (
	"context"
	"time"
)

// AwaitEnd waits until the process has ended, whoever's child it is: it looks
// in growing steps. It returns false when ctx is done first.
func (id Identity) AwaitEnd(ctx context.Context) bool {
	for pause := time.Millisecond; Look(id) == Living; pause = min(2*pause, 50*time.Millisecond) {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return Look(id) != Living
		}
	}
	return true
}
