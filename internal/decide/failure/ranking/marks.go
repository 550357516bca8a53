package ranking

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// marks are the forms that a line has, one bit for each of the list of forms.
type marks uint64

// form is a form of a line, whatever tool prints it.
type form struct {
	name    string
	matches *regexp.Regexp
}

// forms are looked for in a line without the blanks around it.
var forms = sync.OnceValue(func() []form {
	list := []struct{ name, source string }{
		{"strong", strongForm},
		{"begins", `^[^A-Za-z]*(?i:error|fatal|err!?|panic|exception|failure|failed|fail)\b`},
		{"alone", `^[^A-Za-z]*(?i:error|fatal|panic|exception|failure)\b[^A-Za-z0-9]*$`},
		{"coded", `^[^A-Za-z]*(?i:error)(?:\[[\w-]+\]| [A-Z]+\d+)?:`},
		{"named", `^\w+(?:[.:\\]+\w+)*(?:Error|Exception)\b`},
		{"name alone", `^[\w.:\\]*(?:Error|Exception)$`},
		{"leveled", `: (?:fatal )?(?i:error|warning)`},
		{"warns", `^.{0,40}\b(?i:warn|warning|deprecat\w*|notice|info|debug)\b`},
		{"place", placeForm},
		{"place first", `^` + placeForm},
		{"place alone", `^\(?` + placeForm + `[:\d]*\)?$`},
		{"path", `[\w.@~+-]*[/\\]\w|\b[\w-]+\.[a-z]{1,5}\b`},
		{"frame", `^(?:at |#\d+ |\d+: |from |File "|\[\d+\] |\.\.\. \d+ more|goroutine |created by |\S+\.go:\d+ \+0x)`},
		{"ends :", `:$`}, {"ends .", `[^.]\.$`}, {"ends ...", `\.\.\.$|…$`}, {"ends !", `!$`}, {"ends )", `\)$`},
		{"ends {", `\{$`}, {"ends ,", `,$`},
		{"quote", "[\"'`«“‘]"},
		{"digit", `\d`},
		{"no letter", `^[^\pL\d]*$`},
		{"source", `[{};]$|=>|^\d+ ?[|│]|^[|>]\s`},
		{"exit", `(?i)\b(?:exit(?:ed)?|return(?:ed)?)\b.{0,20}\b(?:code|status|with)\b.{0,4}\d`},
		{"counts", `(?i)\b\d+ (?:\w+ )?(?:error|failure|warning|problem|test|issue|fail|pass|skip)`},
		{"none", `(?i)\b(?:0|no) (?:\w+ )?(?:errors?|failures?|failed|warnings?|problems?)\b`},
		{"clock", `^\[?\d{4}-\d\d-\d\d|^\d\d:\d\d`},
		{"echo", `^[$+>#%] `},
		{"upper", `^[^a-z]*[A-Z][^a-z]*$`},
		{"capital", `^[A-Z]`}, {"small", `^[a-z]`}, {"number", `^\d`},
		{"prefix", `^\W*\w[\w.\[\]-]*:`},
	}
	compiled := make([]form, len(list))
	for i, f := range list {
		compiled[i] = form{f.name, regexp.MustCompile(f.source)}
	}
	return compiled
})

const (
	strongForm = `(?i:\b(?:error|fatal|fail(?:ed|ure)?|panic|exception)\b)|\w(?:Error|Exception)\b`
	placeForm  = `[\w./\\@+~-]*[\w-]\.[a-zA-Z]\w{0,9}(?::\d+|\(\d+|\[\d+|:\[\d+|#L\d+|", line \d+| line \d+)`
)

// failing are words for a failure.
var failing = lazy.Regexp(`(?i:\b(?:error|err|fatal|fail(?:ed|s|ure|ures)?|panic|exception|cannot|can't` +
	`|could ?n[o']t|unable|not found|no such|missing|undefined|unexpected|invalid|denied|refused|unresolved|unknown` +
	`|abort(?:ed)?|assert\w*|traceback|mismatch|conflict|timed? ?out|expected|unsupported|illegal|must|does not` +
	`|doesn't|do not|is not|not|forbidden|killed|crash\w*|segfault|segmentation|broken|corrupt\w*|violat\w*|wrong)\b)` +
	`|\w(?:Error|Exception)\b`)

func readLine(at int, text string) line {
	said := strings.TrimSpace(text)
	l := line{at: at, text: said, indent: words.Indent(text), shape: shapeOfLine(said),
		failing: len(failing().FindAllStringIndex(said, 4))}
	for bit, f := range forms() {
		if f.matches.MatchString(said) {
			l.marks |= 1 << bit
		}
	}
	return l
}

// hasAnyForm reports whether the line has one of the forms.
func (m marks) hasAnyForm(names ...string) bool {
	for bit, f := range forms() {
		if m&(1<<bit) != 0 && slices.Contains(names, f.name) {
			return true
		}
	}
	return false
}

func (m marks) eachName(found func(name string)) {
	for bit, f := range forms() {
		if m&(1<<bit) != 0 {
			found(f.name)
		}
	}
}

// shapeOfLine is a line with one letter for each word and one digit for each number.
func shapeOfLine(said string) string {
	var shape strings.Builder
	last := rune(0)
	for _, r := range words.Cut(said, 80) {
		switch {
		case unicode.IsLetter(r):
			r = 'a'
		case unicode.IsDigit(r):
			r = '0'
		}
		if r != last || r != 'a' && r != '0' {
			shape.WriteRune(r)
		}
		last = r
	}
	return shape.String()
}

// wordsOfLine are the words of a line in small letters. A path or an address is one word, "/", an
// exception's name ends in "*error", and what stands before the first word is a word of its own.
func wordsOfLine(said string) (found []string) {
	for i, field := range strings.Fields(said) {
		if strings.ContainsAny(field, `/\`) && len(field) > 2 {
			found = append(found, "/")
			continue
		}
		if r, _ := utf8.DecodeRuneInString(field); i == 0 && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			found = append(found, string(r))
		}
		for word := range strings.FieldsFuncSeq(field, isNoLetter) {
			if tail := exceptionName().FindString(word); tail != "" {
				found = append(found, "*"+strings.ToLower(tail))
			}
			found = append(found, strings.ToLower(word))
		}
	}
	return found
}

func isNoLetter(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }

var exceptionName = lazy.Regexp(`(?:Error|Exception)$`)
