package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

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
