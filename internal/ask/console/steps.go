package console

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// This file is what a person sees of a workflow's run: plain lines, the output
// of a step with its id in front.

// stepNotice shows what happened to a step; false when the notice is none.
func (s *Screen) stepNotice(n engine.Notice) bool {
	st := n.Step
	if st == nil {
		return false
	}
	s.steps.updateFrom(n)
	switch n.Kind {
	case engine.StepStarted:
		s.stepStarted(n, st)
	case engine.StepOutput:
		s.printText("%s | %s", st.Step, Printable(st.Line))
	case engine.StepWaits:
		s.printLine(n.At, "Step %s waits %s before attempt %d", st.Step, loop.Duration(st.Elapsed), st.Try)
	case engine.StepEnded:
		s.stepEnded(n, st)
	default:
		return false
	}
	return true
}

func (s *Screen) stepStarted(n engine.Notice, st *journal.Step) {
	if st.Status == "adopted" {
		s.printLine(n.At, "Step %s continues: it was started before pawl ended", st.Step)
		return
	}
	var how []string
	if st.Agent != "" {
		how = append(how, st.Agent)
	}
	if st.Alternate > 0 {
		how = append(how, fmt.Sprintf("alternative %d", st.Alternate))
	}
	if st.Try > 1 {
		how = append(how, fmt.Sprintf("try %d", st.Try))
	}
	if st.Why != "" {
		how = append(how, "again: "+st.Why)
	}
	text := ""
	if len(how) > 0 {
		text = " (" + strings.Join(how, ", ") + ")"
	}
	s.printLine(n.At, "Step %s starts%s", st.Step, text)
}

func (s *Screen) stepEnded(n engine.Notice, st *journal.Step) {
	text := ""
	if st.Summary != "" {
		text = ": " + report.Line(st.Summary, 300)
	}
	switch st.Status {
	case store.StepSuccess:
		s.printLine(n.At, "Step %s succeeded in %s", st.Step, loop.Duration(st.Elapsed))
	case store.StepFailure:
		s.printLine(n.At, "Step %s failed after %s%s", st.Step, loop.Duration(st.Elapsed), text)
	case "held":
		s.sayDetail("step %s waits: %s", st.Step, st.Why)
	case "kept":
		if st.Why != "" {
			s.sayDetail("step %s: %s", st.Step, st.Why)
		} else {
			s.sayDetail("step %s was done before", st.Step)
		}
	case "skipped":
		s.printLine(n.At, "Step %s was skipped: %s", st.Step, st.Why)
	case store.StepAsking:
		s.printLine(n.At, "Step %s waits for a person", st.Step)
	default:
		s.printLine(n.At, "Step %s: %s%s", st.Step, st.Status, text)
	}
}

// Printable takes out of a line what a terminal would obey, and leaves its blanks.
func Printable(line string) string {
	return strings.Map(func(r rune) rune {
		obeyed := unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
		if obeyed && r != '\t' {
			return -1
		}
		return r
	}, line)
}

// passEnded prints the result of an iteration of a workflow: failure, analysis,
// and what is tried next.
func (s *Screen) passEnded(n engine.Notice) {
	r := n.Record
	switch {
	case r.Outcome == loop.Failed && r.Failure != nil:
		s.printLine(n.At, "WARNING: Iteration %s failed in %s: %s", Of(r.Number, n.State.Limit),
			loop.Duration(r.Elapsed), stepFailure(r))
		s.printLine(n.At, "Analysis: %s", describeFailure(r.Failure))
	case wasCutOff(r):
		s.printLine(n.At, "Iteration %s was interrupted: pawl ended during it", Of(r.Number, n.State.Limit))
	case r.Exit.Ended != loop.EndedStop && r.Outcome != loop.Waited:
		s.printLine(n.At, "Iteration %s completed in %s", Of(r.Number, n.State.Limit), loop.Duration(r.Elapsed))
	}
	c := n.Command
	again, changes := c.Kind == loop.Run || c.Kind == loop.Wait, c.StrategyWhy != "" || c.Strategy != r.Strategy
	if r.Outcome == loop.Failed && again && changes {
		why := ""
		if c.StrategyWhy != "" {
			why = " (" + c.StrategyWhy + ")"
		}
		words := "New strategy"
		if c.Strategy == r.Strategy {
			words = "Retrying with same strategy"
		}
		s.printLine(n.At, "%s: %s%s", words, c.Strategy, why)
	}
}

