package loop

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// The guards, in the order in which they are asked.
const (
	GuardMaxIterations = "max_iterations"
	GuardBreaker       = "circuit_breaker"
	GuardRegression    = "quality_regression"
	GuardThrashing     = "thrashing"
	GuardOscillation   = "oscillation"
	GuardRepeated      = "repeated_failure"
	GuardStuck         = "stuck"
	GuardStandstill    = "standstill"
)

// The bounds on what the guards remember.
const (
	maxFiles        = 500
	maxTrees        = 64
	maxFingerprints = 100
	// declineWindow is how many declines are reported at most.
	declineWindow = 2
)

// Guards is what the guards remember of the iterations since they were armed.
// The zero value is armed.
type Guards struct {
	Failures int `json:"failures,omitempty"` // trailing failed iterations

	Scored   int    `json:"scored,omitempty"` // iterations with a score
	Last     [3]int `json:"last"`             // the last three scores, newest first
	Top      int    `json:"top,omitempty"`    // best score
	Declines int    `json:"declines,omitempty"`

	Files  []Count `json:"files,omitempty"` // failed iterations a file was in, since the last success
	Prints []Count `json:"fingerprints,omitempty"`

	FailedTrees []string `json:"failed_trees,omitempty"`
	Returns     int      `json:"returns,omitempty"` // to a tree of a failed iteration

	Trees    []string `json:"trees,omitempty"`    // all trees seen
	Progress int      `json:"progress,omitempty"` // highest PROGRESS
	Still    int      `json:"still,omitempty"`    // changing iterations without progress, in a row
	Idle     int      `json:"idle,omitempty"`     // iterations that did nothing at all, in a row
	Stands   int      `json:"stands,omitempty"`   // iterations without progress, in a row
}

// Count is how many iterations had something.
type Count struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

// Sight is what the guards see of one iteration.
type Sight struct {
	Outcome     Outcome
	Score       int      // per mille; -1 none
	Files       []string // flagged or changed
	Fingerprint string
	TreeKnown   bool
	TreeBefore  string
	TreeAfter   string
	Commits     int
	Progress    int // -1 none
	Claim       bool
	Silent      bool // printed nothing
}

// Observe takes one more iteration in. The slices that g had before stay as they are.
func (g *Guards) Observe(s *Sight) {
	changed := !s.TreeKnown || s.TreeBefore != s.TreeAfter
	better := g.Scored > 0 && s.Score > g.Top
	if better {
		g.Prints = nil // what fails in the same words fails less
	}
	g.observeOutcome(s, changed)
	g.observeScore(s.Score)
	g.observeProgress(s, changed, better)
}

func (g *Guards) observeOutcome(s *Sight, changed bool) {
	switch s.Outcome {
	case Success:
		g.Failures = 0
		g.Files = nil
	case Failed:
		g.Failures++
		if changed {
			g.Files = countEachOnce(g.Files, places.EachFileOnce(s.Files), maxFiles)
		}
		if s.Fingerprint != "" {
			g.Prints = countEachOnce(g.Prints, []string{s.Fingerprint}, maxFingerprints)
		}
		if s.TreeKnown && changed {
			if slices.Contains(g.FailedTrees, s.TreeAfter) {
				g.Returns++
			} else {
				g.FailedTrees = appendBounded(g.FailedTrees, s.TreeAfter, maxTrees)
			}
		}
	}
}

// observeScore counts declines: a score below the one before, or one that
// stays below 1 under an earlier better score.
func (g *Guards) observeScore(score int) {
	if score < 0 {
		return
	}
	if g.Scored > 0 {
		prev := g.Last[0]
		stays := score == prev && score < 1000 && g.Top > score
		if score < prev || stays {
			g.Declines++
		} else {
			g.Declines = 0
		}
	}
	g.Last = [3]int{score, g.Last[0], g.Last[1]}
	g.Top = max(g.Top, score)
	g.Scored++
}

