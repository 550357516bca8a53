package runners

import (
	"cmp"
	"encoding/xml"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// readPytest reads "=== 4 failed, 3 passed in 0.11s ===", also without the rules.
func readPytest(t printed.Text) (Tests, bool) {
	out := Tests{Runner: "pytest"}
	errors, ok := 0, false
	for i := t.LineCount() - 1; i >= 0 && !ok; i-- {
		s := strings.Trim(t.LineAt(i), "= ")
		if ok = strings.Contains(s, " in ") && pytestSum().MatchString(s); ok {
			errors, out.Failed = countNear(s, " error"), countNear(s, " failed")
			out.Passed = countNear(s, " passed") + countNear(s, " xpassed")
			out.Skipped = countNear(s, " skipped") + countNear(s, " xfailed") + countNear(s, " deselected")
		}
	}
	if !ok { // a piece without the counts
		out.Items = slices.DeleteFunc(pytestItems(t), func(i Item) bool { return !strings.Contains(i.Test, "::") })
		out.Failed = len(out.Items)
		return out, out.Failed > 0
	}
	if !strings.Contains(t.All, "error during collection") && !strings.Contains(t.All, "errors during collection") {
		out.Failed += errors
	}
	out.Items = pytestItems(t)
	for i := range out.Items {
		it := &out.Items[i]
		if said, cut := strings.CutSuffix(it.Message, "..."); cut { // the whole line stands above
			_, rest, _ := strings.Cut("\n"+t.All, "\n"+said)
			rest, _, _ = strings.Cut(rest, "\n")
			it.Message = said + cmp.Or(rest, "...")
		}
		if it.Expected+it.Received == "" {
			it.Expected, it.Received = places.Values(it.Message)
		}
	}
	return out, true
}

var pytestSum = lazy.Regexp(`^(?:no tests ran|\d+ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed` +
	`|warnings?|rerun)(?:, \d+ [a-z]+)*) in [\d.]+s\b`)

// pytestItems reads the sections "____ test ____" and the short summary.
func pytestItems(t printed.Text) []Item {
	return failingTests(t, func(f *failing, l string) {
		switch {
		case strings.HasPrefix(l, "___") && strings.HasSuffix(strings.TrimSpace(l), "___"):
			name := strings.TrimPrefix(strings.Trim(l, "_ "), "ERROR at setup of ")
			f.beginTest(Item{Test: strings.TrimPrefix(name, "ERROR collecting ")})
		case strings.HasPrefix(l, "==="):
			f.keepTest()
		case strings.HasPrefix(l, "FAILED "), strings.HasPrefix(l, "ERROR "):
			f.items = addPytestShort(f.items, l)
		case strings.HasPrefix(l, "E "):
			f.addTestLine(l[1:])
		case f.b != nil:
			if p, ok := places.In(l); ok && p.From <= 1 && !places.IsForeign(p.File) {
				f.b.Item.File, f.b.Item.Line = p.File, p.Line
			}
		}
	})
}

// addPytestShort adds a line of the short summary: the file where the section did not name it, or a
// failure of its own.
func addPytestShort(items []Item, l string) []Item {
	_, rest, _ := strings.Cut(l, " ")
	id, msg, _ := strings.Cut(rest, " - ")
	file, test, _ := strings.Cut(id, "::")
	for i := range items {
		last := test[strings.LastIndex(test, "::")+1:]
		if n := items[i].Test; n == id || n == strings.ReplaceAll(strings.TrimPrefix(last, ":"), "::", ".") ||
			n == strings.ReplaceAll(test, "::", ".") || n == file {
			items[i].File = cmp.Or(items[i].File, file)
			if test != "" {
				items[i].Test = id // by which pytest runs it again
			}
			items[i].Message = cmp.Or(items[i].Message, msg)
			return items
		}
	}
	if test != "" {
		test = id
	}
	if len(items) < MaxItems {
		items = append(items, Item{Test: test, File: strings.TrimSpace(file), Message: msg})
	}
	return items
}

type junitSuite struct {
	Suites []junitSuite `xml:"testsuite"`
	Cases  []junitCase  `xml:"testcase"`
}

type junitCase struct {
	Name    string       `xml:"name,attr"`
	Class   string       `xml:"classname,attr"`
	File    string       `xml:"file,attr"`
	Line    string       `xml:"line,attr"`
	Failed  *junitResult `xml:"failure"`
	Broken  *junitResult `xml:"error"`
	Skipped *junitResult `xml:"skipped"`
}

type junitResult struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// readJUnit reads JUnit's XML inside of an output.
func readJUnit(t printed.Text) (Tests, bool) {
	_, report, _ := strings.Cut(t.All, "<testsuite")
	d := xml.NewDecoder(strings.NewReader("<testsuite" + report))
	d.Strict = false
	var all junitSuite
	_ = d.Decode(&all) // of a report that was cut what came before the cut counts
	out := Tests{Runner: "junit"}
	out.addSuite(all)
	return out, true
}

func (t *Tests) addSuite(suite junitSuite) {
	for _, c := range suite.Cases {
		if c.Failed == nil {
			c.Failed = c.Broken
		}
		switch {
		case c.Failed != nil:
			t.Failed++
			t.Items = append(t.Items, c.toFailureItem())
		case c.Skipped != nil:
			t.Skipped++
		default:
			t.Passed++
		}
	}
	for _, s := range suite.Suites {
		t.addSuite(s)
	}
}

func (c junitCase) toFailureItem() Item {
	b := Body{Item: Item{Test: c.Name, File: c.File, Message: c.Failed.Message}}
	b.Item.Line, _ = words.Number(c.Line, 0)
	if c.Class != "" && !strings.HasPrefix(c.Name, c.Class) {
		b.Item.Test = c.Class + "." + c.Name
	}
	said := strings.TrimSpace(c.Failed.Text)
	if b.Item.Line == 0 {
		lines := Body{Silent: true}
		for l := range strings.Lines(said) {
			lines.ReadLine(strings.TrimRight(l, "\n"))
		}
		b.Item.File, b.Item.Line, b.Item.Column = cmp.Or(lines.Item.File, c.File), lines.Item.Line, lines.Item.Column
	}
	b.Item.Message = cmp.Or(b.Item.Message, words.Cut(said, MaxMessage))
	b.Item.Expected, b.Item.Received = places.Values(b.Item.Message)
	return b.Item
}
