package console

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/engine"
)

// Event is one line of `run --json`. docs/json.md describes the fields; they
// can be added, but names do not change.
type Event struct {
	Event     string     `json:"event"`
	At        time.Time  `json:"at"`
	Run       string     `json:"run"`
	Iteration int        `json:"iteration,omitempty"`
	Attempt   int        `json:"attempt,omitempty"`
	Agent     string     `json:"agent,omitempty"`
	Strategy  string     `json:"strategy,omitempty"`
	Why       string     `json:"why,omitempty"`
	Until     *time.Time `json:"until,omitempty"`

	Kind    string   `json:"kind,omitempty"`
	Text    string   `json:"text,omitempty"`
	Tool    string   `json:"tool,omitempty"`
	Command string   `json:"command,omitempty"`
	Files   []string `json:"files,omitempty"`

	Step        string  `json:"step,omitempty"`
	StepKind    string  `json:"step_kind,omitempty"`
	Try         int     `json:"try,omitempty"`
	Alternative int     `json:"alternative,omitempty"`
	Elapsed     float64 `json:"elapsed,omitempty"` // seconds

	Gate   string  `json:"gate,omitempty"`
	Status string  `json:"status,omitempty"`
	Result *Record `json:"result,omitempty"`
}

// End is the last line of `run --json`.
type End struct {
	Event  string `json:"event"`
	Run    string `json:"run"`
	Status string `json:"status"`
	Why    string `json:"why"`
	Exit   int    `json:"exit"`
}

// jsonEvent is nil for notices that are for the screen only, and for the end,
// which is printed last.
func jsonEvent(n engine.Notice) *Event {
	e := &Event{At: n.At.UTC(), Run: n.Run}
	switch n.Kind {
	case engine.RunStarted:
		e.Event = "run_started"
	case engine.RunResumed:
		e.Event = "run_resumed"
	case engine.IterationStarted:
		c := n.Command
		e.Event, e.Iteration, e.Attempt = "iteration_started", c.Iteration, c.Attempt
		e.Agent, e.Strategy, e.Why = c.Agent, c.Strategy, c.StrategyWhy
	case engine.AgentEvent:
		v := n.Event
		e.Event, e.Kind, e.Text, e.Tool, e.Command, e.Files = "agent", string(v.Kind), v.Text, v.Tool, v.Command, v.Files
		if n.Step != nil {
			e.Step = n.Step.Step
		}
	case engine.GateStarted:
		e.Event, e.Gate = "gate_started", n.Gate.Name
	case engine.GateEnded:
		e.Event, e.Gate, e.Status = "gate_ended", n.Gate.Name, string(n.Gate.Status)
	case engine.IterationEnded:
		r := Shown(*n.Record)
		e.Event, e.Iteration, e.Attempt = "iteration_ended", r.Number, r.Attempt
		e.Status, e.Result = r.Outcome, &r
	case engine.ReviewStarted:
		c := n.Command
		e.Event, e.Iteration, e.Attempt, e.Agent, e.Why = "review_started", c.Iteration, c.Attempt, c.Agent, c.Why
	case engine.ReviewEnded:
		r := Shown(*n.Record)
		e.Event, e.Iteration, e.Attempt = "review_ended", r.Number, r.Attempt
		e.Agent, e.Status, e.Why, e.Result = r.Review.Reviewer, r.Review.Verdict, r.Review.Summary, &r
	case engine.StepStarted, engine.StepOutput, engine.StepWaits, engine.StepEnded:
		return fillStepEvent(n, e)
	case engine.WaitStarted:
		until := n.Command.Until.UTC()
		e.Event, e.Until, e.Why = "waiting", &until, n.Command.Why
	case engine.LimitsRaised:
		e.Event, e.Text = "limits_raised", n.Text
	case engine.Delivered:
		e.Event, e.Text = "delivered", n.Text
	case engine.Warning:
		e.Event, e.Text = "warning", n.Text
	default:
		return nil
	}
	return e
}

func fillStepEvent(n engine.Notice, e *Event) *Event {
	st := n.Step
	e.Step, e.StepKind, e.Agent, e.Try = st.Step, st.Kind, st.Agent, st.Try
	e.Alternative, e.Status, e.Why = st.Alternate, st.Status, st.Why
	switch n.Kind {
	case engine.StepStarted:
		e.Event = "step_started"
	case engine.StepOutput:
		e.Event, e.Text = "step_output", st.Line
	case engine.StepWaits:
		e.Event, e.Elapsed = "step_waits", Seconds(st.Elapsed)
	default:
		e.Event, e.Elapsed = "step_ended", Seconds(st.Elapsed)
		e.Why = cmp.Or(st.Summary, e.Why)
	}
	return e
}

