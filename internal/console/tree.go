package console

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/store"
)

// This file is the live tree of a workflow's steps: a block of lines below the
// progress, drawn over itself. It is drawn on terminals only, and at the end
// once more as plain lines, so that it stays.

// stepTree is what is known of all steps.
type stepTree struct {
	rows  []*stepRow
	ended bool
}

// stepState is how a step stands in the tree.
type stepState uint8

const (
	stepPending stepState = iota
	stepRunning
	stepWaiting // for a repetition
	stepAsking
	stepDone
	stepFailed
	stepSkipped
	stepStopped
)

var stepMarks = map[stepState]string{
	stepPending: "○", stepRunning: "●", stepWaiting: "●", stepAsking: "?", stepDone: "✓", stepFailed: "✗",
	stepSkipped: "–", stepStopped: "–",
}

type stepRow struct {
	id, name string // name is the last part of the id
	depth    int
	optional bool
	state    stepState
	began    time.Time
	took     time.Duration
	agent    string
	try      int
	other    int // the alternative
	doing
}

// doing is what an agent does just now, and what it has used so far.
type doing struct {
	said   string
	tokens int64
	cost   loop.MicroUSD
	costs  bool
}

// take keeps what an event says of it.
func (d *doing) take(e agent.Event) {
	switch e.Kind {
	case agent.Text:
		if text := report.Line(e.Text, 200); text != "" && !report.IsSignal(text) {
			d.said = text
		}
	case agent.Thinking:
		d.said = "thinking"
	case agent.ToolStart:
		d.said = toolLine(e)
	case agent.UsageSeen:
		if e.Cumulative {
			d.tokens = 0
		}
		d.tokens += e.Usage.Input + e.Usage.Output + e.Usage.CacheRead + e.Usage.CacheWrite
	case agent.CostSeen:
		d.cost, d.costs = e.Cost, true
	case agent.Retry, agent.RateLimit, agent.Error:
		if e.Error != nil {
			d.said = report.Line(string(e.Kind)+" "+e.Error.Type, 60)
		}
	}
}

// toolLine is a tool call in a line.
func toolLine(e agent.Event) string {
	return report.Line(strings.TrimSpace(e.Tool+" "+e.Command+" "+strings.Join(e.Files, " ")), 200)
}

func newStepTree(w *config.Workflow) *stepTree {
	t := &stepTree{}
	t.add(w, "", 0)
	return t
}

func (t *stepTree) add(w *config.Workflow, prefix string, depth int) {
	for i := range w.Plan.Instances {
		in := &w.Plan.Instances[i]
		t.rows = append(t.rows, &stepRow{id: prefix + in.ID, name: in.ID, depth: depth})
		if below := w.Nested[in.Step.ID]; below != nil {
			t.add(below, prefix+in.ID+"/", depth+1)
		}
	}
}

// row is the row of a step; one that the plan did not know comes after those
// of the step that it is in.
func (t *stepTree) row(id string) *stepRow {
	at := len(t.rows)
	depth, name := 0, id
	for i, r := range t.rows {
		if r.id == id {
			return r
		}
		if inside, ok := strings.CutPrefix(id, r.id+"/"); ok {
			at, depth, name = i+1, r.depth+1, inside
		} else if at == i && depth > 0 && r.depth >= depth {
			at = i + 1
		}
	}
	r := &stepRow{id: id, name: name, depth: depth}
	t.rows = slices.Insert(t.rows, at, r)
	return r
}

// notice takes what happened to a step.
func (t *stepTree) notice(n engine.Notice) {
	st := n.Step
	r := t.row(st.Step)
	r.optional = st.Optional
	switch n.Kind {
	case engine.StepStarted:
		r.began = n.At
		r.state, r.agent, r.try, r.other, r.said = stepRunning, st.Agent, st.Try, st.Alternate, ""
		t.opened(r)
	case engine.StepOutput:
		if line := report.Line(st.Line, 200); line != "" {
			r.said = line
		}
	case engine.StepWaits:
		r.state, r.said = stepWaiting, fmt.Sprintf("waits %s before try %d", loop.Duration(st.Elapsed), st.Try)
	case engine.StepEnded:
		r.ended(n)
	}
}

// opened shows that the workflows around a step run.
func (t *stepTree) opened(r *stepRow) {
	for _, above := range t.rows {
		if strings.HasPrefix(r.id, above.id+"/") && above.state != stepRunning {
			above.state, above.began = stepRunning, r.began
		}
	}
}

