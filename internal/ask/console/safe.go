package console

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"
)

// SafeWriter is a terminal that obeys nothing in the text written to it but pawl's
// own colors: escape sequences, controls and what turns the direction of writing
// are shown as visible characters.
type SafeWriter struct {
	file  *os.File
	plain bool // no colors either

	mu   sync.Mutex
	left []byte // the end of a write that the next one completes
}

// Safe is w, a SafeWriter where it is a terminal. Others get the bytes.
func Safe(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok && OnTerminal(f) {
		return &SafeWriter{file: f}
	}
	return w
}

// Plain is w for the output of others, without colors where it is a SafeWriter.
func Plain(w io.Writer) io.Writer {
	if s, ok := w.(*SafeWriter); ok {
		return &SafeWriter{file: s.file, plain: true}
	}
	return w
}

// Raw is the terminal itself, for who draws on it with text that is [Visible].
func Raw(w io.Writer) io.Writer {
	if s, ok := w.(*SafeWriter); ok {
		return s.file
	}
	return w
}

// Write writes p. What may be the beginning of a character or a color waits for
// the next write.
func (s *SafeWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := slices.Concat(s.left, p)
	safe, n := makeVisible(text, !s.plain)
	s.left = text[n:]
	_, err := s.file.WriteString(safe)
	return len(p), err
}

// Visible is a text without anything that a terminal would obey but pawl's own colors.
func Visible(text string) string {
	safe, n := makeVisible([]byte(text), true)
	return safe + strings.Repeat(string(utf8.RuneError), len(text)-n)
}

// colorLengthAt is the length of one of pawl's own color sequences at the beginning of
// text; more when it may be one that is not all here.
func colorLengthAt(text []byte) (n int, more bool) {
	for _, c := range []string{"0", "1", "2", "31", "32", "33", "36"} {
		own := "\x1b[" + c + "m"
		switch {
		case len(text) >= len(own) && string(text[:len(own)]) == own:
			return len(own), false
		case len(text) < len(own) && own[:len(text)] == string(text):
			more = true
		}
	}
	return 0, more
}

// makeVisible makes as much of text safe as is complete, and says how much that is.
func makeVisible(text []byte, colors bool) (safe string, n int) {
	var b strings.Builder
	for n < len(text) {
		rest := text[n:]
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1 && !utf8.FullRune(rest), r == '\r' && len(rest) == 1:
			return b.String(), n
		case r == '\x1b' && colors:
			own, more := colorLengthAt(rest)
			if more {
				return b.String(), n
			}
			if own > 0 {
				b.Write(rest[:own])
				n += own
				continue
			}
			b.WriteString(showControl(r))
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, rest[0])
		case r == '\r' && rest[1] == '\n':
		case isTerminalControl(r):
			b.WriteString(showControl(r))
		default:
			b.WriteRune(r)
		}
		n += size
	}
	return b.String(), n
}

// isTerminalControl reports whether a terminal treats r as a command, reorders other
// characters for it, or shows nothing.
func isTerminalControl(r rune) bool {
	switch {
	case r == '\n', r == '\t', r == '\u200c', r == '\u200d': // these join letters and emoji
		return false
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return true
	}
	return unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// showControl returns a character that a terminal would obey, as people can see it.
func showControl(r rune) string {
	switch {
	case r < ' ':
		return string('␀' + r)
	case r == 0x7f:
		return "␡"
	case r <= 0xff:
		return fmt.Sprintf(`\x%02x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// OnTerminal is true where a person looks at what is written, or types what is read.
func OnTerminal(stream any) bool {
	if _, ok := stream.(*SafeWriter); ok {
		return true
	}
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// Waits is true where something can be read from a pipe now.
func Waits(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}} //nolint:gosec // descriptors are small numbers
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents&unix.POLLIN != 0
}

// Wrapped breaks the lines of a text between words at the width of a terminal. A line with a
// command stays whole, so that it can be pasted.
func Wrapped(w io.Writer, text string) string {
	if !OnTerminal(w) {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.Contains(line, "pawl ") {
			lines[i] = ansi.Wordwrap(line, Width(w), "")
		}
	}
	return strings.Join(lines, "\n")
}

// Width is the columns of a terminal, 80 when it does not say.
func Width(w io.Writer) int {
	width, _ := Size(w)
	return width
}

// Size is the columns and rows of a terminal, 80 and 24 when it does
// not say.
func Size(w io.Writer) (width, height int) {
	width, height = 80, 24
	f, ok := Raw(w).(*os.File)
	if !ok {
		return width, height
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return width, height
	}
	if size.Col > 0 {
		width = int(size.Col)
	}
	if size.Row > 0 {
		height = int(size.Row)
	}
	return width, height
}
