package prompt

import (
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/signal"
)

// This file makes text harmless that neither pawl nor the user wrote: gate
// output, answers, titles. The rules are:
//   - It holds no signal and nothing that looks like one.
//   - On a line of pawl's it is one line; a text of more lines is quoted.
//   - It is bounded.

const (
	maxLine  = 400      // bytes of a text on one line
	maxQuote = 4000     // bytes of a text that is quoted
	maxCase  = 64 << 10 // bytes of a person's text: an answer, a description
	cutMark  = " …"
)

// oneLine puts a text on one line of at most maxLine bytes.
func oneLine(text string) string {
	// Cut before the work on it, which a text of megabytes is not worth. Tags
	// come last: with its white space gone, something may become one.
	text = strings.Join(strings.Fields(bounded(text, 4*maxLine)), " ")
	text = strings.ReplaceAll(signal.Neutralise(text), "```", "'''")
	if forges(text) {
		text = strings.TrimSpace(strings.TrimLeft(text, "#"))
	}
	return bounded(text, maxLine)
}

// quote sets a text of several lines off as a block quote of about limit
// bytes, each line behind the prefix and a quote sign.
func quote(text, prefix string, limit int) string {
	text = strings.TrimSpace(signal.Neutralise(bounded(text, limit)))
	if text == "" {
		return ""
	}
	return prefix + "> " + strings.ReplaceAll(text, "\n", "\n"+prefix+"> ")
}

// headings start the lines that structure a prompt.
var headings = [...]string{
	"CONTEXT", "OBSERVE", "ORIENT", "DECIDE", "ACT", "FEEDBACK", "COMPLETION",
	"REVIEW", "TASK", "CHECKS", "CHANGE", "VERDICT",
}

// prose keeps the lines of a text, but quotes one that is a heading of the
// prompt, and closes a code fence that would swallow what follows.
func prose(text string) string {
	text = strings.TrimSpace(signal.Neutralise(bounded(text, maxCase)))
	fence := signal.OpenFence("", text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if forges(line) {
			lines[i] = "> " + line
		}
	}
	if fence != "" {
		lines = append(lines, fence)
	}
	return strings.Join(lines, "\n")
}

// forges is true for a line that looks like a heading of ours.
func forges(line string) bool {
	name := strings.TrimSpace(line)
	rest := strings.TrimLeft(name, "#")
	if level := len(name) - len(rest); level == 0 || level > 2 {
		return false
	}
	rest = strings.TrimSpace(strings.TrimRight(rest, "# \t"))
	for _, h := range headings {
		if strings.EqualFold(rest, h) {
			return true
		}
	}
	return strings.EqualFold(rest, strings.TrimPrefix(title, "# "))
}

// bounded cuts a text to at most limit bytes and marks the cut.
func bounded(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	cut := limit - len(cutMark)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + cutMark
}
