package failure

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
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
	for i := h.t.len() - 1; i >= 0 && seen < formLines; i-- {
		l := h.t.line(i)
		if l == "" || warns(l) {
			continue
		}
		seen++
		c, weight, f := form(l)
		if weight > v.weight {
			v = verdict{class: c, weight: weight, flags: f, line: i}
		}
	}
	if p := readProblems(h.t); v.class == Unknown && p.under > 0 {
		return verdict{class: Lint, weight: 40, line: p.under}
	}
	return v
}

// form returns what the form of a line speaks for, 0 for nothing.
func form(l string) (Class, int, flag) {
	if at, ok := places.In(l); ok && !places.Foreign(at.File) && refused(l, at) {
		// A place and a message: somebody refuses the code there.
		before := strings.TrimSpace(l[:at.From])
		switch code := compiledFile(at.File) || extension(at.File) == "go" || strings.HasPrefix(at.Rest, ": error:"); {
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
		if variable, _, ok := strings.Cut(said, ": "); ok && capitals(variable) {
			return Validation, 20, setup
		}
	}
	return Unknown, 0, 0
}

var died = lazy.Regexp(`^[^:]* at [^ ]+\.(?:pl|pm|t|cgi) line \d+\.$`)

// refused tells whether a line is a place and a message about it, or a place
// that a message stands around.
func refused(l string, at places.Place) bool {
	before := strings.TrimSpace(l[:at.From])
	if at.Rest == "" {
		head := before == "In" || strings.HasSuffix(before, "┌─")
		return at.Col > 0 && (head || l == before+l[at.From:] && before == "")
	}
	vague := at.Col == 0 && !strings.HasPrefix(at.Rest, ": error:")
	if at.Rest[0] != ':' || len(at.Rest) < 5 || vague {
		return false
	}
	return before == "" || strings.HasPrefix(before, "%") || strings.EqualFold(before, "[error]") ||
		strings.EqualFold(before, "error:")
}

// capitals tells whether s is the name of a variable of the environment.
func capitals(s string) bool {
	for i := range len(s) {
		if c := s[i]; !words.IsUpper(c) && c != '_' && (i == 0 || !words.IsDigit(c)) {
			return false
		}
	}
	return len(s) > 1
}
