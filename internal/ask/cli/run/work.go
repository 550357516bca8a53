package run

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/prompt"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// This file is what a person wants from a procedure, in words.

// workOf is the text after the procedure's name, or what is on stdin: where "-" asks
// for it, or where stdin is a file that nobody has read from. A pipe is not read unasked,
// since it may never end.
func workOf(a *command.App, words []string) (string, error) {
	text := strings.Join(words, " ")
	asked := slices.Contains(words, "-")
	waiting := onStdin(a.Stdin)
	switch {
	case asked && len(words) > 1, waiting == inFile && len(words) > 0 && !asked:
		return "", command.Usage("the work is given twice: in words and on stdin").
			Hint("Give one of them; what else the agent should read comes with -c FILE")
	case asked, waiting == inFile:
		data, err := io.ReadAll(io.LimitReader(a.Stdin, prompt.MaxWork+1))
		if err != nil {
			return "", fmt.Errorf("cannot read stdin: %v", err)
		}
		text = string(data)
	case len(words) == 0 && waiting == inPipe:
		return "", command.Usage("something comes on stdin, and nothing says that it is the work").
			Hint("Read it as the work: pawl run NAME -").
			Hint("Leave it alone:      pawl run NAME </dev/null")
	case len(words) == 0:
		return "", nil
	}
	return text, checkWork(text)
}

func checkWork(text string) error {
	const instead = "Write it into a file of the repository, and say which one: " +
		"pawl run NAME \"do what issue.md asks for\""
	switch {
	case strings.TrimSpace(text) == "":
		return command.Usage("the work is empty: say what is to be done, or leave it out").
			Hint("Without it the procedure's prompt says where the agent finds its work: pawl run NAME --dry-run")
	case len(text) > prompt.MaxWork:
		return command.Usage("the work is too long: at most %d KiB", prompt.MaxWork>>10).Hint(instead)
	case !utf8.ValidString(text), strings.Contains(text, "\x00"):
		return command.Usage("the work is no text").Hint(instead)
	}
	return nil
}

// noWork refuses words after a workflow file.
func noWork(args []string) error {
	if len(args) == 1 {
		return nil
	}
	return command.Usage("a workflow takes no text: its file says what its steps do").
		Hint("Give it values: pawl run %s --context NAME=VALUE", args[0])
}

// What is on stdin before anything is read.
type stdinKind int

const (
	inNothing stdinKind = iota
	inFile              // a file, from its beginning
	inPipe              // bytes that wait in a pipe
)

func onStdin(r io.Reader) stdinKind {
	f, ok := r.(*os.File)
	if !ok {
		return inNothing
	}
	info, err := f.Stat()
	if err != nil {
		return inNothing
	}
	switch {
	case info.Mode().IsRegular() && info.Size() > 0:
		if at, err := f.Seek(0, io.SeekCurrent); err == nil && at == 0 {
			return inFile
		}
	case info.Mode()&os.ModeNamedPipe != 0 && console.Waits(f):
		return inPipe
	}
	return inNothing
}

// keepsItsWork refuses to go on with a run whose work is another than the one that was
// just given.
func keepsItsWork(f planner.Flags, last store.Run) error {
	work := action.SetupOf(last).Flags.Work
	if f.Work == "" || f.Work == work {
		return nil
	}
	own := "what its procedure says"
	if work != "" {
		own = fmt.Sprintf("%q", report.Line(work, 100))
	}
	return command.Usage("run %s has its own work: %s", last.ID, own).
		Hint("Go on with it:          pawl resume %s", last.Name).
		Hint("Tell its agent more:    pawl message %s TEXT", last.Name).
		Hint("Start the new work:     pawl run %s --fresh TEXT", last.Name)
}
