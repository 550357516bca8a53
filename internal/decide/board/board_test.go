package board

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// task is a pending task; with changes it is made otherwise.
func task(n int, with ...func(*Case)) Case {
	c := Case{ID: ID(Task, int64(n)), Type: Task, Title: "t", Status: Pending, CreatedAt: noon}
	for _, w := range with {
		w(&c)
	}
	return c
}

// The selection criteria, row by row.
func TestScore(t *testing.T) {
	t.Parallel()
	family := func(done, all int) func(*Case) {
		return func(c *Case) { c.Parent, c.Siblings, c.SiblingsDone = "op-001", all, done }
	}
	tags := func(tags ...string) func(*Case) { return func(c *Case) { c.Tags = tags } }
	for _, row := range []struct {
		name string
		c    Case
		want int
		why  string
	}{
		{"nothing", task(1), 0, ""},
		{"unblocks one", task(1, func(c *Case) { c.Unblocks = 1 }), 10, " (1 task waits for it +10)"},
		{"unblocks three", task(1, func(c *Case) { c.Unblocks = 3 }), 30, " (3 tasks wait for it +30)"},
		{"critical", task(1, tags("critical")), 50, " (tag critical +50)"},
		{"quick-win", task(1, tags("quick-win")), 30, " (tag quick-win +30)"},
		{"both tags", task(1, tags("critical", "quick-win")), 80, " (tag critical +50, tag quick-win +30)"},
		{"tags without weight", task(1, tags("next", "later", "critical-path")), 0, ""},
		{"half done", task(1, family(2, 4)), 0, ""},
		{"more than half done", task(1, family(3, 5)), 20, " (3 of 5 in op-001 are done +20)"},
		{"less than half of an odd number", task(1, family(2, 5)), 0, ""},
		{"one retry", task(1, func(c *Case) { c.Retries = 1 }), -15, " (tried again once -15)"},
		{"three retries", task(1, func(c *Case) { c.Retries = 3 }), -45, " (tried again 3 times -45)"},
		{
			"all at once", task(1, tags("critical", "quick-win"), family(3, 4), func(c *Case) { c.Unblocks, c.Retries = 2, 2 }), 90,
			" (2 tasks wait for it +20, tag critical +50, tag quick-win +30, 3 of 4 in op-001 are done +20, tried again twice -30)",
		},
		{"priority is no part of it", task(1, func(c *Case) { c.Priority = 9 }), 0, ""},
	} {
		score, parts := Score(&row.c)
		if score != row.want || Because(parts) != row.why {
			t.Errorf("%s: %d%s, want %d%s", row.name, score, Because(parts), row.want, row.why)
		}
	}
}

func TestNext(t *testing.T) {
	t.Parallel()
	older := func(c *Case) { c.CreatedAt = noon.Add(-time.Hour) }
	score := func(n int) func(*Case) { return func(c *Case) { c.Unblocks = n } }
	for _, row := range []struct {
		name    string
		cases   []Case
		exclude []string
		want    string
		why     string
	}{
		{"an empty board", nil, nil, "", "no task is ready"},
		{"one", []Case{task(1)}, nil, "task-001", "the only ready task"},
		{"none ready", []Case{task(1, func(c *Case) { c.Unmet = 1 }), task(2, func(c *Case) { c.Held = true }), task(3, func(c *Case) { c.Status = Active }),
			{ID: "op-001", Type: Operation, Status: Pending}}, nil, "", "no task is ready"},
		{"the score", []Case{task(1), task(2, score(1))}, nil, "task-002", "score 10 (1 task waits for it +10), before 0 of task-001"},
		{"priority before the score", []Case{task(1, score(9)), task(2, func(c *Case) { c.Priority = 1 })}, nil, "task-002", "priority 1, before 0 of task-001"},
		{"a tie: the oldest", []Case{task(1), task(2, older)}, nil, "task-002", "score 0 like task-001, but older"},
		{"a tie: the lower id", []Case{task(1000), task(999)}, nil, "task-999", "same score (0) and age as task-1000, but the lower id"},
		{"what is excluded", []Case{task(1, score(5)), task(2)}, []string{"task-001"}, "task-002", "the only ready task"},
		{"all excluded", []Case{task(1)}, []string{"task-001"}, "", "no task is ready"},
	} {
		next, ok := Next(row.cases, row.exclude)
		if next.Case.ID != row.want || next.Why != row.why || ok != (row.want != "") {
			t.Errorf("%s: %q (%s), want %q (%s)", row.name, next.Case.ID, next.Why, row.want, row.why)
		}
		slices.Reverse(row.cases)
		if again, _ := Next(row.cases, row.exclude); again.Case.ID != row.want {
			t.Errorf("%s: %q when asked in another order", row.name, again.Case.ID)
		}
	}
}

