package check

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/failure"
)

// Whatever a text holds, YAML reads it back as it was.
func TestDecisionAsYAML(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"one line", "", "two\nlines\n", "a: b # c\n- d\n", "  indented\nfirst\n", "ends twice\n\n", "a\n\nb\n", "a\n \nb\n", "tab\n\tinside\n",
		"control \x01\nhere\n", "del \x7f", "no end\nof line", "quote \" and < & >", "\xff broken", "…\nwide 日本\n", "a\r\nb\n",
	} {
		var out strings.Builder
		a := &command.App{Stdout: &out}
		d := decision{Action: "retry", TaskID: "t", Feedback: &decisionFeedback{Summary: text, Items: []string{text}}, Question: text}
		if err := printDecision(a, d, false); err != nil {
			t.Fatal(err)
		}
		var back map[string]any
		if err := yaml.Unmarshal([]byte(out.String()), &back); err != nil {
			t.Errorf("%q: %v\n%s", text, err, out.String())
			continue
		}
		plain, _ := json.Marshal(map[string]decision{"decision": d})
		var want map[string]any
		_ = json.Unmarshal(plain, &want)
		got, _ := json.Marshal(back)
		expected, _ := json.Marshal(want)
		if !bytes.Equal(got, expected) {
			t.Errorf("%q became\n%s", text, out.String())
		}
	}
}

// What the skill for agents shows is what check takes.
func TestSkill(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../examples/skill/iteration-control/SKILL.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "<<'CHECK'\n")
	taught, _, found := strings.Cut(after, "CHECK\n")
	if !found {
		t.Fatal("the skill shows no document")
	}
	if _, err := config.ReadIterationCheck("SKILL.md", []byte(taught)); err != nil {
		t.Error(err)
	}
}

// Of a long log the beginning and the end are kept.
func TestEnds(t *testing.T) {
	t.Parallel()
	var e ends
	_, _ = io.WriteString(&e, "begin "+strings.Repeat("x", headBytes)+strings.Repeat("y", 5*tailBytes)+" end")
	got := e.headAndTail()
	if len(got) != headBytes+tailBytes+len("\n…\n") || !strings.HasPrefix(got, "begin x") || !strings.HasSuffix(got, "y end") {
		t.Errorf("%d bytes", len(got))
	}
	e = ends{}
	_, _ = io.WriteString(&e, "short")
	if e.headAndTail() != "short" {
		t.Error(e.headAndTail())
	}
}

// Each attempt is remembered with how it failed and what was decided. Numbers that begin
// anew, and another result after a person was asked, begin a round.
func TestNext(t *testing.T) {
	t.Parallel()
	red := &failure.Analysis{Class: failure.TestFailure, Fingerprint: "f1", Summary: "2 tests fail"}
	k := &check{}
	for _, c := range []struct {
		number   int
		action   control.Action
		failed   *failure.Analysis
		rejected bool
		said     string
		round    int
		class    string
	}{
		{1, control.Retry, red, false, "", 1, "test_failure"},
		{2, control.Retry, red, false, "", 1, "test_failure"},
		{3, control.Escalate, red, false, "", 1, "test_failure"},
		{3, control.Retry, nil, true, "no test", 2, "validation"}, // a person answered
		{4, control.Proceed, nil, false, "", 2, ""},
		{1, control.Retry, red, false, "", 3, "test_failure"},
	} {
		o := control.Outcome{Attempt: control.Attempt{Number: c.number}, Failure: c.failed, Said: c.said}
		if c.rejected {
			o.Tests, o.Review = control.Passed, control.Rejected
		}
		k.action = c.action
		k.log = k.logWithAttempt(o)
		got := k.log.Attempts[len(k.log.Attempts)-1]
		if got.Iteration != c.number || got.Round != c.round || got.Class != c.class || (got.Fingerprint == "") != (c.class == "") ||
			got.Action != string(c.action) {
			t.Errorf("attempt %d is remembered as %+v, want round %d, class %q, %s", c.number, got, c.round, c.class, c.action)
		}
	}
}
