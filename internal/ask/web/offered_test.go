package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// deeds are what a page can ask of a run, by the name under which it is offered: the path below the run, what is
// sent, and what the run is asked by it.
var deeds = map[string]struct{ path, body, does string }{
	"pause":   {"pause", `{}`, "pause"},
	"stop":    {"stop", `{}`, "stop"},
	"resume":  {"resume", `{}`, "pawl resume"},
	"raise":   {"resume", `{"max_iterations":"90"}`, "max"},
	"message": {"message", `{"text":"look here"}`, "message look here"},
	"answer":  {"answer", `{"text":"use it"}`, "answer use it"},
	"discard": {"discard", `{}`, ""},
	"apply":   {"apply", `{}`, ""},
}

// What a run is offered has an effect, and what is not offered has none, for each status and for runs that a process
// drives and that none does. Limits of a run at work are taken by its process, which no run has here; that a
// completed run does not continue is said by the pawl that is started for it.
func TestOfferedActionsHold(t *testing.T) {
	t.Parallel()
	statuses := []loop.Status{
		loop.Running, loop.Waiting, loop.Pending, loop.Blocked, loop.Paused, loop.Completed, loop.Exhausted, loop.TimedOut,
		loop.Aborted, loop.FailedRun, loop.Interrupted, loop.Stopped,
	}
	for _, status := range statuses {
		for _, live := range []bool{true, false} {
			if live && !status.Active() {
				continue
			}
			t.Run(fmt.Sprintf("%s live=%t", status, live), func(t *testing.T) {
				t.Parallel()
				for name, deed := range deeds {
					starts := name == "resume" || name == "raise"
					if starts && (status == loop.Completed || live) {
						continue
					}
					r := newRig(t)
					r.workspaces()
					r.run("abc123", func(row *store.Run, s *loop.State) {
						row.Owner, row.Status, s.Status = r.nobody(), string(status), status
						if live {
							row.Owner = r.self()
						}
						if !status.Active() && status != loop.Completed {
							s.Question = &loop.Question{Text: "which?"}
						}
					})
					var shown view.Run
					r.get("/runs/abc123", &shown)
					w := r.send(r.asking(http.MethodPost, rest.Base+"/runs/abc123/"+deed.path, deed.body))
					did := r.did()
					switch offered := slices.Contains(shown.Actions, name); {
					case offered && (w.Code != http.StatusOK || !strings.Contains(did, deed.does)):
						t.Errorf("%s is offered, did %q, and was answered with %d %s", name, did, w.Code, w.Body)
					case !offered && did != "":
						t.Errorf("%s is not offered, and did %q", name, did)
					}
				}
			})
		}
	}
}

// The same for the runs of tasks, which the board has a say in: in each state of the task, for its last run, an earlier
// one and one of a racer.
func TestOfferedActionsOfTaskRunsHold(t *testing.T) {
	t.Parallel()
	names := []string{"resume", "raise", "message", "answer", "rollback"}
	for _, state := range []string{
		"ready", "pending with a workspace", "active", "blocked by its agent", "blocked by a person", "failed", "at its limit",
		"deferred", "in review", "approved", "landed", "removed", "a racer", "an earlier run",
	} {
		for _, status := range []loop.Status{loop.Interrupted, loop.Blocked, loop.Completed} {
			t.Run(state+" "+string(status), func(t *testing.T) {
				t.Parallel()
				come := func() *boardRig {
					r := newBoardRig(t)
					add := func(id, name string, hours int) {
						r.run(id, func(row *store.Run, s *loop.State) {
							row.Kind, row.Name, row.Owner, row.Status, s.Status = "task", name, r.nobody(), string(status), status
							row.StartedAt = noon.Add(time.Duration(hours) * time.Hour)
							s.Question = &loop.Question{Text: "which?"}
						})
					}
					switch state {
					case "removed":
						r.ask(http.MethodDelete, "/cases/task-001", "", &view.Removed{})
					case "a racer", "an earlier run":
						taskStates["blocked by its agent"](r)
					default:
						taskStates[state](r)
					}
					if state == "a racer" {
						add("abc123", "task-001-race2", 0)
					} else {
						add("abc123", "task-001", 0)
					}
					if state == "an earlier run" {
						add("abc124", "task-001", 1)
					}
					return r
				}
				same := come()
				var shown view.Run
				same.get("/runs/abc123", &shown)
				for _, name := range names {
					if starts := name == "raise" || name == "resume"; starts && status == loop.Completed {
						continue // that is asked of its task
					}
					deed := deeds[name]
					if name == "rollback" {
						deed.path, deed.body = "rollback", `{"to":0}`
					}
					try := func(r *boardRig) (before, after string, w *httptest.ResponseRecorder) {
						before = r.of("task-001")
						w = r.send(r.asking(http.MethodPost, rest.Base+"/runs/abc123/"+deed.path, deed.body))
						return before, r.of("task-001"), w
					}
					if slices.Contains(shown.Actions, name) {
						files := name == "rollback" && strings.Contains(same.of("task-001"), "pending") // nothing else is to change
						if before, after, w := try(come()); w.Code != http.StatusOK || after == before && !files {
							t.Errorf("%s is offered; it was %q, is %q, and was answered with %d %s", name, before, after, w.Code, w.Body)
						}
					} else if before, after, w := try(same); after != before {
						t.Errorf("%s is not offered; it was %q, is %q, and was answered with %d %s", name, before, after, w.Code, w.Body)
					}
				}
			})
		}
	}
}
