package supervisor

import (
	"context"
	"sync/atomic"
	"time"
)

// idleClock says when a job has been silent for too long. It looks at the
// watched tree only when the output has been silent for the whole limit.
type idleClock struct {
	limit  time.Duration
	root   string
	seen   *atomic.Int64
	alive  func() bool // a tool runs, whose silence does not count
	timer  *time.Timer
	looked chan bool // true: silent
	next   time.Duration
	cancel context.CancelFunc
	busy   chan struct{} // closed when the walk has ended; nil when there is none
}

func newIdleClock(job Job, seen *atomic.Int64, alive func() bool) *idleClock {
	c := &idleClock{limit: job.Limits.Idle, root: job.Watch, seen: seen, alive: alive, looked: make(chan bool, 1), cancel: func() {}}
	c.timer = time.NewTimer(max(c.limit, time.Nanosecond))
	if c.limit <= 0 {
		c.timer.Stop()
	}
	return c
}

// look finds out whether the job is silent and says so on looked.
func (c *idleClock) look() {
	left := c.left(time.Unix(0, c.seen.Load()))
	if left <= 0 && c.alive() {
		left = c.limit
	}
	if left > 0 || c.root == "" {
		c.next = left
		c.looked <- left <= 0
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	c.cancel = cancel
	c.busy = make(chan struct{})
	go func() {
		defer close(c.busy)
		at, ok := newerThan(ctx, c.root, time.Now().Add(-c.limit))
		c.next = 0
		if ok {
			c.next = c.left(at)
		}
		// Output may have come during the walk.
		c.next = max(c.next, c.left(time.Unix(0, c.seen.Load())))
		c.looked <- c.next <= 0
	}()
}

// again waits for the rest of the limit. It follows an answer from looked.
func (c *idleClock) again() { c.timer.Reset(max(c.next, time.Millisecond)) }

func (c *idleClock) left(since time.Time) time.Duration {
	return min(c.limit-time.Since(since), c.limit)
}

func (c *idleClock) stop() {
	c.timer.Stop()
	c.cancel()
	if c.busy != nil {
		<-c.busy
	}
}
