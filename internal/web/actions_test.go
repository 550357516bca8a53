package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

// What a person asks for is handed on as it was asked, and the run comes back.
func TestActions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	r.ask(http.MethodPost, "/cases", `{"title":"Send mails"}`, &Case{})
	r.run("new", func(row *sqlite.Run, _ *loop.State) { row.Name = "other" })
	r.hands.goesOn = true
	for _, c := range []struct{ path, body, want string }{
		{"/runs", `{"procedure":"other","max_iterations":"5","fresh":true}`, "start {other true [] {5  }}"},
		{"/runs", `{"procedure":"other","context":["use port 1"]}`, "start {other false [use port 1] {  }}"},
		{"/runs/abc123/message", `{"text":" look at the <script> first\n"}`, `message abc123 " look at the <script> first\n"`},
		{"/runs/abc123/redirect", `{"to":"1"}`, "redirect abc123 task-001"},
		{"/runs/abc123/pause", `{}`, "pause abc123"},
		{"/runs/abc/stop", `{}`, "stop abc123"},
		{"/runs/abc123/resume", `{"max_cost":"2.50"}`, "resume abc123 { 2.50 }"},
		{"/runs/abc123/answer", `{"choice":2,"text":"use port 1"}`, `answer abc123 2 "use port 1"; resume abc123 {  }`},
		{"/runs/abc123/answer", `{"text":"later","resume":false}`, `answer abc123 0 "later"`},
		{"/runs/abc123/review", `{"decision":"approve"}`, `answer abc123 0 "approve"; resume abc123 {  }`},
		{"/runs/abc123/review", `{"decision":"reject","text":"no tests"}`, `answer abc123 0 "reject: no tests"; resume abc123 {  }`},
		{"/runs/abc123/rollback", `{}`, "rollback abc123 -1 false"},
		{"/runs/abc123/rollback", `{"to":0}`, "rollback abc123 0 false"},
		{"/runs/abc123/rollback", `{"undo":true}`, "rollback abc123 -1 true"},
		{"/runs/abc123/apply", `{}`, "apply abc123"},
	} {
		r.hands.asked = nil
		var done Done
		r.ask(http.MethodPost, c.path, c.body, &done)
		if got := r.hands.all(); got != c.want || !strings.HasPrefix(done.Message, "Done.") || done.Run == nil {
			t.Errorf("%s %s: did %q, said %+v", c.path, c.body, got, done)
		}
	}
}

// What cannot be done is said in the command's words, and nothing follows it.
func TestRefusedActions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	r.hands.refuse = fault.Refuse("run abc123 asks nothing").Hint("pawl show abc123")
	p := r.refused(http.MethodPost, "/runs/abc123/answer", `{"choice":1}`, http.StatusConflict)
	if p.Code != "REFUSED" || p.Message != "run abc123 asks nothing" || len(p.Suggestions) != 1 || r.hands.all() != `answer abc123 1 ""` {
		t.Errorf("%+v after %s", p, r.hands.all())
	}
	r.hands.asked, r.hands.refuse = nil, nil
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
	if r.hands.all() != "" {
		t.Errorf("did %s", r.hands.all())
	}
}
