package failure

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/failure/places"
	"github.com/pawl-dev/pawl/internal/failure/words"
	"github.com/pawl-dev/pawl/internal/lazy"
)

// This file finds places whose file and line stand apart.

var (
	// fieldForm begins a line of a record: "line": 3, - file: a.yml, <finding line="2">.
	fieldForm = lazy.Regexp(`^(?:- |<)?[\w ]{0,20}"?[\w-]{1,20}"?[:=] ?\S`)
	// rowForm begins a line that tells where in the file above it stands: "  12  message", "  L6 |", "  3:4 message".
	rowForm = lazy.Regexp(`^[^\pL\d]{0,4}(?:L|[Ll]ine |[Rr]ow )?(\d{1,6})(?::(\d{1,6}))?(?:[:|)]| ?\||[ \t]+)[^\d]`)
	// lineInSentence is a line that a sentence names far from its file.
	lineInSentence = lazy.Regexp(`\b(?i:line|zeile|ligne|línea|linha|riga|regel|rad|linje|rivi) +(\d{1,6})\b|[(](\d{1,6}):\d{1,6}[)]\W*$`)
)

// apart finds the place of line i: in the fields of one record, by the file above a list of
// lines, or at two ends of a sentence.
func (o *outline) apart(i int) (places.Place, bool) {
	said := o.said(i)
	if fieldForm().MatchString(said) {
		if p, ok := places.ByName(o.record(i)); ok && !places.Foreign(p.File) {
			return p, true
		}
	}
	if places.IsFile(said) && i+1 < o.t.len() { // the first of the list is what it says of the file
		i++
	}
	if p, ok := o.row(i); ok {
		return p, true
	}
	if m := lineInSentence().FindStringSubmatch(said); m != nil {
		if file := places.FileIn(said); file != "" {
			line, _ := words.Number(m[1]+m[2], 0)
			return places.Place{File: file, Line: line}, line > 0
		}
	}
	return places.Place{}, false
}

// record is line i with the few fields that stand around it, in one line.
func (o *outline) record(i int) string {
	from, to := i, i+1
	starts := func(j int) bool { return strings.HasPrefix(o.said(j), "- ") }
	field := func(j int) bool { return fieldForm().MatchString(o.said(j)) }
	for from > max(0, i-4) && !starts(from) && field(from-1) {
		from--
	}
	for to < min(o.t.len(), i+4) && !starts(to) && field(to) {
		to++
	}
	all := ""
	for j := from; j < to; j++ {
		all += o.said(j) + " "
	}
	return all
}

// unnumbered is line i without its number in the list below the name of a file.
func (o *outline) unnumbered(i int) string {
	said := o.said(i)
	_, _, end := rowIn(said)
	if _, ok := o.row(i); ok && end > 0 {
		return said[end:]
	}
	return said
}

// row is the place of line i in the file whose name stands above the list that it is in.
func (o *outline) row(i int) (places.Place, bool) {
	l := o.t.line(i)
	if strings.HasPrefix(strings.TrimSpace(l), "^") && i > 0 { // it points at the row
		i--
		l = o.t.line(i)
	}
	deep := words.Indent(l)
	line, col, end := rowIn(l[deep:])
	if end == 0 || deep == 0 {
		return places.Place{}, false
	}
	for j := i - 1; j >= max(0, i-2*aroundMax); j-- {
		if name := o.said(j); name == "" || words.Indent(o.t.line(j)) < deep {
			p := places.Place{File: places.Tidy(name), Line: line, Col: col}
			return p, places.IsFile(name) && !places.Foreign(name)
		}
	}
	return places.Place{}, false
}

// rowIn reads the line and the column that said begins with; end is 0 for none. A number
// without a column is a count, where only a blank follows.
func rowIn(said string) (line, col, end int) {
	m := rowForm().FindStringSubmatchIndex(said)
	if len(m) == 0 || m[4] < 0 && said[m[3]] == ' ' && said[m[3]+1] != ' ' && said[m[3]+1] != '|' {
		return 0, 0, 0
	}
	line, end = words.Number(said, m[2])
	if m[4] >= 0 {
		col, end = words.Number(said, m[4])
	}
	return line, col, end
}
