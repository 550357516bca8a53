package run

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/do/retention"
)

func gcCommand(a *command.App) *cobra.Command {
	var dry bool
	cmd := command.Leaf("gc", "Remove what is over: old runs, their output, old events", command.AtMost(0),
		func(ctx context.Context, _ []string) error { return gc(ctx, a, dry) })
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would be removed")
	return cmd
}

func gc(ctx context.Context, a *command.App, dry bool) error {
	c, err := a.Load(nil)
	if err != nil {
		return err
	}
	return a.WithOperator(ctx, func(p *action.Operator) error {
		o, err := command.Retention(ctx, c, config.StateDir(c.Root, a.Env), p.Store)
		if err != nil {
			return err
		}
		o.Dry = dry
		r, err := retention.Sweep(ctx, o)
		if a.JSON {
			return errors.Join(a.JSONLine(r), err)
		}
		verb := "Removed"
		if dry {
			verb = "Would remove"
		}
		a.Result("%s %s and the output of %s (%.1f MB), %s and %s.\n", verb, fault.Numbered(r.Runs, "run"),
			fault.Numbered(r.Outputs, "iteration"), float64(r.Bytes)/1e6, fault.Numbered(r.Events, "event"),
			fault.Numbered(r.Refs, "ref"))
		if r.Broken > 0 {
			a.Result("Removed %s of pawl's own that led to nothing\n", fault.Numbered(r.Broken, "ref"))
		}
		if r.Packed > 0 {
			a.Result("%s loose objects: %d\n", map[bool]string{false: "Packed", true: "Would pack"}[dry], r.Packed)
		}
		return err
	})
}
