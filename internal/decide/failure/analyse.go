package failure

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// Analyse says what went wrong. Evidence is weighed: typed errors of the
// provider, then pawl's own time limit, then what tools say in their own
// vocabulary, then the exit status, then words in context; of equal ones the
// later counts. Its cost is linear in the examined part of the output, which
// is bounded, whatever the output holds.
func Analyse(e Evidence) Analysis {
	said := untyped(e)
	if said != "" {
		e.Output = said // nothing else that the program printed knows better
	}
	out := readable(bound(e.Output))
	t := split(out.text)
	t.short = len(e.Output) > headMax+tailMax || strings.Contains(e.Output, " bytes in all …\n")
	h := findHits(t)
	h.own = said != ""
	v := judge(e, h, out)
	calls := h.own || e.endedOffline(h, v)
	if calls && ofProvider(v.class) {
		v.flags |= provider
	}
	return report(e, h, v)
}

// endedOffline: the stream has no errors of its own calls, and the last words are of
// the network: it is the way to the model, but for what lies on this machine.
func (e Evidence) endedOffline(h *hits, v verdict) bool {
	if e.Source != "agent" || v.class != Network || v.line < closingLines(h.t) || e.succeeded() {
		return false
	}
	return !words.Has(words.Small(h.t.line(v.line)), "localhost", "127.0.0.1", "[::1]", "docker", "podman")
}

// verdict is the class that the evidence speaks for, and why.
type verdict struct {
	class  Class
	weight int
	flags  flag
	line   int       // of the text; -1 when the text did not decide
	typed  *APIError // the typed error that decided, if one did
}

// better keeps the heavier of two verdicts; of equals the later one.
func (v verdict) better(o verdict) verdict {
	if o.weight > v.weight || o.weight == v.weight && o.line >= v.line {
		return o
	}
	return v
}

func judge(e Evidence, h *hits, out reading) verdict {
	polite := e.Source == "agent" && e.succeeded() && h.endsPolitely()
	if out.prose || polite {
		return judgeProse(h)
	}
	v := byWords(h, func(Class) bool { return true })
	v = h.placed(byExit(e).better(v))
	if typed := byTypedErrors(e); typed.typed != nil {
		v = typed.better(v)
	}
	if v.weight == 0 && e.CutOff {
		return verdict{class: Crash, weight: 1, flags: retries, line: -1}
	}
	if v.weight > floorWeight {
		return v
	}
	if tests, ok := parseTests(h.t); ok && tests.Failed > 0 { // a runner that only counts
		return verdict{class: TestFailure, weight: suiteWeight, line: -1}
	}
	if formed := byForm(h); formed.weight > 0 {
		return formed
	}
	return v
}

// floorWeight is the most that a rule weighs which counts only where nothing else is known.
const floorWeight = 16

// placed finds the line of a command that is missing, where only the exit status
// says so: the last that names one.
func (h *hits) placed(v verdict) verdict {
	for i := h.t.len() - 1; i >= closingLines(h.t) && v.line < 0 && v.class == MissingCommand; i-- {
		if missingCommand(h.t.line(i)) != "" {
			v.line = i
		}
	}
	return v
}

// succeeded is true for a program that ended by itself and reported no error
// but by what it printed.
func (e Evidence) succeeded() bool {
	return e.ExitCode == 0 && e.Signal == "" && !e.TimedOut && !e.CutOff && len(e.Errors) == 0
}

// endsPolitely tells whether an output ends as an agent's last message does that
// asks, or says that nothing is to do: what it talks about did not stop it.
func (h *hits) endsPolitely() bool {
	from := closingLines(h.t)
	return h.last(func(r *rule) bool { return r.Class == NoProgress && r.Weight < 70 }, from) != nil
}

