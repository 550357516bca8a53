package loop

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
)

// Step returns the state after e and the command that follows from it. An
// event that does not fit the state changes nothing and asks for nothing, so
// an event that is delivered twice does no harm.
//
// s is the caller's copy: the methods below change it in place, but never what
// its slices and pointers share with the state before.
func Step(s State, e Event) (State, Command) {
	before, t := s.Seq, turn{tactics{&s}}
	t.applyEvent(&e)
	if s.Seq != before {
		t.applyKnownLimits(&e)
		c := s.Command
		c.Record = e.judged
		return s, c
	}
	if e.noted {
		return s, Command{Kind: Noted}
	}
	return s, Command{}
}

// turn is a step under way: it takes the event in, and decides what the run does next.
type turn struct{ tactics }

// tactics are the strategy in force and the agent that has the next iteration: which, and when
// another one. What the state answers and changes by itself is the state's own.
type tactics struct{ *State }

// applyEvent changes s and issues at most one command.
func (s turn) applyEvent(e *Event) {
	switch e.Kind {
	case Started:
		s.runStarted(e)
	case IterationEnded, Recovered:
		s.iterationEnded(e)
	case Reviewed:
		s.reviewEnded(e)
	case WaitOver:
		s.waitOver(e)
	case Throttled:
		s.commandThrottled(e)
	case Answered:
		s.personAnswered(e)
	case Resumed:
		s.runResumed(e)
	case Raised:
		if s.Status.Active() {
			s.raiseLimits(e.Policy)
			e.noted = true
		}
	case PauseAsked:
		s.pauseAsked(e)
	case StopAsked:
		s.stopAsked(e)
	}
}

func (s turn) runStarted(e *Event) {
	if s.Status != "" || e.Policy == nil {
		return
	}
	s.Policy = *e.Policy
	s.Limit = s.Policy.MaxIterations
	s.StartedAt, s.LastAt = e.At, e.At
	s.Learned = strategy.Faded(e.Learned, strategy.Day(e.At))
	s.setStrategy(s.Policy.firstStrategy())
	s.inheritMemory(e.Memory)
	s.Best = Best{Score: -1}
	s.Status = Running
	endless := s.Limit == 0 && s.Policy.Kind == Procedure
	if s.Limit <= 0 && !endless {
		s.finishSession(&Command{Status: FailedRun, Why: "the policy allows no iteration"})
		return
	}
	s.issueNextIteration(nil)
}

// issueNextIteration issues the next iteration, unless a limit is reached.
func (s turn) issueNextIteration(f *Feedback) {
	if c := s.endByLimits(nil); c != nil {
		s.finishSession(c)
		return
	}
	s.issueIteration(f)
}

// firstStrategy is the one that a run starts with.
func (p *Policy) firstStrategy() string { return cmp.Or(p.Strategy, strategy.Default) }

func (s turn) iterationEnded(e *Event) {
	if s.Status != Running || s.Command.Kind != Run || e.For != s.Command.Seq || e.Record == nil {
		return
	}
	s.spendIteration(e)
	s.decideIteration(e)
}

// spendIteration adds up what the record used; nothing that was paid is forgotten.
func (s *State) spendIteration(e *Event) {
	r := e.Record
	s.advanceClock(e.At)
	s.addSpent(r.Elapsed, r.Cost, r.CostSource, r.TokensIn, r.TokensOut, r.Calls)
	if r.Review != nil {
		s.spendReview(r.Review)
	}
}

func (s *State) spendReview(v *Review) {
	s.addSpent(v.Elapsed, v.Cost, v.CostSource, v.TokensIn, v.TokensOut, v.Calls)
}

