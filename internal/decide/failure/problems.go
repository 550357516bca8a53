package failure

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/runners"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// parseProblems reads what a compiler, a linter or a type checker reports, at
// most 20 problems, errors before warnings.
func parseProblems(t printed.Text) []Item {
	p := readProblems(t)
	items := slices.Concat(p.errors, p.warnings)
	distant := func(i Item) bool { return i.Line == 0 || places.IsForeign(i.File) }
	slices.SortStableFunc(items, func(a, b Item) int { // those of the project first
		return strings.Compare(strconv.FormatBool(distant(a)), strconv.FormatBool(distant(b)))
	})
	return items[:min(len(items), runners.MaxItems)]
}

func readProblems(t printed.Text) problems {
	p := problems{t: t}
	for p.i = 0; p.i < t.LineCount() && len(p.errors) < runners.MaxItems; p.i++ {
		p.readLine(t.LineAt(p.i))
	}
	return p
}

type problems struct {
	t        printed.Text
	i        int
	errors   []Item
	warnings []Item
	file     string // the header that eslint's and others' lines stand under
	under    int    // the first line that stands under one
}

func (p *problems) addProblemItem(it Item, warning bool) {
	it.Expected, it.Received = p.valuesOf(it)
	if warning {
		p.warnings = append(p.warnings, it)
	} else {
		p.errors = append(p.errors, it)
	}
}

func (p *problems) readLine(l string) {
	said := strings.TrimSpace(l)
	// PHPStan
	if head := places.Heading(strings.TrimPrefix(headPlace().ReplaceAllString(said, ""), "Line   ")); head != "" {
		p.file = head
	}
	switch m := ruled().FindStringSubmatch(said); {
	case said == "":
		return
	case m != nil:
		it := Item{File: m[2], Message: strings.TrimSpace(m[1] + " " + p.messageBelow())}
		if at, ok := places.In(m[2]); ok {
			it.File, it.Line, it.Column = at.File, at.Line, at.Col
		}
		for j := p.i + 1; j < min(p.t.LineCount(), p.i+aroundMax) && it.Line == 0; j++ {
			if shown := shownLine().FindStringSubmatch(p.t.LineAt(j)); shown != nil {
				it.Line, _ = words.Number(shown[1], 0)
			}
		}
		p.addProblemItem(it, false)
		return
	case p.readRust(said), p.underFile(l, said), p.readLocated(l, said):
		return
	}
	p.readPlaceless(said)
}

var (
	// ruled is the heading of a problem, with a rule before its file: "-- TYPE MISMATCH ------ src/Main.elm".
	ruled     = lazy.Regexp(`^(?:-- )?([A-Z][A-Za-z ]*?) -{5,} (\S+\.\w+(?::\d+:\d+)?)$`)
	shownLine = lazy.Regexp(`^ *(\d+) ?[|│]`)
)

// headPlace matches the place of the first complaint about a file, behind its name.
var headPlace = lazy.Regexp(`:\d+:\d+$`)

// readRust reads rustc's and clippy's two lines: "error[E0425]: message" and " --> file:70:26".
// kotlinc, ruff and others use the arrow in the same way.
func (p *problems) readRust(said string) bool {
	if p.i == 0 || !arrowed().MatchString(said) {
		return false
	}
	at, ok := places.In(said)
	if message := aboveArrow(p.t.LineAt(p.i - 1)); ok && message != "" {
		bare := strings.TrimSpace(marked().ReplaceAllString(message, ""))
		p.addProblemItem(Item{File: at.File, Line: at.Line, Column: at.Col, Message: bare}, isWarning(message))
	}
	return ok
}

var (
	// arrowed begins a place that stands alone between what is wrong and the source.
	arrowed = lazy.Regexp(`^(?:--> |┌─+ |[╭,][─-]+\[)`)
	// marked begins the message above such a place.
	marked = lazy.Regexp(`^ {0,2}[×x✖⚠!] `)
)

// aboveArrow is the message that stands above a place with an arrow; "" for a
// note or a part of the source.
func aboveArrow(l string) string {
	if marked().MatchString(l) {
		return strings.TrimSpace(l)
	}
	if strings.HasPrefix(l, " ") || strings.HasPrefix(l, "|") || strings.HasPrefix(l, "note: ") ||
		strings.HasPrefix(l, "help: ") {
		return ""
	}
	return strings.TrimSpace(l)
}

