package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return noon }

const (
	goGreen = "ok  \texample.com/a\t0.01s\n"
	goRed   = "--- FAIL: TestParse (0.00s)\n    parse_test.go:12: got 1, want 2\n--- FAIL: TestLex (0.00s)\n    lex_test.go:7: got a, want b\nFAIL\nFAIL\texample.com/a\t0.01s\nok  \texample.com/b\t0.01s\nFAIL\n"
	goEmpty = "?   \texample.com/a\t[no test files]\n"
)

// play makes a Run from outcomes in words.
func play(t *testing.T, outcomes ...string) Run {
	return func(_ context.Context, n int, _ Spec) (Exec, error) {
		if n >= len(outcomes) {
			t.Errorf("gate %d was run", n)
			return Exec{}, nil
		}
		switch outcomes[n] {
		case "succeeds":
			return Exec{}, nil
		case "fails":
			return Exec{ExitCode: 1, Output: "error: it is broken"}, nil
		case "times out":
			return Exec{ExitCode: -1, TimedOut: true, Elapsed: time.Minute}, nil
		case "is missing":
			return Exec{ExitCode: -1, NotStarted: "sh: not found"}, nil
		case "is stopped":
			return Exec{ExitCode: -1, Stopped: true}, nil
		case "tests pass":
			return Exec{Output: goGreen}, nil
		case "tests fail":
			return Exec{ExitCode: 1, Output: goRed}, nil
		case "runs no tests":
			return Exec{Output: goEmpty}, nil
		case "weakens a test":
			return Exec{Tampered: []Violation{{"a_test.go", "it was changed, but it is protected"}}}, nil
		}
		return Exec{}, errors.New(outcomes[n])
	}
}

// specs reads "name" or "name?" for an optional gate.
func specs(names string) []Spec {
	var out []Spec
	for _, n := range strings.Fields(names) {
		name, optional := strings.CutSuffix(n, "?")
		out = append(out, Spec{Name: name, Command: "run " + name, Required: !optional, Timeout: time.Minute})
	}
	return out
}

// transcript is a report in words.
func transcript(r Report, err error) string {
	var b strings.Builder
	for _, g := range r.Gates {
		fmt.Fprintf(&b, "%s: %s", g.Name, g.Status)
		if g.Note != "" {
			fmt.Fprintf(&b, " (%s)", g.Note)
		}
		b.WriteString("; ")
	}
	fmt.Fprintf(&b, "score %d", r.Score)
	if r.Failure != nil {
		b.WriteString("; " + r.Failure.Code)
	}
	for _, w := range r.Warnings {
		code, _, _ := strings.Cut(w, ":")
		b.WriteString("; warning " + code)
	}
	if r.Stopped {
		b.WriteString("; stopped")
	}
	if r.Passed() {
		b.WriteString("; passed")
	}
	if err != nil {
		b.WriteString("; " + err.Error())
	}
	return b.String()
}

// The verification behaviour table of the autopilot, and what follows from it.
func TestVerificationTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ gates, does, want string }{
		// command succeeds, fails, times out: required …
		{"a b", "succeeds,succeeds", "a: passed; b: passed; score 1000; passed"},
		{"a b", "fails", "a: failed; b: not run; score 0; VERIFICATION_FAILED"},
		{"a b", "times out", "a: timeout (timed out after 1m0s); b: not run; score 0; VERIFICATION_TIMEOUT"},
		// … and optional
		{"a? b", "succeeds,succeeds", "a: passed; b: passed; score 1000; passed"},
		{"a? b", "fails,succeeds", "a: failed; b: passed; score 500; warning optional gate a; passed"},
		{"a? b", "times out,succeeds", "a: timeout (timed out after 1m0s); b: passed; score 500; warning optional gate a; passed"},
		// nothing configured
		{"", "", "score -1; warning VERIFICATION_EMPTY; passed"},
		// the rest
		{"a b c", "succeeds,fails", "a: passed; b: failed; c: not run; score 500; VERIFICATION_FAILED"},
		{"a b", "is missing", "a: error (sh: not found); b: not run; score 0; VERIFICATION_FAILED"},
		{"a b", "succeeds,is stopped", "a: passed; b: not run (stopped); score 1000; stopped"},
		{"a b", "runs no tests", "a: failed (no tests ran); b: not run; score 0; VERIFICATION_FAILED"},
		{"a? b", "runs no tests,tests pass", "a: failed (no tests ran); b: passed; score 500; warning optional gate a; passed"},
		{"a b", "tests pass,tests fail", "a: passed; b: failed; score 666; VERIFICATION_FAILED"},
		{"a b", "weakens a test", "a: failed (it changed protected files); b: not run; score 0; VERIFICATION_FAILED"},
		{"a? b", "weakens a test", "a: failed (it changed protected files); b: not run; score 0; VERIFICATION_FAILED"},
		{"a b", "succeeds,no disk", "a: passed; b: error (no disk); score 500; cannot run gate b: no disk"},
	} {
		r, err := Verify(t.Context(), specs(c.gates), play(t, strings.Split(c.does, ",")...), clock)
		if got := transcript(r, err); got != c.want {
			t.Errorf("%q does %q:\n got %s\nwant %s", c.gates, c.does, got, c.want)
		}
	}
}

