package loop

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
)

// Steps is what one iteration of a workflow came to: one pass over the steps
// that were not done yet.
type Steps struct {
	Total   int `json:"total"`             // a matrix's instances counted one by one
	Done    int `json:"done"`              // that succeeded, in this iteration or before
	Skipped int `json:"skipped,omitempty"` // by their condition, or because the strategy leaves optional ones out
	Missed  int `json:"missed,omitempty"`  // optional ones that failed
	Ran     int `json:"ran"`               // in this iteration
	// Complete is true when nothing is left to do.
	Complete bool `json:"complete,omitempty"`
	// Failed are the required steps that failed in this iteration, at most 20.
	Failed []string `json:"failed,omitempty"`
	// Agent is true when what failed first was an agent's work; where all steps
	// are done, when one of them is an agent's.
	Agent bool `json:"agent,omitempty"`
	// Limited is the agent that met a limit of its provider; "" for none.
	Limited string `json:"met,omitempty"`
	// Pausing is true when a pause kept steps from starting.
	Pausing bool `json:"held,omitempty"`
	// Asks is the question that the iteration came to rest at; nil is none. Open
	// are all of them, where there are several.
	Asks *Asks  `json:"asks,omitempty"`
	Open []Asks `json:"open,omitempty"`
}

// Asks is a step's question to a person.
type Asks struct {
	Step string `json:"step"`
	Text string `json:"text"`
}

// Asked are the questions of steps, in order; none where no step asks.
func (q *Question) Asked() []Asks {
	switch {
	case q == nil || q.Asker == "":
		return nil
	case len(q.Open) > 0:
		return q.Open
	}
	return []Asks{{q.Asker, q.Text}}
}

// answersFrom are the answers that a person gave to the steps that ask.
func (q *Question) answersFrom(replies []Asks) []StepAnswer {
	var list []StepAnswer
	for _, asked := range q.Asked() {
		for _, r := range replies {
			if r.Step == asked.Step {
				list = append(list, StepAnswer{asked.Step, asked.Text, r.Text})
				break
			}
		}
	}
	return list
}

// String counts steps for people: "3 of 5 steps done, 1 skipped".
func (t *Steps) String() string {
	text := fmt.Sprintf("%d of %d steps done", t.Done, t.Total)
	if t.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped", t.Skipped)
	}
	if t.Missed > 0 {
		text += fmt.Sprintf(", %d optional failed", t.Missed)
	}
	return text
}

// judgeSteps classifies an iteration that ended by itself.
func (t *Steps) judgeSteps(r *Record) Outcome {
	switch {
	case r.metProviderLimit():
		return Waited
	case r.Failure != nil:
		return Failed
	case t.Complete:
		return Success
	case t.Asks != nil || t.Pausing:
		return Neutral
	}
	return Success
}

// endBySteps ends a workflow, or lets it rest, by its steps; nil when it continues.
// What failed is tried again before a person is asked.
func (s turn) endBySteps(r *Record) *Command {
	t := r.Steps
	switch {
	case t == nil || r.Failure != nil:
		return nil
	case t.Complete && s.Policy.Review && !r.isApproved():
		return nil // the review follows
	case t.Complete:
		return &Command{Status: Completed, Why: r.resultText()}
	case s.PauseAsked && t.Pausing:
		return &Command{Status: Paused, Why: "paused: " + t.String()}
	case t.Asks != nil:
		q := s.newQuestion(t.Asks.Text, nil)
		q.Asker, q.Open = t.Asks.Step, t.Open
		why := fmt.Sprintf("step %s asks: %s", t.Asks.Step, t.Asks.Text)
		if n := len(t.Open) - 1; n > 0 {
			why = fmt.Sprintf("%d steps ask; step %s: %s", n+1, t.Asks.Step, t.Asks.Text)
		}
		return &Command{Status: Pending, Why: why, Question: q}
	}
	return nil
}

// failedOnce is the end of a workflow that is not to iterate.
func (s *State) failedOnce(r *Record) *Command {
	c := &Command{Status: FailedRun, Why: "the workflow is not complete"}
	if r == nil || r.Failure == nil {
		return c
	}
	c.Why = r.Failure.Summary
	if r.Failure.Step != "" {
		c.Why = fmt.Sprintf("%s failed: %s", r.StepWord(), r.Failure.Summary)
	}
	return c
}

// StepWord names what failed in a workflow's iteration: a step, a gate, or the
// review; "" where the failure names none.
func (r *Record) StepWord() string {
	switch f := r.Failure; {
	case f == nil || f.Step == "":
		return ""
	case r.isRejected():
		return "the review"
	case r.RedGate() && f.Class != failure.Tampering:
		return "gate " + f.Step
	default:
		return "step " + f.Step
	}
}

// areAllDone is true when all steps of a workflow are done and nothing is wrong.
func (r *Record) areAllDone() bool { return r.Steps != nil && r.Steps.Complete && r.Failure == nil }

// SentBack is true when all steps of a workflow are done, and a gate, a review or
// the look at protected files refuses what they did.
func (r *Record) SentBack() bool { return r.Steps != nil && r.Steps.Complete && r.Failure != nil }

// grantAskedIteration grants what a person asks for beyond the maximum: a pass of a workflow
// that is not to iterate, and the last iteration anew that they ended half-way.
func (s *State) grantAskedIteration() {
	if s.Policy.Once || s.wasInterrupted() {
		s.Limit = max(s.Limit, s.Iteration+1)
	}
}

// wasInterrupted reports whether a person ended the last iteration before it had a result.
func (s *State) wasInterrupted() bool {
	if s.Limit == 0 || len(s.Recent) == 0 || !slices.Contains([]Status{Interrupted, Stopped}, s.Status) {
		return false
	}
	last := s.Recent[len(s.Recent)-1]
	return last.Number == s.Iteration && last.Outcome == Neutral
}

// setStepOptions adds to the command of a workflow's iteration what only steps know.
func (s tactics) setStepOptions(timeout time.Duration, cached bool) {
	if s.Policy.Kind == Workflow {
		s.Command.StepTimeout, s.Command.Fresh = timeout, !cached
	}
}
