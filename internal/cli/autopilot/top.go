package autopilot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/control"
	"github.com/pawl-dev/pawl/internal/dashboard"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/spool"
	"github.com/pawl-dev/pawl/internal/store"
)

func topCommand(a *command.App) *cobra.Command {
	return command.Leaf("top", "Watch the autopilot in this terminal, and steer it", command.AtMost(0),
		func(ctx context.Context, _ []string) error {
			if !a.Interactive() {
				return command.Usage("pawl top draws on a terminal, and this is none").Hint("Print it once: pawl autopilot status")
			}
			return a.WithOperator(ctx, func(p *action.Operator) error {
				p.Store.OnWait(nil) // the dashboard has the screen
				if err := dashboard.Watch(ctx, dashboardOptions(a, p.Store, p.Root)); err != nil {
					return fmt.Errorf("cannot go on drawing: %v", err)
				}
				return nil
			})
		})
}

// dashboardOptions looks at the autopilot of root, and does what the commands do.
func dashboardOptions(a *command.App, db *store.Store, root string) dashboard.Options {
	o := dashboard.Options{
		Look: func(ctx context.Context) (autopilot.View, error) {
			return autopilot.Status(ctx, db, root)
		},
		Log: func(ctx context.Context, run string) ([]string, error) {
			r, err := db.Run(ctx, run)
			if err != nil {
				return nil, err
			}
			return agentLines(a.Outputs(db, r, strconv.Itoa(r.Iteration)))
		},
		Question: func(ctx context.Context, n autopilot.Need) (loop.Question, error) {
			return needQuestion(ctx, db, n)
		},
		Do: func(ctx context.Context, d dashboard.Action) (string, error) {
			return act(context.WithoutCancel(ctx), a.Operator(db, root), d)
		},
		Interrupt: func() { _ = syscall.Kill(os.Getpid(), syscall.SIGINT) },
		In:        a.Stdin, Out: console.Raw(a.Stderr), Env: a.Env,
	}
	if a.Color == "never" {
		o.Env = append(append([]string{}, a.Env...), "NO_COLOR=1")
	}
	return o
}

// act does what a person asked for by a key, and returns the result in a line.
func act(ctx context.Context, p *action.Operator, d dashboard.Action) (string, error) {
	said, err := p.Heard(func(p *action.Operator) error { return perform(ctx, p, d) })
	var f *fault.Error
	if errors.As(err, &f) {
		err = errors.New(inOneLine(append([]string{f.Error()}, f.Hints...)))
	}
	return inOneLine(said), err
}

func inOneLine(texts []string) string {
	return strings.Join(strings.Fields(strings.Join(texts, " ")), " ")
}

func perform(ctx context.Context, p *action.Operator, d dashboard.Action) error {
	verb := ""
	switch {
	case d.Kind == dashboard.Pause, d.Kind == dashboard.Resume, d.Kind == dashboard.Mode:
		return p.AskAutopilot(ctx, string(d.Kind), d.Text, false)
	case d.Kind == dashboard.StopAll:
		return p.AskAutopilot(ctx, store.AutopilotStop, "", true)
	case d.Kind == dashboard.Retry:
		verb = "retry"
	case d.Kind == dashboard.Answer && d.Need.What == board.Review:
		verb = reviewVerbs[d.Choice]
	}
	if verb != "" {
		done, err := p.Change(ctx, verb, d.Need.Case, d.Text)
		if err == nil {
			p.Say("%s", done.Text)
		}
		return err
	}
	r, err := p.Store.Run(ctx, d.Run)
	if err != nil {
		return err
	}
	if d.Kind == dashboard.StopRun {
		return p.Stop(ctx, r, true)
	}
	_, err = p.Answer(ctx, r, "", action.Words(d.Choice, d.Text))
	return err
}

// reviewVerbs are the choices about verified work; words alone are what must change.
var reviewVerbs = []string{"redo", "approve", "redo", "reject"}

// reviewQuestion asks about verified work.
var reviewQuestion = []control.Choice{
	{Text: "Approve: let it land"}, {Text: "Redo: send it back with what must change", Advice: true},
	{Text: "Reject: the task is blocked", Advice: true},
}

// needQuestion is what a task waits for, as a question.
func needQuestion(ctx context.Context, db *store.Store, n autopilot.Need) (q loop.Question, err error) {
	if n.What == board.Review {
		text := fmt.Sprintf("%s is verified and waits for your review. See its diff with: pawl show %s --diff", n.Case, n.Run)
		return loop.Question{Text: text, Choices: reviewQuestion}, nil
	}
	var s loop.State
	if n.Run != "" {
		r, err := db.Run(ctx, n.Run)
		if err != nil {
			return q, err
		}
		if s, err = engine.StateOf(r); err != nil {
			return q, err
		}
	}
	if s.Question == nil {
		return q, fmt.Errorf("%s asks nothing: it is %s; r tries it again", n.Case, n.What)
	}
	return *s.Question, nil
}

// logRead is how much of an agent's events is read: the end of them.
const logRead = 64 << 10

// agentLines are the last things that an iteration's agent did, a line each.
func agentLines(root *os.Root, err error) ([]string, error) {
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := spool.Open(root, "agent.events.jsonl")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	from := max(0, size-logRead)
	data := make([]byte, size-from)
	n, _, err := f.ReadAt(data, from)
	var lines []string
	for line := range bytes.Lines(data[:n]) {
		var e agent.Event
		if json.Unmarshal(line, &e) == nil { // the first may have lost its beginning
			lines = append(lines, eventLines(e)...)
		}
	}
	return lines, err
}

// eventLines are what a person reads of an event.
func eventLines(e agent.Event) []string {
	switch e.Kind {
	case agent.Text:
		return strings.Split(strings.TrimRight(e.Text, "\n"), "\n")
	case agent.ToolStart:
		what := e.Command
		if what == "" {
			what = strings.Join(e.Files, ", ")
		}
		return []string{"→ " + strings.TrimSpace(e.Tool+" "+what)}
	case agent.ToolEnd:
		if e.Failed {
			return []string{"  ✗ " + e.Tool + " failed"}
		}
	case agent.RateLimit, agent.Retry, agent.Error:
		if e.Error != nil {
			return []string{"! " + e.Error.Message}
		}
	}
	return nil
}
