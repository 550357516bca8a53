package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/schedule"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

func (a *app) askAutopilotCommand(kind, short string) *cobra.Command {
	return &cobra.Command{
		Use: kind, Short: short, Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.askAutopilot(cmd.Context(), kind, "") },
	}
}

func (a *app) autopilotModeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "mode auto|semi-auto", Short: "Switch who chooses tasks: the autopilot, or you with 'pawl case start'",
		Args: exactlyOne("a mode"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if m := schedule.Mode(args[0]); m != schedule.Auto && m != schedule.SemiAuto {
				return usage("unknown mode %q: write auto or semi-auto", args[0])
			}
			return a.askAutopilot(cmd.Context(), sqlite.AutopilotMode, args[0])
		},
	}
}

// askAutopilot asks the one that runs. A stop waits for its end.
func (a *app) askAutopilot(ctx context.Context, kind, text string) error {
	return a.withPerson(ctx, func(p *action.Operator) error { return p.AskAutopilot(ctx, kind, text, true) })
}

func (a *app) autopilotStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show what the autopilot does: slots, board, what needs you", Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, root, err := a.store(cmd.Context())
			if err != nil {
				return err
			}
			defer store.Close()
			v, err := autopilot.Status(cmd.Context(), store, root)
			if err != nil {
				return fault.Of(fault.Failed, err)
			}
			if a.json {
				data, err := json.MarshalIndent(v, "", "  ")
				if err != nil {
					return err
				}
				a.result("%s\n", data)
				return nil
			}
			return a.printAutopilot(v)
		},
	}
}

func (a *app) printAutopilot(v autopilot.View) error {
	switch {
	case v.Session == "":
		a.result("No autopilot has run here.\n")
	case v.Running:
		a.result("The autopilot is %s (%s), process %d, since %s%s\n", v.Phase, v.Mode, v.PID, minute(v.StartedAt), aside(v.Why))
	case v.Phase == string(schedule.Finished):
		a.result("The autopilot has ended, %s%s\n", minute(v.EndedAt), aside(v.Why))
	default:
		a.result("The autopilot is gone; 'pawl autopilot' puts in order what it left.\n")
	}
	if err := a.slotTable(v); err != nil {
		return err
	}
	a.result("Board:  ")
	for _, s := range board.Statuses {
		if n := v.Board[s]; n > 0 {
			a.result("%d %s  ", n, s)
		}
	}
	a.result("(%d ready)\n", v.Ready)
	t := v.Tally
	a.result("So far: %d complete, %d landed, %d failed, %d timed out, %d blocked\n", t.Completed, t.Landed, t.Failed, t.TimedOut, t.Blocked)
	printNeeds(v, func(format string, args ...any) { a.result(format+"\n", args...) })
	return nil
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
		line("  %s %s: %s%s", n.Case, n.What, report.Line(n.Title, 80), aside(n.Why))
		line("    %s", nextStep(n))
	}
}

// nextStep is what a person can do about an entry.
func nextStep(n autopilot.Need) string {
	switch {
	case n.What == board.Review:
		return fmt.Sprintf("pawl show %s --diff, then pawl case approve|redo|reject %s", n.Case, n.Case)
	case n.Run == "":
		return fmt.Sprintf("pawl case show %s, then pawl case retry %s", n.Case, n.Case)
	case n.What == board.Timeout:
		return fmt.Sprintf("pawl show %s, then pawl case extend %s --max-iterations N or --timeout D, or pawl case retry %s", n.Case, n.Case, n.Case)
	case n.What == board.Blocked:
		return fmt.Sprintf("pawl show %s, then pawl answer %s TEXT, or pawl case retry %s", n.Case, n.Case, n.Case)
	default:
		return fmt.Sprintf("pawl show %s, then pawl case retry %s", n.Case, n.Case)
	}
}

func (a *app) slotTable(v autopilot.View) error {
	if len(v.Slots) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "TASK\tRUN\tSLOT\tITERATION\tELAPSED\tCOST\tDOES\tTITLE")
	for _, l := range v.Slots {
		cost := "unknown"
		if l.CostKnown {
			cost = fmt.Sprint(l.Cost)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Case, l.Run, l.Phase, console.Of(l.Iteration, l.MaxIterations), loop.Duration(l.Elapsed), cost,
			report.Line(l.Activity, 40), report.Line(l.Title, 60))
	}
	return w.Flush()
}
