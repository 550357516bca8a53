package loop

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
)

// This file has what a run does about limits that it need not meet itself,
// and which agent works while one lasts. The rules are:
//   - A limit that another run met is waited for like one's own, without a call.
//   - An agent that is left because of a limit is the run's again when that
//     is over, from the next iteration on.
//   - No agent under a limit is moved on to; when all are, the first that
//     comes back is waited for.
//   - In a workflow only a step whose turn it is waits: commands and steps by
//     other agents go on, and a step whose agent is under a limit fails by it.
//   - After a person resumed or answered, the next iteration tries even under a
//     known limit.

// Limited is a limit of an agent's provider that is known when an event comes
// in, met by this run or another.
type Limited struct {
	Agent string        `json:"agent"`
	Day   string        `json:"day,omitempty"` // what all runs spent in a day, where that is the limit
	Who   string        `json:"who,omitempty"` // the agent of a workflow's step that met it, in the place of Agent
	Class failure.Class `json:"class"`
	Until time.Time     `json:"until"`
	Named bool          `json:"named,omitempty"` // the provider said until when
	Times int           `json:"times,omitempty"` // met in a row
	Run   string        `json:"run,omitempty"`   // another run, that met it
	// Probe is another run that tries whether the limit is over; Until is then
	// how long its result is waited for.
	Probe string `json:"probe,omitempty"`
}

// Left is an agent that the run left because of a limit.
type Left struct {
	Agent int           `json:"agent"` // 0: Policy.Agent, n: the n-th of Policy.Fallback
	Class failure.Class `json:"class"`
	Until time.Time     `json:"until"`
	Times int           `json:"times"` // in a row
}

// knownLimit is an agent's limit, over or not.
func (e *Event) knownLimit(agent string) (Limited, bool) {
	for _, l := range e.Limited {
		if l.Agent == agent {
			return l, true
		}
	}
	return Limited{}, false
}

// limitOfAgent is the limit that keeps an agent from working now.
func (e *Event) limitOfAgent(agent string) (Limited, bool) {
	l, ok := e.knownLimit(agent)
	return l, ok && l.Until.After(e.At)
}

func (l *Limited) limitName() string {
	if l.Day != "" {
		return l.Day
	}
	who := cmp.Or(l.Who, l.Agent)
	switch l.Class {
	case failure.QuotaExhausted:
		return "usage limit of " + who
	case failure.RateLimit:
		return "rate limit of " + who
	case failure.Network:
		return "no connection from " + who + " to its provider"
	}
	return "outage of " + who + "'s provider"
}

// Reason is the limit and how it is known.
func (l *Limited) Reason() string { return l.limitName() + l.sourceText() }

func (l *Limited) sourceText() string {
	text := ""
	if l.Run != "" {
		text = ", hit by run " + l.Run
	}
	if l.Probe != "" {
		text += "; run " + l.Probe + " checks whether it is over"
	}
	return text
}

// applyKnownLimits replaces an iteration or a review whose agent is under a limit by a wait,
// or gives it to another agent.
func (s turn) applyKnownLimits(e *Event) {
	c := s.Command
	if c.Kind != Run && c.Kind != RunReview {
		return
	}
	asked := e.Kind == Resumed || e.Kind == Answered
	if c.Kind == Run && !asked && s.returnToEarlierAgent(e) {
		c = s.Command
	}
	l, blocked := e.limitOfAgent(c.Agent)
	ofSteps := c.Kind == Run && s.Policy.Kind == Workflow
	if !blocked || ofSteps {
		return // of a workflow only the steps of that agent wait
	}
	if asked {
		s.Command.Insist = true
		return
	}
	l.Times = max(l.Times, s.Waits)
	if c.Kind == RunReview {
		s.takeTryBack()
		s.delayReview(e, &l)
	} else {
		s.answerLimit(e, &l)
	}
	to := &s.Command
	s.Seq, to.Seq, to.Warnings, to.Learned = c.Seq, c.Seq, c.Warnings, c.Learned
	if to.Kind == Run || to.Kind == Wait {
		to.Rewind = c.Rewind
	}
	to.StrategyWhy = cmp.Or(to.StrategyWhy, c.StrategyWhy)
}

// takeTryBack takes back the try of a review that was not started.
func (s *State) takeTryBack() {
	if s.PendingReview != nil {
		h := *s.PendingReview
		h.Tries--
		s.PendingReview = &h
	}
}

// commandThrottled answers a command that could not be begun: another run met a limit in
// the meantime, or was quicker to try whether one is over. With a text the run rests:
// a person has to put something in order first.
func (s turn) commandThrottled(e *Event) {
	kinds := []CommandKind{Run, RunReview}
	if s.Status != Running || e.For != s.Command.Seq || !slices.Contains(kinds, s.Command.Kind) {
		return
	}
	s.advanceClock(e.At)
	c := s.Command
	if e.Text != "" {
		s.finishSession(&Command{Status: Paused, Why: e.Text})
		return
	}
	if s.StopAsked != NoCause || s.PauseAsked {
		if c.Kind == RunReview {
			s.takeTryBack()
		}
		end := &Command{Status: Paused, Why: "paused before an attempt"}
		if s.StopAsked != NoCause {
			end = stopCommand(s.StopAsked)
		}
		s.finishSession(end)
		return
	}
	c.Warnings, c.Learned, c.Insist = nil, nil, false
	s.issueCommand(&c)
}

