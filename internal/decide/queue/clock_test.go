package queue

import (
	"testing"
	"time"
)

// clocked is a queue with a clock of its own.
type clocked struct {
	now time.Time
	s   State
	c   Command
}

func openAt(now time.Time) *clocked {
	q := &clocked{now: now}
	q.s, q.c = Step(State{Target: "refs/heads/main"}, Event{
		Kind: Opened, At: now, Policy: &Policy{Batch: 8, Timeout: time.Hour, Action: Retry}, Facts: &Facts{Tip: "c1", Tree: "t1", Past: true},
	})
	return q
}

func (q *clocked) step(e Event) {
	e.At, e.For = q.now, q.c.Seq
	q.s, q.c = Step(q.s, e)
}

// lose answers the preparation: the change of a task is gone, and a person is asked.
func (q *clocked) lose(id string) {
	q.step(Event{Kind: Prepared, Prepared: &Prepare{
		Facts: Facts{Tip: "c1", Tree: "t1", Past: true}, Head: "c1", Result: "t1", Steps: []Merged{{ID: id, Lost: "gone"}},
	}})
}

// A clock that is set back, by hours or by less than a wait, makes no wait longer
// than it was to be.
func TestTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	for _, back := range []time.Duration{0, 500 * time.Millisecond, 5 * time.Hour, 90 * 24 * time.Hour} {
		t.Run(back.String(), func(t *testing.T) {
			t.Parallel()
			q := openAt(time.Date(2026, 2, 6, 10, 0, 0, 0, time.UTC))
			q.step(Event{Kind: Added, Entry: &Entry{ID: "a", Commit: "ca"}})
			q.step(Event{Kind: Added, Entry: &Entry{ID: "b", Commit: "cb"}})
			q.lose("a")
			if a, _ := q.s.Find("a"); a.Status != Parked || !a.Until.Equal(q.now.Add(time.Hour)) {
				t.Fatalf("%+v", a)
			}
			q.step(Event{Kind: Stumbled, Why: "the disk is full"})
			if q.c.Kind != DoWait || q.c.Until.Sub(q.now) != time.Second {
				t.Fatalf("%+v", q.c)
			}

			q.now = q.now.Add(time.Second - back) // the wait is over
			q.step(Event{Kind: WaitOver})
			if q.c.Kind == DoWait {
				if wait := q.c.Until.Sub(q.now); back == 0 || wait > time.Second {
					t.Fatalf("it waits %s more", wait)
				}
				q.now = q.c.Until
				q.step(Event{Kind: WaitOver})
			}
			if q.c.Kind != DoPrepare {
				t.Errorf("after the wait: %+v", q.c)
			}
			if a, _ := q.s.Find("a"); a.Until.Sub(q.now) > time.Hour {
				t.Errorf("a person has %s more", a.Until.Sub(q.now))
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
			q := openAt(time.Date(2026, 2, 6, 10, 0, 0, 0, time.UTC))
			q.step(Event{Kind: Added, Entry: &Entry{ID: "a", Commit: "ca"}})
			q.lose("a")
			asked := q.now

			q.now = q.now.Add(time.Minute + by)
			q.step(Event{Kind: Added, Entry: &Entry{ID: "b", Commit: "cb"}, ClockSet: by})
			if a, _ := q.s.Find("a"); a.Status != Parked || !a.Until.Equal(asked.Add(time.Hour+by)) {
				t.Errorf("a person was asked at %s, the clock was set by %s: %+v", asked, by, a)
			}
			q.step(Event{Kind: Stumbled, Why: "the disk is full"})
			q.now = q.now.Add(by)
			q.step(Event{Kind: Asked, Ask: &Ask{Wish: WishHold, ID: "b"}, ClockSet: by})
			if wait := q.s.Rest.Sub(q.now); wait != time.Second {
				t.Errorf("it waits %s", wait)
			}
		})
	}
}

// A clock that was set back counts once: what is waited for stays where it is at the
// next step.
func TestAClockIsSetBackOnce(t *testing.T) {
	t.Parallel()
	q := openAt(time.Date(2026, 2, 6, 10, 0, 0, 0, time.UTC))
	q.step(Event{Kind: Added, Entry: &Entry{ID: "a", Commit: "ca"}})
	q.lose("a")
	q.now = q.now.Add(-5 * time.Hour)
	for _, id := range []string{"b", "c", "d"} {
		q.step(Event{Kind: Added, Entry: &Entry{ID: id, Commit: "c" + id}})
		if a, _ := q.s.Find("a"); !a.Until.Equal(q.now.Add(time.Hour)) {
			t.Fatalf("a person has %s to answer", a.Until.Sub(q.now))
		}
	}
}
