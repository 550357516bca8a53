package board

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Draft is a case that is to be added. Parent and Needs may be refs of other
// drafts, ids, or refs of cases on the board. Type may be empty: a draft that
// others name as their parent is then an operation, any other a task. Status
// is pending, done, blocked or deferred; empty is pending.
type Draft struct {
	Line int // where it stands in a file, from 1; 0 when it is in none
	In   int // the draft, counted from 1, that holds this one, whatever its ref; 0 is none
	Case Case
}

// Problem is a fault of a draft.
type Problem struct {
	Line int    `json:"line,omitempty"` // 0: of none, or of all
	Text string `json:"text"`
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.Text
	}
	return fmt.Sprintf("line %d: %s", p.Line, p.Text)
}

// ProblemsError is all that is wrong with drafts, in the order of their lines.
// Nothing of them is stored.
type ProblemsError struct {
	Problems []Problem
	More     int // further ones, not listed
	known    int // of them say that a case is on the board already
}

// AllKnown is true when nothing is wrong but that the cases are on the board already.
func (e *ProblemsError) AllKnown() bool { return e.known == len(e.Problems)+e.More }

// maxProblems is how many problems are kept.
const maxProblems = 20

func (e *ProblemsError) Error() string {
	lines := lists.Each(e.Problems, func(p Problem) string { return p.String() })
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", e.More))
	}
	return strings.Join(lines, "\n")
}

func (e *ProblemsError) add(line int, format string, args ...any) {
	if len(e.Problems) == maxProblems {
		e.More++
		return
	}
	e.Problems = append(e.Problems, Problem{line, fmt.Sprintf(format, args...)})
}

// sortedOrNil is the error, or a true nil when nothing is wrong.
func (e *ProblemsError) sortedOrNil() error {
	if len(e.Problems) == 0 {
		return nil
	}
	slices.SortStableFunc(e.Problems, func(a, b Problem) int { return a.Line - b.Line })
	return e
}

// Known is the board that drafts are added to, as far as Resolve has to know
// it. Its errors end the call.
type Known struct {
	// Find is the case with an id or a ref.
	Find func(name string) (c Case, ok bool, err error)
	// Waits is what a case on the board waits for directly, see [Cycle].
	Waits func(id string) ([]string, error)
	// Awaited is true when a case that is no done task needs an operation of
	// the board, or one that it is in.
	Awaited func(id string) (bool, error)
	// NewID is the id of the next case of a type.
	NewID func(Type) (string, error)
}

// Added is what drafts come to: cases with ids, refs replaced and counters set. Those
// below a case of the board lack Siblings.
type Added struct {
	Cases []Case
	// Named are the cases of the board that they need or are below of, sorted: what is
	// counted of these has changed.
	Named []string
}

// Resolve makes cases of drafts: all or none. The error is a
// [*ProblemsError], or one of known.
func Resolve(drafts []Draft, known Known) (Added, error) {
	r := &resolver{
		drafts: drafts, known: known,
		refs: map[string]int{}, index: map[string]int{}, old: map[string]Case{},
	}
	for _, step := range []func() error{r.tidyDrafts, r.assignIDs, r.resolveRefs, r.checkDepth, r.checkCycles} {
		if err := step(); err != nil {
			return Added{}, err
		}
		if err := r.problems.sortedOrNil(); err != nil {
			return Added{}, err
		}
	}
	r.setCounters()
	return Added{Cases: r.cases, Named: slices.Sorted(maps.Keys(r.old))}, nil
}

type resolver struct {
	drafts   []Draft
	known    Known
	problems ProblemsError

	cases []Case
	refs  map[string]int  // by ref of the drafts
	index map[string]int  // by new id
	old   map[string]Case // cases of the board that drafts name
}

// tidyDrafts checks each draft alone, and its ref against the other ones.
func (r *resolver) tidyDrafts() error {
	r.cases = make([]Case, len(r.drafts))
	parents := map[string]bool{}
	for i := range r.drafts {
		r.cases[i] = Tidy(r.drafts[i].Case)
		parents[r.cases[i].Parent] = true
	}
	for i := range r.cases {
		c, line := &r.cases[i], r.drafts[i].Line
		if c.Type == "" {
			c.Type = Task
			if c.Ref != "" && parents[c.Ref] {
				c.Type = Operation
			}
		}
		c.Status = cmp.Or(c.Status, Pending)
		if !slices.Contains([]Status{Pending, Done, Blocked, Deferred}, c.Status) {
			r.problems.add(line, "a new task cannot be %s", cutForMessage(string(c.Status)))
		}
		for _, wrong := range Check(*c) {
			r.problems.add(line, "%s", wrong)
		}
		if c.Ref == "" {
			continue
		}
		if first, twice := r.refs[c.Ref]; twice {
			r.problems.add(line, "the ref %q is already used in line %d", cutForMessage(c.Ref), r.drafts[first].Line)
			continue
		}
		r.refs[c.Ref] = i
		old, ok, err := r.known.Find(c.Ref)
		if err != nil {
			return err
		}
		if ok && old.Ref == c.Ref {
			r.problems.add(line, "the ref %q is already on the board, as %s", cutForMessage(c.Ref), old.ID)
			r.problems.known++
		}
	}
	return nil
}

// assignIDs gives ids, in order.
func (r *resolver) assignIDs() error {
	for i := range r.cases {
		id, err := r.known.NewID(r.cases[i].Type)
		if err != nil {
			return err
		}
		r.cases[i].ID = id
		r.index[id] = i
	}
	return nil
}

