package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/keep/store/rows"
)

// draft is a task with a title, which is its ref too.
func draft(title string, needs ...string) board.Draft {
	return board.Draft{Case: board.Case{Title: title, Ref: title, Needs: needs}}
}

func addAll(t testing.TB, s *Store, drafts ...board.Draft) []string {
	t.Helper()
	added, err := s.AddCases(t.Context(), drafts, board.Person, noon)
	must(t, err)
	ids := make([]string, len(added))
	for i, c := range added {
		ids[i] = c.ID
	}
	return ids
}

func move(t testing.TB, s *Store, id string, actions ...board.Action) {
	t.Helper()
	for i, a := range actions {
		by := board.Pawl
		if slices.Contains([]board.Action{board.Unblock, board.Defer, board.Undefer, board.Retry}, a) {
			by = board.Person
		}
		_, err := s.MoveCase(t.Context(), id, board.Change{Action: a, By: by, At: noon.Add(time.Duration(i) * time.Second)})
		must(t, err)
	}
}

func ready(t testing.TB, s *Store) []string {
	t.Helper()
	list, err := s.Cases(t.Context(), CaseFilter{Ready: true})
	must(t, err)
	var ids []string
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return ids
}

// When the autopilot began is not for whoever stores what it is now.
func TestAutopilotKeepsItsStart(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	a := Autopilot{Session: "s1", Owner: Owner{PID: 7}, StartedAt: noon, Phase: "running"}
	a, err := s.TakeAutopilot(t.Context(), a, func(Owner) bool { return false })
	must(t, err)
	a.StartedAt, a.Phase = time.Time{}, "paused"
	must(t, s.SaveAutopilot(t.Context(), a))
	got, ok, err := s.Autopilot(t.Context())
	must(t, err)
	if !ok || !got.StartedAt.Equal(noon) || got.Phase != "paused" {
		t.Errorf("got %+v", got)
	}
}

// What lands makes ready what waited for it alone.
func TestLandingMakesReady(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	addAll(t, s, draft("a"), draft("b", "a"), draft("c", "a", "b"))
	if got := ready(t, s); !slices.Equal(got, []string{"task-001"}) {
		t.Fatalf("ready: %v", got)
	}
	move(t, s, "task-001", board.Start, board.Verify)
	if got := ready(t, s); len(got) != 0 {
		t.Fatalf("verified is not landed, and yet ready: %v", got)
	}
	move(t, s, "task-001", board.Land)
	if got := ready(t, s); !slices.Equal(got, []string{"task-002"}) {
		t.Fatalf("ready: %v", got)
	}
	c, err := s.Case(t.Context(), "task-003")
	must(t, err)
	if c.Unmet != 1 || !slices.Equal(c.Needs, []string{"task-001", "task-002"}) {
		t.Errorf("task-003: %+v", c)
	}
	history, err := s.CaseHistory(t.Context(), "task-001")
	must(t, err)
	var told []string
	for _, e := range history {
		told = append(told, fmt.Sprintf("%s %s>%s", e.Action, e.From, e.To))
	}
	want := []string{"add >pending", "start pending>active", "verify active>review", "land review>done"}
	if !slices.Equal(told, want) {
		t.Errorf("history %q, want %q", told, want)
	}
}

// An operation is done with the last that it holds, open again with a new
// child, and while it waits all below it waits.
func TestOperation(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	op := func(title, parent string, needs ...string) board.Draft {
		return board.Draft{Case: board.Case{Type: board.Operation, Title: title, Ref: title, Parent: parent, Needs: needs}}
	}
	in := func(title, parent string, needs ...string) board.Draft {
		d := draft(title, needs...)
		d.Case.Parent = parent
		return d
	}
	addAll(t, s, op("outer", ""), op("inner", "outer"), in("a", "inner"), in("b", "inner"), op("later", "", "outer"), in("c", "later"))
	counts, _, err := s.CaseCounts(t.Context())
	must(t, err)
	if counts[board.Pending] != 3 {
		t.Fatalf("operations are counted as tasks: %v", counts)
	}
	if got := ready(t, s); !slices.Equal(got, []string{"task-001", "task-002"}) {
		t.Fatalf("ready: %v", got)
	}
	_, err = s.MoveCase(t.Context(), "op-001", board.Change{Action: board.Block, By: board.Person, At: noon})
	must(t, err)
	if got := ready(t, s); len(got) != 0 {
		t.Fatalf("ready under a blocked operation: %v", got)
	}
	move(t, s, "op-001", board.Unblock)
	move(t, s, "task-001", board.Start, board.Land)
	move(t, s, "task-002", board.Start, board.Land)
	for _, id := range []string{"op-001", "op-002"} {
		c, err := s.Case(t.Context(), id)
		must(t, err)
		if c.Status != board.Done {
			t.Errorf("%s is %s", id, c.Status)
		}
	}
	if got := ready(t, s); !slices.Equal(got, []string{"task-003"}) {
		t.Fatalf("ready after all of outer: %v", got)
	}
	addAll(t, s, in("d", "op-002"))
	if got := ready(t, s); !slices.Equal(got, []string{"task-004"}) {
		t.Fatalf("ready after outer opened again: %v", got)
	}
}

