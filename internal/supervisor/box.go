package supervisor

import (
	"context"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/sandbox"
)

// box is the sandbox of a job; zero when it has none.
type box struct {
	entry   *sandbox.Entry
	forward *forwarder
}

// startIn starts c, in the job's box if it has one, and returns when it runs.
func (t *task) startIn(c process.Command) (*process.Child, error) {
	if t.job.Box == nil {
		return t.reaper.Start(c)
	}
	policy := *t.job.Box
	t.limit(policy.Limits)
	policy.Spare = append(slices.Clone(policy.Spare), os.Getpid(), os.Getppid())
	c, entry, err := sandbox.Prepare(c, policy)
	if err != nil {
		return nil, err
	}
	t.box.entry = entry
	child, err := t.reaper.Start(c)
	if err != nil {
		return nil, err
	}
	if err := entry.Wait(); err != nil {
		select {
		case <-child.Done():
		case <-time.After(settle): // it hangs
			t.terminate(child, verdict{reason: loop.EndedStop})
		}
		return nil, err
	}
	if entry.Listener != nil {
		t.box.forward = forward(entry.Listener, t.job.Box.Proxy)
	}
	return child, nil
}

// limitGroup puts the supervisor, and so the boxes of all its jobs, under the
// limits of the first box. Jobs of one run have the same.
func (s *server) limitGroup(l sandbox.Limits) {
	s.limited.Do(func() {
		if held, leave := sandbox.LimitGroup(l); held {
			s.unlimit.Store(&leave)
		}
	})
}

// leaveBox gives up what the box took; the job and all that it started have ended.
func (t *task) leaveBox() {
	if t.box.forward != nil {
		t.box.forward.close()
	}
	if t.box.entry != nil {
		t.box.entry.Close()
	}
}

const (
	maxForwards = 256
	dialBound   = 5 * time.Second
)

// forwarder passes connections that come from inside of a box on to the proxy.
type forwarder struct {
	listener net.Listener
	proxy    string
	ctx      context.Context // done: no connection lives on
	stop     context.CancelFunc
	room     chan struct{}
	work     sync.WaitGroup
}

// forward accepts on listener until close. Without a proxy every connection is
// closed at once.
func forward(listener net.Listener, proxy string) *forwarder {
	f := &forwarder{listener: listener, proxy: proxy, room: make(chan struct{}, maxForwards)}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.work.Go(f.accept)
	return f
}

func (f *forwarder) close() {
	f.stop()
	_ = f.listener.Close()
	f.work.Wait()
}

func (f *forwarder) accept() {
	for {
		inside, err := f.listener.Accept()
		if err != nil {
			return
		}
		select {
		case f.room <- struct{}{}:
			f.work.Go(func() {
				f.pass(inside)
				<-f.room
			})
		default: // as many as there may be
			_ = inside.Close()
		}
	}
}

// pass copies both ways until both sides have said all.
func (f *forwarder) pass(inside net.Conn) {
	defer func() { _ = inside.Close() }()
	if f.proxy == "" {
		return
	}
	d := net.Dialer{Timeout: dialBound}
	outside, err := d.DialContext(f.ctx, "unix", f.proxy)
	if err != nil {
		return
	}
	defer func() { _ = outside.Close() }()
	defer context.AfterFunc(f.ctx, func() {
		_ = inside.Close()
		_ = outside.Close()
	})()
	var both sync.WaitGroup
	both.Go(func() { copyHalf(outside, inside) })
	both.Go(func() { copyHalf(inside, outside) })
	both.Wait()
}

// copyHalf copies one way and passes the end on.
func copyHalf(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
