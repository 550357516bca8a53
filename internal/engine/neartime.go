package engine

import (
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/loop"
)

// nearTime is what a person was told of limits on time while an iteration runs: an
// agent may work for hours, and the kernel warns at its end only.
type nearTime struct {
	mu         sync.Mutex
	over       bool
	own, ofRun bool
}

// watchTime tells a person when 80 % of a limit on time is used, from an iteration's
// beginning on until the function that it returns is called.
func (w *worker) watchTime(s loop.State, since time.Time) (stop func()) {
	if s.Command.Kind != loop.Run {
		return func() {}
	}
	told := &nearTime{}
	w.near = told
	var timers []*time.Timer
	for _, near := range s.TimesNear() {
		timers = append(timers, time.AfterFunc(max(0, near.After-time.Since(since)), func() {
			if told.tell(near.OfRun) {
				w.o.Log.Warn(near.Text, "run", w.id)
				w.notify(Notice{Kind: Warning, Text: near.Text, NearTime: near.OfRun})
			}
		}))
	}
	return func() {
		told.end()
		for _, t := range timers {
			t.Stop()
		}
	}
}

// tell is false after the end.
func (n *nearTime) tell(ofRun bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return false
	}
	n.own, n.ofRun = n.own || !ofRun, n.ofRun || ofRun
	return true
}

func (n *nearTime) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
}
