// Package gate judges an iteration: it runs the verification commands in
// order and says what passed, failed, timed out or did not run, and it finds
// changes to protected files.
//
// The package executes nothing itself: the caller gives it a [Run]. It never
// repairs, and never decides what follows from a red gate. It repeats a command
// only where that could not judge; see retry.go.
package gate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/process"
)

// The codes of a verification.
const (
	CodeTimeout = "VERIFICATION_TIMEOUT" // a required command ran into its time limit
	CodeFailed  = "VERIFICATION_FAILED"  // a required command failed, or is a test gate that ran no tests
	CodeEmpty   = "VERIFICATION_EMPTY"   // there are no commands
)

// KindTest marks a command as a test gate even if no parser knows its output.
const KindTest = "test"

// Spec is one verification command.
type Spec struct {
	Name    string // empty: named by its command
	Command string // for `sh -c`
	// Timeout limits the command; the caller's Run enforces it. 0 means that
	// Run applies a limit of its own.
	Timeout time.Duration
	// Fixed: the time was set for this command, so no strategy gives it more.
	Fixed bool
	// Required: false means that a failure is only a warning.
	Required bool
	// AllowEmpty: true means that a test gate may execute no tests.
	AllowEmpty bool
	Kind       string // "" or KindTest
	// Retries is how often it runs again when it is required and could not judge. Doubted:
	// also when it judged, since it may be flaky.
	Retries int
	Doubted bool
	// Origin is whose it is: see [loop.OfTask]. Criterion is what a check of a task shows, and
	// Files are put in the place of those of the same path before it runs, see [Spec.OnCopy].
	Origin, Criterion string
	Files             map[string]string
	// Landing: it runs when work is to land, and not in each iteration.
	Landing bool
	// Affected are patterns of the files that it is about; with none it is about all.
	Affected []string
	skip     string // why it does not run; see [SkipUnaffected]
}

// labelOf is the name that the user knows.
func (s Spec) labelOf() string {
	return cmp.Or(s.Name, s.Command)
}

// Run executes command number n (from 0) on the files that are judged and waits for its
// end. An error means that pawl itself could not do its part; how the command ended is
// no error.
type Run func(ctx context.Context, n int, s Spec) (Exec, error)

// Report is the result of a verification.
type Report struct {
	// Gates has one entry for each spec, in order; those after a red required
	// gate are "not run".
	Gates []loop.Gate
	// Failure is set when a required gate is red.
	Failure *failure.Analysis
	// Score is the quality in per mille; see score. -1 without gates.
	Score int
	// Summary is one line, e.g. "tests: 2 of 14 failed (TestParse, TestLex)".
	Summary string
	// Warnings are sentences about optional gates and about empty verification.
	Warnings []string
	// Stopped is true when ctx ended, or a command was stopped, before all
	// gates were judged. The report then passes nothing.
	Stopped bool
	// Tampered are the protected files that a command changed. None ran after it,
	// as it would have judged by other files.
	Tampered []Violation
	// Cold is true when the gates found the caches of the build tools empty.
	Cold bool
}

// Passed reports whether every required gate ran and passed.
func (r Report) Passed() bool {
	if r.Stopped || r.Failure != nil {
		return false
	}
	return !slices.ContainsFunc(r.Gates, IsRed)
}

// IsRed reports whether a required gate did not pass, or did not run.
func IsRed(g loop.Gate) bool { return g.Required && g.Status != loop.GatePassed }

