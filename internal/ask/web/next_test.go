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

// A sprint that was begun here and cut off is planned anew, as what is left of it: one click continues it.
func TestSprintThatWasCutOff(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		wish, want string
		end        func(*rig)
	}{
		"stopped":    {`{"count":"5","tags":["x"]}`, "--count=3 --tag=x", func(r *rig) { r.ended(143) }},
		"killed":     {`{"no_ready":true}`, "--no-ready=true", func(r *rig) { r.lost() }},
		"all done":   {`{"count":"2"}`, "", func(r *rig) { r.ended(143) }},
		"at its end": {`{"count":"5"}`, "", func(r *rig) { r.ended(0) }},
		"hours":      {`{"hours":"1.5"}`, "--hours=90m", func(r *rig) { r.ended(143) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			var done view.Done
			r.ask(http.MethodPost, "/sprints", one.wish, &done)
			r.did()
			r.autopilot("running")
			if got := r.next(); got != "" {
				t.Fatalf("planned while it works: %q", got)
			}
			p := store.Sprint{ID: "2026-11-20-001", StartedAt: noon, Stats: json.RawMessage(`{"completedTasks":2}`)}
			if err := r.store.SaveSprint(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			one.end(r)
			got := r.next()
			if rest, held, _ := strings.Cut(got, " The sprint was cut off"); rest != one.want || (held == "") != (one.want == "") {
				t.Fatalf("what is left is %q", got)
			}
			if again := r.next(); again != got || r.did() != "" {
				t.Errorf("looked at again: %q", again)
			}
			if got == "" {
				return
			}
			r.ask(http.MethodPost, "/sprints", one.wish, &done)
			began := r.did()
			r.autopilot("running")
			if began == "" || r.next() != "" {
				t.Error("it was continued, and is held still")
			}
		})
	}
}
