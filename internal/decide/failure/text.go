package failure

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
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
	return splitText(cleanOutput(boundOutput(output)))
}

func splitText(s string) text {
	t := text{s: s}
	start, owners := 0, ownersIn(s)
	timed, blanks := countTimestamps(s)
	node := strings.Contains(s, "  failureType: '") // what a file of tests printed is a comment in node's TAP
	for l := range strings.SplitSeq(s, "\n") {
		own := 0
		if timed {
			own = len(clock().FindString(l[:min(len(l), 80)]))
			own += len(l[own:]) - len(strings.TrimPrefix(l[own:], strings.Repeat(" ", blanks)))
		}
		own += prefixOf(l[own:])
		own += owners.prefixLength(l[own:])
		if node && !tapCount().MatchString(l[own:]) {
			own = len(l) - len(strings.TrimPrefix(l[own:], "# "))
			own += prefixOf(l[own:])
		}
		t.lines = append(t.lines, textLine{start, start + own, start + len(l)})
		start += len(l) + 1
	}
	return t
}

// tapCount matches node's own totals and headings, which are comments.
var tapCount = lazy.Regexp(`^# (?:Subtest: |(?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) )`)

func (t text) lineCount() int { return len(t.lines) }

// lineAt returns line i without its end of line, without what CI systems put before each line, and
// cut at lineMax bytes.
func (t text) lineAt(i int) string {
	l := t.lines[i]
	return words.Cut(t.s[l.own:l.end], lineMax)
}

// ownerOf returns the program whose line i is, as a runner of several shows it before the line; ""
// for none.
func (t text) ownerOf(i int) string {
	before := t.s[t.lines[i].start:t.lines[i].own]
	if strings.HasSuffix(before, "| ") || strings.HasSuffix(before, "] ") || strings.HasSuffix(before, ": ") {
		return before
	}
	return ""
}

// lineNumberOf returns the number of the line that holds an offset, given an earlier
// line.
func (t text) lineNumberOf(line, offset int) int {
	for line+1 < len(t.lines) && t.lines[line+1].start <= offset {
		line++
	}
	return line
}

// boundOutput keeps the head and the tail of s, each cut at an end of line where there is one near.
func boundOutput(s string) string {
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

// shortenText shortens s to at most n bytes and marks the cut with "…".
func shortenText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if n < len("…") {
		return ""
	}
	return strings.TrimRight(words.Cut(s, n-len("…")), " \t") + "…"
}

// block follows output over several lines: the fields of an object that an error prints behind
// itself, and the source that Python shows below a frame.
type block struct {
	object bool
	frame  bool
	advice bool
	source bool
}

// adviceHead stands above advice.
var adviceHead = lazy.Regexp(`^\W*(?i:tips?|(?:configuration )?hints?|help|next steps?|how to fix(?: it| this)?|see also|references|suggestions?|possible (?:reasons|causes|fixes))(?: \(\d+\))?\W*$`)

// includesLine reports whether l belongs to such a block, or to none of its own.
func (b *block) includesLine(l, said string) bool {
	indented := l != said && said != ""
	switch {
	case said == "Failure/Error:": // rspec shows the source below
		b.source = true
		return true
	case b.source && indented:
		return true
	case b.frame && strings.HasPrefix(l, "    "):
		b.frame = false
		return true
	case b.object && (strings.HasPrefix(said, "[cause]: ") || exception().MatchString(said)):
		return false
	case b.object && indented, b.object && strings.Trim(said, "}]),") == "":
		b.object = indented || said == ""
		return true
	}
	b.source = false
	if b.advice = said != "" && (b.advice || adviceHead().MatchString(said)); b.advice {
		return true
	}
	b.frame = strings.HasPrefix(said, `File "`) && indented
	stack := strings.HasPrefix(said, "at ")
	opens := stack || exception().MatchString(l) || strings.HasPrefix(said, "[")
	b.object = opens && strings.HasSuffix(said, " {")
	if b.frame {
		return true
	}
	return b.object && stack
}

// This file reads the forms of lines that many programs share. They count only
// where no rule knows a word of what was said.

// formLines bounds the lines at the end that are looked at.
const formLines = 400

// byForm reads the last line that has a form which says what went wrong.
func byForm(h *hits) verdict {
	v := verdict{class: Unknown, line: -1}
	seen := 0
	for i := h.t.lineCount() - 1; i >= 0 && seen < formLines; i-- {
		l := h.t.lineAt(i)
		if l == "" || isWarning(l) {
			continue
		}
		seen++
		c, weight, f := classOfForm(l)
		if weight > v.weight {
			v = verdict{class: c, weight: weight, flags: f, line: i}
		}
	}
	if p := readProblems(h.t); v.class == Unknown && p.under > 0 {
		return verdict{class: Lint, weight: 40, line: p.under}
	}
	return v
}

