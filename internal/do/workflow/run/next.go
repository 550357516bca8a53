package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/workflow"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// execution is one execution of a step, as it is stored.
type execution struct {
	store.StepRun
	record stepRecord
}

// stepRecord is what is kept of an execution beside its row. What is stored
// outlives the code: fields can be added, but names must not change.
type stepRecord struct {
	Kind        string            `json:"kind"`
	Agent       string            `json:"agent,omitempty"`
	Alternative int               `json:"alternative,omitempty"` // 1-based; 0 is the step's own work
	Try         int               `json:"try"`                   // 1-based, of this work in this iteration
	Why         string            `json:"why,omitempty"`         // it runs again although it was done
	Optional    bool              `json:"optional,omitempty"`
	Title       string            `json:"title,omitempty"`
	Outputs     map[string]string `json:"outputs,omitempty"`
	Exit        loop.Exit         `json:"exit"`
	Failure     *failure.Analysis `json:"failure,omitempty"`
	Cut         bool              `json:"output_cut,omitempty"` // there was more output than is kept
	Question    string            `json:"question,omitempty"`
	Usage       usage             `json:"usage,omitzero"`
	Job         *supervisor.Job   `json:"job,omitempty"`   // without environment and box
	Inner       string            `json:"inner,omitempty"` // the run that a procedure's step drives
	// Round is the execution, by its N, of the step whose workflow this is a step
	// of; 0 is none.
	Round int `json:"round,omitempty"`
	// Watched is what protected files are compared with; Tampered are those that
	// were not as they were when it ended, at most 20.
	Watched  *engine.Watched `json:"watched,omitempty"`
	Tampered []string        `json:"tampered,omitempty"`
}

func executionOf(row store.StepRun) (*execution, error) {
	e := &execution{StepRun: row}
	if err := json.Unmarshal(row.Record, &e.record); err != nil {
		return nil, fmt.Errorf("cannot read what is stored of step %s: %v", row.Step, err)
	}
	return e, nil
}

// Files is the prefix of the files that an execution left in the folder of its
// iteration: Files+".out" and Files+".err"; "" for one that left none.
func Files(row store.StepRun) (string, error) {
	e, err := executionOf(row)
	if err != nil || e.record.Job == nil {
		return "", err
	}
	parts := strings.Split(e.record.Job.Files, string(filepath.Separator)) // …/ITERATION/steps/STEP.N/step
	return filepath.Join(parts[max(0, len(parts)-3):]...), nil
}

// Shown is an execution as people see it.
func Shown(row store.StepRun) (report.Execution, error) {
	e, err := executionOf(row)
	if err != nil {
		return report.Execution{}, err
	}
	r := &e.record
	out := report.Execution{
		Step: row.Step, Title: r.Title, Kind: r.Kind, Agent: r.Agent, Status: row.Status, Iteration: row.Iteration,
		Try: r.Try, Alternative: r.Alternative, Optional: r.Optional, StartedAt: row.StartedAt, Elapsed: row.Elapsed,
		Output: cmp.Or(row.Output, r.Question),
	}
	if r.Failure != nil {
		out.Failure = r.Failure.Summary
	}
	return out, nil
}

// resultOf an execution, for later steps.
func (e *execution) resultOf() workflow.Result {
	r := workflow.Result{Outcome: e.Status, Conclusion: e.Status, Output: e.Output, Outputs: e.record.Outputs}
	if e.record.Optional && e.Status == store.StepFailure {
		r.Conclusion = store.StepSuccess
	}
	return r
}

// keptExecution is the execution whose result counts: the newest, if the step is done
// and neither the workflow nor its input has changed since. Otherwise
// why says why a step that was done runs again; "" for one that was not.
func keptExecution(past []*execution, hash, input string, optional bool) (e *execution, why string) {
	if len(past) == 0 {
		return nil, ""
	}
	e = past[len(past)-1]
	if e.Status == store.StepRefused {
		return nil, e.reasonRefused()
	}
	missed := e.Status == store.StepFailure && optional && e.record.Optional
	if e.Status != store.StepSuccess && !missed {
		return nil, ""
	}
	switch {
	case e.Hash != hash:
		return nil, "the workflow has changed"
	case e.Input != input:
		return nil, "its input has changed"
	}
	return e, ""
}

