package loop

import (
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
)

// chooseAndIssue chooses a strategy and issues the next iteration. After a transient
// failure it waits first, as the strategy says; work is worked on at once.
func (s turn) chooseAndIssue(e *Event, r *Record, warnings []string) {
	why, rewind := "", 0
	failed := r.Outcome == Failed && r.Failure != nil
	switch {
	case failed:
		why, rewind = s.chooseStrategy(r)
	case r.Outcome == Success && s.Policy.Strategy == "":
		s.Strategy = s.strategyAfterSuccess()
	}
	f := s.feedbackOn(r)
	if rewind != 0 {
		s.noteRewind(f)
	}
	s.issueIteration(f)
	c := &s.Command
	c.StrategyWhy, c.Rewind, c.Warnings = why, rewind, warnings
	if !failed || r.Failure.Kind != failure.Transient {
		s.Passing = 0
		return
	}
	s.Passing++
	kind := strategy.At(s.Strategy, s.Policy.Strategies).Backoff
	if d := kind.WaitAfter(r.Failure.Class, s.Passing, e.Seed); d > 0 {
		s.Status = Waiting
		c.Kind, c.Until, c.Why = Wait, s.endOfWait(e, d), "backoff after "+string(r.Failure.Class)
	}
}

// chooseStrategy takes the next strategy after a failed iteration.
func (s tactics) chooseStrategy(r *Record) (why string, rewind int) {
	f, name, elsewhere := r.Failure, s.Strategy, s.fallbackCures(r.Failure)
	switch {
	case s.Policy.Strategy != "":
	case r.Exit.Ended == EndedDestructive, f.Class == failure.LimitExceeded:
		s.Trial = Trial{}
		return "no strategy helps when pawl stopped the iteration: the next prompt says what is not allowed", 0
	case elsewhere:
		name, why = strategy.FallbackProviders, "made for "+string(f.Class)+": the next agent of agents.fallback"
	default:
		s.markStrategyUsed(f.Class)
		at := s.situationAfter(r)
		c := strategy.Next(&at)
		name, why = c.Name, c.Why
	}
	s.setStrategy(name)
	s.Trial = Trial{}
	at := s.situationAfter(r)
	if hasEffect := at.ReasonIneffective(name) == "" && at.Reaches(name, r.timedOut()); !hasEffect && !elsewhere {
		return why, rewind // it shows nothing
	}
	transient := f.Kind == failure.Transient || elsewhere
	s.Trial = Trial{Use: strategy.Use{Class: f.Class, Strategy: name}, Transient: transient}
	if s.canRewind(r) && strategy.At(name, s.Policy.Strategies).Rewind {
		rewind = s.Best.Number
	}
	return why, rewind
}

// strategyAnew is the strategy that a failure asks for when a person lets the run
// continue, where none counts as tried; "" for none. It moves no files and changes no provider.
func (s tactics) strategyAnew(r *Record) string {
	if r.Outcome != Failed || r.Failure == nil || r.Failure.Kind == failure.Permanent {
		return ""
	}
	again := *s.State
	again.Used, again.Strategy, again.Best, again.Policy.Fallback = nil, s.Policy.firstStrategy(), Best{}, nil
	tactics{&again}.chooseStrategy(r)
	return again.Strategy
}

// timedOut is true when a time limit of pawl's ended what failed.
func (r *Record) timedOut() bool {
	f := r.Failure
	ofStep := r.Steps != nil && f != nil && strings.HasSuffix(f.Summary, "ended at its time limit")
	return ofStep || r.Exit.Ended == EndedTimeout || r.Exit.Ended == EndedIdle ||
		slices.ContainsFunc(r.Gates, func(g Gate) bool { return g.Status == GateTimedOut })
}

// fallbackCures reports whether the next agent helps against an exhausted quota without a known
// end, which stops the run otherwise.
func (s tactics) fallbackCures(f *failure.Analysis) bool {
	moves := s.Policy.Strategy == "" || strategy.At(s.Policy.Strategy, s.Policy.Strategies).Fallback
	return f.Kind == failure.Permanent && f.Class == failure.QuotaExhausted && f.Provider && moves &&
		s.Fallback < len(s.Policy.Fallback)
}

const maxUsed = 100

// markStrategyUsed notes that the current strategy failed for a class. While there is
// another fallback agent, moving on to it is not used up.
func (s tactics) markStrategyUsed(class failure.Class) {
	u := strategy.Use{Class: class, Strategy: s.Strategy}
	movesOn := s.Strategy == strategy.FallbackProviders && s.Fallback < len(s.Policy.Fallback)
	if movesOn || slices.Contains(s.Used, u) {
		return
	}
	from := max(0, len(s.Used)+1-maxUsed)
	s.Used = append(append(make([]strategy.Use, 0, len(s.Used)-from+1), s.Used[from:]...), u)
}