func (s *State) addSpent(elapsed time.Duration, cost MicroUSD, source string, in, out int64, calls int) {
	s.Spent.Active += max(0, elapsed)
	s.Spent.Cost += max(0, cost)
	s.Spent.CostKnown = s.Spent.CostKnown || CostKnown(source)
	used := in+out > 0 || calls > 0
	unpriced := used && !CostKnown(source)
	s.Spent.CostPartial = s.Spent.CostPartial || unpriced || source == CostPartial
	s.Spent.TokensIn += max(0, in)
	s.Spent.TokensOut += max(0, out)
	s.Spent.Calls += max(0, calls)
}

// advanceClock counts the wall time of an active run up to at.
func (s *State) advanceClock(at time.Time) {
	if d := at.Sub(s.LastAt); d > 0 {
		s.Spent.Wall += d
		s.LastAt = at
	}
}

func (s turn) waitOver(e *Event) {
	if s.Status != Waiting || e.For != s.Command.Seq {
		return
	}
	s.advanceClock(e.At)
	if c := s.endByLimits(nil); c != nil {
		s.finishSession(c)
		return
	}
	if s.PendingReview != nil {
		s.issueReview(e, "the wait is over")
		return
	}
	s.Status = Running
	run := s.Command
	run.Kind, run.Why, run.Until, run.Attempt = Run, "the wait is over", time.Time{}, s.Attempts+1
	run.Agent, run.Strategy, run.Limits = s.chosenAgent(), s.Strategy, s.iterationLimits()
	run.Warnings, run.Learned = nil, nil
	s.issueCommand(&run)
}

func (s turn) pauseAsked(e *Event) {
	switch s.Status {
	case Running:
		e.noted = !s.PauseAsked
		s.PauseAsked = true
	case Waiting:
		s.finishSession(&Command{Status: Paused, Why: "paused while waiting"})
	}
}

// stopAsked ends a wait at once. While an iteration runs it is noted: who
// performs the command ends the agent, and the iteration's end finishes.
func (s turn) stopAsked(e *Event) {
	switch s.Status {
	case Running:
		if s.StopAsked == NoCause {
			s.StopAsked, e.noted = e.Cause, true
		}
	case Waiting:
		s.advanceClock(e.At)
		s.finishSession(stopCommand(e.Cause))
	case Pending, Paused:
		s.finishSession(stopCommand(e.Cause))
	}
}

func stopCommand(c Cause) *Command {
	stopped := map[Cause]string{
		CauseStop: "stopped by 'pawl stop'", CauseRaced: "another agent was the first with verified work",
		CauseSettled: "its task was landed or taken over by somebody else meanwhile",
	}
	if why := stopped[c]; why != "" {
		return &Command{Status: Stopped, Why: why, Resting: Resting{Settled: c == CauseSettled}}
	}
	ended := map[Cause]string{
		CauseAutopilot: "the autopilot was stopped", CauseTerminate: "terminated", CauseHangup: "the terminal hung up",
	}
	return &Command{Status: Interrupted, Why: cmp.Or(ended[c], "interrupted")}
}

func (s turn) personAnswered(e *Event) {
	switch s.Status {
	case Pending, Blocked, Aborted, FailedRun, Paused:
	default:
		return
	}
	if s.PendingReview != nil {
		s.personReviewed(e)
		return
	}
	f, chosen := &Feedback{Iteration: s.Iteration, Answer: e.Text}, control.Choice{}
	if len(e.Replies) > 0 {
		if f.Answers = s.Question.answersFrom(e.Replies); len(f.Answers) == 0 {
			return
		}
	}
	if e.Choice != 0 {
		choice, ok := s.choiceAt(e.Choice)
		if !ok || s.carryOutChoice(choice) {
			return
		}
		f.Answer, chosen = strings.TrimSpace(choice.Answer+"\n"+e.Text), choice
	}
	q, guard := s.Question, s.Command.Guard
	s.raiseLimits(e.Policy)
	s.rearmGuards()
	s.Status, s.Why, s.LastAt = Running, "", e.At
	if chosen.Do == control.Raise {
		s.raiseGuard(guard)
	}
	q.addToFeedback(f)
	s.addMemory(f.asMemory()...)
	f.Tried = s.failuresBefore(s.Iteration)
	for _, p := range slices.Backward(s.Recent) {
		if p.Outcome != Asked { // the work is as that one left it
			f.Summary = p.Summary
			break
		}
	}
	back := chosen.Do == control.GoBack && s.Best.Number == chosen.To
	if back {
		s.noteRewind(f)
	}
	s.issueNextIteration(f)
	if back && s.Command.Kind == Run {
		s.Command.Rewind = chosen.To
	}
}