func (r *stepRow) ended(n engine.Notice) {
	st := n.Step
	switch st.Status {
	case store.StepSuccess:
		if r.state, r.took = stepDone, st.Elapsed; r.took == 0 && !r.began.IsZero() { // a workflow's own
			r.took = n.At.Sub(r.began)
		}
	case store.StepFailure:
		r.state, r.took = stepFailed, st.Elapsed
		if st.Failure != nil {
			r.said = report.Line(st.Failure.Summary, 200)
		}
	case "kept":
		switch {
		case r.state == stepDone || r.state == stepFailed: // as it was
		case st.Why != "":
			r.state, r.said = stepFailed, st.Why
		default:
			r.state, r.said = stepDone, "done before"
		}
	case "skipped":
		r.state, r.said = stepSkipped, report.Line("skipped: "+st.Why, 200)
	case store.StepAsking:
		r.state, r.said = stepAsking, "waits for a person"
	default:
		r.state, r.said, r.took = stepStopped, st.Status, st.Elapsed
	}
}

// again makes the steps of another iteration wait for their turn.
func (t *stepTree) again() {
	for _, r := range t.rows {
		if kept := r.state == stepFailed && r.optional; !kept && r.state != stepDone {
			*r = stepRow{id: r.id, name: r.name, depth: r.depth}
		}
		r.doing = doing{said: r.said}
	}
}

// lines are the rows for a terminal of that size; height counts them all.
func (t *stepTree) lines(now time.Time, width, height int) []string {
	shown, hidden := t.choose(height)
	names := 8
	for _, r := range shown {
		names = max(names, ansi.StringWidth(r.name)+2*r.depth)
	}
	names = min(names, max(width*2/5, 8), 40)
	out := make([]string, 0, len(shown)+1)
	for _, r := range shown {
		out = append(out, r.line(now, names, width))
	}
	if hidden != "" {
		out = append(out, ansi.Truncate("    "+hidden, width, "…"))
	}
	return out
}

// choose are the rows that fit, in their order: what runs or asks, what failed,
// and then what is next to it. hidden counts the others.
func (t *stepTree) choose(height int) (shown []*stepRow, hidden string) {
	if len(t.rows) <= height {
		return t.rows, ""
	}
	first, last := len(t.rows), 0 // that run, ask or failed
	urgency := map[stepState]int{stepRunning: 1, stepWaiting: 1, stepAsking: 1, stepFailed: 2}
	for i, r := range t.rows {
		if urgency[r.state] > 0 {
			first, last = min(first, i), i
		}
	}
	rank := map[*stepRow]int{}
	for i, r := range t.rows {
		rank[r] = cmp.Or(urgency[r.state], 2+max(first-i, i-last, 1))
	}
	order := slices.Clone(t.rows)
	slices.SortStableFunc(order, func(a, b *stepRow) int { return rank[a] - rank[b] })
	take := order[:max(height-1, 1)]
	count := map[stepState]int{}
	for _, r := range t.rows {
		if slices.Contains(take, r) {
			shown = append(shown, r)
			continue
		}
		count[r.state]++
	}
	var words []string
	for _, s := range []stepState{stepRunning, stepFailed, stepDone, stepPending, stepSkipped} {
		if n := count[s]; n > 0 {
			words = append(words, fmt.Sprintf("%s %d", stepMarks[s], n))
		}
	}
	return shown, "and " + strings.Join(words, "  ")
}

func (r *stepRow) line(now time.Time, names, width int) string {
	took := ""
	switch r.state {
	case stepRunning, stepWaiting:
		took = Total(max(0, now.Sub(r.began)))
	case stepDone, stepFailed, stepStopped:
		if r.took > 0 {
			took = loop.Duration(r.took)
		}
	}
	name := ansi.Truncate(strings.Repeat("  ", r.depth)+r.name, names, "…")
	text := fmt.Sprintf("  %s %s%s %6s", stepMarks[r.state], name, strings.Repeat(" ", names-ansi.StringWidth(name)), took)
	var about []string
	if r.agent != "" {
		about = append(about, r.agent)
	}
	if r.other > 0 {
		about = append(about, fmt.Sprintf("alternative %d", r.other))
	}
	if r.try > 1 {
		about = append(about, fmt.Sprintf("try %d", r.try))
	}
	if r.said != "" {
		about = append(about, r.said)
	}
	return ansi.Truncate(strings.TrimRight(text+"  "+strings.Join(about, " · "), " "), width, "…")
}

