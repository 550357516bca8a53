package failure

import (
	"path"
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
	// lineInSentence is a line that a sentence names far from its file.
	lineInSentence = lazy.Regexp(`\b(?i:line|zeile|ligne|línea|linha|riga|regel|rad|linje|rivi) +(\d{1,6})\b` +
		`|[(](\d{1,6}):\d{1,6}[)]\W*$`)
)

// scatteredPlace finds the place of line i in the fields of one record, by the file above a list of
// lines, or at two ends of a sentence.
func (o *outline) scatteredPlace(i int) (places.Place, bool) {
	said := o.textAt(i)
	if fieldForm().MatchString(said) {
		if p, ok := places.Keyed(o.recordAt(i)); ok && !places.IsForeign(p.File) {
			return p, true
		}
	}
	if p, ok := o.cellPlace(i); ok {
		return p, true
	}
	if places.Heading(said) != "" && i+1 < o.t.LineCount() { // the first of the list is what it says of the file
		i++
	}
	if p, ok := o.rowPlace(i); ok {
		return p, true
	}
	if m := lineInSentence().FindStringSubmatchIndex(said); m != nil {
		file := places.FileIn(said)
		for j := i - 1; file == "" && m[0] == 0 && j >= max(0, i-4); j-- {
			file = places.FileIn(o.textAt(j))
		}
		if m := lineInSentence().FindStringSubmatch(said); file != "" {
			line, _ := words.Number(m[1]+m[2], 0)
			return places.Place{File: file, Line: line}, line > 0
		}
	}
	return places.Place{}, false
}

// recordAt returns line i with the few fields that stand around it, in one line.
func (o *outline) recordAt(i int) string {
	from, to := i, i+1
	starts := func(j int) bool { return strings.HasPrefix(o.textAt(j), "- ") }
	field := func(j int) bool {
		said := o.textAt(j)
		return fieldForm().MatchString(said) || said != "" && strings.Trim(said, "{}[],") == "" && said != "},"
	}
	for from > max(0, i-8) && !starts(from) && field(from-1) {
		from--
	}
	for to < min(o.t.LineCount(), i+6) && !starts(to) && field(to) {
		to++
	}
	all := ""
	for j := from; j < to; j++ {
		all += o.textAt(j) + " "
	}
	return all
}

// withoutNumber returns line i without its number in the list below the name of a file.
func (o *outline) withoutNumber(i int) string {
	said := o.textAt(i)
	_, _, end := parseLineColumn(said)
	if _, ok := o.rowPlace(i); ok && end > 0 {
		return said[end:]
	}
	return said
}

