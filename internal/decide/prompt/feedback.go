package prompt

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/signal"
)

// The bounds of what a feedback lists.
const (
	maxTried = 5
	maxNotes = 20
)

// feedbackText renders the results of the iterations before, with that many of its
// items. It is empty without a feedback, or for one that says nothing.
func feedbackText(in *Input, items int) string {
	f := in.Feedback
	if f == nil {
		return ""
	}
	parts := []string{
		in.verdictLine(), itemList(f.Items, items, f.Dropped),
		bulletList("Tried before, without success:", f.Tried, maxTried),
		instructionText(f), answerText(f), bulletList("Notes:", f.Notes, maxNotes),
		bulletList("In your last message something was nearly a signal, but did not count:", f.Malformed, maxNotes),
	}
	return joinParts(parts...)
}

// Messages renders those of people to the agent, each on its own.
func Messages(texts []string) string {
	var parts []string
	for _, m := range texts {
		if text := blockQuote(m, "", maxCase); text != "" {
			parts = append(parts, "A person left you a message:\n"+text)
		}
	}
	return strings.Join(parts, "\n\n")
}

// wholeSaid is how many of a person's words are shown as they were said.
const wholeSaid = 5

// Remembered renders the earlier answers and messages of people, the newest first; older
// ones are a line each.
func Remembered(said []loop.Said) string {
	var parts, lines []string
	for i := len(said) - 1; i >= 0; i-- {
		if len(parts) < wholeSaid {
			parts = append(parts, saidBefore(said[i]))
			continue
		}
		lines = append(lines, strings.TrimPrefix(cutToLine(said[i].Question)+" → "+cutToLine(said[i].Text), " → "))
	}
	if len(parts) == 0 {
		return ""
	}
	const heading = "What people said before, the newest first. It holds until a person says otherwise."
	return joinParts(heading, strings.Join(parts, "\n\n"), bulletList("And before that:", lines, len(lines)))
}

func saidBefore(s loop.Said) string {
	when := "Earlier"
	if s.Iteration > 0 {
		when = fmt.Sprintf("After iteration %d", s.Iteration)
	}
	text, question := blockQuote(s.Text, "", maxCase), blockQuote(s.Question, "", maxQuote)
	if question == "" {
		return when + " a person said:\n" + text
	}
	return when + " a person was asked:\n" + question + "\n\nand answered:\n" + text
}

// joinParts are the parts that say something.
func joinParts(parts ...string) string { return strings.Join(lists.NonEmpty(parts...), "\n\n") }

// verdictLine is the first line: which iteration, which gate, what.
func (in *Input) verdictLine() string {
	f := in.Feedback
	summary, step := cutToLine(f.Summary), cutToLine(f.Step)
	if summary == "" && step == "" {
		return ""
	}
	where := "The iteration before"
	if f.Iteration > 0 {
		where = fmt.Sprintf("Iteration %d", f.Iteration)
	}
	if step == "" {
		return where + ": " + summary
	}
	how := ""
	if command := in.commandOf(slices.Index(in.Gates, f.Step)); command != "" && command != step {
		how = " (" + command + ")"
	}
	if f.ExitCode > 0 {
		how += fmt.Sprintf(" ended with exit status %d and", f.ExitCode)
	}
	if summary == "" {
		return fmt.Sprintf("%s: the check %q%s was red.", where, step, how)
	}
	return fmt.Sprintf("%s: the check %q%s was red: %s", where, step, how, summary)
}

