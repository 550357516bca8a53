package console

import (
	"strings"
	"testing"
)

// On a terminal of 40 columns lines break between words, and a command stays whole.
func TestWrapped(t *testing.T) {
	t.Parallel()
	pty := openTerminal(t)
	resize(t, pty, 40, 24)
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
