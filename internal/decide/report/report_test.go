package report

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/signal"
)

var rewrite = flag.Bool("rewrite", false, "write the reports that the tests compare with")

var began = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// at is a time of the sample run, in seconds.
func at(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }

func gates(seconds int, tests loop.GateStatus, passed int) []loop.Gate {
	s := time.Second
	return []loop.Gate{
		{Name: "build", Required: true, Status: loop.GatePassed, Elapsed: 2 * s},
		{Name: "tests", Required: true, Status: tests, Elapsed: time.Duration(seconds) * s, Test: true, Passed: passed, Total: 42},
		{Name: "lint", Status: loop.GateNotRun},
	}
}

// sample is a run in which most things happen: a rate limit, failures in two
// ways, a crash, a review that rejects, and a question in the end.
func sample() Input {
	fails := &failure.Analysis{
		Class: failure.TestFailure, Severity: failure.Medium, Fingerprint: "f1", Step: "tests",
		Summary: "test failure: 2 tests failed (TestMeanOfNothing, TestSum)",
		Items: []failure.Item{
			{File: "calc/calc_test.go", Line: 13, Test: "TestMeanOfNothing", Message: "mean of nothing", Expected: "0", Received: "NaN"},
			{File: "calc/calc_test.go", Line: 27, Test: "TestSum", Message: "sum of one", Expected: "1", Received: "0"},
		},
		Actions: []string{"Look at what the test expects before you change the code."},
	}
	limit := &failure.Analysis{Class: failure.RateLimit, Transient: true, Severity: failure.Low, Fingerprint: "f2", Summary: "rate limit: 429 Too many requests", Actions: []string{"Wait and try again."}}
	timeout := &failure.Analysis{Class: failure.Timeout, Transient: true, Severity: failure.Medium, Fingerprint: "f3", Step: "tests", Summary: "tests timed out after 1m0s"}
	record := func(n, attempt, start, agent int, outcome loop.Outcome, strategy string) loop.Record {
		return loop.Record{
			Number: n, Attempt: attempt, StartedAt: at(start), Elapsed: time.Duration(agent) * time.Second, Agent: "claude", Strategy: strategy, Progress: -1, Score: -1,
			Outcome: outcome, Cost: loop.MicroUSD(120_000 * agent / 10), CostSource: "reported", TokensIn: int64(agent) * 1400, TokensOut: int64(agent) * 90,
		}
	}
	one := record(1, 1, 0, 4, loop.Waited, "default")
	one.Failure, one.Exit.Code = limit, 1
	again := record(1, 2, 35, 48, loop.Failed, "default")
	again.Gates, again.Failure, again.Files = gates(9, loop.GateFailed, 40), fails, []string{"calc/calc.go", "calc/mean.go"}
	again.Signal = signal.Signal{Kind: signal.Complete}
	two := record(2, 1, 100, 55, loop.Failed, "diagnose")
	two.Gates, two.Failure, two.Files = gates(8, loop.GateFailed, 40), fails, []string{"calc/calc.go"}
	three := record(3, 1, 170, 62, loop.Failed, "aggressive-timeout")
	three.Gates, three.Failure, three.Files = gates(60, loop.GateTimedOut, -1), timeout, []string{"calc/calc.go", "calc/calc_test.go"}
	three.Gates[1].Total, three.Tampered = -1, []string{"calc/calc_test.go"}
	four := record(4, 1, 310, 41, loop.Failed, "diagnose")
	four.Gates, four.Files = gates(11, loop.GatePassed, 42), []string{"calc/calc.go", "calc/mean.go", "docs/calc.md"}
	four.Signal = signal.Signal{Kind: signal.Complete}
	four.Review = &loop.Review{
		Verdict: loop.Rejected, Agent: "codex", Elapsed: 24 * time.Second, Summary: "the mean of nothing is now 0 without a word in the documentation",
		Items: []loop.Finding{{Item: failure.Item{File: "calc/mean.go", Line: 8, Message: "say in the comment what the mean of nothing is"}, Severity: failure.High}},
	}
	four.Failure = four.Review.Rejection()
	in := Input{
		Run: "6h8w7p2r", Name: "repair", Kind: "procedure", Status: loop.Blocked, Why: "Iteration safety guard: repeated_failure", StartedAt: began, Now: at(900),
		Records: []loop.Record{one, again, two, three, four},
		Moments: []Moment{
			{At: at(0), Kind: Began}, {At: at(4), Kind: WaitBegan, Text: "rate limit of claude"}, {At: at(34), Kind: WaitEnded},
			{At: at(94), Kind: Ended, Number: 1, Attempt: 2}, {At: at(94), Kind: Chosen, Number: 2, Attempt: 1, Text: "made for test_failure, not tried yet"},
			{At: at(165), Kind: Ended, Number: 2, Attempt: 1}, {At: at(165), Kind: Chosen, Number: 3, Attempt: 1, Text: "made for timeout; helped in 80 % of its uses here"},
			{At: at(172), Kind: Warned, Text: "80 % of the allowed cost is used: $4.10 of $5.00"},
			{At: at(294), Kind: Ended, Number: 3, Attempt: 1},
			{At: at(300), Kind: Resumed, Text: "interrupted"}, {At: at(301), Kind: Recovered, Text: "the agent and its supervisor had ended"},
			{At: at(388), Kind: Ended, Number: 4, Attempt: 1}, {At: at(389), Kind: Asked, Text: "The same failure came back 5 times"}, {At: at(389), Kind: Rested, Text: "blocked"},
		},
		Changes: &Changes{Added: 31, Deleted: 12, Files: []File{
			{Status: "modified", Path: "calc/calc.go"}, {Status: "modified", Path: "calc/calc_test.go"}, {Status: "added", Path: "calc/mean.go"},
			{Status: "added", Path: "docs/calc.md"}, {Status: "deleted", Path: "calc/old.go"},
		}},
		Next: []Advice{
			{"Choose an option", "pawl answer 6h8w7p2r NUMBER"}, {"Continue as before", "pawl resume 6h8w7p2r"},
			{"See what it changed", "pawl show 6h8w7p2r --diff"}, {"Undo what it changed", "pawl rollback 6h8w7p2r --to 0"},
		},
		Sandbox: "normal: files, processes and network by the operating system", Version: "v0.1.0",
	}
	in.State = loop.State{
		Status: loop.Blocked, Iteration: 4, Limit: 10,
		Spent: loop.Spent{Cost: 2_520_000, CostKnown: true, TokensIn: 294_000, TokensOut: 18_900, Calls: 61, Wall: 384 * time.Second},
		Asking: loop.Asking{Question: &loop.Question{
			Text: "The same failure came back: is the mean of nothing 0, or an error?", Pattern: "the same test fails in iterations 1 and 2",
			Attempts: []string{"1 default: 2 tests failed", "2 diagnose: 2 tests failed"},
			Choices:  []control.Choice{{Text: "Continue with advice"}, {Text: "Change the test"}, {Text: "Give the task up"}},
		}},
	}
	return in
}

