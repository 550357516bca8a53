package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"reflect"
	"slices"
	"strings"
	"sync"
	texttemplate "text/template"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// Input has the data of a run from which a report is made.
type Input struct {
	Run, Name string
	Kind      string // "procedure", "task", "workflow" or "demo"
	Status    loop.Status
	Why       string
	StartedAt time.Time
	// Now is the time of the report.
	Now     time.Time
	State   loop.State
	Records []loop.Record
	Moments []Moment // oldest first
	// Executions are those of a workflow's steps, in the order of their beginning.
	Executions []Execution
	Task       board.Case // of the run; empty where it has none
	// Changes are the run's changes to the files; nil: not known.
	Changes *Changes
	Next    []Advice
	// Sandbox says what was enforced, Version which pawl made the report.
	Sandbox, Version string
}

// Advice is one thing that can be done next.
type Advice struct {
	What    string
	Command string // may be empty
}

// Changes are the differences between a run's first and last snapshot.
type Changes struct {
	Files          []File
	More           bool // there are others
	Added, Deleted int  // lines
}

// File is one changed file.
type File struct {
	Status string // "added", "modified", "deleted", "renamed", "changed"
	Path   string
	Times  int // iterations that changed it; 0 where that is not known
}

// Execution is one execution of a workflow's step, as it is stored.
type Execution struct {
	Step, Title string
	Kind        string // run, agent, procedure or ask
	Agent       string
	Status      string // running, success, failure, cancelled, interrupted, asking or refused
	Iteration   int
	Try         int // 1-based
	Alternative int // 1-based; 0 is the step's own work
	Optional    bool
	StartedAt   time.Time
	Elapsed     time.Duration
	Failure     string // its summary; "" for none
	Output      string // what it printed or said; its last line is shown
}

// MomentKind is the kind of a moment.
type MomentKind string

// The kinds.
const (
	Began      MomentKind = "began"
	Resumed    MomentKind = "resumed"
	Recovered  MomentKind = "recovered"
	Rested     MomentKind = "rested" // it ended, or is paused
	WaitBegan  MomentKind = "waiting"
	WaitEnded  MomentKind = "wait over"
	Chosen     MomentKind = "chosen" // of a strategy: Number, Attempt, Text is why
	Ended      MomentKind = "ended"  // an iteration
	Sign       MomentKind = "sign"   // of life: a step began or ended
	Asked      MomentKind = "asked"
	Answered   MomentKind = "answered"
	Warned     MomentKind = "warned"
	RolledBack MomentKind = "rolled back"
)

// Moment is one event of the run's journal.
type Moment struct {
	At              time.Time
	Kind            MomentKind
	Text            string
	Number, Attempt int
}

// Report is a run, ready for the templates. All texts, those of Input too, are
// one line without control characters, and none is escaped.
type Report struct {
	Input
	Agents     []string
	Cost       string // "unknown" where it is
	Iterations Count
	Times      Times
	Question   *loop.Question // nil without an open question
	Work       []Step         // of a workflow
	MoreWork   int            // steps that are not in Work
	StepCount  string         // "3 of 5 steps done", of a workflow
	Steps      []Iteration
	Proof      []Proof
	LeftOut    int       // iterations that are not in Steps
	Failures   []Failure // most frequent first
	Strategies []Strategy
	Notes      []Note
}

// Count is of iterations.
type Count struct {
	Done, Limit             int // Limit 0 is none
	Succeeded, Failed, Cuts int // Cuts are attempts that a provider cut off
}

// Times divides the duration of a run among its parts. Their sum is Wall.
type Times struct {
	// Stepped is true for a workflow: Agents is the time of its steps.
	Stepped bool
	// Going is true while an iteration is under way, also of a run that was left
	// in the middle of one: its time is part of Rest.
	Going                                     bool
	Wall, Agents, Gates, Reviews, Waits, Rest time.Duration
}

// Iteration is one attempt.
type Iteration struct {
	*loop.Record
	Label       string // "3", or "3.2" for its second attempt
	StrategyWhy string
}

// Step is a step of a workflow over the whole run, with its last execution.
type Step struct {
	Execution         // Status is in words
	Mark       string // one character
	Tone       Tone
	Runs       int
	Iterations string // in which it ran: "1, 3"
	Took       time.Duration
}

// Failure is the same failure of one or more iterations.
type Failure struct {
	*failure.Analysis
	Times int
	Where []string // labels of iterations
}

// Strategy is one that was in force.
type Strategy struct {
	Name                    string
	Used, Succeeded, Failed int
	Where                   []string // labels of iterations
	Took                    time.Duration
	Cost                    loop.MicroUSD
	CostKnown, CostPartial  bool
}

// Note is something that a person should know of the run's course.
type Note struct {
	At   time.Time
	Text string
	Warn bool
}

// Tone is the tone in which a word is shown.
type Tone string

// The tones.
const (
	Good  Tone = "good"
	Bad   Tone = "bad"
	Wait  Tone = "wait" // somebody or something is waited for
	Going Tone = "going"
	Plain Tone = "plain"
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
			"escape": func(v any) string { return escapeMarkdown(fmt.Sprint(v)) },
			"code":   func(v any) string { return codeSpanInCell(fmt.Sprint(v)) },
			"span":   codeSpan,
			"cell":   func(name string, data any) (string, error) { return renderCell(t, name, data) },
		}).Parse(markdownText))
	})
)

// functions are the functions of both templates.
var functions = template.FuncMap{
	"duration": loop.Duration,
	"stamp":    func(t time.Time) string { return t.Format("2006-01-02 15:04:05") },
	"short":    Short,
	"count":    fault.Numbered,
	"percent":  func(n int) string { return fmt.Sprintf("%d.%02d", n/100, n%100) },
	"round":    func(n int) int { return (n + 50) / 100 },
	"join":     strings.Join,
	"labels":   listLabels,
	"tone":     toneOfValue,
	"mark":     GateMark,
	"tests":    testsOfGate,
	"about":    noteOfGate,
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

// renderCell gives what a template writes, its lines one below the other in a table.
func renderCell(t *texttemplate.Template, name string, data any) (string, error) {
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

// escapeMarkdown makes prose of a text: nothing in it is markup, also inside of a
// table. A mention becomes none by a space without width, an address no link.
func escapeMarkdown(text string) string {
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
			if last && i < 10 && areDigits(runes[:i]) { // another
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

func areDigits(runes []rune) bool {
	return !slices.ContainsFunc(runes, func(c rune) bool { return c < '0' || c > '9' })
}

// codeSpan makes a code span of a text.
func codeSpan(text string) string {
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

// codeSpanInCell makes a code span for a table, where a pipe ends the cell also inside of
// one, and an escaped one is a pipe. A backslash before a pipe would take the
// escape's away.
func codeSpanInCell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(codeSpan(text), `\|`, `\ |`), "|", `\|`)
}
