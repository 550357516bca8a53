package hook

import "sync"

// lanes carries tasks out: those of one lane in order, those of several lanes
// side by side, no more than slots at once and most waiting in all. A lane's
// goroutine lives while the lane has tasks.
type lanes struct {
	most  int
	slots chan struct{}
	busy  sync.WaitGroup

	mu      sync.Mutex
	waiting map[string][]func()
	count   int // waiting and under way
	closed  bool
}

func newLanes(slots, most int) *lanes {
	return &lanes{most: most, slots: make(chan struct{}, slots), waiting: map[string][]func(){}}
}

// add is false when there is no room, or after close.
func (l *lanes) add(lane string, task func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.count >= l.most {
		return false
	}
	l.count++
	tasks, running := l.waiting[lane]
	l.waiting[lane] = append(tasks, task)
	if !running {
		l.busy.Add(1)
		go l.work(lane)
	}
	return true
}

func (l *lanes) work(lane string) {
	defer l.busy.Done()
	for {
		task, ok := l.next(lane)
		if !ok {
			return
		}
		l.slots <- struct{}{}
		task()
		<-l.slots
		l.mu.Lock()
		l.count--
		l.mu.Unlock()
	}
}

// next takes the lane's oldest task; without one the lane ends.
func (l *lanes) next(lane string) (func(), bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tasks := l.waiting[lane]
	if len(tasks) == 0 {
		delete(l.waiting, lane)
		return nil, false
	}
	l.waiting[lane] = tasks[1:]
	return tasks[0], true
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
