package simulate

import (
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// rng is splitmix64: small, fast and the same everywhere.
type rng uint64

func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	x := uint64(*r)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// chance is true in so many of 100 cases.
func (r *rng) chance(percent int) bool { return int(r.next()%100) < percent }

// between is a whole number from a to b, both included.
func (r *rng) between(a, b int) int { return a + int(r.next()%uint64(b-a+1)) }

func (r *rng) seconds(a, b int) time.Duration { return time.Duration(r.between(a, b)) * time.Second }

// try is how an iteration is run: what the strategy makes of it.
type try struct {
	at       time.Duration // since the loop's start
	agent    int           // 0 is the default one, 1 and above fallbacks, -1 the stronger one
	limit    time.Duration // iteration_timeout
	longer   bool          // gates have twice their time
	parallel bool
	diagnose bool
	rewind   bool
}

// trouble is why an iteration failed.
type trouble struct {
	message  string
	class    failure.Class
	kind     failure.Kind
	provider bool
	wait     time.Duration // named by the provider; 0 is not named
	gate     bool
	score    int // of the gates; -1 when none ran
	took     time.Duration
	cost     int // per cent of an iteration's
	from     obstacle
}

// obstacle is a cause of failures. meet is nil when it is not in the way this
// time; hopeless is true when nothing that a loop can do would help.
type obstacle interface {
	meet(t *try, r *rng) *trouble
	hopeless() bool
}

// project is a repository with its agents: what it meets recurs, so that there
// is something to learn.
type project struct {
	fallbacks int
	stronger  bool
	causes    []cause
}

// cause makes an obstacle for one loop.
type cause struct {
	name string
	make func(p *project, r *rng) obstacle
}

// world is one loop's: some work, and what is in its way.
type world struct {
	rng
	cause    string
	units    int
	obstacle obstacle
}

// result is one iteration's.
type result struct {
	trouble *trouble // nil when nothing was in the way
	done    bool     // all the work is done
	took    time.Duration
	cost    loop.MicroUSD
}

// iterationCost is what one with the default agent costs.
const iterationCost = 300_000

func (w *world) try(t *try) result {
	res := result{took: w.seconds(40, 120)}
	percent := 100
	if tr := w.obstacle.meet(t, &w.rng); tr != nil {
		if tr.from == nil {
			tr.from = w.obstacle
		}
		if tr.took > 0 {
			res.took = tr.took
		}
		res.trouble, percent = tr, tr.cost
	}
	switch {
	case t.agent < 0:
		percent *= 4
	case t.agent > 0:
		percent = percent * 11 / 10
	}
	res.cost = loop.MicroUSD(iterationCost * percent / 100)
	if res.trouble == nil {
		w.units--
		res.done = w.units <= 0
	}
	return res
}

// newProject draws a repository that meets two to four of the causes.
func newProject(causes []cause, r *rng) *project {
	p := &project{stronger: r.chance(60)}
	if r.chance(70) {
		p.fallbacks = r.between(1, 2)
	}
	for range r.between(2, 4) {
		p.causes = append(p.causes, causes[r.between(0, len(causes)-1)])
	}
	return p
}

// newWorld draws one loop of a project.
func newWorld(p *project, r *rng) *world {
	w := &world{rng: rng(r.next()), units: r.between(1, 3)}
	c := p.causes[r.between(0, len(p.causes)-1)]
	w.cause, w.obstacle = c.name, c.make(p, &w.rng)
	return w
}
