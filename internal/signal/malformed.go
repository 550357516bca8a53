package signal

import (
	"fmt"
	"strings"
)

// inspect looks at a line of the agent's own words that is no signal, and
// warns the agent if it was meant to be one.
func (r *reader) inspect(text string) {
	if len(r.out.Malformed) >= maxMalformed {
		return
	}
	if strings.IndexByte(text, '<') < 0 {
		w, known := lookup(strings.Trim(text, decoration))
		if known && strings.Contains(text, w.name) { // in upper case, as a word of the protocol
			r.mentioned("without its tags")
		}
		return
	}
	text = strings.Map(visible, text[:min(len(text), 2*maxPayload)]) // what cannot be seen may break a tag
	t, ok := findTag(text, 0)
	for ok && t.close {
		t, ok = findTag(text, t.end)
	}
	if !ok {
		return
	}
	body, behind, closed := cutClosing(text[t.end:])
	name, payload, colon := strings.Cut(body, ":")
	w, known := wordBehind(body)
	switch {
	case known && !alone(text[:t.start], behind):
		r.mentioned("within a sentence")
	case known:
		if _, fault := w.accept(payload, colon); fault != "" && name == w.name {
			r.warn("%s did not count: it %s.", w.name, fault)
			return
		}
		r.warn("%s did not count. Print it bare and alone on its line: in upper case, directly between an opening and a "+
			"closing tag that are alike, with nothing around it.", w.name)
	case closed && alone(text[:t.start], behind):
		r.warn("the tags hold no signal word; use %s.", wordList)
	}
}

// wordBehind finds the protocol's word that a tag is followed by, in any
// case and with stray spaces or decoration before it.
func wordBehind(s string) (word, bool) {
	s = strings.TrimLeft(s[:min(len(s), 64)], " \t*_`")
	n := 0
	for n < len(s) && isLetter(s[n]) {
		n++
	}
	return lookup(s[:n])
}

func isLetter(c byte) bool { return (c|0x20) >= 'a' && (c|0x20) <= 'z' }

// warn adds a sentence that starts with the line's number.
func (r *reader) warn(format string, args ...any) {
	r.malformed(fmt.Sprintf("Line %d: ", r.number) + fmt.Sprintf(format, args...))
}

// cutClosing splits what follows an opening tag at the next tag: the content, and
// what stands behind.
func cutClosing(s string) (body, behind string, closed bool) {
	t, ok := findTag(s, 0)
	if !ok {
		return s, "", false
	}
	if !t.close {
		return s[:t.start], s[t.start:], false
	}
	return s[:t.start], s[t.end:], true
}

// decoration is what Markdown and typography put around a word.
const decoration = "\x00\u00a0\u200b\u200c\u200d\u2060\ufeff \t*_`~#>|+-.:!,;\"'“”‘’«»()[]{}0123456789✅✔️☑🎉•"

// alone is true when only decoration stands before and behind.
func alone(before, behind string) bool {
	return strings.Trim(before, decoration) == "" && strings.Trim(behind, decoration) == ""
}
