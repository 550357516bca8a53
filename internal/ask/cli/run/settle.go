package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// This file is about the private workspace of a run: what both a person and an agent
// changed in it, and a shell there.

func settleCommand(a *command.App) *cobra.Command {
	cmd := command.Leaf("settle RUN [PATH mine|agent|both|edit]",
		"Show what both you and an agent changed, and choose whose it is", settleArgs,
		func(ctx context.Context, args []string) error {
			return a.WithRun(ctx, args[0], func(p *action.Operator, r store.Run) error {
				if len(args) == 1 {
					return showConflicts(ctx, a, p, r)
				}
				return settle(ctx, a, p, r, args[1], delivery.Choice(args[2]))
			})
		})
	command.TextOnly(cmd)
	return cmd
}

func settleArgs(_ *cobra.Command, args []string) error {
	if len(args) == 1 || len(args) == 3 {
		return nil
	}
	return command.Usage("settle needs a run, or a run, a path and whose it is: pawl settle RUN PATH mine|agent|both|edit")
}

// maxConflict bounds what is shown of a file in conflict, in bytes.
const maxConflict = 64 << 10

func showConflicts(ctx context.Context, a *command.App, p *action.Operator, r store.Run) error {
	all, err := p.Conflicts(ctx, r)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		a.Result("Nothing that you changed is in the way of run %s.\n", r.ID)
		return nil
	}
	for _, c := range all {
		a.Result("%s: %s\n", report.Line(c.Path, 300), c.State)
		if c.Settled == nil && c.Text != "" {
			for line := range strings.Lines(c.Text[:min(len(c.Text), maxConflict)]) {
				a.Result("  %s\n", console.Printable(strings.TrimRight(line, "\r\n")))
			}
		}
	}
	a.Say("Choose for each: pawl settle %s PATH mine, agent, both or edit. Then go on: pawl resume %s", r.ID, r.ID)
	return nil
}

func settle(ctx context.Context, a *command.App, p *action.Operator, r store.Run, path string, choice delivery.Choice,
) error {
	left, err := p.SettleConflict(ctx, r, path, choice, func(text []byte) ([]byte, error) {
		return editText(ctx, a, filepath.Base(path), text)
	})
	if err != nil {
		return err
	}
	if left > 0 {
		a.Say("%s is settled; %s to go: pawl settle %s", report.Line(path, 300), fault.Numbered(left, "conflict"), r.ID)
		return nil
	}
	a.Say("%s is settled, and no conflict is left. Go on: pawl resume %s", report.Line(path, 300), r.ID)
	return nil
}

// editText has a person edit a text in their editor.
func editText(ctx context.Context, a *command.App, name string, text []byte) (edited []byte, err error) {
	dir, err := os.MkdirTemp("", "pawl-settle-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	if err := a.Edit(ctx, file); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

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