// judgeProse reads the last message of an agent that reported no error: it waits
// for a permission, or it did nothing.
func judgeProse(h *hits) verdict {
	v := verdict{class: NoProgress, weight: 30, line: max(0, lastLine(h.t))}
	told := byWords(h, func(c Class) bool { return c == Permission || c == NoProgress })
	if told.class == Permission && told.weight < 80 { // it talks about a permission
		told = byWords(h, func(c Class) bool { return c == NoProgress })
	}
	return v.better(told)
}

// byExit reads how the process ended.
func byExit(e Evidence) verdict {
	at := func(c Class, weight int, f flag) verdict {
		return verdict{class: c, weight: weight, flags: f, line: -1}
	}
	switch sig := strings.ToLower(e.Signal); {
	case e.TimedOut:
		return at(Timeout, 96, 0)
	case strings.Contains(sig, "kill"):
		return at(Crash, 73, retries)
	case sig != "" && !strings.Contains(sig, "term") && !strings.Contains(sig, "int") && !strings.Contains(sig, "hang"):
		return at(Crash, 85, 0)
	}
	switch e.ExitCode {
	case 124:
		return at(Timeout, 57, 0)
	case 126:
		return at(Permission, 58, 0)
	case 127:
		return at(MissingCommand, 59, 0)
	case 137, 247: // 128+KILL, and 256-9 of some runtimes
		return at(Crash, 73, retries)
	case 132, 134, 135, 136, 138, 139: // 128 + ILL, ABRT, BUS, FPE, SEGV
		return at(Crash, 79, 0)
	}
	return verdict{class: Unknown, line: -1}
}

const (
	// loadBonus is what a cause gains when a runner says that it could not even
	// load a test file.
	loadBonus = 5
	// retryPenalty is what evidence loses where a program says that it tries
	// again: what counts is what came of it.
	retryPenalty = 12
	// warningPenalty is what evidence loses in a warning.
	warningPenalty = 45
)

// byWords weighs the places at which rules of the asked classes hold.
func byWords(h *hits, asked func(Class) bool) verdict {
	v := verdict{class: Unknown, line: -1}
	closingFrom := closingLines(h.t)
	loads := h.last(func(r *rule) bool { return r.Flags&loading != 0 }, 0) != nil
	for _, one := range h.heavy {
		r := one.rule
		w := r.Weight
		if w+loadBonus < v.weight {
			break // lighter ones cannot win any more
		}
		early := r.Flags&closing != 0 && one.line < closingFrom
		if !asked(r.Class) || r.Flags&loading != 0 || early {
			continue
		}
		line := h.t.line(one.line)
		if r.Flags&loud == 0 && warns(line) {
			w -= warningPenalty
		}
		if goesOn(line) {
			w -= retryPenalty
		}
		cause := r.Class == Dependency || r.Class == CompileError
		if loads && cause {
			w += loadBonus
		}
		later := w == v.weight && one.line > v.line
		heavier := w > v.weight || later
		if w > 0 && heavier && h.holds(one) {
			v = verdict{class: r.Class, weight: w, flags: r.Flags, line: one.line}
		}
	}
	return settle(h, v)
}

// last returns the last hit in the lines from the given one on whose rule is
// asked for and holds, or nil.
func (h *hits) last(asked func(r *rule) bool, from int) *hit {
	for _, one := range slices.Backward(h.all) {
		if one.line >= from && asked(one.rule) && h.holds(one) {
			return one
		}
	}
	return nil
}

