package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/engine"
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
	cmd := leaf("ps", "List runs: those that run or wait for you; with -a all", atMost(0), func(ctx context.Context, _ []string) error {
		return a.withOperator(ctx, func(p *action.Operator) error { return a.ps(ctx, p, all) })
	})
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also list runs that have ended")
	return cmd
}

func (a *app) ps(ctx context.Context, p *action.Operator, all bool) error {
	runs, err := p.Store.Runs(ctx, sqlite.RunQuery{Root: p.Root, Active: !all})
	if err != nil {
		return err
	}
	none := "No runs going on; 'pawl ps -a' lists the ended ones. Start one with: pawl run NAME"
	if all {
		none = "No runs yet. Start one with: pawl run NAME"
	}
	return listing(a, runs, none, "RUN\tNAME\tSTATUS\tITERATION\tSTARTED\tWHY", func(r sqlite.Run) row {
		l := a.listRun(ctx, p.Root, r)
		return row{l, []any{l.Run, report.Line(l.Name, 40), l.Status, console.Of(l.Iteration, l.MaxIterations), minute(l.StartedAt), report.Line(l.Why, 60)}}
	})
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