// What the tables of completion, exits, signals and recovery say of statuses.
func TestStatusTables(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		from   Status
		action Action
		by     Actor
		to     Status
		retry  int
	}{
		{"COMPLETE, all pass, to be landed", Active, Verify, Pawl, Review, 0},
		{"landed", Review, Land, Pawl, Done, 0},
		{"landed at once", Active, Land, Pawl, Done, 0},
		{"BLOCKED", Active, Block, Pawl, Blocked, 0},
		{"maximum of iterations, or time", Active, Expire, Pawl, Timeout, 0},
		{"exit other than 0", Active, Fail, Pawl, Failed, 0},
		{"SIGTERM by the user", Active, Stop, Person, Pending, 0},
		{"SIGKILL, a crash", Active, Crash, Pawl, Pending, 1},
		{"r on failed", Failed, Retry, Person, Pending, 1},
		{"R on failed", Failed, Rollback, Person, Pending, 0},
		{"r on timeout", Timeout, Retry, Person, Pending, 1},
		{"R on timeout", Timeout, Rollback, Person, Pending, 0},
		{"retry of a blocked one", Blocked, Retry, Person, Pending, 1},
		{"unblock manually", Blocked, Unblock, Person, Pending, 0},
		{"skip", Pending, Defer, Person, Deferred, 0},
		{"a review approves", Review, Approve, Person, Review, 0},
		{"a review asks for more", Review, Redo, Person, Pending, 0},
		{"a review refuses", Review, Reject, Person, Blocked, 0},
	} {
		before := task(1, func(c *Case) { c.Status = row.from })
		at := noon.Add(time.Hour)
		after, entry, err := Move(before, Change{row.action, row.by, "because", at})
		if err != nil || after.Status != row.to || after.Retries != row.retry || after.Why != "because" || !after.UpdatedAt.Equal(at) {
			t.Errorf("%s: %+v, %v", row.name, after, err)
		}
		if want := (Entry{At: at, Action: row.action, By: row.by, From: row.from, To: row.to, Why: "because"}); entry != want {
			t.Errorf("%s: the history says %+v, want %+v", row.name, entry, want)
		}
	}
}

// A change is allowed exactly where the table has a line for it; whatever is
// refused says why, changes nothing, and a person is told what to do instead.
func TestMoveIsTheTable(t *testing.T) {
	t.Parallel()
	for _, rule := range Rules {
		for _, typ := range []Type{Task, Operation} {
			for _, from := range Statuses {
				for _, by := range []Actor{Person, Pawl} {
					c := Case{ID: "x-1", Type: typ, Status: from}
					after, _, err := Move(c, Change{Action: rule.Action, By: by, At: noon})
					if allowed := allows(rule.Action, typ, from, by); allowed == (err != nil) {
						t.Errorf("%s of a %s %s by %s: %v", rule.Action, from, typ, by, err)
					}
					var refusal *RefusalError
					if err == nil {
						continue
					}
					if !errors.As(err, &refusal) || refusal.Why == "" || after.Status != from {
						t.Errorf("%s of a %s %s by %s: %#v, and it is %s", rule.Action, from, typ, by, err, after.Status)
					}
					if typ == Task && by == Person && refusal.Instead == "" && rule.Type != Operation {
						t.Errorf("%s of a %s task: a person is not told what to do instead", rule.Action, from)
					}
				}
			}
		}
	}
}

func allows(a Action, typ Type, from Status, by Actor) bool {
	return slices.ContainsFunc(Rules, func(r Rule) bool {
		return r.Action == a && (r.Type == "" || r.Type == typ) && slices.Contains(r.From, from) && slices.Contains(r.By, by)
	})
}

