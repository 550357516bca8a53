package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/workspace/pool"
)

// caseAction changes a case. text is the words that a flag brings.
type caseAction = func(p *action.Operator, ctx context.Context, id, text string) (action.Done, error)

// caseActions are the commands that do one thing to each of some cases.
var caseActions = []struct {
	verb, short string
	flag, doc   string // of the words, if any
	needed      bool   // without the words there is nothing to do
	do          caseAction
}{
	{verb: "block", short: "Hold a case back; below a blocked operation nothing is started", flag: "why", do: move(board.Block)},
	{verb: "unblock", short: "Open a blocked case again", flag: "why", do: move(board.Unblock)},
	{verb: "defer", short: "Put a case off", flag: "why", do: move(board.Defer)},
	{verb: "undefer", short: "Take up a case that was put off", flag: "why", do: move(board.Undefer)},
	{verb: "retry", short: "Try a failed, timed-out or blocked task again", flag: "why", do: move(board.Retry)},
	{verb: "start", short: "Give a ready task the next free slot of the autopilot that runs", do: startTask},
	{verb: "approve", short: "Let verified work that waits for your review land", do: (*action.Operator).Approve},
	{verb: "redo", short: "Send verified work back, with what must change", flag: "feedback", doc: "the `TEXT` goes into the next prompt",
		needed: true, do: (*action.Operator).Redo},
	{verb: "reject", short: "Refuse verified work; the task is blocked", flag: "why", doc: "the `REASON`, kept in the history",
		do: (*action.Operator).Reject},
}

func move(to board.Action) caseAction {
	return func(p *action.Operator, ctx context.Context, id, why string) (action.Done, error) {
		return p.Move(ctx, id, to, why)
	}
}

func startTask(p *action.Operator, ctx context.Context, id, _ string) (action.Done, error) {
	return p.StartTask(ctx, id)
}

// changeCase does what the command of a verb does with a case.
func changeCase(ctx context.Context, p *action.Operator, verb, id, text string) (action.Done, error) {
	for _, c := range caseActions {
		if c.verb == verb {
			return c.do(p, ctx, id, text)
		}
	}
	return action.Done{}, fmt.Errorf("nothing is called %q that is done to a case", verb)
}

// caseCommand is the parent of all that a person does with the board.
func (a *app) caseCommand() *cobra.Command {
	cmd := group("case", "The board: tasks and operations, what they need, which is next", nil,
		a.caseAddCommand(), a.caseListCommand(), a.caseShowCommand(), a.caseEditCommand(), a.caseRemoveCommand(),
		a.caseCleanCommand(), a.caseRollbackCommand(), a.caseExtendCommand())
	for i := range caseActions {
		cmd.AddCommand(a.caseActionCommand(i))
	}
	return cmd
}

