package failure

import (
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
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
		if p, ok := places.Keyed(o.record(i)); ok && !places.Foreign(p.File) {
			return p, true
		}
	}
	if p, ok := o.cell(i); ok {
		return p, true
	}
	if places.Heading(said) != "" && i+1 < o.t.len() { // the first of the list is what it says of the file
		i++
	}
	if p, ok := o.row(i); ok {
		return p, true
	}
	if m := lineInSentence().FindStringSubmatchIndex(said); m != nil {
		file := places.FileIn(said)
		if file == "" && i > 0 && m[0] == 0 {
			file = places.FileIn(o.said(i - 1))
		}
		if m := lineInSentence().FindStringSubmatch(said); file != "" {
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
	field := func(j int) bool {
		said := o.said(j)
		return fieldForm().MatchString(said) || said != "" && strings.Trim(said, "{}[],") == "" && said != "},"
	}
	for from > max(0, i-8) && !starts(from) && field(from-1) {
		from--
	}
	for to < min(o.t.len(), i+6) && !starts(to) && field(to) {
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
	// it points at the row
	if said := o.said(i); i > 0 && (strings.HasPrefix(said, "^") || strings.HasPrefix(said, "| ")) {
		i--
	}
	deep, said := branch(o.t.line(i))
	line, col, end := rowIn(said)
	if end == 0 || deep == 0 {
		return places.Place{}, false
	}
	for j := i - 1; j >= max(0, i-2*aroundMax); j-- {
		at, name := branch(o.t.line(j))
		if name == "" || at >= deep {
			continue
		}
		file := places.Heading(name)
		if file == "" || places.Foreign(file) {
			break
		}
		inTree := strings.ContainsAny(o.t.line(j), "├└╰")
		for k := j - 1; inTree && k >= max(0, j-2*aroundMax) && at > 0; k-- {
			up, folder := branch(o.t.line(k))
			if strings.ContainsAny(folder, " :") && up < at {
				break
			}
			if up < at && folder != "" {
				at, file = up, strings.TrimSuffix(folder, "/")+"/"+file
			}
		}
		return places.Place{File: file, Line: line, Col: col}, true
	}
	return places.Place{}, false
}

// branch is how far a line is indented, with the branches of a tree, and what it says.
func branch(l string) (deep int, said string) {
	said = strings.TrimLeft(l, " \t│├└╰─┃")
	return utf8.RuneCountInString(l[:len(l)-len(said)]), strings.TrimSpace(said)
}

// betweenCells stands between the cells of a row.
var betweenCells = lazy.Regexp(` *[|│┃] *| {2,}|\t+|[,;]`)

func cells(l string) []string {
	if len(l) > shownMax || !words.Has(l, "  ", "|", "│", "┃", "\t", ",", ";") {
		return nil
	}
	l = strings.Trim(strings.TrimSpace(l), "|│┃ ")
	return betweenCells().Split(l, 12)
}

// cell is the place that a row of a table names in the columns for a file and a line.
func (o *outline) cell(i int) (places.Place, bool) {
	if !strings.ContainsAny(o.said(i), "0123456789") {
		return places.Place{}, false
	}
	row := cells(o.said(i))
	at, line := o.column(i, row, places.LineWord()), 0
	if at >= 0 {
		line, _ = words.Number(row[at], 0)
	}
	for _, c := range row {
		if line > 0 && places.IsFile(c) {
			return places.Place{File: c, Line: line}, true
		}
	}
	return places.Place{}, false
}

// column is the one of a row whose head is one of the names; -1 for none.
func (o *outline) column(i int, row []string, names map[string]bool) int {
	for j := i - 1; len(row) > 1 && j >= max(0, i-2*aroundMax); j-- {
		heads := cells(o.said(j))
		if len(heads) < 2 || len(heads) > len(row) {
			continue
		}
		for k, head := range heads {
			if names[strings.ToLower(head)] {
				return k
			}
		}
	}
	return -1
}

var (
	wantHeads = words.Set(`want wanted expected limit budget max maximum target should required allowed`)
	gotHeads  = words.Set(`got actual received found is was have current size bytes value result`)
)

// compared are the two values that a row of a table holds against each other.
func (o *outline) compared(i int) (want, got string) {
	row := cells(o.said(i))
	if len(row) < 3 {
		return "", ""
	}
	if w, g := o.column(i, row, wantHeads()), o.column(i, row, gotHeads()); w >= 0 && g >= 0 && row[w] != row[g] {
		return row[w], row[g]
	}
	return "", ""
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
