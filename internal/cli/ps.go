package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

// listed is one line of `ps --json`.
type listed struct {
	Run           string    `json:"run"`
	Kind          string    `json:"kind"`
	Name          string    `json:"name"`
	Status        string    `json:"status"`
	Why           string    `json:"why"`
	Iteration     int       `json:"iteration"`
	MaxIterations int       `json:"max_iterations"`
	StartedAt     time.Time `json:"started_at"`
	PID           int       `json:"pid"`
}

func (a *app) psCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "ps", Short: "List runs: those that run or wait for you; with -a all",
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.ps(cmd.Context(), all) },
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also list runs that have ended")
	return cmd
}

func (a *app) ps(ctx context.Context, all bool) error {
	store, root, err := a.store(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	runs, err := store.Runs(ctx, sqlite.Filter{Root: root, Active: !all})
	if err != nil {
		return fault.Of(fault.Failed, err)
	}
	list := make([]listed, len(runs))
	for i, r := range runs {
		list[i] = a.listRun(ctx, root, r)
	}
	if a.json {
		for _, l := range list {
			line, err := json.Marshal(l)
			if err != nil {
				return err
			}
			a.result("%s\n", line)
		}
		return nil
	}
	if len(list) == 0 {
		a.say("No runs%s. Start one with: pawl run NAME", map[bool]string{false: " going on; 'pawl ps -a' lists the ended ones", true: " yet"}[all])
		return nil
	}
	return a.table(list)
}

func (a *app) table(list []listed) error {
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "RUN\tNAME\tSTATUS\tITERATION\tSTARTED\tWHY")
	for _, l := range list {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", l.Run, report.Line(l.Name, 40), l.Status, console.Of(l.Iteration, l.MaxIterations),
			l.StartedAt.Local().Format("2006-01-02 15:04"), report.Line(l.Why, 60))
	}
	return w.Flush()
}

// listRun says how a run really is: one whose pawl died runs unattended for as
// long as its lease lasts, and is interrupted after that.
func (a *app) listRun(ctx context.Context, root string, r sqlite.Run) listed {
	l := listed{
		Run: r.ID, Kind: r.Kind, Name: r.Name, Status: r.Status, Why: r.Why, Iteration: r.Iteration, MaxIterations: r.MaxIterations,
		StartedAt: r.StartedAt, PID: r.Owner.PID,
	}
	if !loop.Status(r.Status).Active() || engine.Alive(r.Owner) {
		return l
	}
	l.PID = 0
	if left, ok := unattended(ctx, config.StateDir(root, a.env), r.ID); ok {
		l.Why = "unattended, ends in " + left
		return l
	}
	l.Status, l.Why = string(loop.Interrupted), "its pawl is gone; pawl resume "+r.Name
	return l
}
