package agent

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/signal"
)

// Tail keeps the end of what was said, whole lines if it can, in at most
// about twice its limit of memory. [NewTail] makes one.
//
// What is cut off must not change the meaning of what stays: a signal counts
// only alone on its line and outside of code fences. So the cut is at the end
// of a line, or marked by "…", and a fence that was open is opened again.
type Tail struct {
	limit int
	buf   []byte
	began bool   // something was added; the next text starts a new line
	fence string // the marker of the code fence that is open at the start of buf
}

// NewTail returns an empty tail that keeps limit bytes.
func NewTail(limit int) *Tail { return &Tail{limit: max(limit, 1)} }

// cutMark stands for the start of a line that was cut off.
const cutMark = "…"

// Add appends one text on a line of its own.
func (t *Tail) Add(s string) {
	if t.began {
		t.buf = append(t.buf, '\n')
	}
	t.began = true
	t.Join(s)
}

// Join appends s to the text that was added last, on the same line: a message
// that arrives in pieces is one Add and then Joins.
func (t *Tail) Join(s string) {
	t.began = true
	for len(s) > 0 {
		n := min(len(s), t.limit/4+1)
		t.buf = append(t.buf, s[:n]...)
		s = s[n:]
		if len(t.buf) > t.limit+t.limit/2 {
			t.shrink()
		}
	}
}

// Reset forgets everything.
func (t *Tail) Reset() { t.buf, t.began, t.fence = t.buf[:0], false, "" }

// Text returns the last limit bytes, by lines, as valid UTF-8.
func (t *Tail) Text() string {
	if len(t.buf) > t.limit {
		t.shrink()
	}
	s := strings.ToValidUTF8(string(t.buf), "\uFFFD")
	if t.fence != "" {
		return t.fence + "\n" + s
	}
	return s
}

// shrink drops lines from the start until the limit holds.
func (t *Tail) shrink() {
	cut := max(len(t.buf)-t.limit, len(cutMark)) // room for the mark
	for cut < len(t.buf) && !utf8.RuneStart(t.buf[cut]) {
		cut++
	}
	mark := ""
	if t.buf[cut-1] != '\n' {
		if end := bytes.IndexByte(t.buf[cut:], '\n'); end >= 0 {
			cut += end + 1
		} else {
			mark = cutMark
		}
	}
	t.fence = signal.OpenFence(t.fence, string(t.buf[:cut]))
	n := copy(t.buf[len(mark):], t.buf[cut:])
	copy(t.buf, mark)
	t.buf = t.buf[:len(mark)+n]
}

// Clip returns the first n bytes of s or a little less, without half a rune.
func Clip(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
