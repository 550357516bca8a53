package loop

import (
	"cmp"
	"fmt"
	"time"
)

// Use is what runs used. It is stored: names must not change.
type Use struct {
	Cost   MicroUSD `json:"micro_usd"`
	Tokens int64    `json:"tokens,omitempty"` // those from a cache included
	Calls  int64    `json:"calls,omitempty"`
}

// Plus adds.
func (u Use) Plus(v Use) Use { return Use{u.Cost + v.Cost, u.Tokens + v.Tokens, u.Calls + v.Calls} }

// Minus takes away.
func (u Use) Minus(v Use) Use { return Use{u.Cost - v.Cost, u.Tokens - v.Tokens, u.Calls - v.Calls} }

// DayLimits are what all runs of a user may use in a day; nil is no limit, and 0 allows
// nothing.
type DayLimits struct {
	Cost   *MicroUSD `json:"micro_usd,omitempty"`
	Tokens *int64    `json:"tokens,omitempty"`
	Calls  *int64    `json:"calls,omitempty"`
}

// None reports whether nothing is limited.
func (l DayLimits) None() bool { return l == DayLimits{} }

// Over names the limit that leaves no room for more after used, and says what is used of
// it; key is "" where all do.
func (l DayLimits) Over(used, more Use) (key, words string) {
	full := func(limit, used, more int64) bool { return used >= limit || used+more > limit }
	switch {
	case l.Cost != nil && full(int64(*l.Cost), int64(used.Cost), int64(more.Cost)):
		return "limits.per_day of " + l.Cost.String(), "all runs have spent " + used.Cost.String() + " today"
	case l.Tokens != nil && full(*l.Tokens, used.Tokens, more.Tokens):
		return fmt.Sprint("limits.tokens.per_day of ", *l.Tokens), fmt.Sprint("all runs have used ", used.Tokens, " today")
	case l.Calls != nil && full(*l.Calls, used.Calls, more.Calls):
		return fmt.Sprint("limits.calls.per_day of ", *l.Calls), fmt.Sprintf("all runs have made %d today", used.Calls)
	}
	return "", ""
}

// Counts limits tokens, or model calls; nil is no limit, and 0 allows nothing.
type Counts struct {
	Iteration *int64 `json:"iteration,omitempty"`
	Run       *int64 `json:"run,omitempty"`
	Task      *int64 `json:"task,omitempty"` // all runs of a task together
	// Others is what the other runs of the task have used.
	Others int64 `json:"others,omitempty"`
}

// leftForIteration an iteration after its run has used that much; nil is any number.
func (c *Counts) leftForIteration(used int64) *int64 {
	return smallerLimit(c.Iteration, smallerLimit(leftOfLimit(c.Run, used), leftOfLimit(c.Task, used+c.Others)))
}

func leftOfLimit(limit *int64, used int64) *int64 {
	if limit == nil {
		return nil
	}
	return new(max(0, *limit-used))
}

// smallerLimit: nil is no limit.
func smallerLimit(a, b *int64) *int64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return new(min(*a, *b))
}

// Lower holds the run to what something that it is part of has left; nil is any number.
func (c *Counts) Lower(left *int64) { c.Run = smallerLimit(c.Run, left) }

// endIfUsedUp ends a run that has used up its tokens or calls, or those of its task.
func (c *Counts) endIfUsedUp(what string, used int64) *Command {
	switch {
	case c.Run != nil && used >= *c.Run:
		return timedOutCommand("limits.%s.per_run of %d is reached: the run has used %d", what, *c.Run, used)
	case c.Task != nil && used+c.Others >= *c.Task:
		return timedOutCommand("limits.%s.per_task of %d is reached: all runs of this task have used %d", what, *c.Task,
			used+c.Others)
	}
	return nil
}

// Share gives a run its part of what is left of its task's limits, which racers share.
func (p *Policy) Share(racers int) {
	p.MaxTaskCost = racerShare(p.MaxTaskCost, p.TaskCost, racers)
	p.Tokens.Task = racerShare(p.Tokens.Task, p.Tokens.Others, racers)
	p.Calls.Task = racerShare(p.Calls.Task, p.Calls.Others, racers)
}

func racerShare[N int64 | MicroUSD](limit *N, used N, racers int) *N {
	if limit == nil {
		return nil
	}
	return new(used + max(0, *limit-used)/N(max(1, racers)))
}

// endByCounts ends a run that has used up its tokens or calls.
func (s *State) endByCounts() *Command {
	if c := s.Policy.Tokens.endIfUsedUp("tokens", s.Spent.totalTokens()); c != nil {
		return c
	}
	return s.Policy.Calls.endIfUsedUp("calls", int64(s.Spent.Calls))
}

func (s *Spent) totalTokens() int64 { return s.TokensIn + s.TokensOut }

// This file has the limits of money: of the run, and of all runs of its task.

// spentForNext is true after an iteration that ended since what was left of the
// run's money had no room for its next call: another iteration had less.
func (s *State) spentForNext(r *Record) bool {
	if r == nil || r.Exit.Ended != EndedCost {
		return false
	}
	had := s.costLeft(s.Spent.Cost - r.Cost)
	fits := s.Policy.MaxIterationCost < 0 || had <= s.Policy.MaxIterationCost
	return had >= 0 && fits
}

// taskCost ends a run of a task whose runs have together cost what they may.
func (s *State) taskCost() *Command {
	p := &s.Policy
	if p.MaxTaskCost == nil || p.TaskCost+s.Spent.Cost < *p.MaxTaskCost {
		return nil
	}
	return outOfMoney("%s is reached: all runs of this task have cost %s", s.costLimit(), p.TaskCost+s.Spent.Cost)
}

// costLeft to a run that has cost spent; [NoLimit] is any amount.
func (s *State) costLeft(spent MicroUSD) MicroUSD {
	p, left := &s.Policy, MicroUSD(NoLimit)
	if p.MaxCost >= 0 {
		left = max(0, p.MaxCost-spent)
	}
	if p.MaxTaskCost == nil {
		return left
	}
	ofTask := max(0, *p.MaxTaskCost-p.TaskCost-spent)
	if left < 0 {
		return ofTask
	}
	return min(left, ofTask)
}

// costLimit names the limit of money that holds.
func (s *State) costLimit() string {
	p := &s.Policy
	switch l := p.MaxTaskCost; {
	case l == nil, p.MaxCost >= 0 && *l-p.TaskCost >= p.MaxCost:
		return "the limit " + p.MaxCost.limitText()
	default:
		return "limits.per_task of " + l.limitText()
	}
}

// Duration shows a time as documents do: 45.2s under a minute, 2m16s above.
func Duration(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
