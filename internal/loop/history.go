package loop

// Entry is one iteration of a history that somebody else kept.
type Entry struct {
	Passed   bool
	Messages []string // of what its validation flagged
}

// Thresholds are what [CheckHistory] compares with. Max is the highest number
// of an iteration; 0 of the others is off.
type Thresholds struct {
	Max       int
	Breaker   int
	Thrashing int
}

// CheckHistory asks the guards whether iteration next may run after a history,
// oldest first: the maximum, the circuit breaker, quality regression and
// thrashing, in this order. The first that trips is returned.
func CheckHistory(next int, t Thresholds, history []Entry) (Trip, bool) {
	if trip, tripped := CheckMax(next, t.Max); tripped {
		return trip, true
	}
	var g Guards
	for _, e := range history {
		sight := Sight{Outcome: Failed, Progress: -1}
		if e.Passed {
			sight.Outcome, sight.Score = Success, 1000
		}
		for _, message := range e.Messages {
			sight.Files = append(sight.Files, FlaggedFiles(message)...)
		}
		g.observe(&sight)
	}
	if trip, tripped := g.Breaker(t.Breaker); tripped {
		return trip, true
	}
	if trip, tripped := g.Regression(); tripped {
		return trip, true
	}
	return g.Thrash(t.Thrashing)
}
