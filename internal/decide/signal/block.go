package signal

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// place is the position of a line in its message.
type place uint8

const (
	open     place = iota // the agent's own words
	fenced                // inside a code fence, or a fence itself
	indented              // indented code
	quoted                // a block quote
	spanned               // within a quotation or inline code that an earlier line opened
	hidden                // inside an HTML comment or a pre, code or blockquote element
)

// maxNesting bounds the fences within fences that are followed. Deeper ones
// never close, so nothing behind them counts.
const maxNesting = 64

// blocks follows the Markdown structure of a message, one line at a time.
//
// Code fences are read twice. By the standard a fence within a fence is text,
// but models nest them, so the first closing fence of an inner block would
// put the rest of the outer one outside. A claim of success counts only if
// both readings have it outside; anything else needs the standard alone.
type blocks struct {
	fence  fence   // by the standard; no fence when its size is 0
	nested []fence // with fences within fences
	lost   bool    // more than maxNesting
	until  string  // ends the HTML block that is open; empty when none is
	inline bool    // that block began within a paragraph and ends with it
	span   span
}

// fence is an opening code fence.
type fence struct {
	char byte
	size int
}

// placeLine takes a line without its line break and says where it stands. sure is
// false when only the standard reading has it outside of fences.
func (b *blocks) placeLine(line string) (where place, sure bool) {
	indent, text := cutIndent(line)
	if b.until != "" {
		b.leaveHTMLBlock(text)
		return hidden, false
	}
	if isFence := b.stepFences(indent, text); isFence || b.fence.size > 0 {
		b.span = span{}
		return fenced, false
	}
	sure = len(b.nested) == 0 && !b.lost
	switch {
	case text == "":
		b.span = span{}
		return open, sure
	case indent >= 4:
		return indented, false
	case text[0] == '>':
		b.span = span{}
		return quoted, false
	}
	if startsBlock(text) {
		b.span = span{}
	}
	inQuotes := b.span.isUnclosed()
	b.span.readLine(text)
	if b.startHTML(text) {
		return hidden, false
	}
	if inQuotes {
		return spanned, false
	}
	return open, sure
}

// hasOpenFence is true when a fence is open at the end of the message. Which
// lines were inside of it cannot be known then.
func (b *blocks) hasOpenFence() bool { return b.fence.size > 0 || len(b.nested) > 0 || b.lost }

// cutIndent measures the white space before the text, in columns, and cuts
// off that behind it.
func cutIndent(line string) (columns int, text string) {
	for i := range len(line) {
		switch line[i] {
		case ' ':
			columns++
		case '\t':
			columns += 4 - columns%4
		default:
			return columns, trimBlanks(line[i:])
		}
	}
	return columns, ""
}

// trimBlanks cuts off the white space that may surround a signal. It is ASCII
// only: other spaces could hide something.
func trimBlanks(s string) string { return strings.Trim(s, " \t\r\v\f") }

// stepFences moves both readings on and says whether the line is a fence by
// the standard.
func (b *blocks) stepFences(indent int, text string) bool {
	b.stepNested(text)
	f, info, ok := readFence(text)
	if !ok || indent >= 4 {
		return false
	}
	if b.fence.size == 0 {
		b.fence = f
		return true
	}
	if info == "" && f.char == b.fence.char && f.size >= b.fence.size {
		b.fence = fence{}
		return true
	}
	return false
}

// stepNested is the careful reading: a fence counts at any indentation and
// behind a list marker, and one with an info string opens another block.
func (b *blocks) stepNested(text string) {
	f, info, ok := readFence(afterListMarker(text))
	if !ok || b.lost {
		return
	}
	top := len(b.nested) - 1
	if top >= 0 && info == "" && f.char == b.nested[top].char && f.size >= b.nested[top].size {
		b.nested = b.nested[:top]
		return
	}
	if top >= 0 && f.char != b.nested[top].char {
		return // the other sort of fence is text
	}
	if top >= 0 && f.size < b.nested[top].size {
		return // so is a shorter one
	}
	if len(b.nested) == maxNesting {
		b.lost = true
		return
	}
	b.nested = append(b.nested, f)
}

var (
	// fenceLine is a code fence: at least three backticks or tildes, and what is
	// behind them. Backticks behind backticks are inline code, not a fence.
	fenceLine = lazy.Regexp("^(?:(`{3,})([^`]*)|(~{3,})(.*))$")
	// markers are list markers at the start of a line.
	markers = lazy.Regexp(`^(?:(?:[-*+]|\d{1,9}[.)])[ \t]+){1,8}`)
)

// readFence reads a code fence and what is behind it.
func readFence(text string) (f fence, info string, ok bool) {
	if text == "" || strings.IndexByte("`~", text[0]) < 0 {
		return fence{}, "", false
	}
	found := fenceLine().FindStringSubmatch(text)
	if found == nil {
		return fence{}, "", false
	}
	mark := found[1] + found[3]
	return fence{char: mark[0], size: len(mark)}, trimBlanks(found[2] + found[4]), true
}

