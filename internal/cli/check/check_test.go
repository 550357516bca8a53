package check

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/config"
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
	text, err := os.ReadFile("../../../examples/skill/iteration-control/SKILL.md")
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
	got := e.text()
	if len(got) != headBytes+tailBytes+len("\n…\n") || !strings.HasPrefix(got, "begin x") || !strings.HasSuffix(got, "y end") {
		t.Errorf("%d bytes", len(got))
	}
	e = ends{}
	_, _ = io.WriteString(&e, "short")
	if e.text() != "short" {
		t.Error(e.text())
	}
}
