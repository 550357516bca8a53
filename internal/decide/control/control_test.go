package control_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/failure"
)

var defaults = control.Settings{MaxIterations: 3, RetryTestFail: true, RetryReviewReject: true, IncludeDiff: true, FeedbackMax: 500, Review: true}

func with(change func(*control.Settings)) control.Settings {
	s := defaults
	change(&s)
	return s
}

// The whole table: tests × review × below or at the maximum, and the switches.
func TestDecide(t *testing.T) {
	t.Parallel()
	noReview := with(func(s *control.Settings) { s.Review = false })
	askRed := with(func(s *control.Settings) { s.RetryTestFail = false })
	askReject := with(func(s *control.Settings) { s.RetryReviewReject = false })
	endless := with(func(s *control.Settings) { s.MaxIterations = 0 })
	for _, c := range []struct {
		number   int
		tests    control.Tests
		review   control.Verdict
		settings control.Settings
		want     control.Action
	}{
		{1, control.Passed, control.Approved, defaults, control.Proceed},
		{3, control.Passed, control.Approved, defaults, control.Proceed}, // also at the maximum
		{9, control.Passed, control.Approved, defaults, control.Proceed},
		{1, control.Passed, control.Undecided, defaults, control.Review},
		{3, control.Passed, control.Undecided, defaults, control.Review}, // never used up by a review
		{3, control.Passed, "", defaults, control.Review},
		{1, control.Passed, control.Rejected, defaults, control.Retry},
		{3, control.Passed, control.Rejected, defaults, control.Escalate},
		{2, control.Failed, control.Undecided, defaults, control.Retry},
		{3, control.Failed, control.Undecided, defaults, control.Escalate},
		{4, control.Failed, control.Undecided, defaults, control.Escalate},
		{1, control.Failed, control.Approved, defaults, control.Retry}, // an approval does not turn a test green
		{3, control.Failed, control.Approved, defaults, control.Escalate},
		{1, control.NotTested, control.Approved, defaults, control.Retry},
		{3, control.NotTested, "", defaults, control.Escalate},

		{3, control.Passed, control.Undecided, noReview, control.Proceed},
		{1, control.Passed, control.Rejected, noReview, control.Proceed},
		{1, control.Failed, control.Undecided, noReview, control.Retry},

		{1, control.Failed, control.Undecided, askRed, control.Escalate},
		{1, control.NotTested, control.Undecided, askRed, control.Retry}, // no test failed
		{1, control.Passed, control.Rejected, askRed, control.Retry},
		{1, control.Passed, control.Rejected, askReject, control.Escalate},
		{1, control.Failed, control.Rejected, askReject, control.Retry}, // the tests come first
		{99, control.Failed, control.Undecided, endless, control.Retry},
	} {
		got, why := control.Decide(control.Attempt{Number: c.number, Tests: c.tests, Review: c.review}, c.settings)
		if got != c.want || why == "" {
			t.Errorf("attempt %d, tests %q, review %q: %s (%s), want %s", c.number, c.tests, c.review, got, why, c.want)
		}
	}
}

// What a reviewer wrote becomes findings, most urgent first.
func TestFromReview(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"Please split the function", "medium Please split the function"},
		{"Issues:\n- long lines, style only\n- password is logged\n* rename it\n", "critical password is logged|medium rename it|low long lines, style only"},
		{"1. [critical] data is lost\n2) nit: a blank\n3. High: it panics\n", "critical data is lost|high it panics|low a blank"},
		{"**Major:** no limit\n\n---\n", "high no limit"},
		{"## Findings\n\n### Style\n- long lines, style only\n\nLGTM otherwise!\n", "low long lines, style only"},
		{"Looks good overall, but the limit is missing", "medium Looks good overall, but the limit is missing"},
		{"- Looks good to me 👍\n#12 is not closed", "medium #12 is not closed"},
		{"(minor) odd name", "medium odd name"},
		{"see http://a.example: it works like that", "medium see http://a.example: it works like that"},
		{"insecurity and a finite loop", "medium insecurity and a finite loop"}, // words, not parts of words
		{strings.Repeat("- again\n", 30), strings.TrimSuffix(strings.Repeat("medium again|", 20), "|")},
	} {
		var got []string
		for _, f := range control.FromReview(c.text) {
			got = append(got, string(f.Severity)+" "+f.Message)
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%.40q:\n got %s\nwant %s", c.text, s, c.want)
		}
	}
}

