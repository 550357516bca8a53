// Package runners reads what test runners print: which one it was, how many tests passed and
// failed, and for each failing test where it is, what it expected and what it got.
package runners

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// Read reads the summary of whichever runner t has; false means that it has none.
func Read(t printed.Text) (Tests, bool) {
	for _, r := range runners() {
		for _, w := range r.Words {
			if !strings.Contains(t.All, w) {
				continue
			}
			if found, ok := r.readTests(t); ok {
				if found.Failed > 0 && len(found.Items) == 0 {
					found.Items = listedTests(t)
				}
				if len(found.Items) > MaxItems {
					found.Items = found.Items[:MaxItems]
				}
				return found, true
			}
			break
		}
	}
	return Tests{}, false
}

var (
	// listHead stands above the names of the tests that failed.
	listHead = lazy.Regexp(`^(?:\W*)(?i:failures|failed tests|failing tests|(?:the following )?tests failed):$`)
	// listedName is a test in that list, or in a table where three counts stand behind it, or in Julia's.
	listedName = lazy.Regexp(`^\s+(?:- )?([\w.:/#-]+)$|^(\S[^|]*?) +\| +\d+ +\d+ +\d+\b`)
)

// listedTests returns the names of failing tests of which nothing else is said.
func listedTests(t printed.Text) []Item {
	listed := false
	return failingTests(t, func(f *failing, l string) {
		name := listedName().FindStringSubmatch(l)
		switch {
		case listHead().MatchString(l):
			listed = true
		case name == nil:
			listed = false
		case listed, name[2] != "":
			f.beginTest(Item{Test: name[1] + name[2]})
		}
	})
}

// countNear returns the number before or after a word in s: "3 failed", "Failures: 3". Zero when
// the word is not there.
func countNear(s, word string) int {
	for at := 0; ; {
		i := strings.Index(s[at:], word)
		if i < 0 {
			return 0
		}
		i += at
		at = i + len(word)
		if strings.HasSuffix(word, ":") || strings.HasSuffix(word, "=") {
			n, _ := words.Number(strings.TrimLeft(s[at:], " "), 0)
			return n
		}
		from := strings.TrimRight(s[:i], " ")
		j := len(from)
		for j > 0 && words.IsDigit(from[j-1]) {
			j--
		}
		if j < len(from) && len(from)-j <= 7 {
			n, _ := strconv.Atoi(from[j:])
			return n
		}
	}
}

// failingTests returns the failing tests that read finds, line by line.
func failingTests(t printed.Text, read func(f *failing, l string)) []Item {
	var f failing
	for i := range t.LineCount() {
		read(&f, t.LineAt(i))
	}
	f.keepTest()
	return f.items
}

// failing collects the failing tests of an output while its lines are read.
type failing struct {
	items []Item
	b     *Body // the test that the lines belong to; nil between two
}

// beginTest ends the test before, and starts another.
func (f *failing) beginTest(i Item) {
	f.keepTest()
	f.b = &Body{Item: i}
}

// keepTest keeps the test whose lines were read.
func (f *failing) keepTest() {
	if f.b != nil && len(f.items) < MaxItems {
		f.items = append(f.items, f.b.Item)
	}
	f.b = nil
}

// addTestLine gives a line to the test that it belongs to.
func (f *failing) addTestLine(l string) {
	if f.b != nil {
		f.b.ReadLine(l)
	}
}

// numberedFailures reads failures that a runner numbers, " 1) name", each with the lines up to the
// next one. A name may continue over lines that are deeper indented and end in ":".
func numberedFailures(t printed.Text, from int, isEnd func(l string) bool) []Item {
	var f failing
	naming := false
	for i := from; i < t.LineCount(); i++ {
		l := t.LineAt(i)
		if name, ok := numberedName(l); ok {
			f.beginTest(Item{Test: name})
			// hspec says where above it
			if p, ok := places.In(t.LineAt(max(0, i-1))); ok && strings.Trim(p.Rest, ": ") == "" {
				f.b.setOwnPlace(t.LineAt(i - 1))
			}
			naming = !strings.HasSuffix(name, ":") || name == "Error:" || name == "Failure:"
			continue
		}
		if isEnd(l) {
			f.keepTest()
		}
		if f.b == nil || naming && continueName(f.b, l, &naming) {
			continue
		}
		naming = naming && strings.TrimSpace(l) == ""
		f.b.ReadLine(l)
	}
	f.keepTest()
	return slices.DeleteFunc(f.items, func(i Item) bool { return i.Message == "" && i.File == "" })
}

