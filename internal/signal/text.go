package signal

import (
	"strings"
	"unicode/utf8"
)

// maxFinal is the size of a plain-text agent's final message, in bytes.
const maxFinal = 1 << 20

// c1Lead is the first byte of an 8-bit control character in UTF-8.
const c1Lead = 0xc2

// FinalOfText makes the final message of an agent that prints plain text.
// Such an output does not say where its last message begins, so the whole
// output is taken: a BLOCKED early in it still beats a COMPLETE at its end.
//
// Terminal codes (CSI, OSC and other escape sequences, bells) are dropped.
// Carriage returns and backspaces are carried out as a progress display means
// them: what stands behind the last carriage return of a line replaces it.
// All other bytes stay as they are.
//
// Of more than 1 MiB the end is kept, from the start of a line; should one
// line be longer, it is cut and marked with an ellipsis. So a cut never makes
// a line of its own out of the end of a sentence.
func FinalOfText(output string) string {
	return lastPart(plain(output), maxFinal)
}

// lastPart keeps at most limit bytes from the end.
func lastPart(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	// The byte before the part tells whether it starts a line.
	part := s[len(s)-limit-1:]
	if i := strings.IndexByte(part, '\n'); i >= 0 && i+1 < len(part) {
		return part[i+1:]
	}
	const mark = "… "
	part = s[len(s)-limit+len(mark):]
	for part != "" && !utf8.RuneStart(part[0]) {
		part = part[1:]
	}
	return mark + part
}

// plain carries out or drops what is meant for a terminal.
func plain(s string) string {
	if !strings.ContainsAny(s, "\x1b\r\b\a") && strings.IndexByte(s, c1Lead) < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	start := 0        // of the line, in out
	returned := false // a carriage return waits for what replaces the line
	for i := 0; i < len(s); {
		if n := escape(s[i:]); n > 0 {
			i += n
			continue
		}
		c := s[i]
		i++
		switch c {
		case '\a':
		case '\b':
			if n := len(out); n > start {
				_, size := utf8.DecodeLastRune(out[start:])
				out = out[:n-size]
			}
		case '\r':
			returned = true
		case '\n':
			out = append(out, c)
			start, returned = len(out), false
		default:
			if returned {
				out, returned = out[:start], false
			}
			out = append(out, c)
		}
	}
	return string(out)
}

// escape returns the length of the terminal sequence that s starts with, 0
// when there is none.
func escape(s string) int {
	switch {
	case s[0] == 0x1b && len(s) == 1:
		return 1
	case s[0] == 0x1b:
		return escapeKind(s, 2, s[1])
	case s[0] == c1Lead && len(s) > 1 && s[1] >= 0x80 && s[1] <= 0x9f && s[1] != 0x85:
		return escapeKind(s, 2, s[1]-0x40) // the same as one 8-bit character
	}
	return 0
}

// escapeKind measures a sequence by its second character; its parameters
// start at s[n].
func escapeKind(s string, n int, kind byte) int {
	switch {
	case kind == '[':
		return control(s, n)
	case kind == ']' || kind == 'P' || kind == 'X' || kind == '^' || kind == '_':
		return text(s, n)
	case kind >= 0x20 && kind <= 0x2f: // e.g. the choice of a character set
		for n < len(s) && s[n] >= 0x20 && s[n] <= 0x2f {
			n++
		}
		if n < len(s) && s[n] >= 0x30 && s[n] <= 0x7e {
			n++
		}
		return n
	case kind >= 0x30 && kind <= 0x7e:
		return n
	}
	return n - 1 // the escape alone; what follows is text
}

// control measures a CSI sequence. One that breaks off ends where it does.
func control(s string, n int) int {
	for n < len(s) && s[n] >= 0x20 && s[n] <= 0x3f {
		n++
	}
	if n < len(s) && s[n] >= 0x40 && s[n] <= 0x7e {
		n++
	}
	return n
}

// text measures a sequence with a text, such as a window's title. A line
// break ends one that was never closed, so that it cannot swallow a message.
func text(s string, n int) int {
	for ; n < len(s); n++ {
		switch {
		case s[n] == '\a':
			return n + 1
		case s[n] == '\n':
			return n
		case s[n] == 0x1b && n+1 < len(s) && s[n+1] == '\\':
			return n + 2
		case s[n] == 0x1b:
			return n
		case s[n] == c1Lead && n+1 < len(s) && s[n+1] == 0x9c:
			return n + 2
		}
	}
	return n
}
