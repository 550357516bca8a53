package loop

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/decide/signal"
)

// This file has the warnings at 80 % of a limit and about signals that did not
// count, and the note to the agent about secrets.

func (s *State) nearCost() bool { return safety.Near(int64(s.Spent.Cost), int64(s.Policy.MaxCost)) }

// runTime is a limit on the time of a run, and what is used of it.
type runTime struct {
	what        string
	used, limit time.Duration
}

func (s *State) runTimes() []runTime {
	p := &s.Policy
	return []runTime{
		{"time", s.Spent.Wall, p.Timeout}, {"time of the iterations", s.Spent.Active, p.TaskTimeout},
		{"time of the iterations", s.Spent.Active, p.MaxDuration},
	}
}

// nearText is said at 80 % of the limit.
func (t *runTime) nearText() string {
	return fmt.Sprintf("%s %s is over 80 %% of the limit %s", t.what, Duration(t.used), Duration(t.limit))
}

// NearTime says which limit on the time of the run is near; "" when none is.
func (s *State) NearTime() string {
	for _, one := range s.runTimes() {
		if safety.Near(int64(one.used), int64(one.limit)) {
			return one.nearText()
		}
	}
	return ""
}

// TimeNear is when, after the beginning of an iteration, a limit on time is near.
type TimeNear struct {
	After time.Duration
	Text  string
	OfRun bool // the run's limit, else the iteration's
}

// TimesNear are the limits on time that the iteration of the open command comes near if
// it lasts: its own, and the first of the run's unless a person was warned of one before.
func (s *State) TimesNear() (list []TimeNear) {
	c := &s.Command
	const eighty = 5 // a fifth less
	if wall := s.settingsInForce().wall; wall > 0 {
		after := wall - wall/eighty
		text := fmt.Sprintf("iteration %d has run for %s, 80 %% of the limit %s for one",
			c.Iteration, Duration(after), Duration(wall))
		list = append(list, TimeNear{After: after, Text: text})
	}
	if s.Late {
		return list
	}
	var first *TimeNear
	for _, one := range s.runTimes() {
		after := one.limit - one.limit/eighty - one.used
		later := first != nil && after >= first.After
		if later || one.limit <= 0 || after < 0 {
			continue
		}
		one.used += after
		first = &TimeNear{After: after, Text: one.nearText(), OfRun: true}
	}
	if first != nil {
		list = append(list, *first)
	}
	return list
}

// UseNear is the cost, and the number of calls, of the iteration of the open command from which on 80 % of a limit is
// used: the iteration's, or the run's unless a person was warned of that before. 0 for none.
func (s *State) UseNear() (cost MicroUSD, calls int) {
	p := &s.Policy
	cost, calls = max(0, p.MaxIterationCost), max(0, p.MaxIterationCalls)
	cost, calls = cost-cost/5, calls-calls/5
	if left := p.MaxCost - p.MaxCost/5 - s.Spent.Cost; left > 0 && !s.Warned {
		cost = min(cmp.Or(cost, left), left)
	}
	return cost, calls
}

// NearUse says which limit an iteration comes near that has used so much; ofRun where it is the run's.
func (s *State) NearUse(cost MicroUSD, calls int) (text string, ofRun bool) {
	spent := State{Policy: s.Policy, Spent: Spent{Cost: s.Spent.Cost + cost}}
	if spent.nearCost() && !s.Warned {
		return spent.nearCostText(), true
	}
	near := s.nearIteration(&Record{Number: s.Command.Iteration, Cost: cost, Calls: calls})
	return strings.Join(near, "; "), false
}

func (s *State) nearCostText() string {
	return fmt.Sprintf("cost %s is over 80 %% of the limit %s", s.Spent.Cost, s.Policy.MaxCost.limitText())
}

// nearIteration is said of an iteration that came near one of its own limits
// and did not pass it: the next one may.
func (s *State) nearIteration(r *Record) []string {
	if r.Exit.Ended != NotEnded {
		return nil
	}
	p := &s.Policy
	var w []string
	near := func(used, limit int64, did, most string) {
		if safety.Near(used, limit) {
			w = append(w, fmt.Sprintf("iteration %d %s, over 80 %% of the limit %s for one", r.Number, did, most))
		}
	}
	near(int64(r.Cost), int64(p.MaxIterationCost), "cost "+r.Cost.String(), p.MaxIterationCost.limitText())
	near(int64(r.Calls), int64(p.MaxIterationCalls), fmt.Sprintf("made %d model calls", r.Calls),
		fmt.Sprint(p.MaxIterationCalls))
	if most := p.Tokens.Iteration; most != nil {
		used := r.TokensIn + r.TokensOut
		near(used, *most, fmt.Sprintf("used %d tokens", used), fmt.Sprint(*most))
	}
	if r.WarnedTime {
		return w
	}
	near(int64(r.Elapsed), int64(p.IterationTimeout), "took "+Duration(r.Elapsed), Duration(p.IterationTimeout))
	return w
}

// reasonUncounted: no signal of the agent counts; "" when one does, or nothing was
// like one.
func (r *Record) reasonUncounted() string {
	if !r.Valid() || r.Signal.Kind != signal.None || len(r.Malformed) == 0 {
		return ""
	}
	return r.Malformed[0]
}

// uncountedNote shows a person what is in the agent's next prompt, too.
func (r *Record) uncountedNote() []string {
	if why := r.reasonUncounted(); why != "" {
		return []string{"no signal in the agent's last message counts: " + why}
	}
	return nil
}

// secretNote asks the agent to take out what must not be in a commit. It never
// has the secret itself.
func secretNote(secrets []safety.Secret) string {
	const most = 5
	places := lists.Each(secrets[:min(len(secrets), most)], func(one safety.Secret) string {
		return fmt.Sprintf("%s:%d (%s)", one.File, one.Line, one.Kind)
	})
	more := ""
	if n := len(secrets) - most; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return "What looks like a secret was added at " + strings.Join(places, ", ") + more +
		". Take it out and read it from the environment; work with a secret in it does not land."
}
