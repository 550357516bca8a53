package fleet

import (
	"cmp"
	"container/heap"
	"time"
)

// clock is virtual time: what is to happen, in order. Of two deeds at one time
// the one that was planned first is first.
type clock struct {
	now   time.Time
	begin time.Time
	plans plans
	n     uint64

	// What the machine's clock is ahead, and was when this pawl began.
	ahead, began time.Duration
}

// wall is what the machine's clock tells.
func (c *clock) wall() time.Time { return c.now.Add(c.ahead) }

// steady is what it would tell if nobody had set it since this pawl began: what
// times that a process compares with its own come to.
func (c *clock) steady() time.Time { return c.now.Add(c.began) }

type plan struct {
	at time.Time
	n  uint64
	do func()
}

func newClock() *clock {
	begin := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	return &clock{now: begin, begin: begin}
}

func (c *clock) after(d time.Duration, do func()) { c.at(c.now.Add(d), do) }

// at plans a deed; one in the past happens now.
func (c *clock) at(t time.Time, do func()) {
	if t.Before(c.now) {
		t = c.now
	}
	c.n++
	heap.Push(&c.plans, plan{t, c.n, do})
}

// next lets time go on to the next deed and returns it; nil when there is none.
func (c *clock) next() func() {
	if len(c.plans) == 0 {
		return nil
	}
	first, _ := heap.Pop(&c.plans).(plan)
	c.now = first.at
	return first.do
}

// plans is a heap.
type plans []plan

func (p plans) Len() int      { return len(p) }
func (p plans) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p plans) Less(i, j int) bool {
	return cmp.Or(p[i].at.Compare(p[j].at), cmp.Compare(p[i].n, p[j].n)) < 0
}
func (p *plans) Push(x any) { *p = append(*p, x.(plan)) } //nolint:errcheck // Push is called with plans only
func (p *plans) Pop() any {
	last := len(*p) - 1
	defer func() { *p = (*p)[:last] }()
	return (*p)[last]
}