// situationAfter gathers what a strategy is chosen by.
func (s tactics) situationAfter(r *Record) strategy.Situation {
	p, f := &s.Policy, r.Failure
	ofAgent := r.Steps != nil && r.Steps.Agent
	fixed := slices.ContainsFunc(r.Gates, func(g Gate) bool { return g.Name == f.Step && g.Fixed })
	return strategy.Situation{
		Mode: p.Mode, Current: s.Strategy, Class: f.Class, Transient: f.Kind == failure.Transient,
		Gate: f.Step != "" && !ofAgent, Fixed: fixed, Steps: r.Steps != nil,
		Unheard:  r.Steps != nil && !ofAgent,
		Optional: r.Steps != nil && r.Steps.Missed > 0 && len(r.Steps.Failed) == 0,
		Failed:   s.Used, Before: lists.Pick(s.Recent, (*Past).failedUse), Learned: s.Learned, Own: p.Strategies,
		CanFallback: len(p.Fallback) > 0, CanStronger: p.Stronger != "",
		CanRewind: s.canRewind(r), HasOptional: p.HasOptional,
		IterationTimeout: p.IterationTimeout, Ceiling: p.IterationCeiling,
	}
}

// failedUse is the use of a strategy that failed in the iteration.
func (p *Past) failedUse() (strategy.Use, bool) {
	return strategy.Use{Class: failure.Class(p.Class), Strategy: p.Strategy}, p.Outcome == Failed
}

// canRewind is true when there is a snapshot that is better than the tree.
func (s tactics) canRewind(r *Record) bool {
	return s.Policy.Kind != Workflow && s.Best.Snapshot != "" && s.Best.Score > r.Score && r.Score >= 0
}

// setStrategy makes a strategy the current one. One that moves on to the next agent
// does so each time; after the last comes the first again.
func (s tactics) setStrategy(name string) {
	s.Strategy = name
	if n := len(s.Policy.Fallback); n > 0 && strategy.At(name, s.Policy.Strategies).Fallback {
		s.Fallback, s.Left = (s.Fallback+1)%(n+1), nil
	}
}

// creditTrial judges the strategy on trial by the iteration that ended, before
// anything else is made of that.
func (s tactics) creditTrial(r *Record, at time.Time) []strategy.Credit {
	t := s.Trial
	if t.Strategy == "" {
		return nil
	}
	success, known := s.judgeTrial(&t, r)
	if r.Outcome == Waited && !known {
		return nil // the iteration continues
	}
	s.Trial = Trial{}
	if !known {
		return nil
	}
	if success && t.Transient {
		s.keepStrategy(t.Strategy)
	}
	c := strategy.Credit{Class: t.Class, Strategy: t.Strategy, Success: success}
	s.Learned = strategy.Learn(s.Learned, c, strategy.Day(at))
	return []strategy.Credit{c}
}

// judgeTrial decides whether a strategy helped; known is false where the iteration does not show it.
//
// Against a failure of the work: the iteration succeeded, or its gates got
// further than any before. Against a transient failure: nothing transient came
// again, even if the work failed. What a person, a crash or a limit cut off, what
// only a person can cure, and an iteration that did nothing show nothing.
func (s tactics) judgeTrial(t *Trial, r *Record) (success, known bool) {
	f := r.Failure
	switch r.Outcome {
	case Success:
		return true, true
	case Asked:
		return false, false
	case Waited:
		return false, t.Strategy == strategy.FallbackProviders && f != nil
	case Failed:
		switch {
		case f == nil, f.Kind == failure.Permanent && !f.Provider, f.Class == failure.LimitExceeded:
			return false, false
		case t.Transient:
			return f.Kind == failure.Work && f.Class != t.Class, true
		case f.Kind == failure.Transient:
			return false, false
		}
		return r.Score > s.Best.Score, true
	default:
		return true, t.Transient && r.Exit.Ended == NotEnded
	}
}

// keepStrategy lets the settings of a strategy stay in force that helped against a
// transient failure. The newest is the last.
func (s tactics) keepStrategy(name string) {
	if !strategy.At(name, s.Policy.Strategies).Lasting() {
		return
	}
	s.Kept = slices.DeleteFunc(slices.Clone(s.Kept), func(k string) bool { return k == name })
	s.Kept = append(s.Kept, name)
}

// strategyAfterSuccess is the strategy of a run whose work goes well.
func (s tactics) strategyAfterSuccess() string {
	if n := len(s.Kept); n > 0 {
		return s.Kept[n-1]
	}
	return s.Policy.firstStrategy()
}

// settings are those of the current strategy and of the kept ones together.
type settings struct {
	wall, timeout       time.Duration
	factor, parallelism int
}

func (s *State) settingsInForce() settings {
	p := &s.Policy
	st := strategy.At(s.Strategy, p.Strategies)
	in := settings{wall: st.Wall(p.IterationTimeout, p.IterationCeiling), factor: st.TimeoutFactor, timeout: st.Timeout}
	for _, name := range s.Kept {
		k := strategy.At(name, p.Strategies)
		in.wall = max(in.wall, k.Wall(p.IterationTimeout, p.IterationCeiling))
		in.factor, in.timeout = max(in.factor, k.TimeoutFactor), max(in.timeout, k.Timeout)
		if k.Parallelism > 0 && k.Parallelism < st.Parallelism {
			in.parallelism = k.Parallelism
		}
	}
	return in
}
