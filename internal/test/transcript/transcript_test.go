package transcript

import (
	"strings"
	"testing"
)

// A text is played from its lines, whatever stood below the dashes.
func TestPlay(t *testing.T) {
	n := 0
	count := func(line string) string {
		n++
		return strings.Repeat(line, n) + "\n"
	}
	got := play("# a story\n\nab\n----\nold\nolder\n\ncd\n----\n", count)
	if want := "# a story\n\nab\n----\nab\n\ncd\n----\ncdcd\n"; got != want {
		t.Errorf("got %q, not %q", got, want)
	}
}

func TestFirstDifference(t *testing.T) {
	for _, c := range []struct{ want, got, says string }{
		{"a\nb\n", "a\nc\n", "line 2\n  file:    b\n  decided: c"},
		{"a", "a\nb", "line 2\n  file:    \n  decided: b"},
		{"a\nb", "a", "the file goes on after the last line that was decided"},
	} {
		if got := firstDifference(c.want, c.got); got != c.says {
			t.Errorf("%q and %q: %q", c.want, c.got, got)
		}
	}
}