// Only a ready task is started, and the refusal says what is in its way.
func TestStartNeedsReady(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Case{
		"1 of its needs has not landed":      task(1, func(c *Case) { c.Unmet = 1 }),
		"2 of its needs have not landed":     task(1, func(c *Case) { c.Unmet = 2 }),
		"an operation above it is blocked":   task(1, func(c *Case) { c.Held = true }),
		"it is an operation, which only gro": {ID: "op-001", Type: Operation, Status: Pending},
	} {
		if _, _, err := Move(c, Change{Action: Start, By: Pawl, At: noon}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"task-042": "task-042", "task-42": "task-042", "TASK-0042": "task-042", "42": "task-042", "op-5": "op-005", "OP-1234": "op-1234",
		"": "", "task-": "", "task-0": "", "0": "", "x-1": "", "task-1-2": "", "task-+1": "", "op": "", "99999999999999999999": "", "-1": "",
	} {
		typ, n, ok := ParseID(text)
		if got := ID(typ, n); ok != (want != "") || ok && got != want || !ok && n != 0 {
			t.Errorf("%q: %q %v, want %q", text, got, ok, want)
		}
	}
}

// A case goes through JSON as it is.
func TestCaseJSON(t *testing.T) {
	t.Parallel()
	c := Case{
		ID: "task-001", Type: Task, Title: "t", Description: "d", Acceptance: []string{"a"}, Tags: []string{"x"}, Priority: 1, Parent: "op-001",
		Needs: []string{"task-002"}, Ref: "r", Status: Blocked, Why: "w", Retries: 2, CreatedAt: noon, UpdatedAt: noon, Unmet: 1, Unblocks: 1,
		Held: true, Children: 1, ChildrenDone: 1, Siblings: 1, SiblingsDone: 1,
	}
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back Case
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(back) != fmt.Sprint(c) {
		t.Errorf("%+v, want %+v", back, c)
	}
	for _, key := range []string{`"retry_count":2`, `"unblocks":1`, `"held":true`, `"status":"blocked"`} {
		if !strings.Contains(string(data), key) {
			t.Errorf("no %s in %s", key, data)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Case){
		"the title is empty":            func(c *Case) { c.Title = " \t" },
		"the title has 1048576 bytes":   func(c *Case) { c.Title = strings.Repeat("x", 1<<20) },
		"the title has control char":    func(c *Case) { c.Title = "a\x1b[31mb" },
		"or is not UTF-8":               func(c *Case) { c.Title = "a\xff" },
		"the description has a NUL":     func(c *Case) { c.Description = "a\x00b" },
		"the description has 300000 by": func(c *Case) { c.Description = strings.Repeat("x", 300_000) },
		"the tag \"a b\"":               func(c *Case) { c.Tags = []string{"a b"} },
		"the priority 2000000":          func(c *Case) { c.Priority = 2_000_000 },
		"the type \"epic\" is unknown":  func(c *Case) { c.Type = "epic" },
		"the ref \"a\\nb\"":             func(c *Case) { c.Ref = "a\nb" },
	} {
		if wrong := Check(Tidy(task(1, change))); !strings.Contains(strings.Join(wrong, "\n"), want) {
			t.Errorf("%q, want %q", wrong, want)
		}
	}
	tidy := Tidy(Case{Type: Task, Title: " a \t b\n", Description: " a\n\nb \n\t", Tags: []string{"z", "a", "", "z"}, Acceptance: []string{" x ", ""}})
	if tidy.Title != "a b" || tidy.Description != " a\n\nb" || !slices.Equal(tidy.Tags, []string{"a", "z"}) || !slices.Equal(tidy.Acceptance, []string{"x"}) || len(Check(tidy)) != 0 {
		t.Errorf("tidy: %+v %q", tidy, Check(tidy))
	}
}

func TestCycleError(t *testing.T) {
	t.Parallel()
	long := make([]string, 40)
	for i := range long {
		long[i] = fmt.Sprintf("t%d", i)
	}
	for want, path := range map[string][]string{
		"a would wait for itself": {"a", "a"},
		"a → b → a":               {"a", "b", "a"},
		"t9 → … (29 more) → t39":  long,
	} {
		if got := (&CycleError{path}).Error(); !strings.HasSuffix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A cycle is found exactly when there is one, and the path is one.
func FuzzCycle(f *testing.F) {
	f.Add([]byte{0x01, 0x12, 0x20})
	f.Add([]byte{0x01, 0x12, 0x23})
	f.Fuzz(func(t *testing.T, edges []byte) {
		next := map[string][]string{}
		var ids []string
		for i := range 16 {
			ids = append(ids, fmt.Sprintf("%x", i))
		}
		for _, e := range edges {
			from, to := ids[e>>4], ids[e&15]
			next[from] = append(next[from], to)
		}
		path, err := Cycle(ids, func(id string) ([]string, error) { return next[id], nil })
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(path); i++ {
			if !slices.Contains(next[path[i-1]], path[i]) {
				t.Fatalf("%v: nothing leads from %s to %s", path, path[i-1], path[i])
			}
		}
		if n := len(path); n == 1 || n > 1 && path[0] != path[n-1] {
			t.Fatalf("%v is no cycle", path)
		}
		if cyclic(ids, next) != (path != nil) {
			t.Fatalf("%v of %v", path, next)
		}
	})
}

// cyclic takes away what nothing is left to wait for, as long as it can.
func cyclic(ids []string, next map[string][]string) bool {
	left := map[string]bool{}
	for _, id := range ids {
		left[id] = true
	}
	for gone := true; gone; {
		gone = false
		for id := range left {
			if !slices.ContainsFunc(next[id], func(n string) bool { return left[n] }) {
				delete(left, id)
				gone = true
			}
		}
	}
	return len(left) > 0
}

// A case may be as large as docs/board.md says, and no larger.
func TestLimits(t *testing.T) {
	t.Parallel()
	x := func(n int) string { return strings.Repeat("x", n) }
	list := func(n, width int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("%0*d", width, i))
		}
		return all
	}
	for name, c := range map[string]struct {
		most int
		set  func(c *Case, n int)
	}{
		"bytes of the title":       {500, func(c *Case, n int) { c.Title = x(n) }},
		"bytes of the description": {256 << 10, func(c *Case, n int) { c.Description = x(n) }},
		"criteria":                 {100, func(c *Case, n int) { c.Acceptance = list(n, 4) }},
		"bytes of a criterion":     {10_000, func(c *Case, n int) { c.Acceptance = list(1, n) }},
		"tags":                     {50, func(c *Case, n int) { c.Tags = list(n, 4) }},
		"bytes of a tag":           {64, func(c *Case, n int) { c.Tags = list(1, n) }},
		"bytes of the ref":         {200, func(c *Case, n int) { c.Ref = x(n) }},
		"needs":                    {1000, func(c *Case, n int) { c.Needs = list(n, 4) }},
		"the priority":             {1_000_000, func(c *Case, n int) { c.Priority = n }},
		"below 0":                  {1_000_000, func(c *Case, n int) { c.Priority = -n }},
	} {
		for more, want := range []int{0, 1} {
			wrong := Check(Tidy(task(1, func(one *Case) { c.set(one, c.most+more) })))
			if len(wrong) != want {
				t.Errorf("%s: with %d it is wrong: %q", name, c.most+more, wrong)
			}
		}
	}
}

// Who adds a case again can tell that from all else that may be wrong.
func TestAllKnown(t *testing.T) {
	t.Parallel()
	known := Known{
		Find: func(name string) (Case, bool, error) {
			return Case{ID: "task-001", Ref: name}, strings.HasPrefix(name, "there"), nil
		},
		NewID: func(Type) (string, error) { return "task-002", nil },
	}
	draft := func(ref string) Draft { return Draft{Case: Case{Title: "Greet", Ref: ref}} }
	var many []Draft // more than are listed
	for i := range maxProblems + 5 {
		many = append(many, draft(fmt.Sprint("there", i)))
	}
	for _, c := range []struct {
		drafts []Draft
		want   bool
	}{
		{[]Draft{draft("there")}, true}, {[]Draft{draft("bad\n")}, false}, {[]Draft{draft("there"), draft("bad\n")}, false},
		{many, true}, {append(many, draft("bad\n")), false},
	} {
		_, err := Resolve(c.drafts, known)
		var wrong *ProblemsError
		if !errors.As(err, &wrong) || wrong.AllKnown() != c.want {
			t.Errorf("of %d drafts: %v", len(c.drafts), err)
		}
	}
}
