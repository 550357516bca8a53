package failure

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// parseProblems reads what a compiler, a linter or a type checker reports, at
// most 20 problems, errors before warnings.
func parseProblems(t text) []Item {
	p := readProblems(t)
	items := slices.Concat(p.errors, p.warnings)
	slices.SortStableFunc(items, func(a, b Item) int { // those of the project first
		return strings.Compare(strconv.FormatBool(foreign(a.File)), strconv.FormatBool(foreign(b.File)))
	})
	return items[:min(len(items), maxItems)]
}

func readProblems(t text) problems {
	p := problems{t: t}
	for p.i = 0; p.i < t.len() && len(p.errors) < maxItems; p.i++ {
		p.line(t.line(p.i))
	}
	return p
}

type problems struct {
	t        text
	i        int
	errors   []Item
	warnings []Item
	file     string // the header that eslint's and others' lines stand under
	under    int    // the first line that stands under one
	user     place  // in the project, of a library's template
	message  string // rustc and biome print it before or after the place
}

func (p *problems) add(it Item, warning bool) {
	if warning {
		p.warnings = append(p.warnings, it)
	} else {
		p.errors = append(p.errors, it)
	}
}

func (p *problems) line(l string) {
	said := strings.TrimSpace(l)
	head := strings.TrimPrefix(headPlace().ReplaceAllString(said, ""), "Line   ") // PHPStan
	if looksLikeFile(head) {
		p.file = head
	}
	switch {
	case said == "":
		return
	case p.rust(l, said), p.underFile(l, said), p.located(l, said):
		return
	}
	p.loose(said)
}

// headPlace is where the first complaint about a file is, behind its name.
var headPlace = lazy.Regexp(`:\d+:\d+$`)

// rust reads rustc's and clippy's two lines: "error[E0425]: message" and
// "  --> file:70:26". kotlinc and others use the arrow in the same way.
func (p *problems) rust(l, said string) bool {
	if arrowed().MatchString(said) {
		at, ok := placeIn(said)
		if p.message == "" && p.i > 0 { // ruff has a rule's name in front
			p.message = aboveArrow(p.t.line(p.i - 1))
		}
		if ok && p.message != "" {
			warning := warns(p.message)
			p.message = strings.TrimSpace(marked().ReplaceAllString(p.message, ""))
			it := Item{File: at.file, Line: at.line, Column: at.col, Message: p.message}
			it.Expected, it.Received = p.values()
			p.add(it, warning)
			p.message = ""
		}
		return ok
	}
	if strings.HasPrefix(l, "error[") || strings.HasPrefix(l, "error: ") || strings.HasPrefix(l, "warning: ") ||
		strings.HasPrefix(l, "warning[") {
		p.message = said
		return false
	}
	return false
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
	if strings.HasPrefix(l, " ") || strings.HasPrefix(l, "|") || strings.HasPrefix(l, "note: ") || strings.HasPrefix(l, "help: ") {
		return ""
	}
	return strings.TrimSpace(l)
}

// values are the two of a problem whose source is shown below it: "^^^ expected `a`, found `b`".
func (p *problems) values() (want, got string) {
	for j := p.i + 1; j < p.t.len() && j < p.i+aroundMax; j++ {
		s := strings.TrimSpace(p.t.line(j))
		if want, got = expectation(s); s == "" || want != "" && got != "" {
			break
		}
	}
	return want, got
}

// underFile reads lines like eslint's, "  3:8  error  message  rule", that
// stand under the name of their file.
func (p *problems) underFile(l, said string) bool {
	said = strings.TrimPrefix(said, "✖  ")
	line, col, end := rowIn(said)
	if p.file == "" || end == 0 || col == 0 && (indentOf(l) == 0 || !strings.HasPrefix(said[end:], "  ")) {
		return false
	}
	if col > 0 {
		p.under = cmp.Or(p.under, p.i)
	}
	msg := strings.Join(strings.Fields(said[end:]), " ")
	msg = strings.TrimPrefix(msg, "✖ ")
	warning := strings.HasPrefix(msg, "warning") || strings.HasPrefix(msg, "⚠")
	p.add(Item{File: p.file, Line: line, Column: col, Message: msg}, warning)
	return true
}