func (a *app) caseActionCommand(i int) *cobra.Command {
	c := caseActions[i]
	text := ""
	cmd := leaf(c.verb+" ID...", c.short, someIDs, func(ctx context.Context, args []string) error {
		if c.needed && text == "" {
			return usage("say what must change: pawl case %s ID... --%s \"…\"", c.verb, c.flag)
		}
		return a.withOperator(ctx, func(p *action.Operator) error {
			return eachCase(args, func(id string) error { return a.done(c.do(p, ctx, id, text)) })
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

func someIDs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("%s needs the id of a case: pawl case %s", cmd.CommandPath(), cmd.Use)
	}
	return nil
}

// caseIDs reads ids as a person writes them.
func caseIDs(args []string) ([]string, error) {
	ids := make([]string, len(args))
	for i, arg := range args {
		id, err := action.CaseID(arg)
		if err != nil {
			return nil, err
		}
		ids[i] = id
	}
	return ids, nil
}

// eachCase does something with each id. All are read before the first is
// changed; the first refusal ends it.
func eachCase(args []string, do func(id string) error) error {
	ids, err := caseIDs(args)
	for _, id := range ids {
		if err == nil {
			err = do(id)
		}
	}
	return err
}

// onCase is a command that does one thing with one case.
func (a *app) onCase(use, short, what string, do func(ctx context.Context, p *action.Operator, id string) error) *cobra.Command {
	return leaf(use, short, exactlyOne("the id of a "+what), func(ctx context.Context, args []string) error {
		return a.withOperator(ctx, func(p *action.Operator) error {
			return eachCase(args, func(id string) error { return do(ctx, p, id) })
		})
	})
}

func (a *app) caseExtendCommand() *cobra.Command {
	var iterations, timeout string
	cmd := a.onCase("extend ID", "Give a task more iterations or time, also while it works; a timed-out one goes on", "task",
		func(ctx context.Context, p *action.Operator, id string) error {
			l, err := action.ReadLimits(iterations, timeout)
			if err != nil {
				return err
			}
			return a.done(p.Extend(ctx, id, l))
		})
	cmd.Example = "  pawl case extend 42 --max-iterations 80\n  pawl case extend 42 --timeout 1h"
	cmd.Flags().StringVarP(&iterations, "max-iterations", "n", "", "allow `N` iterations in all")
	cmd.Flags().StringVar(&timeout, "timeout", "", "allow `DURATION` in all, waits aside")
	return cmd
}

func (a *app) caseRollbackCommand() *cobra.Command {
	var to action.BackTo
	cmd := leaf("rollback ID", "Take back the work of a task: its workspace as it began, or after an iteration; itself undoable",
		exactlyOne("the id of a task"), nil)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := action.CaseID(args[0])
		if err == nil {
			err = checkBackTo(cmd, to, "first")
		}
		if err != nil {
			return err
		}
		return a.withPool(cmd.Context(), func(p *action.Operator, clones *pool.Pool) error {
			return a.done(p.RollbackTask(cmd.Context(), clones, id, to))
		})
	}
	cmd.Long = "Put the workspace of a task back to the commit that it began at, or with --to N to the snapshot after\n" +
		"iteration N of its last run, and the task to pending. What was there before is kept on a ref: --undo gets it back.\n" +
		"Files that git ignores stay as they are."
	cmd.Example = "  pawl case rollback task-007\n  pawl case rollback 7 --to 3\n  pawl case rollback 7 --undo"
	cmd.Flags().IntVar(&to.N, "to", 0, "the iteration `N` after which the files are wanted; 0 is before the first")
	cmd.Flags().BoolVar(&to.Undo, "undo", false, "get back what was there before the last rollback")
	return cmd
}

func (a *app) caseRemoveCommand() *cobra.Command {
	return leaf("rm ID...", "Take cases off the board; their history stays", someIDs, func(ctx context.Context, args []string) error {
		return a.withOperator(ctx, func(p *action.Operator) error {
			return eachCase(args, func(id string) error {
				err := p.Store.RemoveCase(ctx, id, board.Person, time.Now())
				if err == nil && a.json {
					return a.jsonLine(map[string]string{"removed": id})
				} else if err == nil {
					a.say("%s is removed.", id)
				}
				return err
			})
		})
	})
}

// done prints a task that an action changed: its document with --json, else a line.
func (a *app) done(d action.Done, err error) error {
	if err != nil {
		return err
	}
	if a.json {
		return a.jsonLine(caseJSON(&d.Case))
	}
	a.say("%s", d.Text)
	return nil
}

// caseDocument is a case as `--json` shows it.
type caseDocument struct {
	board.Case
	Ready bool         `json:"ready"`
	Score int          `json:"score"`
	Parts []board.Part `json:"score_parts,omitempty"`
}

func caseJSON(c *board.Case) caseDocument {
	d := caseDocument{Case: *c, Ready: c.IsReady()}
	d.Score, d.Parts = board.Score(c)
	return d
}

// readText is a flag's text; "-" reads it from stdin.
func (a *app) readText(text string) (string, error) {
	if text != "-" {
		return text, nil
	}
	data, err := io.ReadAll(io.LimitReader(a.stdin, board.MaxDescription+1))
	if err != nil {
		return "", fmt.Errorf("cannot read stdin: %v", err)
	}
	return string(data), nil
}