// draw draws the title, and below it the steps of a workflow, over what is drawn
// already. Output and agents may come faster than an eye sees: they are drawn 20
// times a second.
func (s *Screen) draw(n engine.Notice) {
	often := n.Kind == engine.StepOutput || n.Kind == engine.AgentEvent
	tooSoon := often && s.block.drawn() && n.At.Sub(s.block.last) < 50*time.Millisecond
	ended := s.tree != nil && s.tree.ended
	if !s.live || s.title == "" || tooSoon || ended {
		return
	}
	width, height := Size(s.to.Progress)
	lines := []string{ansi.Truncate(s.liveTitle(n.At), width-1, "…")}
	if s.tree != nil {
		lines = append(lines, s.tree.lines(n.At, width-1, max(height-4, 1))...)
	}
	var b strings.Builder
	b.WriteString(s.block.over(width))
	s.block = block{last: n.At}
	for i, l := range lines {
		s.block.widths = append(s.block.widths, ansi.StringWidth(l))
		if i > 0 {
			b.WriteString("\n")
			l = s.colorStep(l)
		}
		b.WriteString(Visible(l) + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	_, _ = io.WriteString(Raw(s.to.Progress), b.String())
}

// liveTitle is what happens now, since when, and its tokens and cost.
func (s *Screen) liveTitle(now time.Time) string {
	text := fmt.Sprintf("  %s · %s", s.title, Total(now.Sub(s.began)))
	tokens, cost, costs := s.tokens, s.cost, s.costs
	if s.tree == nil {
		text += " · " + s.said
	} else {
		done, count := 0, 0
		for _, r := range s.tree.rows {
			if r.depth == 0 {
				count++
			}
			if r.depth == 0 && r.state == stepDone {
				done++
			}
			tokens, cost, costs = tokens+r.tokens, cost+r.cost, costs || r.costs
		}
		text += fmt.Sprintf(" · %d/%d steps", done, count)
	}
	if tokens > 0 {
		text += fmt.Sprintf(" · %s tokens", report.Short(tokens))
	}
	if costs {
		text += " · " + cost.String()
	}
	return text
}

// block is what is drawn below the lines, and is drawn over.
type block struct {
	last   time.Time // when it was drawn
	widths []int     // the cells of its lines, from the top
}

func (b *block) drawn() bool { return len(b.widths) > 0 }

// over moves to the beginning of what is drawn. Since then the terminal may
// have become narrower, so that lines take more rows.
func (b *block) over(width int) string {
	up := -1
	for _, w := range b.widths {
		up += max(1, (w+width-1)/max(width, 1))
	}
	if up <= 0 {
		return "\r"
	}
	return fmt.Sprintf("\r\x1b[%dA", up)
}

// erase takes the block away before a line is printed.
func (s *Screen) erase() {
	if s.block.drawn() {
		width, _ := Size(s.to.Progress)
		_, _ = io.WriteString(Raw(s.to.Progress), s.block.over(width)+"\x1b[J")
		s.block = block{}
	}
}

// maxFinal is how many rows the tree has when it stays.
const maxFinal = 200

// settleTree prints the tree for the last time, in place of the live one.
func (s *Screen) settleTree(now time.Time) {
	t := s.tree
	if t == nil || !s.live || t.ended {
		return
	}
	width, _ := Size(s.to.Progress)
	s.erase()
	t.ended = true
	for _, r := range t.rows {
		if r.state == stepRunning || r.state == stepWaiting {
			r.state, r.took = stepStopped, 0
		}
	}
	for _, l := range t.lines(now, width-1, maxFinal) {
		_, _ = io.WriteString(s.to.Progress, s.colorStep(l)+"\n")
	}
}

// colorStep colors a step's line by its mark, where there is color.
func (s *Screen) colorStep(line string) string {
	if !s.to.Color {
		return line
	}
	mark := strings.TrimLeft(line, " ")
	for _, c := range []struct{ mark, code string }{{"✓", "32"}, {"✗", "31"}, {"●", "36"}, {"?", "33"}} {
		if strings.HasPrefix(mark, c.mark) {
			return strings.Replace(line, c.mark, "\x1b["+c.code+"m"+c.mark+"\x1b[0m", 1)
		}
	}
	return "\x1b[2m" + line + "\x1b[0m"
}
