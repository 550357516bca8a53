package run

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/autopilot/overview"
	"github.com/pawl-dev/pawl/internal/do/ratelimit"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// listed is one line of `ps --json`.
type listed struct {
	Run           string    `json:"run"`
	Kind          string    `json:"kind"`
	Name          string    `json:"name"`
	Work          string    `json:"work,omitempty"`
	Status        string    `json:"status"`
	Why           string    `json:"why"`
	Iteration     int       `json:"iteration"`
	MaxIterations int       `json:"max_iterations"`
	StartedAt     time.Time `json:"started_at"`
	PID           int       `json:"pid"`
	Host          string    `json:"host,omitempty"` // the machine that works on it, or did last
	Next          string    `json:"next,omitempty"` // the command for it; only in `ps`
	Asked         []saidRow `json:"asked,omitempty"`
}

func psCommand(a *command.App) *cobra.Command {
	var all bool
	cmd := command.OnBoard(a, "ps", "List runs that are working or waiting for you; with -a all runs",
		func(ctx context.Context, p *action.Operator) error { return listRuns(ctx, a, p, all) })
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also list runs that have ended")
	return cmd
}

func listRuns(ctx context.Context, a *command.App, p *action.Operator, all bool) error {
	runs, err := p.Store.Runs(ctx, store.RunQuery{Root: p.Root, Active: !all})
	if err != nil {
		return err
	}
	view, err := overview.Read(ctx, p.Store, p.Root)
	if err != nil {
		return err
	}
	needs := map[string]overview.Need{}
	for _, n := range view.NeedsYou {
		needs[n.Run] = n
	}
	if !all {
		runs = slices.DeleteFunc(runs, func(r store.Run) bool { return action.NeedsNoPerson(ctx, p.Store, r) })
		waiting, err := p.Undelivered(ctx)
		if err != nil {
			return err
		}
		runs = addTasksThatNeedYou(ctx, p, append(runs, waiting...), view.NeedsYou)
	}
	none := "No run is working or waiting; 'pawl ps -a' also lists ended runs. Start one with: pawl run NAME"
	if all {
		none = "No runs yet. Start one with: pawl run NAME"
	}
	head, isShared := "RUN\tNAME\tSTATUS\tITERATION\tSTARTED\tWHY", p.Store.BoardName() != ""
	if isShared {
		head = strings.Replace(head, "WHY", "MACHINE\tWHY", 1)
	}
	var commands []string
	err = command.Listing(a, runs, none, head, func(r store.Run) command.Row {
		l, next := listedRunOf(ctx, p, r)
		n := needs[r.ID]
		notDelivered, deliver := action.ReasonNotDelivered(ctx, r)
		l.Why = cmp.Or(n.Why, notDelivered, l.Why)
		l.Next = cmp.Or(n.NextCommand(), deliver, next, nextByStatus(r, loop.Status(l.Status)))
		started := command.Minute(l.StartedAt)
		if a.Columns() > 0 { // room for the words
			started = strings.TrimPrefix(started, time.Now().Format("2006-01-02 "))
		}
		cells := []any{l.Run, report.Line(r.Title(), 60), statusShown(l, n),
			console.Of(l.Iteration, l.MaxIterations), started}
		if isShared {
			cells = append(cells, cmp.Or(l.Host, "-"))
		}
		commands = append(commands, l.Next)
		return command.Row{JSON: l, Cells: append(cells, report.Line(l.Why, 100))}
	})
	if len(commands) > 0 && !all && !a.JSON {
		a.Result("Next:\n  %s\n", strings.Join(commands, "\n  "))
	}
	if plans, _ := ratelimit.NewStore(statedir.LimitsDir(a.Env)).Plans(nil, time.Now()); !a.JSON {
		if view.Held != "" {
			a.Result("The board waits: %s\n", report.Line(view.Held, 400))
		}
		for _, line := range append(view.Away, plans...) {
			a.Result("%s\n", report.Line(line, 400))
		}
	}
	return err
}

// addTasksThatNeedYou adds the last runs of tasks that wait for a person, where they are not among the runs.
func addTasksThatNeedYou(ctx context.Context, p *action.Operator, runs []store.Run, needs []overview.Need) []store.Run {
	for _, n := range needs {
		r, err := p.Store.Run(ctx, n.Run)
		if err == nil && !slices.ContainsFunc(runs, func(is store.Run) bool { return is.ID == r.ID }) {
			runs = append(runs, r)
		}
	}
	return runs
}

// statusShown returns the status of the run, or how its task waits after the run has ended.
func statusShown(l listed, n overview.Need) string {
	switch {
	case n.Parked:
		return "parked"
	case n.What == board.Review:
		return string(n.What)
	}
	return l.Status
}

// nextByStatus returns the command by which a person continues, or follows, a run whose task does not need them.
func nextByStatus(r store.Run, status loop.Status) string {
	switch asks := []loop.Status{loop.Pending, loop.Blocked, loop.Aborted}; {
	case status.Active():
		return "pawl logs " + r.ID + " -f"
	case r.Kind == string(loop.Task) && action.CanContinue(status):
		return "pawl autopilot"
	case slices.Contains(asks, status):
		return "pawl answer " + r.ID + " TEXT"
	case action.CanContinue(status):
		return "pawl resume " + r.ID
	}
	return "pawl show " + r.ID
}

// listedRunOf is a run as it really is, and the command that only this tells.
func listedRunOf(ctx context.Context, p *action.Operator, r store.Run) (l listed, next string) {
	r, next = p.AsIs(ctx, r)
	return listed{
		Run: r.ID, Kind: r.Kind, Name: r.Name, Work: r.Work, Status: r.Status, Why: r.Why, Iteration: r.Iteration,
		MaxIterations: r.MaxIterations, StartedAt: r.StartedAt, PID: r.Owner.PID, Host: r.Owner.Host,
	}, next
}
