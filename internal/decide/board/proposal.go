package board

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// The limits of a proposal: a list that a person is to read, of tasks that one agent finishes each.
const (
	MaxProposed    = 50
	maxCriteria    = 7
	maxTaskText    = 4000 // bytes
	maxProposalLen = 256 << 10
)

// Propose reads a list of tasks for a goal and looks at it more closely than [Parse]: each
// task is named, stands by itself and says when it is done, and is no larger than one agent
// finishes. An id that it needs is taken for a task of the board, which who adds it looks
// up. The tasks come in the order of the list. The error is a [*ProblemsError].
func Propose(text []byte) ([]Draft, error) {
	if len(text) > maxProposalLen {
		return nil, &ProblemsError{Problems: []Problem{{Text: "the list has more than 256 KiB"}}}
	}
	list, err := Parse(text)
	if err != nil {
		return nil, err
	}
	problems, titles := &ProblemsError{}, map[string]bool{}
	for i := range list.Drafts {
		d := &list.Drafts[i]
		c := &d.Case
		name := strings.ToLower(strings.Join(strings.Fields(c.Title), " "))
		switch {
		case c.Type == Operation, c.Parent != "", d.In != 0:
			problems.add(d.Line, "it is nested; write a flat list of tasks")
		case c.Status != "" && c.Status != Pending:
			problems.add(d.Line, "it is %s; list only open tasks", c.Status)
		case len(c.Tags) > 0, c.Control != nil: // some tags say who works, and how
			problems.add(d.Line, "it has tags, a policy or iteration_control, which only a person sets; leave them out")
		case len(c.Sealed) > 0:
			problems.add(d.Line, "it has sealed checks, which only a person sets; write the checks under verify")
		case c.Ref == "":
			problems.add(d.Line, "it has no ref, so no other task can need it")
		case titles[name]:
			problems.add(d.Line, "the title %q is already used", cutForMessage(c.Title))
		case len(c.Acceptance) == 0:
			problems.add(d.Line, "it has no acceptance criterion: say how a check can tell that it is done")
		case len(c.Acceptance) > maxCriteria, len(c.Description) > maxTaskText:
			problems.add(d.Line, "it is too large for one task (%d criteria, %d bytes): split it", len(c.Acceptance),
				len(c.Description))
		}
		titles[name] = true
	}
	if n := len(list.Drafts); n > MaxProposed {
		problems.add(0, "%d tasks are too many to review; at most %d", n, MaxProposed)
	}
	if err := problems.sortedOrNil(); err != nil {
		return nil, err
	}
	_, err = Resolve(list.Drafts, boardOfAnyID())
	return list.Drafts, err
}

// FreeRefs gives the drafts of a proposal whose refs are taken others that are free, and has
// what needs them follow: the refs are names within its list.
func FreeRefs(drafts []Draft, taken map[string]bool) {
	names := lists.ToMap(drafts, func(d Draft) (string, string) { return d.Case.Ref, d.Case.Ref })
	used := func(ref string) bool { return taken[ref] || names[ref] != "" }
	for i := range drafts {
		c := &drafts[i].Case
		ref := c.Ref
		for n := 2; taken[c.Ref]; n++ {
			if next := fmt.Sprintf("%s-%d", ref, n); !used(next) {
				c.Ref = next
			}
		}
		names[ref] = c.Ref
	}
	for _, d := range drafts {
		for i, need := range d.Case.Needs {
			d.Case.Needs[i] = cmp.Or(names[need], need)
		}
	}
}

// boardOfAnyID is a board of which only the ids that are named are known.
func boardOfAnyID() Known {
	last := int64(1) << 40 // far from those
	return Known{
		Find: func(name string) (Case, bool, error) {
			t, _, ok := ParseID(name)
			return Case{ID: Normal(name), Type: t}, ok && name == Normal(name), nil
		},
		Waits:   func(string) ([]string, error) { return nil, nil },
		Awaited: func(string) (bool, error) { return false, nil },
		NewID:   func(t Type) (string, error) { last++; return ID(t, last), nil },
	}
}

// Waves are the refs of a proposal by when they can be started: the first at once, each
// further one when those before have landed.
func Waves(drafts []Draft) [][]string {
	var waves [][]string
	var started []string
	refs := lists.Each(drafts, func(d Draft) string { return d.Case.Ref })
	for len(started) < len(drafts) {
		var wave []string
		for _, d := range drafts {
			waits := slices.ContainsFunc(d.Case.Needs, func(need string) bool {
				return slices.Contains(refs, need) && !slices.Contains(started, need)
			})
			if !waits && !slices.Contains(started, d.Case.Ref) {
				wave = append(wave, d.Case.Ref)
			}
		}
		if wave == nil { // a circle, which Propose has refused
			return waves
		}
		waves, started = append(waves, wave), append(started, wave...)
	}
	return waves
}

// MaxRacers is how many agents race for one task at most.
const MaxRacers = 5

// RacerName is the name of the run and of the workspace of the nth agent that
// races for a task. The first has those of the task itself.
func RacerName(task string, n int) string {
	if n == 1 {
		return task
	}
	return fmt.Sprintf("%s-race%d", task, n)
}

// TaskOf is the task that a run or a workspace with a name is for: its own, that
// of an agent that races for it, or one where its work is merged.
func TaskOf(name string) string {
	at := len(name) - len("-merge")
	if at <= 0 {
		return name
	}
	if end := name[at:]; end == "-merge" || strings.TrimRight(end, "23456789") == "-race" {
		return name[:at]
	}
	return name
}
