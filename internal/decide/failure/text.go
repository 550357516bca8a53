package failure

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// What is examined of an output. The cause of a failure is near its end, what
// was asked for near its start.
const (
	headMax = 64 << 10
	tailMax = 192 << 10
	lineMax = 1200 // bytes of one line that an expression is shown
)

// text is an output made ready: bounded, without ANSI codes, with "\n" as the
// only end of line.
type text struct {
	s     string
	lines []textLine
	short bool // its middle is missing
}

// textLine is a line as offsets in the text.
type textLine struct {
	start int // of the line
	own   int // of what the program printed, behind what a CI system put there
	end   int // of the line, without "\n"
}

// newText bounds and cleans output.
func newText(output string) text {
	return split(clean(bound(output)))
}

func split(s string) text {
	t := text{s: s}
	start, owners := 0, ownersIn(s)
	for l := range strings.SplitSeq(s, "\n") {
		own := prefixOf(l)
		own += owners.before(l[own:])
		t.lines = append(t.lines, textLine{start, start + own, start + len(l)})
		start += len(l) + 1
	}
	return t
}

func (t text) len() int { return len(t.lines) }

// line returns line i without its end of line, without what CI systems put
// before each line, and cut at lineMax bytes.
func (t text) line(i int) string {
	l := t.lines[i]
	return words.Cut(t.s[l.own:l.end], lineMax)
}

// owner is the program of several whose line i is, as a runner shows it before the line.
func (t text) owner(i int) string {
	before := t.s[t.lines[i].start:t.lines[i].own]
	if strings.HasSuffix(before, "| ") || strings.HasSuffix(before, "] ") || strings.HasSuffix(before, ": ") {
		return before
	}
	return ""
}

// lineAt returns the number of the line that holds an offset, given an earlier
// line.
func (t text) lineAt(line, offset int) int {
	for line+1 < len(t.lines) && t.lines[line+1].start <= offset {
		line++
	}
	return line
}

// bound keeps the head and the tail of s, each cut at an end of line where
// there is one near.
func bound(s string) string {
	if len(s) <= headMax+tailMax {
		return s
	}
	head, tail := s[:headMax], s[len(s)-tailMax:]
	if n := strings.LastIndexByte(head, '\n'); n > headMax/2 {
		head = head[:n]
	}
	if n := strings.IndexByte(tail, '\n'); n >= 0 && n < tailMax/2 {
		tail = tail[n+1:]
	}
	return head + "\n" + tail
}

// ANSI escape sequences, also unfinished ones, and other control characters.
var control = lazy.Regexp(`\x1b\[[^\x00-\x1f\x40-\x7e]*[\x40-\x7e]?` + // up to a final byte
	`|\x1b[\]P^_][^\x07\x1b\n]*(?:\x07|\x1b.?)?` + // links, titles: up to BEL or ESC \
	`|\x1b[()#% ].?|\x1b[\x21-\x7e]?` +
	`|\r\n?|[\x00-\x08\x0b-\x1f\x7f]`)

// clean removes ANSI escape sequences and other control characters, and makes
// "\r\n" and "\r" ends of line.
func clean(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }) {
		return s
	}
	return control().ReplaceAllStringFunc(s, func(m string) string {
		if m[0] == '\r' {
			return "\n"
		}
		return ""
	})
}

// ellipsis shortens s to at most n bytes and says so with "…".
func ellipsis(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if n < len("…") {
		return ""
	}
	return strings.TrimRight(words.Cut(s, n-len("…")), " \t") + "…"
}
