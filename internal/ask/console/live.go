package console

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// This file is the live line: what happens now. It stands below the lines that
// stay, on terminals only, and is drawn over itself.

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
		d.tokens += e.Usage.Tokens()
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

// steps are those of a workflow's iteration.
type steps struct {
	done    int
	running []string          // in the order of their beginning
	agents  map[string]*doing // what the agents of steps use; nil before the first
}

// take keeps what happened to a step.
func (p *steps) take(n engine.Notice) {
	id := n.Step.Step
	switch n.Kind {
	case engine.StepStarted:
		p.running = append(p.running, id)
	case engine.StepEnded:
		p.running = slices.DeleteFunc(p.running, func(s string) bool { return s == id })
		if n.Step.Status == store.StepSuccess {
			p.done++
		}
	case engine.AgentEvent:
		if p.agents == nil {
			p.agents = map[string]*doing{}
		}
		if p.agents[id] == nil {
			p.agents[id] = &doing{}
		}
		p.agents[id].take(n.Event)
	}
}

// draw draws the live line over what is drawn already. Output and agents may
// come faster than an eye sees: it is drawn 20 times a second.
func (s *Screen) draw(n engine.Notice) {
	often := n.Kind == engine.StepOutput || n.Kind == engine.AgentEvent
	tooSoon := often && n.At.Sub(s.drawn) < 50*time.Millisecond
	if !s.live || s.title == "" || tooSoon {
		return
	}
	s.drawn = n.At
	line := ansi.Truncate(s.liveLine(n.At), Width(s.to.Progress)-1, "…")
	_, _ = io.WriteString(Raw(s.to.Progress), "\r"+Visible(line)+"\x1b[J")
}

// liveLine is what happens now, since when, and its tokens and cost.
func (s *Screen) liveLine(now time.Time) string {
	said, tokens, cost, costs := s.said, s.tokens, s.cost, s.costs
	for _, d := range s.steps.agents {
		tokens, cost, costs = tokens+d.tokens, cost+d.cost, costs || d.costs
	}
	if len(s.steps.running) > 0 {
		said = "runs " + strings.Join(s.steps.running, ", ")
	}
	if s.steps.done > 0 {
		said = fmt.Sprintf("%d done, %s", s.steps.done, said)
	}
	text := fmt.Sprintf("  %s · %s · %s", s.title, Total(now.Sub(s.began)), said)
	if tokens > 0 {
		text += fmt.Sprintf(" · %s tokens", report.Short(tokens))
	}
	if costs {
		text += " · " + cost.String()
	}
	return text
}

// erase takes the live line away before another line is printed.
func (s *Screen) erase() {
	if !s.drawn.IsZero() {
		_, _ = io.WriteString(Raw(s.to.Progress), "\r\x1b[J")
		s.drawn = time.Time{}
	}
}
