package engine

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

// The first gate that the safety level forbids is named, by its command where it has no
// name.
func TestRefusedGate(t *testing.T) {
	t.Parallel()
	good, bad := gate.Spec{Name: "tests", Command: "go test ./..."}, gate.Spec{Name: "wipe", Command: "rm -rf /"}
	unnamed := gate.Spec{Command: bad.Command}
	for _, c := range []struct {
		gates []gate.Spec
		want  string
	}{
		{nil, ""}, {[]gate.Spec{good}, ""}, {[]gate.Spec{good, bad, unnamed}, "wipe"}, {[]gate.Spec{unnamed, bad}, "rm -rf /"},
	} {
		name, f, refused := Plan{Safety: sandbox.Normal, Gates: c.gates}.RefusedGate()
		if name != c.want || refused != (c.want != "") || refused && f.Pattern == "" {
			t.Errorf("of %v the gate %q is refused (%v) by %+v, want %q", c.gates, name, refused, f, c.want)
		}
	}
}

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