// runResumed continues a run at rest. One whose pawl died is not at rest: its
// command continues, under the present limits.
func (s turn) runResumed(e *Event) {
	if s.Status.Active() {
		before := s.Policy.Agent
		s.raiseLimits(e.Policy)
		if s.Command.Kind == Run && s.Command.Agent == before && s.Policy.Agent != before {
			s.Command.Agent = s.chosenAgent()
		}
		return
	}
	if s.CanResume(e.Policy) != nil {
		return
	}
	q := s.Question
	s.renewPolicy(e.Policy)
	if s.Question != nil { // paused by a guard, which counts from here
		s.Guards, s.Question = Guards{}, nil
	}
	s.Status, s.Why, s.LastAt = Running, "", e.At
	s.StopAsked, s.PauseAsked = NoCause, false
	if s.PendingReview != nil {
		s.issueReview(e, "the run goes on with its review")
		return
	}
	f := s.lastFeedback()
	q.addToFeedback(f)
	s.issueNextIteration(f)
}

// Discard lets a run that waits ask for nothing any more. It can still be resumed.
func (s *State) Discard(why string) {
	if s.Status.Active() {
		return
	}
	s.Status, s.Why = Stopped, why
	s.Question, s.PendingReview = nil, nil
}

// rearmGuards lets the guards count from here and grants a fresh allowance of
// iterations. Cost, numbering and history stay.
func (s *State) rearmGuards() {
	s.Guards = Guards{}
	s.Waits = 0
	s.Used, s.Trial, s.Kept = nil, Trial{}, nil
	s.Strategy = s.Policy.firstStrategy()
	if q := s.Question; q != nil && s.Policy.Strategy == "" {
		s.Strategy = cmp.Or(q.Strategy, s.Strategy)
	}
	s.Question = nil
	s.StopAsked, s.PauseAsked = NoCause, false
	if s.Policy.MaxIterations > 0 {
		s.Limit = max(s.Limit, s.Iteration+s.Policy.MaxIterations)
	}
}

// renewPolicy takes the policy of now; after an end that a person had to look at, and what they did themselves,
// the run is armed anew first, so that a maximum that was named holds. A maximum
// that is not used up holds too: only a run that has reached it gets more.
func (s turn) renewPolicy(p *Policy) {
	if s.Status == Aborted || s.Status == Blocked || s.Status == FailedRun || s.Why == takenOver {
		limit := s.Limit
		s.rearmGuards()
		if limit > s.Iteration {
			s.Limit = limit
		}
	}
	s.raiseLimits(p)
	s.grantAskedIteration()
}

// raiseLimits takes the limits of the policy as it is now. A maximum that was named
// anew is the highest number from now on.
func (s *State) raiseLimits(p *Policy) {
	if p == nil {
		return
	}
	if p.MaxIterations != s.Policy.MaxIterations {
		s.Limit = p.MaxIterations
	}
	if !slices.Equal(p.Fallback, s.Policy.Fallback) {
		s.Left = nil // they are known by their place
	}
	s.Policy = *p
	s.keepRaised()
	if s.Limit > 0 {
		s.Limit = max(s.Limit, s.Iteration)
	}
}

// issueCommand makes c the command that is being carried out.
func (s turn) issueCommand(c *Command) {
	s.Seq++
	s.Command = *c
	s.Command.Seq = s.Seq
}