func stepFailure(r *loop.Record) string {
	if word := r.StepWord(); word != "" {
		return fmt.Sprintf("%s: %s", word, report.Line(r.Failure.Summary, 300))
	}
	return report.Line(r.Failure.Summary, 300)
}

// describeFailure returns class, kind and the first proposed action in one line.
func describeFailure(f *failure.Analysis) string {
	text := fmt.Sprintf("%s, %s", f.Class, f.Kind)
	if len(f.Actions) > 0 {
		text += "; " + report.Line(f.Actions[0], 200)
	}
	return text
}

// workflowEnded is the summary of a workflow's run.
func (s *Screen) workflowEnded(n engine.Notice) {
	st := n.State
	cost := cmp.Or(st.Spent.Money(), "cost unknown")
	if len(st.Policy.Agent) == 0 && !st.Spent.CostKnown && st.Spent.Calls == 0 {
		cost = "no cost"
	}
	s.printLine(n.At, "Workflow completed after %s (%s, %s): %s", fault.Numbered(st.Iteration, "iteration"),
		totalTimeText(st.Spent), cost, st.Why)
}

// This file is what a person and a script see of reviews.

// ReviewLine is a review in a line: verdict, who, what it took, and why.
func ReviewLine(v *loop.Review) string {
	who := v.Agent
	if who == loop.Person {
		who = "a person"
	}
	text := string(v.Verdict) + " by " + who
	if v.Verdict == loop.Undecided {
		text = "no verdict of " + who
	}
	if v.Elapsed > 0 {
		text += ", " + loop.Duration(v.Elapsed)
	}
	if cost := loop.Money(v.Cost, loop.CostKnown(v.CostSource), v.CostSource == loop.CostPartial); cost != "" {
		text += ", " + cost
	}
	if v.Tries > 1 {
		text += fmt.Sprintf(", %d tries", v.Tries)
	}
	if v.Summary != "" {
		text += ": " + report.Line(v.Summary, 300)
	}
	return text
}

func (s *Screen) reviewStarted(n engine.Notice) {
	c := n.Command
	again := ""
	if c.Review > 1 {
		again = fmt.Sprintf(" (try %d)", c.Review)
	}
	s.printLine(n.At, "Review of iteration %s by %s starting...%s", Of(c.Iteration, n.State.Limit), c.Agent, again)
	s.startLiveLine(n.At, "review of iteration "+Of(c.Iteration, n.State.Limit), "starting "+c.Agent)
}

func (s *Screen) reviewEnded(n engine.Notice) {
	v := n.Record.Review
	line := "Review: " + ReviewLine(v)
	switch {
	case v.Ended == loop.EndedStop:
		return // the end says it
	case v.Verdict == loop.Rejected:
		line = fmt.Sprintf("WARNING: Review: %s%s", ReviewLine(v), describeBreaker(n.State))
	case v.Verdict == loop.Undecided:
		line = "WARNING: " + line
	}
	s.printLine(n.At, "%s", line)
	defer s.printFailure(n)
	for i, f := range v.Items {
		if i == 5 {
			s.sayDetail("          … %d more", len(v.Items)-i)
			break
		}
		s.sayDetail("          [%s] %s", f.Severity, report.Line(report.ItemLine(f.Item), 200))
	}
}

// describeBreaker returns how close the breaker is; "" where nothing is known of that, as
// afterwards.
func describeBreaker(st loop.State) string {
	if st.Guards.Failures == 0 {
		return ""
	}
	n := fmt.Sprintf(", consecutive failures: %d", st.Guards.Failures)
	if th := st.Breaker(); th > 0 {
		n += fmt.Sprintf("/%d", th)
	}
	return n
}

