package trial

import (
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/report"
)

// Report is a trial as a person reads it, and as --json has it.
type Report struct {
	Tasks    []Task    `json:"tasks"`
	Results  []Result  `json:"results"`
	Pairs    []Pair    `json:"pairs"`
	Attempts []Attempt `json:"attempts"`
	Planned  int       `json:"planned"` // attempts, with those that were not made yet
	SpentUSD float64   `json:"spent_usd"`
}

// ReportFile is where the report of the last trial is, below the state folder of a repository.
const ReportFile = "trial/report.json"

// Build makes the report of attempts at tasks.
func Build(tasks []Task, attempts []Attempt, planned int) Report {
	r := Report{Tasks: tasks, Attempts: attempts, Planned: planned}
	r.Results, r.Pairs = Summarize(attempts), Compare(attempts)
	for _, of := range r.Results {
		r.SpentUSD += of.CostUSD
	}
	return r
}

// Missing says how many attempts are still to be made; "" for none.
func (r Report) Missing() string {
	if left := r.Planned - len(r.Attempts); left > 0 {
		return fmt.Sprintf("%d of %d attempts are not made yet.", left, r.Planned)
	}
	return ""
}

// PerSolved divides cost, time or iterations by the solved attempts, failed attempts included; "-" where none was solved.
func (r Result) PerSolved(what string) string {
	switch {
	case r.Solved == 0, what == "cost" && !r.CostKnown:
		return "-"
	case what == "cost":
		return fmt.Sprintf("$%.2f", r.CostUSD/float64(r.Solved))
	case what == "time":
		return fmt.Sprintf("%.0f s", r.Seconds/float64(r.Solved))
	}
	return fmt.Sprintf("%.1f", float64(r.Iterations)/float64(r.Solved))
}

// Percent writes a rate.
func Percent(rate float64) string { return fmt.Sprintf("%.0f %%", 100*rate) }

// columns of the table of results.
var columns = []string{"agent", "setting", "tasks", "solved", "rate", "95 % interval", "false completions", "cost",
	"time", "iterations"}

// cells are a result in these columns.
func (r Result) tableCells() []string {
	return []string{r.Agent, r.Setting, fmt.Sprint(r.Tasks), fmt.Sprintf("%d of %d", r.Solved, r.Attempts),
		Percent(r.Rate()), Percent(r.Low) + " to " + Percent(r.High), fmt.Sprint(r.False), r.PerSolved("cost"),
		r.PerSolved("time"), r.PerSolved("iterations")}
}

// Markdown writes the report so that it is read as it is in a terminal, too.
func (r Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Trial\n\n%s of the history of this repository, %s. %s\n\n",
		fault.Numbered(len(r.Tasks), "task"), fault.Numbered(len(r.Attempts), "attempt"),
		r.Missing())
	writeTable(&b, slices.Concat([][]string{columns}, lists.Each(r.Results, Result.tableCells)))
	b.WriteString(`
Solved: the tests of the commit are green on the agent's work. False completions: the agent said that it was done,
its gates were green, and these tests are red. Cost, time and iterations are those of each solved task, with what
failed attempts took.
`)
	if len(r.Pairs) > 0 {
		b.WriteString("\n## Compared on the same tasks\n\n")
	}
	for _, p := range r.Pairs {
		fmt.Fprintf(&b, "- %s\n", escapeCell(p.Words()))
	}
	rows := [][]string{{"agent", "setting", "strategy", "chosen in attempts", "of these solved"}}
	for _, of := range r.Results {
		for _, u := range of.Strategies {
			rows = append(rows, []string{of.Agent, of.Setting, u.Name, fmt.Sprint(u.Attempts), fmt.Sprint(u.Solved)})
		}
	}
	if len(rows) > 1 {
		b.WriteString("\n## Strategies\n\n")
		writeTable(&b, rows)
	}
	b.WriteString("\n## Tasks\n\n")
	rows = [][]string{{"commit", "files", "lines", "solved", "task"}}
	for _, t := range r.Tasks {
		rows = append(rows, []string{t.Commit[:min(10, len(t.Commit))], fmt.Sprint(t.Files), fmt.Sprint(t.Lines),
			r.solvedAt(t), report.Line(t.Title, 72)})
	}
	writeTable(&b, rows)
	return b.String()
}

// solvedAt counts the attempts at a task.
func (r Report) solvedAt(t Task) string {
	solved, all := 0, 0
	for _, a := range r.Attempts {
		if a.Task == t.Commit {
			solved, all = solved+oneIfTrue(a.Solved), all+1
		}
	}
	return fmt.Sprintf("%d of %d", solved, all)
}

func escapeCell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "`", "'", "\n", " ").Replace(report.Line(text, 400))
}

func writeTable(b *strings.Builder, rows [][]string) {
	wide := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			row[i] = escapeCell(cell)
			wide[i] = max(wide[i], utf8.RuneCountInString(row[i]))
		}
	}
	for n, row := range rows {
		for i, cell := range row {
			fmt.Fprintf(b, "| %-*s ", wide[i], cell)
		}
		b.WriteString("|\n")
		if n > 0 {
			continue
		}
		for _, w := range wide {
			b.WriteString("|" + strings.Repeat("-", w+2))
		}
		b.WriteString("|\n")
	}
}

//go:embed page.html
var pageText string

var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("trial").Funcs(template.FuncMap{
		"percent": Percent, "x": func(rate float64) string { return fmt.Sprintf("%.1f", 400*rate) },
		"cells": Result.tableCells, "short": func(id string) string { return id[:min(10, len(id))] },
		"solved": Report.solvedAt, "line": report.Line, "count": fault.Numbered,
	}).Parse(pageText))
})

// HTML writes the report as one page that loads nothing.
func (r Report) HTML() (string, error) {
	var b strings.Builder
	err := page().Execute(&b, struct {
		Report
		Columns []string
	}{r, columns})
	return b.String(), err
}