// Security before tests before style, also when one output has them all.
func TestFromAnalysis(t *testing.T) {
	t.Parallel()
	lint := &failure.Analysis{Class: failure.Lint, Items: []failure.Item{{Message: "line is too long"}, {Message: "G101: hardcoded credentials"}}}
	found := control.FromAnalysis(lint)
	if got := fmt.Sprintf("%s %s %s", found[0].Severity, found[1].Severity, control.Priority(found)); got != "critical low critical" {
		t.Errorf("lint: %s", got)
	}
	types := &failure.Analysis{Class: failure.Lint, Items: []failure.Item{{File: "a.ts", Message: "error TS2304: Cannot find name 'c'."}}}
	if f := control.FromAnalysis(types)[0]; f.Severity != failure.High {
		t.Errorf("an error of the compiler: %s", f.Severity)
	}
	compile := &failure.Analysis{Class: failure.CompileError, Items: []failure.Item{{File: "a.go", Line: 3, Message: "undefined: x"}}}
	if f := control.FromAnalysis(compile)[0]; f.Severity != failure.High || f.String() != "a.go:3: undefined: x" {
		t.Errorf("compile: %s %s", f.Severity, f)
	}
	if control.FromAnalysis(nil) != nil || control.Priority(nil) != "" {
		t.Error("nothing has findings")
	}
}

func TestFindingString(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		item failure.Item
		want string
	}{
		{failure.Item{File: "a.ts", Expected: "1", Received: "2", Message: "long story"}, "a.ts: long story: expected 1, received 2"},
		{failure.Item{File: "a.ts", Test: "adds", Expected: "0", Received: "NaN", Message: "expected 0, got NaN"}, "a.ts: adds: expected 0, received NaN"},
		{failure.Item{File: "a.ts", Expected: "0", Received: "NaN", Message: "expected 0, got NaN"}, "a.ts: expected 0, got NaN"},
		{failure.Item{File: "a_test.go", Line: 9, Test: "TestA", Expected: "x\n y"}, "a_test.go:9: TestA: expected x y, received nothing"},
		{failure.Item{File: "a.ts", Line: 3, Message: "a.ts:3 is wrong"}, "a.ts:3 is wrong"},
		{failure.Item{Message: strings.Repeat("ü", 300)}, strings.Repeat("ü", 239) + "…"},
		{failure.Item{}, ""},
	} {
		if got := (control.Finding{Item: c.item}).String(); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.item, got, c.want)
		}
	}
}

// A feedback is cut between findings, and says how many had no room.
func TestCut(t *testing.T) {
	t.Parallel()
	found := []control.Finding{{Item: failure.Item{Message: "äöü"}}, {Item: failure.Item{Message: "1234567"}}, {Item: failure.Item{Message: "x"}}}
	for _, c := range []struct{ limit, kept, dropped, summary int }{
		{100, 3, 0, 4}, {15, 3, 0, 4}, {14, 2, 1, 4}, {13, 1, 2, 4}, {7, 1, 2, 4}, {6, 0, 3, 4}, {4, 0, 3, 4}, {2, 0, 3, 2}, {0, 0, 3, 0},
	} {
		summary, kept, dropped := control.Cut("four", found, c.limit)
		if utf8.RuneCountInString(summary) != c.summary || len(kept) != c.kept || dropped != c.dropped {
			t.Errorf("%d: %q, kept %d, dropped %d", c.limit, summary, len(kept), dropped)
		}
	}
}

