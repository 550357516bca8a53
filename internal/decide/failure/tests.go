package failure

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
)

// ParseTests reads what a test runner says in output: its counts and its
// failing tests, at most 20. It knows go test (plain, -v and -json), jest,
// vitest, Playwright, pytest, unittest, cargo test, JUnit's XML, TAP, node:test, mocha,
// rspec, minitest, ExUnit, PHPUnit, Pest, surefire, Gradle, dotnet test, GoogleTest,
// CTest, XCTest, Swift Testing, cargo nextest, zig, Deno and Bun. False
// means that no runner's summary was recognised; true with Passed and Failed
// both 0 means that a runner ran and executed no tests.
//
// go test without -v does not say how many tests passed: each package that
// passed counts as one.
func ParseTests(output string) (Tests, bool) {
	return parseTests(splitText(readOutput(boundOutput(output)).text))
}

func parseTests(t text) (Tests, bool) {
	for _, r := range runners() {
		for _, w := range r.Words {
			if !strings.Contains(t.s, w) {
				continue
			}
			if found, ok := r.readTests(t); ok {
				if len(found.Items) > maxItems {
					found.Items = found.Items[:maxItems]
				}
				return found, true
			}
			break
		}
	}
	return Tests{}, false
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
func failingTests(t text, read func(f *failing, l string)) []Item {
	var f failing
	for i := range t.lineCount() {
		read(&f, t.lineAt(i))
	}
	f.endTest()
	return f.items
}

// failing collects the failing tests of an output while its lines are read.
type failing struct {
	items []Item
	b     *body // the test that the lines belong to; nil between two
}

// beginTest ends the test before, and starts another.
func (f *failing) beginTest(i Item) {
	f.endTest()
	f.b = &body{item: i}
}

// endTest keeps the test whose lines were read.
func (f *failing) endTest() {
	if f.b != nil && len(f.items) < maxItems {
		f.items = append(f.items, f.b.item)
	}
	f.b = nil
}

// addLine gives a line to the test that it belongs to.
func (f *failing) addLine(l string) {
	if f.b != nil {
		f.b.readLine(l)
	}
}

// numberedFailures reads failures that a runner numbers, " 1) name", each with the lines up to the
// next one. A name may continue over lines that are deeper indented and end in ":".
func numberedFailures(t text, from int, isEnd func(l string) bool) []Item {
	var f failing
	naming := false
	for i := from; i < t.lineCount(); i++ {
		l := t.lineAt(i)
		if name, ok := numberedName(l); ok {
			f.beginTest(Item{Test: name})
			// hspec says where above it
			if p, ok := places.In(t.lineAt(max(0, i-1))); ok && strings.Trim(p.Rest, ": ") == "" {
				f.b.standOwn(t.lineAt(i - 1))
			}
			naming = !strings.HasSuffix(name, ":") || name == "Error:" || name == "Failure:"
			continue
		}
		if isEnd(l) {
			f.endTest()
		}
		if f.b == nil || naming && continueName(f.b, l, &naming) {
			continue
		}
		naming = naming && strings.TrimSpace(l) == ""
		f.b.readLine(l)
	}
	f.endTest()
	return slices.DeleteFunc(f.items, func(i Item) bool { return i.Message == "" && i.File == "" })
}

// continueName reads a line as a part of the name of a test that its first line did not end, and
// reports whether it is one.
func continueName(b *body, l string, naming *bool) bool {
	said := strings.TrimSpace(l)
	if b.item.Test == "Error:" || b.item.Test == "Failure:" {
		b.item.Test, *naming = strings.TrimSuffix(said, ":"), false
		if p, ok := places.In(b.item.Test); ok { // minitest: T#test [file:4]
			b.item.File, b.item.Line = p.File, p.Line
			b.item.Test = strings.TrimRight(b.item.Test[:p.From], " [")
		}
		return true
	}
	if !strings.HasPrefix(l, "       ") || said == "" || places.ValueLine().MatchString(said) || b.item.Message != "" {
		return false
	}
	b.item.Test += " › " + strings.TrimSuffix(said, ":")
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
	return strings.TrimSpace(s[i+2:]), true
}

// readExcerpt reads failing tests from a piece of a runner's output that lacks its summary, as
// people and agents paste it: a line that names a file or a test, and below it what was expected
// and what was received.
func readExcerpt(t text) []Item {
	var items []Item
	var b body
	flush := func() {
		if b.item.Expected != "" && b.item.Received != "" && len(items) < maxItems {
			items = append(items, b.item)
		}
	}
	for i := range t.lineCount() {
		said := strings.TrimSpace(t.lineAt(i))
		if it, ok := readHeading(said); ok {
			flush()
			it.File = cmp.Or(it.File, b.item.File)
			b = body{item: it}
			continue
		}
		if said == "" {
			b.value = nil
			continue
		}
		if i > 0 && strings.HasPrefix(strings.TrimSpace(t.lineAt(i-1)), `File "`) { // the source of a call
			continue
		}
		want, got := places.Values(said)
		if b.item.Expected != "" && b.item.Received != "" && want+got != "" { // the next one
			flush()
			b = body{item: Item{File: b.item.File, Test: b.item.Test}}
		}
		b.silent = b.item.File+b.item.Test == "" || b.silent // before the first heading anything may stand
		b.readLine(said)
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
		return Item{File: file, Test: test}, true
	}
	return Item{Test: rest}, true
}
