package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

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
	if err := r.s.pilot.begun.StartNext(r.t.Context()); err != nil {
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
		r.ask(http.MethodPost, "/sprints/next", `{"count":"`+count+`","tags":["x"],"max_iterations":7}`, &done)
		if got := r.next(); got != "--count="+count+" --max-iterations=7 --tag=x" || r.did() != "" {
			t.Fatalf("planned: %q", got)
		}
	}
	r.ended(1) // a task failed: that is an end
	if got := r.next(); got != "" {
		t.Errorf("it is still planned: %q", got)
	}
	if got := r.did(); got != "pawl sprint --count=2 --max-iterations=7 --tag=x" {
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

// An autopilot without a sprint works again after it was cut off, once for each server, as it was changed
// meanwhile; what a person stopped or paused, or what has been off for long, waits for a person.
func TestAutopilotThatWasCutOff(t *testing.T) {
	t.Parallel()
	end := func(exit int, ago time.Duration, state string) func(*store.Autopilot) {
		return func(a *store.Autopilot) {
			a.Phase, a.Exit, a.EndedAt, a.State = "ended", exit, time.Now().Add(-ago), json.RawMessage(state)
		}
	}
	killed := func(state string) func(*store.Autopilot) {
		return func(a *store.Autopilot) { a.Owner, a.State = store.Owner{}, json.RawMessage(state) }
	}
	for name, one := range map[string]struct {
		end    func(*store.Autopilot)
		asked  string
		seen   bool // the server was there when it worked
		begins bool
		says   string // by the page, if it is off
	}{
		"killed":                     {end: killed(`{}`), begins: true},
		"ended with the server":      {end: end(143, time.Hour, `{"cause":"terminate"}`), begins: true},
		"killed beside the server":   {end: killed(`{}`), seen: true, begins: true},
		"ended beside the server":    {end: end(143, 0, `{"cause":"terminate"}`), seen: true, says: "by the signal TERM"},
		"stopped by a person":        {end: end(130, 0, `{"cause":"stop"}`)},
		"at its end":                 {end: end(0, 0, `{}`)},
		"a task failed":              {end: end(1, 0, `{}`)},
		"killed while it stopped":    {end: killed(`{"phase":"stopping","cause":"stop"}`)},
		"asked to stop and killed":   {end: killed(`{}`), asked: store.AutopilotStop},
		"asked to pause and killed":  {end: killed(`{}`), asked: store.AutopilotPause, says: "it was paused"},
		"killed while it was paused": {end: killed(`{"phase":"paused"}`), says: "it was paused"},
		"ended while it was paused":  {end: end(143, 0, `{"cause":"terminate","was_paused":true}`), says: "it was paused"},
		"long ago":                   {end: end(143, 25*time.Hour, `{}`), says: "more than a day ago"},
		"another one was started":    {end: func(a *store.Autopilot) { a.Session = "other" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.s.pilot.begun.Resumed = func() { r.asked.list = append(r.asked.list, "resumed") }
			var done view.Done
			r.ask(http.MethodPost, "/autopilot/start", `{"max_parallel":2,"keep":true}`, &done)
			r.did()
			a := store.Autopilot{Session: "new", Phase: "running", Mode: "auto", MaxParallel: 3, StartedAt: noon,
				Owner: r.self(), State: json.RawMessage(`{}`), UpdatedAt: time.Now()}
			if a, err := r.store.TakeAutopilot(t.Context(), a, func(store.Owner) bool { return false }); err != nil {
				t.Fatal(a, err)
			}
			if one.seen && (r.next() != "" || r.did() != "") {
				t.Fatal("another one is started beside it")
			}
			row, _, err := r.store.Autopilot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			one.end(&row)
			if row.EndedAt.IsZero() {
				row.Owner = r.nobody()
				if row, err = r.store.TakeAutopilot(t.Context(), row, func(store.Owner) bool { return false }); err != nil {
					t.Fatal(err)
				}
			} else {
				row.Why = "it was terminated by the signal TERM"
				if err := r.store.SaveAutopilot(t.Context(), row); err != nil {
					t.Fatal(err)
				}
			}
			if one.asked != "" {
				if _, err := r.store.AskAutopilot(t.Context(), store.AutopilotControl{Kind: one.asked, At: noon}); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 {
				r.next()
			}
			did := r.did()
			if began := did == "pawl autopilot --keep=true --max-parallel=3; resumed"; began != one.begins {
				t.Errorf("started %q", did)
			}
			var shown view.Autopilot
			saysNothing := one.says == "" && !one.begins
			if r.get("/autopilot", &shown); !strings.Contains(shown.Restart, one.says) || (shown.Restart == "") != saysNothing {
				t.Errorf("it says %q", shown.Restart)
			}
		})
	}
}
