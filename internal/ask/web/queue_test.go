package web

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/keep/store"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// A task that was queued is in the list before anybody works on the queue, and
// whoever watches is told to look.
func TestQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	s := r.open("/events", "")
	s.until("changed")
	s.until("changed") // the queue and the autopilot, as they are found
	var added view.CaseDetail
	r.ask(http.MethodPost, "/cases", `{"title":"<b>x</b>"}`, &added)
	entry := queue.Entry{ID: added.ID, Title: added.Title, Commit: strings.Repeat("a", 40)}
	if _, err := r.store.AskQueue(t.Context(), store.QueueAsk{Target: "refs/heads/main", Event: queue.Event{Kind: queue.Added, At: noon, Entry: &entry}, At: noon}); err != nil {
		t.Fatal(err)
	}
	if e := s.until("changed"); e.data != `{"what":"queue"}` {
		t.Errorf("what changed is %s", e.data)
	}
	var q view.Queues
	r.get("/queue", &q)
	if len(q.Queues) != 1 || q.Queues[0].Target != "main" || len(q.Queues[0].Entries) != 1 {
		t.Fatalf("the queues are %+v", q)
	}
	if e := q.Queues[0].Entries[0]; e.Status != "arriving" || e.Title != "<b>x</b>" || e.ID != added.ID {
		t.Errorf("the entry is %+v", e)
	}
}

// Work that does not land as it is waits for a person, with where it conflicts.
func TestInboxNamesConflicts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var added, other view.CaseDetail
	r.ask(http.MethodPost, "/cases", `{"title":"x"}`, &added)
	r.ask(http.MethodPost, "/cases", `{"title":"waits for its turn"}`, &other)
	const target = "refs/heads/main"
	owner := store.Owner{PID: 1, Start: "1", Boot: "b", Host: "h"}
	q, err := r.store.TakeQueue(t.Context(), target, owner, noon, func(store.Owner) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	q.N++
	conflict := &queue.Conflict{Files: []queue.File{{Path: "a.go"}}}
	state := queue.State{
		Entries: []queue.Entry{{ID: other.ID, Commit: strings.Repeat("b", 40), Status: queue.Waiting}, {ID: added.ID, Commit: strings.Repeat("a", 40), Status: queue.Parked, Why: "it conflicts", Problem: &queue.Problem{Class: queue.Complex, Conflict: conflict}}},
		Out:     queue.Out{Cases: []queue.CaseMove{{ID: other.ID, Move: queue.MoveQueued}, {ID: added.ID, Move: queue.MoveQueued}, {ID: added.ID, Move: queue.MoveBlocked, Why: "parked"}}},
	}
	if err := r.store.CommitQueue(t.Context(), store.QueueStep{Queue: q, State: state, At: noon}); err != nil {
		t.Fatal(err)
	}
	var inbox view.Inbox
	r.get("/inbox", &inbox)
	if len(inbox.Entries) != 1 {
		t.Fatalf("the inbox is %+v", inbox)
	}
	n := inbox.Entries[0]
	if n.Kind != "conflict" || n.Why != "it conflicts" || n.Entry == nil || !slices.Equal(n.Entry.Files, []string{"a.go"}) || !slices.Contains(n.Entry.Actions, "settle") {
		t.Errorf("the need is %+v of %+v", n, n.Entry)
	}
}