// shownReview is a review in show --json and run --json.
type shownReview struct {
	Verdict   string         `json:"verdict"`
	Reviewer  string         `json:"reviewer"`
	Summary   string         `json:"summary"`
	Items     []shownFinding `json:"items"`
	Tries     int            `json:"tries"`
	Elapsed   float64        `json:"elapsed"`
	TokensIn  int64          `json:"tokens_in"`
	TokensOut int64          `json:"tokens_out"`
	CostUSD   *float64       `json:"cost_usd"`
	Calls     int            `json:"api_calls"`
	Reverted  []string       `json:"reverted,omitempty"`
	Failure   string         `json:"failure,omitempty"`
}

type shownFinding struct {
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
}

func showReview(v *loop.Review) *shownReview {
	if v == nil {
		return nil
	}
	out := &shownReview{
		Verdict: string(v.Verdict), Reviewer: v.Agent, Summary: v.Summary, Items: []shownFinding{}, Tries: v.Tries,
		Elapsed:  Seconds(v.Elapsed),
		TokensIn: v.TokensIn, TokensOut: v.TokensOut, Calls: v.Calls, Reverted: v.Reverted,
	}
	for _, f := range v.Items {
		out.Items = append(out.Items, shownFinding{f.File, f.Line, string(f.Severity), f.Message})
	}
	out.CostUSD = v.Cost.Dollars(loop.CostKnown(v.CostSource))
	if v.Failure != nil {
		out.Failure = string(v.Failure.Class)
	}
	return out
}

// The words for numbers and times.

// Iterations is how many are completed, in words.
func Iterations(n int) string { return fault.Numbered(n, "iteration") + " completed" }

// Of is a number of a limit, as 3/10; a limit of 0 is none.
func Of(n, limit int) string {
	if limit == 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d/%d", n, limit)
}

// totalTimeText is how long a person waited for the run: agents, gates, reviews,
// waits and what is between them, without the time between sessions.
func totalTimeText(s loop.Spent) string { return loop.Duration(max(s.Wall, s.Active)) }

// Total shows whole seconds: 2m16s.
func Total(d time.Duration) string { return d.Round(time.Second).String() }

// Clock shows a time of day, with the date when it is another day's.
func Clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Sub(now) < time.Minute {
		return t.Format("15:04:05")
	}
	if t.YearDay() != now.YearDay() {
		return t.Format("2006-01-02 15:04")
	}
	return t.Format("15:04")
}

// This file is the live line: what happens now. It stands below the lines that
// stay, on terminals only, and is drawn over itself.

// doing is what an agent does just now, and what it has used so far.
type doing struct {
	said   string
	gate   string // that runs; "" is none
	before string // said before it
	tokens int64
	cost   loop.MicroUSD
	costs  bool
}

// updateFrom keeps what an event says of it.
func (d *doing) updateFrom(e agent.Event) {
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

// updateFrom keeps what happened to a step.
func (p *steps) updateFrom(n engine.Notice) {
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
		p.agents[id].updateFrom(n.Event)
	}
}

// drawLiveLine draws the live line over what is drawn already. Output and agents may
// come faster than an eye sees: it is drawn 20 times a second.
func (s *Screen) drawLiveLine(n engine.Notice) {
	often := n.Kind == engine.StepOutput || n.Kind == engine.AgentEvent
	tooSoon := often && n.At.Sub(s.drawn) < 50*time.Millisecond
	if !s.live || s.title == "" || tooSoon {
		return
	}
	s.drawn = n.At
	line := ansi.Truncate(s.formatLiveLine(n.At), Width(s.to.Progress)-1, "…")
	_, _ = io.WriteString(Raw(s.to.Progress), "\r"+Visible(line)+"\x1b[J")
}

// formatLiveLine combines what runs now, for how long, and its tokens and cost.
func (s *Screen) formatLiveLine(now time.Time) string {
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

// eraseLiveLine takes the live line away before another line is printed.
func (s *Screen) eraseLiveLine() {
	if !s.drawn.IsZero() {
		_, _ = io.WriteString(Raw(s.to.Progress), "\r\x1b[J")
		s.drawn = time.Time{}
	}
}
