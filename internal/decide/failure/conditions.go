package failure

import (
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/waits"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// This file knows forms of lines that are too common to be looked at with an
// expression.

// conditions are what a rule may ask of the place where its phrase stands, by
// the name that rules.json has for it. args are those of the rule, in small letters
// where they are words.
var conditions = map[string]func(p spot, args []string) bool{
	"with":    func(p spot, list []string) bool { return words.HasAny(p.small, list) },
	"without": func(p spot, list []string) bool { return !words.HasAny(p.small, list) },
	"then":    func(p spot, list []string) bool { return words.HasAny(p.small[min(p.at, len(p.small)):], list) },

	"goProblem":    goProblem,
	"statusBehind": hasStatusBehind,
	"arrow":        isArrowTo,
	"below":        isBelowOne,

	"starts":         ignoringArgs(startsLine),
	"answered":       ignoringArgs(isHTTPStatus),
	"reason":         ignoringArgs(isStatusName),
	"bareStatus":     ignoringArgs(bareStatus),
	"unquoted":       ignoringArgs(isUnquoted),
	"reportsError":   ignoringArgs(reportsError),
	"longQuota":      ignoringArgs(isLongQuota),
	"shortQuota":     ignoringArgs(isShortQuota),
	"countsFailures": ignoringArgs(countsFailures),
	"counted":        ignoringArgs(hasCount),
	"compilerLine":   ignoringArgs(compilerLine),
	"lintLine":       ignoringArgs(lintLine),
	"located":        ignoringArgs(startsWithPlace),
	"namesException": ignoringArgs(namesException),
}

// ignoringArgs makes a condition of one that takes no arguments.
func ignoringArgs(holds func(spot) bool) func(spot, []string) bool {
	return func(p spot, _ []string) bool { return holds(p) }
}

// startsLine reports whether the phrase begins the line, spaces aside.
func startsLine(p spot) bool { return strings.TrimLeft(p.textBefore(), " \t") == "" }

func isUnquoted(p spot) bool {
	return strings.Count(p.textBefore(), `"`)%2 == 0 && strings.Count(p.textBefore(), "`")%2 == 0
}

// quoted are lines of source code, frames of stacks, results of tests, lines of
// a difference, and descriptions of options ("-t, --timeout").
var quoted = lazy.Regexp(`^[ \t]*(?:at |raise |except |import |from |catch[ (]|throw |def |class |func |File "` +
	`|//|\| |[✓✔√✕✗×]|(?:not )?ok |` +
	`PASS|LINE \d+: |[pP]ass(?:ed)?[: ]|\\(pass\\)|=== RUN|--- |describe\(|it\(|test[ (]|(?:> )?\d+(?: \||[+-] )` +
	`|--[a-z]|-., --)`)

// isQuotation reports whether the line is source code, a frame of a stack or the name of a test, or
// says what was expected: what it holds was not reported there. Of a long line only a part is
// examined, which depends on the phrase.
func (p *spot) isQuotation() bool {
	l, small := p.l, p.small
	if quoted().MatchString(l) && !strings.Contains(l, "Error [ERR_") || isSourceRemark(l) {
		return true
	}
	return words.HasAny(small, []string{"assert", ", want ", "simulat"}) ||
		strings.Contains(small, "expect") &&
			words.Has(" "+small, "expect(", " expected:", " expected status", " as expected", " expected to ") ||
		strings.Contains(small, "should ") &&
			words.HasAny(small, []string{"should be ", "should re", "should th", "should fa", "should ha"}) ||
		strings.Contains(l, "_test.go:") || isServedRequest(l)
}

// request is the line of a server about a request that it answered.
var request = lazy.Regexp(`(?:GET|POST|PUT|HEAD|DELETE|PATCH) /`)

// isServedRequest reports whether l is a server's record of a request that it answered, and not an
// error that names the request.
func isServedRequest(l string) bool {
	if !strings.Contains(l, " /") {
		return false
	}
	at := request().FindStringIndex(l)
	return len(at) > 0 && !strings.Contains(l[:at[0]], "rror: ")
}

// isSourceRemark reports whether a compiler, a linter or a search printed the line about a place in
// a source file: with the column, or with the source itself.
func isSourceRemark(l string) bool {
	s := strings.TrimLeft(l, " ")
	if n, i := words.Number(s, 0); n > 0 && i+1 < len(s) && s[i] == ':' && words.IsDigit(s[i+1]) { // 12:3  error  …
		_, i = words.Number(s, i+1)
		return i < len(s) && s[i] == ' '
	}
	at, ok := places.In(l)
	if !ok || at.From != 0 || at.Rest == "" {
		return false
	}
	// Go says at the place of an import what it could not get.
	return at.Col > 0 && extension(at.File) != "go" && strings.HasPrefix(at.Rest, ": ") ||
		strings.HasPrefix(at.Rest, ":\t") || quoted().MatchString(strings.TrimLeft(at.Rest, ": ")) ||
		strings.HasPrefix(strings.TrimLeft(at.Rest, ": \t"), "//")
}

// isPartOfName reports whether the phrase is a part of a path, of an identifier in source code or
// of a setting, and so says nothing of what happened.
func (p *spot) isPartOfName() bool {
	end := p.at + p.size
	if end > len(p.l) {
		return false
	}
	if strings.IndexByte(p.l[p.at:end], ' ') < 0 {
		if p.continuesName() || p.namesFile() {
			return true
		}
	}
	for end < len(p.l) && words.IsWord(p.l[end]) {
		end++
	}
	rest := strings.TrimLeft(p.l[end:], " ")
	switch {
	case len(rest) < 2:
		return false
	case rest[0] == '=': // rate_limit = 429, RATE_LIMIT=429
		if rest[1] == ' ' {
			return true
		}
		return rest[1] != '=' && p.l[end] == '='
	case rest[0] == ':': // memory limit: 512MB
		said := strings.TrimLeft(rest[1:], " ")
		n, i := words.Number(said, 0)
		return n > 0 && i < len(said) && strings.IndexByte("kKMG", said[i]) >= 0
	}
	return false
}

// continuesName reports whether the phrase continues a path or an identifier.
func (p *spot) continuesName() bool {
	from := p.at
	for from > 0 && strings.IndexByte(" \t\"'`(,;=[", p.l[from-1]) < 0 {
		from--
	}
	before := p.l[from:p.at]
	switch {
	case before == "":
		return false
	case strings.HasSuffix(before, "::"):
		return true
	case strings.Contains(before, "/") && !strings.Contains(before, ":") && !strings.HasPrefix(before, "HTTP"):
		return true
	case words.IsWord(before[len(before)-1]): // errTooManyRequests, http.StatusTooManyRequests
		switch words.Small(before[strings.LastIndexByte(before, '.')+1:]) {
		case "err", "status", "is", "on", "test", "handle", "with", "mock":
			return true
		}
	}
	return false
}

// namesFile reports whether the phrase begins the name of a file at a place: "out-of-memory.c:9".
func (p *spot) namesFile() bool {
	s := p.l[p.at:]
	n := p.size
	for n < len(s) && (words.IsWord(s[n]) || s[n] == '-') {
		n++
	}
	if n+2 >= len(s) || s[n] != '.' || !words.IsLower(s[n+1]) {
		return false
	}
	at, ok := places.In(s)
	return ok && at.From == 0
}

// Summaries that count failures in forms of their own.
var failureCounts = lazy.Regexp(
	`^.{0,19}Tests run: .*(?:Failures|Errors): *0*[1-9]|` + // surefire
		`^FAILED \(.*(?:failures|errors)=0*[1-9]|` + // unittest
		`^Tests Passed:.*Failed: *0*[1-9]|` + // Pester
		`^Failed[!:].*Failed: *0*[1-9]|` + // dotnet
		`Assertions: .*(?:Failures|Errors): *0*[1-9]|` + // PHPUnit
		`^\[ (?:OK: .*FAILED: *0*[1-9]|FAIL [^0])|` + // testthat
		`^Failed .*subtests$|` + // prove
		` runs, .* failures.*[^0-9]0*[1-9]\d* error| tests, .* failures.*[^0-9]0*[1-9]\d* error`)

var (
	someFailed = lazy.Regexp(`(?:^|[^0-9])0*[1-9]\d* *(?: failed| failure| errored| FAILED| failing)`)
	ofTests    = lazy.Regexp(`^Tests|Executed |^Test Suites:|^\d.* in \d[^a-z]*(?:s|\))|` +
		` example| tests?, | runs, | scenario| specs?, | passed| passing| success| pass,`)
)

// countsFailures holds on a test runner's summary that counts at least one
// failure.
func countsFailures(p spot) bool {
	if !hasCount(p) && !strings.HasPrefix(p.l, "[ERROR] Tests run: ") { // the level is the phrase
		return false
	}
	s := strings.Trim(p.l, " =\t│")
	if len(s) > 300 || failureCounts().MatchString(s) {
		return len(s) <= 300
	}
	return someFailed().MatchString(s) && ofTests().MatchString(s)
}

// hasCount reports whether a count can belong to the phrase: "3 failed", "Failures: 3",
// "failures=3", "FAILED (", "Failed!".
func hasCount(p spot) bool {
	if b := strings.TrimRight(p.textBefore(), " "); b != "" && words.IsDigit(b[len(b)-1]) {
		return true
	}
	s := p.textAfter()
	n := 0
	for n < len(s) && (words.IsLower(words.Lower(s[n]))) {
		n++
	}
	s = strings.TrimLeft(s[n:], " ")
	return s != "" && strings.IndexByte(":=(!0123456789", s[0]) >= 0
}

var exception = lazy.Regexp(`^(?:E )?[ |\t]*(?:\w+\.)*([A-Z]\w*(?:Error|Exception|Interrupt)\w*` +
	`|Error(?:[A-Z]\w*)?|Exception(?:[A-Z]\w*)?|Interrupt\w*)(?:$|:| \[| \()`)

// namesException reports whether the line begins with the name of an exception: "KeyError: 'id'",
// "botocore.exceptions.ClientError: …", "TypeError [CODE]: …".
func namesException(p spot) bool {
	m := exception().FindStringSubmatch(p.l)
	if m == nil {
		return false
	}
	if m[1] == "Error" { // also what programs put before a message
		return p.line+1 < p.h.t.LineCount() && strings.HasPrefix(strings.TrimLeft(p.h.t.LineAt(p.line+1), " "), "at ")
	}
	return true
}

// compilerLine holds on an error of a compiler at its place: "a.c:6:34: error: …",
// "A.java:1: error: …".
func compilerLine(p spot) bool {
	at, ok := places.In(p.l)
	if !ok || at.From > 40 {
		return false
	}
	rest := strings.TrimLeft(at.Rest, ": ")
	rest = strings.TrimPrefix(rest, "fatal ")
	return len(rest) >= 5 && strings.EqualFold(rest[:5], "error") && isCompiledFile(at.File)
}

var compiledExtensions = words.Set("c cc cpp cxx h hpp hh m mm cu f90 f95 f for s swift kt kts java scala hs " +
	"zig d nim cr gleam vala ml mli proto adb ads pas dart groovy sol erl hrl")

// isCompiledFile decides by the extension.
func isCompiledFile(file string) bool { return compiledExtensions()[extension(file)] }

func extension(file string) string { return strings.ToLower(file[strings.LastIndexByte(file, '.')+1:]) }

// goProblem holds on a line of the Go compiler or vet, "a.go:3:5: message" or
// "vet: a.go:3:5: message", whose message holds one of the list.
func goProblem(p spot, list []string) bool {
	at, ok := places.In(p.l)
	behind := at.From > 0 && p.l[:at.From] != "vet: "
	if !ok || extension(at.File) != "go" || behind {
		return false
	}
	return !lintName().MatchString(at.Rest) && words.HasAny(words.Small(at.Rest), list)
}

// lintName is how golangci-lint's messages end: "… (errcheck)".
var lintName = lazy.Regexp(` (?:\([a-z][\w/.:-]+\)|\[[A-Z]\w+\]) *$`)

// lintLine holds on a linter's "file:3:5: message (name-of-the-check)".
func lintLine(p spot) bool {
	at, ok := places.In(p.l)
	return ok && strings.TrimSpace(p.l[:at.From]) == "" && lintName().MatchString(at.Rest)
}

// isArrowTo reports whether the line is " --> file:3:5" and its file has one of the extensions.
func isArrowTo(p spot, extensions []string) bool {
	at, ok := places.In(p.l)
	return ok && startsLine(p) && slices.Contains(extensions, extension(at.File))
}

// isBelowOne reports whether the line above begins with one of the list.
func isBelowOne(p spot, list []string) bool {
	above := strings.TrimLeft(p.previousLine(), " ")
	return slices.ContainsFunc(list, func(w string) bool { return strings.HasPrefix(above, w) })
}

func startsWithPlace(p spot) bool {
	at, ok := places.In(p.l)
	return ok && strings.TrimSpace(p.l[:at.From]) == ""
}

// reportsError holds on a line that says that something is wrong, not only
// that something would be.
func reportsError(p spot) bool {
	s := strings.TrimLeft(p.l, " \t>*-│")
	return words.HasAny(p.small[len(p.l)-len(s):], []string{"error", "fatal", "failed", "exception", "problem"}) ||
		len(s) > 8 && strings.EqualFold(s[:8], "invalid ")
}

// longWords are of quotas by the day or the month, or for good.
var longWords = []string{"perday", "per day", "per_day", "daily", "permonth", "per month", "monthly",
	"insufficient_quota"}

// isLongQuota reports whether a quota is used up for longer than minutes: by the day or the month,
// or for good.
func isLongQuota(p spot) bool {
	switch {
	case words.HasAny(p.small, longWords):
		return true
	case isShortQuota(p):
		return false
	}
	if words.HasAny(p.small, []string{"current quota", "plan and billing", "quota exceeded", "quota exhausted"}) {
		return true
	}
	d, known := waits.In(p.l)
	return known && d > waits.LongestRate
}

// isShortQuota reports whether a quota is by the minute, or comes back within minutes: providers
// use the same words for both.
func isShortQuota(p spot) bool {
	switch {
	case words.HasAny(p.small, longWords):
		return false
	case words.HasAny(p.small, []string{"permin", "per min", "per_min", "persecond", "per second"}):
		return true
	}
	d, known := waits.In(withLinesBelow(p))
	if known {
		return d <= waits.LongestRate
	}
	return !words.HasAny(p.small, []string{
		"current quota", "plan and billing", "quota exceeded", "quota exhausted", "quota will reset",
	})
}

// withLinesBelow returns the line and the few below it, since JSON may be printed over several.
func withLinesBelow(p spot) string {
	s := p.l
	for i := p.line + 1; i < p.h.t.LineCount() && i < p.line+40 && len(s) < 2000; i++ {
		s += "\n" + p.h.t.LineAt(i)
	}
	return s
}

// hasStatusBehind reports whether an HTTP status follows the phrase that begins with the first
// digit of args, and is one of the others if any are named.
func hasStatusBehind(p spot, args []string) bool {
	s := p.textAfter()
	for i := 8; i < len(s) && i < 40; i++ {
		if !words.IsDigit(s[i]) {
			continue
		}
		if s[i] != args[0][0] || i+3 > len(s) || !words.IsDigit(s[i+1]) || !words.IsDigit(s[i+2]) ||
			i+3 < len(s) && words.IsWord(s[i+3]) {
			return false
		}
		return len(args) == 1 || slices.Contains(args[1:], s[i:i+3])
	}
	return false
}

// waitUntilOf says until when the provider named a wait: typed, else in the words
// of the message that decided.
func waitUntilOf(e Evidence, t printed.Text, v verdict) time.Time {
	if a := v.typed; a != nil {
		switch {
		case !a.ResetAt.IsZero():
			return a.ResetAt
		case a.RetryAfter > 0 && !e.Now.IsZero():
			return e.Now.Add(a.RetryAfter)
		}
		if at := e.resetTime(words.Cut(a.Message, 2000)); !at.IsZero() {
			return at
		}
	}
	for i := max(0, v.line-1); v.line >= 0 && i < t.LineCount() && i <= v.line+3; i++ {
		if at := e.resetTime(t.LineAt(i)); !at.IsZero() {
			return at
		}
	}
	return time.Time{}
}

// resetTime reads from a message when a service works again. For an agent, a time by the clock is
// put a little later. It is zero when the message names none.
func (e Evidence) resetTime(msg string) time.Time {
	at, clock := waits.Read(msg, e.Now, e.Zone)
	if clock && e.Source == "agent" {
		at = at.Add(waits.Late)
	}
	return at
}