// flowing is a workflow that came to its end in the third pass.
func flowing() Input {
	limit := &failure.Analysis{
		Class: failure.Timeout, Transient: true, Severity: failure.Medium, Fingerprint: "f1", Step: "cves", Summary: "timeout: Connection timed out after 10 s",
		Actions: []string{"Find what hangs or is slow."},
	}
	pass := func(n, start, took, done int, f *failure.Analysis, strategy string) loop.Record {
		r := loop.Record{
			Number: n, Attempt: 1, StartedAt: at(start), Elapsed: time.Duration(took) * time.Second, Strategy: strategy, Progress: -1, Score: -1,
			Outcome: loop.Success, Failure: f, Steps: &loop.Steps{Total: 5, Done: done, Missed: 1, Complete: done == 4},
		}
		if f != nil {
			r.Outcome, r.Exit.Code = loop.Failed, 1
		}
		return r
	}
	step := func(id, kind, status string, iteration, start, took int) Execution {
		return Execution{Step: id, Kind: kind, Status: status, Iteration: iteration, Try: 1, StartedAt: at(start), Elapsed: time.Duration(took) * time.Second}
	}
	in := Input{
		Run: "q55nbkr7", Name: "security-audit", Kind: "workflow", Status: loop.Completed, Why: "4 of 5 steps done, 1 optional failed", StartedAt: began, Now: at(300),
		Records: []loop.Record{pass(1, 0, 30, 1, limit, "default"), pass(2, 35, 12, 1, limit, "aggressive-timeout"), pass(3, 52, 70, 4, nil, "reduced-parallelism")},
		Moments: []Moment{
			{At: at(0), Kind: Began}, {At: at(31), Kind: Ended, Number: 1, Attempt: 1}, {At: at(31), Kind: Chosen, Number: 2, Attempt: 1, Text: "made for timeout, not tried yet"},
			{At: at(31), Kind: WaitBegan, Text: "backoff after timeout"}, {At: at(35), Kind: WaitEnded}, {At: at(48), Kind: Ended, Number: 2, Attempt: 1},
			{At: at(48), Kind: WaitBegan, Text: "backoff after timeout"}, {At: at(52), Kind: WaitEnded}, {At: at(123), Kind: Ended, Number: 3, Attempt: 1}, {At: at(123), Kind: Rested},
		},
		Executions: []Execution{
			step("deps", "run", "success", 1, 0, 18), step("audit licenses of all modules", "run", "failure", 1, 0, 4), step("cves", "run", "failure", 1, 18, 12),
			step("cves", "run", "failure", 2, 35, 12), step("cves", "run", "success", 3, 52, 3), step("report", "agent", "success", 3, 55, 61), step("publish (eu)", "run", "success", 3, 116, 6),
		},
		Version: "v0.1.0",
	}
	e := in.Executions
	e[0].Output, e[1].Optional, e[1].Failure = "resolving\n214 packages\n", true, "exit status 1: licenses: not found"
	e[2].Failure, e[3].Failure, e[4].Alternative, e[4].Output = limit.Summary, limit.Summary, 1, "12 advisories"
	e[5].Agent, e[5].Title, e[5].Output = "claude", "Write the report", "report.md is written"
	in.State = loop.State{
		Status: loop.Completed, Iteration: 3, Limit: 10,
		Spent: loop.Spent{Cost: 310_000, CostKnown: true, TokensIn: 41_000, TokensOut: 2_300, Calls: 7, Wall: 123 * time.Second},
	}
	return in
}

// The samples' reports are in testdata, so that a change can be looked at. Write
// them again with -rewrite, and read the difference.
func TestSample(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]Input{"sample": sample(), "workflow": flowing()} {
		r := New(in)
		page, err := r.HTML()
		if err != nil {
			t.Fatal(err)
		}
		checkPage(t, page)
		text := markdownOf(t, r)
		checkMarkdown(t, text)
		golden(t, name+".md", text)
		golden(t, name+".html", page)
	}
}

func markdownOf(t *testing.T, r *Report) string {
	t.Helper()
	text, err := r.Markdown()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what it was: go test ./internal/decide/report -rewrite, and look at the difference", name)
	}
}

func TestLastLine(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"": "", "\n \n": "", "one": "one", "one\ntwo\r\n\n": "two", "done\n<promise>COMPLETE</promise>\n": "done",
		"<promise>COMPLETE</promise>": "<promise>COMPLETE</promise>", "\n<promise>PROGRESS: 50</promise>\n\n<promise>COMPLETE</promise>": "<promise>COMPLETE</promise>",
		"no <promise>COMPLETE</promise>": "no <promise>COMPLETE</promise>",
	} {
		if got := lastSpokenLine(output); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}