func TestAGateThatTampers(t *testing.T) {
	t.Parallel()
	r, err := Verify(t.Context(), specs("build test"), play(t, "weakens a test"), clock)
	const want = "a protected file was changed: a_test.go (it was changed while gate build ran, but it is protected)"
	if err != nil || r.Passed() || r.Failure == nil || r.Failure.Summary != want || len(r.Tampered) != 1 {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestFailureNamesStepAndTests(t *testing.T) {
	t.Parallel()
	r, err := Verify(t.Context(), specs("tests"), play(t, "tests fail"), clock)
	if err != nil {
		t.Fatal(err)
	}
	if want := "tests: 2 of 3 failed (TestParse, TestLex)"; r.Summary != want {
		t.Errorf("summary %q, want %q", r.Summary, want)
	}
	f := r.Failure
	if f.Class != failure.TestFailure || f.Step != "tests" || len(f.Items) < 2 {
		t.Fatalf("failure %+v", f)
	}
	want := failure.Item{File: "a/parse_test.go", Line: 12, Test: "TestParse", Message: "got 1, want 2", Expected: "2", Received: "1"}
	if f.Items[0] != want {
		t.Errorf("item %+v, want %+v", f.Items[0], want)
	}
	g := r.Gates[0]
	if !g.Test || g.Passed != 1 || g.Total != 3 {
		t.Errorf("gate %+v", g)
	}
}

func TestTestGateWithoutTests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spec  Spec
		out   string
		green bool
	}{
		{"runner says none", Spec{}, goEmpty, false},
		{"allowed", Spec{AllowEmpty: true}, goEmpty, true},
		{"no test gate", Spec{}, "built", true},
		{"test gate of an unknown runner", Spec{Kind: KindTest}, "all is well", true},
		{"test gate that is silent", Spec{Kind: KindTest}, " \n", false},
		{"silent and allowed", Spec{Kind: KindTest, AllowEmpty: true}, "", true},
	} {
		c.spec.Command, c.spec.Required = "check", true
		run := func(context.Context, int, Spec) (Exec, error) { return Exec{Output: c.out}, nil }
		r, err := Verify(t.Context(), []Spec{c.spec}, run, clock)
		if err != nil || r.Passed() != c.green {
			t.Errorf("%s: passed %v, want %v (%v)", c.name, r.Passed(), c.green, err)
		}
		if r.Gates[0].Name != "check" {
			t.Errorf("%s: a gate without a name is named %q", c.name, r.Gates[0].Name)
		}
		if !c.green && (r.Failure.Class != failure.TestFailure || r.Failure.Kind != failure.Work) {
			t.Errorf("%s: %+v", c.name, r.Failure)
		}
	}
}

func TestVerifyStopsWithContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	run := func(context.Context, int, Spec) (Exec, error) {
		cancel()
		return Exec{}, nil
	}
	r, err := Verify(ctx, specs("a b"), run, clock)
	if got, want := transcript(r, err), "a: passed; b: not run; score 1000; stopped"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// A gate that changed what it judges has judged something else, whatever it says. What it
// writes beside is no reason to be red, and is named where a later gate is.
func TestAGateChangesWhatItJudges(t *testing.T) {
	t.Parallel()
	rewrites, report, red := Exec{Changed: []string{"a.go"}}, Exec{Added: []string{"report"}}, Exec{ExitCode: 1}
	for name, c := range map[string]struct {
		specs         string
		ends          []Exec
		passed        bool
		summary, said string // said is in the warnings
	}{
		"required": {"fmt test", []Exec{rewrites}, false, `fmt: the gate changed "a.go", which it judges`, ""},
		"optional": {"fmt? test", []Exec{rewrites, {}}, true, "1 of 2 gates passed", `fmt: the gate changed "a.go", which it judges`},
		"beside":   {"test lint", []Exec{report, {}}, true, "2 of 2 gates passed", ""},
		"missed":   {"test lint", []Exec{report, red}, false, "lint: exit status 1", `before gate lint "report" was removed`},
		"its own":  {"test lint", []Exec{{ExitCode: 1, Added: report.Added, Changed: rewrites.Changed}}, false, "test: exit status 1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := Verify(t.Context(), specs(c.specs), func(_ context.Context, n int, _ Spec) (Exec, error) { return c.ends[n], nil }, clock)
			said := strings.Join(r.Warnings, "\n")
			if err != nil || r.Passed() != c.passed || !strings.HasPrefix(r.Summary, c.summary) || !strings.Contains(said, c.said) || (said == "") != (c.said == "") {
				t.Errorf("passed %v: %q, warned %q, %v", r.Passed(), r.Summary, said, err)
			}
			if f := r.Failure; name == "required" && (f.Class != failure.Lint || f.Items[0].File != "a.go") {
				t.Errorf("failure %+v", f)
			}
		})
	}
}
