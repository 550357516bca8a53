package run

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

func settleCommand(a *command.App) *cobra.Command {
	choices := []delivery.Choice{delivery.Mine, delivery.Agents, delivery.Both, delivery.Edited}
	chosen := make([]bool, len(choices))
	cmd := command.Leaf("settle RUN [PATH]", "Choose what becomes of a file that you and the agent both changed",
		func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return command.Usage("settle needs a run, and a file to settle one: pawl settle RUN PATH --mine")
			}
			return nil
		},
		func(ctx context.Context, args []string) error {
			var choice delivery.Choice
			for i, is := range chosen {
				if is && choice != "" {
					return command.Usage("--%s and --%s exclude each other", choice, choices[i])
				} else if is {
					choice = choices[i]
				}
			}
			if (choice != "") != (len(args) == 2) {
				return command.Usage("a file and a choice belong together: pawl settle %s PATH --mine, --agent, --both or --edit",
					args[0])
			}
			return a.WithRun(ctx, args[0], func(p *action.Operator, r store.Run) error {
				if choice == "" {
					return showConflicts(ctx, a, p, r)
				}
				return settle(ctx, a, p, r, args[1], choice)
			})
		})
	for i, use := range []string{"keep your file", "take the agent's file", "take the lines of both, yours first",
		"write the file in your editor, from both sides"} {
		cmd.Flags().BoolVar(&chosen[i], string(choices[i]), false, use)
	}
	return cmd
}

// showConflicts prints both sides of each file.
func showConflicts(ctx context.Context, a *command.App, p *action.Operator, r store.Run) error {
	all, err := p.Conflicts(ctx, r)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.Document(all)
	}
	open := 0
	for _, c := range all {
		switch {
		case c.Settled != nil:
			a.Result("%s: settled\n", report.Line(c.Path, 300))
			continue
		case c.Text == "":
			a.Result("%s: %s\n", report.Line(c.Path, 300), c.Why)
		default:
			a.Result("%s:\n", report.Line(c.Path, 300))
			for line := range strings.Lines(c.Text) {
				a.Result("%s\n", console.Printable(strings.TrimRight(line, "\r\n")))
			}
		}
		open++
	}
	if open == 0 {
		a.Say("Nothing of run %s has to be settled. Go on with: pawl resume %s", r.ID, r.ID)
		return nil
	}
	a.Say("Choose for each: pawl settle %s PATH --mine, --agent, --both or --edit. Then: pawl resume %s", r.ID, r.ID)
	return nil
}

// settle stores what the person chose.
func settle(ctx context.Context, a *command.App, p *action.Operator, r store.Run, path string, choice delivery.Choice,
) error {
	left, err := p.SettleConflict(ctx, r, path, choice,
		func(text []byte) ([]byte, error) { return edit(ctx, a, path, text) })
	if err != nil {
		return err
	}
	if left > 0 {
		a.Say("%s is settled; %s left: pawl settle %s", path, fault.Numbered(left, "file"), r.ID)
		return nil
	}
	a.Say("%s is settled. Go on with: pawl resume %s", path, r.ID)
	return nil
}

// edit has the person write a text in their editor.
func edit(ctx context.Context, a *command.App, path string, text []byte) ([]byte, error) {
	dir, err := os.MkdirTemp("", "pawl-settle-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, filepath.Base(path))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	if err := a.Edit(ctx, file); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}