// valuesOf reads the wanted and the actual value in an item's message, or in the lines below it,
// "^^^ expected `a`, found `b`", up to the next problem.
func (p *problems) valuesOf(it Item) (want, got string) {
	if it.Line == 0 {
		return "", ""
	}
	if want, got = places.Values(strings.Join(strings.Fields(it.Message), " ")); want != "" && got != "" {
		return want, got
	}
	b := runners.Body{Silent: true}
	for j := p.i + 1; j < p.t.LineCount() && j < p.i+2*aroundMax; j++ {
		l := p.t.LineAt(j)
		if _, next := places.In(l); next || strings.HasPrefix(l, "error") || b.Item.Expected != "" &&
			b.Item.Received != "" {
			break
		}
		if l = strings.Trim(strings.TrimPrefix(l, "[error]"), " •|│"); l != "" {
			b.ReadLine(l)
		}
	}
	if b.Item.Expected == "" || b.Item.Received == "" || b.Item.Expected == b.Item.Received {
		return "", ""
	}
	return b.Item.Expected, b.Item.Received
}

// underFile reads lines like eslint's, "  3:8  error  message  rule", that
// stand under the name of their file.
func (p *problems) underFile(l, said string) bool {
	marked := said
	for _, mark := range []string{"✖ ", "⚠ "} {
		said = strings.TrimLeft(strings.TrimPrefix(said, mark), " ")
	}
	line, col, end := parseLineColumn(said)
	leveled := graded().FindString(said[end:])
	if p.file == "" || end == 0 || col == 0 && leveled == "" &&
		(words.Indent(l) == 0 || !strings.HasPrefix(said[end:], "  ")) {
		return false
	}
	if col > 0 {
		p.under = cmp.Or(p.under, p.i)
	}
	msg := strings.Join(strings.Fields(said[end+len(leveled):]), " ")
	msg = strings.TrimPrefix(msg, "✖ ")
	warning := strings.Contains(leveled, "WARN") || strings.HasPrefix(msg, "warning") || strings.HasPrefix(msg, "⚠") ||
		isWarning(marked)
	p.addProblemItem(Item{File: p.file, Line: line, Column: col, Message: msg}, warning)
	return true
}

// graded is the column of a table that says how bad it is.
var graded = lazy.Regexp(`^ +\| (?:ERROR|WARNING) +\| `)

// readLocated reads a line that names its own place: "file:12:3: message", "file(12,3): error
// TS2322: message", "[ERROR] file:[12,3] message".
func (p *problems) readLocated(l, said string) bool {
	at, ok := places.In(said)
	if !ok || at.From > 60 || stackFrame().MatchString(said) || strings.HasPrefix(said, "at ") ||
		strings.HasPrefix(l, "\t") ||
		strings.HasPrefix(said, "In file included") ||
		strings.HasPrefix(said, "from ") || strings.HasPrefix(said, "^") {
		return false
	}
	before := said[:at.From]
	if !prefixOfProblem(before) {
		return false
	}
	msg := strings.TrimSpace(strings.TrimLeft(at.Rest, ":,-) "))
	msg, known := p.raisedAbove(msg)
	frame := places.IsForeign(at.File) && strings.HasPrefix(at.Rest, ": in ") // as pytest prints it
	if frame || known || runners.RunnerLine().MatchString(said) {
		return true
	}
	if words.Has(msg, ": error executing ") { // Bazel's command, whose compiler says why
		return true
	}
	if msg == "" || words.Has(said, ": note:", ": In function", "required from", "note: ") {
		if msg == "" {
			msg = p.messageBelow()
		}
		if msg == "" || words.Has(said, ": note:", " note: ", "required from") {
			return true
		}
	}
	if bareError().MatchString(msg) && p.i+1 < p.t.LineCount() { // GHC says what on the next line
		msg += " " + strings.TrimSpace(p.t.LineAt(p.i+1))
	}
	if said, ok := strings.CutSuffix(strings.TrimSpace(before), " at"); ok { // Perl says what, and then where
		msg = strings.TrimRight(said+", "+msg, " ,.")
	}
	if rule, ok := strings.CutPrefix(msg, "• "); ok { // Dart: error • message • place • rule
		msg = strings.Trim(before, " •") + " • " + rule
	}
	msg = strings.TrimRight(msg, "━─ ")
	// the name of a rule
	if bare := strings.TrimSuffix(msg, "  FIXABLE"); !strings.Contains(bare, " ") && strings.Contains(bare, "/") {
		msg = strings.TrimSpace(p.messageBelow() + " " + bare)
	}
	it := Item{File: at.File, Line: at.Line, Column: at.Col, Message: msg}
	it.InProject()
	below := p.i > 0 && l != said && isWarning(p.t.LineAt(p.i-1))
	p.addProblemItem(it, below || isWarning(said) || strings.HasPrefix(msg, "warning") ||
		strings.HasPrefix(strings.TrimSpace(before), "info"))
	return true
}

