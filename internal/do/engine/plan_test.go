package engine

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// The log has of an iteration how it ended, and only of one that was ended or failed by
// what.
func TestLogRecord(t *testing.T) {
	t.Parallel()
	usual := `msg="iteration ends" run=abc123 phase=iteration iteration=2 attempt=1 outcome=failed elapsed=3 exit=1 agent=claude strategy=fix`
	base := loop.Record{
		Number: 2, Attempt: 1, Outcome: loop.Failed, Elapsed: 3 * time.Second, Exit: loop.Exit{Code: 1}, Agent: "claude", Strategy: "fix",
	}
	ended, failed := base, base
	ended.Exit.Ended = loop.EndedDisk
	failed.Failure = &failure.Analysis{Class: failure.TestFailure, Summary: "2 tests fail"}
	for _, c := range []struct {
		r    loop.Record
		want string
	}{
		{base, usual + " next=run\n"},
		{ended, usual + " ended=" + string(loop.EndedDisk) + " next=run\n"},
		{failed, usual + ` class=test_failure summary="2 tests fail" next=run` + "\n"},
	} {
		var out strings.Builder
		s := &session{id: "abc123", o: Options{Log: slog.New(slog.NewTextHandler(&out, nil))}}
		(&Driver{session: s}).logRecord(c.r, loop.Command{Kind: loop.Run})
		if _, got, _ := strings.Cut(out.String(), "level=INFO "); got != c.want {
			t.Errorf("logged is\n%swant\n%s", got, c.want)
		}
	}
}
