package outputs

import (
	"fmt"
	"time"
)

const (
	shareEvery = 250 * time.Millisecond // how soon other machines see what a run prints
	shareBound = 10 * time.Second       // how long a run waits at its end for the last of it
)

// Share copies what a run prints into its folder dir to the folder that machines share, or
// nothing where shared is "", until stop is called. A folder that cannot be written holds
// nothing up: it is told once, and what is missing is copied when it can be written again.
func Share(dir, shared, run string, warn func(string)) (stop func()) {
	if shared == "" {
		return func() {}
	}
	c := NewCopier(dir, shared, run)
	ends, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		c.share(ends, warn)
	}()
	return func() {
		close(ends)
		select {
		case <-ended:
		case <-time.After(shareBound):
			warn("cluster.files does not answer; other machines do not see all that the run printed")
		}
	}
}

func (c *Copier) share(ends <-chan struct{}, warn func(string)) {
	tick := time.NewTicker(shareEvery)
	defer tick.Stop()
	told := false
	for all := true; ; all = told {
		err := c.Copy(all)
		if err != nil && !told {
			warn(fmt.Sprintf("other machines do not see what the run prints until cluster.files can be written: %v", err))
		}
		told = err != nil
		select {
		case <-tick.C:
		case <-ends:
			if err := c.Copy(true); err != nil {
				warn(fmt.Sprintf("other machines do not see all that the run printed: %v", err))
			}
			return
		}
	}
}
