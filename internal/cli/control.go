package cli

import (
	"context"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

func (a *app) stopCommand() *cobra.Command {
	return &cobra.Command{
		Use: "stop RUN", Short: "Stop a run now; its agent is ended, its work is kept",
		Args: exactlyOne("a run or a procedure"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRun(cmd.Context(), args[0], func(st *sqlite.Store, r sqlite.Run) error { return a.stop(cmd.Context(), st, r) })
		},
	}
}

func (a *app) pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "pause RUN", Short: "Pause a run at the end of its iteration",
		Args: exactlyOne("a run or a procedure"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRun(cmd.Context(), args[0], func(st *sqlite.Store, r sqlite.Run) error { return a.pause(cmd.Context(), st, r) })
		},
	}
}

func (a *app) pause(ctx context.Context, st *sqlite.Store, r sqlite.Run) error {
	if !loop.Status(r.Status).Active() || !engine.Alive(r.Owner) {
		return usage("run %s does not run: it is %s", r.ID, r.Status)
	}
	if err := ask(ctx, st, r, sqlite.ControlPause, ""); err != nil {
		return err
	}
	a.say("Run %s pauses at the end of iteration %d. Resume with: pawl resume %s", r.ID, r.Iteration, r.Name)
	return nil
}

func ask(ctx context.Context, st *sqlite.Store, r sqlite.Run, kind, text string) error {
	if _, err := st.AddControl(ctx, sqlite.Control{Run: r.ID, Kind: kind, Text: text, At: time.Now()}); err != nil {
		return fault.Of(fault.Failed, err)
	}
	return nil
}

// stopWait is how long stop waits for the run to have ended: the agent's
// grace, and what comes after.
const stopWait = 30 * time.Second

// stop ends a run and waits until it has ended. A run whose pawl is gone is
// ended through its supervisor.
func (a *app) stop(ctx context.Context, st *sqlite.Store, r sqlite.Run) error {
	if !loop.Status(r.Status).Active() {
		return usage("run %s does not run: it is %s", r.ID, r.Status)
	}
	if !engine.Alive(r.Owner) {
		return a.stopUnattended(ctx, r)
	}
	if err := ask(ctx, st, r, sqlite.ControlStop, ""); err != nil {
		return err
	}
	deadline := time.NewTimer(stopWait)
	defer deadline.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for late := false; ; {
		now, err := st.Run(ctx, r.ID)
		if err != nil {
			return fault.Of(fault.Failed, err)
		}
		// A run that has come to rest still ends its supervisor; when its
		// process has gone too, nothing is left.
		rests := !loop.Status(now.Status).Active() && now.Owner.PID == 0
		if rests && (late || !engine.Alive(r.Owner)) {
			a.say("Run %s is %s after iteration %d. Resume with: pawl resume %s", r.ID, now.Status, now.Iteration, r.Name)
			return nil
		}
		if late {
			return usage("run %s was asked to stop %s ago and has not ended; process %d drives it", r.ID, stopWait, r.Owner.PID).
				Hint("See what it does: pawl logs %s -f", r.ID)
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			late = true
		}
	}
}

func (a *app) stopUnattended(ctx context.Context, r sqlite.Run) error {
	dir := filepath.Join(config.StateDir(r.Root, a.env), "runs", r.ID)
	if err := engine.EndUnattended(ctx, dir, r.ID); err != nil {
		return fault.Of(fault.Failed, err)
	}
	a.say("Nothing of run %s is left running. Go on with it: pawl resume %s", r.ID, r.Name)
	return nil
}