// observeProgress counts iterations that get nowhere. One that changed
// nothing is no evidence of being stuck, but a run of them without a claim is
// idling; outside of git, where a change cannot be seen, silence stands for it.
func (g *Guards) observeProgress(s *Sight, changed, better bool) {
	fresh := s.TreeKnown && changed && !slices.Contains(g.Trees, s.TreeAfter)
	progress := s.Commits > 0 || fresh || better || s.Progress > g.Progress
	if fresh {
		g.Trees = appendBounded(g.Trees, s.TreeAfter, maxTrees)
	}
	g.Progress = max(g.Progress, s.Progress)
	unchanged := s.TreeKnown && !changed
	silent := !s.TreeKnown && s.Silent
	switch {
	case progress:
		g.Still, g.Idle, g.Stands = 0, 0, 0
		return
	case unchanged || silent:
		if !s.Claim && s.Outcome != Failed {
			g.Idle++
		}
	case s.TreeKnown:
		g.Still++
	default:
		g.Idle, g.Stands = 0, 0
		return
	}
	g.Stands++
}

// Trip is a guard that says stop.
type Trip struct {
	Guard   string
	Message string // what was seen, for a person
}

func newTrip(guard, format string, args ...any) (Trip, bool) {
	return Trip{guard, fmt.Sprintf(format, args...)}, true
}

// tripAt trips when a count has come to a threshold, of which 0 is off.
func tripAt(threshold, count int, guard, format string, args ...any) (Trip, bool) {
	if threshold <= 0 || count < threshold {
		return Trip{}, false
	}
	return newTrip(guard, format, args...)
}

// CheckMax is the guard over the number of the next iteration.
func CheckMax(next, maximum int) (Trip, bool) {
	if next <= maximum {
		return Trip{}, false
	}
	return newTrip(GuardMaxIterations, "Iteration %d exceeds maximum of %d. Circuit breaker triggered.", next, maximum)
}

// Breaker trips at threshold failed iterations in a row; 0 is off.
func (g *Guards) Breaker(threshold int) (Trip, bool) {
	return tripAt(threshold, g.Failures, GuardBreaker, "Circuit breaker OPEN: %d consecutive validation failures "+
		"(threshold: %d). Manual intervention required.", g.Failures, threshold)
}

// Regression trips when the last three scores fall strictly or the last three
// iterations all decline.
func (g *Guards) Regression() (Trip, bool) {
	falling := g.Last[0] < g.Last[1] && g.Last[1] < g.Last[2]
	if declining := falling || g.Declines >= 3; !declining || g.Scored < 3 {
		return Trip{}, false
	}
	return newTrip(GuardRegression, "Quality regression detected: Validation scores declined %d consecutive times. "+
		"Consider changing approach.", g.ConsecutiveDeclines())
}

// ConsecutiveDeclines is at most 2, and 0 for fewer than three scores.
func (g *Guards) ConsecutiveDeclines() int {
	if g.Scored < 3 {
		return 0
	}
	return min(g.Declines, declineWindow)
}

// Thrash trips when a file is in threshold failed iterations; 0 is off.
func (g *Guards) Thrash(threshold int) (Trip, bool) {
	if threshold <= 0 {
		return Trip{}, false
	}
	files := g.ThrashingFiles(threshold)
	if len(files) == 0 {
		return Trip{}, false
	}
	shown := strings.Join(files[:min(3, len(files))], ", ")
	if len(files) > 3 {
		shown += "..."
	}
	return newTrip(GuardThrashing, "Thrashing detected: %d file(s) modified %d+ times without progress: %s",
		len(files), threshold, shown)
}

// ThrashingFiles lists the files at or over the threshold, oldest first.
func (g *Guards) ThrashingFiles(threshold int) []string {
	return lists.Pick(g.Files, func(f Count) (string, bool) { return f.Name, f.N >= threshold })
}

// Oscillate trips at the second return to the tree of a failed iteration.
func (g *Guards) Oscillate() (Trip, bool) {
	return tripAt(2, g.Returns, GuardOscillation, "Oscillation detected: the files went back to a state that had "+
		"already failed, %d times. Consider changing approach.", g.Returns)
}

// Repeat trips when one failure came in threshold iterations; 0 is off.
func (g *Guards) Repeat(threshold int) (Trip, bool) {
	if threshold <= 0 {
		return Trip{}, false
	}
	for _, p := range g.Prints {
		if p.N >= threshold {
			return newTrip(GuardRepeated, "Repeated failure detected: the same failure in %d iterations, whatever was "+
				"tried (fingerprint %s).", p.N, p.Name)
		}
	}
	return Trip{}, false
}

// Stuck trips after threshold changing iterations without progress; 0 is off.
func (g *Guards) Stuck(threshold int) (Trip, bool) {
	return tripAt(threshold, g.Still, GuardStuck, "No progress in %d iterations: no new commit, no new state of the "+
		"files, no better score, no higher PROGRESS.", g.Still)
}