func TestAdvise(t *testing.T) {
	t.Parallel()
	red := control.Outcome{Attempt: control.Attempt{Number: 1, Tests: control.Failed, Review: control.Rejected},
		Failure: &failure.Analysis{Class: failure.TestFailure, Summary: "test failure: 1 test failed (TestA)", Items: []failure.Item{{Test: "TestA", Message: "boom"}}},
		Found:   control.FromReview("XSS in the form\nnit: a blank")}
	f := control.Advise(red, defaults)
	var lines []string
	for _, found := range f.Items {
		lines = append(lines, found.String())
	}
	if got := strings.Join(lines, "|"); got != "XSS in the form|TestA: boom|a blank" || f.Priority != failure.Critical || f.Summary != "Test failure: 1 test failed (TestA)" {
		t.Errorf("%s: %s, %s", f.Summary, got, f.Priority)
	}
	silent := control.Advise(control.Outcome{Attempt: control.Attempt{Tests: control.Failed}}, defaults)
	if silent.Summary != "Tests failed" || silent.Priority != failure.High || silent.Items != nil {
		t.Errorf("no output: %+v", silent)
	}
}

func TestPattern(t *testing.T) {
	t.Parallel()
	past := func(words string) []control.Past {
		var list []control.Past
		for _, w := range strings.Fields(words) { // class/print/where
			p := strings.Split(w, "/")
			list = append(list, control.Past{Class: failure.Class(p[0]), Fingerprint: p[1], Where: p[2], Summary: p[1] + "!"})
		}
		return list
	}
	for words, want := range map[string]string{
		"": "", "test_failure/a/": "", "test_failure/a/x.go": "",
		"test_failure/a/ test_failure/a/":                             "the same failure 2 times in a row: a!",
		"lint/b/ test_failure/a/ test_failure/a/":                     "the same failure 2 times in a row: a!",
		"lint/a/ lint/b/ lint/a/ lint/b/":                             "two failures alternate: a! / b!",
		"test_failure/a/ test_failure/b/ test_failure/c/":             "the same kind of failure each time (test failure), in different forms",
		"test_failure/a/x.go test_failure/b/x.go test_failure/c/x.go": "always x.go, in different forms",
		"test_failure/a/x.go test_failure/b/x.go":                     "always x.go, in different forms",
		"lint/a/x.go crash/b/x.go lint/c/y.go":                        "each attempt failed in a different way than the one before",
		"test_failure/a/ test_failure/b/":                             "",
	} {
		if got := control.Pattern(past(words)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", words, got, want)
		}
	}
}

// The question holds the facts in conflict, and options that settle it.
func TestAsk(t *testing.T) {
	t.Parallel()
	token := failure.Item{File: "login.test.ts", Expected: "{ userId: 123 }", Received: `{ userId: "123" }`}
	tests := control.Outcome{Attempt: control.Attempt{Number: 3, Tests: control.Failed}, Failure: &failure.Analysis{Class: failure.TestFailure, Items: []failure.Item{{Message: "x"}, token}}}
	q := control.Ask(3, tests, control.Offer{})
	const want = "After 3 attempts, the test still fails: login.test.ts\n\nThe test expects: { userId: 123 }\nThe code gives: { userId: \"123\" }\n\nWhich is right?"
	if q.Text != want {
		t.Errorf("text:\n%s", q.Text)
	}
	if got := effects(q); got != "retry retry retry take over,give up" {
		t.Errorf("effects: %s", got)
	}
	if !strings.Contains(q.Choices[1].Answer, `it gives { userId: "123" }. Change the test.`) {
		t.Errorf("answer: %s", q.Choices[1].Answer)
	}
	rejected := control.Ask(1, control.Outcome{Attempt: control.Attempt{Tests: control.Passed, Review: control.Rejected}, Found: control.FromReview("no limit")}, control.Offer{})
	if rejected.Text != "After 1 attempt, the tests pass and the review still rejects the work: no limit\n\nIs the review right?" || effects(rejected) != "retry accept,take over,give up" {
		t.Errorf("%s\n%s", rejected.Text, effects(rejected))
	}
	// Red work can never be accepted.
	for _, o := range []control.Outcome{tests, {Attempt: control.Attempt{Tests: control.Failed}}, {}} {
		if strings.Contains(effects(control.Ask(3, o, control.Offer{})), "accept") {
			t.Errorf("red work can be accepted: %+v", o)
		}
	}
}

func effects(q control.Question) string {
	var retries, rest []string
	for _, c := range q.Choices {
		if c.Do == control.TryAgain {
			retries = append(retries, string(c.Do))
		} else {
			rest = append(rest, string(c.Do))
		}
	}
	return strings.Join(retries, " ") + " " + strings.Join(rest, ",")
}
