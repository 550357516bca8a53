package merge

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/test/forgetest"
)

// ci is a forge whose checks say of the nth commit what states has, one for each time
// that they are asked for; the last stays.
func ci(t *testing.T, r *rig, hub *forgetest.Hub, states ...[]string) *rig {
	t.Helper()
	r.o.Policy.Propose, r.o.Policy.Push = false, true
	r.o.Gates = gates("true")
	r.o.Required, r.o.ChecksTimeout = []string{"test"}, time.Minute
	commits := map[string]int{}
	asked := map[string]int{}
	hub.Trouble = func(w http.ResponseWriter, req *http.Request) bool {
		if path.Base(req.URL.Path) != "status" {
			return false
		}
		commit := path.Base(path.Dir(req.URL.Path))
		if _, ok := commits[commit]; !ok {
			commits[commit] = len(commits)
		}
		of := states[min(commits[commit], len(states)-1)]
		switch state := of[min(asked[commit], len(of)-1)]; state {
		case "down":
			w.WriteHeader(http.StatusBadGateway)
			asked[commit]++
			return true
		case "":
		case "goes on":
			hub.Check(commit, "test", "", "")
		default:
			hub.Check(commit, "test", state, strings.Repeat("noise\n", 300)+"--- FAIL: TestNew\n")
		}
		asked[commit]++
		return false
	}
	return r
}

// Work lands here once the forge's checks are green, and is there then.
func TestChecksBeforeALanding(t *testing.T) {
	t.Parallel()
	r, _, hub := proposing(t)
	r = ci(t, r, hub, []string{"", "down", "success"})
	id := r.land("new.txt", "new\n")
	if r.status(id) != board.Done || their(t, hub, "rev-parse", "main") != r.git("rev-parse", "main") {
		t.Errorf("it is %s: %q", r.status(id), r.left())
	}
	if their(t, hub, "rev-parse", "pawl/ci/main^{tree}") != r.git("rev-parse", "main^{tree}") {
		t.Error("the checks saw something else")
	}
}

// Red checks go to an agent, with the end of their log; what it makes is checked again.
func TestRedChecksBeforeALanding(t *testing.T) {
	t.Parallel()
	r, _, hub := proposing(t)
	r = ci(t, r, hub, []string{"failure"}, []string{"success"})
	var asked []string
	r.o.Resolve = func(_ context.Context, p Problem) (string, error) {
		asked = append(asked, p.Problem.Red+p.Problem.Said)
		return r.commit("Repair", p.Entry.Commit, "new.txt", "better\n"), nil
	}
	id := r.land("new.txt", "new\n")
	if len(asked) != 1 || !strings.HasPrefix(asked[0], "red at the forge: test\nThe check test is red:\n> noise") ||
		!strings.Contains(asked[0], "> --- FAIL: TestNew\n") || strings.Count(asked[0], "noise") != 199 {
		t.Errorf("asked %q", asked)
	}
	if r.status(id) != board.Done || r.read("new.txt") != "better\n" {
		t.Errorf("it is %s: %q", r.status(id), r.left())
	}
}

// A check that is never reported is mostly spelled wrong. Where the target lacks it too nobody is
// blamed, and a person hears what is reported; an entry that alone lacks it is red.
func TestChecksThatNeverCome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		states [][]string
		others string // a check of another name
		left   string
		stops  string
	}{
		"anywhere": {[][]string{{""}}, "", "waiting: ", "reported test: does its CI run for pushes to pawl/ci/main"},
		"misspelt": {[][]string{{""}}, "Test (ubuntu)", "waiting: ", `reported test: is it spelled as there? It reports "Test (ubuntu)"`},
		"one task": {[][]string{{""}, {"success"}}, "", "parked: it is red on main: after 0.0s the forge has not reported test", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s, hub := proposing(t)
			r = ci(t, r, hub, c.states...)
			r.o.ChecksTimeout = time.Millisecond
			if trouble := hub.Trouble; c.others != "" {
				hub.Trouble = func(w http.ResponseWriter, req *http.Request) bool {
					if path.Base(req.URL.Path) == "status" {
						s.Status(path.Base(path.Dir(req.URL.Path)), c.others, "success")
					}
					return trouble(w, req)
				}
			}
			r.land("new.txt", "new\n")
			if got := r.left(); len(got) != 1 || !strings.Contains(got[0], c.left) {
				t.Errorf("left: %q", got)
			}
			got := r.said(queue.NoteStopped)
			if len(got) > 1 || len(got) == 0 != (c.stops == "") || !strings.Contains(strings.Join(got, ""), c.stops) {
				t.Errorf("a person hears %q", got)
			}
		})
	}
}

