package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/pawl-dev/pawl/internal/report"
)

// This file is how commands print: tables, JSON, times and counts.

// row is one entry of a listing: what --json prints of it, and its cells.
type row struct {
	json  any
	cells []any
}

// listing prints a list as a table below its header, or with --json as a line
// for each entry. none is said instead of an empty table.
func listing[T any](a *app, list []T, none, header string, show func(T) row) error {
	if len(list) == 0 && !a.json {
		a.say("%s", none)
		return nil
	}
	rows := [][]any{}
	for _, one := range list {
		r := show(one)
		if !a.json {
			rows = append(rows, r.cells)
		} else if err := a.jsonLine(r.json); err != nil {
			return err
		}
	}
	if !a.json {
		a.table(header, rows, 0)
	}
	return nil
}

// table prints rows in aligned columns. The header's names have tabs between
// them; "" is none. Where width is not 0 the last column is cut to it.
func (a *app) table(header string, rows [][]any, width int) {
	var lines [][]string
	if header != "" {
		lines = append(lines, strings.Split(header, "\t"))
	}
	for _, r := range rows {
		cells := make([]string, len(r))
		for i, c := range r {
			cells[i] = fmt.Sprint(c)
		}
		lines = append(lines, cells)
	}
	var wide []int
	left := width
	for _, l := range lines {
		for i, c := range l[:len(l)-1] {
			if i == len(wide) {
				wide = append(wide, 0)
			}
			wide[i] = max(wide[i], ansi.StringWidth(c))
		}
	}
	for _, w := range wide {
		left -= w + 2
	}
	for _, l := range lines {
		var b strings.Builder
		for i, c := range l[:len(l)-1] {
			b.WriteString(c + strings.Repeat(" ", wide[i]+2-ansi.StringWidth(c)))
		}
		last := l[len(l)-1]
		if width > 0 {
			last = ansi.Truncate(last, max(left, 20), "…")
		}
		a.result("%s\n", strings.TrimRight(b.String()+last, " "))
	}
}

// jsonLine prints v as one line of JSON.
func (a *app) jsonLine(v any) error {
	line, err := json.Marshal(v)
	if err == nil {
		a.result("%s\n", line)
	}
	return err
}

// document prints v as one indented JSON document.
func (a *app) document(v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		a.result("%s\n", data)
	}
	return err
}

// minute shows a time in the listings' way.
func minute(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// aside is a text that may be missing, in brackets.
func aside(text string) string {
	if text == "" {
		return ""
	}
	return " (" + report.Line(text, 200) + ")"
}

// cleanLines is [report.Line] for each line of a text.
func cleanLines(text string, limit int) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = report.Line(l, limit)
	}
	return strings.Join(lines, "\n")
}