// Verify runs specs in order. The first required gate that is red stops it;
// optional ones only warn. now is used for the times that a message names. The
// error is run's; the report then has what ran before.
func Verify(ctx context.Context, specs []Spec, run Run, now func() time.Time) (Report, error) {
	r := Report{Score: -1, Gates: make([]loop.Gate, len(specs))}
	if len(specs) == 0 {
		r.Summary = "no verification configured"
		r.Warnings = []string{CodeEmpty + ": no verification commands are configured; COMPLETE passes without " +
			"validation. Add commands under verification in pawl.yaml."}
		return r, nil
	}
	for i, s := range specs {
		r.Gates[i] = s.newGateRecord()
	}
	var failed error
	var added []string
	for i, s := range specs {
		if ctx.Err() != nil {
			r.Stopped = true
			break
		}
		if s.skip != "" {
			r.Gates[i].Note, r.Gates[i].Required = s.skip, false
			continue
		}
		e, tries, err := runUntilJudged(ctx, i, s, run, now)
		if err != nil {
			r.Gates[i].Status, r.Gates[i].Note = loop.GateError, err.Error()
			failed = fmt.Errorf("cannot run gate %s: %w", s.labelOf(), err)
			break
		}
		if !r.takeResult(i, s, e, now()) {
			r.blameMissing(s.labelOf(), added)
			break
		}
		added = append(added, e.Added...)
		if r.Gates[i].Tries = tries; r.Gates[i].Flaky() {
			r.Gates[i].Note = fmt.Sprintf("at try %d", tries)
			r.Warnings = append(r.Warnings, fmt.Sprintf("gate %s is flaky: it passed at try %d on the same tree",
				s.labelOf(), tries))
		}
	}
	r.Score = meanScoreOf(r.Gates)
	r.Summary = cmp.Or(r.Summary, r.summaryText())
	return r, failed
}

// takeResult judges one command and reports whether to continue.
func (r *Report) takeResult(i int, s Spec, e Exec, now time.Time) bool {
	g := &r.Gates[i]
	tests, known := judgeGate(g, s, e)
	if e.Stopped {
		g.Status, g.Note = loop.GateNotRun, "stopped"
		r.Stopped = true
		return false
	}
	if len(e.Tampered) > 0 {
		g.Status, g.Note = loop.GateFailed, "it changed protected files"
		return r.failTampered(g.Name, e.Tampered)
	}
	if g.Status == loop.GatePassed {
		return true
	}
	a := analyseRed(g, s, e, now)
	line := summaryLine(g, a, tests, known)
	if s.Origin == loop.Sealed {
		a, line = sealedFailure(s, g, a)
	}
	if !s.Required {
		r.Warnings = append(r.Warnings, "optional gate "+line)
		return true
	}
	a.Code = CodeFailed
	if g.Status == loop.GateTimedOut {
		a.Code = CodeTimeout
	}
	r.Failure, r.Summary = &a, line
	return false
}

// blameMissing says at a red gate what those before it wrote and it did not find.
func (r *Report) blameMissing(gate string, added []string) {
	if len(added) == 0 || r.Failure == nil || len(r.Tampered) > 0 {
		return
	}
	text := "before gate " + gate + " " + deliver.Some(added) + " was removed, which an earlier gate wrote; each " +
		"gate starts with the files that are judged, so let git ignore what gates share"
	r.Failure.Items = append(r.Failure.Items, failure.Item{Message: text + "."})
	r.Warnings = append(r.Warnings, text)
}

// failTampered makes a gate, also an optional one, the last that ran.
func (r *Report) failTampered(gate string, all []Violation) bool {
	for _, v := range all {
		v.Why = strings.Replace(v.Why, ", but", " while gate "+gate+" ran, but", 1)
		r.Tampered = append(r.Tampered, v)
	}
	a := TamperingFailure(r.Tampered)
	r.Failure, r.Summary = &a, a.Summary
	return false
}

// Judge judges one command that ended as a gate, by itself: how often it was tried is
// not known, nor whether it changed protected files.
func Judge(s Spec, e Exec) loop.Gate {
	g := s.newGateRecord()
	judgeGate(&g, s, e)
	return g
}

// judgeGate sets the gate's status and counts.
func judgeGate(g *loop.Gate, s Spec, e Exec) (failure.Tests, bool) {
	g.Elapsed, g.ExitCode, g.Fixed = e.Elapsed, e.ExitCode, s.Fixed
	tests, known := failure.ParseTests(e.Output)
	g.Test = known || s.Kind == KindTest
	if known {
		g.Passed, g.Total = tests.Passed, tests.Passed+tests.Failed
	}
	g.Status = e.Status()
	mustTest := g.Status == loop.GatePassed && !s.AllowEmpty
	switch {
	case g.Status == loop.GateError:
		g.Note = e.NotStarted
	case g.Status == loop.GateTimedOut:
		g.Note = "timed out after " + timeLimit(s, e).String()
	case g.Status == loop.GateFailed && e.ExitCode == 0 && e.Signal == "":
		g.Note = "the gate changed " + deliver.Some(e.Changed) + ", which it judges"
	case mustTest && known && g.Total == 0:
		g.Status, g.Note = loop.GateFailed, "no tests ran"
	case mustTest && s.Kind == KindTest && !known && strings.TrimSpace(e.Output) == "":
		g.Status, g.Note = loop.GateFailed, "no tests ran: the command printed nothing"
	}
	if s.Origin == loop.Sealed && g.Status != loop.GateError {
		hideDetails(g)
	}
	return tests, known
}