// While a check goes on, others may begin after it: what is not over in time is red. A forge that
// does not answer says nothing of anybody's work.
func TestChecksThatTakeTooLong(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		"goes on": "the forge's checks have not finished after 0.0s: test, next",
		"down":    "502 Bad Gateway",
	} {
		r, _, hub := proposing(t)
		r = ci(t, r, hub, []string{state})
		r.o.Required, r.o.ChecksTimeout = []string{"test", "next"}, time.Millisecond
		q := r.queue()
		s := queue.State{AtForge: queue.AtForge{Checking: []queue.Batch{{Head: r.git("rev-parse", "main"), Result: "tree"}}}}
		e, err := q.requests.checkAtForge(t.Context(), &s)
		v := e.Verdict
		if v == nil {
			v = new(queue.Verdict)
		}
		if (err != nil) != (state == "down") || v.Green || v.Absent || !strings.Contains(fmt.Sprint(v.Summary, err), want) {
			t.Errorf("%s: %+v, %v", state, v, err)
		}
	}
}

// While checks are not over, and while the forge does not let requests be merged, a forge is
// asked little besides its list, whatever their number. None of them is forgotten.
func TestWaitingCostsLittle(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"", "success"} {
		r, s, hub := proposing(t)
		r.o.AutoMerge, r.o.Required = true, []string{"test"}
		var ids []string
		for i := range 4 {
			id := r.land("new.txt", fmt.Sprint(i, "\n"))
			head := their(t, hub, "rev-parse", "pawl/"+id)
			s.Status(head, "approval", "pending") // no merge without it
			hub.Check(head, "test", state, "")
			ids = append(ids, id)
		}
		q := r.queue()
		row, _, err := r.store.Queue(t.Context(), q.ref)
		if err != nil {
			t.Fatal(err)
		}
		const hour = 30
		before, asked := 0, map[string]int{}
		for i := range hour + 2 {
			if i == 2 {
				before = len(hub.Calls())
			}
			e, err := q.requests.lookAtRequests(t.Context(), &row.State, queue.Command{IDs: ids})
			if err != nil || len(e.Requests) != len(ids) || e.Requests[0].Why == "" {
				t.Fatalf("%+v, %v", e, err)
			}
			for i := range row.State.Entries {
				entry := &row.State.Entries[i]
				entry.Seen, entry.Heard = e.Requests[i].Seen, append(entry.Heard, e.Requests[i].Heard...)
			}
		}
		calls := hub.Calls()[before:]
		if n := len(calls); n > 48 {
			t.Errorf("an hour of waiting cost %d calls", n)
		}
		for _, call := range calls {
			asked[call]++
		}
		if delete(asked, "GET /repos/olga/project/pulls"); len(asked) < len(ids) {
			t.Errorf("only %v are asked", asked)
		}
	}
}

// While the forge checks one task, the next one is verified and checked on top of it. A third,
// which conflicts with the first, waits for that, and a person hears of it then.
func TestOthersAreCheckedMeanwhile(t *testing.T) {
	t.Parallel()
	r, _, hub := proposing(t)
	r = ci(t, r, hub, nil)
	r.o.Policy.Batch = 1
	var second string
	hub.Trouble = func(_ http.ResponseWriter, req *http.Request) bool {
		commit := path.Base(path.Dir(req.URL.Path))
		if path.Base(req.URL.Path) != "status" {
			return false
		}
		if tip := their(t, hub, "for-each-ref", "--format=%(objectname)", "refs/heads/pawl/ci/main-2"); tip != "" {
			second = tip
			hub.Check(commit, "test", "success", "")
		}
		return false
	}
	q, base := r.queue(), r.git("rev-parse", "main")
	for i, file := range []string{"one.txt", "two.txt", "one.txt"} {
		id, commit := r.task(file, base, file, fmt.Sprint(i, "\n"))
		r.add(q, id, commit, file)
	}
	r.drain(q)
	if main := r.git("rev-parse", "main"); main != second || second == "" {
		t.Errorf("main is at %s, and %s was checked", main, second)
	}
	if r.status("task-001") != board.Done || r.status("task-002") != board.Done || r.status("task-003") != board.Blocked {
		t.Errorf("left: %q", r.left())
	}
}

// A pawl that ends while the forge checks something is followed by one that waits for the same
// commit, and lands it.
func TestChecksOutliveAPawl(t *testing.T) {
	t.Parallel()
	r, _, hub := proposing(t)
	r = ci(t, r, hub, nil)
	ctx, end := context.WithCancel(t.Context())
	var asked []string
	hub.Trouble = func(_ http.ResponseWriter, req *http.Request) bool {
		if path.Base(req.URL.Path) == "status" {
			asked = append(asked, path.Base(path.Dir(req.URL.Path)))
			hub.Check(asked[0], "test", []string{"", "success"}[min(len(asked)-1, 1)], "")
			end()
		}
		return false
	}
	q := r.queue()
	id, commit := r.task("Change", r.git("rev-parse", "main"), "new.txt", "new\n")
	r.add(q, id, commit, "Change")
	if err := q.Work(ctx); err != nil || r.status(id) == board.Done {
		t.Fatalf("it is %s: %v", r.status(id), err)
	}
	r.drain(r.queue())
	if r.status(id) != board.Done || r.git("rev-parse", "main") != asked[0] {
		t.Errorf("it is %s: %q, and %q were checked", r.status(id), r.left(), asked)
	}
}
