package view

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Item is one thing to repair.
type Item = failure.Item

// Iteration is one attempt of a run that has ended.
type Iteration struct {
	Number      int       `json:"number"`
	Attempt     int       `json:"attempt" doc:"From 1; a provider's limit may have cut earlier ones off."`
	Outcome     string    `json:"outcome" enum:"success,failed,neutral,asked,waited"`
	Agent       string    `json:"agent"`
	Strategy    string    `json:"strategy"`
	StrategyWhy string    `json:"strategy_why" doc:"Why this strategy was chosen."`
	Instruction string    `json:"instruction" doc:"What the strategy told the agent to do differently."`
	StartedAt   time.Time `json:"started_at"`
	Elapsed     float64   `json:"elapsed" doc:"Seconds."`

	ExitCode int    `json:"exit_code" doc:"-1 when the agent did not exit by itself."`
	Ended    string `json:"ended" doc:"Why pawl ended the agent; empty when it ended by itself."`
	EndedWhy string `json:"ended_why"`

	Signal     string   `json:"signal" doc:"COMPLETE, BLOCKED, PENDING, FAILURE or empty."`
	SignalText string   `json:"signal_text"`
	Progress   *int     `json:"progress" nullable:"true" doc:"0 to 100, as the agent said; null when it did not."`
	Malformed  []string `json:"malformed" nullable:"false" doc:"What was nearly a signal and did not count."`
	Complete   bool     `json:"complete"`

	Verified bool           `json:"verified" doc:"The checks were run, or there are none."`
	Gates    []Gate         `json:"gates" nullable:"false"`
	Score    *float64       `json:"score" nullable:"true" doc:"0 to 1; null without checks."`
	Tampered []string       `json:"tampered" nullable:"false" doc:"Protected files that it changed."`
	Review   *Review        `json:"review,omitempty"`
	Failure  *Failure       `json:"failure,omitempty"`
	Refused  *Refused       `json:"refused,omitempty" doc:"A tool call that the safety level forbids; it ended the agent."`
	Secrets  []SecretFound  `json:"secrets" nullable:"false" doc:"Places that look like secrets."`
	Files    []string       `json:"files" nullable:"false" doc:"Changed; the first thousand."`
	Commits  int            `json:"commits"`
	Snapshot string         `json:"snapshot" doc:"Commit of the files after it; empty without one."`
	Diff     bool           `json:"diff" doc:"There is a diff to ask for."`
	TokensIn int64          `json:"tokens_in"`
	TokenOut int64          `json:"tokens_out"`
	CostUSD  *float64       `json:"cost_usd" nullable:"true"`
	Cost     string         `json:"cost_source" enum:"metered,reported,estimated,none" doc:"Where the cost comes from."`
	Calls    int            `json:"api_calls"`
	Models   []ModelUse     `json:"models" nullable:"false" doc:"By model, where the gateway saw the calls."`
	Output   int64          `json:"output_bytes"`
	Evidence []Evidence     `json:"evidence" nullable:"false" doc:"Files that show what the work does."`
	Story    []StoryElement `json:"story" nullable:"false" doc:"What happened, in order, in words."`
}

// Evidence is a picture, a text or a report.
type Evidence = loop.Evidence

// ModelUse is what was used of one model.
type ModelUse = report.ModelUse

// StoryElement is one line of an iteration's story.
type StoryElement struct {
	What string `json:"what" enum:"strategy,agent,signal,gate,review,failure,snapshot"`
	Mark string `json:"mark" enum:"passed,failed,not run,note"`
	Text string `json:"text"`
}

// Gate is one check.
type Gate struct {
	Name     string  `json:"name"`
	Status   string  `json:"status" enum:"passed,failed,timeout,not run,error,running,waiting"`
	Required bool    `json:"required"`
	Elapsed  float64 `json:"elapsed" doc:"Seconds."`
	Timeout  float64 `json:"timeout" doc:"Seconds that it may take, as configured now; 0 when it is not configured any more."`
	ExitCode int     `json:"exit_code"`
	Passed   *int    `json:"passed" nullable:"true" doc:"Tests that passed; null when it is no test."`
	Total    *int    `json:"total" nullable:"true"`
	Note     string  `json:"note"`
	Origin   string  `json:"origin,omitempty" enum:"task,sealed" doc:"Of a check of one task."`
	Shows    string  `json:"criterion,omitempty" doc:"What a check of a task shows."`
	Before   string  `json:"before,omitempty" doc:"How a check of a task ended before the work."`
	File     string  `json:"file" doc:"Its output, among the iteration's files; not there when it printed nothing."`
}

