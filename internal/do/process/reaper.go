package process

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Reaper starts children and waits for every process that becomes a child of
// this one, orphans of its children included. Nothing else in the same
// process may wait for children: os/exec would race with it.
type Reaper struct {
	mu       sync.Mutex
	wake     *sync.Cond
	children map[int]*Child
	inits    map[int]bool  // the children that are the init of a namespace
	idle     chan struct{} // closed while there is no child at all
	epoch    int           // rises with every start
	closed   bool
	finished chan struct{}
}

// Child is a process that a Reaper started. Its pid is its session's and its
// group's id too. The init of a process namespace stands for its command: see
// [Reaper.Report].
type Child struct {
	PID    int
	done   chan struct{}
	status syscall.WaitStatus
}

// Done is closed when the process has ended and was reaped.
func (c *Child) Done() <-chan struct{} { return c.done }

// Status is how it ended; meaningful once Done is closed.
func (c *Child) Status() syscall.WaitStatus { return c.status }

// NewReaper makes this process the adopter of its descendants' orphans and
// starts to wait for them.
func NewReaper() (*Reaper, error) {
	if err := BecomeSubreaper(); err != nil {
		return nil, err
	}
	r := &Reaper{
		children: map[int]*Child{}, inits: map[int]bool{},
		idle: make(chan struct{}), finished: make(chan struct{}),
	}
	r.wake = sync.NewCond(&r.mu)
	close(r.idle)
	go r.waitLoop()
	return r, nil
}

// Start starts c. The error is a *StartError.
func (r *Reaper) Start(c Command) (*Child, error) {
	// The lock is held over the fork, so that the end of a child that exits at
	// once waits until the child is known here.
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, &StartError{Code: -1, Message: "cannot start " + c.Args[0] + ": the supervisor is leaving"}
	}
	pid, err := forkChild(c)
	if err != nil {
		return nil, err
	}
	child := &Child{PID: pid, done: make(chan struct{})}
	r.children[pid] = child
	if c.Init {
		r.inits[pid] = true
	}
	r.epoch++
	select {
	case <-r.idle:
		r.idle = make(chan struct{})
	default:
	}
	r.wake.Signal()
	return child, nil
}

// Idle is closed when no descendant is left. Each Start opens a new one.
func (r *Reaper) Idle() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.idle
}

// Close ends the waiting; it returns at once when there are children left,
// and else after the reaper's goroutine has ended.
func (r *Reaper) Close() {
	r.mu.Lock()
	r.closed = true
	idle := r.idle
	r.wake.Signal()
	r.mu.Unlock()
	select {
	case <-idle:
		<-r.finished
	default:
	}
}

func (r *Reaper) waitLoop() {
	defer close(r.finished)
	for {
		r.mu.Lock()
		epoch := r.epoch
		r.mu.Unlock()
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == nil:
			r.childEnded(pid, status)
		case errors.Is(err, syscall.ECHILD):
			if !r.awaitStart(epoch) {
				return
			}
		}
	}
}

func (r *Reaper) childEnded(pid int, status syscall.WaitStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inits, pid)
	// An unknown pid is an orphan that fell to us, or a child whose exec failed.
	r.finishChild(pid, status)
}

// Report says how the command of an init ended, which may have others to wait
// for and lives on. One that ends without a report has ended like its command.
func (r *Reaper) Report(init *Child, status syscall.WaitStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.children[init.PID] == init {
		r.finishChild(init.PID, status)
	}
}

func (r *Reaper) finishChild(pid int, status syscall.WaitStatus) {
	if child, ok := r.children[pid]; ok {
		delete(r.children, pid)
		child.status = status
		close(child.done)
	}
}

// awaitStart waits for the next start; epoch is the count of starts from before the
// system said that there is no child. It returns false when r is closed.
func (r *Reaper) awaitStart(epoch int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.epoch != epoch {
		return true
	}
	// A child that another waiter took is gone all the same.
	for pid, child := range r.children {
		delete(r.children, pid)
		close(child.done)
	}
	select {
	case <-r.idle:
	default:
		close(r.idle)
	}
	for r.epoch == epoch && !r.closed {
		r.wake.Wait()
	}
	return r.epoch != epoch
}

// Ended counts what a termination did.
type Ended struct {
	Found  int // processes that were there
	Killed int // of these, the ones that did not go when asked and were killed
	Left   int // could not be ended: another user's, or stuck in the system
}

// Terminate ends every descendant of this process: TERM to all, up to grace
// for them to go, then stop and KILL until none is left. A done ctx cuts the
// grace short; the killing itself is bounded by ten seconds.
func (r *Reaper) Terminate(ctx context.Context, grace time.Duration) Ended {
	h := hunt{
		find: func() []Proc { return r.ownDescendants() },
		wait: func(ctx context.Context, d time.Duration) bool {
			timer := time.NewTimer(d)
			defer timer.Stop()
			select {
			case <-r.Idle():
				return true
			case <-timer.C:
			case <-ctx.Done():
			}
			return false
		},
	}
	return h.endAllMembers(ctx, grace)
}

// ownDescendants lists the living processes below this one. Where orphans do not
// fall to us, the groups of our children are taken in addition.
func (r *Reaper) ownDescendants() []Proc {
	all := readTable()
	below := descendantsOf(all, map[int]bool{os.Getpid(): true})
	r.mu.Lock()
	for i, p := range below {
		below[i].init = r.inits[p.PID]
	}
	groups := make(map[int]bool, len(r.children))
	for pid := range r.children {
		groups[pid] = true
	}
	r.mu.Unlock()
	if isSubreaper() {
		return below
	}
	have := lists.Set(lists.Each(below, func(p Proc) int { return p.PID }))
	for _, p := range all {
		if groups[p.Group] && !have[p.PID] && p.PID != os.Getpid() {
			below = append(below, p)
		}
	}
	return below
}