// answerLimit answers a limit of the agent whose turn it is: the next agent, a
// question, or a wait.
func (s turn) answerLimit(e *Event, l *Limited) {
	p := &s.Policy
	tooMany := p.MaxWaits >= 0 && s.Waits > p.MaxWaits
	long := p.MaxWait > 0 && l.Probe == "" && l.Until.Sub(e.At) > p.MaxWait
	mayLeave := l.Agent == s.Policy.agentAt(s.Fallback) || s.Policy.Strategy == "" // else it is a fixed strategy's own
	wants := long || s.movesToNextAgent(e, l, tooMany)
	leaves := mayLeave && wants
	if leaves {
		if to, free := s.firstFreeAgent(e, l.Agent); free {
			s.moveToAgent(e, l, to, long)
			return
		}
	}
	if tooMany {
		s.restUntilProviderAnswers(l)
		return
	}
	if leaves {
		l = s.turnToEarliest(e, l)
	}
	if p.MaxWait > 0 && l.Until.Sub(e.At) > p.MaxWait {
		s.longWait(l)
		return
	}
	if p.Kind == Task && l.Probe == "" && l.Until.Sub(e.At) > worthLeaving {
		s.restUntilLimit(l, l.untilText()) // its slot is free for a task whose provider answers
		return
	}
	s.Status = Waiting
	c := &s.Command
	s.issueCommand(&Command{
		Kind: Wait, Resting: Resting{Until: s.endOfWait(e, l.Until.Sub(e.At)), Limited: true},
		Why: l.Reason(), Iteration: c.Iteration,
		Attempt: c.Attempt, Feedback: c.Feedback, Agent: l.Agent, Strategy: s.Strategy, SkipOptional: c.SkipOptional,
		Measures: Measures{GateFactor: c.GateFactor, Parallelism: c.Parallelism},
	})
}

// restUntilProviderAnswers ends the session after too many tries of a provider: the run resumes when
// that answers, and no person is asked.
func (s turn) restUntilProviderAnswers(l *Limited) {
	why := fmt.Sprintf("%s, and %d waits in a row did not help", l.Reason(), s.Policy.MaxWaits)
	s.restUntilLimit(l, why)
}

func (s turn) restUntilLimit(l *Limited, why string) {
	s.Waits = 0
	s.finishSession(&Command{Status: Paused, Why: why, Agent: l.Agent, Resting: Resting{Until: l.Until, Limited: true}})
}

// longWait is for a limit that lasts longer than may be waited: a task rests until
// then, and of another run a person is asked.
func (s turn) longWait(l *Limited) {
	why := s.waitTooLongText(l)
	if s.Policy.Kind == Task {
		s.restUntilLimit(l, why)
		return
	}
	q := s.newQuestion(why+". How should it continue?", control.Choices(s.offerAfter("")))
	s.finishSession(&Command{Status: Pending, Why: why, Question: q})
}

func (s *State) waitTooLongText(l *Limited) string {
	return fmt.Sprintf("%s, which is longer than max_wait (%s)", l.untilText(), Duration(s.Policy.MaxWait))
}

// untilText names the limit and its end.
func (l *Limited) untilText() string {
	return fmt.Sprintf("%s until %s%s", l.limitName(), l.Until.Format("2006-01-02 15:04"), l.sourceText())
}

// worthLeaving is a wait that takes longer than another agent's start is worth, or
// that a task's slot is kept for.
const worthLeaving = time.Minute

// movesToNextAgent reports whether the next agent answers a limit instead of a wait: at
// once when the strategy in force says so, or where that was learned to help;
// after some waits where the end is not known; and when there were too many waits.
func (s tactics) movesToNextAgent(e *Event, l *Limited, tooMany bool) bool {
	p := &s.Policy
	if strategy.At(s.Strategy, p.Strategies).Fallback {
		return true
	}
	if p.Strategy != "" || l.Probe != "" {
		return false
	}
	if tooMany {
		return true
	}
	patience := strategy.Patience(p.Mode, l.Class, s.Learned)
	if l.Named {
		return patience <= 1 && l.Until.Sub(e.At) > worthLeaving
	}
	return l.Times >= patience
}

// agentAt is the n-th agent: the default one, then the fallback agents.
func (p *Policy) agentAt(n int) string {
	if n > 0 && n <= len(p.Fallback) {
		return p.Fallback[n-1]
	}
	return p.Agent
}

// homeAgent is the agent that the run would use if there were no limits.
func (s tactics) homeAgent() int {
	if len(s.Left) > 0 {
		return s.Left[0].Agent
	}
	return min(s.Fallback, len(s.Policy.Fallback))
}

