// Package stopsignal turns the signals of the process into stops of what it drives.
package stopsignal

import (
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// Signals turns the process's signals into stops: the first ends the agent
// with grace, the second at once.
type Signals struct {
	Stops chan loop.Cause
	Kill  chan struct{}
	raw   chan os.Signal
	ended chan struct{}
	stop  sync.Once
	first atomic.Value // the first one's loop.Cause
}

// Catch begins to catch. A signal that was ignored when pawl started
// stays ignored, so that nohup works.
func Catch() *Signals {
	s := &Signals{Stops: make(chan loop.Cause, 1), Kill: make(chan struct{}), raw: make(chan os.Signal, 4),
		ended: make(chan struct{})}
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(s.raw, sig)
		}
	}
	go s.forwardSignals()
	return s
}

func (s *Signals) forwardSignals() {
	defer close(s.ended)
	n := 0
	for sig := range s.raw {
		n++
		switch n {
		case 1:
			c := causeOfSignal(sig)
			s.first.Store(c)
			s.Stops <- c
		case 2:
			close(s.Kill)
		}
	}
}

func causeOfSignal(sig os.Signal) loop.Cause {
	switch sig {
	case syscall.SIGTERM:
		return loop.CauseTerminate
	case syscall.SIGHUP:
		return loop.CauseHangup
	}
	return loop.CauseInterrupt
}

// First is the first one's cause, NoCause while there was none.
func (s *Signals) First() loop.Cause {
	c, _ := s.first.Load().(loop.Cause)
	return c
}

// Stop ends the catching; again, it does nothing.
func (s *Signals) Stop() {
	s.stop.Do(func() {
		signal.Stop(s.raw)
		close(s.raw)
		<-s.ended
	})
}