// Review is a second look at the work.
type Review struct {
	Verdict  string        `json:"verdict" doc:"approved, rejected or undecided"`
	Reviewer string        `json:"reviewer"`
	Summary  string        `json:"summary"`
	Items    []FindingItem `json:"items" nullable:"false"`
	Elapsed  float64       `json:"elapsed"`
	Tries    int           `json:"tries"`
	CostUSD  *float64      `json:"cost_usd" nullable:"true"`
	Reverted []string      `json:"reverted" nullable:"false" doc:"Files that the reviewer changed, and that were put back."`
}

// FindingItem is what a review asks to be changed.
type FindingItem struct {
	Item
	Severity string `json:"severity"`
}

// Failure is what went wrong.
type Failure struct {
	Class       string   `json:"class"`
	Kind        string   `json:"kind" doc:"transient, work or permanent"`
	Transient   bool     `json:"transient"`
	Severity    string   `json:"severity"`
	Summary     string   `json:"summary"`
	Step        string   `json:"failed_step" doc:"The check that was red; empty for the agent itself."`
	Code        string   `json:"code,omitempty" doc:"VERIFICATION_FAILED or VERIFICATION_TIMEOUT, where checks were red."`
	Pattern     string   `json:"pattern" doc:"What it has in common with the failures before."`
	Fingerprint string   `json:"fingerprint"`
	Items       []Item   `json:"items" nullable:"false"`
	Actions     []string `json:"actions" nullable:"false" doc:"What can be done about it."`
}

// Refused is a forbidden operation.
type Refused struct {
	Why     string `json:"why"`
	Command string `json:"command"`
	Tool    string `json:"tool"`
	Level   string `json:"level"`
}

// SecretFound is a place that looks like a secret.
type SecretFound = safety.Secret

// IterationPage is one page of attempts, in order.
type IterationPage struct {
	Iterations []Iteration `json:"iterations" nullable:"false"`
	NextCursor string      `json:"next_cursor"`
	Current    *Current    `json:"current,omitempty" doc:"The iteration under way, on the last page."`
}

// Current is an iteration that has not ended.
type Current struct {
	Number      int       `json:"number"`
	Attempt     int       `json:"attempt"`
	Agent       string    `json:"agent"`
	Strategy    string    `json:"strategy"`
	StrategyWhy string    `json:"strategy_why"`
	Instruction string    `json:"instruction"`
	StartedAt   time.Time `json:"started_at"`
	Reviewing   bool      `json:"reviewing" doc:"The work is done and is being reviewed."`
}

// History is what is needed to show a run's iterations.
type History struct {
	Asked    map[[2]int]loop.Command // what the loop asked for, by number and attempt
	Past     []failure.Analysis
	Timeouts map[string]float64 // of the checks by name, in seconds
}

// CurrentOf returns the iteration under way; nil when the run rests.
func CurrentOf(r store.Run) *Current {
	state, err := engine.StateOf(r)
	if err != nil || !state.Status.Active() {
		return nil
	}
	c := state.Command
	if c.Kind != loop.Run && c.Kind != loop.RunReview {
		return nil
	}
	return &Current{
		Number: c.Iteration, Attempt: c.Attempt, Agent: c.Agent, Strategy: c.Strategy,
		StrategyWhy: c.StrategyWhy, Instruction: instruction(c),
		StartedAt: state.LastAt.UTC(), Reviewing: c.Kind == loop.RunReview,
	}
}

func instruction(c loop.Command) string {
	if c.Feedback == nil {
		return ""
	}
	return c.Feedback.Instruction
}

// ShowIteration translates a record for the pages. The records of a run must come in order.
func (t *History) ShowIteration(r *loop.Record) Iteration {
	asked := t.Asked[[2]int{r.Number, r.Attempt}]
	out := Iteration{
		Number: r.Number, Attempt: r.Attempt, Outcome: string(r.Outcome), Agent: r.Agent,
		Strategy: r.Strategy, StrategyWhy: asked.StrategyWhy, Instruction: instruction(asked),
		StartedAt: r.StartedAt.UTC(), Elapsed: Seconds(r.Elapsed), ExitCode: r.Exit.Code,
		Ended: string(r.Exit.Ended), EndedWhy: r.Exit.Why,
		Signal: strings.ToUpper(string(r.Signal.Kind)), SignalText: r.Signal.Text, Malformed: NonNil(r.Malformed),
		Verified: r.Verified, Gates: t.showGates(r.Gates), Tampered: NonNil(r.Tampered),
		Review: showReview(r.Review), Failure: t.showFailure(r.Failure),
		Secrets: append([]SecretFound{}, r.Secrets...), Files: NonNil(r.Files), Commits: r.Commits,
		Snapshot: r.Snapshot, Diff: r.TreeKnown && r.TreeBefore != "" && r.TreeAfter != "",
		TokensIn: r.TokensIn, TokenOut: r.TokensOut, CostUSD: r.Cost.Dollars(loop.CostKnown(r.CostSource)), Cost: r.CostSource,
		Calls: r.Calls, Models: NonNil(report.Models(r.Models)), Output: r.Output,
		Evidence: NonNil(r.Evidence),
	}
	out.Complete, _ = r.Completes()
	if r.Progress >= 0 {
		out.Progress = &r.Progress
	}
	if r.Score >= 0 {
		out.Score = new(float64(r.Score) / 1000)
	}
	if r.Refused != nil {
		out.Refused = &Refused{Why: r.Refused.Why, Command: r.Refused.Command, Tool: r.Refused.Tool,
			Level: string(r.Refused.Level)}
	}
	out.Story = buildStory(&out)
	return out
}