// What is asked of queue, autopilot and workspaces is handed on.
func TestActionsOfTheBoard(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var added view.CaseDetail
	r.ask(http.MethodPost, "/cases", `{"title":"x"}`, &added)
	r.workspaces()
	var done view.Done
	r.acts([]act{
		{"/queue/entries/1/actions", `{"action":"hold","why":"--later"}`, `queue hold task-001 "--later"`, "task-001 is held back."},
		{"/queue/actions", `{"action":"pause"}`, `queue pause  ""`, "Nothing lands until the queue is resumed."},
		{"/queue/actions", `{"action":"land"}`, "pawl queue land", "Landing has begun."},
		{"/cases/1/clean", `{}`, "", "task-001 has no workspace."},
		{"/cases/1/rollback", `{}`, "", "so no files were changed. task-001 is ready."},
		{"/cases/1/extend", `{"max_iterations":"80","timeout":"1h"}`, "", "task-001 has new limits."},
		{"/sprints", `{"count":"3","tags":["ui"]}`, "pawl sprint --count=3 --tag=ui", "The sprint has started."},
		{"/autopilot/start", `{"max_parallel":2,"keep":true,"mode":"semi-auto"}`, "pawl autopilot --semi-auto --keep=true --max-parallel=2", "The autopilot has started."},
	})
	limits, err := r.store.CaseLimits(t.Context(), "task-001")
	if err != nil || limits.MaxIterations != 80 || limits.Timeout != time.Hour {
		t.Errorf("the limits are %+v, %v", limits, err)
	}
	p := r.refused(http.MethodPost, "/cases/1/rollback", `{"undo":true}`, http.StatusConflict)
	if p.Message != "there is no rollback of task-001 to undo" {
		t.Errorf("%+v", p)
	}
	// The last run of a task is rolled back with the task, an earlier one is not.
	for i, id := range []string{"run1", "run2"} {
		r.run(id, func(row *store.Run, _ *loop.State) {
			row.Kind, row.Name, row.Status, row.Owner, row.StartedAt = "task", "task-001", string(loop.Completed), r.nobody(), noon.Add(time.Duration(i)*time.Hour)
		})
	}
	r.ask(http.MethodPost, "/runs/run2/rollback", `{"to":0}`, &done)
	if !strings.Contains(done.Message, "so no files were changed. task-001 is ready.") {
		t.Errorf("said %q", done.Message)
	}
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		if p := r.refused(method, "/runs/run1/rollback", `{}`, http.StatusConflict); p.Message != "run run2 has worked on task-001 since" {
			t.Errorf("%s: %+v", method, p)
		}
	}
	r.refused(http.MethodPost, "/queue/entries/1/actions", `{"action":"steal"}`, http.StatusUnprocessableEntity)
	r.refused(http.MethodPost, "/queue/entries/zzz/actions", `{"action":"hold"}`, http.StatusNotFound)
	r.refused(http.MethodPost, "/cases/99/clean", `{}`, http.StatusNotFound)
	r.refused(http.MethodPost, "/cases/1/rollback", `{"undo":true,"to":1}`, http.StatusUnprocessableEntity)
	r.refused(http.MethodPost, "/autopilot/mode", `{"mode":"odd"}`, http.StatusUnprocessableEntity)
	r.refused(http.MethodPost, "/autopilot/pause", `{}`, http.StatusConflict)
	if did := r.did(); did != "" {
		t.Errorf("did %s", did)
	}
	r.asked.fails = ErrEnded
	r.acts([]act{{"/queue/actions", `{"action":"land"}`, "pawl queue land", "What could land has landed."}})
	r.asked.fails = nil
	for _, verb := range []string{"approve", "redo", "reject"} {
		p := r.refused(http.MethodPost, "/cases/1/actions", `{"action":"`+verb+`","why":" --all of it"}`, http.StatusConflict)
		if !strings.HasPrefix(p.Message, "no review of task-001 waits for you") {
			t.Errorf("%s: %+v", verb, p)
		}
	}
	var reviews view.Reviews
	r.get("/reviews", &reviews)
	if reviews.Reviews == nil {
		t.Error("no reviews are no list")
	}
	r.refused(http.MethodGet, "/cases/1/diff", "", http.StatusConflict)
	var pilot view.Autopilot
	r.get("/autopilot", &pilot)
	if pilot.Running || strings.Join(pilot.Actions, " ") != "start" {
		t.Errorf("the autopilot is %+v", pilot)
	}
	var sprints view.Sprints
	r.get("/sprints", &sprints)
	if sprints.Sprints == nil {
		t.Error("no sprints are no list")
	}
}

