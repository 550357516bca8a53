package queue

import (
	"testing"
	"time"
)

// A clock that is set back, by hours or by less than a wait, makes no wait longer
// than it was to be.
func TestTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	for _, back := range []time.Duration{0, 500 * time.Millisecond, 5 * time.Hour, 90 * 24 * time.Hour} {
		t.Run(back.String(), func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 2, 6, 10, 0, 0, 0, time.UTC)
			policy := Policy{Batch: 8, Timeout: time.Hour, Action: Retry}
			facts := Facts{Tip: "c1", Tree: "t1", Past: true}
			s, c := Step(State{Target: "refs/heads/main"}, Event{Kind: Opened, At: now, Policy: &policy, Facts: &facts})
			step := func(e Event) {
				t.Helper()
				e.At, e.For = now, c.Seq
				s, c = Step(s, e)
			}
			step(Event{Kind: Added, Entry: &Entry{ID: "a", Commit: "ca"}})
			step(Event{Kind: Added, Entry: &Entry{ID: "b", Commit: "cb"}})
			lost := Prepare{Facts: facts, Head: "c1", Result: "t1", Steps: []Merged{{ID: "a", Lost: "gone"}}}
			step(Event{Kind: Prepared, Prepared: &lost})
			if a, _ := s.Find("a"); a.Status != Parked || !a.Until.Equal(now.Add(time.Hour)) {
				t.Fatalf("%+v", a)
			}
			step(Event{Kind: Stumbled, Why: "the disk is full"})
			if c.Kind != DoWait || c.Until.Sub(now) != time.Second {
				t.Fatalf("%+v", c)
			}

			now = now.Add(time.Second - back) // the wait is over
			step(Event{Kind: WaitOver})
			if c.Kind == DoWait {
				if wait := c.Until.Sub(now); back == 0 || wait > time.Second {
					t.Fatalf("it waits %s more", wait)
				}
				now = c.Until
				step(Event{Kind: WaitOver})
			}
			if c.Kind != DoPrepare {
				t.Errorf("after the wait: %+v", c)
			}
			if a, _ := s.Find("a"); a.Until.Sub(now) > time.Hour {
				t.Errorf("a person has %s more", a.Until.Sub(now))
			}
		})
	}
}

// A clock that is set while somebody looks on, a day forward or back, changes
// nothing about how long a person has to answer, or how long pawl waits.
func TestTheClockIsSetWhileSomebodyLooksOn(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 2, 6, 10, 0, 0, 0, time.UTC)
			policy := Policy{Batch: 8, Timeout: time.Hour, Action: Retry}
			facts := Facts{Tip: "c1", Tree: "t1", Past: true}
			s, c := Step(State{Target: "refs/heads/main"}, Event{Kind: Opened, At: now, Policy: &policy, Facts: &facts})
			step := func(e Event) {
				t.Helper()
				e.At, e.For = now, c.Seq
				s, c = Step(s, e)
			}
			step(Event{Kind: Added, Entry: &Entry{ID: "a", Commit: "ca"}})
			lost := Prepare{Facts: facts, Head: "c1", Result: "t1", Steps: []Merged{{ID: "a", Lost: "gone"}}}
			step(Event{Kind: Prepared, Prepared: &lost})
			asked := now

			now = now.Add(time.Minute + by)
			step(Event{Kind: Added, Entry: &Entry{ID: "b", Commit: "cb"}, ClockSet: by})
			if a, _ := s.Find("a"); a.Status != Parked || !a.Until.Equal(asked.Add(time.Hour+by)) {
				t.Errorf("a person was asked at %s, the clock was set by %s: %+v", asked, by, a)
			}
			step(Event{Kind: Stumbled, Why: "the disk is full"})
			now = now.Add(by)
			step(Event{Kind: Asked, Ask: &Ask{Wish: WishHold, ID: "b"}, ClockSet: by})
			if wait := s.Rest.Sub(now); wait != time.Second {
				t.Errorf("it waits %s", wait)
			}
		})
	}
}
