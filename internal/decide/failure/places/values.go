package places

import (
	"regexp"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// ValueLine names one value: "Expected length: 3", "actual  : 503", "left: 1". Where
// nothing is behind it, the value is on the next line.
var ValueLine = lazy.Regexp(`^(?:((?i:expected|required|want|wanted|specified|(?:result )?should (?:be` +
	`|have been))(?: [a-z]+){0,3}|Snapshot|right|go\.sum)|` +
	`((?i:received|actual|passed in|downloaded|(?:but )?(?:got|found|was)|result was)(?: [a-z]+){0,3}` +
	`|left|have|is)) *: *(\S.*|)$`)

// pairs are the words between which the two values of an assertion stand.
var pairs = [][2]string{{"expected: ", " but was: "}, {" was: ", " but is now: "},
	{"expected ", " but was "}, {" should have ", ", but has "},
	{"expected [", "] but found ["}, {"expected [", "] to ["},
	{"want ", ", got "}, {"want: ", ", got: "}, {"want ", " got "}, {"expected ", ", found "},
	{"expected ", ", got "}, {"expected ",
		" but got "}, {"expected ", " to equal "}, {"expected ", " to be "}, {"expected ", " to deeply equal "},
	{"expected ", " to match "}, {"expected ", " to include "}, {"expected ", " to contain "}}

// Values reads what an assertion wanted and what it got from one line;
// either may be on a line of its own.
func Values(l string) (want, got string) {
	l = strings.TrimPrefix(l, "=> ")
	small := words.Small(l)
	aims := words.HasAny(small, aimWords)
	if aims {
		if want, got = namedValues(l); want != "" {
			return want, got
		}
	}
	if m := ValueLine().FindStringSubmatch(strings.TrimLeft(l, "-+*• ")); len(m) > 0 && m[3] != "" {
		if a, b, ok := strings.Cut(m[3], " but was:"); ok {
			return Bare(a), Bare(b)
		}
		if m[1] != "" {
			return strings.TrimSpace(m[3]), ""
		}
		return "", strings.TrimSpace(m[3])
	}
	if did, ok := strings.CutPrefix(l, "Received function "); ok {
		return "", did
	}
	if words.Has(l, "throw ", "${", "=>") { // source code
		return "", ""
	}
	if want, got = valuesBetween(l, small); want+got != "" {
		return want, got
	}
	if want, got = valuesInKnownForm(l); want != "" {
		return want, got
	}
	if strings.Contains(l, " instead of ") && !words.Has(small, "use ", "prefer ") || strings.Contains(l, ", not ") {
		if m := insteadOf().FindStringSubmatch(l); m != nil {
			return m[2] + m[4], m[1] + m[3]
		}
	}
	if aims {
		if want, got = valuesInSentence(l); want != "" {
			return want, got
		}
	}
	return againstLimit(l, small)
}

// aimWords are in a line that says what should be.
var aimWords = strings.Fields("want expect should must budget limit target threshold right before attendu erwartet " +
	"esperado atteso soll debe verwacht oczekiwa förvänta forvent жидал 期待")

const (
	wantNames = `wants?|wanted|expected|right|soll|attendu|esperado|atteso|verwacht|before`
	gotNames  = `got|actual|received|found|left|ist|obtenu|reçu|obtenido|ottenuto|gekregen|after`
)

var (
	wantField = lazy.Regexp(`(?:^|[\s"'(\[{,;:.|/<>-])(?i:` + wantNames + `)"? ?[:=] ?` + valueForm)
	gotField  = lazy.Regexp(`(?:^|[\s"'(\[{,;:.|/<>-])(?i:` + gotNames + `)"? ?[:=] ?` + valueForm)
)

// namedValues reads two values that both have a name: want: 3, got: 4; "expected":3,"actual":4.
func namedValues(l string) (want, got string) {
	if strings.Count(l, ":")+strings.Count(l, "=") < 2 || len(l) > longest {
		return "", ""
	}
	w := wantField().FindStringSubmatch(l)
	if w == nil {
		return "", ""
	}
	g := gotField().FindStringSubmatch(l)
	if len(g) == 0 || strings.HasPrefix(w[1], "=") || strings.HasPrefix(g[1], "=") {
		return "", ""
	}
	return unquoteName(w[1]), unquoteName(g[1])
}

// valuesBetween reads the two values that stand between the words of a pair.
func valuesBetween(l, small string) (want, got string) {
	for _, p := range pairs {
		i := strings.Index(small, p[0])
		if i < 0 {
			continue
		}
		rest := l[i+len(p[0]):]
		j := strings.Index(rest, p[1])
		if announces := strings.HasSuffix(rest, ":"); j > 0 && !announces {
			a, b := Bare(strings.TrimRight(rest[:j], ", ")), Bare(rest[j+len(p[1]):])
			if strings.HasPrefix(b, "not ") {
				continue
			}
			if strings.Contains(p[1], " to ") { // chai: expected RECEIVED to equal EXPECTED // how
				b, _, _ = strings.Cut(b, " // ")
				if a == "" || b == "" || p[1] == " to be " && !isLiteral(a) && !isLiteral(b) { // "objects to be equal"
					continue
				}
				b = strings.TrimPrefix(strings.TrimRight(b, ".]"), "be ")
				if a[0] == '/' && p[1] == " to match " { // minitest names the form first
					return a, b
				}
				return b, a
			}
			return a, b
		}
	}
	return "", ""
}

// valuesInKnownForm reads the two values of a sentence in one of the known forms.
func valuesInKnownForm(l string) (want, got string) {
	for _, f := range valueForms() {
		if !words.Has(l, f.words...) {
			continue
		}
		if m := f.form().FindStringSubmatch(words.Cut(l, longest)); len(m) > 0 && m[2] != "type" {
			return unquoteName(m[f.want]), unquoteName(m[3-f.want])
		}
	}
	return "", ""
}

// insteadOf matches a received and a wanted value: "99.17 instead of 100.0", "is WORD, not COLON".
var insteadOf = lazy.Regexp(`(\S+) instead of (\S*[^\s.,;)])|\b(?:is|was|got|has|are) (\S{1,40}), not (\S*[^\s.,;)])`)

// longest is the length to which lines are examined.
const longest = 240

const quantityForm = `([-+]?\d+(?:[.,]\d+)*(?: ?(?:%|(?:ms|us|µs|[kKMG]i?B|B|s)\b))?)`

var (
	quantity = lazy.Regexp(`(?:^|[\s(='"])` + quantityForm)
	// limited is a number behind the words for a limit, or before them.
	limited = lazy.Regexp(`(?i)(?:\b(?:budget|limit|max(?:imum)?|min(?:imum)?|threshold|target|only|exceeds` +
		`|fail-under=?|allowed|want(?:ed)?|expected|erwartet|erlaubt|höchstens|mindestens|attendus?|autorisés?|esperados?|máximo|mínimo|requires(?: \pL+)??|at (?:most|least)(?: \pL+)??|` +
		`(?:should|must) be|(?:less|more|larger|smaller|longer|shorter) than|below|above|over|under)|[\s=][<>]=?)` +
		`[ :(]{0,3}(?:(?:is|of|the|a|at|to|most|least|minimum|maximum|limit) )*[<>=( ]{0,3}` + quantityForm + `|` +
		quantityForm + ` (?:\pL+ )?(?:(?:is|are|was) )?(?:the (?:most|least)|allowed|permitted|expected|needed` +
		`|required|wanted)\b`)
	// differing follows a number that says by how much, or of how many.
	differing = lazy.Regexp(`^ (?:\w+ )?(?:more|less|fewer|too|over|under)\b|^ of \d`)
)

var limitWords = strings.Fields("budget limit max min threshold target only exceed fail-under allowed requires " +
	"must should than below above over under " +
	"< > want erwartet erlaubt höchstens mindestens attendu autoris esperado máximo mínimo most least permitted " +
	"expected needed required wanted")

// againstLimit reads a sentence that holds a number against another one: "58 characters, 40 allowed". What came
// is the number of the same unit before the limit, else behind it.
func againstLimit(l, small string) (want, got string) {
	const digits = "0123456789"
	at := strings.IndexAny(l, digits) // two numbers and a word are cheaper to look for than the form
	if at < 0 || len(l) > longest || !strings.ContainsAny(strings.TrimLeft(l[at:], digits), digits) ||
		!words.Has(small, limitWords...) {
		return "", ""
	}
	if at, ok := In(l); ok {
		l = l[:at.From] + at.Rest
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
		clock := m[3]+1 < len(l) && strings.IndexByte(":-/", l[m[3]]) >= 0 && words.IsDigit(l[m[3]+1])
		if m[2] == from || !fits || clock || differing().MatchString(l[m[3]:]) || got != "" && m[2] > from {
			continue
		}
		got = value
	}
	behind := strings.TrimLeft(l[m[1]:], " :")
	another := m[4] >= 0 && behind != "" && words.IsDigit(behind[0]) // "100 matches expected 90"
	if got == "" || got == want || another || differing().MatchString(l[to:]) {
		return "", ""
	}
	return want, got
}

var (
	wantWord = lazy.Regexp(`(?:^|[\s"'(\[{,;:.|/<>-])(?i:wants?|wanted|expected|(?:should|must) (?:be|have` +
		`|equal)(?: at (?:most|least))?|attendu|erwartet|esperado|atteso|` +
		`soll(?:te)?|debe(?:ría)? ser|verwacht|oczekiwano|förväntade?|forventet|ожидал\pL+|期待値?|` +
		`(?:budget|limit|target|threshold)(?: is| of|:)?)(?:: *| to be | |=|\()`)
	gotWord = lazy.Regexp(`(?:^|[\s"'(\[{,;:.|/<>-])(?i:kreeg|otrzymano|fick|fikk|получен\pL|実際|es|computed|got` +
		`|gave|was|is|are|has|have|returned|returns|answers|answered|received|found|actual|trouvé|obtenu|erhalten|obtenido|ottenuto|ist|war)(?:: *| |=)| = `)
)

// valuesInSentence reads a sentence that says what is and what should be, in any order: "low(I) is
// 'x', should be 'i'". One of the values must look like one.
func valuesInSentence(l string) (want, got string) {
	w := wantWord().FindStringIndex(l)
	if w == nil || words.Has(l, "assert", "if (") {
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
		want, got = leadingValue(l[w[1]:wantEnd]), leadingValue(l[g[1]:gotEnd])
		if strings.Contains(got, " ") && strings.Trim(want, ".,%0123456789") == "" &&
			!strings.ContainsAny(got, `0123456789"'`) {
			continue // "is below the threshold of 80"
		}
		fields := l[w[1]-1] == '=' && l[g[1]-1] == '=' // want=a have=b
		if want != "" && got != "" && (fields || isLiteral(want) || isLiteral(got)) {
			return want, got
		}
	}
	return "", ""
}

// leadingValue is the value that s begins with: what is in quotes or brackets, else up
// to the end of the clause.
func leadingValue(s string) string {
	s = strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(s), " ,;."), " but")
	if s == "" || strings.HasPrefix(s, "not ") {
		return ""
	}
	if strings.HasSuffix(s, ")") && !strings.Contains(s, "(") {
		s = strings.TrimSuffix(s, ")")
	}
	if at := strings.IndexByte(`'"`+"`", s[0]); at >= 0 {
		if end := strings.IndexByte(s[1:], s[0]); end >= 0 {
			return s[:end+2]
		}
	}
	if strings.IndexByte("[{(<", s[0]) >= 0 {
		return words.Cut(s, 300)
	}
	for _, end := range []string{", ", "; ", " but ", " (", ") ", " and "} {
		s, _, _ = strings.Cut(s, end)
	}
	if len(s) > 80 {
		return ""
	}
	return s
}