// OpenFence returns the marker of the code fence that is open behind a text, if
// open was open before it; "" is none.
func OpenFence(open, text string) string {
	for line := range strings.Lines(text) {
		f, info, ok := readFence(strings.TrimSpace(line))
		switch {
		case !ok:
		case open == "":
			open = strings.Repeat(string(f.char), min(f.size, 100))
		case info == "" && f.char == open[0] && f.size >= len(open):
			open = ""
		}
	}
	return open
}

// afterListMarker cuts off the list markers that text starts with.
func afterListMarker(text string) string { return text[len(markers().FindString(text)):] }

// startsBlock reports whether the line is a heading or a list item, over which a quotation does
// not reach.
func startsBlock(text string) bool { return text[0] == '#' || markers().MatchString(text) }

// htmlBlocks hide what they hold from a reader or show it as somebody
// else's words.
var htmlBlocks = [...]struct{ start, end string }{
	{"<!--", "-->"},
	{"<pre>", "</pre>"}, {"<pre ", "</pre>"},
	{"<code>", "</code>"}, {"<code ", "</code>"},
	{"<blockquote>", "</blockquote>"}, {"<blockquote ", "</blockquote>"},
}

// startHTML enters an HTML block that the line opens and does not close. A
// comment within a line ends with its paragraph, as the standard has it.
func (b *blocks) startHTML(text string) bool {
	low := strings.ToLower(text)
	for _, block := range htmlBlocks {
		if !strings.HasPrefix(low, block.start) {
			continue
		}
		if !strings.Contains(low, block.end) {
			b.until, b.inline = block.end, false
		}
		return true
	}
	i := strings.LastIndex(text, "<!--")
	if i < 0 || isInsideCode(text, i) || strings.Contains(text[i:], "-->") {
		return false
	}
	b.until, b.inline = "-->", true
	return true
}

// leaveHTMLBlock leaves the HTML block at its end.
func (b *blocks) leaveHTMLBlock(text string) {
	blank := b.inline && text == ""
	if blank || strings.Contains(strings.ToLower(text), b.until) {
		b.until = ""
	}
	b.span = span{}
}

// isInsideCode is true when the byte at i stands behind an odd number of backticks
// in its line.
func isInsideCode(text string, i int) bool { return strings.Count(text[:i], "`")%2 == 1 }

// span follows quotations and inline code over the lines of one paragraph.
type span struct {
	ticks  int  // length of the run of backticks that is open; 0 for none
	double bool // a straight quotation mark is open
	curly  int  // opening curly marks without their closing ones
}

func (s span) isUnclosed() bool { return s.ticks > 0 || s.double || s.curly > 0 }

// readLine takes one line of the paragraph.
func (s *span) readLine(text string) {
	for i := 0; i < len(text); {
		switch {
		case text[i] == '`':
			n := 1
			for i+n < len(text) && text[i+n] == '`' {
				n++
			}
			s.readBackticks(n, i > 0 && text[i-1] == '\\')
			i += n
			continue
		case s.ticks > 0:
		case text[i] == '"':
			s.double = !s.double
		case text[i] == 0xe2 && strings.HasPrefix(text[i:], "“"):
			s.curly++
		case text[i] == 0xe2 && strings.HasPrefix(text[i:], "”") && s.curly > 0:
			s.curly--
		}
		i++
	}
}

// readBackticks takes a run of n backticks; the first of an escaped run is text.
func (s *span) readBackticks(n int, escaped bool) {
	switch {
	case s.ticks == n:
		s.ticks = 0
	case s.ticks == 0 && escaped:
		s.ticks = n - 1
	case s.ticks == 0:
		s.ticks = n
	}
}

// This file cuts the echo of a prompt out of a plain-text agent's output. The
// rules are:
//   - Lines are compared without terminal codes, quote signs and the white
//     space around them; blank lines do not matter.
//   - Three or more lines that follow one another in the prompt too are an
//     echo, wherever they stand. So is the whole of a shorter prompt.
//   - A line with a signal that the prompt has too is an echo when one of its
//     neighbours is the prompt's as well, or when the words around it are (an
//     echo may be wrapped at other places).
//   - What is left is the agent's own, unchanged to the byte.

const (
	minEcho     = 3 // lines
	wordsAround = 8 // the window in words in which an echo is recognised
	maxQuoting  = 8 // quote signs that are cut off a line
)

// StripEcho cuts the echo of the prompt out of an output in plain text. It
// leans to cutting: a signal that stands in the prompt counts only where the
// output has it outside of any echo, so an agent's own line behind the echo
// does. Without an echo the output comes back as it is.
func StripEcho(output, prompt string) string {
	want := splitLines(prompt)
	if len(want) == 0 || output == "" {
		return output
	}
	e := newPromptEcho(want)
	got := splitLines(output)
	cut := e.markRuns(got)
	e.markSignals(got, cut)
	return removeLines(output, got, cut)
}

