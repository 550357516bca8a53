// Package board has the commands of pawl case: flags become cases, cases become
// lines and JSON. What may become of a case is decided by internal/decide/board.
package board

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// caseActions are the commands that do one thing to each of some cases.
var caseActions = []struct {
	verb, short string
	flag, doc   string // of the words, if any
	needed      bool   // without the words there is nothing to do
}{
	{verb: "block", short: "Block a task; nothing starts below a blocked operation", flag: "why"},
	{verb: "unblock", short: "Unblock a task", flag: "why"},
	{verb: "defer", short: "Defer a task to later", flag: "why"},
	{verb: "undefer", short: "Make a deferred task pending again", flag: "why"},
	{verb: "retry", short: "Try a failed, timed-out or blocked task again", flag: "why"},
	{verb: "start", short: "Give a ready task the next free slot of the running autopilot"},
	{verb: "approve", short: "Approve verified work that waits for your review; it lands"},
	{verb: "redo", short: "Send verified work back, and say what must change", flag: "feedback",
		doc: "the `TEXT` goes into the next prompt", needed: true},
	{verb: "reject", short: "Refuse verified work; the task is blocked", flag: "why",
		doc: "the `REASON`, kept in the history"},
}

// Command is the parent of all that a person does with the board.
func Command(a *command.App) *cobra.Command {
	cmd := command.Group("case", "The board: tasks and operations, what they need, which is next", nil,
		caseAddCommand(a), caseListCommand(a), caseShowCommand(a), caseEditCommand(a), caseRemoveCommand(a),
		caseCleanCommand(a), caseRollbackCommand(a), caseExtendCommand(a),
		caseShellCommand(a), caseSyncCommand(a), caseExportCommand(a))
	cmd.Aliases = []string{"task"}
	for i := range caseActions {
		cmd.AddCommand(caseActionCommand(a, i))
	}
	return cmd
}

func caseActionCommand(a *command.App, i int) *cobra.Command {
	c := caseActions[i]
	text := ""
	cmd := command.Leaf(c.verb+" ID...", c.short, command.SomeIDs, func(ctx context.Context, args []string) error {
		if c.needed && text == "" {
			return command.Usage("say what must change: pawl case %s ID... --%s \"…\"", c.verb, c.flag)
		}
		return a.WithOperator(ctx, func(p *action.Operator) error {
			return forEachCase(ctx, p, args, func(id string) error { return a.Done(p.Change(ctx, c.verb, id, text)) })
		})
	})
	switch {
	case c.doc != "": // with a letter of its own
		cmd.Flags().StringVarP(&text, c.flag, c.flag[:1], "", c.doc)
	case c.flag != "":
		cmd.Flags().StringVar(&text, c.flag, "", "the `REASON`, kept in the history")
	}
	return cmd
}

// forEachCase does something with each case, by its id or its ref.
func forEachCase(ctx context.Context, p *action.Operator, args []string, do func(id string) error) error {
	ids, err := p.RefsToIDs(ctx, args)
	if err != nil {
		return err
	}
	return command.EachCase(ids, do)
}

// newCaseCommand is a command that does one thing with one case.
func newCaseCommand(a *command.App, use, short string,
	do func(ctx context.Context, p *action.Operator, id string) error) *cobra.Command {
	return command.Leaf(use, short, command.ExactlyOne("the id of a task"),
		func(ctx context.Context, args []string) error {
			return a.WithOperator(ctx, func(p *action.Operator) error {
				return forEachCase(ctx, p, args, func(id string) error { return do(ctx, p, id) })
			})
		})
}

func caseExtendCommand(a *command.App) *cobra.Command {
	var iterations, timeout string
	cmd := newCaseCommand(a, "extend ID",
		"Give a task more iterations or time, even while it works; continue a timed-out one",
		func(ctx context.Context, p *action.Operator, id string) error {
			l, err := action.ReadLimits(iterations, timeout)
			if err != nil {
				return err
			}
			return a.Done(p.Extend(ctx, id, l))
		})
	cmd.Flags().StringVarP(&iterations, "max-iterations", "n", "", "allow `N` iterations in all")
	cmd.Flags().StringVar(&timeout, "timeout", "", "allow `DURATION` in all, without waits")
	return cmd
}

