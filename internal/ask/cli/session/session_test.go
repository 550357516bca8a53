package session

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

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
	if got := exitCode(loop.State{Status: loop.FailedRun, Asking: loop.Asking{Question: &loop.Question{}}}, loop.NoCause); got != 4 {
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
		got := resumeHint(fmt.Errorf("run 7k3f: %w", err), "build", "pawl run build --fresh")
		if !errors.As(got, &f) || f.Kind != fault.Refused || !strings.Contains(strings.Join(f.Hints, "\n"), want) {
			t.Errorf("%v: %v, want a refusal with %s", err, f, want)
		}
	}
}

// A question shows the beginning of what the run changed, and where the rest is.
func TestChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "-q")
	gittest.Git(t, dir, "commit", "-q", "--allow-empty", "-m", "start")
	tree, err := workspace.Open(t.Context(), dir, workspace.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	w := action.Work{Tree: tree}
	for n, lines := range []int{0, 20, 200} {
		if err := os.WriteFile(filepath.Join(dir, "a"), []byte(strings.Repeat("x\n", lines)), 0o600); err != nil {
			t.Fatal(err)
		}
		snap, err := tree.Snapshot(t.Context(), "r1", n, workspace.SnapshotOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.From, w.To = cmp.Or(w.From, snap.Tree), snap.Tree
		got := beginningOfChanges(t.Context(), "r1", &w)
		if added, want := strings.Count(got, "\n  +x"), min(lines, command.ShownLines-5); added != want {
			t.Errorf("%d lines: %d are shown, want %d:\n%s", lines, added, want, got)
		}
		if cut := strings.HasSuffix(got, "all of it: pawl show r1 --diff\n"); cut != (lines == 200) {
			t.Errorf("%d lines: the rest is named: %t", lines, cut)
		}
	}
}

// The choices of a question come with how one of them is made elsewhere.
func TestChoices(t *testing.T) {
	t.Parallel()
	const goesOn = "Continue:         pawl resume r1"
	review := control.Choice{Text: "accept", Do: control.Accept}
	for _, c := range []struct {
		name          string
		status        loop.Status
		choice        control.Choice
		here          bool
		with, without []string
	}{
		{"a guard stopped the run", loop.Paused, control.Choice{Text: "go on"}, false,
			[]string{"1. ", "pawl answer r1 NUMBER", "what to do differently", goesOn}, []string{"approve, or"}},
		{"a question", loop.Pending, control.Choice{Text: "go on"}, false, []string{"pawl answer r1 NUMBER"}, []string{"pawl resume"}},
		{"green work", loop.Paused, review, false, []string{"approve, or: pawl answer r1"}, []string{"what to do differently"}},
		{"asked here", loop.Paused, review, true, []string{"1. accept", "pawl show r1 --diff"}, []string{"Choose one", "Continue:"}},
	} {
		var out strings.Builder
		printChoices(&command.App{Stdout: &out}, "r1", c.status, &loop.Question{Choices: []control.Choice{c.choice}}, c.here)
		for _, want := range c.with {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is missing:\n%s", c.name, want, &out)
			}
		}
		for _, not := range c.without {
			if strings.Contains(out.String(), not) {
				t.Errorf("%s: %q is there:\n%s", c.name, not, &out)
			}
		}
	}
}

// Hooks have no box where tasks have none.
func TestHookBox(t *testing.T) {
	t.Parallel()
	if box := (&Session{}).HookBox(t.Context(), sandbox.Verdict{}); box != nil {
		t.Errorf("got %+v", box)
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

// Below a question stands the command that takes back what the run changed: a run of a task is no procedure's.
func TestAQuestionNamesItsUndo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		task board.Case
		want string
	}{
		{board.Case{}, "pawl rollback r1 --to 0"},
		{board.Case{ID: "task-001", Status: board.Blocked}, "pawl case rollback task-001"},
		{board.Case{ID: "task-001", Status: board.Done}, "pawl revert task-001"},
	} {
		var out strings.Builder
		PrintQuestion(&command.App{Stdout: &out}, "r1", &c.task, loop.Pending, &loop.Question{Text: "which colour?"}, "", false)
		if !strings.HasSuffix(out.String(), "Undo the run's changes:  "+c.want+"\n") {
			t.Errorf("of %+v it says:\n%s", c.task, &out)
		}
	}
}
