package failure

import (
	"iter"
	"strings"
	"unicode"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// This file learns from the green output of a gate what is noise in a red one.

// usual is what the same command printed when it was green.
type usual struct {
	lines map[string]bool // without what changes from run to run
	forms map[string]bool // and without names
	words map[string]bool
	// counts are the things that the green output counts too, and not as none: what was looked at.
	counts map[string]bool
	last   string              // how the last line begins, up to a colon
	rows   map[string][]string // the amounts in the rows of tables, by form
}

func usualIn(green string) usual {
	u := usual{lines: map[string]bool{}, forms: map[string]bool{}, words: map[string]bool{},
		counts: map[string]bool{}, rows: map[string][]string{}}
	if green != "" {
		t := split(readable(bound(green)).text)
		names := map[string]string{}
		for i := range t.len() {
			line := strings.TrimSpace(t.line(i))
			form := frameOf(steady(line))
			u.lines[stable(line)], u.forms[form] = true, true
			row := strings.TrimSpace(t.line(max(0, i-1)))
			if n := columns(line); i > 0 && n > 1 && n == columns(row) {
				u.rows[form], u.rows[frameOf(steady(row))] = amounts(line, nil), amounts(row, nil)
			}
			for form, name := range namedIn(line) {
				if other, ok := names[form]; ok && other != name {
					u.forms[form] = true
				}
				names[form] = name
			}
			before := ""
			for w := range strings.FieldsSeq(line) {
				u.words[w] = true
				thing := strings.ToLower(strings.Trim(w, ".,;:()"))
				if thing != "bytes" && countOf().MatchString(before+" "+thing) {
					u.counts[thing] = true
				}
				before = w
			}
			if line != "" {
				u.last = label(line)
			}
		}
	}
	return u
}

// countOf is a number of things, and no size.
var countOf = lazy.Regexp(`^[1-9]\d* \pL{4,}$`)

// countedBy are the counts that say nothing in a line that is such a part.
func (u usual) countedBy(p part) map[string]bool {
	if p == result {
		return u.counts
	}
	return nil
}

// label is what a line has before a colon, "" for nothing: "Result" of "Result: not good".
func label(line string) string { return line[:max(0, strings.IndexByte(line, ':'))] }

// like tells whether a line says what the command says of anything: a line of the green output,
// but for a name.
func (u usual) like(line string) bool {
	if u.forms[frameOf(steady(line))] {
		return true
	}
	for form, name := range namedIn(line) {
		if u.forms[form] && !u.words[name] {
			return true
		}
	}
	return false
}

// betweenColumns stands between two columns of a table.
var betweenColumns = lazy.Regexp(` {2,}|\t+| +[|│┃] *`)

func columns(line string) int { return len(betweenColumns().FindAllStringIndex(line, 20)) }

// turned tells whether a line is a row that the green output has with other amounts, some of them the same.
func (u usual) turned(line string) bool {
	if len(u.rows) == 0 {
		return false
	}
	was, is := u.rows[frameOf(steady(line))], amounts(line, nil)
	same := 0
	for i := range is {
		if len(was) == len(is) && was[i] == is[i] {
			same++
		}
	}
	return same > 0 && same < len(is)
}

// namedMax bounds the words of a line of which one may be a name.
const namedMax = 12

var plainName = lazy.Regexp(`^\pL[\w./-]*$`)

// namedIn yields a line without each of its words in turn, and that word. Two green lines that
// differ in one word only have the name of a thing there.
func namedIn(line string) iter.Seq2[string, string] {
	return func(yield func(form, name string) bool) {
		words := strings.Fields(line)
		steadied := strings.Fields(steady(line))
		if len(words) < 2 || len(words) > namedMax || len(words) != len(steadied) {
			return
		}
		for i, w := range steadied {
			if !plainName().MatchString(words[i]) {
				continue
			}
			steadied[i] = "@"
			if !yield(strings.Join(steadied, " "), words[i]) {
				return
			}
			steadied[i] = w
		}
	}
}

// made finds the names that each run makes anew: of a pod, a runner, a temporary folder. They
// stand in a line that the green output has with another name; a number or a version is none.
func (u usual) made(t text, from int) *strings.Replacer {
	var names []string
	for i := from; i < t.len() && len(u.lines) > 0; i++ {
		line := strings.TrimSpace(t.line(i))
		if line == "" || u.lines[stable(line)] || !u.like(line) {
			continue
		}
		for w := range strings.FieldsSeq(line) {
			name := strings.Trim(w, ".,:;!?()[]{}\"'")
			if !u.words[w] && len(names) < 2*maxNames && madeName(name) {
				names = append(names, name, "#")
			}
		}
	}
	return strings.NewReplacer(names...)
}

const maxNames = 20

// madeName tells whether a name is long, and of letters and digits.
func madeName(s string) bool {
	return len(s) >= 8 && strings.ContainsAny(s, "0123456789") &&
		strings.ContainsFunc(strings.TrimLeft(s, "vV"), unicode.IsLetter)
}

// frameOf is a line without its names: what a check says of each file alike.
func frameOf(line string) string { return named().ReplaceAllString(line, "@") }

var named = lazy.Regexp(`[^ |]*[\w#][./_:-][\w#][^ |]*`)
