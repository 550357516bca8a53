package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Error is one fault in the configuration, for the person who wrote it.
type Error struct {
	// File is the file as the person would name it, or the variable or flag.
	File string
	// Line and Column are 1-based, the column in characters. Both are 0 where
	// there is no place: a variable, a flag, a file that cannot be read.
	Line, Column int
	Message      string
	// Excerpt is the source line with a caret under the column; "" without a place.
	Excerpt string
	// Suggestion is the word that was probably meant; "" if none is near.
	Suggestion string
}

// Error gives "pawl.yaml:6:5: message (did you mean "model"?)" and the excerpt.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": " + e.Message)
	if e.Suggestion != "" {
		fmt.Fprintf(&b, " (did you mean %q?)", e.Suggestion)
	}
	if e.Excerpt != "" {
		b.WriteString("\n" + e.Excerpt)
	}
	return b.String()
}

// Errors is every fault found, in the order of the files and their lines; at
// most maxErrors of them.
type Errors []*Error

// maxErrors bounds a report: with more faults one starts at the top anyway.
const maxErrors = 20

// Error gives all faults, one after the other.
func (e Errors) Error() string {
	lines := lists.Each(e, func(err *Error) string { return err.Error() })
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find the first *Error.
func (e Errors) Unwrap() []error { return lists.Each(e, func(err *Error) error { return err }) }

// sortedErrorOrNil returns nil, the only fault, or all of them in the order of each
// file's lines.
func (e Errors) sortedErrorOrNil() error {
	files := map[string]int{}
	for _, err := range e {
		if _, ok := files[err.File]; !ok {
			files[err.File] = len(files)
		}
	}
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(files[a.File]-files[b.File], a.Line-b.Line, a.Column-b.Column)
	})
	switch {
	case len(e) == 0:
		return nil
	case len(e) == 1:
		return e[0]
	case len(e) > maxErrors:
		return e[:maxErrors]
	}
	return e
}

// errorAtPlace makes an Error with the place and the excerpt of p.
func errorAtPlace(p position, suggestion, format string, args ...any) *Error {
	e := &Error{File: p.src.name, Line: p.line, Column: p.column, Suggestion: suggestion,
		Message: fmt.Sprintf(format, args...)}
	if p.line > 0 && p.line <= len(p.src.lines) {
		e.Excerpt = excerptOf(p.src.lines[p.line-1], p.line, p.column)
	}
	return e
}

// maxExcerpt is the most characters of a source line that an error shows.
const maxExcerpt = 160

// secretValue finds a value behind a name that says it is secret. Names are
// matched in upper case, as variables are written, so that token_budget shows.
var secretValue = lazy.Regexp(`([A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD)[A-Z0-9_]*["']?\s*[:=]\s*)(.+)`)

func excerptOf(line string, number, column int) string {
	line = secretValue().ReplaceAllString(line, "${1}***")
	runes := []rune(line)
	start := 0
	if column > maxExcerpt-20 {
		start = min(column-1, len(runes)) - 40
		start = max(start, 0)
	}
	end := min(len(runes), start+maxExcerpt)
	shown := string(runes[start:end])
	// A tab stays a tab above and below, so that the caret stands right.
	var pad strings.Builder
	for i := start; i < column-1; i++ {
		if i < len(runes) && runes[i] == '\t' {
			pad.WriteByte('\t')
		} else {
			pad.WriteByte(' ')
		}
	}
	head := fmt.Sprintf("%4d | ", number)
	return head + shown + "\n     | " + pad.String() + "^"
}

// Nearest returns the candidate that word was probably meant to be, or "".
func Nearest(word string, candidates []string) string {
	best, bestDistance := "", 0
	key := snakeCase(word)
	for _, c := range candidates {
		d := min(Distance(word, c), Distance(key, c))
		n := utf8.RuneCountInString(c)
		short := d == 2 && n < 6 && !strings.Contains(key, c) // else any two short words are near
		if d > 2 || d*2 >= n || short {
			continue
		}
		if best == "" || d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// nearestOrAll is the candidate that word was probably meant to be, or else a hint that lists them.
func nearestOrAll(word string, candidates []string) (near, hint string) {
	if near = Nearest(word, candidates); near == "" && len(candidates) > 0 {
		hint = "; there are " + strings.Join(candidates, ", ")
	}
	return near, hint
}

// snakeCase turns maxIterations and max-iterations into max_iterations.
func snakeCase(word string) string {
	var b strings.Builder
	for i, r := range word {
		switch {
		case r == '-':
			b.WriteByte('_')
		case r >= 'A' && r <= 'Z':
			if i > 0 {
				b.WriteByte('_')
			}
			b.WriteRune(r + 'a' - 'A')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Distance is the number of insertions, deletions, changes and swaps of
// neighbours that turn a into b. Words over 64 characters are never near.
func Distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > 64 || len(y) > 64 {
		return 64
	}
	var before []int
	last := make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row := make([]int, len(y)+1)
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(y)]
}

// asErrors flattens what a step of loading returned. An error that has no
// place of its own is given the file's name.
func asErrors(err error, file string) Errors {
	if err == nil {
		return nil
	}
	if many, ok := errors.AsType[Errors](err); ok {
		return many
	}
	if one, ok := errors.AsType[*Error](err); ok {
		return Errors{one}
	}
	return Errors{{File: file, Message: err.Error()}}
}
