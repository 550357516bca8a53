package runners

import (
	"bytes"
	"cmp"
	_ "embed" // runners.json
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
)

// runner is a test runner and how its output is read: line by line, by expressions, each of
// which but Sum may be missing; or by one of [readers]. They are in runners.json.
type runner struct {
	Name  string   `json:"name"`
	Words []string `json:"words"` // one of these is in what it prints
	// Fails begins a failing test: its name, and what the line says of it, in
	// groups called test, said and file.
	Fails Expression `json:"fails"`
	Files Expression `json:"files"` // names the file of the tests below it
	Names Expression `json:"names"` // names the test whose lines stand above
	Says  Expression `json:"says"`  // the place of the failure: what was said before is not its message
	At    Expression `json:"at"`    // nothing but a place; the first in the project is the failure's
	Calls Expression `json:"calls"` // a call of a trace; the last in the project is the failure's place
	Noise Expression `json:"noise"` // a line that says nothing of the test
	Drops Expression `json:"drops"` // the test has passed
	Ends  Expression `json:"ends"`  // the lines of the test end
	// Sum is a line of counts. Its groups are called passed, failed, skipped
	// and all; digits behind a name do not count.
	Sum  Expression `json:"sum"`
	Last bool       `json:"last"` // only the last sum counts, not all together
	None Expression `json:"none"` // tests were looked for, and there were none
	// Numbered: the failures are numbered, "  1) name", up to Ends; Below: they stand
	// below the counts.
	Numbered bool `json:"numbered"`
	Below    bool `json:"below"`
	Partly   bool `json:"partly"` // its failing tests count where the counts are missing
}

// readers read what no expression can, by the names of runners.
var readers = map[string]func(t printed.Text) (Tests, bool){
	"go": readGoTest, "pytest": readPytest, "junit": readJUnit, "node": nodeTest, "tap": readTestAnything,
}

//go:embed runners.json
var runnersFile []byte

// runners are made at their first use: they would be a part of every start. The order
// decides where one runner's summary contains another's.
var runners = sync.OnceValue(func() (all []runner) {
	d := json.NewDecoder(bytes.NewReader(runnersFile))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		panic("runners.json: " + err.Error()) // a test reads it
	}
	return all
})

func (r runner) readTests(t printed.Text) (Tests, bool) {
	if read := readers[r.Name]; read != nil {
		return read(t)
	}
	counts, from := map[string]int{}, 0
	seen := r.None.MatchesLine(t.All)
	for i := range t.LineCount() {
		m := r.Sum.Compiled().FindStringSubmatch(t.LineAt(i))
		if m == nil {
			continue
		}
		if seen = true; r.Last {
			clear(counts)
		}
		if r.Below {
			from = i
		}
		for g, name := range r.Sum.Compiled().SubexpNames() {
			n, _ := words.Number(m[g], 0)
			counts[strings.TrimRight(name, "0123456789")] += n
		}
	}
	if !seen && r.Partly {
		items := r.failingItems(t)
		return Tests{Runner: r.Name, Failed: len(items), Items: items}, len(items) > 0
	}
	if !seen {
		return Tests{}, false
	}
	out := Tests{Runner: r.Name, Failed: counts["failed"], Skipped: counts["skipped"]}
	out.Passed = counts["passed"] + max(counts["all"]-out.Failed-out.Skipped, 0)
	if r.Numbered {
		out.Items = numberedFailures(t, from, r.Ends.MatchesLine)
	} else {
		out.Items = r.failingItems(t)
	}
	if r.Numbered && out.Failed+out.Passed == 0 { // a piece without the counts
		out.Failed = len(out.Items)
	}
	return out, true
}

// failingItems returns the failing tests, with the lines of each.
func (r runner) failingItems(t printed.Text) []Item {
	started, file := map[string]bool{}, ""
	items := failingTests(t, func(f *failing, l string) {
		if r.Drops.MatchesLine(l) {
			f.b = nil
		}
		if r.Ends.MatchesLine(l) {
			f.keepTest()
		}
		if r.Files.MatchesLine(l) {
			file = r.Files.Compiled().FindStringSubmatch(l)[1]
		}
		it, said, ok := r.readFailure(l)
		if !ok {
			r.readLine(f, l)
			return
		}
		f.keepTest()
		if !started[it.Test] || it.Test == "" {
			it.File = cmp.Or(it.File, file)
			f.beginTest(it)
			f.b.readHead(l, said)
		}
		started[it.Test] = true
	})
	return slices.DeleteFunc(items, func(i Item) bool { return i.Test == "" })
}

// readFailure reads the first line of a failing test.
func (r runner) readFailure(l string) (it Item, said string, ok bool) {
	m := r.Fails.Compiled().FindStringSubmatch(l)
	if m == nil {
		return it, "", false
	}
	group := func(name string) string {
		for at, of := range r.Fails.Compiled().SubexpNames() { // an alternative has "test2"
			if of != "" && strings.TrimRight(of, "2") == name && m[at] != "" {
				return m[at]
			}
		}
		return ""
	}
	it = Item{Test: group("test"), File: group("file")}
	if r.Fails.Compiled().SubexpIndex("file") > 0 && it.File == "" && places.IsFile(it.Test) { // a whole file failed
		it.File = it.Test
	}
	return it, group("said"), true
}

// readLine reads a line that begins no test.
func (r runner) readLine(f *failing, l string) {
	switch {
	case r.Names.MatchesLine(l):
		if f.b == nil {
			f.beginTest(Item{})
		}
		f.b.Item.Test = r.Names.Compiled().FindStringSubmatch(l)[1]
		f.keepTest()
	case f.b == nil || r.Noise.MatchesLine(l):
	case r.At.MatchesLine(l):
		if f.b.Item.Line == 0 {
			f.b.setOwnPlace(l)
		}
	case r.Calls.MatchesLine(l):
		f.b.setOwnPlace(l)
	case f.b.Item.File == "" && r.Says.MatchesLine(l):
		f.b.Item.Message, f.b.n = "", 0
		f.b.setOwnPlace(l)
	default:
		f.addTestLine(l)
	}
}
