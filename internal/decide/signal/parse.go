package signal

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// maxPayload is the longest payload that is kept, in bytes. What follows is
// dropped: the signal still counts.
const maxPayload = 4000

// need is the kind of text that may follow a word's colon.
type need uint8

const (
	noPayload  need = iota // the word alone
	optional               // the word, or the word with a reason
	required               // never without a reason
	percentage             // a whole number from 0 to 100
)

// word is one of the protocol's words.
type word struct {
	name string
	kind Kind // None for PROGRESS, which controls nothing
	need need
}

var words = [...]word{
	{"COMPLETE", Complete, noPayload},
	{"SUCCESS", Complete, noPayload},
	{"FAILURE", Failure, optional},
	{"BLOCKED", Blocked, required},
	{"PENDING", Pending, required},
	{"ESCALATE", Pending, required},
	{"PROGRESS", None, percentage},
	{"APPROVE", Approve, noPayload},
	{"REJECT", Reject, required},
}

// wordList names the words in sentences for the agent.
const wordList = "COMPLETE, SUCCESS, FAILURE, BLOCKED, PENDING, ESCALATE, PROGRESS, APPROVE or REJECT"

var tagNames = [...]string{"promise", "pawl"}

// parsed is one valid signal line.
type parsed struct {
	signal   Signal
	progress int // -1 unless the word is PROGRESS
}

// parseLine reads a line that holds one signal and nothing else. The line
// comes without its surrounding white space.
func parseLine(line string) (parsed, bool) {
	body, ok := bodyBetweenTags(line)
	if !ok {
		return parsed{}, false
	}
	name, rest, colon := strings.Cut(body, ":")
	w, ok := findWord(name)
	if !ok || w.name != name {
		return parsed{}, false
	}
	p, fault := w.readPayload(rest, colon)
	return p, fault == ""
}

// bodyBetweenTags returns what stands between an exact opening tag and the closing
// tag of the same name that ends the line. Further tags in it are refused.
func bodyBetweenTags(line string) (string, bool) {
	for _, name := range tagNames {
		body, ok := strings.CutPrefix(line, "<"+name+">")
		if !ok {
			continue
		}
		body, ok = strings.CutSuffix(body, "</"+name+">")
		if !ok {
			return "", false
		}
		_, more := findFirstTag(body, 0)
		return body, !more
	}
	return "", false
}

// findWord finds a word by its name in any case.
func findWord(name string) (word, bool) {
	for _, w := range words {
		if strings.EqualFold(w.name, name) {
			return w, true
		}
	}
	return word{}, false
}

// readPayload checks the payload. The fault is empty when the signal is valid,
// else half a sentence that follows the word.
func (w word) readPayload(payload string, colon bool) (p parsed, fault string) {
	p = parsed{signal: Signal{Kind: w.kind}, progress: -1}
	switch w.need {
	case noPayload:
		if colon {
			return p, "takes nothing after the word"
		}
		return p, ""
	case percentage:
		n, ok := readPercent(payload)
		if !colon || !ok {
			return p, "needs a colon and a whole number from 0 to 100"
		}
		p.progress = n
		return p, ""
	case optional, required:
	}
	p.signal.Text = cleanPayload(payload)
	if w.need == required && p.signal.Text == "" {
		return p, "needs a colon and a reason after the word"
	}
	return p, ""
}

// readPercent reads a whole number from 0 to 100 with optional spaces around it.
func readPercent(s string) (int, bool) {
	s = strings.Trim(s, " \t")
	n, err := strconv.ParseUint(s, 10, 64)
	return int(min(n, 101)), err == nil && n <= 100 && len(s) <= 3
}

// cleanPayload makes a payload fit for a terminal, a page and a prompt:
// valid UTF-8, no control or invisible characters, no white space around it,
// at most maxPayload bytes.
func cleanPayload(s string) string {
	// Four bytes a rune: more than this much input is never needed, and a
	// hostile line of megabytes is not worth copying.
	if len(s) > 8*maxPayload {
		s = s[:8*maxPayload]
	}
	s = strings.TrimSpace(strings.Map(mapVisible, strings.ToValidUTF8(s, string(utf8.RuneError))))
	if len(s) <= maxPayload {
		return s
	}
	cut := maxPayload
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strings.TrimRightFunc(s[:cut], unicode.IsSpace)
}

