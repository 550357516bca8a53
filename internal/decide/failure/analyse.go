package failure

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/runners"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// Analyse classifies a failure. It weighs the evidence in this order: typed errors of the provider,
// pawl's own time limit, what tools say in their own vocabulary, the exit status, words in context;
// among equals the later one counts. Its cost is linear in the examined part of the output, which
// is bounded.
func Analyse(e Evidence) Analysis {
	said := untypedMessage(e)
	if said != "" {
		e.Output = said // nothing else that the program printed knows better
	}
	out := printed.Read(printed.Bound(e.Output))
	t := printed.Split(out.Text)
	t.Short = len(e.Output) > printed.HeadMax+printed.TailMax || strings.Contains(e.Output, " bytes in all …\n")
	h := findHits(t)
	h.own = said != ""
	v := judgeOutput(e, h, out)
	calls := h.own || e.endedByProvider(h, v)
	if calls && isProviderFault(v.class) {
		v.flags |= provider
	}
	return makeAnalysis(e, h, v)
}

// endedByProvider: the stream has no errors of its own calls, and the last words are of
// the network, a limit or an outage: it is the model's or the way to it, but for what lies on this machine.
func (e Evidence) endedByProvider(h *hits, v verdict) bool {
	if e.Source != "agent" || v.line < closingLines(h.t) || e.exitedCleanly() {
		return false
	}
	line := h.t.LineAt(v.line)
	if v.class == Network {
		return !words.Has(words.Small(line), "localhost", "127.0.0.1", "[::1]", "docker", "podman")
	}
	atLimit := v.class == RateLimit || v.class == ServiceUnavailable
	return atLimit && !isAboutOthers().MatchString(line)
}

// isAboutOthers matches a line about a limit that is not the program's own: an item of a summary, a quotation, words
// about code and tests, a name of another program or of this machine.
var isAboutOthers = lazy.Regexp("^\\s*(?:[-+*>#|]|\\d+[.)] )|[`\"]\\S*[45]\\d\\d|`" +
	`|(?i)^\s*(?:npm|pnpm|yarn|pip|curl|wget|git|fatal|remote|docker|podman|toomanyrequests)\b|localhost|127\.0\.0\.1` +
	`|\b(?:I|we|tests?|expect(?:s|ed)?|assert\w*|mock\w*|handl\w+|add(?:s|ed))\b` +
	`|\b(?:implement\w*|endpoint|return(?:s|ed)|got|want)\b`)

// verdict is the class that the evidence speaks for, and why.
type verdict struct {
	class  Class
	weight int
	flags  flag
	line   int       // of the text; -1 when the text did not decide
	typed  *APIError // the typed error that decided, if one did
}

// orHeavier returns the heavier of two verdicts; of equals the later one.
func (v verdict) orHeavier(o verdict) verdict {
	if o.weight > v.weight || o.weight == v.weight && o.line >= v.line {
		return o
	}
	return v
}

func judgeOutput(e Evidence, h *hits, out printed.Reading) verdict {
	polite := e.Source == "agent" && e.exitedCleanly() && h.endsPolitely()
	if out.Prose || polite {
		return judgeProse(h)
	}
	v := verdictByWords(h, func(Class) bool { return true })
	v = h.placeMissingCommand(verdictByExit(e).orHeavier(v))
	if typed := byTypedErrors(e); typed.typed != nil {
		v = typed.orHeavier(v)
	}
	if v.weight == 0 && e.CutOff {
		return verdict{class: Crash, weight: onlyCutOff, flags: retries, line: -1}
	}
	if v.weight > floorWeight {
		return v
	}
	if tests, ok := runners.Read(h.t); ok && tests.Failed > 0 { // a runner that only counts
		return verdict{class: TestFailure, weight: suiteWeight, line: -1}
	}
	repaired := v.class == Unknown || v.class == Validation && v.flags == 0
	if guessed := guessClass(h); guessed.class != Unknown && repaired && e.Source != "agent" {
		return guessed
	}
	return v
}

// onlyCutOff weighs a stream without an end, of which nothing else is known.
const onlyCutOff = 1

// floorWeight is the most that a rule weighs which counts only where nothing else is known.
const floorWeight = 16

// placeMissingCommand sets the line of a verdict that only the exit status made: the last line that
// names a missing command.
func (h *hits) placeMissingCommand(v verdict) verdict {
	for i := h.t.LineCount() - 1; i >= closingLines(h.t) && v.line < 0 && v.class == MissingCommand; i-- {
		if missingCommand(h.t.LineAt(i)) != "" {
			v.line = i
		}
	}
	return v
}

// exitedCleanly reports whether a program ended by itself and reported no error other than in its
// output.
func (e Evidence) exitedCleanly() bool {
	return e.ExitCode == 0 && e.Signal == "" && !e.TimedOut && !e.CutOff && len(e.Errors) == 0
}

// endsPolitely reports whether an output ends like an agent's last message that asks a question or
// says that there is nothing to do. The problems that it talks about did not stop it.
func (h *hits) endsPolitely() bool {
	from := closingLines(h.t)
	return h.lastHitSince(func(r *rule) bool { return r.Class == NoProgress && r.Weight < 70 }, from) != nil
}

// judgeProse reads the last message of an agent that reported no error: it waits
// for a permission, or it did nothing.
func judgeProse(h *hits) verdict {
	v := verdict{class: NoProgress, weight: 30, line: max(0, lastFilledLine(h.t))}
	told := verdictByWords(h, func(c Class) bool { return c == Permission || c == NoProgress })
	if told.class == Permission && told.weight < 80 { // it talks about a permission
		told = verdictByWords(h, func(c Class) bool { return c == NoProgress })
	}
	return v.orHeavier(told)
}

