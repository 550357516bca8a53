package queue

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/gate"
)

// BisectCommand finds the landing that made a command red.
func BisectCommand(a *command.App) *cobra.Command {
	var b bisection
	cmd := command.Leaf("bisect -- COMMAND...", "Find the landing that made a command red", cobra.ArbitraryArgs,
		func(ctx context.Context, args []string) error {
			b.line = strings.Join(lists.Each(args, fault.QuoteShell), " ")
			switch len(args) {
			case 0:
				return command.Usage("name the command that is red: pawl bisect -- COMMAND")
			case 1: // a line for the shell
				b.line = args[0]
			}
			return a.WithOperator(ctx, func(p *action.Operator) error {
				err := b.findCulprit(ctx, a, p)
				if err != nil {
					_ = b.noteOnTask(ctx, p, err.Error()) // the error that matters is the one at hand
				}
				return err
			})
		})
	cmd.Flags().StringVar(&b.good, "good", "", "a `COMMIT` in which the command was green; default: search for one")
	cmd.Flags().StringVar(&b.task, "task", "", "write into the description of `TASK` what it tries and finds")
	cmd.Flags().BoolVar(&b.unsandboxed, "unsandboxed", false, "run the command without the sandbox")
	return cmd
}

// bisection is what is looked for, and the task that says how it goes; "" is none.
type bisection struct {
	line, good, task string
	unsandboxed      bool
}

// noteOnTask adds a line to the task, and what it needs.
func (b *bisection) noteOnTask(ctx context.Context, p *action.Operator, line string, needs ...string) error {
	if b.task == "" {
		return nil
	}
	_, err := p.Store.EditCase(context.WithoutCancel(ctx), board.Normal(b.task), board.Pawl, time.Now(),
		func(c *board.Case) error {
			c.Description, c.Needs = strings.TrimSpace(c.Description+"\n"+line), append(c.Needs, needs...)
			return nil
		})
	return err
}

func (b *bisection) findCulprit(ctx context.Context, a *command.App, p *action.Operator) error {
	c, err := a.Load(nil)
	if err != nil {
		return err
	}
	l, q, err := session.OpenJudge(ctx, a, c, p.Store, b.unsandboxed, nil)
	if err != nil {
		return err
	}
	if name := b.good; name != "" {
		if b.good, err = l.Repo.Find(ctx, name); err == nil && b.good == "" {
			err = command.Usage("there is no commit %q in the repository", report.Line(name, 80))
		}
		if err != nil {
			return err
		}
	}
	spec := gate.Spec{Name: b.line, Command: b.line, Required: true, AllowEmpty: true, Retries: gate.Retries,
		Timeout: c.Verification.DefaultTimeout.Std()}
	found, err := q.Bisect(ctx, []gate.Spec{spec}, b.good, func(commit string, r gate.Report) error {
		line := fmt.Sprintf("%.10s: green", commit)
		if r.Failure != nil {
			line = fmt.Sprintf("%.10s: red: %s", commit, report.Line(r.Summary, 200))
		}
		a.Say("%s", line)
		return b.noteOnTask(ctx, p, "- "+line)
	})
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s is red since %.10s: %s\n%s\nIt is green in %.10s, the state before.",
		report.Line(b.line, 200), found.Commit, report.Line(found.Title, 200), report.Line(found.Summary, 400),
		found.Good)
	if err := b.noteOnTask(ctx, p, "\n"+text, found.Tasks...); err != nil {
		return err
	}
	if a.JSON {
		return a.Document(found)
	}
	a.Result("%s\n", text)
	for _, task := range found.Tasks {
		a.Say("Revert it:          pawl revert %s --why %s", task, fault.QuoteShell("red since: "+b.line))
	}
	a.Say("Have an agent fix it: pawl case add %s --verify %s", fault.QuoteShell("Repair: "+report.Line(b.line, 80)),
		fault.QuoteShell(b.line))
	return nil
}