// isLiteral reports whether s is written like a value: a number, or in quotes or brackets.
func isLiteral(s string) bool {
	return strings.IndexByte("'\"`[{(<-+.0123456789", s[0]) >= 0 ||
		s == "true" || s == "false" || s == "null" || s == "nil"
}

// valueForm is one value in a sentence: in quotes or brackets, else a word.
const valueForm = `("[^"]*"|'[^']*'|‘[^’]*’|\x60[^\x60]*\x60|<[^>]*>|\[[^\]]*\]|[^\s,;(){}]*[^\s,;(){}.])`

// valueForms are sentences with two values; want is the group of the one that should have come.
var valueForms = sync.OnceValue(func() []valueSentence {
	return []valueSentence{
		{[]string{" has failed ["}, lazy.Regexp(` has failed \[(.+?) (?:[!=<>]=|<|>) (.+)\]$`), 2},
		{[]string{" != ", " !== ", " ≠ ", " <> "},
			lazy.Regexp(`^(?:[\w./ -]+:(?:\d+:)? )*(\S.*?) (?:!==?|≠|<>) (.*[^{;])$`), 2},
		{[]string{"assert ", "check "},
			lazy.Regexp(`^(?:\w+: )?(?:assert|check) ([^(].*?) == ([^\s:'"{[(]+|.+)(?:: .*)?$`), 2},
		{[]string{" matches expected "}, lazy.Regexp(`that (.+?) matches expected (.+?)\.?$`), 2},
		{[]string{" given", " provided"}, lazy.Regexp(`\bexpects ` + valueForm + `(?: [^,]*)?, (?:but )?` + valueForm +
			` (?:given|provided)\b`), 1},
		{[]string{" assigned to ", " assignable to "},
			lazy.Regexp(`\btype ("[^"]*") (?:cannot be|is not) assign(?:ed|able) to .*?\btype ("[^"]*")`), 2},
		{[]string{"' failed: "}, lazy.Regexp(`' failed: .+? == (\S+), (\S+) == \S+$`), 2}, // Check
		{[]string{"[1] "}, lazy.Regexp(`^\[1\] (\S+) - (\S+) == \S+$`), 2},                // testthat
		{[]string{" is not equal to ("}, lazy.Regexp(`\((.+?)\) is not equal to \((.+?)\)`), 2},
		{[]string{"values: "}, lazy.Regexp(`^values: \w+\( ?(.+?) == (.+?) ?\)$`), 2},
		{[]string{" Was "}, lazy.Regexp(`^Expected ('[^']*'|\S+) Was (\S.*?)\.?$`), 1},
		{[]string{"not found in "}, lazy.Regexp(`^(?:\w+: )?(.+?) not found in (["'\[({].*)$`), 1},
		{[]string{"ASSERT"}, lazy.Regexp(`ASSERT\w*\([^=]+=("[^"]*"|[^,]*),.*=("[^"]*"|[^,)]*)\)$`), 2},
		{[]string{" type "}, lazy.Regexp(`\b(?:expression has|incompatible) type ` + valueForm +
			`[,;] (?:(?:\w+ )+type|expected) ` + valueForm), 2},
		{[]string{" match ", " satisfy "}, lazy.Regexp(`(?:^| )\(?(\{.*\}|\[.*\]|\S+?)\)? ` +
			`(?:does not|doesn't|do not|don't) (?:match|satisfy) ` +
			`(?:(?:\w+ )+in (?:\S+ )?|\w+ \()?\(?(\{.*\}|\[.*\]|\S*[\d"'][^\s)]*)\)?$`), 2},
		{[]string{" == "},
			lazy.Regexp(`^(?:[A-Z]\w+: +)?("[^"]*"|'[^']*'|-?[\d.]+) == ("[^"]*"|'[^']*'|-?[\d.]+)$`), 2},
		{[]string{"cannot be converted to "}, lazy.Regexp(`: (\S+) cannot be converted to (\S+)$`), 2},
		{[]string{"ype "}, lazy.Regexp(`\b(?i:type) (?:is )?` + valueForm + ` (?:but|to|does not match` +
			`|is not assignable to|is not the same as)` +
			` (?:an? |the )?(?:\w+ )*?(?:expression was expected of )?(?:type )?` + valueForm +
			`(?: was expected|\.| for \S+.*)?$`), 2},
		{[]string{" as "}, lazy.Regexp(`\((?:[^()]*of type |untyped )?([\w.*\[\]]+)(?: constant[^()]*)?\) as ([\w.*\[\]]+) value`), 2},
		{[]string{"conver"}, lazy.Regexp(`\b(?:cannot convert|conversion from) ` + valueForm + ` to ` + valueForm), 2},
		{[]string{" expected but "}, lazy.Regexp(valueForm + ` expected but (?:was|got|found):? ` + valueForm), 1},
		{[]string{", now ", " now is "}, lazy.Regexp(`\b(?:was|had) ` + valueForm +
			`,? (?:and )?(?:is )?now (?:is |has )?` + valueForm), 1},
		{[]string{"but return", "but got", "but found", "but was", "but is", "but were", "but the ", "but it "},
			lazy.Regexp(`(?i)\b(?:should (?:return|be|have)|expect(?:ed|s)?\b:?` +
				`|to (?:have|contain|be)(?: \w+)?)(?: type)? ?` + valueForm +
				`,? but (?:the \w+ |it )?(?:returns?|returned|got|found|was|is|were)\b:? ?` + valueForm), 1},
		{[]string{"expected "}, lazy.Regexp(`\b(?:got|found|received) ` + valueForm + `(?: for \S+)?,?(?: but)? expected ` +
			valueForm), 2},
		{[]string{" from "}, lazy.Regexp(`\b(?:fell|rose|dropped|grew|changed|went|increased|decreased|shrank` +
			`|sank) from ([\d.]\S*) to ([\d.]\S*)`), 1},
	}
})

type valueSentence struct {
	words []string
	form  func() *regexp.Regexp
	want  int
}

// unquoteName removes the quotes around a name.
func unquoteName(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 6 && strings.HasPrefix(s, "‘") {
		return strings.TrimSuffix(strings.TrimPrefix(s, "‘"), "’")
	}
	return Bare(s)
}

// Bare is s without the brackets around it.
func Bare(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 1 && s[0] == '<' && s[len(s)-1] == '>' {
		s = s[1 : len(s)-1]
	}
	return s
}
