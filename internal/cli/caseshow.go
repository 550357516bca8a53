package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

func (a *app) caseShowCommand() *cobra.Command {
	return a.onCase("show ID", "Show a case: what it says, what it waits for, its history", "case",
		func(ctx context.Context, p *action.Operator, id string) error { return a.showCase(ctx, p.Store, id) })
}

// shownCase is `case show --json`.
type shownCase struct {
	caseDocument
	Dependents []string      `json:"dependents"`
	Workspace  *shownSpace   `json:"workspace,omitempty"`
	History    []board.Entry `json:"history"`
}

func (a *app) showCase(ctx context.Context, store *sqlite.Store, id string) error {
	history, err := store.CaseHistory(ctx, id)
	if err != nil {
		return err
	}
	c, err := store.Case(ctx, id)
	if n := len(history); errors.Is(err, sqlite.ErrNoCase) && n > 0 && history[n-1].Action == board.Remove {
		last := history[n-1]
		return usage("%s was removed on %s: %s", id, minute(last.At), report.Line(last.Why, 200)).Hint("List the board: pawl case list --all")
	}
	if err != nil {
		return err
	}
	dependents, err := store.Dependents(ctx, id)
	if err != nil {
		return err
	}
	space, err := caseSpace(ctx, store, id)
	if err != nil {
		return err
	}
	if a.json {
		return a.document(shownCase{caseJSON(&c), append([]string{}, dependents...), space, history})
	}
	needs := make([]string, len(c.Needs))
	for i, need := range c.Needs {
		n, err := store.Case(ctx, need)
		if err != nil {
			return err
		}
		needs[i] = fmt.Sprintf("%s (%s)", need, n.Status)
	}
	a.printCase(&c, needs, dependents)
	a.printSpace(space)
	a.printTexts(&c)
	a.printHistory(history)
	return nil
}

func (a *app) printCase(c *board.Case, needs, dependents []string) {
	a.result("%s  %s\n", c.ID, report.Line(c.Title, board.MaxTitle))
	a.result("  status      %s", action.State(c))
	if c.Why != "" {
		a.result(" (%s)", report.Line(c.Why, 300))
	}
	a.result("\n")
	row := func(name, value string) {
		if value != "" {
			a.result("  %-10s  %s\n", name, value)
		}
	}
	if c.Status == board.Pending && c.Type == board.Task {
		row("waits", c.NotReady())
	}
	if c.Type == board.Operation {
		row("holds", fmt.Sprintf("%s, %d done", console.Count(c.Children, "case"), c.ChildrenDone))
	} else {
		score, parts := board.Score(c)
		row("score", fmt.Sprintf("%d%s", score, board.Because(parts)))
	}
	row("priority", fmt.Sprint(c.Priority))
	row("parent", c.Parent)
	row("needs", someOf(needs))
	row("needed by", someOf(dependents))
	row("tags", report.Line(strings.Join(c.Tags, ", "), 1000))
	row("ref", report.Line(c.Ref, board.MaxRef))
	if c.Retries > 0 {
		row("retries", fmt.Sprint(c.Retries))
	}
	row("added", minute(c.CreatedAt))
}

func (a *app) printTexts(c *board.Case) {
	if c.Description != "" {
		a.result("\n")
		for line := range strings.SplitSeq(c.Description, "\n") {
			blanks := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
			a.result("  %s%s\n", strings.ReplaceAll(blanks, "\t", "    "), report.Line(line, 4000))
		}
	}
	if len(c.Acceptance) > 0 {
		a.result("\n  Done when\n")
	}
	for _, item := range c.Acceptance {
		a.result("  - %s\n", report.Line(item, 2000))
	}
}

// someOf lists ids, of many the first.
func someOf(ids []string) string {
	const most = 8
	if len(ids) <= most {
		return strings.Join(ids, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(ids[:most], ", "), len(ids)-most)
}

func (a *app) printHistory(history []board.Entry) {
	a.result("\n  History\n")
	for _, e := range history {
		what := string(e.Action)
		if e.To != "" && e.To != e.From {
			what += " → " + string(e.To)
		}
		a.result("  %s  %-18s  %-6s  %s\n", minute(e.At), what, e.By, report.Line(e.Why, 300))
	}
}