// limitOfAgentAt is the known limit of the n-th agent; its Until is not after e.At if it can
// work.
func (s tactics) limitOfAgentAt(e *Event, n int) Limited {
	l, _ := e.limitOfAgent(s.Policy.agentAt(n))
	for _, left := range s.Left {
		if left.Agent == n && left.Until.After(l.Until) {
			l = Limited{Agent: s.Policy.agentAt(n), Class: left.Class, Until: left.Until, Named: true}
		}
	}
	return l
}

// firstFreeAgent is the first agent from home on that is not the one named and under no
// limit.
func (s tactics) firstFreeAgent(e *Event, not string) (n int, ok bool) {
	for n := s.homeAgent(); n <= len(s.Policy.Fallback); n++ {
		if s.Policy.agentAt(n) != not && !s.limitOfAgentAt(e, n).Until.After(e.At) {
			return n, true
		}
	}
	return 0, false
}

// turnToEarliest is the limit that is over first, of l and those of the agents that
// the run may use. Its agent becomes the one whose turn it is.
func (s tactics) turnToEarliest(e *Event, l *Limited) *Limited {
	first, at := *l, -1
	for n := s.homeAgent(); n <= len(s.Policy.Fallback); n++ {
		if b := s.limitOfAgentAt(e, n); b.Agent != l.Agent && b.Until.After(e.At) && b.Until.Before(first.Until) {
			first, at = b, n
		}
	}
	if at >= 0 {
		s.turnToAgent(e, l, at)
	}
	return &first
}

// turnToAgent makes the n-th agent the one whose turn it is, and notes that l made
// the run leave another.
func (s tactics) turnToAgent(e *Event, l *Limited, n int) {
	if l.Agent != s.Policy.agentAt(s.Fallback) { // a strategy's own agent
		s.Strategy = s.strategyAfterSuccess()
	} else if n != s.Fallback {
		s.recordLeft(e, l)
	}
	s.Fallback = n
}

// How long an agent under a limit is left alone, where the limit has no known end.
const (
	minAway = 5 * time.Minute
	maxAway = time.Hour
)

// recordLeft records when the run can return to the agent that it leaves.
func (s tactics) recordLeft(e *Event, l *Limited) {
	now := Left{Agent: s.Fallback, Class: l.Class, Until: l.Until, Times: 1}
	left := slices.Clone(s.Left)
	i := slices.IndexFunc(left, func(one Left) bool { return one.Agent == s.Fallback })
	if i >= 0 {
		now.Times = min(left[i].Times+1, 10)
	}
	if away := e.At.Add(min(minAway<<(now.Times-1), maxAway)); !l.Named && away.After(now.Until) {
		now.Until = away
	}
	if i >= 0 {
		left[i] = now
	} else {
		left = append(left, now)
	}
	s.Left = left
}

// returnToEarlierAgent gives the iteration that was issued to the agent that a limit made
// the run leave, once that is over, and says whether it did.
func (s tactics) returnToEarlierAgent(e *Event) bool {
	if len(s.Left) == 0 || s.Command.Agent != s.Policy.agentAt(s.Fallback) {
		return false
	}
	n, ok := s.firstFreeAgent(e, "")
	if !ok || n >= s.Fallback {
		return false
	}
	s.Fallback = n
	s.Command.Agent = s.chosenAgent()
	s.Command.StrategyWhy = "the limit of " + s.Command.Agent + " is over"
	return true
}

// forgetLeft forgets that agents were left, as far as an iteration that was not
// cut off by a limit shows: of the agent that did it, and of all when that is
// the run's own.
func (s tactics) forgetLeft(agent string) {
	if len(s.Left) == 0 {
		return
	}
	if agent == s.Policy.agentAt(s.homeAgent()) {
		s.Left = nil
		return
	}
	s.Left = slices.DeleteFunc(slices.Clone(s.Left), func(l Left) bool { return s.Policy.agentAt(l.Agent) == agent })
}

// moveToAgent gives the iteration to the n-th agent because of l.
func (s turn) moveToAgent(e *Event, l *Limited, n int, long bool) {
	why := l.Reason()
	switch patience := s.Waits - 1; {
	case long:
		why = s.waitTooLongText(l)
	case l.Named, strategy.At(s.Strategy, s.Policy.Strategies).Fallback:
	case patience > 0:
		why = fmt.Sprintf("%s, and %s in a row did not help", why, fault.Numbered(patience, "wait"))
	case l.Times <= 1:
		why += ", and the next agent was right before"
	}
	first := !slices.ContainsFunc(s.Left, func(one Left) bool { return one.Agent == n })
	s.turnToAgent(e, l, n)
	if !long {
		if first {
			s.Waits = 0
		}
		s.Trial = Trial{Use: strategy.Use{Class: l.Class, Strategy: strategy.FallbackProviders}, Transient: true}
	}
	s.nextAgent(why)
}