func timeLimit(s Spec, e Exec) time.Duration {
	if s.Timeout > 0 {
		return s.Timeout
	}
	return e.Elapsed.Round(time.Second)
}

func analyseRed(g *loop.Gate, s Spec, e Exec, now time.Time) failure.Analysis {
	output := e.Output
	if e.NotStarted != "" {
		output = e.NotStarted
	}
	a := failure.Analyse(failure.Evidence{
		Source: "gate", Name: s.labelOf(), ExitCode: e.ExitCode, Signal: e.Signal, TimedOut: e.TimedOut,
		Output: output, Green: e.Green, Now: now,
	})
	if e.Explain != nil && s.Origin != loop.Sealed {
		e.Explain(&a)
	}
	if g.Status == loop.GateTimedOut && strings.HasSuffix(a.Summary, "ended at its time limit") {
		a.Summary = fmt.Sprintf("timeout: gate %s reached its limit of %s", s.labelOf(), loop.Duration(timeLimit(s, e)))
	}
	if len(e.Changed) > 0 && g.Note != "" {
		return changedFailure(s, e, a, g.Note)
	}
	if g.Note != "" && g.Status == loop.GateFailed { // exit 0, but no tests
		a.Class, a.Kind, a.Transient, a.Severity = failure.TestFailure, failure.Work, false, failure.Medium
		a.Summary = "test failure: " + g.Note
		const advice = " executed no tests. Make it run the tests; an empty test run passes nothing."
		a.Items = []failure.Item{{Message: "The command " + s.Command + advice}}
		a.Actions = []string{"Make the command run the tests, or set allow_empty: true for this gate."}
	}
	return a
}

// changedFailure replaces the analysis of a gate that changed files: its verdict is about other
// files than those that it judges.
func changedFailure(s Spec, e Exec, a failure.Analysis, note string) failure.Analysis {
	a.Class, a.Kind, a.Transient, a.Severity = failure.Lint, failure.Work, false, failure.Low
	a.Summary = note
	a.Items = nil
	for _, path := range e.Changed[:min(len(e.Changed), maxViolations)] {
		a.Items = append(a.Items, failure.Item{File: path, Message: path + ": gate " + s.labelOf() + " changed it, " +
			"so its verdict is about another file. Leave it as the gate makes it, and the gate has nothing to change."})
	}
	a.Actions = []string{
		"Run " + s.Command + " before you end, and keep what it makes of the files.",
		"Have the command check without writing, or write where git ignores it.",
	}
	a.Fingerprint = failure.Fingerprint(a, e.Changed...)
	return a
}

// meanScoreOf is the mean over the gates that were judged, in per mille, rounded
// down: of a test gate with known counts the share of tests that passed, of
// any other 1000 or 0. A test gate that is red although all its tests passed
// counts 0. -1 when nothing was judged.
func meanScoreOf(gates []loop.Gate) int {
	sum, n := 0, 0
	for _, g := range gates {
		if g.Status == loop.GateNotRun {
			continue
		}
		n++
		tellsNothing := g.Total <= 0 || g.Passed >= g.Total
		switch {
		case g.Status != loop.GatePassed && tellsNothing:
		case g.Total > 0:
			sum += 1000 * g.Passed / g.Total
		default:
			sum += 1000
		}
	}
	if n == 0 {
		return -1
	}
	return sum / n
}

// maxSummary bounds a summary in bytes.
const maxSummary = 280

// summaryLine says in one line why a gate is red.
func summaryLine(g *loop.Gate, a failure.Analysis, tests failure.Tests, known bool) string {
	why := a.Summary
	switch {
	case g.Note != "":
		why = g.Note
	case known && tests.Failed > 0 && a.Class != failure.Permission: // what has to be allowed comes first
		why = fmt.Sprintf("%d of %d failed%s", tests.Failed, g.Total, failingNames(tests.Items))
	}
	return shortenToSummary(g.Name + ": " + why)
}

