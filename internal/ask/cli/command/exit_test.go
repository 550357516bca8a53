package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/decide/fault"
)

// An error's kind makes the exit status; what to do next comes below it.
func TestExit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		err  error
		code int
		want string
	}{
		{"none", nil, 0, ""},
		{"a failure", errors.New("no room"), 1, "pawl: no room\n"},
		{"a refusal", Usage("no run %q", "x").Hint("List the runs: pawl ps -a"), 2, "pawl: no run \"x\"\n  List the runs: pawl ps -a\n"},
		{"a person's turn", fault.Of(fault.Waiting, errors.New("not all has landed")), 4, "pawl: not all has landed\n"},
		{"a refusal inside", fmt.Errorf("case 3: %w", Usage("no such case")), 2, "pawl: case 3: no such case\n"},
		{"a status alone", StatusError(130), 130, ""},
		{"a status inside", fmt.Errorf("the demo: %w", ExitWith(3)), 3, ""},
		{"nobody reads", &fs.PathError{Op: "write", Path: "stdout", Err: os.ErrClosed}, 1, ""},
	} {
		var out strings.Builder
		a := &App{Stderr: &out}
		if code := a.Exit(c.err); code != c.code || out.String() != c.want {
			t.Errorf("%s: %d and %q, want %d and %q", c.name, code, out.String(), c.code, c.want)
		}
	}
	if ExitWith(ExitOK) != nil {
		t.Error("0 is no error")
	}
}

// A mistyped flag or command is answered with the nearest one.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	nothing := func(*cobra.Command, []string) error { return nil }
	for _, c := range []struct{ args, want string }{
		{"stop --quite", "(did you mean --quiet?)"},
		{"stop --nothing-like-it", "'pawl stop --help' lists the flags"},
		{"stp", `unknown command "stp" (did you mean "stop"?)`},
		{"abcp", `unknown command "abcp"; 'pawl --help' lists the commands`}, // three letters away
		{"zzzzzz", `unknown command "zzzzzz"; 'pawl --help' lists the commands`},
		{"stop a b", `unexpected argument "b"`},
	} {
		stop := &cobra.Command{Use: "stop", Args: AtMost(1), RunE: nothing}
		stop.Flags().Bool("quiet", false, "")
		root := Group("pawl", "", nil, stop)
		root.SilenceErrors, root.SilenceUsage = true, true
		root.SetFlagErrorFunc(FlagError)
		root.SetArgs(strings.Fields(c.args))
		if err := root.Execute(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.args, err, c.want)
		}
	}
}

// What looks like a file is a workflow; everything else is a procedure's name.
func TestIsFile(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]bool{"build": false, "flow.yaml": true, "flow.yml": true, "./flow": true, "a/b": true, "yaml": false} {
		if LooksLikeFile(arg) != want {
			t.Errorf("%s: %t", arg, !want)
		}
	}
}

// The last of several variables of a name counts, as for a child process.
func TestGetenv(t *testing.T) {
	t.Parallel()
	a := &App{Env: []string{"A=1", "AB=2", "A=3"}}
	for name, want := range map[string]string{"A": "3", "AB": "2", "B": ""} {
		if got := a.Getenv(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Cells are as wide as a terminal shows them, and the last is cut to what is left.
func TestTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	a := &App{Stdout: &out}
	a.Table("ID\tTITLE", [][]any{{"日本", "wide"}, {1, "a title that is far too long for it"}}, 26)
	want := "ID    TITLE\n日本  wide\n1     a title that is far…\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}

	// What would leave nothing for the last column is cut, too.
	out.Reset()
	a.Table("RUN\tNAME\tWHY", [][]any{{"x", "ignore punctuation at the end of a word", "COMPLETE, and the gates pass"}}, 50)
	want = "RUN  NAME                     WHY\nx    ignore punctuation at …  COMPLETE, and the g…\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