// finishSession ends this session of the run with c.Status. Ask is for a question
// that must be answered before the run continues.
func (s turn) finishSession(c *Command) {
	c.Kind = Finish
	if c.Status == Pending {
		c.Kind = Ask
	}
	if c.Status == TimedOut && !strings.HasPrefix(s.Wrong, cutOff) {
		c.Why = causeFirst(s.Wrong, c.Why)
	}
	s.Status, s.Why, s.Question = c.Status, c.Why, c.Question
	s.StopAsked, s.PauseAsked = NoCause, false
	s.issueCommand(c)
}

// issueIteration issues the next iteration.
func (s turn) issueIteration(f *Feedback) {
	if f != nil && f.Iteration == 0 && f.Answer == "" && len(f.Notes) == 0 {
		f = nil
	}
	st, in := strategy.At(s.Strategy, s.Policy.Strategies), s.settingsInForce()
	s.issueCommand(&Command{
		Kind: Run, Iteration: s.Iteration + 1, Attempt: s.Attempts + 1, Agent: s.chosenAgent(), Strategy: s.Strategy,
		Feedback: s.withInstruction(f), Limits: s.iterationLimits(), SkipOptional: st.SkipOptional,
		Measures: Measures{GateFactor: in.factor, Parallelism: in.parallelism},
	})
	s.setStepOptions(in.timeout, st.UseCache)
}

// chosenAgent is the program for the next iteration.
func (s tactics) chosenAgent() string {
	switch st := strategy.At(s.Strategy, s.Policy.Strategies); {
	case st.Agent != "":
		return st.Agent
	case st.Stronger && s.Policy.Stronger != "":
		return s.Policy.Stronger
	}
	return s.Policy.agentAt(s.Fallback)
}

// iterationLimits are the limits of one iteration: its own, and what is left of the run's.
func (s *State) iterationLimits() CommandLimits {
	p := &s.Policy
	in := s.settingsInForce()
	return s.withinRun(CommandLimits{
		Wall: in.wall, Idle: p.IdleTimeout * time.Duration(max(in.factor, 1)),
		Cost: p.MaxIterationCost, Calls: p.MaxIterationCalls,
	})
}

// withinRun holds limits to what is left of the run's.
func (s *State) withinRun(l CommandLimits) CommandLimits {
	p := &s.Policy
	if l.Wall > 0 {
		l.WallOf = "iteration_timeout " + Duration(l.Wall)
	}
	for _, one := range []struct {
		name         string
		limit, spent time.Duration
	}{
		{"timeout of the run", p.Timeout, s.Spent.Wall}, {"task_timeout", p.TaskTimeout, s.Spent.Active},
		{"time that the safety level allows,", p.MaxDuration, s.Spent.Active},
	} {
		left := remainingTime(one.limit, one.spent)
		if leastTime(l.Wall, left) != l.Wall {
			l.Wall, l.WallOf = left, one.name+" "+Duration(one.limit)
		}
	}
	left := s.costLeft(s.Spent.Cost)
	more := l.Cost < 0 || l.Cost > left
	if more && left >= 0 {
		l.Cost = left
	}
	l.Tokens = smallerLimit(l.Tokens, p.Tokens.leftForIteration(s.Spent.totalTokens()))
	calls := p.Calls.leftForIteration(int64(s.Spent.Calls))
	if calls != nil && l.Calls < 0 {
		l.Calls = int(*calls)
	} else if calls != nil {
		l.Calls = min(l.Calls, int(*calls))
	}
	return l
}

// remainingTime under a limit; 0 stays no limit, and a used-up limit leaves a
// millisecond, never none.
func remainingTime(limit, spent time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return max(limit-spent, time.Millisecond)
}

// leastTime is the smaller of two limits of which 0 is none.
func leastTime(a, b time.Duration) time.Duration {
	if a <= 0 || b <= 0 {
		return max(a, b)
	}
	return min(a, b)
}
