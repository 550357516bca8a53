package workflow

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// rewriter turns an expression as GitHub Actions has it into one of the
// library: names with dashes, texts in single quotes with ” inside, null, and
// functions whose names are operators there. It collects the names on the way.
type rewriter struct {
	in     []rune
	at     int
	out    []rune
	from   []int // for each character of out, where it was in in
	known  map[string]bool
	refs   []reference
	status bool
}

func (r *rewriter) emitText(text string, at int) {
	for _, c := range text {
		r.appendRune(c, at)
	}
}

func (r *rewriter) appendRune(c rune, at int) {
	r.out = append(r.out, c)
	r.from = append(r.from, at)
}

func (r *rewriter) peekRune(ahead int) rune {
	if r.at+ahead < len(r.in) {
		return r.in[r.at+ahead]
	}
	return 0
}

func (r *rewriter) rewriteAll() error {
	for r.at < len(r.in) {
		c := r.in[r.at]
		var err error
		switch {
		case wordStart(c) && !r.afterPoint():
			err = r.readName()
		case c == '\'' || c == '"':
			var text string
			start := r.at
			if text, err = r.readText(); err == nil {
				r.emitText(strconv.Quote(text), start)
			}
		case unicode.IsDigit(c):
			r.readNumber()
		default:
			r.appendRune(c, r.at)
			r.at++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// afterPoint is true when what was written last is a point.
func (r *rewriter) afterPoint() bool { return len(r.out) > 0 && r.out[len(r.out)-1] == '.' }

func notLetter(c rune) bool { return c > unicode.MaxASCII || !unicode.IsLetter(c) }
func wordStart(c rune) bool { return c == '_' || !notLetter(c) }
func wordPart(c rune) bool  { return wordStart(c) || strings.ContainsRune("-0123456789", c) }

// readNumber copies a number with what sticks to it, so that 1e5 is no name.
func (r *rewriter) readNumber() {
	sticks := func(c rune) bool {
		point := c == '.' && unicode.IsDigit(r.peekRune(1))
		return point || c == '_' || unicode.IsDigit(c) || unicode.IsLetter(c)
	}
	for r.at < len(r.in) && sticks(r.in[r.at]) {
		r.appendRune(r.in[r.at], r.at)
		r.at++
	}
}

func (r *rewriter) readWord() string {
	start := r.at
	for r.at < len(r.in) && wordPart(r.in[r.at]) {
		r.at++
	}
	return string(r.in[start:r.at])
}

// readText reads a text in quotes. In single ones ” is a quote, in double ones a
// backslash protects.
func (r *rewriter) readText() (string, error) {
	quote, start := r.in[r.at], r.at
	var b strings.Builder
	for r.at++; r.at < len(r.in); r.at++ {
		c := r.in[r.at]
		switch {
		case c == quote && quote == '\'' && r.peekRune(1) == quote:
			r.at++
			b.WriteRune(quote)
		case c == quote:
			r.at++
			return b.String(), nil
		case c == '\\' && quote == '"' && r.at+1 < len(r.in):
			r.at++
			switch r.in[r.at] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			default:
				b.WriteRune(r.in[r.at])
			}
		default:
			b.WriteRune(c)
		}
	}
	return "", &expressionError{offset: start, message: "a quote is not closed"}
}

// plain are words of the language itself.
var plain = []string{"true", "false", "nil", "in", "not", "and", "or", "matches", "let", "if", "else", "contains",
	"startsWith", "endsWith"}

// elsewhere are contexts of GitHub Actions that a workflow of pawl has not.
var elsewhere = map[string]string{
	"github": "env", "secrets": "env", "vars": "env", "inputs": "context", "runner": "env", "job": "steps",
	"jobs": "steps", "strategy": "matrix",
}

// readName reads a name with all that follows it after dots and in brackets.
func (r *rewriter) readName() error {
	start := r.at
	first := r.readWord()
	if next := r.peekPastBlanks(); next == '(' {
		return r.rewriteCall(first, start)
	}
	if first == "null" {
		first = "nil"
	}
	if slices.Contains(plain, first) && !r.known[first] {
		r.emitText(first, start)
		return nil
	}
	path, ends := []string{first}, []int{start}
	for {
		at, word, ok, err := r.readMember()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		path, ends = append(path, word), append(ends, at)
	}
	if !slices.Contains(roots, first) {
		switch {
		case r.known[first] && len(path) > 1:
			path, ends = append([]string{"steps"}, path...), append([]int{start}, ends...)
		case elsewhere[first] != "":
			return &expressionError{offset: start,
				message: first + " is not known in a workflow of pawl; use " + elsewhere[first]}
		default:
			return &expressionError{offset: start, message: "unknown name " + strconv.Quote(first), word: first,
				among: append(slices.Sorted(maps.Keys(r.known)), roots...)}
		}
	}
	r.emitText(path[0], ends[0])
	for i, p := range path[1:] {
		ofStep := slices.Contains([]string{"steps", "needs"}, path[0])
		if i == 1 && ofStep && !strings.ContainsFunc(p, notLetter) {
			r.appendRune('.', ends[i+1])
			r.emitText(p, ends[i+1])
			continue
		}
		r.emitText("["+strconv.Quote(p)+"]", ends[i+1])
	}
	r.refs = append(r.refs, reference{path: path, offset: start})
	return nil
}

// peekPastBlanks looks at the next character that is none.
func (r *rewriter) peekPastBlanks() rune {
	i := 0
	for r.peekRune(i) == ' ' || r.peekRune(i) == '\t' || r.peekRune(i) == '\n' {
		i++
	}
	return r.peekRune(i)
}

// readMember reads .word or ['word'], if one of them comes next.
func (r *rewriter) readMember() (at int, word string, ok bool, err error) {
	switch {
	case r.peekRune(0) == '.' && wordStart(r.peekRune(1)):
		r.at++
		at = r.at
		return at, r.readWord(), true, nil
	case r.peekRune(0) == '[' && strings.ContainsRune(`'"`, r.peekRune(1)):
		at = r.at
		r.at++
		if word, err = r.readText(); err != nil {
			return at, "", false, err
		}
		if r.peekRune(0) != ']' {
			return at, "", false, &expressionError{offset: r.at, message: "] is missing"}
		}
		r.at++
		return at, word, true, nil
	}
	return 0, "", false, nil
}

func (r *rewriter) rewriteCall(name string, start int) error {
	if slices.Contains(statuses, strings.ToLower(name)) {
		r.status = true
		r.emitText(strings.ToLower(name), start)
		return nil
	}
	for _, f := range functions {
		if f.word != "" && strings.EqualFold(f.word, name) {
			r.emitText(f.name, start)
			return nil
		}
	}
	if strings.EqualFold(name, "hashFiles") {
		return &expressionError{offset: start,
			message: "hashFiles is not supported: a workflow is planned without reading files"}
	}
	r.emitText(name, start)
	return nil
}
