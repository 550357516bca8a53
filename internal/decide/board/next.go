package board

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// What counts for a score. Priority is no part of it: it goes before.
const (
	ScoreUnblocks     = 10  // for each case that waits for this one
	ScoreCritical     = 50  // tag critical
	ScoreQuickWin     = 30  // tag quick-win
	ScoreNearComplete = 20  // more than half of its operation is done
	ScoreRetry        = -15 // for each retry
)

// Part is one reason of a score.
type Part struct {
	Points int    `json:"points"`
	Why    string `json:"why"`
}

// Score is how much a task should go before others, and why. Parts that give
// nothing are left out.
func Score(c *Case) (score int, parts []Part) {
	add := func(points int, format string, args ...any) {
		score += points
		parts = append(parts, Part{points, fmt.Sprintf(format, args...)})
	}
	if c.Unblocks > 0 {
		add(ScoreUnblocks*c.Unblocks, "%s for it", waitingCases(c.Unblocks))
	}
	if c.HasTag(CriticalTag) {
		add(ScoreCritical, "tag critical")
	}
	if c.HasTag(QuickWinTag) {
		add(ScoreQuickWin, "tag quick-win")
	}
	if NearComplete(c.Siblings, c.SiblingsDone) {
		add(ScoreNearComplete, "%d of %d in %s are done", c.SiblingsDone, c.Siblings, c.Parent)
	}
	if c.Retries > 0 {
		add(ScoreRetry*c.Retries, "tried again %s", timesInWords(c.Retries))
	}
	return score, parts
}

// NearComplete is true when more than half of an operation is done.
func NearComplete(children, done int) bool { return 2*done > children }

func waitingCases(n int) string {
	if n == 1 {
		return "1 task waits"
	}
	return fmt.Sprintf("%d tasks wait", n)
}

func timesInWords(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// Compare orders tasks as they are started: higher priority, higher score,
// older, lower id. It is total: it is 0 for one and the same case only.
func Compare(a, b *Case) int {
	x, _ := Score(a)
	y, _ := Score(b)
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(y, x), compareAge(a, b))
}

// Choice is the task to start next.
type Choice struct {
	Case  Case   `json:"case"`
	Score int    `json:"score"`
	Parts []Part `json:"parts,omitempty"`
	Why   string `json:"why"`
}

// Next chooses among cases the ready task that goes first; ids in exclude are
// passed over. ok is false when there is none; Why then says so.
func Next(cases []Case, exclude []string) (next Choice, ok bool) {
	var best, second *Case
	for i := range cases {
		c := &cases[i]
		if !c.IsReady() || slices.Contains(exclude, c.ID) {
			continue
		}
		switch {
		case best == nil || Compare(c, best) < 0:
			best, second = c, best
		case second == nil || Compare(c, second) < 0:
			second = c
		}
	}
	if best == nil {
		return Choice{Why: "no task is ready"}, false
	}
	next.Case = *best
	next.Score, next.Parts = Score(best)
	next.Why = reasonForFirst(best, second, next)
	return next, true
}

// reasonForFirst explains why the best is before the second.
func reasonForFirst(best, second *Case, next Choice) string {
	if second == nil {
		return "the only ready task"
	}
	score, _ := Score(second)
	switch {
	case best.Priority != second.Priority:
		return fmt.Sprintf("priority %d, before %d of %s", best.Priority, second.Priority, second.ID)
	case next.Score != score:
		return fmt.Sprintf("score %d%s, before %d of %s", next.Score, Because(next.Parts), score, second.ID)
	case !best.CreatedAt.Equal(second.CreatedAt):
		return fmt.Sprintf("score %d like %s, but older", next.Score, second.ID)
	}
	return fmt.Sprintf("same score (%d) and age as %s, but the lower id", next.Score, second.ID)
}

// Because is the parts of a score as an aside: " (2 cases wait for it +20)";
// "" without parts.
func Because(parts []Part) string {
	if len(parts) == 0 {
		return ""
	}
	words := lists.Each(parts, func(p Part) string { return fmt.Sprintf("%s %+d", p.Why, p.Points) })
	return " (" + strings.Join(words, ", ") + ")"
}

// Cycle looks for a case that waits for itself, from each of starts on. waits
// lists what a case waits for directly: what it needs, what it holds, and what
// the operations above it need. A done task waits for nothing any more, a done
// operation may be opened again. An error of waits ends the search. The path begins
// and ends with the same id; it is nil when there is no cycle.
//
// Where a board had no cycle, a change can only make one through the cases
// that it changed: they are the starts.
func Cycle(starts []string, waits func(id string) ([]string, error)) (path []string, err error) {
	const open, closed = 1, 2
	mark := map[string]int{}
	type step struct {
		id   string
		next []string
	}
	for _, start := range starts {
		if mark[start] != 0 {
			continue
		}
		next, err := waits(start)
		if err != nil {
			return nil, err
		}
		mark[start] = open
		for way := []step{{start, next}}; len(way) > 0; {
			top := &way[len(way)-1]
			if len(top.next) == 0 {
				mark[top.id] = closed
				way = way[:len(way)-1]
				continue
			}
			id := top.next[0]
			top.next = top.next[1:]
			switch mark[id] {
			case closed:
			case open:
				for i := range way {
					if way[i].id == id || path != nil {
						path = append(path, way[i].id)
					}
				}
				return append(path, id), nil
			default:
				next, err := waits(id)
				if err != nil {
					return nil, err
				}
				mark[id] = open
				way = append(way, step{id, next})
			}
		}
	}
	return nil, nil
}

// CycleError names a cycle: its first and last id are the same.
type CycleError struct{ Path []string }

func (e *CycleError) Error() string {
	const most = 12
	path := e.Path
	if len(path) == 2 {
		return fmt.Sprintf("%s would wait for itself", path[0])
	}
	words := strings.Join(path, " → ")
	if len(path) > most {
		words = fmt.Sprintf("%s → … (%d more) → %s", strings.Join(path[:most-2], " → "), len(path)-most+1,
			path[len(path)-1])
	}
	return "a cycle, in which nothing could ever start: " + words
}