func caseRollbackCommand(a *command.App) *cobra.Command {
	var to action.BackTo
	cmd := command.Leaf("rollback ID",
		"Put the workspace of a task back to its start, or to an iteration; this can be undone",
		command.ExactlyOne("the id of a task"), nil)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := action.CaseID(args[0])
		if err == nil {
			err = command.CheckBackTo(cmd, to, "first")
		}
		if err != nil {
			return err
		}
		return a.WithPool(cmd.Context(), func(p *action.Operator, clones *pool.Pool) error {
			return a.Done(p.RollbackTask(cmd.Context(), clones, id, to))
		})
	}
	cmd.Flags().IntVar(&to.N, "to", 0, "restore the files as they were after iteration `N`; 0 is before the first")
	cmd.Flags().BoolVar(&to.Undo, "undo", false, "bring back what was there before the last rollback")
	return cmd
}

func caseRemoveCommand(a *command.App) *cobra.Command {
	return command.Leaf("rm ID...", "Take tasks off the board; their history stays", command.SomeIDs,
		func(ctx context.Context, args []string) error {
			return a.WithOperator(ctx, func(p *action.Operator) error {
				return forEachCase(ctx, p, args, func(id string) error {
					err := p.RemoveTask(ctx, id)
					if err == nil && a.JSON {
						return a.JSONLine(map[string]string{"removed": id})
					} else if err == nil {
						a.Say("%s is removed.", id)
					}
					return err
				})
			})
		})
}

func caseCleanCommand(a *command.App) *cobra.Command {
	var dry bool
	cmd := command.Leaf("clean [ID...]",
		"Remove workspaces that are no longer needed; their work is saved under a ref", nil,
		func(ctx context.Context, args []string) error {
			ids, err := command.CaseIDs(args)
			if err != nil {
				return err
			}
			return a.WithPool(ctx, func(p *action.Operator, clones *pool.Pool) error {
				return cleanCases(ctx, a, p, clones, ids, dry)
			})
		})
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show what would be removed, and what would stay and why")
	return cmd
}

func cleanCases(ctx context.Context, a *command.App, p *action.Operator, clones *pool.Pool, ids []string,
	dry bool) error {
	all, err := p.Clean(ctx, clones, ids, dry)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !slices.ContainsFunc(all, func(v pool.Verdict) bool { return v.ID == id }) {
			if err := p.CleanElsewhere(ctx, id); err != nil {
				return err
			}
			a.Say("%s has no workspace.", id)
		}
	}
	stuck := 0
	var freed, stay int64
	for _, v := range all {
		if v.Remove {
			freed += v.Bytes
		} else {
			stay += v.Bytes
			if len(ids) > 0 {
				stuck++
			}
		}
		if err := sayVerdict(a, v, dry); err != nil {
			return err
		}
	}
	if len(ids) == 0 && len(all) == 0 {
		a.Say("There are no workspaces.")
	} else if len(all) > 0 {
		a.Say("%s %s; %s stay.", map[bool]string{true: "Would free", false: "Freed"}[dry], formatMegabytes(freed), formatMegabytes(stay))
	}
	if stuck > 0 {
		return fmt.Errorf("%s not removed",
			map[bool]string{true: "1 workspace was", false: fmt.Sprintf("%d workspaces were", stuck)}[stuck == 1])
	}
	return nil
}

// sayVerdict prints what is done with one workspace, and why.
func sayVerdict(a *command.App, v pool.Verdict, dry bool) error {
	if a.JSON {
		return a.JSONLine(v)
	}
	what, lost := "removed", "went with it"
	if dry {
		what, lost = "would go", "would go with it"
	}
	if !v.Remove {
		what = "stays"
	}
	a.Result("%-16s  %-8s  %8s  %s\n", v.ID, what, formatMegabytes(v.Bytes), report.Line(v.Reason, 400))
	if v.Ref != "" {
		a.Result("  its work is kept: %s\n", v.Ref)
	}
	if len(v.Lost) > 0 {
		a.Result("  %s, being ignored by git or too large: %s\n", lost, report.Line(report.Some(v.Lost, shownIDs), 900))
	}
	return nil
}

// formatMegabytes returns a size for a person.
func formatMegabytes(n int64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%d MB", n/1_000_000)
	case n > 0:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", max(float64(n)/1e6, 0.1)), ".0") + " MB"
	}
	return "0 MB"
}

func caseShellCommand(a *command.App) *cobra.Command {
	return command.OpensShell("shell ID",
		"Open a shell in the workspace of a task, in the sandbox that its agent has; or run COMMAND there",
		func(ctx context.Context, args []string) error {
			return a.WithOperator(ctx, func(p *action.Operator) error {
				id, err := action.CaseID(args[0])
				if err != nil {
					return err
				}
				return session.Shell(ctx, a, p, store.Run{Kind: "task", Name: id}, args[1:])
			})
		})
}
