package failure

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

// ParseTests reads what a test runner says in output: its counts and its
// failing tests, at most 20. It knows go test (plain, -v and -json), jest,
// vitest, Playwright, pytest, unittest, cargo test, JUnit's XML, TAP, node:test, mocha,
// rspec, minitest, ExUnit, PHPUnit, Pest, surefire and dotnet test. False
// means that no runner's summary was recognised; true with Passed and Failed
// both 0 means that a runner ran and executed no tests.
//
// go test without -v does not say how many tests passed: each package that
// passed counts as one.
func ParseTests(output string) (Tests, bool) {
	return parseTests(split(readable(bound(output)).text))
}

// runner reads one sort of summary. Its words are looked for first, so that
// the reading costs nothing where the runner did not run.
type runner struct {
	words []string // one of these is in the text
	read  func(t text) (Tests, bool)
}

// The order decides where one runner's summary contains another's.
var runners = sync.OnceValue(func() []runner {
	return []runner{
		{[]string{"--- FAIL", "--- PASS", "--- SKIP", "\nok  \t", "ok  \t", "FAIL\t", "[no test files]", "no tests to run"},
			goTests},
		{[]string{"Test Suites:", "Tests:  "}, jest},
		{[]string{"Test Files  ", "      Tests  "}, vitest},
		{[]string{" › "}, playwright},
		{[]string{" in ", "no tests ran", "short test summary"}, pytest},
		{[]string{"Ran ", "NO TESTS RAN"}, unittest},
		{[]string{"test result: "}, cargo},
		{[]string{"<testsuite"}, junit},
		{[]string{"Tests run: "}, surefire},
		{[]string{"ℹ tests ", "# tests "}, nodeTest},
		{[]string{" passing ("}, mocha},
		{[]string{" examples, ", " example, "}, rspec},
		{[]string{" runs, ", " tests, ", " test, "}, minitest},
		{[]string{"OK (", "Tests: ", "No tests executed", "Tests:    "}, phpunit},
		{[]string{"Failed:  ", "Passed!  - "}, dotnet},
		{[]string{"ok 1", "1..0", "not ok"}, tap},
	}
})

