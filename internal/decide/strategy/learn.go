package strategy

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
)

// Credit is what one iteration showed of the strategy that it was run with:
// whether that helped against the failure for which it was chosen.
type Credit struct {
	Class    failure.Class `json:"class"`
	Strategy string        `json:"strategy"`
	Success  bool          `json:"success"`
}

// Tally is what was learned of a strategy for a class of failure. Old
// evidence fades: with every credit of its class by a sixteenth, and by a half
// in [halfLife] days. It is stored: names must not change.
type Tally struct {
	Class    failure.Class `json:"class"`
	Strategy string        `json:"strategy"`
	// Wins and Losses are thousandths of a success and of a failure.
	Wins   int `json:"wins,omitempty"`
	Losses int `json:"losses,omitempty"`
	// Day is the day, counted from 1970, up to which they have faded.
	Day int `json:"day,omitempty"`
}

// Day is the day of a time, counted from 1970 in UTC.
func Day(t time.Time) int { return int(t.Unix() / 86400) }

const (
	one        = 1000 // a whole success or failure
	fade       = 16   // the part of the evidence that a credit of the same class displaces
	halfLife   = 30   // days
	maxTallies = 128  // what a run carries along
)

// Learn returns the tallies after one more credit. It does not change list.
// Beyond 128 entries the one with the least evidence goes.
func Learn(list []Tally, c Credit, day int) []Tally {
	out := make([]Tally, len(list), len(list)+1)
	copy(out, list)
	at := -1
	for i := range out {
		t := &out[i]
		if t.Class != c.Class {
			continue
		}
		t.fadeUntilDay(day)
		t.Wins -= (t.Wins + fade - 1) / fade
		t.Losses -= (t.Losses + fade - 1) / fade
		if t.Strategy == c.Strategy {
			at = i
		}
	}
	if at < 0 {
		out = append(out, Tally{Class: c.Class, Strategy: c.Strategy, Day: day})
		at = len(out) - 1
	}
	if c.Success {
		out[at].Wins += one
	} else {
		out[at].Losses += one
	}
	return dropLightest(out)
}

// Faded returns the tallies as they count on that day, without those of which
// nothing is left, and at most 128. It does not change list.
func Faded(list []Tally, day int) []Tally {
	out := make([]Tally, 0, len(list))
	for _, t := range list {
		t.fadeUntilDay(day)
		if t.Wins+t.Losses > 0 {
			out = append(out, t)
		}
	}
	return dropLightest(out)
}

func dropLightest(list []Tally) []Tally {
	for len(list) > maxTallies {
		least := slices.MinFunc(list, func(a, b Tally) int { return a.totalWeight() - b.totalWeight() })
		i := slices.Index(list, least)
		list = slices.Delete(list, i, i+1)
	}
	return list
}

// fadeUntilDay lets evidence fade with the days that passed. A clock that was set back
// changes nothing.
func (t *Tally) fadeUntilDay(day int) {
	// A hand in the database: nothing ever counts more than fade.
	t.Wins, t.Losses = min(max(t.Wins, 0), fade*one), min(max(t.Losses, 0), fade*one)
	halves := (day - t.Day) / halfLife
	if halves <= 0 {
		return
	}
	t.Wins >>= min(halves, 60)
	t.Losses >>= min(halves, 60)
	t.Day += halves * halfLife
}

func (t *Tally) totalWeight() int { return t.Wins + t.Losses }

// Rate is the share of successes in per mille; -1 when nothing is known.
func (t Tally) Rate() int {
	if t.totalWeight() <= 0 {
		return -1
	}
	return t.Wins * 1000 / t.totalWeight()
}

// tallyOfStrategy returns the tally of a strategy for a class; the zero one when nothing
// was learned.
func tallyOfStrategy(list []Tally, class failure.Class, name string) Tally {
	for i := range list {
		if list[i].Class == class && list[i].Strategy == name {
			return list[i]
		}
	}
	return Tally{}
}

// The prior of a strategy that was never tried counts as two uses, of which the
// more succeeded the higher its priority is.
const (
	priorWeight = 2 * one
	priorLeast  = 350 // per mille, of priority 0
	priorStep   = 30  // per mille, of each point of priority
)

// successChance is the chance of success in per mille: the prior, weighed with what
// was learned.
func successChance(t Tally, priority int) int {
	prior := min(max(priorLeast+priorStep*priority, 50), 950)
	return (1000*t.Wins + prior*priorWeight) / (t.totalWeight() + priorWeight)
}

// costFactor of an iteration under the strategy, the default agent's being one. Of two that
// help as often the cheaper one comes first, and in a row of tries the best order is that of
// chance by price.
func (c *Strategy) costFactor() int {
	if c.Stronger {
		return 3
	}
	return 1
}

// enoughToTell is how many uses show whether a strategy helps: fewer may be chance.
const enoughToTell = 5

// recordText says in words what was learned; "" when nothing was.
func (t Tally) recordText() string {
	uses, helped := (t.totalWeight()+one/2)/one, (t.Wins+one/2)/one
	switch {
	case uses == 0:
		return ""
	case uses < enoughToTell:
		return fmt.Sprintf("; whether it helps here is not known: it did in %d of %d uses", helped, uses)
	}
	return fmt.Sprintf("; helped in %d of its last %d uses here", helped, uses)
}