// located reads a line that names its own place: "file:12:3: message",
// "file(12,3): error TS2322: message", "[ERROR] file:[12,3] message".
func (p *problems) located(l, said string) bool {
	at, ok := placeIn(said)
	if !ok || at.from > 60 || stackFrame().MatchString(said) || strings.HasPrefix(said, "at ") || strings.HasPrefix(l, "\t") ||
		strings.HasPrefix(said, "In file included") || strings.HasPrefix(said, "from ") || strings.HasPrefix(said, "^") {
		return false
	}
	before := said[:at.from]
	if !prefixOfProblem(before) {
		return false
	}
	msg := strings.TrimSpace(strings.TrimLeft(at.rest, ":,-) "))
	if strings.HasPrefix(at.rest, `"`) || strings.HasPrefix(at.rest, "'") {
		msg = strings.TrimSpace(strings.TrimLeft(at.rest, `"':,`))
	}
	if foreign(at.file) && strings.HasPrefix(at.rest, ": in ") { // a frame, as pytest prints it
		return true
	}
	if has(msg, ": error executing ") { // Bazel's command, whose compiler says why
		return true
	}
	if own := strings.HasPrefix(at.rest, ":   required from "); own && !foreign(at.file) {
		p.user = at
	}
	if foreign(at.file) && p.user.line > 0 { // a template, and who makes use of it
		at.file, at.line, at.col = p.user.file, p.user.line, p.user.col
		p.user = place{}
	}
	if msg == "" || has(said, ": note:", ": In function", "required from", "note: ") {
		if msg == "" {
			msg = p.following()
		}
		if msg == "" || has(said, ": note:", " note: ", "required from") {
			return true
		}
	}
	if bareError().MatchString(msg) && p.i+1 < p.t.len() { // GHC says what on the next line
		msg += " " + strings.TrimSpace(p.t.line(p.i+1))
	}
	if said, ok := strings.CutSuffix(strings.TrimSpace(before), " at"); ok { // Perl says what, and then where
		msg = strings.TrimRight(said+", "+msg, " ,.")
	}
	if rule, ok := strings.CutPrefix(msg, "• "); ok { // Dart: error • message • place • rule
		msg = strings.Trim(before, " •") + " • " + rule
	}
	msg = strings.TrimRight(msg, "━─ ")
	if bare := strings.TrimSuffix(msg, "  FIXABLE"); !strings.Contains(bare, " ") && strings.Contains(bare, "/") { // the name of a rule
		msg = strings.TrimSpace(p.following() + " " + bare)
	}
	it := Item{File: at.file, Line: at.line, Column: at.col, Message: msg}
	below := p.i > 0 && l != said && warns(p.t.line(p.i-1))
	p.add(it, below || warns(said) || strings.HasPrefix(msg, "warning") || strings.HasPrefix(strings.TrimSpace(before), "info"))
	return true
}

// bareError names an error by no more than its number.
var bareError = lazy.Regexp(`^(?:error|warning):(?: \[[\w-]+\])*$`)

// following is the message of a place that stands alone on its line: the next
// line that begins a sentence.
func (p *problems) following() string {
	for j := p.i + 1; j < p.t.len() && j < p.i+8; j++ {
		s := strings.TrimSpace(p.t.line(j))
		if m := pointed().FindStringSubmatch(s); m != nil { // shellcheck
			return m[1]
		}
		s = strings.TrimPrefix(s, "× ")
		if s != "" && (strings.HasPrefix(s, "Error") || isUpper(s[0]) && !strings.Contains(s, "|")) {
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
	return len(s) < 60 && (strings.HasSuffix(s, " -") || strings.HasSuffix(s, "[error]") || strings.Contains(s, "-- [e") ||
		strings.HasPrefix(s, "error") || strings.HasSuffix(s, " at") || strings.HasSuffix(s, "(compileerror)") ||
		strings.HasPrefix(s, "** (") || strings.HasPrefix(s, ":compile"))
}

// loose reads problems without a place: the linker's, and lists of files.
func (p *problems) loose(said string) {
	switch {
	case has(said, "undefined reference to", "multiple definition of", "cannot find -l", "Undefined symbols for"):
		p.add(Item{Message: said}, false)
	case strings.HasPrefix(said, "error: ") && !onlyFailed(said) && !has(said, "aborting due to", "could not compile", "warnings found and"):
		p.add(Item{Message: said}, false)
	case strings.HasPrefix(said, "would reformat "), strings.HasPrefix(said, "[warn] ") && looksLikeFile(said[7:]):
		f := strings.Fields(said)
		p.add(Item{File: f[len(f)-1], Message: said}, false)
	case strings.HasPrefix(said, "* ") && looksLikeFile(said[2:]):
		p.add(Item{File: said[2:], Message: "not formatted"}, false)
	}
}

// looksLikeFile tells whether a line is nothing but the name of a file.
func looksLikeFile(s string) bool {
	if len(s) > 300 || len(s) < 3 || strings.HasSuffix(s, ".") || strings.HasSuffix(s, ":") || strings.Contains(s, "  ") || strings.ContainsAny(s,
		"|<>=\"'`?(") {
		return false
	}
	dot := strings.LastIndexByte(s, '.')
	if dot <= 0 || dot == len(s)-1 || len(s)-dot > 8 {
		return false
	}
	for i := dot + 1; i < len(s); i++ {
		if !wordByte(s[i]) {
			return false
		}
	}
	return !isDigit(s[dot+1]) && (strings.ContainsAny(s, `/\`) || !strings.Contains(s, " "))
}
