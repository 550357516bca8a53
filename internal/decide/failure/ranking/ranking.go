// Package ranking gives each line of an output a number: how well it says what went wrong. It knows no
// tool, only features that all outputs share, and weights.txt has what each of them counts. The weights
// are learnt from labelled outputs by scripts/rank. The package never decides which line is shown.
package ranking

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
)

//go:embed weights.txt
var weightFile string

// weights has hundredths of what each feature counts, by its name.
var weights = sync.OnceValue(func() map[string]float64 {
	table := map[string]float64{}
	for line := range strings.Lines(weightFile) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		hundredths, err := strconv.Atoi(value)
		if err != nil {
			panic("weights.txt: " + err.Error()) // a test reads it
		}
		table[name] = float64(hundredths) / 100
	}
	return table
})

// None is the number of a blank line.
const None = -1000

// Lines returns for each line how well it says what went wrong. Only the differences between the
// numbers mean something. Of a long line only the start is examined.
func Lines(lines []string) []float64 { return scoreLinesBy(weights(), lines) }

// scoreLinesBy is [Lines] by other weights than those that are built in.
func scoreLinesBy(table map[string]float64, lines []string) []float64 {
	scores := make([]float64, len(lines))
	for i := range scores {
		scores[i] = None
	}
	eachFeature(lines, func(i int, name string) {
		if scores[i] == None {
			scores[i] = 0
		}
		scores[i] += table[name]
	})
	return scores
}

// examined is the length to which a line is looked at.
const examined = 240

// line is what is known of one line by itself.
type line struct {
	at      int // in the lines of the caller
	text    string
	indent  int
	marks   marks
	failing int // words for a failure
	shape   string
}

// eachFeature calls found for each feature of each line that is not blank.
func eachFeature(texts []string, found func(i int, name string)) {
	lines := make([]line, 0, len(texts))
	for i, text := range texts {
		if text = words.Cut(text, examined); strings.TrimSpace(text) != "" {
			lines = append(lines, readLine(i, text))
		}
	}
	o := outputOf(lines)
	for n, l := range lines {
		add := func(name string) { found(l.at, name) }
		l.eachOwnFeature(add)
		blankAbove := l.at > 0 && strings.TrimSpace(texts[l.at-1]) == ""
		blankBelow := l.at+1 < len(texts) && strings.TrimSpace(texts[l.at+1]) == ""
		o.eachAround(n, blankAbove, blankBelow, add)
	}
}

// eachOwnFeature calls add for each feature that the line has by itself.
func (l line) eachOwnFeature(add func(name string)) {
	add("indent " + bucketOf(l.indent))
	add("words " + bucketOf(len(strings.Fields(l.text))))
	add("failing " + strconv.Itoa(min(l.failing, 3)))
	l.marks.eachName(add)
	seen := map[string]bool{}
	for i, word := range wordsOfLine(l.text) {
		if i == 0 {
			add("first:" + word)
		}
		if !seen[word] && len(seen) < 40 {
			seen[word] = true
			add("word:" + word)
		}
	}
}

// bucketOf names the range that a count lies in.
func bucketOf(n int) string {
	for _, most := range []int{0, 1, 2, 3, 5, 8, 12, 20, 40, 80} {
		if n <= most {
			return strconv.Itoa(most)
		}
	}
	return "more"
}

// output is what is known of all lines together.
type output struct {
	lines  []line
	shapes map[string]int
	opened map[string]int // the first line of each shape
	groups []group
}

// group is a kind of lines, and how many of it stand before each line.
type group struct {
	name   string
	member func(l line) bool
	before []int
	all    int
}

func outputOf(lines []line) *output {
	o := &output{lines: lines, shapes: map[string]int{}, opened: map[string]int{}, groups: []group{
		{name: "strong", member: func(l line) bool { return l.marks.hasAnyForm("strong") }},
		{name: "begins", member: func(l line) bool { return l.marks.hasAnyForm("begins", "named", "leveled") }},
		{name: "located", member: func(l line) bool {
			return l.marks.hasAnyForm("place") && !l.marks.hasAnyForm("frame", "place alone")
		}},
		{name: "fails", member: func(l line) bool { return l.failing > 0 }},
	}}
	for n, l := range lines {
		if o.shapes[l.shape]++; o.shapes[l.shape] == 1 {
			o.opened[l.shape] = n
		}
		for g := range o.groups {
			o.groups[g].before = append(o.groups[g].before, o.groups[g].all)
			if o.groups[g].member(l) {
				o.groups[g].all++
			}
		}
	}
	return o
}

// pairedMarks are the marks that count another way by what stands around the line.
var pairedMarks = strings.Fields("strong begins place named leveled counts exit capital frame warns coded prefix " +
	"digit path quote source upper small number echo clock")

// eachAround calls add for each feature that line n has by what stands around it, and for the pairs
// of such a feature and a mark of the line.
func (o *output) eachAround(n int, blankAbove, blankBelow bool, add func(name string)) {
	l := o.lines[n]
	var paired []string
	pair := func(holds bool, name string) {
		if holds {
			add(name)
			paired = append(paired, name)
		}
	}
	behind := len(o.lines) - 1 - n
	add("end " + bucketOf(behind))
	add("start " + bucketOf(n))
	pair(behind == 0, "last")
	pair(behind == 1, "last but one")
	pair(l.indent == 0, "outermost")
	pair(blankAbove, "blank above")
	pair(blankBelow, "blank below")
	for _, g := range o.groups {
		member := g.member(l)
		after := g.all - g.before[n]
		if member {
			after--
		}
		add(g.name + " before " + bucketOf(g.before[n]))
		add(g.name + " after " + bucketOf(after))
		pair(member && g.before[n] == 0, g.name+" first")
		pair(member && after == 0, g.name+" last")
	}
	for _, side := range []struct {
		name string
		n    int
	}{{"above ", n - 1}, {"below ", n + 1}} {
		if side.n < 0 || side.n >= len(o.lines) {
			add(side.name + "none")
			continue
		}
		other := o.lines[side.n]
		for _, mark := range []string{"strong", "frame", "place", "ends :"} {
			pair(other.marks.hasAnyForm(mark), side.name+mark)
		}
		switch {
		case other.indent < l.indent:
			add(side.name + "outer")
		case other.indent > l.indent:
			add(side.name + "inner")
		}
	}
	pair(l.failing > 0, "failing "+strconv.Itoa(min(l.failing, 3)))
	pair(l.failing == 0, "failing 0")
	pair(l.marks.hasAnyForm("quote"), "quote")
	pair(l.marks.hasAnyForm("ends :"), "ends :")
	add("alike " + strconv.Itoa(min(o.shapes[l.shape], 4)))
	pair(o.shapes[l.shape] > 1 && o.opened[l.shape] == n, "alike first")
	for _, mark := range pairedMarks {
		if l.marks.hasAnyForm(mark) {
			for _, name := range paired {
				add(mark + " & " + name)
			}
		}
	}
}