// A new case is as old as its row, whatever its draft says.
func TestNewCasesAreNew(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	d := draft("a")
	d.Case.CreatedAt = noon.Add(-time.Hour)
	added, err := s.AddCases(t.Context(), []board.Draft{d}, board.Person, noon.Add(time.Microsecond))
	must(t, err)
	stored, err := s.Case(t.Context(), added[0].ID)
	must(t, err)
	for _, c := range []board.Case{added[0], stored} {
		if !c.CreatedAt.Equal(noon) || !c.UpdatedAt.Equal(noon) {
			t.Errorf("created %v, updated %v", c.CreatedAt, c.UpdatedAt)
		}
	}
}

// What a case says is stored whole, and gone when it is taken away.
func TestEditedTexts(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	id := addAll(t, s, draft("a"))[0]
	five := 5
	for _, want := range []board.Case{
		{Description: "both", Acceptance: []string{"it works"}}, {Description: "only this"}, {}, {Acceptance: []string{"it works", "fast"}}, {},
		{Control: &board.Control{MaxIterations: &five}}, {},
	} {
		_, err := s.EditCase(t.Context(), id, board.Person, noon, func(c *board.Case) error {
			c.Description, c.Acceptance, c.Control = want.Description, want.Acceptance, want.Control
			return nil
		})
		must(t, err)
		got, err := s.Case(t.Context(), id)
		must(t, err)
		if got.Description != want.Description || !slices.Equal(got.Acceptance, want.Acceptance) ||
			got.Control.String() != want.Control.String() {
			t.Errorf("got %q %q, want %q %q", got.Description, got.Acceptance, want.Description, want.Acceptance)
		}
		var rows int
		must(t, s.write.conn.QueryRowContext(t.Context(), `SELECT count(*) FROM case_texts`).Scan(&rows))
		if empty := want.Description == "" && len(want.Acceptance) == 0 && want.Control == nil; (rows == 0) != empty {
			t.Errorf("%+v: %d rows of texts", want, rows)
		}
	}
}

func TestRefusedCycles(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	addAll(t, s, draft("a"), draft("b", "a"), draft("c", "b"),
		board.Draft{Case: board.Case{Type: board.Operation, Title: "op", Ref: "op"}}, draft("d", "op"))
	needs := func(id, need string) error {
		_, err := s.EditCase(t.Context(), id, board.Person, noon, func(c *board.Case) error {
			c.Needs = append(c.Needs, need)
			return nil
		})
		return err
	}
	var cycle *board.CycleError
	if err := needs("task-001", "task-003"); !errors.As(err, &cycle) || !slices.Equal(cycle.Path, []string{"task-001", "task-003", "task-002", "task-001"}) {
		t.Errorf("a needs c: %v", err)
	}
	if err := needs("task-001", "task-001"); !errors.As(err, &cycle) {
		t.Errorf("a needs a: %v", err)
	}
	// task-004 needs op-001: a child of it that needs task-004 is a cycle.
	_, err := s.AddCases(t.Context(), []board.Draft{{Line: 7, Case: board.Case{Title: "e", Parent: "op-001", Needs: []string{"task-004"}}}}, board.Person, noon)
	var problems *board.ProblemsError
	if !errors.As(err, &problems) || !strings.Contains(err.Error(), "line 7") || !strings.Contains(err.Error(), "op-001 → \"e\"") {
		t.Errorf("child of op that needs what needs op: %v", err)
	}
	_, err = s.EditCase(t.Context(), "task-004", board.Person, noon, func(c *board.Case) error { c.Parent = "op-001"; return nil })
	if !errors.As(err, &cycle) {
		t.Errorf("what needs op moved into op: %v", err)
	}
	recount(t, s)
}