// resolveRefs replaces refs by ids.
func (r *resolver) resolveRefs() error {
	for i := range r.cases {
		c, line := &r.cases[i], r.drafts[i].Line
		if in := r.drafts[i].In; in > 0 {
			c.Parent = r.cases[in-1].ID
		} else if c.Parent != "" {
			parent, typ, err := r.findByName(c.Parent)
			if err != nil {
				return err
			}
			switch {
			case parent == "":
				r.problems.add(line, "the parent %q is neither in the list nor on the board", cutForMessage(c.Parent))
			case typ != Operation:
				r.problems.add(line, "the parent %s is a task; only operations have children", r.nameInMessage(parent))
			}
			c.Parent = parent
		}
		needs := make([]string, 0, len(c.Needs))
		for _, name := range c.Needs {
			need, _, err := r.findByName(name)
			if err != nil {
				return err
			}
			if need == "" {
				r.problems.add(line, "it needs %q, which is neither in the list nor on the board", cutForMessage(name))
				continue
			}
			needs = append(needs, need)
		}
		c.Needs = trimDistinct(needs)
	}
	return nil
}

// findByName gives the id and the type that a name stands for: a ref of the list
// first, then an id, then a ref of the board; "" when it is nothing.
func (r *resolver) findByName(name string) (string, Type, error) {
	if i, ok := r.refs[name]; ok {
		return r.cases[i].ID, r.cases[i].Type, nil
	}
	// What has its id since a moment cannot be meant by it.
	if _, fresh := r.index[Normal(name)]; fresh {
		return "", "", nil
	}
	c, ok, err := r.known.Find(Normal(name))
	if err == nil && !ok && Normal(name) != name {
		c, ok, err = r.known.Find(name)
	}
	if err != nil || !ok {
		return "", "", err
	}
	r.old[c.ID] = c
	return c.ID, c.Type, nil
}

// nameInMessage names a case for a message: by its ref where it has one.
func (r *resolver) nameInMessage(id string) string {
	i, ok := r.index[id]
	if !ok {
		return id
	}
	if ref := r.cases[i].Ref; ref != "" {
		return cutForMessage(ref)
	}
	return fmt.Sprintf("%q", cutForMessage(r.cases[i].Title))
}

// checkDepth refuses operations nested too deep, or in themselves.
func (r *resolver) checkDepth() error {
	for i := range r.cases {
		deep, id := 0, r.cases[i].Parent
		for ; id != "" && deep <= MaxDepth; deep++ {
			if j, ok := r.index[id]; ok {
				id = r.cases[j].Parent
				continue
			}
			c, ok, err := r.known.Find(id)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			id = c.Parent
		}
		if deep > MaxDepth {
			r.problems.add(r.drafts[i].Line, "it is nested in itself, or more than %d operations deep", MaxDepth)
		}
	}
	return nil
}

// checkCycles looks for cases that would wait for themselves. Cases of the board
// lead back to new ones only through an operation of the board that gets a new
// child and that something waits for; else their needs need not be read.
func (r *resolver) checkCycles() error {
	held := map[string][]string{}
	starts := make([]string, len(r.cases))
	adopted, operations := []string(nil), false
	for i, c := range r.cases {
		starts[i] = c.ID
		for _, need := range c.Needs {
			operations = operations || r.old[need].Type == Operation
		}
		if c.Parent == "" {
			continue
		}
		if _, fresh := r.index[c.Parent]; !fresh && held[c.Parent] == nil {
			adopted = append(adopted, c.Parent)
		}
		held[c.Parent] = append(held[c.Parent], c.ID)
	}
	outside := operations && len(adopted) > 0
	for _, id := range adopted {
		if outside {
			break
		}
		awaited, err := r.known.Awaited(id)
		if err != nil {
			return err
		}
		outside = awaited
	}
	path, err := Cycle(starts, func(id string) ([]string, error) { return r.needsOfCase(id, held, outside) })
	if err != nil || path == nil {
		return err
	}
	line := 0
	for i, id := range path {
		if j, ok := r.index[id]; ok && line == 0 {
			line = r.drafts[j].Line
		}
		path[i] = r.nameInMessage(id)
	}
	r.problems.add(line, "%s", (&CycleError{path}).Error())
	return nil
}

func (r *resolver) needsOfCase(id string, held map[string][]string, outside bool) ([]string, error) {
	i, fresh := r.index[id]
	if !fresh {
		if !outside {
			return nil, nil
		}
		list, err := r.known.Waits(id)
		return append(list, held[id]...), err
	}
	if c := &r.cases[i]; c.Type == Task && c.Status == Done {
		return nil, nil
	}
	list := append(slices.Clone(r.cases[i].Needs), held[id]...)
	for up := r.cases[i].Parent; up != ""; {
		j, ok := r.index[up]
		if !ok {
			above, err := r.needsAbove(up)
			return append(list, above...), err
		}
		list = append(list, r.cases[j].Needs...)
		up = r.cases[j].Parent
	}
	return list, nil
}

// needsAbove gives what an operation of the board makes its children wait for.
// Unless the needs of the board are read it does not matter.
func (r *resolver) needsAbove(id string) ([]string, error) {
	var list []string
	for range MaxDepth + 1 {
		c, ok, err := r.known.Find(id)
		if err != nil || !ok {
			return list, err
		}
		list = append(list, c.Needs...)
		if id = c.Parent; id == "" {
			break
		}
	}
	return list, nil
}
