package cli

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

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

// page is a text for a terminal of a width.
type page struct {
	strings.Builder
	width   int
	colored bool
}

// printExplanation says it to a person.
func (a *app) printExplanation(x explained, now time.Time) {
	p := &page{width: min(console.Width(a.stdout), widest), colored: a.colorsResult()}
	if !x.failed {
		p.paint("32", "No failure is found in it.\n")
		a.result("%s", p.String())
		return
	}
	p.title(x)
	p.facts(x, now)
	a.printItems(p, x.Items)
	if places(x.Items) && x.Telling != "" && a.verbose {
		p.head("Lines that tell most")
		p.text("  ", cleanLines(x.Telling, 2000))
	}
	if len(x.Actions) > 0 {
		p.head("What to do")
		for i, act := range x.Actions {
			p.hanging(fmt.Sprintf("  %d. ", i+1), report.Line(act, 400))
		}
	}
	a.result("%s", p.String())
}

func (p *page) title(x explained) {
	color := "31"
	if x.Kind == failure.Transient {
		color = "33"
	}
	what := strings.ReplaceAll(string(x.Class), "_", " ")
	rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(report.Line(x.Summary, 300), what), ":"))
	if x.Class == failure.Unknown {
		what = "no known cause"
	}
	p.paint(color, strings.ToUpper(what[:1])+what[1:]+"\n")
	p.text("  ", rest)
}

func (p *page) facts(x explained, now time.Time) {
	p.WriteByte('\n')
	p.fact("class", string(x.Class))
	p.fact("kind", string(x.Kind)+": "+kindWords[x.Kind])
	retry := "no: the same again ends the same"
	if x.Transient {
		retry = "yes: the same again may work"
	}
	if !x.Transient && x.WaitUntil != nil {
		retry = "not before the wait is over"
	}
	p.fact("try again", retry)
	p.fact("severity", string(x.Severity))
	if x.WaitUntil != nil {
		p.fact("wait", fmt.Sprintf("until %s (%s)", x.WaitUntil.In(now.Location()).Format("Mon 15:04:05"), x.WaitUntil.Sub(now).Round(time.Second)))
	}
	if x.Exit != nil {
		p.fact("exit", fmt.Sprintf("%d, from %s", *x.Exit, x.exitFrom))
	}
	if x.Tests != nil {
		p.fact("tests", fmt.Sprintf("%s: %d failed, %d passed, %d skipped", x.Tests.Runner, x.Tests.Failed, x.Tests.Passed, x.Tests.Skipped))
	}
	if x.Pattern != "" {
		p.fact("pattern", x.Pattern+": "+patternWords[x.Pattern])
	}
	p.fact("fingerprint", x.Fingerprint)
}

func (p *page) fact(name, value string) {
	p.WriteString("  ")
	p.paint("2", fmt.Sprintf("%-12s", name))
	p.WriteString(value + "\n")
}

func (p *page) head(title string) {
	p.WriteByte('\n')
	p.paint("1", title+"\n")
}

// printItems lists where it is and what is said there.
func (a *app) printItems(p *page, items []failure.Item) {
	if len(items) == 0 {
		return
	}
	if places(items) {
		p.head("Where")
	} else {
		p.head("Lines that tell most")
	}
	for i, it := range items {
		if i == shownItems && !a.verbose {
			_, _ = fmt.Fprintf(p, "  … and %d more (-v shows them)\n", len(items)-i)
			return
		}
		p.item(it, a.verbose)
	}
}

func (p *page) item(it failure.Item, all bool) {
	at := report.Line(it.File, 200)
	if it.Line > 0 {
		at += fmt.Sprintf(":%d", it.Line)
		if it.Column > 0 {
			at += fmt.Sprintf(":%d", it.Column)
		}
	}
	test := report.Line(it.Test, 200)
	indent := "  "
	if at != "" || test != "" {
		p.WriteString("  ")
		p.paint("36", strings.TrimLeft(at, ":"))
		p.WriteString(gap(at, test) + test + "\n")
		indent = "      "
	}
	lines := strings.Split(cleanLines(it.Message, 400), "\n")
	for i, l := range lines {
		if i == shownMessage && !all {
			p.WriteString(indent + "…\n")
			break
		}
		p.text(indent, l)
	}
	if it.Expected != "" || it.Received != "" {
		p.WriteString("      ")
		p.paint("2", "expected ")
		p.WriteString(report.Line(it.Expected, 200) + "\n      ")
		p.paint("2", "received ")
		p.WriteString(report.Line(it.Received, 200) + "\n")
	}
}

func gap(at, test string) string {
	if at != "" && test != "" {
		return "  "
	}
	return ""
}

// places tells whether an item says where or in which test.
func places(items []failure.Item) bool {
	for _, i := range items {
		if i.File != "" || i.Test != "" {
			return true
		}
	}
	return false
}

// text writes s, indented and broken at the page's width.
func (p *page) text(indent, s string) {
	for l := range strings.SplitSeq(s, "\n") {
		if strings.TrimSpace(l) != "" {
			p.broken(indent, indent, l)
		}
	}
}

// hanging writes s behind a mark, its further lines below its first.
func (p *page) hanging(mark, s string) {
	p.broken(mark, strings.Repeat(" ", utf8.RuneCountInString(mark)), s)
}

func (p *page) broken(first, next, s string) {
	room := max(20, p.width-utf8.RuneCountInString(first))
	indent := first
	for s != "" {
		line, rest := breakAt(s, room)
		p.WriteString(indent + line + "\n")
		s, indent = rest, next
	}
}

// breakAt cuts s at the last space within n runes, or at n where there is none
// near.
func breakAt(s string, n int) (line, rest string) {
	r := []rune(s)
	if len(r) <= n {
		return s, ""
	}
	for i := n; i > n/3; i-- {
		if r[i] == ' ' {
			return string(r[:i]), strings.TrimLeft(string(r[i:]), " ")
		}
	}
	return string(r[:n]), string(r[n:])
}

func (p *page) paint(color, s string) {
	if !p.colored {
		p.WriteString(s)
		return
	}
	body := strings.TrimSuffix(s, "\n")
	p.WriteString("\x1b[" + color + "m" + body + "\x1b[0m" + s[len(body):])
}

// colorsResult says whether to use color on stdout.
func (a *app) colorsResult() bool {
	switch a.color {
	case "always":
		return true
	case "never":
		return false
	}
	f, ok := a.stdout.(*os.File)
	return ok && console.IsTerminal(f) && a.getenv("TERM") != "dumb" && a.getenv("NO_COLOR") == ""
}
