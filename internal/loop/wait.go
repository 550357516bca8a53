package loop

import (
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/control"
	"github.com/pawl-dev/pawl/internal/failure"
)

// The bounds of the backoff for a wait that the provider did not name.
const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// wait answers a limit of the model provider: wait until the named time, else
// back off; a named time over max_wait takes the next fallback agent at once,
// or asks. Too many waits in a row ask too.
func (s *State) wait(e *Event, r *Record) {
	s.Waits++
	if s.PauseAsked {
		s.finish(&Command{Status: Paused, Why: "paused at the end of the attempt"})
		return
	}
	if s.Policy.MaxWaits >= 0 && s.Waits > s.Policy.MaxWaits {
		why := fmt.Sprintf("%s, and %d waits in a row did not help", waitReason(r), s.Policy.MaxWaits)
		s.finish(&Command{Status: Pending, Why: why, Question: s.question(why+". How should it go on?", control.Choices(false))})
		return
	}
	until := r.Failure.WaitUntil
	if until.Sub(e.At) > s.Policy.MaxWait && s.Policy.MaxWait > 0 {
		s.longWait(r, until)
		return
	}
	if !until.After(e.At) {
		until = e.At.Add(backoff(s.Waits, e.Seed))
	}
	s.Status = Waiting
	c := &s.Command
	s.issue(&Command{
		Kind: Wait, Until: s.until(e, until.Sub(e.At)), Why: waitReason(r), Iteration: c.Iteration, Attempt: c.Attempt,
		Feedback: c.Feedback, Agent: c.Agent, Strategy: c.Strategy, SkipOptional: c.SkipOptional,
	})
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
	s.Fallback++
	c := &s.Command
	s.issue(&Command{
		Kind: Run, Why: why, Iteration: c.Iteration, Attempt: s.Attempts + 1, Agent: s.agent(), Strategy: s.Strategy,
		StrategyWhy: "the next agent of agents.fallback, because " + why, Feedback: c.Feedback, Limits: s.bounds(), SkipOptional: c.SkipOptional,
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

// backoff doubles from one second to five minutes; the seed shortens it by up
// to a half, so that many loops do not come back at once.
func backoff(n int, seed uint64) time.Duration {
	d := maxBackoff
	if n < 10 {
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