func parseTests(t text) (Tests, bool) {
	for _, r := range runners() {
		for _, w := range r.words {
			if !strings.Contains(t.s, w) {
				continue
			}
			if found, ok := r.read(t); ok {
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

// count returns the number before or after a word in s: "3 failed",
// "Failures: 3". Zero when the word is not there.
func count(s, word string) int {
	for at := 0; ; {
		i := strings.Index(s[at:], word)
		if i < 0 {
			return 0
		}
		i += at
		at = i + len(word)
		if strings.HasSuffix(word, ":") || strings.HasSuffix(word, "=") {
			n, _ := number(strings.TrimLeft(s[at:], " "), 0)
			return n
		}
		from := strings.TrimRight(s[:i], " ")
		j := len(from)
		for j > 0 && isDigit(from[j-1]) {
			j--
		}
		if j < len(from) && len(from)-j <= 7 {
			n, _ := strconv.Atoi(from[j:])
			return n
		}
	}
}

// each line that contains word, the last first, until f returns true.
func lastWith(t text, word string, f func(l string) bool) bool {
	if !strings.Contains(t.s, word) {
		return false
	}
	for i := t.len() - 1; i >= 0; i-- {
		if l := t.line(i); strings.Contains(l, word) && f(l) {
			return true
		}
	}
	return false
}

// counts are the words by which a summary counts its tests, separated by "|".
type counts struct {
	all     string // with it, what neither failed nor was skipped has passed
	passed  string
	failed  string
	skipped string
}

// add adds the counts that a line of a summary names.
func (t *Tests) add(l string, c counts) {
	sum := func(words string) (n int) {
		for w := range strings.SplitSeq(words, "|") {
			if w != "" {
				n += count(l, w)
			}
		}
		return n
	}
	failed, skipped := sum(c.failed), sum(c.skipped)
	t.Passed += max(sum(c.passed), sum(c.all)-failed-skipped, 0)
	t.Failed += failed
	t.Skipped += skipped
}

// failing collects the failing tests of an output while its lines are read.
type failing struct {
	items []Item
	b     *body // the test that the lines belong to; nil between two
}

// begin ends the test before, and starts another.
func (f *failing) begin(i Item) {
	f.end()
	f.b = &body{item: i}
}

// end keeps the test whose lines were read.
func (f *failing) end() {
	if f.b != nil && len(f.items) < maxItems {
		f.items = append(f.items, f.b.item)
	}
	f.b = nil
}

// add gives a line to the test that it belongs to.
func (f *failing) add(l string) {
	if f.b != nil {
		f.b.add(l)
	}
}

// body collects the lines of one failing test: the first place in the project,
// what was expected, and the first lines as the message.
type body struct {
	item   Item
	n      int
	differ bool // the lines of a difference follow
	turned bool // in which "+" is what was expected
}

const bodyLines = 12

// stand takes a place as the test's.
func (b *body) stand(p place) { b.item.File, b.item.Line, b.item.Column = p.file, p.line, p.col }

// standOwn takes the place that a line names, unless it is a library's.
func (b *body) standOwn(l string) {
	if p, ok := placeIn(l); ok && !foreign(p.file) {
		b.stand(p)
	}
}

func (b *body) add(l string) {
	said := strings.TrimSpace(l)
	said = strings.TrimSpace(strings.TrimPrefix(said, "│"))
	if said == "" || strings.Trim(said, "-=_─⎯^~ ") == "" {
		return
	}
	if sourceLine().MatchString(said) {
		return
	}
	if p, ok := placeIn(said); ok {
		nearer := foreign(b.item.File) && !foreign(p.file)
		if b.item.File == "" || nearer {
			b.stand(p)
		}
	}
	if !b.difference(said) {
		b.expectation(said)
	}
	if strings.HasPrefix(said, "at ") || strings.HasPrefix(said, "# ./") {
		return
	}
	if b.n++; b.n > bodyLines || len(b.item.Message)+len(said) > maxMessage {
		return
	}
	if b.item.Message != "" {
		b.item.Message += "\n"
	}
	b.item.Message += said
}

// sourceLine shows a line of a file with its number in front: it names no place,
// and nobody said it.
var sourceLine = onUse(`^>? *\d+ \||^\|`)

// difference reads "- what was expected" and "+ what was received" below a
// line that says so, and tells whether l belongs there.
func (b *body) difference(l string) bool {
	switch {
	case has(l, "- Expected", "+ Received", "+ actual - expected", "--- Expected", "+++ Actual", "+++ Received",
		"+ expected - actual"):
		b.turned = strings.Contains(l, "+ expected")
		b.differ = b.item.Expected == "" && b.item.Received == ""
		return true
	case !b.differ || len(l) < 2 || !strings.ContainsAny(l[:1], "+-"):
		return false
	}
	value := &b.item.Expected
	if (l[0] == '+') != b.turned {
		value = &b.item.Received
	}
	*value = ellipsis(strings.TrimSpace(*value+" "+strings.TrimSuffix(strings.TrimSpace(l[1:]), ",")), 300)
	return true
}

func (b *body) expectation(l string) {
	want, got := expectation(l)
	if b.item.Expected == "" {
		b.item.Expected = want
	}
	if b.item.Received == "" {
		b.item.Received = got
	}
}

// valueLine names one value: "Expected length: 3", "actual  : 503", "left: 1".
var valueLine = onUse(`^(?:([Ee]xpected(?: [a-z]+){0,3}|right)|([Rr]eceived(?: [a-z]+){0,3}|[Aa]ctual|got|left)) *: *(\S.*)$`)

// expectation reads what an assertion wanted and what it got from one line;
// either may be on a line of its own.
func expectation(l string) (want, got string) {
	if m := valueLine().FindStringSubmatch(l); m != nil {
		if a, b, ok := strings.Cut(m[3], " but was: "); ok {
			return bare(a), bare(b)
		}
		if m[1] != "" {
			return strings.TrimSpace(m[3]), ""
		}
		return "", strings.TrimSpace(m[3])
	}
	if did, ok := strings.CutPrefix(l, "Received function "); ok {
		return "", did
	}
	if !has(l, "want", "expected", " but ") { // the other forms have one of them
		return inequality(l)
	}
	for _, p := range [][2]string{{"expected: ", " but was: "}, {"expected ", " but was "}, {" should have ", ", but has "},
		{"expected [", "] but found ["},
		{"want ", ", got "}, {"want: ", ", got: "}, {"want ", " got "}, {"expected ", ", found "},
		{"expected ", ", got "}, {"expected ",
			" but got "}, {"expected ", " to equal "}, {"expected ", " to be "}, {"expected ", " to deeply equal "}} {
		i := strings.Index(l, p[0])
		if i < 0 {
			continue
		}
		rest := l[i+len(p[0]):]
		if j := strings.Index(rest, p[1]); j > 0 {
			a, b := bare(rest[:j]), bare(rest[j+len(p[1]):])
			if strings.HasPrefix(p[1], " to ") { // chai: expected RECEIVED to equal EXPECTED // how
				b, _, _ = strings.Cut(b, " // ")
				return b, a
			}
			return a, b
		}
	}
	for _, sep := range []string{", want ", ", expected ", "; want ", ", want: "} {
		i := strings.LastIndex(l, sep)
		if i < 0 {
			continue
		}
		head := l[:i]
		for _, k := range []string{" = ", "got ", "got: ", "returned "} {
			if j := strings.LastIndex(head, k); j >= 0 {
				head = head[j+len(k):]
				break
			}
		}
		return bare(l[i+len(sep):]), bare(head)
	}
	return inequality(l)
}

// inequality reads Python's "AssertionError: 1 != 2", and pytest's "assert 1 == 2".
func inequality(l string) (want, got string) {
	said := strings.TrimPrefix(l, "AssertionError: ")
	if rest, ok := strings.CutPrefix(said, "assert "); ok && !strings.HasPrefix(rest, "(") {
		if a, b, ok := strings.Cut(rest, " == "); ok {
			return strings.TrimSpace(b), strings.TrimSpace(a)
		}
	}
	if rest, ok := strings.CutPrefix(l, "AssertionError: "); ok {
		if a, b, ok := strings.Cut(rest, " != "); ok {
			return strings.TrimSpace(b), strings.TrimSpace(a)
		}
	}
	return "", ""
}

func bare(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 1 && s[0] == '<' && s[len(s)-1] == '>' {
		s = s[1 : len(s)-1]
	}
	return s
}

// blocks reads failures that a runner numbers, "  1) name", each with the
// lines up to the next one. A name may go on over lines that are deeper
// indented and end in ":".
func blocks(t text, from int, isEnd func(l string) bool) []Item {
	var f failing
	naming := false
	for i := from; i < t.len(); i++ {
		l := t.line(i)
		if name, ok := numbered(l); ok {
			f.begin(Item{Test: name})
			naming = !strings.HasSuffix(name, ":") || name == "Error:" || name == "Failure:"
			continue
		}
		if isEnd(l) {
			f.end()
		}
		if f.b == nil || naming && nameGoesOn(f.b, l, &naming) {
			continue
		}
		naming = naming && strings.TrimSpace(l) == ""
		f.b.add(l)
	}
	f.end()
	return slices.DeleteFunc(f.items, func(i Item) bool { return i.Message == "" && i.File == "" })
}

// nameGoesOn reads a line as a part of the name of a test that its first line
// did not end, and tells whether it is one.
func nameGoesOn(b *body, l string, naming *bool) bool {
	said := strings.TrimSpace(l)
	if b.item.Test == "Error:" || b.item.Test == "Failure:" {
		b.item.Test, *naming = strings.TrimSuffix(said, ":"), false
		if p, ok := placeIn(b.item.Test); ok { // minitest: T#test [file:4]
			b.item.File, b.item.Line = p.file, p.line
			b.item.Test = strings.TrimRight(b.item.Test[:p.from], " [")
		}
		return true
	}
	if !strings.HasPrefix(l, "       ") || said == "" || b.item.Message != "" {
		return false
	}
	b.item.Test += " › " + strings.TrimSuffix(said, ":")
	*naming = !strings.HasSuffix(said, ":")
	return true
}

// numbered reads "  12) name".
func numbered(l string) (string, bool) {
	s := strings.TrimLeft(l, " ")
	n, i := number(s, 0)
	if n == 0 || !strings.HasPrefix(s[i:], ") ") {
		return "", false
	}
	return strings.TrimSpace(s[i+2:]), true
}
