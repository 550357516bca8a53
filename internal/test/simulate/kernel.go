package simulate

import (
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/signal"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
)

// What holds for every player.
const (
	baseLimit     = 5 * time.Minute // iteration_timeout
	maxIterations = 10
	maxTime       = 6 * time.Hour
	maxCost       = loop.MicroUSD(20_000_000)
)

// tally is what one loop came to.
type tally struct {
	success        bool
	iterations     int
	cost           loop.MicroUSD
	time           time.Duration
	choices, right int
}

// judge counts a choice by what came of it: it was right when what it was
// made against did not come again.
type judge struct {
	pending obstacle
	tally   *tally
}

func (j *judge) ended(res result) {
	if j.pending != nil {
		j.tally.choices++
		if res.trouble == nil || res.trouble.from != j.pending {
			j.tally.right++
		}
	}
	j.pending = nil
	if res.trouble != nil {
		j.pending = res.trouble.from
	}
}

// gaveUp counts the choice to stop, which is right when nothing could help.
func (j *judge) gaveUp() {
	if j.pending == nil {
		return
	}
	j.tally.choices++
	if j.pending.hopeless() {
		j.tally.right++
	}
}

// ours plays loops with the kernel in one mode. What it learned goes from loop
// to loop, as it does through the database.
type ours struct {
	mode    strategy.Mode
	learned []strategy.Tally
}

func (o *ours) policy(p *project) *loop.Policy {
	pol := &loop.Policy{
		Kind: loop.Workflow, MaxIterations: maxIterations, Thrashing: 5, Repeated: 5, Stuck: 5, MaxWaits: 20,
		MaxWait:  6 * time.Hour,
		Timeouts: loop.Timeouts{Timeout: maxTime, IterationTimeout: baseLimit}, Costs: loop.Costs{MaxCost: maxCost, MaxIterationCost: loop.NoLimit,
			MaxIterationCalls: loop.NoLimit},
		Workers: loop.Workers{Agent: "a0"}, Mode: o.mode,
	}
	for i := range p.fallbacks {
		pol.Fallback = append(pol.Fallback, "a"+strconv.Itoa(i+1))
	}
	if p.stronger {
		pol.Stronger = "strong"
	}
	return pol
}

func (o *ours) forget() { o.learned = nil }

func (o *ours) play(p *project, w *world, start time.Time) tally {
	var sum tally
	j := judge{tally: &sum}
	at := start
	s, c := loop.Step(loop.State{}, loop.Event{Kind: loop.Started, At: at, Policy: o.policy(p), Learned: o.learned})
	for s.Status.Active() {
		if c.Kind == loop.Wait {
			at = c.Until
			s, c = loop.Step(s, loop.Event{Kind: loop.WaitOver, At: at, For: c.Seq})
			continue
		}
		res := w.try(tryOf(&c, at.Sub(start)))
		at = at.Add(res.took)
		waits := res.trouble != nil && res.trouble.provider && res.trouble.kind == failure.Transient
		if !waits || j.pending == nil { // waits for one thing are one choice
			j.ended(res)
		}
		s, c = loop.Step(s, loop.Event{Kind: loop.IterationEnded, At: at, Seed: w.next(), For: c.Seq,
			Record: record(&c, &res, at)})
	}
	if s.Status != loop.Completed && s.Status != loop.TimedOut {
		j.gaveUp()
	}
	o.learned = s.Learned
	sum.success, sum.iterations, sum.cost, sum.time = s.Status == loop.Completed, s.Iteration, s.Spent.Cost, at.Sub(start)
	return sum
}

// tryOf is what the engine makes of a command.
func tryOf(c *loop.Command, at time.Duration) *try {
	st := strategy.At(c.Strategy, nil)
	t := &try{
		at: at, limit: c.Limits.Wall, longer: c.GateFactor > 1, parallel: st.Parallelism != 1 && c.Parallelism != 1,
		rewind:   c.Rewind != 0,
		diagnose: st.Name == "diagnose", agent: int(c.Agent[1] - '0'),
	}
	if c.Agent == "strong" {
		t.agent = -1
	}
	return t
}

// record is what the engine makes of an iteration.
func record(c *loop.Command, res *result, at time.Time) *loop.Record {
	r := &loop.Record{
		Number: c.Iteration, Attempt: c.Attempt, Elapsed: res.took, Agent: c.Agent, Strategy: c.Strategy,
		Progress: -1, Score: 1000,
		Verified: true, Commits: 1, Snapshot: "s", Cost: res.cost, CostSource: "reported",
	}
	tr := res.trouble
	if tr == nil {
		r.Gates = []loop.Gate{{Name: "tests", Required: true, Status: loop.GatePassed}}
		if res.done {
			r.Signal = signal.Signal{Kind: signal.Complete}
		}
		return r
	}
	r.Score, r.Commits = tr.score, 0
	r.Failure = &failure.Analysis{
		Class: tr.class, Kind: tr.kind, Transient: tr.kind == failure.Transient, Provider: tr.provider, Summary: tr.message,
		Fingerprint: tr.message,
	}
	if tr.gate {
		r.Failure.Step = "tests"
		r.Gates = []loop.Gate{{Name: "tests", Required: true, Status: loop.GateFailed}}
	} else {
		r.Exit.Code = 1
	}
	if tr.wait > 0 {
		r.Failure.WaitUntil = at.Add(tr.wait)
	}
	return r
}