// textLine is one line that is not blank.
type textLine struct {
	start, end int    // byte offsets, the line break included
	text       string // as it is compared
}

func (l textLine) containsTag() bool {
	_, ok := findFirstTag(l.text, 0)
	return ok
}

// echo knows what a prompt looks like.
type echo struct {
	want  []textLine
	lines map[string]bool    // that have tags
	pairs map[[2]string]bool // of lines that follow one another
	words map[string]bool    // windows of words that touch a tagged line
}

func newPromptEcho(want []textLine) *echo {
	e := &echo{want: want, lines: map[string]bool{}, pairs: map[[2]string]bool{}, words: map[string]bool{}}
	for i, line := range want {
		if i > 0 {
			e.pairs[[2]string{want[i-1].text, line.text}] = true
		}
		if line.containsTag() {
			e.lines[line.text] = true
			for _, window := range windowsAround(want, i) {
				e.words[window] = true
			}
		}
	}
	return e
}

// isPairOfPrompt reports whether line i of a text and the one behind it follow one another in the
// prompt too.
func (e *echo) isPairOfPrompt(got []textLine, i int) bool {
	return i >= 0 && i+1 < len(got) && e.pairs[[2]string{got[i].text, got[i+1].text}]
}

// markRuns marks the lines that are an echo because of the lines around them.
func (e *echo) markRuns(got []textLine) []bool {
	cut := make([]bool, len(got))
	once := false
	for i := 0; i < len(got); {
		n := 1
		for e.isPairOfPrompt(got, i+n-1) {
			n++
		}
		// A prompt of one line is its own echo once; the agent may say the
		// same behind it.
		single := len(e.want) == 1 && !once && got[i].text == e.want[0].text
		once = once || single
		whole := n > 1 && n >= len(e.want)
		if n >= minEcho || whole || single {
			for k := range n {
				cut[i+k] = true
			}
		}
		i += n
	}
	return cut
}

// markSignals marks the lines with a signal that the prompt has too and that
// stand among the prompt's lines or words.
func (e *echo) markSignals(got []textLine, cut []bool) {
	for i, line := range got {
		if cut[i] || !e.lines[line.text] {
			continue
		}
		cut[i] = e.isPairOfPrompt(got, i-1) || e.isPairOfPrompt(got, i) ||
			slices.ContainsFunc(windowsAround(got, i), func(window string) bool { return e.words[window] })
	}
}

// windowsAround are the runs of wordsAround words that have a word of line i.
func windowsAround(lines []textLine, i int) []string {
	words := strings.Fields(lines[i].text)
	for k, room := i-1, wordsAround-1; k >= 0 && room > 0; k-- {
		before := strings.Fields(lines[k].text)
		before = before[max(0, len(before)-room):]
		room -= len(before)
		words = slices.Concat(before, words)
	}
	for k, room := i+1, wordsAround-1; k < len(lines) && room > 0; k++ {
		behind := strings.Fields(lines[k].text)
		behind = behind[:min(len(behind), room)]
		room -= len(behind)
		words = append(words, behind...)
	}
	var all []string
	for n := wordsAround; n <= len(words); n++ {
		all = append(all, strings.Join(words[n-wordsAround:n], " "))
	}
	return all
}

// removeLines returns the text without the lines that are cut. Blank lines
// between two of them go too.
func removeLines(text string, lines []textLine, cut []bool) string {
	var b strings.Builder
	kept := 0
	for i := 0; i < len(lines); i++ {
		if !cut[i] {
			continue
		}
		b.WriteString(text[kept:lines[i].start])
		for i+1 < len(lines) && cut[i+1] {
			i++
		}
		kept = lines[i].end
	}
	if kept == 0 {
		return text
	}
	b.WriteString(text[kept:])
	return b.String()
}

// splitLines finds the lines that are not blank.
func splitLines(s string) []textLine {
	var lines []textLine
	start := 0
	for line := range strings.Lines(s) {
		end := start + len(line)
		if text := comparedLine(line); text != "" {
			lines = append(lines, textLine{start, end, text})
		}
		start = end
	}
	return lines
}

// comparedLine makes a line comparable: without blanks, terminal codes and marks of quotations.
func comparedLine(line string) string {
	line = strings.TrimSpace(carryOutCodes(line))
	for range maxQuoting {
		cut := false
		for _, sign := range [...]string{">", "│", "┃", "|"} {
			if rest, ok := strings.CutPrefix(line, sign); ok {
				line, cut = strings.TrimSpace(rest), true
			}
		}
		if !cut {
			break
		}
	}
	return line
}
