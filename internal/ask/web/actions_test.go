package web

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// act is a request, what it asks of others, and what is said about it.
type act struct{ path, body, want, says string }

func (r *rig) acts(list []act) {
	r.t.Helper()
	for _, c := range list {
		var done view.Done
		r.ask(http.MethodPost, c.path, c.body, &done)
		if got := r.did(); got != c.want || !strings.Contains(done.Message, c.says) {
			r.t.Errorf("%s %s: did %q, said %q, and the run is %+v", c.path, c.body, got, done.Message, done.Run)
		}
		if isRun := strings.HasPrefix(c.path, "/runs"); isRun != (done.Run != nil) {
			r.t.Errorf("%s: the run is %+v", c.path, done.Run)
		}
	}
}

// What a person asks of a run that works reaches it as it was asked, and the run
// comes back.
func TestActions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", func(row *store.Run, _ *loop.State) { row.Owner, row.Kind, row.Name = r.self(), "task", "task-002" })
	r.ask(http.MethodPost, "/cases", `{"title":"Send mails"}`, &view.Case{})
	r.autopilot("running")
	r.run("new", func(row *store.Run, _ *loop.State) { row.Name = "other" })
	r.acts([]act{
		{"/runs", `{"procedure":"build","max_iterations":"5","fresh":true}`, "pawl run --fresh=true --max-iterations=5 -- build", "Run new of build has started."},
		{"/runs", `{"goal":"--help","max_cost":"2","fresh":true}`, "pawl plan --max-cost=2 -- --help", "Run new of pawl-plan has started."},
		{"/runs", `{"procedure":"build","context":["use port 1"]}`, "pawl run --context=use port 1 -- build", "has started"},
		{"/runs/abc123/message", `{"text":" look at the <script> first\n"}`, "message look at the <script> first", "the next prompt of run abc123"},
		{"/runs/abc123/redirect", `{"to":"1"}`, "stop; autopilot start task-001", "task-001 gets the slot"},
		{"/runs/abc123/pause", `{}`, "pause", "Run abc123 pauses"},
		{"/runs/abc/stop", `{}`, "stop", "Run abc123 is stopping"},
	})
}

// An answer is kept, and the run goes on unless the person says otherwise.
func TestAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", func(row *store.Run, s *loop.State) {
		row.Owner, row.Status, s.Status = r.nobody(), string(loop.Blocked), loop.Blocked
		s.Question = &loop.Question{Choices: []control.Choice{{Text: "Go on", Do: control.TryAgain}, {Text: "Try again", Do: control.TryAgain, Advice: true}}}
	})
	r.acts([]act{
		{"/runs/abc123/answer", `{"choice":2,"text":"use port 1"}`, "pawl resume abc123; choice 2 use port 1", "Run abc123 of build continues."},
		{"/runs/abc123/answer", `{"text":"later","resume":false}`, "answer later", "The answer is kept"},
		{"/runs/abc123/resume", `{"max_cost":"2.50"}`, "pawl resume abc123 --max-cost=2.50", "Run abc123 of build continues."},
	})
	r.asked.fails = fault.Refuse("there is no agent here")
	r.acts([]act{
		{"/runs/abc123/answer", `{"text":"now"}`, "pawl resume abc123; answer now", "The run does not continue yet: there is no agent here"},
	})
}

// Work that waits for its review is approved, or sent back with words.
func TestReviewOfARun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", func(row *store.Run, s *loop.State) {
		row.Owner, row.Status = r.nobody(), string(loop.Pending)
		s.Status, s.PendingReview = loop.Pending, &loop.PendingReview{}
		s.Question = &loop.Question{Choices: []control.Choice{{Text: "Approve", Do: control.Accept}, {Text: "Reject", Do: control.TryAgain, Advice: true, Needs: true}}}
	})
	r.acts([]act{
		{"/runs/abc123/review", `{"decision":"reject","text":"no tests"}`, "pawl resume abc123; choice 2 no tests", "continues"},
		{"/runs/abc123/review", `{"decision":"approve"}`, "", "you accepted its work as it is"},
	})
}