func TestRemove(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	addAll(t, s, draft("a"), draft("b", "a"))
	var refusal *board.RefusalError
	if err := s.RemoveCase(t.Context(), "task-001", board.Person, noon); !errors.As(err, &refusal) || !strings.Contains(err.Error(), "task-002") {
		t.Errorf("a needed one: %v", err)
	}
	must(t, s.RemoveCase(t.Context(), "task-002", board.Person, noon))
	must(t, s.RemoveCase(t.Context(), "task-001", board.Person, noon))
	if err := s.RemoveCase(t.Context(), "task-001", board.Person, noon); !errors.Is(err, ErrNoCase) {
		t.Errorf("a removed one: %v", err)
	}
	if got := addAll(t, s, draft("a")); got[0] != "task-003" {
		t.Errorf("the id %s was used before", got[0])
	}
}

// recount computes all counters and states of a board from its rows, and
// holds the stored ones against them.
func recount(t *testing.T, s *Store) {
	t.Helper()
	list, err := s.Cases(t.Context(), CaseFilter{})
	must(t, err)
	all := map[string]*board.Case{}
	for i := range list {
		all[list[i].ID] = &list[i]
	}
	var want []board.Case
	for _, c := range list {
		w := c
		w.Unmet, w.Unblocks, w.Held, w.Children, w.ChildrenDone, w.Siblings, w.SiblingsDone = 0, 0, false, 0, 0, 0, 0
		for _, n := range c.Needs {
			if all[n].Status != board.Done {
				w.Unmet++
			}
		}
		for _, o := range list {
			if slices.Contains(o.Needs, c.ID) && o.Status != board.Done {
				w.Unblocks++
			}
			if o.Parent == c.ID {
				w.Children++
			}
			if o.Parent == c.ID && o.Status == board.Done {
				w.ChildrenDone++
			}
			if o.Parent == c.Parent && c.Parent != "" {
				w.Siblings++
			}
			if o.Parent == c.Parent && c.Parent != "" && o.Status == board.Done {
				w.SiblingsDone++
			}
		}
		for up := c.Parent; up != ""; up = all[up].Parent {
			p := all[up]
			unmet := slices.ContainsFunc(p.Needs, func(n string) bool { return all[n].Status != board.Done })
			w.Held = w.Held || p.Status == board.Blocked || p.Status == board.Deferred || unmet
		}
		if !reflect.DeepEqual(c, w) {
			t.Fatalf("%s is stored as\n%+v\nwant\n%+v", c.ID, c, w)
		}
		if full := c.Type == board.Operation && c.Children > 0; full && (c.Status == board.Done) != (c.Children == c.ChildrenDone) {
			t.Fatalf("%s is %s with %d of %d", c.ID, c.Status, c.ChildrenDone, c.Children)
		}
		want = append(want, w)
	}
	isReady := slices.DeleteFunc(slices.Clone(want), func(c board.Case) bool { return !c.IsReady() })
	slices.SortFunc(isReady, func(a, b board.Case) int { return board.Compare(&a, &b) })
	var order []string
	for _, c := range isReady {
		order = append(order, c.ID)
	}
	if got := ready(t, s); !slices.Equal(got, order) {
		t.Fatalf("ready in the order %v, want %v", got, order)
	}
	path, err := board.Cycle(keys(list), func(id string) ([]string, error) {
		if all[id].Type == board.Task && all[id].Status == board.Done {
			return nil, nil
		}
		waits := slices.Clone(all[id].Needs)
		for up := all[id].Parent; up != ""; up = all[up].Parent {
			waits = append(waits, all[up].Needs...)
		}
		for _, c := range list {
			if c.Parent == id {
				waits = append(waits, c.ID)
			}
		}
		return waits, nil
	})
	if err != nil || path != nil {
		t.Fatalf("a cycle was stored: %v %v", path, err)
	}
}

func keys(list []board.Case) []string {
	ids := make([]string, len(list))
	for i, c := range list {
		ids[i] = c.ID
	}
	return ids
}

// Whatever is done in whatever order: the counters equal a recount, no cycle
// is stored, and the stored order is the board's.
func TestCountersEqualARecount(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s, r := fresh(t), rand.New(rand.NewPCG(seed, 1))
			var ids []string
			for step := range 120 {
				shake(t, s, r, &ids, step)
				if step%10 == 9 {
					recount(t, s)
				}
			}
		})
	}
}

