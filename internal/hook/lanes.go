package hook

import "sync"

// lanes carries tasks out: those of one lane in order, those of several lanes
// side by side, no more than slots at once and most waiting in all.
type lanes struct {
	most  int
	slots chan struct{}
	busy  sync.WaitGroup

	mu     sync.Mutex
	last   map[string]chan struct{} // of each lane, closed when its last task is over
	count  int                      // waiting and under way
	closed bool
}

func newLanes(slots, most int) *lanes {
	return &lanes{most: most, slots: make(chan struct{}, slots), last: map[string]chan struct{}{}}
}

// add is false when there is no room, or after close.
func (l *lanes) add(lane string, task func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.count >= l.most {
		return false
	}
	l.count++
	before, over := l.last[lane], make(chan struct{})
	l.last[lane] = over
	l.busy.Go(func() {
		if before != nil {
			<-before
		}
		l.slots <- struct{}{}
		task()
		<-l.slots
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.count--; l.last[lane] == over {
			delete(l.last, lane)
		}
		close(over)
	})
	return true
}

// close takes no more tasks; idle is closed when those that are there are done.
func (l *lanes) close() (idle <-chan struct{}) {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.busy.Wait()
	}()
	return done
}
