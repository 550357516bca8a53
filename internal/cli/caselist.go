package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

// listAtMost is how many cases a table has when nobody says otherwise.
const listAtMost = 200

func (a *app) caseListCommand() *cobra.Command {
	var f sqlite.CaseFilter
	var statuses []string
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the board: what is not done; with --ready in the order of starting",
		Example: "  pawl case list --ready --limit 5\n  pawl case list --status blocked,failed\n  pawl case list --all --parent op-003 --json",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, s := range statuses {
				if !slices.Contains(board.Statuses, board.Status(s)) {
					return usage("--status %s: write one of %s", report.Line(s, 40), strings.Trim(fmt.Sprint(board.Statuses), "[]"))
				}
				f.Status = append(f.Status, board.Status(s))
			}
			if f.Parent != "" {
				id, err := action.CaseID(f.Parent)
				if err != nil {
					return err
				}
				f.Parent = id
			}
			if f.Limit < 0 {
				return usage("--limit %d: write 0 for all, or more", f.Limit)
			}
			if !cmd.Flags().Changed("limit") && !a.json {
				f.Limit = listAtMost
			}
			f.Open = !all && len(f.Status) == 0
			return a.withBoard(cmd.Context(), func(store *sqlite.Store) error { return a.listCases(cmd.Context(), store, f) })
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVarP(&statuses, "status", "s", nil, "only cases with this `STATUS` (repeatable)")
	flags.BoolVarP(&f.Ready, "ready", "r", false, "only tasks that can be started, the next one first")
	flags.BoolVarP(&all, "all", "a", false, "also what is done")
	flags.StringVarP(&f.Tag, "tag", "t", "", "only cases with this `TAG`")
	flags.StringVar(&f.Parent, "parent", "", "only what the operation `ID` holds")
	flags.IntVar(&f.Limit, "limit", 0, "at most `N`; 0 is all (a table has 200 when this is not given)")
	return cmd
}

func (a *app) listCases(ctx context.Context, store *sqlite.Store, f sqlite.CaseFilter) error {
	limit := f.Limit
	if limit > 0 && !a.json {
		f.Limit++ // to see whether there are more
	}
	list, err := store.Cases(ctx, f)
	if err != nil {
		return err
	}
	if a.json {
		for i := range list {
			if err := a.jsonLine(caseJSON(&list[i])); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		return a.sayNoCases(ctx, store, f)
	}
	more := limit > 0 && len(list) > limit
	if more {
		list = list[:limit]
	}
	a.caseTable(list, f.Ready)
	counts, ready, err := store.CaseCounts(ctx)
	if err != nil {
		return err
	}
	if more {
		a.say("There are more; --limit 0 lists all.")
	}
	a.say("%s", tally(counts, ready))
	return nil
}

// sayNoCases says why nothing was listed.
func (a *app) sayNoCases(ctx context.Context, store *sqlite.Store, f sqlite.CaseFilter) error {
	counts, ready, err := store.CaseCounts(ctx)
	if err != nil {
		return err
	}
	switch {
	case len(counts) == 0:
		a.say("The board is empty. Add a task with: pawl case add TITLE")
	case f.Open && !f.Ready && f.Tag == "" && f.Parent == "":
		a.say("Nothing is open; 'pawl case list --all' lists what is done. %s", tally(counts, ready))
	default:
		a.say("Nothing matches. %s", tally(counts, ready))
	}
	return nil
}

// tally sums the board up in a line.
func tally(counts map[board.Status]int, ready int) string {
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
	return count(all, "case") + ": " + strings.Join(parts, ", ")
}

// caseTable prints cases as wide as the terminal is.
func (a *app) caseTable(list []board.Case, ready bool) {
	head := []string{"ID", "STATUS", "PRI", "WAITS FOR", "TITLE"}
	if ready {
		head = []string{"ID", "PRI", "SCORE", "TITLE"}
	}
	rows := make([][]string, len(list))
	width := make([]int, len(head))
	for i := range head {
		width[i] = len(head[i])
	}
	for i := range list {
		c := &list[i]
		if ready {
			score, _ := board.Score(c)
			rows[i] = []string{c.ID, fmt.Sprint(c.Priority), fmt.Sprint(score)}
		} else {
			rows[i] = []string{c.ID, action.State(c), fmt.Sprint(c.Priority), waitsFor(c)}
		}
		rows[i] = append(rows[i], caseTitle(c))
		for j, cell := range rows[i] {
			width[j] = max(width[j], columns(cell))
		}
	}
	left := console.Width(a.stdout)
	for _, w := range width[:len(width)-1] {
		left -= w + 2
	}
	for _, row := range append([][]string{head}, rows...) {
		var b strings.Builder
		for j, cell := range row[:len(row)-1] {
			b.WriteString(cell + strings.Repeat(" ", width[j]-columns(cell)+2))
		}
		b.WriteString(fit(row[len(row)-1], max(left, 20)))
		a.result("%s\n", strings.TrimRight(b.String(), " "))
	}
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
		return count(c.Unmet, "need")
	case c.Held:
		return cmp.Or(c.Parent, "-")
	}
	return "-"
}

// fit cuts a text to so many columns of a terminal.
func fit(text string, most int) string {
	if columns(text) <= most {
		return text
	}
	n := 0
	for i, r := range text {
		if n += runeWidth(r); n > most-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// columns is how wide a terminal shows a text without control characters.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

// wide are the characters that take two columns: East Asian ones and emoji.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x231a, Hi: 0x231b, Stride: 1}, {Lo: 0x2e80, Hi: 0x303e, Stride: 1}, {Lo: 0x3041, Hi: 0xa4cf, Stride: 1},
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1}, {Lo: 0xf900, Hi: 0xfaff, Stride: 1}, {Lo: 0xfe30, Hi: 0xfe6f, Stride: 1}, {Lo: 0xff00, Hi: 0xff60, Stride: 1},
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1}, {Lo: 0x1f680, Hi: 0x1faff, Stride: 1}, {Lo: 0x20000, Hi: 0x3fffd, Stride: 1}},
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}
