package loop

// This file has the limits of money: of the run, and of all runs of its task.

// spentForNext is true after an iteration that ended since what was left of the
// run's money had no room for its next call: another iteration had less.
func (s *State) spentForNext(r *Record) bool {
	if r == nil || r.Exit.Ended != EndedCost {
		return false
	}
	had := s.costLeft(s.Spent.Cost - r.Cost)
	return had >= 0 && (s.Policy.MaxIterationCost < 0 || had <= s.Policy.MaxIterationCost)
}

// taskCost ends a run of a task whose runs have together cost what they may.
func (s *State) taskCost() *Command {
	p := &s.Policy
	if p.MaxTaskCost == nil || p.TaskCost+s.Spent.Cost < *p.MaxTaskCost {
		return nil
	}
	return timedOut("%s is reached: all runs of this task have cost %s", s.costLimit(), p.TaskCost+s.Spent.Cost)
}

// costLeft is what a run that cost spent may still cost; [NoLimit] is any amount.
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
	if l := p.MaxTaskCost; l != nil && (p.MaxCost < 0 || *l-p.TaskCost < p.MaxCost) {
		return "limits.per_task of " + l.short()
	}
	return "the limit " + p.MaxCost.short()
}
