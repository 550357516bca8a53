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
	t, ok := findTag(text, 0)
	if !ok || t.close {
		r.inspectInvisible(text)
	} else if r.unknownWord(text, t) {
		return
	}
	for ; ok; t, ok = findTag(text, t.end) {
		if t.close {
			continue
		}
		if w, found := wordBehind(text[t.end:]); found {
			r.nearly(text, t, w)
			return
		}
	}
}

// inspectInvisible finds a tag that zero-width or control characters break.
func (r *reader) inspectInvisible(text string) {
	if strings.IndexByte(text, '<') < 0 {
		return
	}
	clean := strings.Map(visible, text)
	if len(clean) == len(text) || len(clean) > maxPayload {
		return
	}
	if t, ok := findTag(clean, 0); ok && !t.close {
		if w, found := wordBehind(clean[t.end:]); found {
			r.warn("%s did not count: there are invisible characters inside the tag.", w.name)
		}
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

// nearly says what is wrong with a signal of a known word.
func (r *reader) nearly(text string, t tag, w word) {
	body, behind, closed := cutClosing(text[t.end:])
	if alone(text[:t.start], behind) {
		if r.inspectAlone(text, t, body, w, closed) {
			return
		}
		r.warn("%s did not count: it had something around it: a list mark, bold, quotes or invisible characters. "+
			"Print the bare line.", w.name)
		return
	}
	if _, more := findTag(behind, 0); more && alone(text[:t.start], "") {
		r.warn("%s did not count: print one signal on a line, and nothing else.", w.name)
		return
	}
	if reported(text[:t.start]) {
		r.mentioned("only mentioned in a sentence")
		return
	}
	r.warn("%s did not count: it stood within a sentence. Print it alone on a line of its own.", w.name)
}

// inspectAlone looks into a signal that stands alone on its line, decoration
// aside, and says whether it found a fault inside.
func (r *reader) inspectAlone(text string, t tag, body string, w word, closed bool) bool {
	name, payload, colon := strings.Cut(body, ":")
	_, fault := w.accept(payload, colon)
	if !colon && len(name) > len(w.name) && strings.TrimSpace(name) == name {
		fault = "must be followed by the closing tag, or by a colon where a reason is allowed"
	}
	switch {
	case !closed:
		r.warn("%s did not count: the closing tag is missing on its line.", w.name)
	case !t.exact || !strings.Contains(text, "</"+t.name+">"):
		r.warn("%s did not count: both tags must be the same, in lower case and without spaces.", w.name)
	case name != w.name && strings.EqualFold(name, w.name):
		r.warn("%s did not count: the word must be in upper case.", w.name)
	case strings.TrimSpace(name) != name && strings.EqualFold(strings.TrimSpace(name), w.name):
		r.warn("%s did not count: no spaces may stand around the word.", w.name)
	case fault != "":
		r.warn("%s did not count: it %s.", w.name, fault)
	default:
		return false
	}
	return true
}

// unknownWord tells of a line that is a signal but for its word. The word is
// repeated if it looks like one.
func (r *reader) unknownWord(text string, t tag) bool {
	if _, known := wordBehind(text[t.end:]); known {
		return false
	}
	body, behind, closed := cutClosing(text[t.end:])
	if !closed || !alone(text[:t.start], behind) {
		return false
	}
	name, _, _ := strings.Cut(body, ":")
	name = strings.TrimSpace(name)
	for _, c := range []byte(name) {
		if !isLetter(c) && c != '_' && c != '-' && c != ' ' {
			name = ""
			break
		}
	}
	if name == "" || len(name) > 40 {
		r.warn("Nothing counted: the tags hold no signal word; use %s.", wordList)
		return true
	}
	r.warn("%q is no signal word; use %s.", name, wordList)
	return true
}

// warn adds a sentence that starts with the line's number.
func (r *reader) warn(format string, args ...any) {
	r.malformed(fmt.Sprintf("Line %d: ", r.number) + fmt.Sprintf(format, args...))
}

// cutClosing splits what follows an opening tag at the last closing tag of
// its run: the content, and what stands behind.
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

// reporting words make a sentence one about a signal: it is refused, planned
// or described there, not given.
var reporting = map[string]bool{
	"not": true, "never": true, "no": true, "cannot": true, "without": true, "unless": true, "until": true,
	"instead": true, "avoid": true, "if": true, "when": true, "once": true, "after": true, "before": true,
	"would": true, "should": true, "will": true, "must": true, "may": true, "to": true, "premature": true,
}

// reported is true when the words before a tag in its sentence make it a
// mention, or when the tag is quoted there.
func reported(before string) bool {
	if before == "" {
		return false
	}
	if inCode(before, len(before)) || strings.Count(before, "\"")%2 == 1 || strings.HasSuffix(before, "“") {
		return true
	}
	tail := strings.ToLower(before[max(0, len(before)-200):])
	between := func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz'’", r) }
	for field := range strings.FieldsFuncSeq(tail, between) {
		if reporting[field] || strings.HasSuffix(field, "n't") || strings.HasSuffix(field, "n’t") {
			return true
		}
	}
	return false
}
