package run

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/report"
)

func sealCommand(a *command.App) *cobra.Command {
	var f planner.Flags
	var check bool
	cmd := command.Leaf("seal TASK", "Let an agent write checks of a task that the agents at work on it never see",
		command.AtMost(1), func(ctx context.Context, args []string) error {
			switch {
			case check:
				return checkSeal(a)
			case len(args) == 0:
				return command.Usage("seal needs the id of a task: pawl seal TASK")
			}
			return sealTask(ctx, a, args[0], f)
		})
	addStartFlags(cmd, &f)
	cmd.Flags().BoolVar(&check, "check", false, "only say whether the list in "+planner.SealFile+" is in order")
	return cmd
}

// checkSeal is the gate of that agent: what it prints goes into the next prompt.
func checkSeal(a *command.App) error {
	dir, err := filepath.Abs(a.Dir)
	if err != nil {
		return err
	}
	list, err := action.ReadSeal(dir)
	if err != nil {
		a.Result("error: %v\n", err)
		return command.StatusError(command.ExitFailed)
	}
	a.Result("%s, in order\n", fault.Numbered(len(list), "check"))
	return nil
}

// sealTask runs the agent, and gives the task what it wrote.
func sealTask(ctx context.Context, a *command.App, text string, f planner.Flags) error {
	if err := session.NotInside(a); err != nil {
		return err
	}
	id, err := action.CaseID(text)
	if err != nil {
		return err
	}
	has := false
	err = a.WithOperator(ctx, func(p *action.Operator) error {
		c, err := p.Store.Case(ctx, id)
		if err == nil && c.Type != board.Task {
			err = fault.Refuse("%s is an operation; only a task has checks", id)
		}
		if err == nil {
			err = board.CanEdit(&c)
		}
		f.Work = describeTask(&c)
		_, has = p.SealRun(ctx, f.Work)
		return action.Explain(err)
	})
	if err == nil && !has {
		err = runProcedure(ctx, a, planner.Sealing, f, false, true)
	}
	if err != nil {
		return err
	}
	return a.WithOperator(ctx, func(p *action.Operator) error {
		c, err := p.TakeSealed(ctx, id, f.Work)
		if err != nil {
			return action.Explain(err)
		}
		for _, check := range c.Sealed {
			a.Result("%s\n", report.Line(check.Label(), 400))
			if check.Criterion != "" {
				a.Result("  it shows: %s\n", report.Line(check.Criterion, 400))
			}
		}
		a.Say("%s has %s. Read and change them: pawl case show %s, pawl case edit %s --sealed CHECK", id,
			fault.Numbered(len(c.Sealed), "sealed check"), id, id)
		return nil
	})
}

// describeTask writes a task down for who checks it.
func describeTask(c *board.Case) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n", c.Title, c.Description)
	for _, criterion := range c.Acceptance {
		fmt.Fprintf(&b, "- %s\n", criterion)
	}
	for i := range c.Verify {
		fmt.Fprintf(&b, "Its agent is shown the check: %s\n", c.Verify[i].Label())
	}
	return b.String()
}
