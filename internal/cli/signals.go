package cli

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/pawl-dev/pawl/internal/loop"
)

// signals turns the process's signals into stops: the first ends the agent
// with grace, the second at once.
type signals struct {
	causes chan loop.Cause
	kill   chan struct{}
	raw    chan os.Signal
	ended  chan struct{}

	mu    sync.Mutex
	cause loop.Cause
}

// catchSignals begins to catch. A signal that was ignored when pawl started
// stays ignored, so that nohup works.
func catchSignals() *signals {
	s := &signals{causes: make(chan loop.Cause, 1), kill: make(chan struct{}), raw: make(chan os.Signal, 4), ended: make(chan struct{})}
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(s.raw, sig)
		}
	}
	go s.forward()
	return s
}

func (s *signals) forward() {
	defer close(s.ended)
	n := 0
	for sig := range s.raw {
		n++
		switch n {
		case 1:
			c := causeOf(sig)
			s.mu.Lock()
			s.cause = c
			s.mu.Unlock()
			s.causes <- c
		case 2:
			close(s.kill)
		}
	}
}

func causeOf(sig os.Signal) loop.Cause {
	switch sig {
	case syscall.SIGTERM:
		return loop.CauseTerminate
	case syscall.SIGHUP:
		return loop.CauseHangup
	}
	return loop.CauseInterrupt
}

func (s *signals) first() loop.Cause {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

func (s *signals) stop() {
	signal.Stop(s.raw)
	close(s.raw)
	<-s.ended
}