// mapVisible is a mapping for [strings.Map]: control characters and invisible
// ones (zero width, direction marks) are dropped, white space becomes a space.
func mapVisible(r rune) rune {
	switch {
	case r >= ' ' && r < 0x7f:
		return r
	case unicode.IsSpace(r):
		return ' '
	case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
		return -1
	}
	return r
}

// tag is something in a text that looks like one of our tags.
type tag struct {
	start, end int  // byte offsets; end is behind the angle bracket
	close      bool // it has a slash
	name       string
}

// tags finds tags in any case and with a few stray spaces.
var tags = lazy.Regexp(`(?i)<[ \t]{0,3}(/?)[ \t]{0,3}(promise|pawl)[ \t]{0,3}>`)

// findFirstTag finds the first tag in s at or behind the offset from, in any case
// and with stray spaces.
func findFirstTag(s string, from int) (tag, bool) {
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
		return mapVisible(r)
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return tags().ReplaceAllStringFunc(text, func(found string) string {
		t, _ := findFirstTag(found, 0)
		if t.close {
			return "[/" + t.name + "]"
		}
		return "[" + t.name + "]"
	})
}

// warnOfNearSignal looks at a line of the agent's own words that is no signal, and
// warns the agent if it was meant to be one.
func (r *reader) warnOfNearSignal(text string) {
	if len(r.out.Malformed) >= maxMalformed {
		return
	}
	if strings.IndexByte(text, '<') < 0 {
		w, known := findWord(strings.Trim(text, decoration))
		if known && strings.Contains(text, w.name) { // in upper case, as a word of the protocol
			r.addMention("without its tags")
		}
		return
	}
	text = strings.Map(mapVisible, text[:min(len(text), 2*maxPayload)]) // what cannot be seen may break a tag
	t, ok := findFirstTag(text, 0)
	for ok && t.close {
		t, ok = findFirstTag(text, t.end)
	}
	if !ok {
		return
	}
	body, behind, closed := cutClosing(text[t.end:])
	name, payload, colon := strings.Cut(body, ":")
	w, known := wordBehind(body)
	switch {
	case known && !standsAlone(text[:t.start], behind):
		r.addMention("within a sentence")
	case known:
		if _, fault := w.readPayload(payload, colon); fault != "" && name == w.name {
			r.addWarning("%s did not count: it %s.", w.name, fault)
			return
		}
		r.addWarning("%s did not count. Print it bare and alone on its line: in upper case, directly between an "+
			"opening and a closing tag that are alike, with nothing around it.", w.name)
	case closed && standsAlone(text[:t.start], behind):
		r.addWarning("the tags hold no signal word; use %s.", wordList)
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
	return findWord(s[:n])
}

func isLetter(c byte) bool { return (c|0x20) >= 'a' && (c|0x20) <= 'z' }

// addWarning adds a sentence that starts with the line's number.
func (r *reader) addWarning(format string, args ...any) {
	r.addMalformed(fmt.Sprintf("Line %d: ", r.number) + fmt.Sprintf(format, args...))
}

// cutClosing splits what follows an opening tag at the next tag: the content, and
// what stands behind.
func cutClosing(s string) (body, behind string, closed bool) {
	t, ok := findFirstTag(s, 0)
	if !ok {
		return s, "", false
	}
	if !t.close {
		return s[:t.start], s[t.start:], false
	}
	return s[:t.start], s[t.end:], true
}

// decoration is the punctuation that Markdown and typography put around a word.
const decoration = "\x00\u00a0\u200b\u200c\u200d\u2060\ufeff \t*_`~#>|+-.:!,;\"'“”‘’«»()[]{}0123456789✅✔️☑🎉•"

// standsAlone is true when only decoration stands before and behind.
func standsAlone(before, behind string) bool {
	return strings.Trim(before, decoration) == "" && strings.Trim(behind, decoration) == ""
}
