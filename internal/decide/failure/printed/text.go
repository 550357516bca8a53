// Package printed makes what a program printed ready to be read line by line: bounded, without
// control characters, out of the streams of JSON that some programs print, and without what CI
// systems put before each line.
package printed

import (
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// What is examined of an output. The cause of a failure is near its end, what
// was asked for near its start.
const (
	HeadMax = 64 << 10
	TailMax = 192 << 10
	lineMax = 1200 // bytes of one line that an expression is shown
)

// Text is an output made ready: bounded, without ANSI codes, with "\n" as the
// only end of line.
type Text struct {
	All   string
	Lines []textLine
	Short bool // its middle is missing
}

// textLine is a line as offsets in the text.
type textLine struct {
	start int // of the line
	Own   int // of what the program printed, behind what a CI system put there
	End   int // of the line, without "\n"
}

// Make bounds and cleans output.
func Make(output string) Text {
	return Split(cleanOutput(Bound(output)))
}

// Split makes lines of an output that is bounded and cleaned.
func Split(s string) Text {
	t := Text{All: s}
	start, owners := 0, ownersIn(s)
	timed, blanks := countTimestamps(s)
	seconds := countsSeconds(s)
	node := strings.Contains(s, "  failureType: '") // what a file of tests printed is a comment in node's TAP
	for l := range strings.SplitSeq(s, "\n") {
		own := 0
		if timed {
			own = len(clock().FindString(l[:min(len(l), 80)]))
			own += len(l[own:]) - len(strings.TrimPrefix(l[own:], strings.Repeat(" ", blanks)))
		}
		if seconds {
			own += len(second().FindString(l[own:]))
		}
		own += PrefixOf(l[own:])
		own += owners.prefixLength(l[own:])
		if node && !tapCount().MatchString(l[own:]) {
			own = len(l) - len(strings.TrimPrefix(l[own:], "# "))
			own += PrefixOf(l[own:])
		}
		t.Lines = append(t.Lines, textLine{start, start + own, start + len(l)})
		start += len(l) + 1
	}
	return t
}

// second is the time since the start, which BuildKit puts before the lines of a step that failed.
var second = lazy.Regexp(`^\d+\.\d{2,3}(?: |$)`)

// countsSeconds reports whether three lines that follow each other begin with such a time.
func countsSeconds(s string) bool {
	timed := 0
	for l := range strings.SplitSeq(s, "\n") {
		if !second().MatchString(l) {
			timed = 0
		} else if timed++; timed == 3 {
			return true
		}
	}
	return false
}

// tapCount matches node's own totals and headings, which are comments.
var tapCount = lazy.Regexp(`^# (?:Subtest: |(?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) )`)

// LineCount returns the number of lines.
func (t Text) LineCount() int { return len(t.Lines) }

// LineAt returns line i without its end of line, without what CI systems put before each line, and
// cut at lineMax bytes.
func (t Text) LineAt(i int) string {
	l := t.Lines[i]
	return words.Cut(t.All[l.Own:l.End], lineMax)
}

// OwnerOf returns the program whose line i is, as a runner of several shows it before the line; ""
// for none.
func (t Text) OwnerOf(i int) string {
	before := t.All[t.Lines[i].start:t.Lines[i].Own]
	if strings.HasSuffix(before, "| ") || strings.HasSuffix(before, "] ") || strings.HasSuffix(before, ": ") {
		return before
	}
	return ""
}

// LineNumberOf returns the number of the line that holds an offset, given an earlier
// line.
func (t Text) LineNumberOf(line, offset int) int {
	for line+1 < len(t.Lines) && t.Lines[line+1].start <= offset {
		line++
	}
	return line
}

// Bound keeps the head and the tail of s, each cut at an end of line where there is one near.
func Bound(s string) string {
	if len(s) <= HeadMax+TailMax {
		return s
	}
	head, tail := s[:HeadMax], s[len(s)-TailMax:]
	if n := strings.LastIndexByte(head, '\n'); n > HeadMax/2 {
		head = head[:n]
	}
	if n := strings.IndexByte(tail, '\n'); n >= 0 && n < TailMax/2 {
		tail = tail[n+1:]
	}
	return head + "\n" + tail
}

// ANSI escape sequences, also unfinished ones, and other control characters.
var control = lazy.Regexp(`\x1b\[[^\x00-\x1f\x40-\x7e]*[\x40-\x7e]?` + // up to a final byte
	`|\x1b[\]P^_][^\x07\x1b\n]*(?:\x07|\x1b.?)?` + // links, titles: up to BEL or ESC \
	`|\x1b[()#% ].?|\x1b[\x21-\x7e]?` +
	`|\r\n?|[\x00-\x08\x0b-\x1f\x7f]`)

// cleanOutput removes ANSI escape sequences and other control characters, and makes "\r\n" and "\r"
// ends of line.
func cleanOutput(s string) string {
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

// A console cuts at its width, which is between these.
const narrowest, widest = 72, 200

// joinCutLines joins lines that a console has cut at its width, in the middle of words.
func joinCutLines(s string) string {
	lines, width := strings.Split(s, "\n"), 0
	for _, l := range lines {
		width = max(width, utf8.RuneCountInString(l))
	}
	if width < narrowest || width > widest {
		return s
	}
	cut, shorter, before := 0, 0, map[string]bool{} // a line that comes again is no other one that fills the width
	for i, l := range lines[:len(lines)-1] {
		next := strings.TrimLeft(lines[i+1], " ")
		switch n := utf8.RuneCountInString(l); {
		case n == width && next != "" && words.IsWord(l[len(l)-1]) && words.IsWord(next[0]) && !before[l]:
			cut, before[l] = cut+1, true
		case n > width-8 && n < width: // cut between words
			shorter++
		}
	}
	if cut < 3 || shorter > cut/2 {
		return s
	}
	var b strings.Builder
	joins := false
	for i, l := range lines {
		if joins { // without the indentation that the cut line had
			b.WriteString(l[min(words.Indent(lines[i-1]), words.Indent(l)):])
		} else {
			b.WriteString(l)
		}
		last := i+1 == len(lines)
		full := utf8.RuneCountInString(l) == width && !strings.ContainsAny(l[len(l)-1:], "=-_*#~")
		joins = full && !last && lines[i+1] != ""
		if !joins && !last {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Shorten shortens s to at most n bytes and marks the cut with "…".
func Shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if n < len("…") {
		return ""
	}
	return strings.TrimRight(words.Cut(s, n-len("…")), " \t") + "…"
}

// OfRuntime is a call of a language's own libraries, whose file looks like one of the project.
var OfRuntime = lazy.Regexp(`^\s*(?:at )?(?:java|javax|jdk|sun|kotlin|scala|clojure|groovy|System|Microsoft` +
	`|org\.(?:junit|opentest4j|assertj|hamcrest|scalatest|gradle|apache\.maven))\.` +
	`|at (?:java\.base/|jdk\.)|org\.(?:junit|opentest4j|assertj|hamcrest)\.|^\s*\((?:stdlib|elixir|erts|kernel` +
	`|mix|ex_unit|compiler) [\d.]+\) |^\s*@ (?:Base|Core)\b` +
	`|^(?:Raised|Called|Re-raised) (?:at|from) (?:Stdlib|Alcotest)`)