// Idling trips after threshold iterations that did nothing at all; 0 is off.
// uncounted is why the last one's claim did not count; "" when it made none.
func (g *Guards) Idling(threshold int, uncounted string) (Trip, bool) {
	if uncounted != "" {
		return tripAt(threshold, g.Idle, GuardStuck, "No progress in %d iterations: the agent ended well each time, but "+
			"changed nothing, and what it said did not count. %s", g.Idle, uncounted)
	}
	return tripAt(threshold, g.Idle, GuardStuck, "No progress in %d iterations: the agent ended well each time, but "+
		"changed nothing and claimed nothing.", g.Idle)
}

// Standstill trips after limit iterations without progress, also when the agent acts or claims; 0 is off.
func (g *Guards) Standstill(limit int) (Trip, bool) {
	return tripAt(limit, g.Stands, GuardStandstill, "No progress: %d iterations in a row brought no new "+
		"commit, no new state of the files, no better score and no higher PROGRESS.", g.Stands)
}

// nudges stand in the prompts of an agent without progress, one after the other: the same words
// again bring the same answer again.
var nudges = []string{
	"%d iterations have brought no progress. Do something else than before: name the assumption that was wrong, and " +
		"act on another.",
	"There has been no progress for %d iterations. Read the task once more, find the smallest part of it that is not " +
		"done, and do only that.",
	"Nothing has moved for %d iterations. Run the checks yourself, read the first failure to its end, and repair " +
		"just that.",
	"After %d iterations without progress: if the work is done, say so by the signal for that; if something is " +
		"missing that you cannot get, say what, by the signal for being blocked.",
}

// nudgeText returns the sentence for the next prompt; "" below the threshold.
func (g *Guards) nudgeText(threshold int) string {
	if threshold <= 0 || g.Stands < threshold {
		return ""
	}
	return fmt.Sprintf(nudges[(g.Stands-threshold)%len(nudges)], g.Stands)
}

// countEachOnce adds one to each name once, on a copy. When there are more than
// limit names, those with the smallest count go first.
func countEachOnce(counts []Count, names []string, limit int) []Count {
	out := slices.Clone(counts)
	for _, name := range lists.Union(nil, names...) {
		out = countName(out, name)
	}
	for len(out) > limit {
		least := slices.MinFunc(out, func(a, b Count) int { return a.N - b.N })
		at := slices.Index(out, least)
		out = slices.Delete(out, at, at+1)
	}
	return out
}

func countName(counts []Count, name string) []Count {
	for i := range counts {
		if counts[i].Name == name {
			counts[i].N++
			return counts
		}
	}
	return append(counts, Count{name, 1})
}

func appendBounded(list []string, s string, limit int) []string {
	from := max(0, len(list)+1-limit)
	return append(append(make([]string, 0, len(list)-from+1), list[from:]...), s)
}

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
		g.Observe(&sight)
	}
	if trip, tripped := g.Breaker(t.Breaker); tripped {
		return trip, true
	}
	if trip, tripped := g.Regression(); tripped {
		return trip, true
	}
	return g.Thrash(t.Thrashing)
}

// endIfPermanent ends a run whose failure only a person can cure, instead of
// burning iterations on it.
func (s turn) endIfPermanent(r *Record) *Command {
	f := r.Failure
	if r.Outcome != Failed || f == nil || f.Kind != failure.Permanent || s.fallbackCures(f) {
		return nil
	}
	// A guard's own words say what to do as well.
	said := cmp.Or(r.Exit.Why, f.Summary)
	if class := strings.ReplaceAll(string(f.Class), "_", " "); f.Class != failure.Unknown && !strings.HasPrefix(said, class) {
		said = class + ": " + said
	}
	c := &Command{Status: FailedRun, Why: failure.PersonNeeded + said}
	ran := r.Exit.Code >= 0 || s.Policy.Kind == Workflow
	// A board offers what helps; before the first action there is nothing to choose, and
	// no answer reaches a run whose folder or database is gone.
	if ran && s.Policy.Kind != Task && r.Exit.Ended != EndedGone {
		o := s.offerAfter("")
		o.Cured = f.Class
		c.Question = s.newQuestion(said, control.Choices(o))
	}
	return c
}