// verdictByExit reads how the process ended.
func verdictByExit(e Evidence) verdict {
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

// verdictByWords weighs the places at which rules of the asked classes hold.
func verdictByWords(h *hits, asked func(Class) bool) verdict {
	v := verdict{class: Unknown, line: -1}
	closingFrom := closingLines(h.t)
	loads := h.lastHitSince(func(r *rule) bool { return r.Flags&loading != 0 }, 0) != nil
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
		line := h.t.LineAt(one.line)
		if r.Flags&loud == 0 && isWarning(line) {
			w -= warningPenalty
		}
		if announcesRetry(line) {
			w -= retryPenalty
		}
		cause := r.Class == Dependency || r.Class == CompileError
		if loads && cause {
			w += loadBonus
		}
		later := w == v.weight && one.line > v.line
		heavier := w > v.weight || later
		if w > 0 && heavier && h.ruleHoldsAt(one) {
			v = verdict{class: r.Class, weight: w, flags: r.Flags, line: one.line}
		}
	}
	return correctVerdict(h, v)
}

// lastHitSince returns the last hit in the lines from the given one on whose rule is asked for and
// holds, or nil.
func (h *hits) lastHitSince(asked func(r *rule) bool, from int) *hit {
	for _, one := range slices.Backward(h.all) {
		if one.line >= from && asked(one.rule) && h.ruleHoldsAt(one) {
			return one
		}
	}
	return nil
}

// correctVerdict corrects a verdict where two rules together show another cause.
func correctVerdict(h *hits, v verdict) verdict {
	if v.class == Unknown || v.class == TestFailure {
		return v
	}
	if red := h.testVerdict(); red != nil && !beatsTests(h, red.line, v) {
		return verdict{class: TestFailure, weight: red.rule.Weight, line: red.line}
	}
	if v.class == Permission && v.weight <= 78 {
		// The rights of files have no status of HTTP.
		if h.lastHitSince(func(r *rule) bool { return r.Class == Auth && r.Weight == 76 }, 0) != nil {
			return verdict{class: Auth, weight: v.weight, line: v.line}
		}
	}
	if v.class == Dependency && fetchesPackage(h.t.LineAt(v.line)) {
		// A package that could not be fetched is not a package that is not there.
		refused := func(r *rule) bool { return slices.Contains([]Class{Network, RateLimit}, r.Class) && r.Weight >= 70 }
		if away := h.lastHitSince(refused, 0); away != nil {
			return verdict{class: away.rule.Class, weight: v.weight, flags: away.rule.Flags, line: away.line}
		}
	}
	if v.class == Validation && words.Has(h.t.LineAt(v.line), "load config", "loading config") {
		// What the configuration needs is the cause.
		missing := func(r *rule) bool { return r.Class == Dependency && r.Weight >= 84 }
		if needs := h.lastHitSince(missing, v.line); needs != nil {
			return verdict{class: Dependency, weight: 90, line: needs.line}
		}
	}
	if v.class == Validation && words.Has(h.t.LineAt(v.line), ": dial tcp ", ": connection refused", "ECONNREFUSED") {
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
		if suite && h.ruleHoldsAt(one) && !isWarning(h.t.LineAt(one.line)) {
			return one
		}
	}
	return nil
}

// beatsTests reports whether v explains a red test run, reported at line at, better than the tests
// do. What tests print about the network, keys or limits is part of the tests; that they could not
// be built, loaded or ended is not.
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

// fetchesPackage reports whether line is about getting a package from elsewhere, which fails in the
// same words whether the package or the connection is missing.
func fetchesPackage(line string) bool {
	return words.Has(line, "No matching distribution", "Could not find a version", "Could not resolve",
		"could not resolve",
		"Non-resolvable", "Could not find artifact", "failed to get", "failed to resolve")
}

var warning = lazy.Regexp(`^[ \t\[(*\-!#>]*(?i:warn|npm warn|remark:|info|debug|note:|hint:|trace:|deprecat` +
	`|notice)|^ {1,4}(?:i|ℹ|help:) |^ *⚠ `)

var leveled = lazy.Regexp(`^[^\[]{0,39}(?:\[[^\[]{0,50}){0,3}\[(?:WARN|INFO|DEBUG|warn|info|debug|TRACE)`)

// isWarning reports whether the level of a line is a warning or lower.
func isWarning(line string) bool {
	if warning().MatchString(line) {
		return true
	}
	if strings.Contains(line, "[") && leveled().MatchString(line) { // "… [WARN] …"
		return true
	}
	return strings.Contains(line, "arning") && words.Has(line, ": warning:", ": warning ", "Warning: ")
}

var finalRetry = lazy.Regexp(`(?i)after retrying|max retries|stopped retrying|giving up`)

// announcesRetry reports whether something is tried again after line; the last try is not.
func announcesRetry(line string) bool {
	return strings.Contains(words.Small(line), "retrying") && !finalRetry().MatchString(line)
}

// closingLines returns the number of the first of the last eight lines that
// are not blank.
func closingLines(t printed.Text) int {
	seen := 0
	for i := t.LineCount() - 1; i >= 0; i-- {
		if strings.TrimSpace(t.LineAt(i)) != "" {
			if seen++; seen == 8 {
				return i
			}
		}
	}
	return 0
}

func lastFilledLine(t printed.Text) int {
	for i := t.LineCount() - 1; i >= 0; i-- {
		if strings.TrimSpace(t.LineAt(i)) != "" {
			return i
		}
	}
	return -1
}
