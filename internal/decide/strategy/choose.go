package strategy

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
)

// Use is a strategy that failed for a class of failure in this run.
type Use struct {
	Class    failure.Class `json:"class"`
	Strategy string        `json:"strategy"`
}

// Situation is what a choice is made from.
type Situation struct {
	Mode    Mode
	Current string        // strategy of the iteration that failed
	Class   failure.Class // what failed
	// Transient: the same again may work. Permanent failures ask for no choice.
	Transient bool
	// Gate is true when a gate failed and not the agent: another agent or more
	// time for it would change nothing.
	Gate bool
	// Fixed is true for a gate whose time limit no strategy raises.
	Fixed bool
	// Steps is true when a workflow's step failed: time limits of steps can be raised.
	Steps bool
	// Unheard is true when no agent would get an instruction: a workflow's
	// command failed.
	Unheard bool
	// Optional is true when what failed is an optional step.
	Optional bool
	Failed   []Use   // uses that failed so far, the last included
	Before   []Use   // the same, and those before a person let the run continue
	Learned  []Tally // from this run and those before
	Own      []Strategy

	// What has an effect here; a strategy that would change nothing is not chosen.
	CanFallback, CanStronger, CanRewind, HasOptional bool
	// IterationTimeout as it is, 0 for none; Ceiling is what the safety level
	// allows at most, 0 for no such limit.
	IterationTimeout, Ceiling time.Duration
}

// Choice is a strategy and why it was taken, for people.
type Choice struct {
	Name, Why string
}

// Next chooses the strategy after a failed iteration.
//
// The candidates are those made for the class and of effect here, in the
// order of the mode. The first that did not yet fail for the class in this run
// is taken; then one for failures of this kind with a priority below the current
// one's, or the first other one; and when all are used up, the candidates in
// turn. Where there is none, the strategy stays.
func Next(s *Situation) Choice {
	made, others, not := s.listCandidates()
	for i := range made {
		if c := &made[i]; !s.hasFailed(c.Name) {
			return s.explainChoice(c, "made for ", s.untriedText(c), not, c.Priority)
		}
	}
	if c := s.nextUntried(others); c != nil {
		if len(made) > 0 {
			all := map[bool]string{true: "the strategy for ", false: "every strategy for "}[len(made) == 1]
			return s.explainChoice(c, all, " was tried; trying another one", not, lowest)
		}
		if len(not) > 0 {
			return s.explainChoice(c, "what is made for ", " has no effect here; trying another one", not, lowest)
		}
		return s.explainChoice(c, "no strategy is meant for ", "; trying another one", nil, lowest)
	}
	if len(made) == 0 {
		return Choice{s.Current, "no other strategy helps against " + string(s.Class) + reasonsPassedOver(not, lowest)}
	}
	next := &made[0]
	for i := range made {
		if made[i].Name == s.Current {
			next = &made[(i+1)%len(made)]
		}
	}
	if len(made) == 1 {
		return s.explainChoice(next, "the only strategy for ", " with an effect here was tried; trying it again", not,
			lowest)
	}
	return s.explainChoice(next, "every strategy for ", " was tried; trying them again", not, lowest)
}

// explainChoice explains why c is taken: two pieces around the class, what was learned of
// it, and what was passed over of a priority above that one.
func (s *Situation) explainChoice(c *ranked, before, after string, not []passed, above int) Choice {
	return Choice{c.Name, before + string(s.Class) + after + c.learnedText(s) + reasonsPassedOver(not, above)}
}

// untriedText is about a strategy that did not fail since the run began, or since a person
// let it continue.
func (s *Situation) untriedText(c *ranked) string {
	switch {
	case slices.Contains(s.Before, Use{s.Class, c.Name}):
		return ", tried before, and again since a person let the run continue"
	case c.learnedText(s) != "":
		return ", not tried yet in this run"
	}
	return ", not tried yet"
}

// ranked is a candidate with its place in the order.
type ranked struct {
	*Strategy
	rank int
}

// passed is a strategy that is made for the class but would change nothing.
type passed struct {
	*Strategy
	why string
}

