package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/loop"
)

// Markdown is the report in GitHub's dialect. Words of others are in code
// spans, or escaped, so that they make no markup, HTML, link or mention.
func (r *Report) Markdown() string {
	var w markdown
	w.line("# %s: %s", escape(r.Name), r.Status)
	w.line("")
	if r.Why != "" {
		w.line("**%s**", escape(r.Why))
		w.line("")
	}
	w.facts(r)
	w.question(r.Question)
	w.next(r.Next)
	w.times(r.Times)
	w.timeline(r.Timeline)
	w.work(r)
	w.iterations(r)
	w.failures(r)
	w.strategies(r)
	w.changes(r.Changes)
	w.notes(r.Notes)
	w.line("---")
	w.line("")
	w.line("Made by pawl %s at %s.", escape(r.Version), stamp(r.Made))
	return w.String()
}

type markdown struct{ strings.Builder }

func (w *markdown) line(format string, args ...any) {
	_, _ = fmt.Fprintf(w, format, args...)
	w.WriteByte('\n')
}

func (w *markdown) head(title string) {
	w.line("## %s", title)
	w.line("")
}

func (w *markdown) table(names ...string) {
	w.row(names...)
	rules := make([]string, len(names))
	for i := range rules {
		rules[i] = "---"
	}
	w.row(rules...)
}

func (w *markdown) row(cells ...string) { w.line("| %s |", strings.Join(cells, " | ")) }

func (w *markdown) facts(r *Report) {
	w.table("", "")
	w.row("run", code(r.Run)+", "+escape(r.Kind))
	w.row("started", stamp(r.Started))
	w.row("time", loop.Duration(r.Times.Wall))
	w.row("iterations", r.Iterations.String())
	if r.StepCount != "" {
		w.row("steps", r.StepCount)
	}
	w.row("cost", escape(r.Cost))
	w.row("tokens", r.tokens())
	if r.Changes != nil {
		w.row("changed", r.Changes.String())
	}
	if len(r.Agents) > 0 {
		w.row("agents", codes(r.Agents))
	}
	if r.Sandbox != "" {
		w.row("sandbox", escape(r.Sandbox))
	}
	w.line("")
}

func (w *markdown) question(q *Question) {
	if q == nil {
		return
	}
	w.head("A person is needed")
	w.line("%s", escape(q.Text))
	w.line("")
	for _, a := range q.Attempts {
		w.line("- %s", escape(a))
	}
	if q.Pattern != "" {
		w.line("- Pattern: %s", escape(q.Pattern))
	}
	if len(q.Attempts) > 0 || q.Pattern != "" {
		w.line("")
	}
	for i, o := range q.Options {
		w.line("%d. %s", i+1, escape(o))
	}
	if len(q.Options) > 0 {
		w.line("")
	}
}

func (w *markdown) next(next []Advice) {
	if len(next) == 0 {
		return
	}
	w.head("What to do next")
	for _, n := range next {
		if n.Command == "" {
			w.line("- %s", escape(n.What))
		} else {
			w.line("- %s: %s", escape(n.What), span(n.Command))
		}
	}
	w.line("")
}

func (w *markdown) times(t Times) {
	shares := t.Shares()
	if len(shares) == 0 {
		return
	}
	w.head("Where the time went")
	w.table("what", "time", "share")
	for _, s := range shares {
		w.row(s.Name, loop.Duration(s.Took), fmt.Sprintf("%d %%", (s.Share+50)/100))
	}
	w.line("")
}

func (w *markdown) timeline(t Timeline) {
	if len(t.Rows) == 0 {
		return
	}
	const width = 40
	w.head("Timeline")
	w.line("`▓` agent, `▒` gates or commands, `+` review, `·` waiting; the whole is %s.", loop.Duration(t.Total))
	w.line("")
	w.line("```text")
	for i, r := range t.Rows {
		if t.LeftOut > 0 && i == t.LeftAfter {
			w.line("   … %d more", t.LeftOut)
		}
		bar := []rune(strings.Repeat(" ", width))
		for _, p := range r.Parts {
			from := min(p.Left*width/axis, width-1)
			to := min(max((p.Left+p.Width)*width/axis, from+1), width)
			for k := from; k < to; k++ {
				if bar[k] == ' ' || k > from {
					bar[k] = map[string]rune{"agent": '▓', "gates": '▒', "review": '+', "wait": '·'}[p.What]
				}
			}
		}
		label := r.Label
		if r.Step {
			label = "  " + label
		}
		w.line("%s |%s| %s", padded(label, t.labels()), string(bar), loop.Duration(r.Took))
	}
	w.line("```")
	w.line("")
}