// shake does one random thing. Refusals are fine; anything else is not.
func shake(t *testing.T, s *Store, r *rand.Rand, ids *[]string, step int) {
	t.Helper()
	some := func() string {
		if len(*ids) == 0 {
			return "task-001"
		}
		return (*ids)[r.IntN(len(*ids))]
	}
	now := noon.Add(time.Duration(r.IntN(5)) * time.Second)
	var err error
	switch r.IntN(10) {
	case 0, 1, 2:
		var drafts []board.Draft
		for i := range 1 + r.IntN(4) {
			c := board.Case{Title: "t", Ref: fmt.Sprintf("r%d.%d", step, i), Priority: r.IntN(2)}
			if r.IntN(4) == 0 {
				c.Type = board.Operation
			}
			if r.IntN(6) == 0 {
				c.Status = board.Done
			}
			if r.IntN(5) == 0 {
				c.Tags = []string{"critical"}
			}
			if len(*ids) > 0 && r.IntN(2) == 0 {
				c.Needs = []string{some(), some()}
			}
			if i > 0 && r.IntN(2) == 0 {
				c.Needs = append(c.Needs, fmt.Sprintf("r%d.%d", step, r.IntN(i)))
			}
			if r.IntN(2) == 0 {
				c.Parent = some()
			} else if i > 0 && r.IntN(2) == 0 {
				c.Parent = fmt.Sprintf("r%d.0", step)
			}
			drafts = append(drafts, board.Draft{Line: i + 1, Case: c})
		}
		var added []board.Case
		added, err = s.AddCases(t.Context(), drafts, board.Person, now)
		*ids = append(*ids, keys(added)...)
	case 3, 4:
		_, err = s.EditCase(t.Context(), some(), board.Person, now, func(c *board.Case) error {
			switch r.IntN(4) {
			case 0:
				c.Parent = some()
			case 1:
				c.Parent = ""
			case 2:
				c.Needs = append(c.Needs, some())
			case 3:
				c.Needs = c.Needs[:len(c.Needs)/2]
			}
			return nil
		})
	case 5:
		id := some()
		if err = s.RemoveCase(t.Context(), id, board.Person, now); err == nil {
			*ids = slices.DeleteFunc(*ids, func(s string) bool { return s == id })
		}
	default:
		rule := board.Rules[r.IntN(len(board.Rules))]
		if r.IntN(2) == 0 {
			rule = board.Rule{Action: []board.Action{board.Start, board.Land}[r.IntN(2)], By: []board.Actor{board.Pawl}}
		}
		if rule.Action == board.Finish || rule.Action == board.Reopen {
			return // the board does these by itself
		}
		_, err = s.MoveCase(t.Context(), some(), board.Change{Action: rule.Action, By: rule.By[0], At: now})
	}
	var refusal *board.RefusalError
	var problems *board.ProblemsError
	var cycle *board.CycleError
	if err != nil && !errors.As(err, &refusal) && !errors.As(err, &problems) && !errors.As(err, &cycle) && !errors.Is(err, ErrNoCase) {
		t.Fatal(err)
	}
}

// The next task is found by an index, not by sorting the board.
func TestNextIsAnIndexLookUp(t *testing.T) {
	t.Parallel()
	fileOnly(t)
	s := fresh(t)
	addAll(t, s, draft("a"), draft("b"))
	var plan strings.Builder
	must(t, s.reads.Each(t.Context(), func(row rows.Row) error {
		var a, b, c int
		var detail string
		err := row.Scan(&a, &b, &c, &detail)
		plan.WriteString(detail + "\n")
		return err
	}, `EXPLAIN QUERY PLAN SELECT `+listedColumns+caseTables+` WHERE c.ready = 1 ORDER BY c.priority DESC, c.score DESC, c.created_at, c.number LIMIT 2`))
	if !strings.Contains(plan.String(), "USING INDEX cases_next") || strings.Contains(plan.String(), "TEMP B-TREE") {
		t.Errorf("the plan is\n%s", plan.String())
	}
	next, ok, err := s.NextCaseOf(t.Context(), CaseFilter{}, []string{"task-001"})
	if err != nil || !ok || next.Case.ID != "task-002" {
		t.Errorf("next: %+v %v %v", next, ok, err)
	}
}

// Two processes add at once: every id is given once.
func TestTwoProcessesAdd(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := open(t, path)
	a, b := start(t, "cases", path, "a"), start(t, "cases", path, "b")
	for _, p := range []*process{a, b} {
		for l := p.line(); l != ""; l = p.line() {
			if strings.HasPrefix(l, "error") {
				t.Fatal(l)
			}
		}
	}
	list, err := s.Cases(t.Context(), CaseFilter{})
	must(t, err)
	for i, c := range list {
		if want := board.ID(board.Task, int64(i+1)); c.ID != want {
			t.Fatalf("the case %d is %s, want %s", i, c.ID, want)
		}
	}
	if len(list) != 60 {
		t.Errorf("%d cases of 60", len(list))
	}
	recount(t, s)
}
