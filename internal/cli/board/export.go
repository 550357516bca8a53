package board

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/store"
)

// exported is a case as pawl case add -f reads it.
type exported struct {
	Ref         string       `json:"ref"`
	Title       string       `json:"title"`
	Description string       `json:"description,omitempty"`
	Acceptance  []string     `json:"acceptance,omitempty"`
	Needs       []string     `json:"needs,omitempty"`
	Tags        []string     `json:"tags,omitempty"`
	Priority    int          `json:"priority,omitempty"`
	Parent      string       `json:"parent,omitempty"`
	Type        board.Type   `json:"type"`
	Status      board.Status `json:"status"`
}

func caseExportCommand(a *command.App) *cobra.Command {
	return command.Leaf("export", "Print the board as JSON lines, which pawl case add -f reads", command.AtMost(0),
		func(ctx context.Context, _ []string) error {
			return a.WithOperator(ctx, func(p *action.Operator) error { return exportCases(ctx, a, p) })
		})
}

func exportCases(ctx context.Context, a *command.App, p *action.Operator) error {
	all, err := p.Store.Cases(ctx, store.CaseFilter{})
	if err != nil {
		return err
	}
	names := make(map[string]string, len(all))
	for _, c := range all {
		if names[c.ID] = c.Ref; c.Ref == "" {
			names[c.ID] = c.ID
		}
	}
	for _, listed := range all {
		c, err := p.Store.Case(ctx, listed.ID)
		if err != nil {
			return err
		}
		e := exported{
			names[c.ID], c.Title, c.Description, c.Acceptance, nil, c.Tags, c.Priority, names[c.Parent], c.Type, c.Status,
		}
		for _, need := range c.Needs {
			e.Needs = append(e.Needs, names[need])
		}
		switch c.Status { // what work has come to is this board's alone
		case board.Done, board.Blocked, board.Deferred:
		default:
			e.Status = board.Pending
		}
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		a.Result("%s\n", line)
	}
	return nil
}
