package console

import (
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// What made an iteration fail is said by how its agent ended.
func TestWhy(t *testing.T) {
	t.Parallel()
	summary := &failure.Analysis{Summary: "no disk"}
	for want, r := range map[string]loop.Record{
		"AI CLI failed (exit 1)":                               {Exit: loop.Exit{Code: 1}, Failure: summary},
		"AI CLI failed (signal: killed)":                       {Exit: loop.Exit{Code: -1, Signal: "killed"}},
		"AI CLI failed (its output ended before it was done)":  {Exit: loop.Exit{Terminal: loop.TerminalMissing}},
		"AI CLI failed: no disk":                               {Failure: summary},
		"AI CLI timed out after 1m0s":                          {Exit: loop.Exit{Ended: loop.EndedTimeout}, Elapsed: 60e9},
		"AI CLI ended: no disk":                                {Exit: loop.Exit{Ended: loop.EndedStop}, Failure: summary},
		"The iteration could not start: cannot find the agent": {Failure: &failure.Analysis{Fingerprint: "cannot-start", Summary: "cannot find the agent"}},
	} {
		if got := failureReason(&r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
