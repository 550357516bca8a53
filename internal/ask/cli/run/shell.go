package run

import (
	"context"
	"fmt"
	"os"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// shellIn runs a command, or a shell, in the private workspace of a run that rests.
func shellIn(ctx context.Context, a *command.App, p *action.Operator, r store.Run, argv []string) error {
	id := action.SetupOf(r).Private
	c, err := a.Load(nil)
	if err != nil {
		return err
	}
	clones, err := a.Pool(ctx, c, p.Store)
	if err != nil {
		return err
	}
	found, ok, err := clones.Find(ctx, id)
	if err != nil {
		return err
	}
	if _, serr := os.Stat(found.Root); id == "" || !ok || serr != nil {
		return fault.Refuse("run %s has no workspace here any more", r.ID).
			Hint("See what it did: pawl show %s --diff", r.ID)
	}
	if len(argv) == 0 {
		argv = []string{session.ShellOf(a)}
	}
	job, policy, err := session.Shell(ctx, a, c, board.Case{}, found, argv)
	if err != nil {
		return fmt.Errorf("cannot open the workspace of run %s: %w", r.ID, err)
	}
	a.Say("Note: this is the private workspace of run %s; what you change here is the run's.", r.ID)
	return session.RunJob(ctx, a, job, policy)
}