// continueName reads a line as a part of the name of a test that its first line did not end, and
// reports whether it is one.
func continueName(b *Body, l string, naming *bool) bool {
	said := strings.TrimSpace(l)
	if b.Item.Test == "Error:" || b.Item.Test == "Failure:" {
		b.Item.Test, *naming = strings.TrimSuffix(said, ":"), false
		if p, ok := places.In(b.Item.Test); ok { // minitest: T#test [file:4]
			b.Item.File, b.Item.Line = p.File, p.Line
			b.Item.Test = strings.TrimRight(b.Item.Test[:p.From], " [")
		}
		return true
	}
	if said == "Message:" { // jasmine's head of what is said
		return true
	}
	says := said == "" || strings.Contains(said, "exception: ") || places.ValueLine().MatchString(said)
	if !strings.HasPrefix(l, "       ") || says || b.Item.Message != "" {
		return false
	}
	b.Item.Test += " › " + strings.TrimSuffix(said, ":")
	*naming = !strings.HasSuffix(said, ":")
	return true
}

// numberedName reads " 12) name".
func numberedName(l string) (string, bool) {
	if l == "Failure:" || l == "Error:" { // Rails leaves the number out
		return l, true
	}
	s := strings.TrimLeft(l, " ")
	n, i := words.Number(s, 0)
	if n == 0 || !strings.HasPrefix(s[i:], ") ") {
		return "", false
	}
	return strings.TrimPrefix(strings.TrimSpace(s[i+2:]), "Failed : "), true // NUnit
}

// ReadExcerpt reads failing tests from a piece of a runner's output that lacks its summary, as
// people and agents paste it: a line that names a file or a test, and below it what was expected
// and what was received.
func ReadExcerpt(t printed.Text) []Item {
	items := numberedFailures(t, 0, func(string) bool { return false })
	if slices.ContainsFunc(items, func(i Item) bool { return i.Message != "" && i.Line > 0 }) {
		return items
	}
	items = nil
	var b Body
	flush := func() {
		if b.Item.Expected != "" && b.Item.Received != "" && len(items) < MaxItems {
			items = append(items, b.Item)
		}
	}
	for i := range t.LineCount() {
		said := strings.TrimSpace(t.LineAt(i))
		if it, ok := readHeading(said); ok {
			flush()
			it.File = cmp.Or(it.File, b.Item.File)
			b = Body{Item: it}
			continue
		}
		if said == "" {
			b.value = nil
			continue
		}
		if i > 0 && strings.HasPrefix(strings.TrimSpace(t.LineAt(i-1)), `File "`) { // the source of a call
			continue
		}
		want, got := places.Values(said)
		if b.Item.Expected != "" && b.Item.Received != "" && want+got != "" { // the next one
			flush()
			b = Body{Item: Item{File: b.Item.File, Test: b.Item.Test}}
		}
		b.Silent = b.Item.File+b.Item.Test == "" || b.Silent // before the first heading anything may stand
		b.ReadLine(said)
	}
	flush()
	return items
}

// readHeading reads a line that names the file or the test that failed.
func readHeading(said string) (Item, bool) {
	if rest, ok := strings.CutPrefix(said, "● "); ok {
		return Item{Test: rest}, true
	}
	if name, ok := numberedName(said); ok { // jasmine
		return Item{Test: name}, true
	}
	rest, ok := strings.CutPrefix(said, "FAIL ")
	if !ok {
		rest, ok = strings.CutPrefix(said, "FAILED ")
	}
	if rest = strings.TrimSpace(rest); !ok || rest == "" {
		return Item{}, false
	}
	file, test, _ := strings.Cut(rest, " > ") // vitest
	if test == "" {
		file, test, _ = strings.Cut(rest, "::") // pytest
	}
	if places.IsFile(file) {
		file = file[strings.LastIndexByte(file, ' ')+1:] // jest puts a project before it
		return Item{File: file, Test: test}, true
	}
	return Item{Test: rest}, true
}
