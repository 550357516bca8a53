package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// boardRig is a rig with a repository, a task and an operation.
type boardRig struct {
	*rig
	repo string
}

func newBoardRig(t *testing.T) *boardRig {
	t.Helper()
	r := newRig(t)
	dir := filepath.Join(r.dir, "repo")
	gittest.Git(t, ".", "init", "-q", "-b", "main", dir)
	gittest.Git(t, dir, "commit", "-q", "--allow-empty", "-m", "begin")
	p, err := r.s.o.Planner("", planner.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	p.Config.Root = dir
	r.s.o.Pool = func(ctx context.Context) (*pool.Pool, error) {
		return pool.Open(ctx, pool.Options{Root: dir, StateDir: r.dir, Store: r.store})
	}
	for _, title := range []string{`{"title":"x"}`, `{"title":"o","type":"operation"}`} {
		r.ask(http.MethodPost, "/cases", title, &view.CaseDetail{})
	}
	return &boardRig{r, dir}
}

// moves has the case come to a status by what pawl or a person does.
func (r *boardRig) moves(id string, by board.Actor, actions ...board.Action) {
	r.t.Helper()
	for _, a := range actions {
		if _, err := r.store.MoveCase(r.t.Context(), id, board.Change{Action: a, By: by, At: noon}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// reviewed has a person asked about a commit of the task.
func (r *boardRig) reviewed() {
	r.t.Helper()
	r.moves("task-001", board.Pawl, board.Start)
	work, err := json.Marshal(queue.Entry{ID: "task-001", Title: "x", Commit: gittest.Git(r.t, r.repo, "rev-parse", "HEAD")})
	if err == nil {
		err = r.store.AskReview(r.t.Context(), store.CaseReview{Case: "task-001", Run: "r1", Work: work, AskedAt: noon},
			board.Change{Action: board.Verify, By: board.Pawl, At: noon})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// clone gives the task a workspace that nobody uses.
func (r *boardRig) clone() {
	r.t.Helper()
	p, err := r.s.o.Pool(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	w, err := p.Take(r.t.Context(), "task-001", gittest.Git(r.t, r.repo, "rev-parse", "HEAD"))
	if err == nil {
		err = p.Release(r.t.Context(), w, pool.Stopped("pawl stopped"))
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// landed has the queue keep a landing of the task.
func (r *boardRig) landed(empty bool) {
	r.t.Helper()
	from := gittest.Git(r.t, r.repo, "rev-parse", "HEAD")
	gittest.Git(r.t, r.repo, "commit", "-q", "--allow-empty", "-m", "task-001: x")
	to := gittest.Git(r.t, r.repo, "rev-parse", "HEAD")
	r.step(queue.State{Out: queue.Out{
		Landings: []queue.Landing{{Task: "task-001", Commit: to, From: from, To: to, Empty: empty, At: noon}},
		Cases:    []queue.CaseMove{{ID: "task-001", Move: queue.MoveLanded, Why: "landed"}},
	}})
}

// step stores a state of the merge queue.
func (r *boardRig) step(s queue.State) {
	r.t.Helper()
	q, err := r.store.TakeQueue(r.t.Context(), "refs/heads/main", r.nobody(), noon, func(store.Owner) bool { return false })
	if err != nil {
		r.t.Fatal(err)
	}
	q.N++
	if err := r.store.CommitQueue(r.t.Context(), store.QueueStep{Queue: q, State: s, At: noon}); err != nil {
		r.t.Fatal(err)
	}
	if err := r.store.LeaveQueue(r.t.Context(), "refs/heads/main", r.nobody()); err != nil {
		r.t.Fatal(err)
	}
}

// taskStates has cases in each status that a board shows.
var taskStates = map[string]func(*boardRig) (id string){
	"ready":                     func(*boardRig) string { return "task-001" },
	"ready, an autopilot works": func(r *boardRig) string { r.autopilot("running"); return "task-001" },
	"pending with a workspace":  func(r *boardRig) string { r.clone(); return "task-001" },
	"waits for another": func(r *boardRig) string {
		r.autopilot("running")
		r.ask(http.MethodPost, "/cases", `{"title":"y","needs":["task-001"]}`, &view.CaseDetail{})
		return "task-002"
	},
	"is needed": func(r *boardRig) string {
		r.ask(http.MethodPost, "/cases", `{"title":"y","needs":["task-001"]}`, &view.CaseDetail{})
		return "task-001"
	},
	"active":                  func(r *boardRig) string { r.moves("task-001", board.Pawl, board.Start); return "task-001" },
	"active with a workspace": func(r *boardRig) string { r.clone(); r.moves("task-001", board.Pawl, board.Start); return "task-001" },
	"blocked by a person":     func(r *boardRig) string { r.moves("task-001", board.Person, board.Block); return "task-001" },
	"blocked by its agent": func(r *boardRig) string {
		r.clone()
		r.moves("task-001", board.Pawl, board.Start, board.Block)
		return "task-001"
	},
	"failed": func(r *boardRig) string {
		r.clone()
		r.moves("task-001", board.Pawl, board.Start, board.Fail)
		return "task-001"
	},
	"failed without workspace": func(r *boardRig) string { r.moves("task-001", board.Pawl, board.Start, board.Fail); return "task-001" },
	"at its limit": func(r *boardRig) string {
		r.moves("task-001", board.Pawl, board.Start, board.Expire)
		return "task-001"
	},
	"deferred":  func(r *boardRig) string { r.clone(); r.moves("task-001", board.Person, board.Defer); return "task-001" },
	"in review": func(r *boardRig) string { r.clone(); r.reviewed(); return "task-001" },
	"in review and blocked": func(r *boardRig) string {
		r.reviewed()
		r.moves("task-001", board.Person, board.Block)
		return "task-001"
	},
	"in review and deferred": func(r *boardRig) string {
		r.reviewed()
		r.moves("task-001", board.Person, board.Block, board.Defer)
		return "task-001"
	},
	"approved": func(r *boardRig) string {
		r.reviewed()
		r.ask(http.MethodPost, "/cases/1/actions", `{"action":"approve"}`, &view.CaseDetail{})
		return "task-001"
	},
	"rejected": func(r *boardRig) string {
		r.reviewed()
		r.ask(http.MethodPost, "/cases/1/actions", `{"action":"reject","why":"no"}`, &view.CaseDetail{})
		return "task-001"
	},
	"sent back": func(r *boardRig) string {
		r.reviewed()
		r.ask(http.MethodPost, "/cases/1/actions", `{"action":"redo","why":"more"}`, &view.CaseDetail{})
		return "task-001"
	},
	"in the queue": func(r *boardRig) string {
		r.step(queue.State{Entries: []queue.Entry{{ID: "task-001", Status: queue.Waiting}},
			Out: queue.Out{Cases: []queue.CaseMove{{ID: "task-001", Move: queue.MoveQueued}}}})
		return "task-001"
	},
	"parked in the queue": func(r *boardRig) string {
		r.step(queue.State{Entries: []queue.Entry{{ID: "task-001", Status: queue.Parked}}, Out: queue.Out{Cases: []queue.CaseMove{
			{ID: "task-001", Move: queue.MoveQueued}, {ID: "task-001", Move: queue.MoveBlocked, Why: "parked"}}}})
		return "task-001"
	},
	"landed":                  func(r *boardRig) string { r.landed(false); return "task-001" },
	"landed with a workspace": func(r *boardRig) string { r.clone(); r.landed(false); return "task-001" },
	"landed without a change": func(r *boardRig) string { r.landed(true); return "task-001" },
	"done without a landing":  func(r *boardRig) string { r.moves("task-001", board.Pawl, board.Land); return "task-001" },
	"being reverted": func(r *boardRig) string {
		r.landed(false)
		r.ask(http.MethodPost, "/cases/1/actions", `{"action":"revert","why":"no"}`, &view.CaseDetail{})
		return "task-001"
	},
	"reopened": func(r *boardRig) string {
		r.landed(false)
		r.moves("task-001", board.Person, board.Revert)
		r.moves("task-001", board.Pawl, board.Reopen)
		return "task-001"
	},
	"an operation":         func(*boardRig) string { return "op-001" },
	"an operation on hold": func(r *boardRig) string { r.moves("op-001", board.Person, board.Block); return "op-001" },
	"an operation put off": func(r *boardRig) string { r.moves("op-001", board.Person, board.Defer); return "op-001" },
	"an operation with a task": func(r *boardRig) string {
		r.ask(http.MethodPost, "/cases", `{"title":"y","parent":"op-001"}`, &view.CaseDetail{})
		return "op-001"
	},
	"an operation that is done": func(r *boardRig) string {
		r.ask(http.MethodPost, "/cases", `{"title":"y","parent":"op-001"}`, &view.CaseDetail{})
		r.moves("task-002", board.Pawl, board.Land)
		return "op-001"
	},
}

// of is what is stored of a case, in words: what an action did is the difference.
func (r *boardRig) of(id string) string {
	r.t.Helper()
	var is []string
	c, err := r.store.Case(r.t.Context(), id)
	if err != nil {
		is = append(is, "gone")
	} else {
		is = append(is, string(c.Status))
	}
	is = append(is, c.Title)
	l, err := r.store.CaseLimits(r.t.Context(), id)
	if err == nil && l.MaxIterations > 0 {
		is = append(is, "limited")
	}
	if _, ok, err := r.store.Workspace(r.t.Context(), id); err == nil && ok {
		is = append(is, "workspace")
	}
	asks, err := r.store.QueueAsks(r.t.Context(), "refs/heads/main", 10)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, a := range asks {
		if a.Event.Ask != nil {
			is = append(is, string(a.Event.Ask.Wish))
		} else {
			is = append(is, "lands "+a.Event.Entry.ID+" "+a.Event.Entry.Revert)
		}
	}
	reviews, err := r.store.CaseReviews(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, v := range reviews {
		is = append(is, "review "+v.Decision)
	}
	return strings.Join(append(is, r.did()), ", ")
}

// taskDeeds are what a page can ask of a case: how it is sent, and what is stored afterwards.
var taskDeeds = map[string]struct{ method, path, body, does string }{
	"retry":    {http.MethodPost, "/actions", `{"action":"retry"}`, "pending, x"},
	"unblock":  {http.MethodPost, "/actions", `{"action":"unblock"}`, "pending, "},
	"block":    {http.MethodPost, "/actions", `{"action":"block","why":"?"}`, "blocked, "},
	"defer":    {http.MethodPost, "/actions", `{"action":"defer"}`, "deferred, "},
	"undefer":  {http.MethodPost, "/actions", `{"action":"undefer"}`, "pending, "},
	"start":    {http.MethodPost, "/actions", `{"action":"start"}`, "autopilot start task-001"},
	"approve":  {http.MethodPost, "/actions", `{"action":"approve"}`, "lands task-001 , review approved"},
	"redo":     {http.MethodPost, "/actions", `{"action":"redo","why":"more"}`, "review redo"},
	"reject":   {http.MethodPost, "/actions", `{"action":"reject","why":"no"}`, "review rejected"},
	"revert":   {http.MethodPost, "/actions", `{"action":"revert","why":"it breaks"}`, "lands task-001 it breaks"},
	"rollback": {http.MethodPost, "/rollback", `{}`, "pending, x"},
	"clean":    {http.MethodPost, "/clean", `{}`, ""},
	"extend":   {http.MethodPost, "/extend", `{"max_iterations":"90"}`, "limited"},
	"edit":     {http.MethodPatch, "", `{"title":"x2"}`, ", x2"},
	"remove":   {http.MethodDelete, "", ``, "gone"},
}

// What a task is offered has an effect that is stored, and what it is not offered is refused with a reason or changes
// nothing, in each state that a board has.
func TestOfferedActionsOfTasksHold(t *testing.T) {
	t.Parallel()
	for state, come := range taskStates {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			try := func(r *boardRig, id, name string) (before, after string, w *httptest.ResponseRecorder) {
				deed := taskDeeds[name]
				before = r.of(id)
				w = r.send(r.asking(deed.method, rest.Base+"/cases/"+id+deed.path, deed.body))
				return before, r.of(id), w
			}
			same := newBoardRig(t)
			id := come(same)
			var shown view.CaseDetail
			same.get("/cases/"+id, &shown)
			var page view.CasePage
			same.get("/cases", &page)
			listed := slices.IndexFunc(page.Cases, func(c view.Case) bool { return c.ID == id })
			if listed < 0 || !slices.Equal(page.Cases[listed].Actions, shown.Actions) {
				t.Errorf("the list offers %v, and its page %v", page.Cases, shown.Actions)
			}
			for name, deed := range taskDeeds {
				if name == "extend" && slices.Contains([]string{"pending", "review", "deferred"}, shown.Status) {
					continue // limits can be set beforehand, but nothing shows that they are needed
				}
				if !slices.Contains(shown.Actions, name) {
					switch before, after, w := try(same, id, name); {
					case after != before:
						t.Fatalf("%s is not offered; it was %q and is %q", name, before, after)
					case !strings.Contains(w.Body.String(), `"message":"`):
						t.Errorf("%s is refused without a reason: %s", name, w.Body)
					}
					continue
				}
				r := newBoardRig(t)
				before, after, w := try(r, come(r), name)
				held := strings.Contains(after, deed.does) && after != before
				if name == "clean" {
					held = strings.Contains(before, "workspace") && !strings.Contains(after, "workspace")
				}
				if w.Code != http.StatusOK || !held {
					t.Errorf("%s is offered; it was %q, is %q, and was answered with %d %s", name, before, after, w.Code, w.Body)
				}
			}
		})
	}
}

// Work that waits to land does not land after a person has blocked or removed its task: the queue is asked to drop it.
func TestBlockedWorkDoesNotLand(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"approved", "in the queue"} {
		r := newBoardRig(t)
		id := taskStates[state](r)
		r.ask(http.MethodPost, "/cases/"+id+"/actions", `{"action":"block","why":"not now"}`, &view.CaseDetail{})
		if is := r.of(id); !strings.HasPrefix(is, "blocked") || !strings.Contains(is, ", drop, ") {
			t.Errorf("%s: it is %s", state, is)
		}
		var q view.Queues
		if r.get("/queue", &q); state == "in the queue" && len(q.Queues[0].Entries) != 0 {
			t.Errorf("%s: the queue shows %+v", state, q.Queues[0].Entries)
		}
	}
	r := newBoardRig(t)
	id := taskStates["parked in the queue"](r)
	r.ask(http.MethodDelete, "/cases/"+id, "", &view.Removed{})
	if is := r.of(id); !strings.Contains(is, "gone, , drop, ") {
		t.Errorf("removed: it is %s", is)
	}
}

// entryStates has work in each status that the merge queue shows.
var entryStates = map[string]queue.Entry{
	"waiting":         {Status: queue.Waiting},
	"held":            {Status: queue.OnHold, Why: "held by a person"},
	"resolving":       {Status: queue.Resolving},
	"red":             {Status: queue.Parked, Problem: &queue.Problem{Class: queue.Medium, Red: "T"}},
	"conflicted":      {Status: queue.Parked, Problem: &queue.Problem{Class: queue.Complex, Conflict: &queue.Conflict{}}},
	"proposed":        {Status: queue.Proposed},
	"needs another":   {Status: queue.Waiting, Needs: []string{"task-009"}},
	"put off by time": {Status: queue.Waiting, Until: noon.AddDate(9, 0, 0)},
}

// What an entry of the merge queue is offered has an effect that is stored, and what it is not offered is refused.
func TestOfferedActionsOfEntriesHold(t *testing.T) {
	t.Parallel()
	effect := map[string]string{"hold": "held", "release": "waiting", "retry": "waiting", "drop": "gone"}
	for state, entry := range entryStates {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			for wish, want := range effect {
				r := newBoardRig(t)
				r.lands()
				entry.ID, entry.Commit = "task-001", gittest.Git(t, r.repo, "rev-parse", "HEAD")
				r.step(queue.State{Entries: []queue.Entry{entry}, Stop: &queue.Stop{Cause: queue.ByPerson, Why: "paused"}})
				var before, after view.Queues
				r.get("/queue", &before)
				w := r.send(r.asking(http.MethodPost, rest.Base+"/queue/entries/1/actions", `{"action":"`+wish+`"}`))
				r.get("/queue", &after)
				is, was := "gone", before.Queues[0].Entries[0]
				if left := after.Queues[0].Entries; len(left) > 0 {
					is = left[0].Status
				}
				switch offered := slices.Contains(was.Actions, wish); {
				case offered && (w.Code != http.StatusOK || is != want):
					t.Errorf("%s is offered; it was %s, is %s, and was answered with %d %s", wish, was.Status, is, w.Code, w.Body)
				case !offered && (w.Code != http.StatusConflict || is != was.Status):
					t.Errorf("%s is not offered; it was %s, is %s, and was answered with %d %s", wish, was.Status, is, w.Code, w.Body)
				}
			}
		})
	}
}

// lands has the rig ask a real merge queue, which nobody works on.
func (r *boardRig) lands() {
	r.t.Helper()
	repo, err := git.OpenStore(r.t.Context(), r.repo)
	if err != nil {
		r.t.Fatal(err)
	}
	r.s.o.AskQueue = func(ctx context.Context, ask queue.Ask) error {
		q, err := merge.Open(ctx, merge.Options{Store: r.store, Repo: repo, Dir: filepath.Join(r.dir, "queue"), Target: "main",
			Local: true, Owner: r.self()})
		if err == nil {
			err = q.Ask(ctx, ask)
		}
		if err == nil {
			_, err = q.Absorb(ctx)
		}
		return err
	}
}

// The same for the queue as a whole.
func TestOfferedActionsOfTheQueueHold(t *testing.T) {
	t.Parallel()
	waiting := []queue.Entry{{ID: "task-001", Status: queue.Waiting}}
	red := &queue.Stop{Cause: queue.RedTarget, Why: "red"}
	for state, s := range map[string]queue.State{
		"empty":                  {},
		"work waits":             {Entries: waiting},
		"paused":                 {Entries: waiting, Stop: &queue.Stop{Cause: queue.ByPerson, Why: "paused"}},
		"paused and empty":       {Stop: &queue.Stop{Cause: queue.ByPerson, Why: "paused"}},
		"the target is red":      {Entries: waiting, Stop: red},
		"red, and nothing there": {Stop: red},
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			for _, wish := range []string{"pause", "resume", "land"} {
				r := newBoardRig(t)
				r.lands()
				r.step(s)
				var before, after view.Queues
				r.get("/queue", &before)
				w := r.send(r.asking(http.MethodPost, rest.Base+"/queue/actions", `{"action":"`+wish+`"}`))
				r.get("/queue", &after)
				isStopped, did := after.Queues[0].Stopped != "", r.did()
				held := map[string]bool{"pause": isStopped, "resume": !isStopped, "land": did == "pawl queue land"}[wish]
				changed := isStopped != (before.Queues[0].Stopped != "") || did != ""
				switch offered := slices.Contains(before.Queues[0].Actions, wish); {
				case offered && (w.Code != http.StatusOK || !held):
					t.Errorf("%s is offered, and did not hold: %d %s", wish, w.Code, w.Body)
				case !offered && (w.Code != http.StatusConflict || changed):
					t.Errorf("%s is not offered, and was answered with %d %s", wish, w.Code, w.Body)
				}
			}
		})
	}
}