// labels is the width of the labels, in characters.
func (t Timeline) labels() int {
	width := 6
	for _, r := range t.Rows {
		if r.Step {
			width = max(width, min(len([]rune(r.Label))+2, 24))
		}
	}
	return width
}

// padded is a label of exactly that width.
func padded(label string, width int) string {
	r := []rune(label)
	if len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return label + strings.Repeat(" ", width-len(r))
}

func (w *markdown) work(r *Report) {
	if len(r.Work) == 0 {
		return
	}
	w.head("Steps")
	w.table("", "step", "kind", "status", "runs", "iterations", "time", "what it said")
	for _, s := range r.Work {
		status := escape(s.Status)
		if s.Alternative > 0 {
			status += fmt.Sprintf(" (alternative %d)", s.Alternative)
		}
		w.row(s.Mark, code(s.ID), escape(s.Kind), status, fmt.Sprint(s.Runs), s.Iterations, loop.Duration(s.Took), code(s.Note))
	}
	if r.MoreWork > 0 {
		w.row("", fmt.Sprintf("… %d more", r.MoreWork), "", "", "", "", "", "")
	}
	w.line("")
}

func (w *markdown) iterations(r *Report) {
	if len(r.Steps) == 0 {
		return
	}
	w.head("Iterations")
	w.table("#", "outcome", "strategy", "agent", "time", "gates", "what happened")
	for i, it := range r.Steps {
		if r.LeftOut > 0 && i == r.LeftAfter {
			w.row("…", fmt.Sprintf("%d more", r.LeftOut), "", "", "", "", "")
		}
		w.row(it.Label, it.Outcome, strategyCell(it), code(it.Agent), loop.Duration(it.Took), gateCell(it), it.cell())
	}
	w.line("")
}

func strategyCell(it Iteration) string {
	if it.StrategyWhy == "" {
		return code(it.Strategy)
	}
	return code(it.Strategy) + " (" + escape(it.StrategyWhy) + ")"
}

func gateCell(it Iteration) string {
	var words []string
	for _, g := range it.Gates {
		word := g.Mark + " " + code(g.Name)
		if g.Tests != "" {
			word += " " + g.Tests
		}
		if about := g.About(); about != "" {
			word += " (" + escape(about) + ")"
		}
		words = append(words, word)
	}
	if it.Review != nil {
		word := it.Review.Verdict + " by " + code(it.Review.By)
		words = append(words, word)
	}
	return strings.Join(words, "<br>")
}

// cell is what happened, in a table.
func (it *Iteration) cell() string {
	var words []string
	add := func(text string) {
		if text != "" {
			words = append(words, text)
		}
	}
	if it.Class != "" {
		where := ""
		if it.Step != "" {
			where = code(it.Step) + ": "
		}
		add("**" + escape(it.Class) + "** " + where + code(it.Summary))
	}
	for _, item := range it.Items {
		add(code(item))
	}
	if it.MoreItems > 0 {
		add(fmt.Sprintf("… %d more", it.MoreItems))
	}
	if it.Ending != "" && it.Class == "" {
		add(escape(it.Ending))
	}
	if it.Said != "" && it.Class == "" {
		add(code(it.Said))
	}
	if it.Review != nil && it.Review.Summary != "" && !it.Review.Told {
		add("review: " + code(it.Review.Summary))
	}
	for _, t := range it.Warnings {
		add("⚠ " + escape(t))
	}
	return strings.Join(words, "<br>")
}

func (w *markdown) failures(r *Report) {
	if len(r.Failures) == 0 {
		return
	}
	w.head("What failed most")
	w.table("times", "class", "failure", "iterations", "what helps")
	for _, f := range r.Failures {
		class := escape(f.Class)
		if f.Transient {
			class += ", transient"
		}
		text := code(f.Summary)
		if f.Step != "" {
			text = code(f.Step) + ": " + text
		}
		w.row(fmt.Sprint(f.Times), class, text, strings.Join(f.Where, ", "), escape(strings.Join(f.Actions, " ")))
	}
	if r.MoreKinds > 0 {
		w.row("", "", fmt.Sprintf("… %d more kinds", r.MoreKinds), "", "")
	}
	w.line("")
}

