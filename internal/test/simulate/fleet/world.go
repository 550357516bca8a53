package fleet

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
)

// world is all that there is.
type world struct {
	o      Options
	rules  Rules
	rng    *rand.Rand
	whims  *rand.Rand // of who sets the clock: without them all else is the same
	clock  *clock
	report Report

	// What is stored.
	items   []item
	index   map[string]int // items by id
	queue   queue.State
	policy  queue.Policy
	asks    []queue.Event // of the queue, not taken yet
	target  *target
	limited time.Time // the provider refuses until then

	// What pawl has in memory, and what of it is under way.
	up, opened, taking bool
	working, piloting  bool          // a session; an event of it is being dealt with
	unstored           bool          // something of the session could not be stored
	epoch              int           // rises with each crash
	known              time.Duration // what the queue knows the machine's clock to be ahead
	sched              schedule.State
	mail               []schedule.Event
	adopt              []string

	// What people are at.
	paused, looking bool

	// What is counted.
	live      int // agents
	left      int // tasks that are not done
	orders    map[string]int64
	passes    map[string]int
	story     []string
	violation *ViolationError
}

// Play plays a board until everything is done, or a law is broken.
func Play(o Options) (Report, *ViolationError) {
	w := &world{
		o: o, rules: o.Rules.complete(), clock: newClock(),
		rng: rand.New(rand.NewPCG(o.Seed, 0)), whims: rand.New(rand.NewPCG(o.Seed, 1)), //nolint:gosec // chance, no secret
		index: map[string]int{}, orders: map[string]int64{}, passes: map[string]int{}, left: o.Tasks,
		report: Report{},
	}
	w.target = newTarget()
	w.stock()
	w.policy = queue.Policy{
		Batch: 1 + w.pick(64), Retries: w.pick(4), Timeout: 4 * time.Hour, Resolve: w.chance(900),
		Action: []queue.Action{queue.Defer, queue.Skip, queue.Retry, queue.Notify}[w.pick(4)],
	}
	w.queue.Target = "refs/heads/main"
	w.up = true
	w.open()
	w.session()
	w.later(25*time.Minute, w.crashes)
	w.later(6*time.Minute, w.meddle)
	w.later(time.Hour, w.limit)
	w.clock.after(time.Duration(w.whims.Int64N(int64(time.Hour))), w.setClock)
	w.play()
	return w.report, w.violation
}

const (
	// horizon is the time after which a play that does not end is broken.
	horizon = 365 * 24 * time.Hour
	// deeds is the number of them after which a play that does not end is broken:
	// time may stand still.
	deeds = 2_000_000
)

func (w *world) play() {
	for n := 1; w.left > 0 && w.violation == nil; n++ {
		do := w.clock.next()
		if do == nil || n > deeds || w.clock.now.Sub(w.clock.begin) > horizon {
			w.stuck()
			return
		}
		do()
		if n%(10*w.o.Tasks) == 0 {
			w.audit()
		}
	}
	if w.violation == nil {
		w.audit()
	}
}

// stuck says what is not done.
func (w *world) stuck() {
	var about []string
	for i := range w.items {
		if it := &w.items[i]; it.c.Status != board.Done && len(about) < 5 {
			about = append(about, it.c.ID)
			e, queued := w.queue.Find(it.c.ID)
			w.tell(it.c.ID, "in the end: %s (%s), in the queue: %t %s %s; queue: %+v %+v", it.c.Status, it.c.NotReady(),
				queued, e.Status, e.Why, w.queue.Command, w.queue.Stop)
		}
	}
	w.broken(Drained, about, "%d of %d tasks are not done after %s, such as %v", w.left, w.o.Tasks,
		w.clock.now.Sub(w.clock.begin), about)
}

// limit has the provider refuse for a while.
func (w *world) limit() {
	if w.left == 0 {
		return
	}
	w.later(2*time.Hour, w.limit)
	w.limited = w.clock.now.Add(w.random(10 * time.Minute))
	w.tell("", "the provider refuses until %s", w.limited.Sub(w.clock.begin))
}

// mine plans a deed of this pawl: it is not done when pawl was killed before.
func (w *world) mine(d time.Duration, do func()) {
	epoch := w.epoch
	w.clock.after(d, func() {
		if w.up && w.epoch == epoch {
			do()
		}
	})
}

// later plans what happens by chance, after about the given time.
func (w *world) later(mean time.Duration, do func()) { w.clock.after(w.random(mean), do) }

// random is a time with the given mean, at most ten times as long.
func (w *world) random(mean time.Duration) time.Duration {
	return time.Duration(float64(mean) * min(10, -math.Log(1-w.rng.Float64())))
}

// pick is a number from 0 below n.
func (w *world) pick(n int) int { return w.rng.IntN(n) }

// chance is true so many times in a thousand.
func (w *world) chance(times int) bool { return w.rng.IntN(1000) < times }

// rarely is true once in so many times.
func (w *world) rarely(times int) bool { return w.rng.IntN(times) == 0 }
