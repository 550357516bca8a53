package signal

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// tag is something in a text that looks like one of our tags.
type tag struct {
	start, end int  // byte offsets; end is behind the angle bracket
	close      bool // it has a slash
	name       string
}

// tags finds tags in any case and with a few stray spaces.
var tags = lazy.Regexp(`(?i)<[ \t]{0,3}(/?)[ \t]{0,3}(promise|pawl)[ \t]{0,3}>`)

// findTag finds the first tag in s at or behind the offset from, in any case
// and with stray spaces.
func findTag(s string, from int) (tag, bool) {
	bracket := strings.IndexByte(s[from:], '<')
	if bracket < 0 {
		return tag{}, false
	}
	from += bracket
	at := tags().FindStringSubmatchIndex(s[from:])
	if at == nil {
		return tag{}, false
	}
	t := tag{start: from + at[0], end: from + at[1], close: at[2] < at[3],
		name: strings.ToLower(s[from+at[4] : from+at[5]])}
	return t, true
}

// Neutralise makes text that comes from elsewhere (gate output, answers,
// titles) harmless: its tags are written with square brackets, and control
// and invisible characters, which could hide a tag, are dropped. Line breaks
// stay. The result never holds a signal and never looks like one.
func Neutralise(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return visible(r)
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return tags().ReplaceAllStringFunc(text, func(found string) string {
		t, _ := findTag(found, 0)
		if t.close {
			return "[/" + t.name + "]"
		}
		return "[" + t.name + "]"
	})
}