func (w *markdown) strategies(r *Report) {
	if len(r.Strategies) == 0 {
		return
	}
	w.head("Strategies")
	w.table("strategy", "used", "succeeded", "failed", "time", "cost", "iterations")
	for _, s := range r.Strategies {
		cost := s.Cost
		if cost == "" {
			cost = "unknown"
		}
		w.row(code(s.Name), fmt.Sprint(s.Used), fmt.Sprint(s.Succeeded), fmt.Sprint(s.Failed), loop.Duration(s.Took), escape(cost), strings.Join(s.Where, ", "))
	}
	w.line("")
}

func (w *markdown) changes(c *Changes) {
	if c == nil || len(c.Files) == 0 {
		return
	}
	w.head("What was changed")
	w.line("%s", c.String())
	w.line("")
	for _, f := range c.Files {
		times := ""
		if f.Times > 1 {
			times = fmt.Sprintf(", in %d iterations", f.Times)
		}
		w.line("- %s %s%s", f.Status, span(f.Path), times)
	}
	if c.More {
		w.line("- … and others")
	}
	w.line("")
}

func (w *markdown) notes(notes []Note) {
	if len(notes) == 0 {
		return
	}
	w.head("Notes")
	for _, n := range notes {
		w.line("- %s %s", stamp(n.At), escape(n.Text))
	}
	w.line("")
}

func stamp(t time.Time) string { return t.Format("2006-01-02 15:04:05") }

// String is "3 of 10", with what came of them.
func (c Count) String() string {
	text := fmt.Sprint(c.Done)
	if c.Limit > 0 {
		text += fmt.Sprintf(" of %d", c.Limit)
	}
	var parts []string
	if c.Succeeded > 0 {
		parts = append(parts, fmt.Sprintf("%d succeeded", c.Succeeded))
	}
	if c.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", c.Failed))
	}
	if c.Cuts > 0 {
		parts = append(parts, fmt.Sprintf("%d cut off by a provider", c.Cuts))
	}
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	return text
}

// String is "3 files, +12 −4 lines".
func (c *Changes) String() string {
	more := ""
	if c.More {
		more = "more than "
	}
	text := more + numbered(len(c.Files), "file")
	if c.Added+c.Deleted > 0 {
		text += fmt.Sprintf(", +%d −%d lines", c.Added, c.Deleted)
	}
	return text
}

func (r *Report) tokens() string {
	return fmt.Sprintf("%s in, %s out", short(r.TokensIn), short(r.TokensOut))
}

// Share is a part of the time, in ten thousandths.
type Share struct {
	Name, What string
	Took       time.Duration
	Share      int
}

// Shares are the parts of the time that are not nothing.
func (t Times) Shares() []Share {
	var out []Share
	first, last := "agents", "snapshots and the rest"
	if t.Stepped {
		first = "steps"
	}
	if t.Going {
		last = "under way, and the rest"
	}
	for _, s := range []Share{
		{first, "agent", t.Agents, 0}, {"gates", "gates", t.Gates, 0}, {"reviews", "review", t.Reviews, 0},
		{"waiting", "wait", t.Waits, 0}, {last, "rest", t.Rest, 0},
	} {
		if s.Took <= 0 || t.Wall <= 0 {
			continue
		}
		s.Share = scale(s.Took, t.Wall)
		out = append(out, s)
	}
	return out
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
			if last := i+1 == len(runes) || runes[i+1] == ' '; last && i < 10 && digits(runes[:i]) { // another
				b.WriteByte('\\')
			}
		case ':': // of an address
			if i+1 < len(runes) && runes[i+1] != ' ' {
				b.WriteByte('\\')
			}
		}
		b.WriteRune(c)
		if c == '@' || c == '.' && i >= 3 && strings.EqualFold(string(runes[i-3:i]), "www") {
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

func codes(list []string) string {
	words := make([]string, len(list))
	for i, t := range list {
		words[i] = code(t)
	}
	return strings.Join(words, ", ")
}
