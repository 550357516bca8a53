package board

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/action/issues"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// listAtMost is the default for the number of cases in a table.
const listAtMost = 200

func caseListCommand(a *command.App) *cobra.Command {
	var f store.CaseFilter
	var statuses []string
	var all bool
	var cmd *cobra.Command
	cmd = command.Plain("list", "List the tasks that are not done; with --ready in the order in which they start",
		func(ctx context.Context) (err error) {
			for _, s := range statuses {
				if !slices.Contains(board.Statuses, board.Status(s)) {
					return command.Usage("--status %s: write one of %s", report.Line(s, 40),
						strings.Trim(fmt.Sprint(board.Statuses), "[]"))
				}
				f.Status = append(f.Status, board.Status(s))
			}
			if f.Parent != "" {
				if f.Parent, err = action.CaseID(f.Parent); err != nil {
					return err
				}
			}
			if f.Limit < 0 {
				return command.Usage("--limit %d: write 0 for all, or more", f.Limit)
			}
			if !cmd.Flags().Changed("limit") && !a.JSON {
				f.Limit = listAtMost
			}
			f.Open = !all && len(f.Status) == 0
			return a.WithOperator(ctx, func(p *action.Operator) error { return listCases(ctx, a, p.Store, f) })
		})
	flags := cmd.Flags()
	flags.StringSliceVarP(&statuses, "status", "s", nil, "only tasks with this `STATUS` (repeatable)")
	flags.BoolVarP(&f.Ready, "ready", "r", false, "only tasks that can be started, the next one first")
	flags.BoolVarP(&all, "all", "a", false, "also list done tasks")
	flags.StringVarP(&f.Tag, "tag", "t", "", "only tasks with this `TAG`")
	flags.StringVar(&f.Parent, "parent", "", "only tasks of the operation `ID`")
	flags.IntVar(&f.Limit, "limit", 0, "list at most `N`; 0 is all (default for a table: 200)")
	return cmd
}

func listCases(ctx context.Context, a *command.App, db *store.Store, f store.CaseFilter) error {
	limit := f.Limit
	if limit > 0 && !a.JSON {
		f.Limit++ // to see whether there are more
	}
	list, err := db.Cases(ctx, f)
	if err != nil {
		return err
	}
	if a.JSON {
		return command.Listing(a, list, "", "",
			func(c board.Case) command.Row { return command.Row{JSON: command.CaseJSON(&c)} })
	}
	counts, ready, err := db.CaseCounts(ctx)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		explainEmptyList(a, f, counts, ready)
		return nil
	}
	more := limit > 0 && len(list) > limit
	if more {
		list = list[:limit]
	}
	caseTable(a, list, f.Ready)
	if more {
		a.Say("There are more; --limit 0 lists all.")
	}
	a.Say("%s", formatTally(counts, ready))
	return nil
}

func explainEmptyList(a *command.App, f store.CaseFilter, counts map[board.Status]int, ready int) {
	narrowed := f.Ready || f.Tag != "" || f.Parent != ""
	switch {
	case len(counts) == 0:
		a.Say("The board is empty. Add a task with: pawl case add TITLE")
	case f.Open && !narrowed:
		a.Say("No open tasks; 'pawl case list --all' also lists done ones. %s", formatTally(counts, ready))
	default:
		a.Say("Nothing matches. %s", formatTally(counts, ready))
	}
}

// formatTally sums the board up in a line.
func formatTally(counts map[board.Status]int, ready int) string {
	all := 0
	var parts []string
	for _, s := range board.Statuses {
		n := counts[s]
		all += n
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
		if s == board.Pending && n > 0 {
			parts[len(parts)-1] += fmt.Sprintf(" (%d ready)", ready)
		}
	}
	return fault.Numbered(all, "task") + ": " + strings.Join(parts, ", ")
}

// caseTable prints cases as wide as the terminal is.
func caseTable(a *command.App, list []board.Case, ready bool) {
	head := "ID\tSTATUS\tPRI\tWAITS FOR\tTITLE"
	if ready {
		head = "ID\tPRI\tSCORE\tTITLE"
	}
	var rows [][]any
	for i := range list {
		c := &list[i]
		cells := []any{c.ID, action.State(c), c.Priority, waitsFor(c), caseTitle(c)}
		if ready {
			score, _ := board.Score(c)
			cells = []any{c.ID, c.Priority, score, caseTitle(c)}
		}
		rows = append(rows, cells)
	}
	a.Table(head, rows, console.Width(a.Stdout))
}

// caseTitle is a title in one line, with what it belongs to.
func caseTitle(c *board.Case) string {
	title := report.Line(c.Title, board.MaxTitle)
	if c.Type == board.Operation {
		title += fmt.Sprintf(" (%d of %d done)", c.ChildrenDone, c.Children)
	}
	if c.Parent != "" {
		title = c.Parent + ": " + title
	}
	return title
}

// waitsFor is the short reason why a case is not started.
func waitsFor(c *board.Case) string {
	switch {
	case c.Status == board.Done:
		return "-"
	case c.Unmet > 0:
		return fault.Numbered(c.Unmet, "need")
	case c.Held:
		return cmp.Or(c.Parent, "-")
	}
	return "-"
}

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

	Control *board.Control `json:"iteration_control,omitempty"`
	board.Checks
}

func caseExportCommand(a *command.App) *cobra.Command {
	return command.OnBoard(a, "export", "Print the board as JSON lines, which pawl case add -f reads",
		func(ctx context.Context, p *action.Operator) error { return exportCases(ctx, a, p) })
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
			names[c.ID], c.Title, c.Description, c.Acceptance, nil, c.Tags, c.Priority, names[c.Parent], c.Type,
			c.Status, c.Control, c.Checks,
		}
		e.Needs = append(e.Needs, lists.Each(c.Needs, func(need string) string { return names[need] })...)
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

func caseSyncCommand(a *command.App) *cobra.Command {
	return command.OnBoard(a, "sync", "Create tasks from the forge's issues, and report results there",
		func(ctx context.Context, p *action.Operator) error { return syncIssues(ctx, a, p) })
}

func syncIssues(ctx context.Context, a *command.App, p *action.Operator) error {
	c, repo, target, err := session.OpenRepository(ctx, a)
	if err != nil {
		return err
	}
	o, ok, err := session.Issues(ctx, a, c, repo, target, statedir.Of(c.Root, a.Env), nil)
	if err != nil {
		return err
	}
	if !ok {
		return command.Usage("no issues are chosen as tasks").
			Hint("Choose them in %s: forge: {issues: {label: pawl}}", c.Name())
	}
	defer o.Forge.Close()
	if about, err := o.Forge.About(ctx); err == nil { // what stands in the way, the sync says
		session.SayRenamed(a, o.Forge.Where, about.Name)
	}
	if err := issues.Sync(ctx, p, o); err != nil {
		return err
	}
	cases, err := p.Store.Cases(ctx, store.CaseFilter{Issues: true})
	a.Result("%s of the board came from issues with the label %s\n", fault.Numbered(len(cases), "task"), o.Label)
	return err
}
