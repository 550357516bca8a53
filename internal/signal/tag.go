package signal

import "strings"

// tag is something in a text that looks like one of our tags.
type tag struct {
	start, end int  // byte offsets; end is behind the angle bracket
	close      bool // it has a slash
	exact      bool // it is written as it must be: no spaces, lower case
	name       string
}

// maxTagSpace is how many spaces are tolerated at each place inside a tag
// that is only nearly one. It bounds the work for each angle bracket.
const maxTagSpace = 3

// findTag finds the first tag in s at or behind the offset from, in any case
// and with stray spaces.
func findTag(s string, from int) (tag, bool) {
	for {
		i := strings.IndexByte(s[from:], '<')
		if i < 0 {
			return tag{}, false
		}
		if t, ok := tagAt(s, from+i); ok {
			return t, true
		}
		from += i + 1
	}
}

// tagAt reads the tag that starts at the angle bracket s[i].
func tagAt(s string, i int) (tag, bool) {
	j := skipSpace(s, i+1)
	slash := j < len(s) && s[j] == '/'
	if slash {
		j = skipSpace(s, j+1)
	}
	for _, name := range tagNames {
		if len(s)-j < len(name) || !strings.EqualFold(s[j:j+len(name)], name) {
			continue
		}
		k := skipSpace(s, j+len(name))
		if k >= len(s) || s[k] != '>' {
			return tag{}, false
		}
		want := len("<>") + len(name)
		if slash {
			want++
		}
		exact := k+1-i == want && s[j:j+len(name)] == name
		return tag{start: i, end: k + 1, close: slash, exact: exact, name: name}, true
	}
	return tag{}, false
}

func skipSpace(s string, i int) int {
	end := min(i+maxTagSpace, len(s))
	for i < end && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
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
	t, ok := findTag(text, 0)
	if !ok {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	at := 0
	for ; ok; t, ok = findTag(text, at) {
		b.WriteString(text[at:t.start])
		b.WriteByte('[')
		if t.close {
			b.WriteByte('/')
		}
		b.WriteString(t.name)
		b.WriteByte(']')
		at = t.end
	}
	b.WriteString(text[at:])
	return b.String()
}
