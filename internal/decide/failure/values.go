package failure

import (
	"cmp"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
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
func (b *body) stand(p places.Place) { b.item.File, b.item.Line, b.item.Column = p.File, p.Line, p.Col }

// standOwn takes the place that a line names, unless it is a library's.
func (b *body) standOwn(l string) {
	if p, ok := places.In(l); ok && !places.Foreign(p.File) {
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
	isOther := func() bool { return sourceLine().MatchString(said) || runnerLine().MatchString(said) }
	if mayBe && isOther() {
		return
	}
	if said == "stacktrace:" { // it knows better than what came before
		b.stand(places.Place{})
	}
	p, ok := places.In(said)
	if ok && !words.Has(said, "at java.base/", "at jdk.", "org.junit.", "org.opentest4j.", "org.assertj.",
		"org.hamcrest.") {
		nearer := places.Foreign(b.item.File) && !places.Foreign(p.File)
		if b.item.File == "" || nearer {
			b.stand(p)
		}
	}
	if !b.difference(said) {
		b.expectation(strings.TrimSpace(strings.TrimLeft(said, "#|;")), words.Indent(l))
	}
	panics := strings.HasSuffix(said, ":") && strings.Contains(said, " panicked at ") // Rust says why on the next line
	if ok && p.From == 0 && p.Rest == "" {                                            // nothing but a place
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
	if m := places.ValueLine().FindStringSubmatch(l); len(m) > 0 && m[3] == "" {
		b.announce(m[1] != "", deep)
		return
	}
	want, got := places.Values(l)
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
	b.item.Expected = cmp.Or(b.item.Expected, want)
	b.item.Received = cmp.Or(b.item.Received, got)
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
		b.item.Expected, b.value = places.Bare(value), &b.item.Received
		return
	}
	if strings.Contains(l, ": ") {
		l = programName().ReplaceAllString(l, "")
	}
	word, value, _ := strings.Cut(strings.TrimPrefix(l, "but "), " ")
	switch word {
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
	if b.want != "" && b.got != "" && b.item.Expected+b.item.Received == "" {
		b.item.Expected, b.item.Received = places.Bare(b.want), places.Bare(b.got)
	}
}

// programName stands in front of what a program says.
var programName = lazy.Regexp(`^[\w.-]+: +`)
