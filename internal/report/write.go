package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"reflect"
	"strings"
	"sync"
	texttemplate "text/template"
	"time"

	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/loop"
)

// The templates are parsed when the first report is written: start time counts.
var (
	//go:embed page.html
	pageText string
	//go:embed page.md
	markdownText string

	page = sync.OnceValue(func() *template.Template {
		return template.Must(template.New("page").Funcs(functions).Parse(pageText))
	})
	markdown = sync.OnceValue(func() *texttemplate.Template {
		t := texttemplate.New("page").Funcs(functions)
		return texttemplate.Must(t.Funcs(texttemplate.FuncMap{
			"escape": func(v any) string { return escape(fmt.Sprint(v)) },
			"code":   func(v any) string { return code(fmt.Sprint(v)) },
			"span":   span,
			"cell":   func(name string, data any) (string, error) { return cell(t, name, data) },
		}).Parse(markdownText))
	})
)

// functions are what both templates call.
var functions = template.FuncMap{
	"duration": loop.Duration,
	"stamp":    func(t time.Time) string { return t.Format("2006-01-02 15:04:05") },
	"short":    Short,
	"count":    fault.Numbered,
	"percent":  func(n int) string { return fmt.Sprintf("%d.%02d", n/100, n%100) },
	"round":    func(n int) int { return (n + 50) / 100 },
	"join":     strings.Join,
	"labels":   labels,
	"tone":     tone,
	"mark":     GateMark,
	"tests":    tests,
	"about":    about,
	"item":     ItemLine,
	"inc":      func(n int) int { return n + 1 },
	// skippedStep is true for the iteration before which others are left out.
	"skippedStep": func(i, leftOut int) bool { return leftOut > 0 && i == headSteps },
	// first are the first n of a list, and over is how many others there are.
	"first": func(n int, list any) any {
		v := reflect.ValueOf(list)
		return v.Slice(0, min(n, v.Len())).Interface()
	},
	"over": func(n int, list any) int { return max(0, reflect.ValueOf(list).Len()-n) },
}

// HTML is the report as one page that needs nothing else. The template escapes
// all texts for the place where they stand.
func (r *Report) HTML() (string, error) {
	var b strings.Builder
	if err := page().Execute(&b, r); err != nil {
		return "", fmt.Errorf("cannot write the page: %v", err)
	}
	return b.String(), nil
}

// Markdown is the report in GitHub's dialect. Words of others are in code
// spans, or escaped, so that they make no markup, HTML, link or mention.
func (r *Report) Markdown() (string, error) {
	var b strings.Builder
	if err := markdown().Execute(&b, r); err != nil {
		return "", fmt.Errorf("cannot write the report: %v", err)
	}
	return b.String(), nil
}

// cell is what a template writes, its lines one below the other in a table.
func cell(t *texttemplate.Template, name string, data any) (string, error) {
	var b strings.Builder
	if err := t.ExecuteTemplate(&b, name, data); err != nil {
		return "", err
	}
	var lines []string
	for line := range strings.SplitSeq(b.String(), "\n") {
		if line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "<br>"), nil
}

// escape makes prose of a text: nothing in it is markup, also inside of a
// table. A mention becomes none by a space without width, an address no link.
func escape(text string) string {
	var b strings.Builder
	runes := []rune(Line(text, 4000))
	for i, c := range runes {
		switch c {
		case '\\', '`', '*', '_', '[', ']', '<', '>', '|', '~', '&', '$', '#', '{', '}', '!', '^', '=':
			b.WriteByte('\\')
		case '+', '-':
			if i == 0 { // a list
				b.WriteByte('\\')
			}
		case '.', ')':
			last := i+1 == len(runes) || runes[i+1] == ' '
			if last && i < 10 && digits(runes[:i]) { // another
				b.WriteByte('\\')
			}
		case ':': // of an address
			if i+1 < len(runes) && runes[i+1] != ' ' {
				b.WriteByte('\\')
			}
		}
		b.WriteRune(c)
		www := c == '.' && i >= 3 && strings.EqualFold(string(runes[i-3:i]), "www")
		if c == '@' || www {
			b.WriteRune('\u200b')
		}
	}
	return b.String()
}

func digits(runes []rune) bool {
	for _, c := range runes {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// span is a text in a code span.
func span(text string) string {
	text = Line(text, 4000)
	if text == "" {
		return ""
	}
	longest, now := 0, 0
	for _, c := range text {
		if c == '`' {
			now++
			longest = max(longest, now)
		} else {
			now = 0
		}
	}
	fence := strings.Repeat("`", longest+1)
	if longest > 0 {
		text = " " + text + " " // else they would join the fence
	}
	return fence + text + fence
}

// code is a code span for a table, where a pipe ends the cell also inside of
// one, and an escaped one is a pipe. A backslash before a pipe would take the
// escape's away.
func code(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(span(text), `\|`, `\ |`), "|", `\|`)
}