// classOfForm returns the class that the form of a line suggests, with its weight; 0 for none.
func classOfForm(l string) (Class, int, flag) {
	if at, ok := places.In(l); ok && !places.IsForeign(at.File) && isRefusal(l, at) {
		// A place and a message: somebody refuses the code there.
		before := strings.TrimSpace(l[:at.From])
		switch code := isCompiledFile(at.File) || extOf(at.File) == "go" || strings.HasPrefix(at.Rest, ": error:"); {
		case code && !strings.HasPrefix(before, "%Warn") && !strings.Contains(at.Rest, "should "):
			return CompileError, 40, 0
		default:
			return Lint, 40, 0
		}
	}
	if strings.HasPrefix(l, "(") && strings.Contains(l[:min(len(l), 60)], "NotFound) ") { // a cloud's code for a name
		return Validation, 35, 0
	}
	// git's way to give up
	if strings.HasPrefix(l, "fatal: ") && len(l) > 8 && (words.IsLower(words.Lower(l[7])) || l[7] == '\'') {
		return GitState, 35, 0
	}
	if died().MatchString(l) { // Perl's way to give up
		return Crash, 40, 0
	}
	_, rest, ok := strings.Cut(l, ": ")
	if !ok {
		return Unknown, 0, 0
	}
	for _, end := range []string{
		"No such file or directory", "No such file", "Not a directory", "Is a directory", "File exists",
	} {
		if strings.HasSuffix(rest, end) { // a program names an input that is not as it needs it
			return Validation, 20, 0
		}
	}
	if line, ok := strings.CutPrefix(rest, "line "); ok { // a shell's "${NAME:?message}"
		_, said, _ := strings.Cut(line, ": ")
		if variable, _, ok := strings.Cut(said, ": "); ok && isVariableName(variable) {
			return Validation, 20, setup
		}
	}
	return Unknown, 0, 0
}

var died = lazy.Regexp(`^[^:]* at [^ ]+\.(?:pl|pm|t|cgi) line \d+\.$`)

// isRefusal reports whether a line is a place and a message about it, or a place that a message
// stands around.
func isRefusal(l string, at places.Place) bool {
	before := strings.TrimSpace(l[:at.From])
	if at.Rest == "" {
		head := before == "In" || strings.HasSuffix(before, "┌─")
		return at.Col > 0 && (head || l == before+l[at.From:] && before == "")
	}
	vague := at.Col == 0 && !strings.HasPrefix(at.Rest, ": error:")
	if at.Rest[0] != ':' || len(at.Rest) < 5 || vague {
		return false
	}
	return before == "" || strings.HasPrefix(before, "%") || strings.EqualFold(before, "[error]") ||
		strings.EqualFold(before, "error:")
}

// isVariableName reports whether s is the name of a variable of the environment: capitals, digits
// and "_".
func isVariableName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !words.IsUpper(c) && c != '_' && (i == 0 || !words.IsDigit(c)) {
			return false
		}
	}
	return len(s) > 1
}

// projectFrame finds the place of the project in a stack trace, and its line: the last call in a
// Python trace, the first elsewhere. A place in a library is better than none.
func projectFrame(t text) (best places.Place, said string) {
	distant := false // best lies in a library
	ruby, after, url := strings.Contains(t.s, ":in "), strings.Contains(t.s, "from "), strings.Contains(t.s, "file:///")
	for i := range t.lineCount() {
		l := t.lineAt(i)
		if l == "" {
			continue
		}
		below, linked := after && strings.Contains(l, "from "), url && strings.Contains(l, "file:///")
		inRuby := ruby && strings.Contains(l, ":in ")
		tells := below || linked
		if words.IsWord(l[0]) && !tells && !inRuby {
			continue
		}
		python := strings.Contains(l, `File "`)
		numbered := l[0] == '#' && len(l) > 1 && words.IsDigit(l[1]) // Dart
		tells = tells || python || numbered || l[0] == '\t' || l[0] == '/' ||
			strings.HasPrefix(strings.TrimLeft(l, " |#"), "at ") ||
			ruby && words.Has(l, ":in `", ":in '")
		if !tells {
			continue
		}
		p, ok := places.In(l)
		if !ok {
			continue
		}
		if said != "" && !distant && !python && !strings.HasSuffix(p.File, ".nim") {
			continue // the first of the project stays
		}
		if away := places.IsForeign(p.File) || ofRuntime().MatchString(l); said == "" || !away {
			best, said, distant = p, l, away
		}
	}
	return best, said
}

// ofRuntime is a call of a language's own libraries, whose file looks like one of the project.
var ofRuntime = lazy.Regexp(`^\s*(?:at )?(?:java|javax|jdk|sun|kotlin|scala|clojure|groovy|System|Microsoft|org\.(?:junit|opentest4j|assertj|hamcrest|scalatest|gradle|apache\.maven))\.` +
	`|at (?:java\.base/|jdk\.)|org\.(?:junit|opentest4j|assertj|hamcrest)\.|^\s*\((?:stdlib|elixir|erts|kernel|mix|ex_unit|compiler) [\d.]+\) |^\s*@ (?:Base|Core)\b|^(?:Raised|Called|Re-raised) (?:at|from) Stdlib`)
