package loop

import (
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/control"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/strategy"
)

// The bounds of the backoff for a wait that the provider did not name.
const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// wait answers a limit of the model provider: wait until the named time, else
// back off; a named time over max_wait takes the next fallback agent at once,
// or asks. Waits in a row that nobody named take the next agent too, and where
// there is none too many of them ask.
func (s *State) wait(e *Event, r *Record) {
	s.Waits++
	if s.PauseAsked {
		s.finish(&Command{Status: Paused, Why: "paused at the end of the attempt"})
		return
	}
	until := r.Failure.WaitUntil
	tooMany := s.Policy.MaxWaits >= 0 && s.Waits > s.Policy.MaxWaits
	if s.moveOn(r, until.After(e.At), tooMany) {
		return
	}
	if tooMany {
		why := fmt.Sprintf("%s, and %d waits in a row did not help", waitReason(r), s.Policy.MaxWaits)
		s.finish(&Command{Status: Pending, Why: why, Question: s.question(why+". How should it go on?", control.Choices(false))})
		return
	}
	if until.Sub(e.At) > s.Policy.MaxWait && s.Policy.MaxWait > 0 {
		s.longWait(r, until)
		return
	}
	if !until.After(e.At) {
		until = e.At.Add(backoff(strategy.Exponential, s.Waits, e.Seed))
	}
	s.Status = Waiting
	c := &s.Command
	s.issue(&Command{
		Kind: Wait, Until: s.until(e, until.Sub(e.At)), Why: waitReason(r), Iteration: c.Iteration, Attempt: c.Attempt,
		Feedback: c.Feedback, Agent: c.Agent, Strategy: c.Strategy, SkipOptional: c.SkipOptional, GateFactor: c.GateFactor, Parallelism: c.Parallelism,
	})
}

// moveOn leaves the provider for the next agent of agents.fallback when waiting
// did not help, and reports whether it did.
func (s *State) moveOn(r *Record, named, tooMany bool) bool {
	p := &s.Policy
	if p.Strategy != "" || s.Fallback >= len(p.Fallback) {
		return false
	}
	if !tooMany && (named || s.Waits < strategy.Patience(p.Mode, r.Failure.Class, s.Learned)) {
		return false
	}
	why := fmt.Sprintf("%s, and %d wait(s) in a row did not help", waitReason(r), s.Waits-1)
	if s.Waits == 1 {
		why = waitReason(r) + ", and the next agent was right before"
	}
	s.Waits = 0
	s.Trial = Trial{Use: strategy.Use{Class: r.Failure.Class, Strategy: strategy.FallbackProviders}, Transient: true}
	s.nextAgent(why)
	return true
}

// until is the end of a wait of d, at the latest the end of the run's time.
func (s *State) until(e *Event, d time.Duration) time.Time {
	return e.At.Add(least(d, remaining(s.Policy.Timeout, s.Spent.Wall)))
}

func (s *State) longWait(r *Record, until time.Time) {
	why := fmt.Sprintf("%s until %s, which is longer than max_wait (%s)", waitReason(r), until.Format("2006-01-02 15:04"), Duration(s.Policy.MaxWait))
	if s.Fallback >= len(s.Policy.Fallback) {
		s.finish(&Command{Status: Pending, Why: why, Question: s.question(why+". How should it go on?", control.Choices(false))})
		return
	}
	s.nextAgent(why)
}

// nextAgent gives the iteration that was cut off to the next fallback agent.
func (s *State) nextAgent(why string) {
	s.Fallback++
	c := &s.Command
	s.issue(&Command{
		Kind: Run, Why: why, Iteration: c.Iteration, Attempt: s.Attempts + 1, Agent: s.agent(), Strategy: s.Strategy,
		StrategyWhy: "the next agent of agents.fallback, because " + why, Feedback: c.Feedback, Limits: s.bounds(),
		SkipOptional: c.SkipOptional, GateFactor: c.GateFactor, Parallelism: c.Parallelism,
	})
}

func waitReason(r *Record) string {
	switch r.Failure.Class {
	case failure.QuotaExhausted:
		return "usage limit of " + r.Agent
	case failure.RateLimit:
		return "rate limit of " + r.Agent
	}
	return "outage of " + r.Agent + "'s provider"
}

// backoff is the n-th wait, from one second to five minutes; the seed shortens
// it by up to a half, so that many loops do not come back at once.
func backoff(kind strategy.Backoff, n int, seed uint64) time.Duration {
	d := maxBackoff
	switch {
	case kind == strategy.NoBackoff || kind == "":
		return 0
	case kind == strategy.Linear:
		d = min(minBackoff*time.Duration(min(n, 1000)), maxBackoff)
	case n < 10:
		d = min(minBackoff<<(n-1), maxBackoff)
	}
	half := d / 2
	return max(d-time.Duration(mix(seed)%uint64(half+1)), minBackoff)
}

// mix spreads the bits of a seed (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