// settle corrects a verdict that two rules together know better than one.
func settle(h *hits, v verdict) verdict {
	if v.class == Unknown || v.class == TestFailure {
		return v
	}
	if red := h.testVerdict(); red != nil && !beatsTests(h, red.line, v) {
		return verdict{class: TestFailure, weight: red.rule.Weight, line: red.line}
	}
	if v.class == Permission && v.weight <= 78 {
		// The rights of files have no status of HTTP.
		if h.last(func(r *rule) bool { return r.Class == Auth && r.Weight == 76 }, 0) != nil {
			return verdict{class: Auth, weight: v.weight, line: v.line}
		}
	}
	if v.class == Dependency && fetches(h.t.line(v.line)) {
		// A package that could not be fetched is not a package that is not there.
		if away := h.last(func(r *rule) bool { return r.Class == Network && r.Weight >= 70 }, 0); away != nil {
			return verdict{class: Network, weight: v.weight, flags: away.rule.Flags, line: away.line}
		}
	}
	if v.class == Validation && words.Has(h.t.line(v.line), ": dial tcp ", ": connection refused", "ECONNREFUSED") {
		return verdict{class: Network, weight: v.weight, line: v.line} // what could not be asked was not refused
	}
	return v
}

// suiteWeight is the least weight of a rule that says that tests have failed,
// as against one that has seen an assertion.
const suiteWeight = 84

// testVerdict returns the last hit where a test runner says that tests failed,
// or nil.
func (h *hits) testVerdict() *hit {
	for _, one := range slices.Backward(h.all) {
		suite := one.rule.Class == TestFailure && one.rule.Weight >= suiteWeight
		if suite && h.holds(one) && !warns(h.t.line(one.line)) {
			return one
		}
	}
	return nil
}

// beatsTests tells whether v explains a red test run, reported at line at,
// better than the tests do. What tests print about the network, keys or limits
// is their business; that they could not be built, loaded or ended is not.
func beatsTests(h *hits, at int, v verdict) bool {
	switch v.class {
	case CompileError:
		return v.weight >= 82
	case Dependency:
		return v.weight >= 86
	case Timeout:
		return v.weight >= 90
	case Crash, ResourceExhausted:
		return v.weight >= 93
	case QuotaExhausted, RateLimit, ServiceUnavailable, ContextLength, Auth:
		// An agent that ran the tests and was stopped afterwards.
		return v.flags&provider != 0 && v.line >= closingLines(h.t)
	default:
	}
	after := v.class == Lint || v.class == GitState || v.class == MergeConflict
	return after && v.weight >= 84 && v.line > at
}

// fetches tells whether line is about getting a package from elsewhere, which
// fails in the same words whether the package or the way to it is missing.
func fetches(line string) bool {
	return words.Has(line, "No matching distribution", "Could not find a version", "Could not resolve",
		"could not resolve",
		"Non-resolvable", "Could not find artifact", "failed to get")
}

var warning = lazy.Regexp(`^[ \t\[(*\-!#>]*(?i:warn|npm warn|remark:|info|debug|note:|hint:|trace:|deprecat|notice)|^ {1,4}(?:i|ℹ|help:) `)

var leveled = lazy.Regexp(`^[^\[]{0,39}(?:\[[^\[]{0,50}){0,3}\[(?:WARN|INFO|DEBUG|warn|info|debug|TRACE)`)

// warns tells whether line is a warning or less.
func warns(line string) bool {
	if warning().MatchString(line) {
		return true
	}
	if strings.Contains(line, "[") && leveled().MatchString(line) { // "… [WARN] …"
		return true
	}
	return strings.Contains(line, "arning") && words.Has(line, ": warning:", ": warning ", "Warning: ")
}

var finalRetry = lazy.Regexp(`(?i)after retrying|max retries|stopped retrying|giving up`)

// goesOn tells whether line says that something is tried again.
func goesOn(line string) bool {
	return strings.Contains(words.Small(line), "retrying") && !finalRetry().MatchString(line)
}

// closingLines returns the number of the first of the last eight lines that
// are not blank.
func closingLines(t text) int {
	seen := 0
	for i := t.len() - 1; i >= 0; i-- {
		if strings.TrimSpace(t.line(i)) != "" {
			if seen++; seen == 8 {
				return i
			}
		}
	}
	return 0
}

func lastLine(t text) int {
	for i := t.len() - 1; i >= 0; i-- {
		if strings.TrimSpace(t.line(i)) != "" {
			return i
		}
	}
	return -1
}
