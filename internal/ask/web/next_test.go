package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// ended ends the autopilot of the rig.
func (r *rig) ended(exit int) {
	r.t.Helper()
	a, ok, err := r.store.Autopilot(r.t.Context())
	if err != nil || !ok {
		r.t.Fatal(ok, err)
	}
	a.Phase, a.Exit, a.EndedAt = "ended", exit, noon
	if err := r.store.SaveAutopilot(r.t.Context(), a); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) next() string {
	r.t.Helper()
	if err := r.s.pilot.beginNext(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	var a view.Autopilot
	r.get("/autopilot", &a)
	if a.Next == nil {
		return ""
	}
	return strings.TrimSpace(strings.Join(view.FlagsOf(a.Next.SprintWish), " ") + " " + a.Next.Held)
}

// A planned sprint begins once the one before has come to its end, with what was
// planned last.
func TestPlannedSprintBegins(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.autopilot("running")
	var done view.Done
	for _, count := range []string{"1", "2"} {
		r.ask(http.MethodPost, "/sprints/next", `{"count":"`+count+`","tags":["x"]}`, &done)
		if got := r.next(); got != "--count="+count+" --tag=x" || r.did() != "" {
			t.Fatalf("planned: %q", got)
		}
	}
	r.ended(1) // a task failed: that is an end
	if got := r.next(); got != "" {
		t.Errorf("it is still planned: %q", got)
	}
	if got := r.did(); got != "pawl sprint --count=2 --tag=x" {
		t.Errorf("began %q", got)
	}
	if r.next() != "" || r.did() != "" {
		t.Error("it began twice")
	}
}

// Who stopped a sprint does not find the next one at work.
func TestPlannedSprintWaitsAfterAStop(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*rig){
		"stopped":       func(r *rig) { r.ended(130) },
		"broken off":    func(r *rig) { r.lost() },
		"not startable": func(r *rig) { r.asked.fails = fault.Refuse("no such label"); r.ended(0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.autopilot("running")
			var done view.Done
			r.ask(http.MethodPost, "/sprints/next", `{"no_ready":true}`, &done)
			end(r)
			got := r.next()
			if !strings.HasPrefix(got, "--no-ready=true ") || len(got) < 25 {
				t.Errorf("it waits as %q", got)
			}
			r.did()
			if again := r.next(); again != got || r.did() != "" {
				t.Errorf("looked at again: %q", again)
			}
			r.ask(http.MethodDelete, "/sprints/next", "", &done)
			if got := r.next(); got != "" {
				t.Errorf("it is dropped, and there: %q", got)
			}
			r.ask(http.MethodDelete, "/sprints/next", "", &done) // by a second tab
		})
	}
}

// lost makes the process of the autopilot one of an earlier boot.
func (r *rig) lost() {
	r.t.Helper()
	a := store.Autopilot{Session: "t", Phase: "running", Owner: r.nobody(), StartedAt: noon, State: json.RawMessage(`{}`)}
	if _, err := r.store.TakeAutopilot(r.t.Context(), a, func(store.Owner) bool { return false }); err != nil {
		r.t.Fatal(err)
	}
}
