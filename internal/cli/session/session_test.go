package session

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/loop"
)

// How a run came to rest makes the exit status: 0 done, 1 failed, 3 a limit, 4 a
// person is needed, and a signal's own.
func TestExitCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status loop.Status
		cause  loop.Cause
		want   int
	}{
		{loop.Completed, loop.NoCause, 0}, {loop.FailedRun, loop.NoCause, 1}, {loop.Aborted, loop.NoCause, 1},
		{loop.TimedOut, loop.NoCause, 3}, {loop.Paused, loop.NoCause, 4}, {loop.Blocked, loop.NoCause, 4}, {loop.Pending, loop.NoCause, 4},
		{loop.Interrupted, loop.CauseInterrupt, 130}, {loop.Interrupted, loop.CauseTerminate, 143}, {loop.Interrupted, loop.CauseHangup, 129},
		{loop.Stopped, loop.NoCause, 130}, {loop.Stopped, loop.CauseTerminate, 143},
	} {
		if got := exitCode(loop.State{Status: c.status}, c.cause); got != c.want {
			t.Errorf("%s by %v: %d, want %d", c.status, c.cause, got, c.want)
		}
	}
	if got := exitCode(loop.State{Status: loop.FailedRun, Question: &loop.Question{}}, loop.NoCause); got != 4 {
		t.Errorf("a guard that asks a person: %d", got)
	}
}

// A run that cannot be resumed says what can be done instead.
func TestResumeHint(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		loop.ErrFinal: "pawl run build", loop.ErrActive: "pawl logs build -f",
		loop.ErrNeedsAnswer: "pawl answer build", loop.ErrAtLimit: "--max-iterations N",
	} {
		var f *fault.Error
		got := resumeHint(fmt.Errorf("run 7k3f: %w", err), "build")
		if !errors.As(got, &f) || f.Kind != fault.Refused || !strings.Contains(strings.Join(f.Hints, "\n"), want) {
			t.Errorf("%v: %v, want a refusal with %s", err, f, want)
		}
	}
}

// What is withheld is counted and named, of many the first.
func TestWithheldWords(t *testing.T) {
	t.Parallel()
	if got := WithheldWords([]string{"TOKEN"}, "agent claude"); !strings.HasPrefix(got, "1 variable is withheld from agent claude: TOKEN (") {
		t.Error(got)
	}
	if got := WithheldWords(strings.Fields("A B C D E F G H I J"), "the agent"); !strings.Contains(got, "10 variables are") || !strings.Contains(got, "H, 2 more (") {
		t.Error(got)
	}
}