// reasonRefused: a step that was done runs again.
func (e *execution) reasonRefused() string {
	if f := e.record.Failure; f != nil {
		return "its work was refused: " + f.Summary
	}
	return "what it builds on was refused"
}

// attempt says which work of a step is tried next, and which try of it this is.
type attempt struct {
	alternative int // 0 is the step's own work
	try         int // 1-based
}

// situation is what the next attempt is chosen from.
type situation struct {
	past           []*execution
	hash, input    string
	iteration, cut int // the iteration, and its attempt
	round          int // as in stepRecord
	alternatives   int
	retries        int
	inTurn         bool // alternatives follow each other in one iteration
	fresh          bool // begin with the step's own work
}

// nextAttempt is the attempt after those of this iteration; false when all that this
// iteration may try has failed.
//
// Where alternatives follow each other in one iteration, all are tried in turn.
// Else an iteration tries one: the step's own work first, once more after a
// failure that may pass by itself, and then one alternative an iteration.
func (s *situation) nextAttempt() (attempt, bool) {
	mine := s.sameExecutions()
	at := attempt{alternative: s.firstWork()}
	if len(mine) > 0 {
		at = attempt{mine[len(mine)-1].record.Alternative, mine[len(mine)-1].record.Try}
		if mine[len(mine)-1].Status != store.StepFailure {
			return at, true // cut off: the same again
		}
	}
	if at.try <= s.retries {
		return attempt{at.alternative, at.try + 1}, true
	}
	if s.inTurn && at.alternative < s.alternatives {
		return attempt{at.alternative + 1, 1}, true
	}
	return at, false
}

// isLastAttempt reports whether nothing is tried after the attempt if it fails.
func (s *situation) isLastAttempt(at attempt) bool {
	another := s.inTurn && at.alternative < s.alternatives
	return at.try > s.retries && !another
}

// sameExecutions are the executions of this iteration with this input, of the same round.
func (s *situation) sameExecutions() []*execution {
	var list []*execution
	for _, e := range s.past {
		sameTime := e.Iteration == s.iteration && e.Attempt == s.cut && e.record.Round == s.round
		if sameTime && e.Hash == s.hash && e.Input == s.input {
			list = append(list, e)
		}
	}
	return list
}

// patience is how many iterations a failure that may pass by itself has before
// an alternative is tried.
const patience = 2

// firstWork is the work that this iteration begins with.
func (s *situation) firstWork() int {
	if s.inTurn || s.fresh {
		return 0
	}
	last, iterations, seen := (*execution)(nil), 0, 0
	for i := len(s.past) - 1; i >= 0; i-- {
		e := s.past[i]
		if e.Status != store.StepFailure || e.Hash != s.hash || e.Iteration == s.iteration {
			continue
		}
		last = cmp.Or(last, e)
		if e.record.Alternative != last.record.Alternative {
			break
		}
		if e.Iteration != seen {
			iterations, seen = iterations+1, e.Iteration
		}
	}
	if last == nil {
		return 0
	}
	f := last.record.Failure
	if last.record.Alternative == 0 && f != nil && f.Kind == failure.Transient && iterations < patience {
		return 0
	}
	return (last.record.Alternative + 1) % (s.alternatives + 1)
}

// pauseBefore is the wait before a try, 1-based, of a step that is tried again by
// itself.
func pauseBefore(r workflow.Retry, try int) time.Duration {
	if try < 2 || r.Backoff == "none" || r.Delay <= 0 {
		return 0
	}
	d := r.Delay
	for i := 2; i < try && d < maxPause; i++ {
		if r.Backoff == "linear" {
			d += r.Delay
			continue
		}
		d = d * time.Duration(r.Multiplier()) / 1000
	}
	return min(d, maxPause)
}

// maxPause bounds the wait between two tries of a step.
const maxPause = 10 * time.Minute