// rowPlace returns the place of line i in the file whose name stands above the list that it is in.
func (o *outline) rowPlace(i int) (places.Place, bool) {
	deep, said := splitIndent(o.t.LineAt(i))
	line, col, end := parseLineColumn(said)
	if end == 0 || deep == 0 {
		return places.Place{}, false
	}
	for j := i - 1; j >= max(0, i-2*aroundMax); j-- {
		at, name := splitIndent(o.t.LineAt(j))
		if name == "" || at >= deep {
			continue
		}
		file := places.Heading(name)
		if file == "" || places.IsForeign(file) {
			break
		}
		inTree := strings.ContainsAny(o.t.LineAt(j), "├└╰")
		for k := j - 1; inTree && k >= max(0, j-2*aroundMax) && at > 0; k-- {
			up, folder := splitIndent(o.t.LineAt(k))
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

// splitIndent returns how far a line is indented, with the branches of a tree, and the text behind
// that.
func splitIndent(l string) (deep int, said string) {
	said = strings.TrimLeft(l, " \t│├└╰─┃")
	return utf8.RuneCountInString(l[:len(l)-len(said)]), strings.TrimSpace(said)
}

// betweenCells stands between the cells of a row.
var betweenCells = lazy.Regexp(` *[|│┃] *| {2,}|\t+|[,;]`)

func splitCells(l string) []string {
	if len(l) > shownMax || !words.Has(l, "  ", "|", "│", "┃", "\t", ",", ";") {
		return nil
	}
	l = strings.Trim(strings.TrimSpace(l), "|│┃ ")
	return betweenCells().Split(l, 12)
}

// cellPlace returns the place that a row of a table names in the columns for a file and a line.
func (o *outline) cellPlace(i int) (places.Place, bool) {
	if !strings.ContainsAny(o.textAt(i), "0123456789") {
		return places.Place{}, false
	}
	row := splitCells(o.textAt(i))
	at, line := o.columnOf(i, row, places.LineWord()), 0
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

// columnOf returns the index of the cell of a row whose head is one of the names; -1 for none.
func (o *outline) columnOf(i int, row []string, names map[string]bool) int {
	for j := i - 1; len(row) > 1 && j >= max(0, i-2*aroundMax); j-- {
		heads := splitCells(o.textAt(j))
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

// comparedValues returns the wanted and the actual value in a row of a table.
func (o *outline) comparedValues(i int) (want, got string) {
	row := splitCells(o.textAt(i))
	if len(row) < 3 {
		return "", ""
	}
	if w, g := o.columnOf(i, row, wantHeads()), o.columnOf(i, row, gotHeads()); w >= 0 && g >= 0 && row[w] != row[g] {
		return row[w], row[g]
	}
	return "", ""
}

// rowForm begins a line with its place in the file above it: " 12 message", " L6 |", " 3:4
// message".
var rowForm = lazy.Regexp(`^[^\pL\d]{0,4}(?:L|[Ll]ine |[Rr]ow )?(\d{1,6})` +
	`(?::(\d{1,6})(?:-\d+:\d+)?)?(?:[:|)]| ?\||[ \t]+)[^\d]`)

// parseLineColumn reads the line and the column that said begins with; end is 0 for none. A number
// without a column is a count, where only a blank follows.
func parseLineColumn(said string) (line, col, end int) {
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

// This file finds what stopped a file of tests from being loaded: runners say only that the file failed.

// loaderSays matches a runner's message about a file of tests that it could not load, without the reason.
var loaderSays = lazy.Regexp(`^(?:exitCode: \d+|'?test failed'?|exited with a non-zero exit code.*|.{0,3})(?:\n|$)`)

// explainLoads gives failing files of tests the error that stopped them.
func (o *outline) explainLoads(items []Item) []Item {
	for n := range items {
		it := &items[n]
		file, _, _ := strings.Cut(it.Test, " exited with ")
		if !places.IsFile(file) || !loaderSays().MatchString(it.Message) {
			continue
		}
		i := o.exceptionLineIn(path.Base(file))
		if i < 0 {
			continue
		}
		it.Message, it.File, it.Line, it.Column = o.textAt(i), file, 0, 0
		if p, ok := o.placeOfException(i); ok {
			it.File, it.Line, it.Column = p.File, p.Line, p.Col
		} else if from := importingFile(it.Message); from != "" {
			it.File = from
		}
	}
	return items
}

// importedFrom ends what imports a thing that is missing.
var importedFrom = lazy.Regexp(
	`(?: imported|(?:module|import|resolve) ["'\x60][^"'\x60]+["'\x60]) from ["'\x60]?([^"'\x60]+?)["'\x60]?\.?$`)

// importingFile returns the file that imports what is missing, where the message names it.
func importingFile(said string) string {
	if m := importedFrom().FindStringSubmatch(said); m != nil {
		return places.Tidy(m[1])
	}
	return ""
}

// exceptionLineIn is the line of the first exception beside which a file is named; -1 for none.
func (o *outline) exceptionLineIn(file string) int {
	for i := range o.parts {
		if !exception().MatchString(o.textAt(i)) {
			continue
		}
		for j := max(0, i-aroundMax); j < min(o.t.LineCount(), i+aroundMax); j++ {
			if strings.Contains(o.t.LineAt(j), file) {
				return i
			}
		}
	}
	return -1
}

// placeOfException is the place of the project at which an exception of line i was thrown: the first of the calls below
// it.
func (o *outline) placeOfException(i int) (places.Place, bool) {
	for j := i + 1; j < min(o.t.LineCount(), i+2*aroundMax) && o.textAt(j) != ""; j++ {
		if p, ok := places.In(o.textAt(j)); ok && !places.IsForeign(p.File) {
			return p, true
		}
	}
	return places.Place{}, false
}
