package board

import (
	"slices"
	"strings"
	"testing"
)

// What a task says of iteration control is read as it is written, and taken out by an
// empty value.
func TestControlOfATask(t *testing.T) {
	t.Parallel()
	var c *Control
	for _, step := range []struct{ setting, want string }{
		{"max_iterations=5", "max_iterations=5"},
		{" escalation_includes_diff = false", "max_iterations=5 escalation_includes_diff=false"},
		{"max_iterations=", "escalation_includes_diff=false"},
		{"max_iteration=5", `iteration_control has no key "max_iteration"; it has max_iterations, auto_retry_on_test_fail, ` +
			"auto_retry_on_review_reject, escalation_includes_diff, feedback_max_length"},
		{"max_iterations=many", "iteration_control.max_iterations must be a whole number, not a string"},
		{"auto_retry_on_test_fail=5", "iteration_control.auto_retry_on_test_fail must be true or false, not a number"},
	} {
		next, err := c.With(step.setting)
		got := next.String()
		if err != nil {
			got, next = err.Error(), c
		}
		if c = next; got != step.want {
			t.Errorf("%s: %s; want %s", step.setting, got, step.want)
		}
	}
}

// A list may say it, and how work ends; what cannot be meant is refused with its line.
func TestControlInALists(t *testing.T) {
	t.Parallel()
	list, err := Parse([]byte(`{"title":"a","policy":"controlled","iteration_control":{"max_iterations":4}}` + "\n" +
		`{"title":"b","iteration_control":{"feedback_max_length":90}}` + "\n" + `{"title":"c","policy":"task"}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range list.Drafts {
		got = append(got, d.Case.Policy()+" "+d.Case.Control.String())
	}
	if want := []string{"controlled max_iterations=4", "controlled feedback_max_length=90", "task "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	list, err = Parse([]byte("- [ ] a\n  iteration_control: max_iterations=3, escalation_includes_diff=true\n"))
	if err != nil || list.Drafts[0].Case.Control.String() != "max_iterations=3 escalation_includes_diff=true" {
		t.Errorf("%+v, %v", list.Drafts, err)
	}
	for _, c := range []struct{ line, want string }{
		{`{"title":"a","policy":"procedure"}`, `line 1: policy must be task or controlled, not "procedure"`},
		{`{"title":"a","iteration_control":5}`, "line 1: iteration_control must be an object of max_iterations, "},
		{`{"title":"a","iteration_control":{"max":5}}`, `line 1: iteration_control has no key "max"`},
		{"- [ ] a\n  iteration_control: 5", `line 2: iteration_control has no key "5"`},
	} {
		if _, err := Parse([]byte(c.line)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", c.line, err, c.want)
		}
	}
}

// What is stored makes sense, and only a person says it: a proposal of an agent that does is
// refused, and no issue brings any.
func TestControlIsAPersonsWord(t *testing.T) {
	t.Parallel()
	none, five := 0, 5
	for _, c := range []struct {
		of   Case
		want string
	}{
		{Case{Type: Task, Control: &Control{MaxIterations: &none}}, "iteration_control.max_iterations must be 1 or more, not 0"},
		{Case{Type: Task, Control: &Control{FeedbackMax: &none}}, "iteration_control.feedback_max_length must be 1 or more, not 0"},
		{Case{Type: Operation, Control: &Control{MaxIterations: &five}}, "belongs to its tasks"},
		{Case{Type: Task, Tags: []string{"policy:task"}, Control: &Control{MaxIterations: &five}}, "the tag is policy:task"},
	} {
		c.of.Title = "x"
		if wrong := Check(Tidy(c.of)); len(wrong) != 1 || !strings.Contains(wrong[0], c.want) {
			t.Errorf("%q, want %s", wrong, c.want)
		}
	}
	if c := Tidy(Case{Control: &Control{}}); c.Control != nil || c.Policy() != "" {
		t.Error("settings without a key mean something")
	}
	for _, own := range []string{`"iteration_control":{"max_iterations":900}`, `"policy":"controlled"`} {
		_, err := Propose([]byte(`{"ref":"a","title":"A","acceptance":["x"],` + own + `}`))
		if err == nil || !strings.Contains(err.Error(), "which only a person sets") {
			t.Errorf("%s: %v", own, err)
		}
	}
}
