package strategy

import (
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/failure"
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
	// Optional is true when what failed is an optional step.
	Optional bool
	Failed   []Use   // uses that failed so far, the last included
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
	var room [16]ranked // on the stack
	made, others, not := s.candidates(room[:0])
	s.sort(made)
	for i := range made {
		if c := &made[i]; !s.used(c.Name) {
			return Choice{c.Name, join("made for "+string(s.Class)+", not tried yet", c.record(s), notFirst(not, c.Priority))}
		}
	}
	s.sort(others)
	if c := s.other(others); c != nil {
		why := "nothing is made for " + string(s.Class)
		if len(made) > 0 {
			why = "all made for " + string(s.Class) + " were tried"
		}
		return Choice{c.Name, join(why+"; next in line", c.record(s), notFirst(not, c.Priority))}
	}
	if len(made) == 0 {
		return Choice{s.Current, join("no other strategy helps against "+string(s.Class), "", notFirst(not, lowest))}
	}
	next := &made[0]
	for i := range made {
		if made[i].Name == s.Current {
			next = &made[(i+1)%len(made)]
		}
	}
	return Choice{next.Name, join("all made for "+string(s.Class)+" were tried; in turn", next.record(s), notFirst(not, next.Priority))}
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

// candidates are the strategies made for the class, the others for failures of
// its kind, and those made for it that have no effect here. room is used for the
// first list.
func (s *Situation) candidates(room []ranked) (made, others []ranked, not []passed) {
	made = room
	each := func(c *Strategy) {
		fits := s.madeFor(c)
		if !fits && !s.serves(c) {
			return
		}
		if why := s.ineffective(c); why != "" {
			if fits {
				not = append(not, passed{c, why})
			}
			return
		}
		r := ranked{c, s.rank(c)}
		if fits {
			made = append(made, r)
		} else {
			others = append(others, r)
		}
	}
	for i := range builtin[1:] {
		each(&builtin[1+i])
	}
	for i := range s.Own {
		each(&s.Own[i])
	}
	return made, others, not
}

// madeFor is true for a strategy that names the class. The built-in ones for
// work are not for a failure that the same again may cure, e.g. a flaky test.
func (s *Situation) madeFor(c *Strategy) bool {
	if s.Optional {
		return c.SkipOptional
	}
	return slices.Contains(c.Classes, s.Class) && (!s.Transient || !c.work)
}

// serves is true for a strategy against failures of the same kind.
func (s *Situation) serves(c *Strategy) bool {
	if s.Transient {
		return c.forPassing() || c.SkipOptional
	}
	for _, k := range c.Classes {
		if !passing(k) {
			return true
		}
	}
	return false
}

func (c *Strategy) forPassing() bool {
	for _, k := range c.Classes {
		if passing(k) {
			return true
		}
	}
	return false
}

// ineffective says why a strategy would change nothing here; "" when it would.
// Of several settings one with an effect is enough; an instruction counts only
// where it is not about such a setting.
func (s *Situation) ineffective(c *Strategy) string {
	why, asks := "it changes nothing here", false
	no := func(reason string) {
		why, asks = reason, true
	}
	if c.Fallback {
		switch {
		case !s.CanFallback:
			no("agents.fallback names no agent")
		case s.Gate && s.Transient:
			no("another agent does not change a gate")
		default:
			return ""
		}
	}
	if c.Agent != "" {
		if !s.Gate || !s.Transient {
			return ""
		}
		no("another agent does not change a gate")
	}
	if c.Stronger {
		if s.CanStronger {
			return ""
		}
		no("agents.stronger names no agent")
	}
	if c.Rewind {
		if s.CanRewind {
			return ""
		}
		no("there is no better snapshot to go back to")
	}
	if c.SkipOptional {
		if s.HasOptional {
			return ""
		}
		no("nothing here is optional")
	}
	if c.TimeoutFactor > 1 || c.TimeoutFloor > 0 {
		reason := s.noLonger(c)
		if reason == "" {
			return ""
		}
		no(reason)
	}
	if !asks && c.Instruction != "" {
		return ""
	}
	return why
}

// Ineffective says why the strategy of that name would change nothing here; ""
// when it would, or when there is none.
func (s *Situation) Ineffective(name string) string {
	c := find(name, s.Own)
	if c == nil || name == Default {
		return ""
	}
	return s.ineffective(c)
}

// noLonger says why a strategy gives no more time; "" when it does.
func (s *Situation) noLonger(c *Strategy) string {
	switch {
	case s.Gate && c.TimeoutFactor > 1:
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

// rank is a strategy's place in the order of the mode; higher is first.
func (s *Situation) rank(c *Strategy) int {
	switch s.Mode {
	case Conservative:
		return c.Priority
	case Aggressive:
		return found(s.Learned, s.Class, c.Name).Wins
	default:
		return estimate(found(s.Learned, s.Class, c.Name), c.Priority)
	}
}

// sort orders by rank, then by priority, then as listed.
func (s *Situation) sort(list []ranked) {
	for i := 1; i < len(list); i++ { // stable, of a handful, without an allocation
		for j := i; j > 0 && before(&list[j], &list[j-1]); j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
}

func before(a, b *ranked) bool {
	return a.rank > b.rank || a.rank == b.rank && a.Priority > b.Priority
}

// other is the first untried one below the current priority, else the first
// untried one that is not the current.
func (s *Situation) other(list []ranked) *ranked {
	current := At(s.Current, s.Own).Priority
	var first *ranked
	for i := range list {
		c := &list[i]
		if c.Name == s.Current || s.used(c.Name) {
			continue
		}
		if c.Priority < current {
			return c
		}
		if first == nil {
			first = c
		}
	}
	return first
}

func (s *Situation) used(name string) bool {
	return slices.Contains(s.Failed, Use{s.Class, name})
}

// record is what was learned, where the mode looks at it.
func (r *ranked) record(s *Situation) string {
	if s.Mode == Conservative || len(s.Learned) == 0 {
		return ""
	}
	return found(s.Learned, s.Class, r.Name).record()
}

const lowest = -1 << 30

// notFirst says why strategies above a priority were not taken.
func notFirst(not []passed, priority int) string {
	text := ""
	for _, p := range not {
		if p.Priority <= priority {
			continue
		}
		if text != "" {
			text += "; "
		}
		text += "not " + p.Name + ": " + p.why
	}
	return text
}

// join puts sentences together, without empty ones.
func join(why, record, not string) string {
	if record != "" {
		why += "; " + record
	}
	if not != "" {
		why += "; " + not
	}
	return why
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
	if t := found(learned, class, FallbackProviders); t.weight() >= 2*one && t.Rate() >= 700 {
		return 1
	}
	return 3
}
