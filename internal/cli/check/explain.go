package check

import (
	"bytes"
	"context"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/agents"
	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

const (
	// tellingBytes is how much of a log is shown as it is.
	tellingBytes = 900
	// exitUnknown stands for an exit status that nobody named.
	exitUnknown = -1
)

// explained is `explain --json`: the analysis, and what it was made of.
type explained struct {
	failure.Analysis
	Wait    *float64       `json:"wait"` // seconds; null: nothing was said
	Exit    *int           `json:"exit"` // null: not known
	Pattern string         `json:"pattern,omitempty"`
	Tests   *failure.Tests `json:"tests,omitempty"`
	Items   []failure.Item `json:"items"`
	Telling string         `json:"telling,omitempty"`
	Actions []string       `json:"actions"`

	exitFrom string // where Exit is from, for people
	failed   bool
}

func explainCommand(a *command.App) *cobra.Command {
	name, exit := "", exitUnknown
	cmd := command.Leaf("explain [FILE|-]...", "Say what went wrong in a log, and what to do about it",
		cobra.ArbitraryArgs,
		func(_ context.Context, args []string) error {
			if exit < exitUnknown || exit > 255 {
				return command.Usage("--exit %d: an exit status is 0 to 255", exit)
			}
			if len(args) == 0 {
				if console.OnTerminal(a.Stdin) {
					return command.Usage("name a FILE, or pipe a log into pawl explain").Hint("make test 2>&1 | pawl explain")
				}
				args = []string{"-"}
			}
			return explain(a, args, name, exit)
		})
	cmd.Flags().IntVar(&exit, "exit", exitUnknown, "the exit status of what wrote the log is `N`")
	cmd.Flags().StringVar(&name, "agent", "", "the log is a recorded stream of the agent `NAME`")
	return cmd
}

// explain analyses the logs and prints what the last one shows.
func explain(a *command.App, logs []string, name string, exit int) error {
	var history []failure.Analysis
	var last explained
	now := time.Now()
	for _, log := range logs {
		e, err := evidence(a, log, name, exit)
		if err != nil {
			return err
		}
		e.Now = now
		last = explanationOf(e)
		if exit != exitUnknown {
			last.exitFrom = "--exit"
		}
		if last.failed {
			history = append(history, last.Analysis)
		}
	}
	last.Pattern = failure.Pattern(history)
	if a.JSON {
		return a.Document(last)
	}
	a.Result("%s", explanation(a, last, now))
	return nil
}

// evidence reads one log. An exit status that is not named is looked for in
// the log itself.
func evidence(a *command.App, file, name string, exit int) (e failure.Evidence, err error) {
	in, from, err := a.OpenInput(file)
	if err != nil {
		return e, err
	}
	defer in.Close()
	e = failure.Evidence{Source: "log", ExitCode: exit}
	var kept ends
	if name != "" {
		err = readRecording(in, name, &e)
	} else {
		_, err = io.Copy(&kept, in)
		e.Output = kept.text()
	}
	if err != nil {
		return e, command.CannotRead(from, err)
	}
	if n, ok := failure.ExitStatus(e.Output); ok && name == "" && exit == exitUnknown {
		e.ExitCode = n
	}
	return e, nil
}

// readRecording reads a recorded stream of an agent through its parser, as a run
// of it would be read.
func readRecording(in io.Reader, name string, e *failure.Evidence) error {
	parser, adapter, err := parserOf(name)
	if err != nil {
		return err
	}
	collector, beside := agent.NewCollector(), &ends{}
	lines := agent.NewLines(0, func(line []byte, cut bool) {
		parser.Line(line, cut, collector.Add)
		if adapter.Structured() && !bytes.HasPrefix(line, []byte("{")) { // what it printed beside its stream
			_, _ = beside.Write(append(line, '\n'))
		}
	})
	if _, err := io.Copy(lines, in); err != nil {
		return err
	}
	lines.Flush()
	parser.Close(collector.Add)
	out := collector.Outcome()
	e.Source, e.Name = "agent", name
	e.Output = out.Message + "\n" + beside.text()
	e.Errors = out.Errors
	e.CutOff = adapter.Structured() && out.Terminal == loop.TerminalMissing
	if e.ExitCode >= 0 {
		e.Errors = agent.WithExit(adapter, e.ExitCode, out.Errors)
	} else if out.Terminal == loop.TerminalOK && len(out.Errors) == 0 {
		e.ExitCode = command.ExitOK
	}
	return nil
}

// parserOf returns the parser of an agent's or a stream format's name.
func parserOf(name string) (agent.Parser, agent.Adapter, error) {
	adapter, known := agents.Lookup(name)
	format := name
	if known {
		if start, err := adapter.Start(agent.Invocation{PromptFile: os.DevNull, StateDir: os.DevNull,
			Dir: "."}); err == nil && start.Parser != "" {
			format = start.Parser
		}
	} else {
		custom, err := agents.Custom(name, []string{name}, name)
		if err != nil {
			return nil, nil, command.Usage("--agent %s: no agent is called that", name).Hint("known are %v", agents.Names())
		}
		adapter = custom
	}
	parser, err := agents.Parser(format, agents.ParserOptions{})
	if err != nil {
		return nil, nil, command.Usage("--agent %s: %v", name, err)
	}
	return parser, adapter, nil
}

// explanationOf analyses the evidence.
func explanationOf(e failure.Evidence) explained {
	f := failure.Analyse(e)
	x := explained{
		Analysis: f, Items: append([]failure.Item{}, f.Items...), Actions: f.Actions,
		Telling: failure.Telling(e.Output, tellingBytes),
	}
	if !f.WaitUntil.IsZero() {
		wait := f.WaitUntil.Sub(e.Now).Round(time.Second).Seconds()
		x.Wait, x.WaitUntil = &wait, f.WaitUntil.UTC()
	}
	if e.ExitCode >= 0 {
		x.Exit, x.exitFrom = &e.ExitCode, "the log"
	}
	tests, known := failure.ParseTests(e.Output)
	if known {
		tests.Items = nil // they are among the items
		x.Tests = &tests
	}
	red := e.ExitCode > 0
	if e.ExitCode < 0 {
		red = !known || tests.Failed > 0
	}
	x.failed = f.Class != failure.Unknown || red
	return x
}

// What is kept of a log: its beginning and its end, however long it is.
const (
	headBytes = 256 << 10
	tailBytes = 1 << 20
)

// ends keeps the first headBytes and the last tailBytes of what is written to it.
type ends struct {
	head, tail []byte
	cut        bool // bytes between head and tail were dropped
}

// Write never fails.
func (e *ends) Write(p []byte) (int, error) {
	n := min(headBytes-len(e.head), len(p))
	e.head = append(e.head, p[:n]...)
	e.tail = append(e.tail, p[n:]...)
	if len(e.tail) > 2*tailBytes {
		e.shorten()
	}
	return len(p), nil
}

func (e *ends) shorten() {
	if over := len(e.tail) - tailBytes; over > 0 {
		e.tail, e.cut = append([]byte{}, e.tail[over:]...), true
	}
}

func (e *ends) text() string {
	e.shorten()
	if e.cut {
		return string(e.head) + "\n…\n" + string(e.tail)
	}
	return string(e.head) + string(e.tail)
}