// listCandidates are the strategies made for the class, the others for failures of
// its kind, and those made for it that have no effect here.
func (s *Situation) listCandidates() (made, others []ranked, not []passed) {
	for _, c := range append(toPointers(builtin[1:]), toPointers(s.Own)...) {
		fits := s.isMadeFor(c)
		if !fits && !s.servesKind(c) {
			continue
		}
		why := s.reasonIneffective(c)
		switch {
		case why != "" && fits:
			not = append(not, passed{c, why})
		case why != "":
		case fits:
			made = append(made, ranked{c, s.rankOfStrategy(c)})
		default:
			others = append(others, ranked{c, s.rankOfStrategy(c)})
		}
	}
	slices.SortStableFunc(made, bestFirst)
	slices.SortStableFunc(others, bestFirst)
	return made, others, not
}

func toPointers(list []Strategy) []*Strategy {
	all := make([]*Strategy, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	return all
}

// isMadeFor reports whether the strategy names the class. The built-in ones for work are not for
// a failure that the same again may cure, e.g. a flaky test.
func (s *Situation) isMadeFor(c *Strategy) bool {
	if s.Optional {
		return c.SkipOptional
	}
	if s.Transient && c.work {
		return false
	}
	return slices.Contains(c.Classes, s.Class)
}

// servesKind reports whether the strategy is against failures of the same kind.
func (s *Situation) servesKind(c *Strategy) bool {
	if s.Transient {
		useless := c.Parallelism == 1 && Outage(s.Class) // less at once does not bring a service back
		helps := c.forPassing() || c.SkipOptional
		return helps && !useless
	}
	if slices.Contains(failure.Unanswered(), s.Class) {
		return false // the next prompt says what to do otherwise; only another model helps more
	}
	return slices.ContainsFunc(c.Classes, func(k failure.Class) bool { return !isPassing(k) })
}

func (c *Strategy) forPassing() bool { return slices.ContainsFunc(c.Classes, isPassing) }

// reasonIneffective: the strategy would change nothing here; "" when it would.
// Of several settings one with an effect is enough; an instruction counts only
// where it is not about such a setting.
func (s *Situation) reasonIneffective(c *Strategy) string {
	why := ""
	for _, setting := range [...]struct {
		asks bool
		why  string // it has no effect; "" when it has
	}{
		{c.Fallback, reasonUnless(s.CanFallback, "agents.fallback names no agent", s.reasonSameGate())},
		{c.Agent != "", s.reasonSameGate()},
		{c.Stronger, reasonUnless(s.CanStronger, "agents.stronger names no agent",
			reasonUnless(!s.Unheard, unheard, ""))},
		{c.Rewind, reasonUnless(s.CanRewind, "there is no better snapshot to go back to", "")},
		{c.SkipOptional, reasonUnless(s.HasOptional, "nothing here is optional", "")},
		{c.TimeoutFactor > 1 || c.TimeoutFloor > 0, s.reasonNoLonger(c)},
		{s.Steps && c.Parallelism > 0 && c.Parallelism < builtin[0].Parallelism, ""},
		{s.Steps && c.Timeout > builtin[0].Timeout, ""},
		{s.Steps && !c.UseCache && !c.Fallback, ""},
	} {
		if setting.asks && setting.why == "" {
			return ""
		}
		if setting.asks {
			why = setting.why
		}
	}
	switch {
	case why == "" && c.Instruction == "":
		return "it changes nothing here"
	case why == "" && s.Unheard:
		return unheard
	}
	return why
}

const unheard = "what failed is a command, not an agent"

func reasonUnless(can bool, why, otherwise string) string {
	if can {
		return otherwise
	}
	return why
}

func (s *Situation) reasonSameGate() string {
	if s.Gate && s.Transient {
		return "another agent does not change a gate"
	}
	return ""
}

// ReasonIneffective finds the strategy by name: it would change nothing here; "" when it
// would, or when there is none.
func (s *Situation) ReasonIneffective(name string) string {
	c := findStrategy(name, s.Own)
	if c == nil || name == Default {
		return ""
	}
	return s.reasonIneffective(c)
}

// Reaches reports whether the settings of a strategy are about what failed, so that another end of the next
// iteration may come from them. timedOut: a time limit ended what failed.
func (s *Situation) Reaches(name string, timedOut bool) bool {
	c := findStrategy(name, s.Own)
	if c == nil || name == Default {
		return false
	}
	longer := c.TimeoutFactor > 1 || c.TimeoutFloor > 0 || c.Timeout > builtin[0].Timeout
	fewer := c.Parallelism > 0 && c.Parallelism < builtin[0].Parallelism
	crowded := s.Class == failure.ResourceExhausted || s.Class == failure.PortConflict || s.Class == failure.RateLimit
	betterWork, hasOptional := c.Stronger || c.Agent != "" || c.Rewind, s.Optional || s.HasOptional
	transientGate := s.Transient && s.Gate
	switch {
	case timedOut && longer, c.Fallback && !s.Gate, betterWork && !s.Unheard && !s.Transient, c.Agent != "" && !s.Gate,
		c.SkipOptional && hasOptional, fewer && crowded, c.Instruction != "" && !s.Unheard && !transientGate:
		return true
	}
	return false
}

func (s *Situation) reasonNoLonger(c *Strategy) string {
	switch ofGates := s.Gate || s.Steps; {
	case s.Fixed:
		return "the time limit belongs to the gate"
	case ofGates && c.TimeoutFactor > 1:
		return ""
	case s.IterationTimeout <= 0:
		return "there is no iteration_timeout to raise"
	case c.Wall(s.IterationTimeout, s.Ceiling) > s.IterationTimeout:
		return ""
	case s.Ceiling > 0 && s.Ceiling <= s.IterationTimeout:
		return "the safety level allows no longer iteration"
	}
	return "its timeout is not above iteration_timeout"
}

// rankOfStrategy is a strategy's place in the order of the mode; higher is first.
func (s *Situation) rankOfStrategy(c *Strategy) int {
	switch s.Mode {
	case Conservative:
		return c.Priority
	case Aggressive:
		return tallyOfStrategy(s.Learned, s.Class, c.Name).Wins
	default:
		return successChance(tallyOfStrategy(s.Learned, s.Class, c.Name), c.Priority) / c.costFactor()
	}
}

// bestFirst orders by rank, then by priority, then as listed.
func bestFirst(a, b ranked) int {
	return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(b.Priority, a.Priority))
}

