package console

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// On a terminal of 40 columns lines break between words, and a command stays whole.
func TestWrapped(t *testing.T) {
	t.Parallel()
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there is no terminal: %v", err)
	}
	defer func() { _ = pty.Close() }()
	if err := unix.IoctlSetWinsize(int(pty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 40}); err != nil {
		t.Skipf("a terminal has no size: %v", err)
	}
	const text = "a sentence that is longer than one line of the terminal\n" +
		"  Go on with it, where that is what you want: pawl resume build"
	const want = "a sentence that is longer than one line\nof the terminal\n" +
		"  Go on with it, where that is what you want: pawl resume build"
	if got := Wrapped(pty, text); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var file strings.Builder
	if got := Wrapped(&file, text); got != text {
		t.Errorf("what is no terminal gets %q", got)
	}
}
