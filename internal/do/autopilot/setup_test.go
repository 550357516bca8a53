package autopilot

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// A message about a set-up that failed has the end of its output, however much
// there was before.
func TestEndOfOutput(t *testing.T) {
	long := strings.Repeat("downloading\n", 1000)
	for _, c := range []struct {
		name string
		out  supervisor.Stream
		want string
	}{
		{"short", supervisor.Stream{Head: "a\nb\nc\nno such package\n"}, "b; c; no such package"},
		{"long", supervisor.Stream{Head: long[:100], Tail: "installing\nresolving\nno such package\n"}, "installing; resolving; no such package"},
		{"silent", supervisor.Stream{}, ""},
	} {
		if got := lastLines(c.out); got != c.want {
			t.Errorf("%s: the end is %q, want %q", c.name, got, c.want)
		}
	}
}