// What is asked of an autopilot that works reaches it.
func TestActionsOfTheAutopilot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ask(http.MethodPost, "/cases", `{"title":"x"}`, &view.Case{})
	r.autopilot("paused")
	r.acts([]act{
		{"/autopilot/pause", `{}`, "autopilot pause", "starts nothing new"},
		{"/autopilot/resume", `{}`, "autopilot resume", "The autopilot is resumed."},
		{"/autopilot/stop", `{}`, "autopilot stop", "The autopilot is stopping"},
		{"/autopilot/mode", `{"mode":"semi-auto"}`, "autopilot mode semi-auto", "mode is semi-auto"},
	})
	var c view.CaseDetail
	r.ask(http.MethodPost, "/cases/1/actions", `{"action":"start"}`, &c)
	if did := r.did(); did != "autopilot start task-001" || c.ID != "task-001" {
		t.Errorf("did %q", did)
	}
	for _, path := range []string{"/autopilot/start", "/sprints"} {
		if p := r.refused(http.MethodPost, path, `{}`, http.StatusConflict); !strings.HasPrefix(p.Message, "the autopilot is already running") {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

// A conflict is shown side by side, settled once, and queued again.
func TestAConflictIsSettled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var added view.CaseDetail
	r.ask(http.MethodPost, "/cases", `{"title":"x"}`, &added)
	dir := t.TempDir()
	say := func(text string) string {
		if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		gittest.Git(t, dir, "commit", "-qam", text)
		return gittest.Git(t, dir, "rev-parse", "HEAD")
	}
	gittest.Git(t, dir, "init", "-q", "-b", "main")
	gittest.Git(t, dir, "commit", "-q", "--allow-empty", "-m", "begin")
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, dir, "add", "a.txt")
	base := say("one\n")
	theirs := say("<b>theirs</b>\n")
	gittest.Git(t, dir, "update-ref", "refs/keep", theirs)
	gittest.Git(t, dir, "reset", "-q", "--hard", base)
	ours := say("ours\n")
	repo, err := git.OpenStore(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	r.s.o.OpenQueue = func(ctx context.Context, do func(*merge.Queue) error) error {
		q, err := merge.Open(ctx, merge.Options{Store: r.store, Repo: repo, Dir: filepath.Join(r.dir, "queue"), Target: "main", Local: true, Owner: r.self()})
		if err != nil {
			return err
		}
		return do(q)
	}
	r.refused(http.MethodGet, "/queue/entries/1/conflict", "", http.StatusConflict)
	q, err := r.store.TakeQueue(t.Context(), "refs/heads/main", r.nobody(), noon, func(store.Owner) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	q.N++
	entry := queue.Entry{ID: added.ID, Commit: theirs, Status: queue.Parked, Problem: &queue.Problem{Class: queue.Complex, Conflict: &queue.Conflict{}}}
	moves := []queue.CaseMove{{ID: added.ID, Move: queue.MoveQueued}, {ID: added.ID, Move: queue.MoveBlocked, Why: "parked"}}
	if err := r.store.CommitQueue(t.Context(), store.QueueStep{Queue: q, State: queue.State{Entries: []queue.Entry{entry}, Out: queue.Out{Cases: moves}}, At: noon}); err != nil {
		t.Fatal(err)
	}
	if err := r.store.LeaveQueue(t.Context(), "refs/heads/main", r.nobody()); err != nil {
		t.Fatal(err)
	}
	var sides merge.Sides
	r.get("/queue/entries/1/conflict", &sides)
	if len(sides.Files) != 1 || sides.Tip != ours || sides.Files[0].Hunks[0].Theirs[0] != "<b>theirs</b>" {
		t.Fatalf("the sides are %+v", sides)
	}
	body := `{"commit":"` + theirs + `","tip":"` + ours + `","files":[{"hunks":[["both"]]}]}`
	r.refused(http.MethodPost, "/queue/entries/1/conflict", strings.Replace(body, ours, "main", 1), http.StatusUnprocessableEntity)
	r.refused(http.MethodPost, "/queue/entries/1/conflict", strings.Replace(body, `"hunks":[["both"]]`, `"take":"mine"`, 1), http.StatusUnprocessableEntity)
	r.ask(http.MethodPost, "/queue/entries/1/conflict", body, &view.Done{})
	var queues view.Queues
	r.get("/queue", &queues)
	if e := queues.Queues[0].Entries[0]; e.Status != "waiting" || gittest.Git(t, dir, "show", e.Commit+":a.txt") != "both" {
		t.Errorf("the entry is %+v", e)
	}
	p := r.refused(http.MethodPost, "/queue/entries/1/conflict", body, http.StatusConflict)
	if !strings.Contains(p.Message, "no conflict that waits for you") {
		t.Errorf("a second page is told %+v", p)
	}
}

// A bisection has a task that says how it goes. One that does not begin leaves none.
func TestBisect(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var c view.CaseDetail
	r.ask(http.MethodPost, "/cases/bisect", `{"command":"--help","good":"v1"}`, &c)
	if did := r.did(); did != "pawl bisect --task=task-001 --good=v1 -- --help" {
		t.Errorf("did %q", did)
	}
	if c.ID != "task-001" || c.Status != "blocked" || len(c.Verify) != 1 || c.Verify[0].Command != "--help" || c.Title != "Repair: --help" {
		t.Errorf("the task is %+v", c)
	}
	r.asked.fails = fault.Refuse("no")
	r.refused(http.MethodPost, "/cases/bisect", `{"command":"false"}`, http.StatusConflict)
	var page view.CasePage
	r.get("/cases", &page)
	if page.Total != 1 {
		t.Errorf("there are %d tasks", page.Total)
	}
}

// A task without criteria and checks has an empty list of proofs, which a page can walk through.
func TestReviewWithoutProof(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	draft := []board.Draft{{Case: board.Case{Type: board.Task, Title: "One"}}}
	_, err := r.store.AddCases(t.Context(), draft, board.Person, noon)
	if err == nil {
		_, err = r.store.MoveCase(t.Context(), "task-001", board.Change{Action: board.Start, By: board.Pawl, At: noon})
	}
	if err == nil {
		asked := store.CaseReview{Case: "task-001", Run: "r1", Work: []byte(`{}`), AskedAt: noon}
		err = r.store.AskReview(t.Context(), asked, board.Change{Action: board.Verify, By: board.Pawl, At: noon})
	}
	if err != nil {
		t.Fatal(err)
	}
	var reviews view.Reviews
	r.get("/reviews", &reviews)
	if len(reviews.Reviews) != 1 || reviews.Reviews[0].Proof == nil {
		t.Errorf("%+v", reviews.Reviews)
	}
}
