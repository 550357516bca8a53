package agent

import (
	"strings"
	"unicode/utf8"
)

// Tail keeps the end of what was said, whole lines if it can, in at most
// about three times its limit of memory. [NewTail] makes one.
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
	for len(s) > 0 {
		n := min(len(s), t.limit)
		t.buf = append(t.buf, s[:n]...)
		s = s[n:]
		if len(t.buf) > 2*t.limit {
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
	cut := len(t.buf) - t.limit
	for cut < len(t.buf) && !utf8.RuneStart(t.buf[cut]) {
		cut++
	}
	dropped, kept := string(t.buf[:cut]), string(t.buf[cut:])
	if !strings.HasSuffix(dropped, "\n") {
		head, after, found := strings.Cut(kept, "\n")
		if found {
			dropped, kept = dropped+head, after
		} else {
			kept = cutMark + kept
		}
	}
	t.fence = fenceAfter(t.fence, dropped)
	t.buf = append(t.buf[:0], kept...)
}

// fenceAfter says which code fence is open after text, when open was open
// before it. A fence is closed by a line of its own marker only.
func fenceAfter(open, text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		marker := fenceMarker(line)
		switch {
		case marker == "":
		case open == "":
			open = marker
		case marker[0] == open[0] && len(marker) >= len(open) && marker == line:
			open = ""
		}
	}
	return open
}

func fenceMarker(line string) string {
	for _, c := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, c)
		if n := len(line) - len(rest); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

// validCut returns the first n bytes or a little less, without half a rune.
func validCut(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
