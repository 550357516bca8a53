package runners

import (
	"cmp"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// Body collects the lines of one failure: the first place in the project, what
// was expected, and the first lines as the message.
type Body struct {
	Item   Item
	n      int
	Silent bool    // the lines do not belong to the message
	differ bool    // the lines of a difference follow
	turned bool    // in which "+" is what was expected
	value  *string // the value that a line of its own announced; nil for none
	deep   int     // how far that line is indented
	alone  bool    // values are on lines of their own
	want   string  // what lines like "want 3" say; it counts when both are there
	got    string
}

const bodyLines = 12

func (b *Body) setAt(p places.Place) { b.Item.File, b.Item.Line, b.Item.Column = p.File, p.Line, p.Col }

// setOwnPlace takes the place that a line names, unless it is a library's.
func (b *Body) setOwnPlace(l string) {
	if p, ok := places.In(l); ok && !places.IsForeign(p.File) {
		b.setAt(p)
	}
}

// ReadLine takes from a line what it says of the failure.
func (b *Body) ReadLine(l string) {
	said := strings.TrimSpace(l)
	said = strings.TrimSpace(strings.TrimPrefix(said, "│"))
	if said == "" || strings.Trim(said, "-=_─⎯^~* ") == "" {
		b.value = nil
		return
	}
	mayBe := strings.IndexByte(">|0123456789gmr\xe2", said[0]) >= 0 // asking the first byte is cheap
	isOther := func() bool { return sourceLine().MatchString(said) || RunnerLine().MatchString(said) }
	if mayBe && isOther() {
		return
	}
	if said == "stacktrace:" { // it knows better than what came before
		b.setAt(places.Place{})
	}
	p, ok := places.In(said)
	if ok && !printed.OfRuntime().MatchString(said) {
		nearer := places.IsForeign(b.Item.File) && !places.IsForeign(p.File)
		inFile := b.Item.Line == 0 && strings.HasSuffix(p.File, b.Item.File) // or in any, where none is known
		if inFile || nearer {
			b.setAt(p)
		}
	}
	if !b.readDifference(said) {
		b.ReadExpectation(strings.TrimSpace(strings.TrimLeft(said, "#|;")), words.Indent(l))
	}
	panics := strings.HasSuffix(said, ":") && strings.Contains(said, " panicked at ") // Rust says why on the next line
	if ok && onlyPlace().MatchString(said[:p.From]+"…"+p.Rest) {
		return
	}
	if panics { // what stands before it was printed by the program that panics
		b.Item.Message, b.n = "", 0
		if !places.IsForeign(p.File) {
			b.setAt(p)
		}
	}
	if b.Silent || panics || strings.HasPrefix(said, "at ") || strings.HasPrefix(said, "# ./") {
		return
	}
	if b.n++; b.n > bodyLines || len(b.Item.Message)+len(said) > MaxMessage {
		return
	}
	if b.Item.Message != "" {
		b.Item.Message += "\n"
	}
	b.Item.Message += said
}

// onlyPlace matches the text around a place in a line without a message.
var onlyPlace = lazy.Regexp(`^(?:\((?:in|from) (?:test )?file )?…[),:]?$`)

// sourceLine shows a line of a file with its number in front: it names no place and is no message.
var sourceLine = lazy.Regexp(`^(?:>|➜)? *\d+ *[|▕]|^\|$|^\| +\d`)

// RunnerLine matches messages of a runner about itself that name its own file.
var RunnerLine = lazy.Regexp(`^g?make(?:\[\d+\])?: |^\S+:\d+: recipe for target |^rake aborted`)

// readDifference reads "- what was expected" and "+ what was received" below a line that announces
// a difference, and reports whether l belongs there.
func (b *Body) readDifference(l string) bool {
	var m []string
	if strings.Contains(l, "- ") || strings.Contains(l, "+ ") || strings.HasPrefix(l, "[Diff] ") {
		m = differenceHead().FindStringSubmatch(l)
	}
	if m != nil {
		b.turned = m[2] != ""
		b.differ = b.Item.Expected == "" && b.Item.Received == ""
		return true
	}
	if !b.differ || len(l) < 2 || !strings.ContainsAny(l[:1], "+-") || strings.HasPrefix(l, "+++ ") {
		return false
	}
	value := &b.Item.Expected
	if (l[0] == '+') != b.turned {
		value = &b.Item.Received
	}
	*value = joinLine(*value, strings.TrimSuffix(strings.TrimSpace(l[1:]), ","))
	return true
}

// differenceHead says which lines of a difference were expected: "-", or "+".
var differenceHead = lazy.Regexp(`(- Expected|\+ Received|\+ actual - expected|\+\+\+ Actual` +
	`|\[Diff\] Expected / Actual|^--- \S*(?i:want|expect|golden|snap|reference))` +
	`|(\+ expected|- actual|\[Diff\] Actual / Expected|^\+\+\+ \S*(?i:want|expect|golden|snap|reference))`)

// joinLine appends a line to a value, shortened to 300 bytes.
func joinLine(value, more string) string {
	return printed.Shorten(strings.TrimSpace(value+" "+more), 300)
}

// ReadExpectation takes the wanted and the actual value from a line that is indented so deep.
func (b *Body) ReadExpectation(l string, deep int) {
	if m := places.ValueLine().FindStringSubmatch(l); len(m) > 0 && m[3] == "" {
		b.beginValue(m[1] != "", deep)
		return
	}
	switch strings.TrimPrefix(l, "[FAILED] ") { // Gomega begins with what came
	case "Expected":
		b.beginValue(false, deep)
		return
	case "to equal", "to be equivalent to", "to match":
		b.beginValue(true, deep)
		return
	}
	want, got := places.Values(l)
	if b.value != nil && want+got == "" {
		if first := *b.value == ""; first || deep > b.deep {
			*b.value = joinLine(*b.value, l)
			return
		}
	}
	b.value = nil
	if want+got == "" {
		b.readSpoken(l)
		return
	}
	b.Item.Expected = cmp.Or(b.Item.Expected, want)
	b.Item.Received = cmp.Or(b.Item.Received, got)
}

// beginValue has the next lines read as the wanted or the received value.
func (b *Body) beginValue(wanted bool, deep int) {
	b.alone = b.alone || b.Item.Expected+b.Item.Received == ""
	value := &b.Item.Received
	if wanted {
		value = &b.Item.Expected
	}
	if b.value, b.deep = nil, deep; b.alone && *value == "" {
		b.value = value
	}
}

// readSpoken reads "want 3" and "have 2" on two lines, and "<3> expected but was" above "<2>".
func (b *Body) readSpoken(l string) {
	if value, ok := strings.CutSuffix(l, " expected but was"); ok && b.Item.Expected == "" {
		b.Item.Expected, b.value = places.Bare(value), &b.Item.Received
		return
	}
	if strings.Contains(l, ": ") {
		l = programName().ReplaceAllString(l, "")
	}
	word, value, _ := strings.Cut(strings.TrimPrefix(l, "but "), " ")
	switch words.Small(word) {
	case "want", "wanted", "expected":
		b.want = value
	case "have", "got", "actual", "received", "found", "was":
		b.got = value
	default:
		if _, value, ok := strings.Cut(l, " = "); ok { // f(x) = 2, and below it: want 3
			b.got = value
		}
		return
	}
	if b.want != "" && b.got != "" && b.Item.Expected+b.Item.Received == "" {
		b.Item.Expected, b.Item.Received = places.Bare(b.want), places.Bare(b.got)
	}
}

// programName stands in front of what a program says.
var programName = lazy.Regexp(`^[\w.-]+: +`)

// readHead reads the first line of a failure, and the place in front of it.
func (b *Body) readHead(l, said string) {
	if p, ok := places.In(l); ok && said != "" && strings.HasSuffix(p.Rest, said) {
		b.setAt(p)
	}
	if p, ok := places.In(said); ok && p.From == 0 {
		b.setAt(p)
		said = strings.TrimLeft(p.Rest, ": ")
	}
	b.ReadLine(said)
}

// readField takes a value from its field; a difference had only a part of it.
func (b *Body) readField(value *string, said, name string) {
	v, ok := strings.CutPrefix(said, name)
	v = strings.TrimSpace(v)
	whole := ok && v != "{" && v != "["
	open := *value == "" || b.differ
	if whole && open {
		*value = strings.TrimSuffix(v, ",")
	}
}
