package autopilot

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// askAutopilotCommand asks the autopilot that runs. A stop waits for its end.
func askAutopilotCommand(a *command.App, kind, short string) *cobra.Command {
	return command.Leaf(kind, short, command.AtMost(0), func(ctx context.Context, _ []string) error {
		return a.WithOperator(ctx, func(p *action.Operator) error { return p.AskAutopilot(ctx, kind, "", true) })
	})
}

func autopilotModeCommand(a *command.App) *cobra.Command {
	return command.Leaf("mode auto|semi-auto", "Switch who chooses tasks: the autopilot, or you with 'pawl case start'",
		command.ExactlyOne("a mode"),
		func(ctx context.Context, args []string) error {
			if m := schedule.Mode(args[0]); m != schedule.Auto && m != schedule.SemiAuto {
				return command.Usage("unknown mode %q: write auto or semi-auto", args[0])
			}
			return a.WithOperator(ctx, func(p *action.Operator) error {
				return p.AskAutopilot(ctx, store.AutopilotMode, args[0], true)
			})
		})
}

func autopilotStatusCommand(a *command.App) *cobra.Command {
	return command.Leaf("status", "Show what the autopilot does: slots, board, what needs you", command.AtMost(0),
		func(ctx context.Context, _ []string) error {
			return a.WithOperator(ctx, func(p *action.Operator) error {
				v, err := autopilot.Status(ctx, p.Store, p.Root)
				if err != nil {
					return err
				}
				if a.JSON {
					return a.Document(v)
				}
				printAutopilot(a, v)
				return nil
			})
		})
}

func printAutopilot(a *command.App, v autopilot.View) {
	switch {
	case v.Session == "":
		a.Result("No autopilot has run here.\n")
	case v.Running:
		a.Result("The autopilot is %s (%s), process %d on %s, since %s%s\n", v.Phase, v.Mode, v.PID, v.Host,
			command.Minute(v.StartedAt), command.Aside(v.Why))
	case v.Waits:
		a.Result("The autopilot is on (%s), and the next worker goes on with it: pawl-cluster worker\n", v.Phase)
	case v.Phase == string(schedule.Finished):
		a.Result("The autopilot has ended, %s%s\n", command.Minute(v.EndedAt), command.Aside(v.Why))
	default:
		a.Result("The autopilot is gone; 'pawl autopilot' puts in order what it left.\n")
	}
	slotTable(a, v)
	a.Result("Board:  ")
	for _, s := range board.Statuses {
		if n := v.Board[s]; n > 0 {
			a.Result("%d %s  ", n, s)
		}
	}
	a.Result("(%d ready)\n", v.Ready)
	for _, line := range v.Lines() {
		a.Result("Waits:  %s\n", report.Line(line, 300))
	}
	t := v.Tally
	a.Result("So far: %d complete, %d landed, %d failed, %d timed out, %d blocked\n", t.Completed, t.Landed, t.Failed,
		t.TimedOut, t.Blocked)
	printNeeds(v, func(format string, args ...any) { a.Result(format+"\n", args...) })
}

// printNeeds lists what waits for a person, and what to do about each.
func printNeeds(v autopilot.View, line func(format string, args ...any)) {
	if len(v.NeedsYou) > 0 || v.QueueHeld != "" {
		line("Needs you:")
	}
	if v.QueueHeld != "" {
		line("  %s", report.Line(v.QueueHeld, 300))
		line("    pawl queue")
	}
	for _, n := range v.NeedsYou {
		line("  %s %s: %s%s", n.Case, n.What, report.Line(n.Title, 80), command.Aside(n.Why))
		line("    %s", nextStep(n))
	}
}

// nextStep is what a person can do about an entry. Each command works as printed.
func nextStep(n autopilot.Need) string {
	look, then := "pawl show "+n.Case, "pawl case retry "+n.Case
	switch {
	case n.What == board.Review:
		look, then = look+" --diff", fmt.Sprintf("pawl case approve %[1]s, pawl case redo %[1]s --feedback TEXT, or "+
			"pawl case reject %[1]s", n.Case)
	case n.Parked:
		look, then = look+" --diff", "pawl queue retry "+n.Case+" to land it again, or "+then+" for another attempt"
	case n.What == board.Timeout && n.Extend != "":
		then = "pawl case extend " + n.Case + " " + n.Extend + ", or " + then
	case n.What == board.Blocked && n.Asks:
		then = "pawl answer " + n.Case + " TEXT, or " + then
	case n.What == board.Blocked && n.Run == "":
		then = "pawl case unblock " + n.Case
	case n.What == board.Blocked:
		then = "pawl case unblock " + n.Case + " to go on with its work as it is, or " + then + " for another attempt"
	}
	if n.Run == "" {
		look = "pawl case show " + n.Case
	}
	return look + ", then " + then
}

func slotTable(a *command.App, v autopilot.View) {
	var rows [][]any
	cost := func(c loop.MicroUSD, known bool) string {
		if !known {
			return "unknown"
		}
		return fmt.Sprint(c)
	}
	for _, l := range v.Slots {
		rows = append(rows, []any{
			l.Case, l.Run, l.Phase, console.Of(l.Iteration, l.MaxIterations), loop.Duration(l.Elapsed),
			cost(l.Cost, l.CostKnown), report.Line(l.Activity, 40), report.Line(l.Title, 60),
		})
		for _, r := range l.Racers {
			rows = append(rows, []any{
				"  " + r.Agent, r.Run, r.Status, console.Of(r.Iteration, r.MaxIterations), "", cost(r.Cost, r.CostKnown), "", "",
			})
		}
	}
	if len(rows) > 0 {
		a.Table("TASK\tRUN\tSLOT\tITERATION\tELAPSED\tCOST\tDOES\tTITLE", rows, 0)
	}
}
