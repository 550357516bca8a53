package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/loop"
)

//go:embed page.html
var pageText string

// page is parsed when the first page is written: start time counts.
var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"duration": loop.Duration,
		"stamp":    stamp,
		"short":    short,
		"count":    numbered,
		"percent":  func(n int) string { return fmt.Sprintf("%d.%02d", n/100, n%100) },
		"inc":      func(n int) int { return n + 1 },
		"join":     strings.Join,
		"labels":   func(list []string) string { return strings.Join(list, ", ") },
	}).Parse(pageText))
})

// HTML is the report as one page that needs nothing else. The template escapes
// all texts for the place where they stand.
func (r *Report) HTML() (string, error) {
	var b strings.Builder
	if err := page().Execute(&b, r); err != nil {
		return "", fmt.Errorf("cannot write the page: %v", err)
	}
	return b.String(), nil
}

// Title is the page's.
func (r *Report) Title() string { return r.Name + ": " + r.Status }

// Tokens are both counts.
func (r *Report) Tokens() string { return r.tokens() }

// Skipped is true before the step at which rows are left out.
func (r *Report) Skipped(i int) bool { return r.LeftOut > 0 && i == r.LeftAfter }

// Skipped is true before the row at which others are left out.
func (t Timeline) Skipped(i int) bool { return t.LeftOut > 0 && i == t.LeftAfter }

// Sign is the change as one character.
func (f File) Sign() string {
	switch f.Status {
	case "added":
		return "+"
	case "deleted":
		return "−"
	case "renamed":
		return "→"
	}
	return "~"
}

// About is what stands behind a gate's name.
func (g Gate) About() string {
	var parts []string
	if g.Took > 0 {
		parts = append(parts, loop.Duration(g.Took))
	}
	if g.Status != string(loop.GatePassed) && g.Status != string(loop.GateFailed) {
		parts = append(parts, g.Status)
	}
	if g.Optional {
		parts = append(parts, "optional")
	}
	if g.Note != "" {
		parts = append(parts, g.Note)
	}
	return strings.Join(parts, ", ")
}

// Text is the tick's time in as few signs as it takes.
func (t Tick) Text() string {
	if t.At > 0 && t.At%time.Second != 0 {
		return loop.Duration(t.At)
	}
	text := t.At.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Stepped is true when rows are steps.
func (t Timeline) Stepped() bool {
	return slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Step })
}