// Record is an iteration as users see it: in show --json and run --json.
type Record struct {
	Number    int           `json:"number"`
	Attempt   int           `json:"attempt"`
	Host      string        `json:"host,omitempty"`
	Agent     string        `json:"agent"`
	Strategy  string        `json:"strategy"`
	StartedAt time.Time     `json:"started_at"`
	Elapsed   float64       `json:"elapsed"` // seconds
	ExitCode  int           `json:"exit_code"`
	Ended     string        `json:"ended,omitempty"`
	Outcome   string        `json:"outcome"`
	Signals   []string      `json:"signals"`
	Gates     []shownGate   `json:"gates"`
	Complete  bool          `json:"complete"`
	Progress  shownProgress `json:"progress"`
	Failure   *shownFailure `json:"failure"`
	Score     *float64      `json:"score"` // 0 to 1; null without gates
	TokensIn  int64         `json:"tokens_in"`
	TokensOut int64         `json:"tokens_out"`
	CostUSD   *float64      `json:"cost_usd"` // null when not known
	// CostSource is "metered", "reported", "estimated" or "none".
	CostSource string            `json:"cost_source"`
	Calls      int               `json:"api_calls"`
	Models     []report.ModelUse `json:"models,omitempty"`
	Files      []string          `json:"files"`
	Commits    int               `json:"commits"`
	Snapshot   string            `json:"snapshot,omitempty"`

	Refused  *safety.Finding `json:"refused,omitempty"`
	Secrets  []safety.Secret `json:"secrets,omitempty"`
	Withheld []string        `json:"withheld,omitempty"`
	Evidence []loop.Evidence `json:"evidence,omitempty"`
	Review   *shownReview    `json:"review,omitempty"`
}

type shownGate struct {
	Name     string  `json:"name"`
	Status   string  `json:"status"`
	Required bool    `json:"required"`
	Elapsed  float64 `json:"elapsed"`
	Passed   *int    `json:"passed,omitempty"`
	Total    *int    `json:"total,omitempty"`
	Note     string  `json:"note,omitempty"`
	Before   string  `json:"before,omitempty"` // how a check of a task ended before the work
}

type shownProgress struct {
	Completed int    `json:"completed"`
	Total     int    `json:"total"`
	LastStep  string `json:"last_step"`
}

type shownFailure struct {
	Class      string   `json:"class"`
	Kind       string   `json:"kind"`
	Transient  bool     `json:"transient"`
	Severity   string   `json:"severity"`
	FailedStep string   `json:"failed_step"`
	Code       string   `json:"code,omitempty"`
	Pattern    string   `json:"pattern,omitempty"`
	Summary    string   `json:"summary"`
	Actions    []string `json:"actions"`
	Stderr     string   `json:"stderr,omitempty"` // the last lines
}

// Shown makes the record that users see of a kept one.
func Shown(r loop.Record) Record {
	out := Record{
		Number: r.Number, Attempt: r.Attempt, Host: r.Host, Agent: r.Agent, Strategy: r.Strategy,
		StartedAt: r.StartedAt.UTC(), Elapsed: Seconds(r.Elapsed),
		ExitCode: r.Exit.Code, Ended: string(r.Exit.Ended), Outcome: string(r.Outcome), Signals: []string{},
		Gates:    []shownGate{},
		TokensIn: r.TokensIn, TokensOut: r.TokensOut, Calls: r.Calls, Files: append([]string{}, r.Files...),
		Commits: r.Commits, Snapshot: r.Snapshot, CostSource: cmp.Or(r.CostSource, "none"),
		Refused: r.Refused, Secrets: r.Secrets, Withheld: r.Withheld, Evidence: r.Evidence,
		Models: report.Models(r.Models),
	}
	out.Review = showReview(r.Review)
	out.Complete, _ = r.Completes()
	if r.Signal.Kind != "" {
		out.Signals = append(out.Signals, strings.ToUpper(string(r.Signal.Kind)))
	}
	if r.Progress >= 0 {
		out.Signals = append(out.Signals, fmt.Sprintf("PROGRESS %d", r.Progress))
	}
	for _, g := range r.Gates {
		out.Gates = append(out.Gates, showGate(g))
		out.Progress.Total++
		if g.Status == loop.GatePassed {
			out.Progress.Completed++
			out.Progress.LastStep = g.Name
		}
	}
	if st := r.Steps; st != nil {
		out.Progress.Completed, out.Progress.Total, out.Complete = st.Done, st.Total, st.Complete
	}
	if r.Score >= 0 {
		out.Score = new(float64(r.Score) / 1000)
	}
	out.CostUSD = r.Cost.Dollars(loop.CostKnown(r.CostSource))
	if f := r.Failure; f != nil {
		out.Failure = &shownFailure{
			Class: string(f.Class), Kind: string(f.Kind), Transient: f.Transient, Severity: string(f.Severity),
			FailedStep: f.Step, Code: f.Code,
			Summary: f.Summary, Actions: append([]string{}, f.Actions...), Stderr: f.Stderr,
		}
	}
	return out
}

func showGate(g loop.Gate) shownGate {
	out := shownGate{Name: g.Name, Status: string(g.Status), Required: g.Required, Elapsed: Seconds(g.Elapsed),
		Note: g.Note, Before: g.Before}
	if g.Test && g.Total >= 0 {
		out.Passed, out.Total = &g.Passed, &g.Total
	}
	return out
}

// Seconds is a duration in JSON: seconds, to the millisecond.
func Seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }
