package autopilot

import (
	"context"
	"sync"
	"time"
)

// wayBound is how long other work makes way for slots that are being filled.
const wayBound = 100 * time.Millisecond

// way is the right of way of slots that are being filled: landing, giving back and
// preparing, which use the same processors, start no command of git meanwhile.
type way struct {
	mu    sync.Mutex
	slots int
	since time.Time
	free  chan struct{} // closed when there is no such slot any more
}

// enter begins the filling of a slot. Leave ends it; more than once does no harm.
func (w *way) enter() (leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.slots++; w.slots == 1 {
		w.since, w.free = time.Now(), make(chan struct{})
	}
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.slots--; w.slots == 0 {
			close(w.free)
		}
	})
}

// giveWay returns when no slot is being filled, at the latest [wayBound] after
// the first of those that are.
func (w *way) giveWay(ctx context.Context) {
	w.mu.Lock()
	free, left := w.free, wayBound-time.Since(w.since)
	if w.slots == 0 {
		left = 0
	}
	w.mu.Unlock()
	if left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-free:
	case <-timer.C:
	case <-ctx.Done():
	}
}
