package failure

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// This file reads what the lines about one failure say of it: where it is, what was
// expected, and what came.

// body collects the lines of one failure: the first place in the project, what
// was expected, and the first lines as the message.
type body struct {
	item   Item
	n      int
	silent bool    // the lines do not belong to the message
	differ bool    // the lines of a difference follow
	turned bool    // in which "+" is what was expected
	value  *string // the value that a line of its own announced; nil for none
	deep   int     // how far that line is indented
	alone  bool    // values are on lines of their own
	want   string  // what lines like "want 3" say; it counts when both are there
	got    string
}

const bodyLines = 12

// stand takes a place as the failure's.
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
	if said == "" || strings.Trim(said, "-=_─⎯^~* ") == "" {
		b.value = nil
		return
	}
	mayBe := strings.IndexByte(">|0123456789gmr\xe2", said[0]) >= 0 // asking the first byte is cheap
	if mayBe && (sourceLine().MatchString(said) || runnerLine().MatchString(said)) {
		return
	}
	if said == "stacktrace:" { // it knows better than what came before
		b.stand(place{})
	}
	p, ok := placeIn(said)
	if ok && !has(said, "at java.base/", "at jdk.", "org.junit.", "org.opentest4j.", "org.assertj.", "org.hamcrest.") {
		nearer := foreign(b.item.File) && !foreign(p.file)
		if b.item.File == "" || nearer {
			b.stand(p)
		}
	}
	if !b.difference(said) {
		b.expectation(strings.TrimSpace(strings.TrimLeft(said, "#|")), indentOf(l))
	}
	panics := strings.HasSuffix(said, ":") && strings.Contains(said, " panicked at ") // Rust says why on the next line
	if ok && p.from == 0 && p.rest == "" {                                            // nothing but a place
		return
	}
	if b.silent || panics || strings.HasPrefix(said, "at ") || strings.HasPrefix(said, "# ./") {
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
var sourceLine = lazy.Regexp(`^(?:>|➜)? *\d+ *[|▕]|^\|$|^\| +\d`)

// runnerLine is what a runner says about itself and names its own file.
var runnerLine = lazy.Regexp(`^g?make(?:\[\d+\])?: |^rake aborted`)

// difference reads "- what was expected" and "+ what was received" below a
// line that says so, and tells whether l belongs there.
func (b *body) difference(l string) bool {
	var m []string
	if strings.Contains(l, "- ") || strings.Contains(l, "+ ") || strings.HasPrefix(l, "[Diff] ") {
		m = differenceHead().FindStringSubmatch(l)
	}
	if m != nil {
		b.turned = m[2] != ""
		b.differ = b.item.Expected == "" && b.item.Received == ""
		return true
	}
	if !b.differ || len(l) < 2 || !strings.ContainsAny(l[:1], "+-") || strings.HasPrefix(l, "+++ ") {
		return false
	}
	value := &b.item.Expected
	if (l[0] == '+') != b.turned {
		value = &b.item.Received
	}
	*value = joined(*value, strings.TrimSuffix(strings.TrimSpace(l[1:]), ","))
	return true
}

// differenceHead says which lines of a difference were expected: "-", or "+".
var differenceHead = lazy.Regexp(`(- Expected|\+ Received|\+ actual - expected|\+\+\+ Actual|\[Diff\] Expected / Actual|^--- \S*(?i:want|expect|golden|snap|reference))` +
	`|(\+ expected|- actual|\[Diff\] Actual / Expected|^\+\+\+ \S*(?i:want|expect|golden|snap|reference))`)

// joined is a value with one more line.
func joined(value, more string) string { return ellipsis(strings.TrimSpace(value+" "+more), 300) }

func (b *body) expectation(l string, deep int) {
	if m := valueLine().FindStringSubmatch(l); len(m) > 0 && m[3] == "" {
		b.announce(m[1] != "", deep)
		return
	}
	want, got := expectation(l)
	if b.value != nil && want+got == "" {
		if first := *b.value == ""; first || deep > b.deep {
			*b.value = joined(*b.value, l)
			return
		}
	}
	b.value = nil
	if want+got == "" {
		b.spoken(l)
		return
	}
	if b.item.Expected == "" {
		b.item.Expected = want
	}
	if b.item.Received == "" {
		b.item.Received = got
	}
}

// announce takes the next lines as a value.
func (b *body) announce(wanted bool, deep int) {
	b.alone = b.alone || b.item.Expected+b.item.Received == ""
	value := &b.item.Received
	if wanted {
		value = &b.item.Expected
	}
	if b.value, b.deep = nil, deep; b.alone && *value == "" {
		b.value = value
	}
}

// spoken reads "want 3" and "have 2" on two lines, and "<3> expected but was"
// above "<2>".
func (b *body) spoken(l string) {
	if value, ok := strings.CutSuffix(l, " expected but was"); ok && b.item.Expected == "" {
		b.item.Expected, b.value = bare(value), &b.item.Received
		return
	}
	if strings.Contains(l, ": ") {
		l = programName().ReplaceAllString(l, "")
	}
	word, value, _ := strings.Cut(l, " ")
	switch word {
	case "want", "wanted", "expected":
		b.want = value
	case "have", "got", "actual", "received", "found":
		b.got = value
	default:
		if _, value, ok := strings.Cut(l, " = "); ok { // f(x) = 2, and below it: want 3
			b.got = value
		}
		return
	}
	if b.want != "" && b.got != "" && b.item.Expected+b.item.Received == "" {
		b.item.Expected, b.item.Received = bare(b.want), bare(b.got)
	}
}

// programName stands in front of what a program says.
var programName = lazy.Regexp(`^[\w.-]+: +`)

// valueLine names one value: "Expected length: 3", "actual  : 503", "left: 1". Where
// nothing is behind it, the value is on the next line.
var valueLine = lazy.Regexp(`^(?:((?i:expected|want|wanted|(?:result )?should (?:be|have been))(?: [a-z]+){0,3}|Snapshot|right)|` +
	`((?i:received|actual|got|result was)(?: [a-z]+){0,3}|left|have|is|was)) *: *(\S.*|)$`)

// pairs are the words between which the two values of an assertion stand.
var pairs = [][2]string{{"expected: ", " but was: "}, {"expected ", " but was "}, {" should have ", ", but has "},
	{"expected [", "] but found ["},
	{"want ", ", got "}, {"want: ", ", got: "}, {"want ", " got "}, {"expected ", ", found "},
	{"expected ", ", got "}, {"expected ",
		" but got "}, {"expected ", " to equal "}, {"expected ", " to be "}, {"expected ", " to deeply equal "}}

// expectation reads what an assertion wanted and what it got from one line;
// either may be on a line of its own.
func expectation(l string) (want, got string) {
	if m := valueLine().FindStringSubmatch(l); len(m) > 0 && m[3] != "" {
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
	if has(l, "throw ", "${", "=>") { // source code
		return "", ""
	}
	small := smallLetters(l)
	for _, p := range pairs {
		i := strings.Index(small, p[0])
		if i < 0 {
			continue
		}
		rest := l[i+len(p[0]):]
		j := strings.Index(rest, p[1])
		if announces := strings.HasSuffix(rest, ":"); j > 0 && !announces {
			a, b := bare(rest[:j]), bare(rest[j+len(p[1]):])
			if strings.HasPrefix(p[1], " to ") { // chai: expected RECEIVED to equal EXPECTED // how
				b, _, _ = strings.Cut(b, " // ")
				return strings.TrimSuffix(b, "."), a
			}
			return a, b
		}
	}
	if m := unequal().FindStringSubmatch(l); m != nil {
		return strings.TrimSpace(m[2] + m[4]), strings.TrimSpace(m[1] + m[3])
	}
	if strings.Contains(l, " instead of ") && !has(small, "use ", "prefer ") || strings.Contains(l, ", not ") {
		if m := insteadOf().FindStringSubmatch(l); m != nil {
			return m[2] + m[4], m[1] + m[3]
		}
	}
	if want, got = compared(l); want != "" {
		return want, got
	}
	return againstLimit(l)
}

// insteadOf says what came and what should have: "99.17 instead of 100.0", "is WORD, not COLON".
var insteadOf = lazy.Regexp(`(\S+) instead of (\S*[^\s.,;)])|\b(?:is|was|got|has|are) (\S{1,40}), not (\S*[^\s.,;)])`)

const quantityForm = `([-+]?\d+(?:[.,]\d+)*(?: ?(?:%|(?:ms|us|µs|[kKMG]i?B|B|s)\b))?)`

var (
	quantity = lazy.Regexp(`(?:^|[\s(='"])` + quantityForm)
	// limited is a number behind the words for a limit, or before them.
	limited = lazy.Regexp(`(?i)(?:\b(?:budget|limit|max(?:imum)?|min(?:imum)?|threshold|target|only|exceeds|fail-under=?|allowed|requires(?: \pL+)??|at (?:most|least)(?: \pL+)??|` +
		`(?:should|must) be|(?:less|more|larger|smaller|longer|shorter) than|below|above|over|under)|[\s=][<>]=?)` +
		`[ :(]{0,3}(?:(?:is|of|the|a|at|to|most|least|minimum|maximum|limit) )*[<>=( ]*` + quantityForm + `|` +
		quantityForm + ` (?:\pL+ )?(?:(?:is|are|was) )?(?:the (?:most|least)|allowed|permitted|expected|needed|required|wanted)\b`)
	// differing follows a number that says by how much, or of how many.
	differing = lazy.Regexp(`^ (?:\w+ )?(?:more|less|fewer|too|over|under)\b|^ of \d`)
)

var limitWords = strings.Fields("budget limit max min threshold target only exceed fail-under allowed requires must should than below above over under " +
	"< > most least permitted expected needed required wanted")

// againstLimit reads a sentence that holds a number against another one: "58 characters, 40 allowed". What came
// is the number of the same unit before the limit, else behind it.
func againstLimit(l string) (want, got string) {
	const digits = "0123456789"
	at := strings.IndexAny(l, digits) // two numbers and a word are cheaper to look for than the form
	if at < 0 || len(l) > shownMax || !strings.ContainsAny(strings.TrimLeft(l[at:], digits), digits) || !has(smallLetters(l), limitWords...) {
		return "", ""
	}
	if at, ok := placeIn(l); ok {
		l = l[:at.from] + at.rest
	}
	m := limited().FindStringSubmatchIndex(l)
	if m == nil {
		return "", ""
	}
	from, to := max(m[2], m[4]), max(m[3], m[5])
	want = l[from:to]
	unit := strings.TrimLeft(want, "+-.,0123456789 ")
	for _, m := range quantity().FindAllStringSubmatchIndex(l, 8) {
		value := l[m[2]:m[3]]
		fits := strings.TrimLeft(value, "+-.,0123456789 ") == unit
		clock := m[3]+1 < len(l) && strings.IndexByte(":-/", l[m[3]]) >= 0 && isDigit(l[m[3]+1])
		if m[2] == from || !fits || clock || differing().MatchString(l[m[3]:]) || got != "" && m[2] > from {
			continue
		}
		got = value
	}
	behind := strings.TrimLeft(l[m[1]:], " :")
	another := m[4] >= 0 && behind != "" && isDigit(behind[0]) // "100 matches expected 90"
	if got == "" || another || differing().MatchString(l[to:]) {
		return "", ""
	}
	return want, got
}

var (
	wantWord = lazy.Regexp(`\b(?i:wants?|wanted|expected|(?:should|must) (?:be|have|equal)(?: at (?:most|least))?|attendu|erwartet|esperado|atteso|` +
		`(?:budget|limit|target|threshold)(?: is| of|:)?)(?:: *| to be | |=|\()`)
	gotWord = lazy.Regexp(`\b(?i:got|gave|was|is|are|has|have|returned|returns|answers|answered|received|found|actual|trouvé|obtenu|erhalten)(?:: *| |=)| = `)
)

// compared reads a sentence that says what is and what should be, in any order:
// "low(I) is 'x', should be 'i'". One of the values must look like one.
func compared(l string) (want, got string) {
	if !has(strings.ToLower(l), "want", "expected", "should ", "must ", "budget", "limit", "target", "threshold", "attendu", "erwartet", "esperado", "atteso") {
		return "", ""
	}
	w := wantWord().FindStringIndex(l)
	if w == nil || has(l, "assert", "if (") {
		return "", ""
	}
	for _, g := range gotWord().FindAllStringIndex(l, 4) {
		wantEnd, gotEnd := len(l), len(l)
		if g[0] < w[0] {
			gotEnd = w[0]
		} else {
			wantEnd = g[0]
		}
		if g[1] > gotEnd || w[1] > wantEnd {
			continue
		}
		want, got = valueAt(l[w[1]:wantEnd]), valueAt(l[g[1]:gotEnd])
		fields := l[w[1]-1] == '=' && l[g[1]-1] == '=' // want=a have=b
		if want != "" && got != "" && (fields || literal(want) || literal(got)) {
			return want, got
		}
	}
	return "", ""
}

// valueAt is the value that s begins with: what is in quotes or brackets, else up
// to the end of the clause.
func valueAt(s string) string {
	s = strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(s), " ,;."), " but")
	if s == "" || strings.HasPrefix(s, "not ") {
		return ""
	}
	if at := strings.IndexByte(`'"`+"`", s[0]); at >= 0 {
		if end := strings.IndexByte(s[1:], s[0]); end >= 0 {
			return s[:end+2]
		}
	}
	if strings.IndexByte("[{(<", s[0]) >= 0 {
		return cut(s, 300)
	}
	for _, end := range []string{", ", "; ", " but ", " (", ") ", " and "} {
		s, _, _ = strings.Cut(s, end)
	}
	if len(s) > 80 {
		return ""
	}
	return s
}

// literal tells whether s is written like a value: a number, or in quotes or brackets.
func literal(s string) bool {
	return strings.IndexByte("'\"`[{(<-+.0123456789", s[0]) >= 0 ||
		s == "true" || s == "false" || s == "null" || s == "nil"
}

// unequal is Python's "AssertionError: 1 != 2", and pytest's "assert 1 == 2".
var unequal = lazy.Regexp(`^(?:AssertionError: )?assert ([^(].*?) == (.+)$|^AssertionError: (.+?) != (.+)$`)

func bare(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 1 && s[0] == '<' && s[len(s)-1] == '>' {
		s = s[1 : len(s)-1]
	}
	return s
}
