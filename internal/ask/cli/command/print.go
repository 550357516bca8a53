package command

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/report"
)

// BranchName is a branch as people name it.
func BranchName(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }

// This file is how commands print: tables, JSON, times and counts.

// Row is one entry of a listing: what --json prints of it, and its cells.
type Row struct {
	JSON  any
	Cells []any
}

// Listing prints a list as a table below its header, or with --json as a line
// for each entry. none is printed instead of an empty table.
func Listing[T any](a *App, list []T, none, header string, show func(T) Row) error {
	if len(list) == 0 && !a.JSON {
		a.Say("%s", none)
		return nil
	}
	rows := [][]any{}
	for _, one := range list {
		r := show(one)
		if !a.JSON {
			rows = append(rows, r.Cells)
		} else if err := a.JSONLine(r.JSON); err != nil {
			return err
		}
	}
	if !a.JSON {
		a.Table(header, rows, a.Columns())
	}
	return nil
}

// Columns is the width of the terminal that results go to; 0 where they go elsewhere,
// and nothing is cut.
func (a *App) Columns() int {
	if !console.OnTerminal(a.Stdout) {
		return 0
	}
	return console.Width(a.Stdout)
}

// lastColumn is what the last column of a table should have, and the others what the widest
// and the last are never cut below.
const lastColumn, leastWidest, leastLast = 20, 16, 10

// narrowed takes from the widest of the columns what the last one lacks.
func narrowed(wide []int, width int) {
	left := width
	for _, w := range wide {
		left -= w + 2
	}
	if width == 0 || left >= lastColumn || len(wide) == 0 {
		return
	}
	widest := slices.Index(wide, slices.Max(wide))
	wide[widest] = max(min(wide[widest], leastWidest), wide[widest]-(lastColumn-left))
}

// Table prints rows in aligned columns. The header's names have tabs between
// them; "" is none. Where width is not 0 the last column and the widest are cut to it.
func (a *App) Table(header string, rows [][]any, width int) {
	var lines [][]string
	if header != "" {
		lines = append(lines, strings.Split(header, "\t"))
	}
	for _, r := range rows {
		cells := lists.Each(r, func(c any) string { return fmt.Sprint(c) })
		lines = append(lines, cells)
	}
	var wide []int
	for _, l := range lines {
		for i, c := range l[:len(l)-1] {
			if i == len(wide) {
				wide = append(wide, 0)
			}
			wide[i] = max(wide[i], ansi.StringWidth(c))
		}
	}
	narrowed(wide, width)
	left := width
	for _, w := range wide {
		left -= w + 2
	}
	for _, l := range lines {
		var b strings.Builder
		for i, c := range l[:len(l)-1] {
			c = ansi.Truncate(c, wide[i], "…")
			b.WriteString(c + strings.Repeat(" ", wide[i]+2-ansi.StringWidth(c)))
		}
		last := l[len(l)-1]
		if width > 0 {
			last = ansi.Truncate(last, max(left, leastLast), "…")
		}
		a.Result("%s\n", strings.TrimRight(b.String()+last, " "))
	}
}

// JSONLine prints v as one line of JSON.
func (a *App) JSONLine(v any) error {
	line, err := json.Marshal(v)
	if err == nil {
		a.Result("%s\n", line)
	}
	return err
}

// Document prints v as one indented JSON document.
func (a *App) Document(v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		a.Result("%s\n", data)
	}
	return err
}

// Minute shows a time in the listings' way.
func Minute(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// Aside is a text that may be missing, in brackets.
func Aside(text string) string {
	if text == "" {
		return ""
	}
	return " (" + report.Line(text, 200) + ")"
}

// CleanLines is [report.Line] for each line of a text.
func CleanLines(text string, limit int) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = report.Line(l, limit)
	}
	return strings.Join(lines, "\n")
}

// Bounds of the diff in an escalation: bytes, lines, and the time to make it.
// show --diff has all.
const (
	ShownDiff  = 16 << 10
	ShownLines = 40
	DiffBound  = 10 * time.Second
)

// Done prints a task that an action changed: its document with --json, else a line.
func (a *App) Done(d action.Done, err error) error {
	if err != nil {
		return err
	}
	if a.JSON {
		return a.JSONLine(CaseJSON(&d.Case))
	}
	a.Say("%s", d.Text)
	return nil
}

// CaseDocument is a case as `--json` shows it.
type CaseDocument struct {
	board.Case
	Ready bool         `json:"ready"`
	Score int          `json:"score"`
	Parts []board.Part `json:"score_parts,omitempty"`
}

// CaseJSON is a case as --json shows it.
func CaseJSON(c *board.Case) CaseDocument {
	d := CaseDocument{Case: *c, Ready: c.IsReady()}
	d.Score, d.Parts = board.Score(c)
	return d
}
