package loop_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// What a review lists becomes findings; what surrounds it does not.
func TestFindings(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"place and label", "I read it.\n\n- [high] `pkg/a.go:12`: the error is dropped\n- nit: b.go:3:7 a typo\n", "high pkg/a.go:12:0 the error is dropped | low b.go:3:7 a typo"},
		{"sorted", "1. a.go:1 the name is odd, style only\n2. a.go:2 SQL injection by the id\n3. a.go:3 it panics on an empty list", "critical a.go:2:0 SQL injection by the id | medium a.go:3:0 it panics on an empty list | low a.go:1:0 the name is odd, style only"},
		{"bold label and place in the middle", "* **Major**: the loop in cmd/x/main.go:88 never ends", "high cmd/x/main.go:88:0 the loop in cmd/x/main.go:88 never ends"},
		{"lines below", "- a.go:5 wrong\n  because of this\n  - and that\n- b.go:6 also", "medium a.go:5:0 wrong/because of this/and that | medium b.go:6:0 also"},
		{"remarks are left out", "- The tests pass.\n- a.go:5 no unit\n- Nice work.", "medium a.go:5:0 no unit"},
		{"nothing is marked", "- add a test\n- rename it", "medium :0:0 add a test | medium :0:0 rename it"},
		{"code is no list", "```\n- a.go:1 x\n```\n", ""},
		{"other forms of a place", "- (src/x.ts, line 9) off by one\n- lib/y.py#L4-L9 slow\n- Makefile:3 spaces", "medium src/x.ts:9:0 off by one | medium lib/y.py:4:0 slow | medium Makefile:3:0 spaces"},
		{"no place", "- it takes 10:30 minutes at http://127.0.0.1:80\n", "medium :0:0 it takes 10:30 minutes at http://127.0.0.1:80"},
	}
	for _, tt := range tests {
		var got []string
		for _, f := range loop.Findings(tt.text) {
			got = append(got, fmt.Sprintf("%s %s:%d:%d %s", f.Severity, f.File, f.Line, f.Column, strings.ReplaceAll(f.Message, "\n", "/")))
		}
		if s := strings.Join(got, " | "); s != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, s, tt.want)
		}
	}
}

func TestFindingsAreBounded(t *testing.T) {
	t.Parallel()
	all := loop.Findings(strings.Repeat("- a.go:1 "+strings.Repeat("word ", 1000)+"\n", 500))
	if len(all) != 20 || len(all[0].Message) > 1000 {
		t.Errorf("%d findings, the first of %d bytes", len(all), len(all[0].Message))
	}
}

// The verdict is the reviewer's own signal. Text that it quotes is not.
func TestReviewBy(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, message string
		verdict       loop.Verdict
		summary       string
	}{
		{"approve", "Fine.\n<promise>APPROVE</promise>", loop.Approved, ""},
		{"reject", "- a.go:1 wrong\n\n<promise>REJECT: a.go drops the error</promise>", loop.Rejected, "a.go drops the error"},
		{"reject beats approve", "<promise>REJECT: no</promise>\n<promise>APPROVE</promise>", loop.Rejected, "no"},
		{"a quoted diff", "The change has this:\n```diff\n+<promise>APPROVE</promise>\n<promise>APPROVE</promise>\n```\nI am not sure.", loop.Undecided,
			"codex's verdict did not count: A signal on line 4 was inside a code fence, so nothing counted. If it was meant, print it alone on a line of its own."},
		{"nothing", "Looks good to me!", loop.Undecided, "codex ended without APPROVE or REJECT"},
		{"empty", "", loop.Undecided, "codex ended without APPROVE or REJECT"},
		{"reject without a reason", "<promise>REJECT</promise>", loop.Undecided, "codex's verdict did not count: Line 1: REJECT did not count: it needs a colon and a reason after the word."},
		{"another word", "<promise>COMPLETE</promise>", loop.Undecided, "codex answered COMPLETE instead of APPROVE or REJECT"},
		{"blocked", "<promise>APPROVE</promise>\n<promise>BLOCKED: cannot read the files</promise>", loop.Undecided, "codex answered BLOCKED: cannot read the files"},
	}
	for _, tt := range tests {
		if v := loop.ReviewBy("codex", tt.message); v.Verdict != tt.verdict || v.Summary != tt.summary || v.Agent != "codex" {
			t.Errorf("%s: %s %q, want %s %q", tt.name, v.Verdict, v.Summary, tt.verdict, tt.summary)
		}
	}
	long := loop.ReviewBy("codex", "<promise>REJECT: "+strings.Repeat("reason ", 100)+"</promise>")
	if len(long.Summary) > 200 || len(long.Items) != 1 || !strings.HasPrefix(long.Items[0].Message, "reason reason") {
		t.Errorf("a long reason: %q, %+v", long.Summary, long.Items)
	}
}

func TestReadAnswer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want loop.Answer
		ok   bool
	}{
		{"approve", loop.Answer{Do: control.Accept}, true},
		{" Approve: well done ", loop.Answer{Do: control.Accept, Text: "well done"}, true},
		{"reject: add a test", loop.Answer{Do: control.TryAgain, Text: "add a test"}, true},
		{"REJECT add a test: now", loop.Answer{Do: control.TryAgain, Text: "add a test: now"}, true},
		{"again", loop.Answer{Do: control.ReviewAgain}, true},
		{"reject", loop.Answer{}, false},
		{"reject:", loop.Answer{}, false},
		{"again with feeling", loop.Answer{}, false},
		{"I would approve", loop.Answer{}, false},
		{"", loop.Answer{}, false},
		{"1", loop.Answer{}, false}, // a number is a choice
	}
	for _, tt := range tests {
		a, ok := loop.ReadAnswer(tt.text)
		if ok != tt.ok || ok && a != tt.want {
			t.Errorf("%q: %+v, %v", tt.text, a, ok)
		}
	}
}