// NonNil returns a copy that is never nil: JSON has [] where there is nothing.
func NonNil[T any](of []T) []T { return append([]T{}, of...) }

func (t *History) showGates(gates []loop.Gate) []Gate {
	out := make([]Gate, len(gates))
	for i, g := range gates {
		out[i] = Gate{Name: g.Name, Status: string(g.Status), Required: g.Required, Elapsed: Seconds(g.Elapsed),
			Timeout: t.Timeouts[g.Name], ExitCode: g.ExitCode, Note: g.Note,
			Origin: g.Origin, Shows: g.Criterion, Before: g.Before}
		if g.Test && g.Total >= 0 {
			out[i].Passed, out[i].Total = &gates[i].Passed, &gates[i].Total
		}
		if g.Status != loop.GateNotRun {
			out[i].File = fmt.Sprintf("gate-%d.out", i+1)
		}
	}
	return out
}

func (t *History) showFailure(a *failure.Analysis) *Failure {
	if a == nil {
		return nil
	}
	t.Past = append(t.Past, *a)
	return &Failure{
		Class: string(a.Class), Kind: string(a.Kind), Transient: a.Transient,
		Severity: string(a.Severity), Summary: a.Summary, Step: a.Step, Code: a.Code, Fingerprint: a.Fingerprint,
		Pattern: failure.Pattern(t.Past), Items: NonNil(a.Items), Actions: NonNil(a.Actions),
	}
}

func showReview(v *loop.Review) *Review {
	if v == nil {
		return nil
	}
	return &Review{
		Verdict: string(v.Verdict), Reviewer: v.Agent, Summary: v.Summary, Elapsed: Seconds(v.Elapsed), Tries: v.Tries,
		CostUSD: v.Cost.Dollars(loop.CostKnown(v.CostSource)), Reverted: NonNil(v.Reverted),
		Items: lists.Each(v.Items, func(f loop.Finding) FindingItem {
			return FindingItem{Item: f.Item,
				Severity: string(f.Severity)}
		}),
	}
}

// buildStory lists the events of an iteration in the order in which they happened.
func buildStory(it *Iteration) []StoryElement {
	list := []StoryElement{}
	add := func(what, mark, format string, args ...any) {
		list = append(list, StoryElement{What: what, Mark: mark, Text: fmt.Sprintf(format, args...)})
	}
	if it.StrategyWhy != "" {
		add("strategy", "note", "Strategy %s: %s", it.Strategy, it.StrategyWhy)
	}
	switch {
	case it.Ended != "":
		add("agent", "failed", "pawl ended %s (%s)", it.Agent, strings.TrimSuffix(it.Ended+": "+it.EndedWhy, ": "))
	case it.ExitCode != 0:
		add("agent", "failed", "%s exited with status %d", it.Agent, it.ExitCode)
	default:
		add("agent", "passed", "%s changed %s", it.Agent, fault.Numbered(len(it.Files), "file"))
	}
	if it.Signal != "" {
		add("signal", "note", "It said %s", strings.TrimSuffix(it.Signal+": "+it.SignalText, ": "))
	}
	for _, g := range it.Gates {
		mark := map[string]string{string(loop.GatePassed): "passed", string(loop.GateNotRun): "not run"}[g.Status]
		add("gate", cmp.Or(mark, "failed"), "%s: %s", g.Name, strings.TrimSuffix(g.Status+", "+g.Note, ", "))
	}
	if it.Review != nil {
		mark := map[string]string{string(control.Approved): "passed", string(control.Rejected): "failed"}[it.Review.Verdict]
		add("review", cmp.Or(mark, "note"), "%s: %s", it.Review.Reviewer,
			strings.TrimSuffix(it.Review.Verdict+", "+it.Review.Summary, ", "))
	}
	if it.Failure != nil {
		add("failure", "failed", "%s: %s", it.Failure.Class, it.Failure.Summary)
	}
	if it.Snapshot != "" {
		add("snapshot", "note", "Snapshot %.12s: rollback comes back to here", it.Snapshot)
	}
	return list
}
