package autopilot

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Who gives way goes on when the last slot has its agent, and waits no longer than
// the bound for slots that are filled without end.
func TestOthersGiveWayToSlotsForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w way
		waited := func(ctx context.Context) time.Duration {
			began := time.Now()
			w.giveWay(ctx)
			return time.Since(began)
		}
		if d := waited(t.Context()); d != 0 {
			t.Errorf("without a slot: %v", d)
		}
		first, second := w.enter(), w.enter()
		time.AfterFunc(10*time.Millisecond, first)
		time.AfterFunc(20*time.Millisecond, first) // a second time
		time.AfterFunc(30*time.Millisecond, second)
		if d := waited(t.Context()); d != 30*time.Millisecond {
			t.Errorf("two slots: %v", d)
		}
		if d := waited(t.Context()); d != 0 {
			t.Errorf("after them: %v", d)
		}
		leave := w.enter()
		<-time.After(60 * time.Millisecond)
		defer w.enter()()
		leave()
		if d := waited(t.Context()); d != wayBound-60*time.Millisecond {
			t.Errorf("slots without end: %v", d)
		}
		if d := waited(t.Context()); d != 0 {
			t.Errorf("after the bound: %v", d)
		}
		defer w.enter()()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if d := waited(ended); d != 0 {
			t.Errorf("ended: %v", d)
		}
	})
}
