package engine

import (
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/outputs"
)

const (
	// shareEvery is how soon other machines see what a run prints.
	shareEvery = 250 * time.Millisecond
	// shareBound is how long a run waits at its end for the last of it.
	shareBound = 10 * time.Second
)

// shareOutputs copies what the run prints to where other machines see it, until stop
// is called. A folder that cannot be written holds nothing up: it is told once, and
// what is missing is copied when it can be written again.
func (s *session) shareOutputs() (stop func()) {
	shared := s.o.Store.Files()
	if shared == "" {
		return func() {}
	}
	c := outputs.NewCopier(s.runDir, shared, s.id)
	ends, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		s.share(c, ends)
	}()
	return func() {
		close(ends)
		select {
		case <-ended:
		case <-time.After(shareBound):
			s.warn("cluster.files does not answer; other machines do not see all that the run printed")
		}
	}
}

func (s *session) share(c *outputs.Copier, ends <-chan struct{}) {
	tick := time.NewTicker(shareEvery)
	defer tick.Stop()
	told := false
	for all := true; ; all = told {
		err := c.Copy(all)
		if err != nil && !told {
			s.warn(fmt.Sprintf("other machines do not see what the run prints until cluster.files can be written: %v", err))
		}
		told = err != nil
		select {
		case <-tick.C:
		case <-ends:
			if err := c.Copy(true); err != nil {
				s.warn(fmt.Sprintf("other machines do not see all that the run printed: %v", err))
			}
			return
		}
	}
}