// calledIn is all that Elixir says of a frame.
var calledIn = lazy.Regexp(`^(?:\(\w+\)|[\w.:"]+[!?]?/\d+)$`)

// raisedAbove returns msg, and for a frame of Elixir the exception above it. It is known where there is
// none, or where an earlier frame was its place.
func (p *problems) raisedAbove(msg string) (said string, known bool) {
	if !calledIn().MatchString(msg) {
		return msg, false
	}
	for j := p.i - 1; j >= max(0, p.i-aroundMax); j-- {
		if l := p.t.LineAt(j); strings.HasPrefix(l, "** (") {
			return l, slices.ContainsFunc(p.errors, func(i Item) bool { return i.Message == l })
		}
	}
	return msg, true
}

// aboutPackage begins what is wrong with a field of package.json.
var aboutPackage = lazy.Regexp(`^\d+\. pkg\.`)

// bareError names an error by no more than its number.
var bareError = lazy.Regexp(`^(?:error|warning):(?: \[[\w-]+\])*$`)

// messageBelow returns the message of a place that stands alone on its line: the next line that
// begins a sentence.
func (p *problems) messageBelow() string {
	for j := p.i + 1; j < p.t.LineCount() && j < p.i+8; j++ {
		s := strings.TrimSpace(p.t.LineAt(j))
		if m := pointed().FindStringSubmatch(s); m != nil { // shellcheck
			return m[1]
		}
		if s = strings.TrimPrefix(s, "× "); saysOnlyFailed(s) {
			continue
		}
		if s != "" && (strings.HasPrefix(s, "Error") || words.IsUpper(s[0]) && !strings.Contains(s, "|")) {
			return s
		}
	}
	return ""
}

// pointed is a message behind what points at the source above it.
var pointed = lazy.Regexp(`^\^-+\^? (.+)`)

func prefixOfProblem(s string) bool {
	s = strings.TrimSpace(strings.ToLower(s))
	switch s {
	case "", "in", "[error]", "[warning]", "error", "error:", "warning:", "❌", "e:", "w:", "vet:",
		"->", "-->", "%error:", "(for doctest at)", "file", "/usr/bin/ld:", "✖", "x", "✘ [error]", "[info]":
		return true
	}
	return len(s) < 60 && (strings.HasSuffix(s, " -") || strings.HasSuffix(s, "[error]") ||
		strings.Contains(s, "-- [e") ||
		strings.HasPrefix(s, "error") || strings.HasSuffix(s, " at") || strings.HasSuffix(s, "(compileerror)") ||
		strings.HasPrefix(s, "** (") || strings.HasPrefix(s, ":compile"))
}

// rewritten is a file that a formatter changed, or would change.
var rewritten = lazy.Regexp(`^(?i:(?:would )?reformat(?:ted)?|fixing|fixed|formatted|rewriting|rewrote) [^\s:]*\.\w+$`)

// readPlaceless reads problems without a place: the linker's, and lists of files.
func (p *problems) readPlaceless(said string) {
	switch {
	case aboutPackage().MatchString(said): // publint
		p.addProblemItem(Item{File: "package.json", Message: said}, false)
	case strings.HasPrefix(said, "error: ") && !saysOnlyFailed(said) &&
		!words.Has(words.Small(said), "aborting due to", "could not compile", "warnings found and"):
		p.addProblemItem(Item{Message: said}, false)
	case rewritten().MatchString(said), strings.HasPrefix(said, "[warn] ") && places.IsFile(said[7:]):
		f := strings.Fields(said)
		p.addProblemItem(Item{File: f[len(f)-1], Message: said}, false)
	case strings.HasPrefix(said, "* ") && places.IsFile(said[2:]):
		p.addProblemItem(Item{File: said[2:], Message: "not formatted"}, false)
	}
}
