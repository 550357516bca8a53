package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

// caseCommand is the parent of all that a person does with the board.
func (a *app) caseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "case", Short: "The board: tasks and operations, what they need, which is next",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(
		a.caseAddCommand(), a.caseListCommand(), a.caseShowCommand(), a.caseEditCommand(), a.caseRemoveCommand(), a.caseCleanCommand(), a.caseRollbackCommand(),
		a.caseMoveCommand(board.Block, "Hold a case back; below a blocked operation nothing is started"),
		a.caseMoveCommand(board.Unblock, "Open a blocked case again"),
		a.caseMoveCommand(board.Defer, "Put a case off"),
		a.caseMoveCommand(board.Undefer, "Take up a case that was put off"),
		a.caseMoveCommand(board.Retry, "Try a failed, timed-out or blocked task again"),
	)
	cmd.AddCommand(a.caseStartCommand(), a.caseExtendCommand())
	cmd.AddCommand(a.reviewCommands()...)
	return cmd
}

// withBoard opens the database of the repository that the person is in.
func (a *app) withBoard(ctx context.Context, do func(*sqlite.Store) error) (err error) {
	store, _, err := a.store(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := store.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("cannot close the database: %v", cerr)
		}
	}()
	return action.Explain(do(store))
}

// caseMoveCommand is one command that changes the status of cases.
func (a *app) caseMoveCommand(verb board.Action, short string) *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use: string(verb) + " ID...", Short: short,
		Args: someIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPerson(cmd.Context(), func(p *action.Operator) error {
				return a.eachCase(args, func(id string) error { return a.done(p.Move(cmd.Context(), id, verb, why)) })
			})
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "the `REASON`, kept in the history")
	return cmd
}

func someIDs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("%s needs the id of a case: pawl case %s", cmd.CommandPath(), cmd.Use)
	}
	return nil
}

// withPerson opens the board for somebody who acts on it.
func (a *app) withPerson(ctx context.Context, do func(*action.Operator) error) error {
	root, err := config.FindRoot(a.dir)
	if err != nil {
		return fault.Of(fault.Refused, err)
	}
	return a.withBoard(ctx, func(store *sqlite.Store) error { return do(a.person(store, root)) })
}

// eachCase does something with each id. All are read before the first is
// changed; the first refusal ends it.
func (a *app) eachCase(args []string, do func(id string) error) error {
	ids := make([]string, len(args))
	for i, arg := range args {
		id, err := action.CaseID(arg)
		if err != nil {
			return err
		}
		ids[i] = id
	}
	for _, id := range ids {
		if err := do(id); err != nil {
			return err
		}
	}
	return nil
}

// sayCase prints a case that changed: its document with --json, else a line.
func (a *app) sayCase(c *board.Case, format string, args ...any) error {
	if !a.json {
		a.say(format, args...)
		return nil
	}
	return a.jsonLine(caseJSON(c))
}

func (a *app) jsonLine(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	a.result("%s\n", line)
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

func (a *app) caseRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rm ID...", Short: "Take cases off the board; their history stays",
		Args: someIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withBoard(cmd.Context(), func(store *sqlite.Store) error {
				return a.eachCase(args, func(id string) error {
					if err := store.RemoveCase(cmd.Context(), id, board.Person, time.Now()); err != nil {
						return err
					}
					if a.json {
						return a.jsonLine(map[string]string{"removed": id})
					}
					a.say("%s is removed.", id)
					return nil
				})
			})
		},
	}
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
