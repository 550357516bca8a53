package process

import (
	"context"
	"time"
)

// pollEnd looks in growing steps whether id has ended.
func pollEnd(ctx context.Context, id Identity) bool {
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
