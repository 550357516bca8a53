package console

import (
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/report"
)

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
	if loop.CostKnown(v.CostSource) {
		text += ", " + v.Cost.String()
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
	s.line(n.At, "Review of iteration %s by %s starting...%s", Of(c.Iteration, n.State.Limit), c.Agent, again)
	s.begins(n.At, "review of iteration "+Of(c.Iteration, n.State.Limit), "starting "+c.Agent)
}

func (s *Screen) reviewEnded(n engine.Notice) {
	v := n.Record.Review
	line := "Review: " + ReviewLine(v)
	switch {
	case v.Ended == loop.EndedStop:
		return // the end says it
	case v.Verdict == loop.Rejected:
		line = fmt.Sprintf("WARNING: Review: %s, consecutive failures: %s", ReviewLine(v), failures(n.State))
	case v.Verdict == loop.Undecided:
		line = "WARNING: " + line
	}
	s.line(n.At, "%s", line)
	defer s.report(n)
	for i, f := range v.Items {
		if i == 5 {
			s.note("          … %d more", len(v.Items)-i)
			break
		}
		s.note("          [%s] %s", f.Severity, report.Line(report.ItemLine(f.Item), 200))
	}
}

// failures is how close the breaker is.
func failures(st loop.State) string {
	n := fmt.Sprint(st.Guards.Failures)
	if th := st.Policy.FailureThreshold; th > 0 {
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

// allTime is how long a person waited for the run: agents, gates, reviews,
// waits and what is between them, without the time between sessions.
func allTime(s loop.Spent) string { return loop.Duration(max(s.Wall, s.Active)) }

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
