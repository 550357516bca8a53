package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
)

func (a *app) caseStartCommand() *cobra.Command {
	return &cobra.Command{
		Use: "start ID...", Short: "Give a ready task the next free slot of the autopilot that runs",
		Args: someIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPerson(cmd.Context(), func(p *action.Operator) error {
				return a.eachCase(args, func(id string) error { return p.StartTask(cmd.Context(), id) })
			})
		},
	}
}

func (a *app) caseExtendCommand() *cobra.Command {
	var iterations, timeout string
	cmd := &cobra.Command{
		Use: "extend ID", Short: "Give a task more iterations or time, also while it works; a timed-out one goes on",
		Example: "  pawl case extend 42 --max-iterations 80\n  pawl case extend 42 --timeout 1h",
		Args:    exactlyOne("the id of a task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := action.ReadLimits(iterations, timeout)
			if err != nil {
				return err
			}
			id, err := action.CaseID(args[0])
			if err != nil {
				return err
			}
			return a.withPerson(cmd.Context(), func(p *action.Operator) error { return a.done(p.Extend(cmd.Context(), id, l)) })
		},
	}
	cmd.Flags().StringVarP(&iterations, "max-iterations", "n", "", "allow `N` iterations in all")
	cmd.Flags().StringVar(&timeout, "timeout", "", "allow `DURATION` in all, waits aside")
	return cmd
}

// reviewCommands are what a person decides about verified work.
func (a *app) reviewCommands() []*cobra.Command {
	one := func(use, short, flag, doc string, needed bool, do func(p *action.Operator, ctx context.Context, id, text string) (action.Done, error)) *cobra.Command {
		var text string
		cmd := &cobra.Command{
			Use: use, Short: short, Args: someIDs,
			RunE: func(cmd *cobra.Command, args []string) error {
				if needed && text == "" {
					return usage("say what must change: pawl case %s --%s \"…\"", use, flag)
				}
				return a.withPerson(cmd.Context(), func(p *action.Operator) error {
					return a.eachCase(args, func(id string) error { return a.done(do(p, cmd.Context(), id, text)) })
				})
			},
		}
		if flag != "" {
			cmd.Flags().StringVarP(&text, flag, flag[:1], "", doc)
		}
		return cmd
	}
	return []*cobra.Command{
		one("approve ID...", "Let verified work that waits for your review land", "", "", false, (*action.Operator).Approve),
		one("redo ID...", "Send verified work back, with what must change", "feedback", "the `TEXT` goes into the next prompt", true, (*action.Operator).Redo),
		one("reject ID...", "Refuse verified work; the task is blocked", "why", "the `REASON`, kept in the history", false, (*action.Operator).Reject),
	}
}
