package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/report"
)

const (
	shownItems   = 8 // without -v
	shownMessage = 5 // lines of one item's message, without -v
	widest       = 110
)

var patternWords = map[string]string{
	failure.RepeatedIdentical:  "the same failure again",
	failure.AlternatingErrors:  "another class of failure every time",
	failure.ConsistentFailure:  "the same class of failure in other forms",
	failure.OscillationPattern: "two failures that take turns",
}

var kindWords = map[failure.Kind]string{
	failure.Transient: "the same again may work",
	failure.Work:      "something has to be changed",
	failure.Permanent: "a person has to act",
}

// explanation says it to a person.
func explanation(a *command.App, x explained, now time.Time) string {
	if !x.failed {
		return a.Painted("32", "No failure is found in it.") + "\n"
	}
	p := &page{width: min(console.Width(a.Stdout), widest), all: a.Verbose}
	p.WriteString(title(a, x))
	p.facts(x, now)
	p.items(x)
	if len(x.Actions) > 0 {
		p.WriteString("\nWhat to do\n")
	}
	for i, act := range x.Actions {
		mark := fmt.Sprintf("  %d. ", i+1)
		p.text(mark, strings.Repeat(" ", len(mark)), report.Line(act, 400))
	}
	return p.String()
}

// title is the class, and below it the summary without the class.
func title(a *command.App, x explained) string {
	color := "31"
	if x.Kind == failure.Transient {
		color = "33"
	}
	what := strings.ReplaceAll(string(x.Class), "_", " ")
	rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(report.Line(x.Summary, 300), what), ":"))
	if x.Class == failure.Unknown {
		what = "no known cause"
	}
	title := a.Painted(color, strings.ToUpper(what[:1])+what[1:]) + "\n"
	if rest != "" {
		title += "  " + rest + "\n"
	}
	return title
}

// page is a text for a terminal of a width.
type page struct {
	strings.Builder
	width int
	all   bool // also what is many
}

// text writes s behind a mark, its further lines behind next.
func (p *page) text(mark, next, s string) {
	lines := ansi.Wrap(s, max(20, p.width-len(next)), "")
	p.WriteString(mark + strings.ReplaceAll(lines, "\n", "\n"+next) + "\n")
}

func (p *page) facts(x explained, now time.Time) {
	fact := func(name, value string) { fmt.Fprintf(p, "  %-12s%s\n", name, value) }
	p.WriteString("\n")
	fact("class", string(x.Class))
	fact("kind", string(x.Kind)+": "+kindWords[x.Kind])
	switch {
	case x.Transient:
		fact("try again", "yes: the same again may work")
	case !x.WaitUntil.IsZero():
		fact("try again", "not before the wait is over")
	default:
		fact("try again", "no: the same again ends the same")
	}
	fact("severity", string(x.Severity))
	if !x.WaitUntil.IsZero() {
		fact("wait", fmt.Sprintf("until %s (%s)", x.WaitUntil.In(now.Location()).Format("Mon 15:04:05"),
			x.WaitUntil.Sub(now).Round(time.Second)))
	}
	if x.Exit != nil {
		fact("exit", fmt.Sprintf("%d, from %s", *x.Exit, x.exitFrom))
	}
	if t := x.Tests; t != nil {
		fact("tests", fmt.Sprintf("%s: %d failed, %d passed, %d skipped", t.Runner, t.Failed, t.Passed, t.Skipped))
	}
	if x.Pattern != "" {
		fact("pattern", x.Pattern+": "+patternWords[x.Pattern])
	}
	fact("fingerprint", x.Fingerprint)
}

// items lists where it failed, with the messages.
func (p *page) items(x explained) {
	places := false
	for _, i := range x.Items {
		places = places || i.File != "" || i.Test != ""
	}
	switch {
	case places:
		p.WriteString("\nWhere\n")
	case len(x.Items) > 0:
		p.WriteString("\nLines that tell most\n")
	}
	for i, it := range x.Items {
		if i == shownItems && !p.all {
			fmt.Fprintf(p, "  … and %d more (-v shows them)\n", len(x.Items)-i)
			break
		}
		p.item(it)
	}
	if places && x.Telling != "" && p.all {
		p.WriteString("\nLines that tell most\n")
		p.text("  ", "  ", command.CleanLines(x.Telling, 2000))
	}
}

func (p *page) item(it failure.Item) {
	at := report.Line(it.File, 200)
	for _, n := range []int{it.Line, it.Column} {
		if n > 0 {
			at += fmt.Sprintf(":%d", n)
		}
	}
	indent := "  "
	if where := strings.TrimSpace(at + "  " + report.Line(it.Test, 200)); where != "" {
		p.WriteString("  " + strings.TrimLeft(where, ":") + "\n")
		indent = "      "
	}
	lines := strings.Split(command.CleanLines(it.Message, 400), "\n")
	if len(lines) > shownMessage && !p.all {
		lines = append(lines[:shownMessage], "…")
	}
	for _, l := range lines {
		if l != "" {
			p.text(indent, indent, l)
		}
	}
	if it.Compares(strings.Join(lines, "\n")) {
		fmt.Fprintf(p, "      expected %s\n      received %s\n", report.Line(it.Expected, 200), report.Line(it.Received, 200))
	}
}