// shortenToSummary is a text as a summary.
func shortenToSummary(s string) string {
	return fault.Cut(strings.Join(strings.Fields(s), " "), maxSummary-len("…"))
}

// failingNames lists the first failing tests in brackets.
func failingNames(items []failure.Item) string {
	const most = 5
	var out []string
	for _, i := range items {
		if i.Test == "" {
			continue
		}
		if len(out) == most {
			out = append(out, "…")
			break
		}
		out = append(out, i.Test)
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, ", ") + ")"
}

// summaryText says in one line how a verification without a red gate went.
func (r *Report) summaryText() string {
	passed := 0
	for _, g := range r.Gates {
		if g.Status == loop.GatePassed {
			passed++
		}
		if g.Status == loop.GateError {
			return g.Name + ": " + g.Note
		}
	}
	line := fmt.Sprintf("%d of %d gates passed", passed, len(r.Gates))
	if r.Stopped {
		line += ", then stopped"
	}
	return line
}

// builtins are words of the shell that are no programs, or stand before one.
var builtins = strings.Fields(`! : [ [[ break cd command continue echo eval exec exit export false hash local printf pwd
	read readonly return set shift test time times trap true type ulimit umask unset wait if then else elif fi for while
	until do done case esac in function { }`)

// uncertain is what makes it impossible to know from its text which programs a
// command needs, or where they are looked for.
var uncertain = lazy.Regexp(
	"`|\\$\\(|<<|\\bPATH=|\\beval\\b|\\balias\\b|\\(\\)|(^|[;&|\\n]\\s*)(source|\\.|if|for|while|case|until)\\s")

var assignment = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*=`)

// Programs are the names of the programs that a command needs for certain and that
// are looked for in PATH. Of a command that is not plain none is known.
func Programs(command string) []string {
	if uncertain().MatchString(command) {
		return nil
	}
	certain, _, _ := strings.Cut(command, "||")
	var found []string
	for _, simple := range splitCommands(certain) {
		for _, word := range strings.Fields(simple) {
			if assignment().MatchString(word) {
				continue
			}
			plain := !strings.ContainsAny(word, `/$"'\*?{}()<>#&`+"~")
			if plain && !slices.Contains(builtins, word) && !slices.Contains(found, word) {
				found = append(found, word)
			}
			break
		}
	}
	return found
}

// splitCommands cuts a text at what separates commands, outside of quotes.
func splitCommands(text string) []string {
	var out []string
	var quote rune
	start := 0
	for i, c := range text {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '&' && i > 0 && text[i-1] == '>': // 2>&1
		case strings.ContainsRune(";|&\n", c):
			out = append(out, text[start:i])
			start = i + 1
		}
	}
	return append(out, text[start:])
}

// A required gate that could not judge runs again before anybody is blamed or
// paid: one that a signal ended, or that is red with a class that passes by
// itself, such as a connection that was refused.

// Retries is how often a command without a number of its own runs again.
const Retries = 2

const firstWait = time.Second // doubles twice with each

// runUntilJudged runs a command until it could judge, and says how often it ran.
func runUntilJudged(ctx context.Context, i int, s Spec, run Run, now func() time.Time) (e Exec, tries int, err error) {
	for wait := firstWait; ; wait *= 4 {
		e, err = run(ctx, i, s)
		tries++
		if err != nil || tries > s.Retries || !couldNotJudge(s, e, now()) || !process.Sleep(ctx, wait) {
			return e, tries, err
		}
	}
}

// couldNotJudge reports whether the gate is required, and could not judge.
func couldNotJudge(s Spec, e Exec, now time.Time) bool {
	ended := e.Stopped || e.TimedOut || e.NotStarted != "" || len(e.Tampered) > 0
	if !s.Required || ended {
		return false
	}
	var g loop.Gate
	judgeGate(&g, s, e)
	if g.Status == loop.GatePassed {
		return false
	}
	return s.Doubted || e.Signal != "" || analyseRed(&g, s, e, now).Transient
}

// Slow is how long a gate runs before that is said.
const Slow = 30 * time.Second

// SlowText says of a gate that runs for long which it is, and how long it may take.
func SlowText(s Spec, since time.Time) string {
	const clock = "15:04:05"
	since = since.Local()
	return fmt.Sprintf("gate %s has run since %s, and has time until %s", s.Name, since.Format(clock),
		since.Add(s.Timeout).Format(clock))
}
