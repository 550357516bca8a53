package check

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/agents"
	"github.com/pawl-dev/pawl/internal/do/engine/ending"
)

const (
	// tellingBytes is how much of a log is shown as it is.
	tellingBytes = 900
	// exitUnknown stands for an exit status that was not given.
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
			return explainFailure(a, args, name, exit)
		})
	cmd.Flags().IntVar(&exit, "exit", exitUnknown, "the command that wrote the log ended with exit status `N`")
	cmd.Flags().StringVar(&name, "agent", "", "the log is a recorded stream of the agent `NAME`")
	return cmd
}

// explainFailure analyses the logs and prints what the last one shows.
func explainFailure(a *command.App, logs []string, name string, exit int) error {
	var history []failure.Analysis
	var last explained
	now := time.Now()
	for _, log := range logs {
		e, err := readEvidence(a, log, name, exit)
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
	a.Result("%s", formatExplanation(a, last, now))
	return nil
}

// readEvidence reads one log. An exit status that is not named is looked for in
// the log itself.
func readEvidence(a *command.App, file, name string, exit int) (e failure.Evidence, err error) {
	in, from, err := a.OpenInput(file)
	if err != nil {
		return e, err
	}
	defer in.Close()
	e = failure.Evidence{Source: "log", ExitCode: exit, Zone: ending.Zone}
	var kept ends
	if name != "" {
		err = readRecording(in, name, &e)
	} else {
		_, err = io.Copy(&kept, in)
		e.Output = kept.headAndTail()
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
	collector, beside, isStructured := agent.NewCollector(), &ends{}, adapter.About().Structured
	lines := agent.NewLines(0, func(line []byte, cut bool) {
		parser.Line(line, cut, collector.Add)
		if isStructured && !bytes.HasPrefix(line, []byte("{")) { // what it printed beside its stream
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
	e.Output = out.Message + "\n" + beside.headAndTail()
	e.Errors = out.Errors
	e.CutOff = isStructured && out.Terminal == loop.TerminalMissing
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
		Telling: failure.InformativeLines(e.Output, tellingBytes),
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
		e.shortenEnd()
	}
	return len(p), nil
}

func (e *ends) shortenEnd() {
	if over := len(e.tail) - tailBytes; over > 0 {
		e.tail, e.cut = append([]byte{}, e.tail[over:]...), true
	}
}

func (e *ends) headAndTail() string {
	e.shortenEnd()
	if e.cut {
		return string(e.head) + "\n…\n" + string(e.tail)
	}
	return string(e.head) + string(e.tail)
}

const (
	shownItems   = 8 // without -v
	shownMessage = 5 // lines of one item's message, without -v
	widest       = 110
)

var patternWords = map[string]string{
	failure.RepeatedIdentical:  "the same failure again",
	failure.AlternatingErrors:  "a different class of failure each time",
	failure.ConsistentFailure:  "the same class of failure in different forms",
	failure.OscillationPattern: "two failures that alternate",
}

var kindWords = map[failure.Kind]string{
	failure.Transient: "trying again may work",
	failure.Work:      "something must be changed",
	failure.Permanent: "a person is needed",
}

func formatExplanation(a *command.App, x explained, now time.Time) string {
	if !x.failed {
		return a.Painted("32", "No failure was found.") + "\n"
	}
	p := &page{width: min(console.Width(a.Stdout), widest), all: a.Verbose}
	p.WriteString(formatTitle(a, x))
	p.writeFacts(x, now)
	p.writeItems(x)
	if len(x.Actions) > 0 {
		p.WriteString("\nWhat to do\n")
	}
	for i, act := range x.Actions {
		mark := fmt.Sprintf("  %d. ", i+1)
		p.writeText(mark, strings.Repeat(" ", len(mark)), report.Line(act, 400))
	}
	return p.String()
}

// formatTitle returns the class, and below it the summary without the class.
func formatTitle(a *command.App, x explained) string {
	color := "31"
	if x.Kind == failure.Transient {
		color = "33"
	}
	what := strings.ReplaceAll(string(x.Class), "_", " ")
	rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(report.Line(x.Summary, 300), what), ":"))
	if x.Class == failure.Unknown {
		what = "no known cause"
	}
	title := a.Painted(color, strings.ToUpper(what[:1])+what[1:]) + "\n"
	if rest != "" {
		title += "  " + rest + "\n"
	}
	return title
}

// page is a text for a terminal of a width.
type page struct {
	strings.Builder
	width int
	all   bool // also what is many
}

// writeText writes s behind a mark, its further lines behind next.
func (p *page) writeText(mark, next, s string) {
	lines := ansi.Wrap(s, max(20, p.width-len(next)), "")
	p.WriteString(mark + strings.ReplaceAll(lines, "\n", "\n"+next) + "\n")
}

func (p *page) writeFacts(x explained, now time.Time) {
	fact := func(name, value string) { fmt.Fprintf(p, "  %-12s%s\n", name, value) }
	p.WriteString("\n")
	fact("class", string(x.Class))
	isKnown := x.Class != failure.Unknown || x.Exit != nil
	if isKnown {
		fact("kind", string(x.Kind)+": "+kindWords[x.Kind])
	}
	switch {
	case !isKnown:
		fact("try again", "not known: nothing in it says that something failed; --exit N gives its exit status")
	case x.Transient:
		fact("try again", "yes: trying again may work")
	case !x.WaitUntil.IsZero():
		fact("try again", "not before the wait is over")
	default:
		fact("try again", "no: trying again would fail in the same way")
	}
	fact("severity", string(x.Severity))
	if !x.WaitUntil.IsZero() {
		fact("wait", fmt.Sprintf("until %s (%s)", x.WaitUntil.In(now.Location()).Format("Mon 15:04:05"),
			x.WaitUntil.Sub(now).Round(time.Second)))
	}
	if x.Exit != nil {
		fact("exit", fmt.Sprintf("%d, from %s", *x.Exit, x.exitFrom))
	}
	if t := x.Tests; t != nil {
		fact("tests", fmt.Sprintf("%s: %d failed, %d passed, %d skipped", t.Runner, t.Failed, t.Passed, t.Skipped))
	}
	if x.Pattern != "" {
		fact("pattern", x.Pattern+": "+patternWords[x.Pattern])
	}
	fact("fingerprint", x.Fingerprint)
}

// writeItems lists where it failed, with the messages.
func (p *page) writeItems(x explained) {
	places := false
	for _, i := range x.Items {
		places = places || i.File != "" || i.Test != ""
	}
	switch {
	case places:
		p.WriteString("\nWhere\n")
	case len(x.Items) > 0:
		p.WriteString("\nMost relevant lines\n")
	}
	for i, it := range x.Items {
		if i == shownItems && !p.all {
			fmt.Fprintf(p, "  … and %d more (-v shows them)\n", len(x.Items)-i)
			break
		}
		p.writeItem(it)
	}
	if places && x.Telling != "" && p.all {
		p.WriteString("\nMost relevant lines\n")
		p.writeText("  ", "  ", command.CleanLines(x.Telling, 2000))
	}
}

func (p *page) writeItem(it failure.Item) {
	at := report.Line(it.File, 200)
	for _, n := range []int{it.Line, it.Column} {
		if n > 0 {
			at += fmt.Sprintf(":%d", n)
		}
	}
	indent := "  "
	if where := strings.TrimSpace(at + "  " + report.Line(it.Test, 200)); where != "" {
		p.WriteString("  " + strings.TrimLeft(where, ":") + "\n")
		indent = "      "
	}
	lines := strings.Split(command.CleanLines(it.Message, 400), "\n")
	if len(lines) > shownMessage && !p.all {
		lines = append(lines[:shownMessage], "…")
	}
	for _, l := range lines {
		if l != "" {
			p.writeText(indent, indent, l)
		}
	}
	if it.HasValuesBeyond(strings.Join(lines, "\n")) {
		fmt.Fprintf(p, "      expected %s\n      received %s\n", report.Line(it.Expected, 200), report.Line(it.Received, 200))
	}
}