// What a rollback would do is known before it, and changes nothing.
func TestRollbackIsForeseen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	snaps := r.repository("abc123", map[string]string{"a": "0", "b": "0", "same": "0"}, map[string]string{"a": "1", "new": "1"}, map[string]string{"b": ""})
	r.run("abc123", func(row *store.Run, _ *loop.State) { row.Status, row.Root = string(loop.Completed), r.s.o.Root })
	r.steps("abc123", snaps)
	// A person has worked in it since.
	if err := os.WriteFile(filepath.Join(r.s.o.Root, "mine"), []byte("m"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"to=0": "the state before the run: [a b] [new]", "to=1": "the snapshot after iteration 1: [b] []", "": "the snapshot after iteration 1: [b] []",
	} {
		var f view.Foreseen
		r.get("/runs/abc123/rollback?"+path, &f)
		if got := fmt.Sprint(f.Where, ": ", f.Restored, " ", f.Removed); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(r.s.o.Root, "a")); err != nil || string(text) != "1" {
		t.Errorf("the file has %q: %v", text, err)
	}
	if p := r.refused(http.MethodGet, "/runs/abc123/rollback?to=7", "", http.StatusConflict); !strings.Contains(p.Message, "no snapshot 7") {
		t.Errorf("%+v", p)
	}
}

// A rollback goes where it was asked to, and back, and a page knows that it can be undone.
func TestRollback(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	snaps := r.repository("abc123", map[string]string{"a": "0"}, map[string]string{"a": "1"}, map[string]string{"a": "2"})
	r.run("abc123", func(row *store.Run, _ *loop.State) { row.Status, row.Root = string(loop.Completed), r.s.o.Root })
	r.steps("abc123", snaps)
	file := filepath.Join(r.s.o.Root, "a")
	var known view.Snapshots
	if r.get("/runs/abc123/snapshots", &known); known.Undo {
		t.Error("a rollback that was not made can be undone")
	}
	for _, c := range []struct{ body, says, want string }{
		{`{}`, "the snapshot after iteration 1", "1"},
		{`{"to":0}`, "the state before the run", "0"},
		{`{"undo":true}`, "what was there before", "1"},
	} {
		var done view.Done
		r.ask(http.MethodPost, "/runs/abc123/rollback", c.body, &done)
		text, err := os.ReadFile(file)
		if err != nil || string(text) != c.want || !strings.Contains(done.Message, c.says) {
			t.Errorf("%s: the file has %q (%v), said %s", c.body, text, err, done.Message)
		}
		if r.get("/runs/abc123/snapshots", &known); !known.Undo {
			t.Errorf("%s cannot be undone", c.body)
		}
	}
}

// What cannot be done is said in the command's words, and nothing follows it.
func TestRefusedActions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", func(row *store.Run, _ *loop.State) { row.Owner, row.Status = r.nobody(), string(loop.Completed) })
	for path, want := range map[string]string{
		"/runs/abc123/answer": "run abc123 asks nothing: it is completed",
		"/runs/abc123/pause":  "run abc123 is not running: it is completed",
		"/runs/abc123/apply":  "run abc123 has nothing to apply: its work is not kept",
	} {
		p := r.refused(http.MethodPost, path, map[bool]string{true: `{"choice":1}`, false: `{}`}[strings.HasSuffix(path, "answer")], http.StatusConflict)
		if p.Code != "REFUSED" || p.Message != want {
			t.Errorf("%s: %+v", path, p)
		}
	}
	if p := r.refused(http.MethodPost, "/runs", `{"procedure":"bild"}`, http.StatusConflict); !strings.Contains(p.Message, `did you mean "build"?`) || len(p.Suggestions) != 1 {
		t.Errorf("%+v", p)
	}
	for path, body := range map[string]string{
		"/runs/abc123/answer":   `{}`,
		"/runs/abc123/review":   `{"decision":"reject"}`,
		"/runs/abc123/rollback": `{"to":1,"undo":true}`,
		"/runs/abc123/message":  `{"text":"  "}`,
	} {
		if p := r.refused(http.MethodPost, path, body, http.StatusUnprocessableEntity); p.Code != "INVALID_REQUEST" {
			t.Errorf("%s: %+v", path, p)
		}
	}
	if p := r.refused(http.MethodPost, "/runs/zzz/stop", `{}`, http.StatusNotFound); p.Code != "RUN_NOT_FOUND" {
		t.Errorf("%+v", p)
	}
	if p := r.refused(http.MethodPost, "/runs/abc123/redirect", `{"to":"task-9"}`, http.StatusNotFound); p.Code != "CASE_NOT_FOUND" {
		t.Errorf("%+v", p)
	}
	if did := r.did(); did != "" {
		t.Errorf("did %s", did)
	}
}
