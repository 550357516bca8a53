package queue

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/gate"
)

// BisectCommand finds the landing that made a command red.
func BisectCommand(a *command.App) *cobra.Command {
	var good string
	var unsandboxed bool
	cmd := command.Leaf("bisect -- COMMAND...", "Find the landing that made a command red", cobra.ArbitraryArgs,
		func(ctx context.Context, args []string) error {
			line := strings.Join(lists.Each(args, fault.QuoteShell), " ")
			switch len(args) {
			case 0:
				return command.Usage("name the command that is red: pawl bisect -- COMMAND")
			case 1: // a line for the shell
				line = args[0]
			}
			return a.WithOperator(ctx, func(p *action.Operator) error {
				return findCulprit(ctx, a, p, line, good, unsandboxed)
			})
		})
	cmd.Flags().StringVar(&good, "good", "", "a `COMMIT` in which the command was green; default: search for one")
	cmd.Flags().BoolVar(&unsandboxed, "unsandboxed", false, "run the command without the sandbox")
	return cmd
}

func findCulprit(ctx context.Context, a *command.App, p *action.Operator, line, good string, unsandboxed bool) error {
	c, err := a.Load(nil)
	if err != nil {
		return err
	}
	l, q, err := session.OpenJudge(ctx, a, c, p.Store, unsandboxed, nil)
	if err != nil {
		return err
	}
	if good != "" {
		name := good
		if good, err = l.Repo.Find(ctx, name); err == nil && good == "" {
			err = command.Usage("there is no commit %q in the repository", report.Line(name, 80))
		}
		if err != nil {
			return err
		}
	}
	spec := gate.Spec{Name: line, Command: line, Required: true, AllowEmpty: true, Retries: gate.Retries,
		Timeout: c.Verification.DefaultTimeout.Std()}
	found, err := q.Bisect(ctx, []gate.Spec{spec}, good, func(commit string, r gate.Report) {
		if r.Failure != nil {
			a.Say("%.10s: red: %s", commit, report.Line(r.Summary, 200))
			return
		}
		a.Say("%.10s: green", commit)
	})
	if err != nil {
		return err
	}
	if a.JSON {
		return a.Document(found)
	}
	a.Result("%s is red since %.10s: %s\n", report.Line(line, 200), found.Commit, report.Line(found.Title, 200))
	a.Result("%s\n", report.Line(found.Summary, 400))
	a.Result("It is green in %.10s, the state before.\n", found.Good)
	for _, task := range found.Tasks {
		a.Say("Revert it:          pawl revert %s --why %s", task, fault.QuoteShell("red since: "+line))
	}
	a.Say("Have an agent fix it: pawl case add %s --verify %s", fault.QuoteShell("Repair: "+report.Line(line, 80)),
		fault.QuoteShell(line))
	return nil
}
