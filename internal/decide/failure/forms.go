package failure

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// This file reads the forms of lines that many programs share. They count only
// where no rule knows a word of what was said.

// formLines bounds the lines at the end that are looked at.
const formLines = 400

// byForm reads the last line that has a form which says what went wrong.
func byForm(h *hits) verdict {
	v := verdict{class: Unknown, line: -1}
	seen := 0
	for i := h.t.LineCount() - 1; i >= 0 && seen < formLines; i-- {
		l := h.t.LineAt(i)
		if l == "" || isWarning(l) {
			continue
		}
		seen++
		c, weight, f := classOfForm(l)
		if weight > v.weight {
			v = verdict{class: c, weight: weight, flags: f, line: i}
		}
	}
	if p := readProblems(h.t); v.class == Unknown && p.under > 0 {
		return verdict{class: Lint, weight: 40, line: p.under}
	}
	return v
}

// classOfForm returns the class that the form of a line suggests, with its weight; 0 for none.
func classOfForm(l string) (Class, int, flag) {
	if at, ok := places.In(l); ok && !places.IsForeign(at.File) && isRefusal(l, at) {
		// A place and a message: somebody refuses the code there.
		before := strings.TrimSpace(l[:at.From])
		switch code := isCompiledFile(at.File) || extOf(at.File) == "go" || strings.HasPrefix(at.Rest, ": error:"); {
		case lintName().MatchString(l):
			return Lint, 40, 0
		case code && !strings.HasPrefix(before, "%Warn") && !strings.Contains(at.Rest, "should "):
			return CompileError, 40, 0
		default:
			return Lint, 40, 0
		}
	}
	if strings.HasPrefix(l, "(") && strings.Contains(l[:min(len(l), 60)], "NotFound) ") { // a cloud's code for a name
		return Validation, 35, 0
	}
	// git's way to give up
	if strings.HasPrefix(l, "fatal: ") && len(l) > 8 && (words.IsLower(words.Lower(l[7])) || l[7] == '\'') {
		return GitState, 35, 0
	}
	if died().MatchString(l) { // Perl's way to give up
		return Crash, 40, 0
	}
	_, rest, ok := strings.Cut(l, ": ")
	if !ok {
		return Unknown, 0, 0
	}
	for _, end := range []string{
		"No such file or directory", "No such file", "Not a directory", "Is a directory", "File exists",
	} {
		if strings.HasSuffix(rest, end) { // a program names an input that is not as it needs it
			return Validation, 20, 0
		}
	}
	if line, ok := strings.CutPrefix(rest, "line "); ok { // a shell's "${NAME:?message}"
		_, said, _ := strings.Cut(line, ": ")
		if variable, _, ok := strings.Cut(said, ": "); ok && isVariableName(variable) {
			return Validation, 20, setup
		}
	}
	return Unknown, 0, 0
}

var died = lazy.Regexp(`^[^:]* at [^ ]+\.(?:pl|pm|t|cgi) line \d+\.$`)

// isRefusal reports whether a line is a place and a message about it, or a place that a message
// stands around.
func isRefusal(l string, at places.Place) bool {
	before := strings.TrimSpace(l[:at.From])
	if at.Rest == "" {
		head := before == "In" || strings.HasSuffix(before, "┌─")
		return at.Col > 0 && (head || l == before+l[at.From:] && before == "")
	}
	level := strings.TrimRight(strings.TrimPrefix(before, "["), "]: ") // in brackets, or what CI made of them
	erring := strings.EqualFold(level, "error")
	vague := at.Col == 0 && !strings.HasPrefix(at.Rest, ": error:") && !erring
	rest := at.Rest
	if at.From == 0 && len(rest) > 1 { // hadolint has no colon
		rest = strings.TrimPrefix(rest, " ")
	}
	bare := rest == at.Rest || rest[0] == ' '
	if bare && rest[0] != ':' {
		return false
	}
	if len(rest) < 5 || vague {
		return false
	}
	return before == "" || strings.HasPrefix(before, "%") || erring
}

// isVariableName reports whether s is the name of a variable of the environment: capitals, digits
// and "_".
func isVariableName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !words.IsUpper(c) && c != '_' && (i == 0 || !words.IsDigit(c)) {
			return false
		}
	}
	return len(s) > 1
}

// projectFrame finds the place of the project in a stack trace, and its line: the last call in a
// Python trace, the first elsewhere. A place in a library is better than none.
func projectFrame(t printed.Text) (best places.Place, said string) {
	distant := false // best lies in a library
	ruby, after, url := strings.Contains(t.All, ":in "), strings.Contains(t.All, "from "),
		strings.Contains(t.All, "file:///")
	for i := range t.LineCount() {
		l := t.LineAt(i)
		if l == "" {
			continue
		}
		below, linked := after && strings.Contains(l, "from "), url && strings.Contains(l, "file:///")
		inRuby := ruby && strings.Contains(l, ":in ")
		tells := below || linked
		if words.IsWord(l[0]) && !tells && !inRuby {
			continue
		}
		python := strings.Contains(l, `File "`)
		numbered := l[0] == '#' && len(l) > 1 && words.IsDigit(l[1]) // Dart
		tells = tells || python || numbered || l[0] == '\t' || l[0] == '/' ||
			strings.HasPrefix(strings.TrimLeft(l, " |#"), "at ") || strings.HasPrefix(strings.TrimLeft(l, " "), "@ ") ||
			ruby && words.Has(l, ":in `", ":in '")
		if !tells {
			continue
		}
		p, ok := places.In(l)
		if !ok {
			continue
		}
		if said != "" && !distant && !python && !strings.HasSuffix(p.File, ".nim") {
			continue // the first of the project stays
		}
		if away := places.IsForeign(p.File) || printed.OfRuntime().MatchString(l); said == "" || !away {
			best, said, distant = p, l, away
		}
	}
	return best, said
}
