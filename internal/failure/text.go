package failure

import (
	"strings"
	"unicode/utf8"
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
	s      string
	starts []int32 // offset of each line
	own    []int32 // offset in each line behind what a CI system put there; nil where all are 0
}

// newText bounds and cleans output.
func newText(output string) text {
	return split(clean(bound(output)))
}

func split(s string) text {
	t := text{s: s, starts: make([]int32, 0, 1+strings.Count(s, "\n"))}
	for at := 0; ; {
		n := strings.IndexByte(s[at:], '\n')
		end := at + n
		if n < 0 {
			end = len(s)
		}
		if p := prefixOf(s[at:end]); p > 0 {
			if t.own == nil {
				t.own = make([]int32, cap(t.starts))
			}
			t.own[len(t.starts)] = int32(p)
		}
		t.starts = append(t.starts, int32(at))
		if n < 0 {
			return t
		}
		at = end + 1
	}
}

func (t text) len() int { return len(t.starts) }

// raw returns line i without its end of line.
func (t text) raw(i int) string {
	end := len(t.s)
	if i+1 < len(t.starts) {
		end = int(t.starts[i+1]) - 1
	}
	return t.s[t.starts[i]:end]
}

// line returns line i without its end of line, without what CI systems put
// before each line, and cut at lineMax bytes.
func (t text) line(i int) string {
	return cut(t.raw(i)[t.ownAt(i):], lineMax)
}

func (t text) ownAt(i int) int32 {
	if t.own == nil {
		return 0
	}
	return t.own[i]
}

// lineAfter returns the number of the line that holds offset at, and where it
// ends, given an earlier line.
func (t text) lineAfter(line int32, at int) (n int32, end int) {
	n = line
	for int(n)+1 < len(t.starts) && int(t.starts[n+1]) <= at {
		n++
	}
	if int(n)+1 < len(t.starts) {
		return n, int(t.starts[n+1])
	}
	return n, len(t.s)
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

// clean removes ANSI escape sequences and other control characters, and makes
// "\r\n" and "\r" ends of line. A text without them is returned as it is.
func clean(s string) string {
	i := firstControl(s)
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(s[:i])
	for i < len(s) {
		switch c := s[i]; {
		case c == 0x1b:
			i += escape(s[i:])
		case c == '\r':
			if i+1 >= len(s) || s[i+1] != '\n' {
				b.WriteByte('\n')
			}
			i++
		case c < ' ' && c != '\n' && c != '\t' || c == 0x7f:
			i++
		default:
			n := firstControl(s[i:])
			if n == 0 { // "\n" or "\t"
				n = 1
			}
			b.WriteString(s[i : i+n])
			i += n
		}
	}
	return b.String()
}

// firstControl returns the offset of the first byte that clean has to look
// at, or len(s).
func firstControl(s string) int {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return i
		}
	}
	return len(s)
}

// escape returns the length of the escape sequence at the start of s, which
// begins with ESC. An unfinished one ends with the text or after 256 bytes,
// none within a rune.
func escape(s string) int {
	if len(s) > 1 && s[1] >= utf8.RuneSelf {
		return 1 // ESC alone
	}
	n := sequence(s)
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n++
	}
	return n
}

func sequence(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	limit := min(len(s), 256)
	switch s[1] {
	case '[': // CSI: up to a final byte
		for i := 2; i < limit; i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 {
				return i
			}
		}
		return limit
	case ']', 'P', '^', '_': // OSC and other strings: up to BEL or ESC \
		for i := 2; i < limit; i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b {
				return min(i+2, limit)
			}
			if s[i] == '\n' {
				return i
			}
		}
		return limit
	case '\n':
		return 1
	case '(', ')', '#', '%', ' ':
		return min(3, len(s))
	}
	return 2
}

// cut shortens s to at most n bytes, at a rune's edge.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// ellipsis shortens s to at most n bytes and says so with "…".
func ellipsis(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if n < len("…") {
		return ""
	}
	return strings.TrimRight(cut(s, n-len("…")), " \t") + "…"
}
