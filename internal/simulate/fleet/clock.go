package fleet

import "time"

// clock is virtual time: what is to happen, in order. Of two deeds at one time
// the one that was planned first is first.
type clock struct {
	now   time.Time
	begin time.Time
	plans []plan // a heap
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
	c.plans = append(c.plans, plan{t, c.n, do})
	for i := len(c.plans) - 1; i > 0; {
		up := (i - 1) / 2
		if !c.before(i, up) {
			break
		}
		c.plans[i], c.plans[up] = c.plans[up], c.plans[i]
		i = up
	}
}

func (c *clock) before(i, j int) bool {
	a, b := &c.plans[i], &c.plans[j]
	return a.at.Before(b.at) || a.at.Equal(b.at) && a.n < b.n
}

// next lets time go on to the next deed and returns it; nil when there is none.
func (c *clock) next() func() {
	if len(c.plans) == 0 {
		return nil
	}
	first := c.plans[0]
	last := len(c.plans) - 1
	c.plans[0], c.plans[last] = c.plans[last], plan{}
	c.plans = c.plans[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down+1 < last && c.before(down+1, down) {
			down++
		}
		if down >= last || !c.before(down, i) {
			break
		}
		c.plans[i], c.plans[down] = c.plans[down], c.plans[i]
		i = down
	}
	c.now = first.at
	return first.do
}
