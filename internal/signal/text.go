package signal

import (
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/lazy"
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

// codes are terminal sequences: CSI, those with a text such as a window's title,
// those that choose a character set, and single ones, each also as one 8-bit
// character. One that breaks off ends where it does; a line break ends a text.
var codes = lazy.Regexp(`(?:\x1b\[|\x{9b})[\x20-\x3f]*[\x40-\x7e]?` +
	`|(?:\x1b[\]PX^_]|[\x{9d}\x{90}\x{98}\x{9e}\x{9f}])[^\n\a\x1b\x{9c}]*(?:\a|\x1b\\|\x{9c})?` +
	`|\x1b[\x20-\x2f]+[0-~]?` +
	`|\x1b[0-~]?` +
	`|[\x{80}-\x{84}\x{86}-\x{9f}]`)

// plain carries out or drops what is meant for a terminal.
func plain(s string) string {
	if !strings.ContainsAny(s, "\x1b\r\b\a") && strings.IndexByte(s, c1Lead) < 0 {
		return s
	}
	s = codes().ReplaceAllString(s, "")
	out := make([]byte, 0, len(s))
	start := 0        // of the line, in out
	returned := false // a carriage return waits for what replaces the line
	for _, c := range []byte(s) {
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