// itemList lists what can be acted on, and says how much is left out, here
// and before.
func itemList(items []failure.Item, keep, dropped int) string {
	if len(items)+dropped == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("To repair:\n")
	keep = min(keep, len(items))
	for _, item := range items[:keep] {
		writeItem(&b, item)
	}
	if n := len(items) - keep + dropped; n == 1 {
		b.WriteString("(1 more item dropped)")
	} else if n > 1 {
		fmt.Fprintf(&b, "(%d more items dropped)", n)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func writeItem(b *strings.Builder, item failure.Item) {
	place := cutToLine(item.File)
	if place != "" && item.Line > 0 {
		place = fmt.Sprintf("%s:%d", place, item.Line)
	}
	head := lists.NonEmpty(place, cutToLine(item.Test))
	line := strings.Join(head, " ")
	first, more, _ := strings.Cut(strings.TrimSpace(item.Message), "\n")
	bare := first == item.File || first == ""
	if bare && len(head) == 1 && item.Test == "" {
		first = "the check printed this name, and nothing that says why"
	}
	switch message := cutToLine(first); {
	case line == "" && message == "":
		line = "(no details)"
	case line == "":
		line = message
	case message != "":
		line += ": " + message
	}
	b.WriteString("- " + line + "\n")
	if rest := blockQuote(more, "  ", maxQuote); rest != "" {
		b.WriteString(rest + "\n")
	}
	if item.HasValuesBeyond(item.Message) {
		writeValue(b, "expected", item.Expected)
		writeValue(b, "received", item.Received)
	}
}

// writeValue writes what a test compared: on the line, or quoted below it.
func writeValue(b *strings.Builder, name, value string) {
	value = strings.Trim(value, "\n")
	switch {
	case value == "":
	case strings.Contains(value, "\n"):
		if text := blockQuote(value, "    ", maxQuote); text != "" {
			b.WriteString("  " + name + ":\n" + text + "\n")
		}
	default:
		if text := cutToLine(value); text != "" {
			b.WriteString("  " + name + ": " + text + "\n")
		}
	}
}

// bulletList is a heading and at most limit lines, the last ones.
func bulletList(heading string, lines []string, limit int) string {
	var b strings.Builder
	for _, line := range lines[max(0, len(lines)-limit):] {
		if text := cutToLine(line); text != "" {
			b.WriteString("\n- " + text)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return heading + b.String()
}

// instructionText says how this iteration is to differ.
func instructionText(f *loop.Feedback) string {
	text := quoteHeadings(f.Instruction)
	if text == "" {
		return ""
	}
	if name := cutToLine(f.Strategy); name != "" {
		return fmt.Sprintf("This time (strategy %s):\n%s", name, text)
	}
	return "This time:\n" + text
}

// answerText has a person's words, with the question that they belong to.
func answerText(f *loop.Feedback) string {
	text := blockQuote(f.Answer, "", maxCase)
	if text == "" {
		return ""
	}
	if question := blockQuote(f.Question, "", maxQuote); question != "" {
		return "A person was asked:\n" + question + "\n\nand answered:\n" + text
	}
	return "A person said:\n" + text
}

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

// cutToLine puts a text on one line of at most maxLine bytes.
func cutToLine(text string) string {
	// Cut before the work on it, which a text of megabytes is not worth. Tags
	// come last: with its white space gone, something may become one.
	text = strings.Join(strings.Fields(cutMarked(text, 4*maxLine)), " ")
	text = strings.ReplaceAll(signal.Neutralise(text), "```", "'''")
	if forgesHeading(text) {
		text = strings.TrimSpace(strings.TrimLeft(text, "#"))
	}
	return cutMarked(text, maxLine)
}

// blockQuote sets a text of several lines off as a block quote of about limit
// bytes, each line behind the prefix and a quote sign.
func blockQuote(text, prefix string, limit int) string {
	text = strings.TrimSpace(signal.Neutralise(cutMarked(text, limit)))
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

// quoteHeadings keeps the lines of a text, but quotes one that is a heading of the
// prompt, and closes a code fence that would swallow what follows.
func quoteHeadings(text string) string {
	text = strings.TrimSpace(signal.Neutralise(cutMarked(text, maxCase)))
	fence := signal.OpenFence("", text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if forgesHeading(line) {
			lines[i] = "> " + line
		}
	}
	if fence != "" {
		lines = append(lines, fence)
	}
	return strings.Join(lines, "\n")
}

// forgesHeading reports whether the line looks like a heading of ours.
func forgesHeading(line string) bool {
	name := strings.TrimSpace(line)
	rest := strings.TrimLeft(name, "#")
	if level := len(name) - len(rest); level == 0 || level > 2 {
		return false
	}
	rest = strings.TrimSpace(strings.TrimRight(rest, "# \t"))
	isRest := func(heading string) bool { return strings.EqualFold(rest, heading) }
	return isRest(strings.TrimPrefix(title, "# ")) || slices.ContainsFunc(headings[:], isRest)
}

// cutMarked cuts a text to at most limit bytes and marks the cut.
func cutMarked(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	cut := limit - len(cutMark)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + cutMark
}