// nextUntried is the first untried one below the current priority, else the first
// untried one that is not the current.
func (s *Situation) nextUntried(list []ranked) *ranked {
	current := At(s.Current, s.Own).Priority
	var first *ranked
	for i := range list {
		c := &list[i]
		if c.Name == s.Current || s.hasFailed(c.Name) {
			continue
		}
		if c.Priority < current {
			return c
		}
		first = cmp.Or(first, c)
	}
	return first
}

func (s *Situation) hasFailed(name string) bool {
	return slices.Contains(s.Failed, Use{s.Class, name})
}

// learnedText describes what was learned about the strategy; "" in the conservative mode, which
// does not use it.
func (r *ranked) learnedText(s *Situation) string {
	if s.Mode == Conservative || len(s.Learned) == 0 {
		return ""
	}
	return tallyOfStrategy(s.Learned, s.Class, r.Name).recordText()
}

const lowest = -1 << 30

// reasonsPassedOver lists those of the strategies above a priority.
func reasonsPassedOver(not []passed, priority int) string {
	text := ""
	for _, p := range not {
		if p.Priority > priority {
			text += "; not " + p.Name + ": " + p.why
		}
	}
	return text
}

// Patience is how many waits in a row for a provider, of which it did not say
// how long they will be, come before the next agent is tried. Where that was
// learned to help, auto does not wait for a second time.
func Patience(m Mode, class failure.Class, learned []Tally) int {
	switch m {
	case Conservative:
		return 5
	case Aggressive:
		return 1
	default:
	}
	if t := tallyOfStrategy(learned, class, FallbackProviders); t.totalWeight() >= 2*one && t.Rate() >= 700 {
		return 1
	}
	return 3
}
