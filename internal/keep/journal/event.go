package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// Event is one thing that happened in a run. What is stored outlives the
// code: kinds and fields of their data can be added, but names must not
// change.
type Event struct {
	// Seq rises with every stored event of all runs, in the order of the
	// commits: who has seen Seq has seen all before it. It is never used
	// twice. 0 before the event is stored.
	Seq int64 `json:"seq"`
	// N numbers the events of one run, 1-based and without gaps. 0 is an
	// event beside the run's own story, e.g. a warning from another process.
	N    int64     `json:"n,omitempty"`
	Run  string    `json:"run"`
	At   time.Time `json:"at"` // kept in whole milliseconds
	Kind string    `json:"kind"`
	// Data is the JSON of the struct that belongs to the kind; nil when the
	// kind has none.
	Data json.RawMessage `json:"data,omitempty"`
}

// The kinds, each with the struct of its data.
const (
	RunCreated     = "run.created"     // Created
	RunResumed     = "run.resumed"     // Resumed
	IterationEnded = "iteration.ended" // loop.Record
	// Review: one try of it ended.
	IterationReviewed = "iteration.reviewed"
	WaitStarted       = "wait.started"   // Wait
	WaitOver          = "wait.over"      // Wait
	QuestionAsked     = "question.asked" // Question
	Answered          = "answered"       // Answer
	PauseAsked        = "pause.asked"    // Asked
	StopAsked         = "stop.asked"     // Asked
	LimitsRaised      = "limits.raised"  // Limits
	MessageLeft       = "message.left"   // Asked: for the next prompt, beside the run's own story
	Paused            = "paused"         // End
	Recovered         = "recovered"      // Recovery
	Finished          = "finished"       // End
	RolledBack        = "rolled-back"    // Rollback
	WorkDelivered     = "delivered"      // delivery.Delivered
	Warning           = "warning"        // Notice
	ChecksTried       = "checks.tried"   // how each check of a task ended before the work, by a name of its own
	// Of a workflow; beside the run's own story, so without a number.
	StepStarted = "step.started" // Step
	StepEnded   = "step.ended"   // Step

	// What the autopilot does; Run is [Autopilot].
	TaskStarted = "task.started" // Task
	TaskSettled = "task.settled" // Task
	TaskLanded  = "task.landed"  // Task
	Alerted     = "alert"        // Notice
)

// Autopilot is the Run of events that are of no run.
const Autopilot = "autopilot"

// Task is what the autopilot did with a task.
type Task struct {
	Case   string `json:"case"`
	Title  string `json:"title"`
	Run    string `json:"run,omitempty"`
	Action string `json:"action,omitempty"` // what happened to the case
	Why    string `json:"why,omitempty"`
}

// Limits are those that a run that works got from a person; nil and 0 stay as they were.
type Limits struct {
	MaxIterations *int           `json:"max_iterations,omitempty"` // 0 is unlimited
	MaxCost       *loop.MicroUSD `json:"max_cost_micro_usd,omitempty"`
	Timeout       time.Duration  `json:"timeout,omitempty"`      // of wall clock
	TaskTimeout   time.Duration  `json:"task_timeout,omitempty"` // of work, waits aside
}

// Created is what a run started with.
type Created struct {
	Kind          string `json:"kind"` // "procedure", "task", "workflow" or "demo"
	Name          string `json:"name"`
	Root          string `json:"root"`
	Agent         string `json:"agent,omitempty"`
	MaxIterations int    `json:"max_iterations"` // 0 is unlimited
}

// Resumed says that somebody drives the run again.
type Resumed struct {
	From    string `json:"from"`              // the status that it was resumed from
	PID     int    `json:"pid,omitempty"`     // of the new owner
	Adopted bool   `json:"adopted,omitempty"` // an agent was still running, and continues
}

// Review is what a try of an iteration's review came to: Review sums up all
// tries so far, Outcome is the iteration's with it.
type Review struct {
	Number  int           `json:"number"`  // 1-based
	Attempt int           `json:"attempt"` // 1-based
	Outcome loop.Outcome  `json:"outcome"`
	Review  loop.Review   `json:"review"`
	Next    *loop.Command `json:"next,omitempty"`
}

// Wait is a wait for a provider or for a backoff to pass.
type Wait struct {
	Until time.Time `json:"until,omitzero"` // zero at wait.over
	Why   string    `json:"why,omitempty"`
}

// Question is what a person is asked.
type Question struct {
	Iteration int      `json:"iteration"`
	Text      string   `json:"text"`
	Choices   []string `json:"choices,omitempty"` // numbered from 1 on screen
}

// Answer is what the person said.
type Answer struct {
	Text string `json:"text"`
	By   string `json:"by,omitempty"` // where it came from, e.g. "cli", "web"
	// Choice is the number of the option that was chosen and Option its text.
	Choice int    `json:"choice,omitempty"`
	Option string `json:"option,omitempty"`
}

// Asked is a person's request to pause or to stop.
type Asked struct {
	Text string `json:"text,omitempty"`
	By   string `json:"by,omitempty"`
}

// End is how a run came to rest: for good, or until it is resumed.
type End struct {
	Status    string        `json:"status"`
	Why       string        `json:"why"`
	Iteration int           `json:"iteration"` // the last one, 0 for none
	Exit      int           `json:"exit"`      // pawl's exit status for it
	Elapsed   time.Duration `json:"elapsed"`
	Cost      loop.MicroUSD `json:"cost_micro_usd"`
	CostKnown bool          `json:"cost_known"`
}

// Recovery is what was found after a crash.
type Recovery struct {
	Iteration int    `json:"iteration"`         // the one that was in flight, 0 for none
	Attempt   int    `json:"attempt,omitempty"` // of that iteration
	Adopted   bool   `json:"adopted,omitempty"`
	Why       string `json:"why"`
}

// Rollback is a tree that was put back.
type Rollback struct {
	To       int    `json:"to"`                 // iteration; 0 is before the run
	Snapshot string `json:"snapshot,omitempty"` // what the tree is now
	Recovery string `json:"recovery,omitempty"` // the snapshot taken before, to undo it
	// Before and After are the trees of the person's files, FromHead and ToHead what was
	// checked out, on Branch.
	Before   string `json:"before,omitempty"`
	After    string `json:"after,omitempty"`
	FromHead string `json:"from_head,omitempty"`
	ToHead   string `json:"to_head,omitempty"`
	Branch   string `json:"branch,omitempty"`
	// Of a task on a board that machines share: Here is a rollback of its workspace itself. Otherwise who works on
	// it next starts from what was sent after the iteration.
	Here bool `json:"here,omitempty"`
	Undo bool `json:"undo,omitempty"`
}

// Step is an execution of a workflow's step.
type Step struct {
	Step      string `json:"step"`
	N         int    `json:"n"` // of its executions, 1-based
	Iteration int    `json:"iteration"`
	Kind      string `json:"kind"`                  // run, agent, procedure, ask, workflow
	Agent     string `json:"agent,omitempty"`       // of the kind agent
	Try       int    `json:"try,omitempty"`         // 1-based, of its retries in this iteration
	Alternate int    `json:"alternative,omitempty"` // 1-based; 0 is the step's own work

	// At the end only.
	Status  string        `json:"status,omitempty"`
	Elapsed time.Duration `json:"elapsed,omitempty"`
	Summary string        `json:"summary,omitempty"` // why it failed

	// Of a notice of it only, while the run works.
	Why  string `json:"-"` // of a skip, a repetition or a wait, in words
	Line string `json:"-"` // of output, without its end
}

// Notice is a warning: nothing stopped, but a person should know.
type Notice struct {
	Code string `json:"code,omitempty"` // e.g. "VERIFICATION_EMPTY"
	Text string `json:"text"`
}

// New makes event n of a run; data is the struct of the kind, or nil.
func New(run string, n int64, at time.Time, kind string, data any) (Event, error) {
	e := Event{Run: run, N: n, At: at, Kind: kind}
	if data == nil {
		return e, nil
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return Event{}, fmt.Errorf("cannot make the event %s of run %s: %v", kind, run, err)
	}
	e.Data = raw
	return e, nil
}

// Source is where events are stored.
type Source interface {
	// Events returns at most limit events with a higher Seq than after, oldest
	// first; of all runs when run is empty.
	Events(ctx context.Context, run string, after int64, limit int) ([]Event, error)
}

// Appender stores events beside a run's own story.
type Appender interface {
	// Append stores an event with N = 0 and returns its Seq.
	Append(ctx context.Context, e Event) (int64, error)
}

// Poll is how often a follower of a run looks for new events.
const Poll = 100 * time.Millisecond

// page bounds how many events are in memory at once: one of them may carry a
// whole record with a thousand paths.
const page = 100

// Append stores an event beside the run's own story, e.g. a warning by a
// process that does not own the run. It changes no state and is no part of
// the run's numbering.
func Append(ctx context.Context, to Appender, run string, at time.Time, kind string, data any) (int64, error) {
	e, err := New(run, 0, at, kind, data)
	if err != nil {
		return 0, err
	}
	return to.Append(ctx, e)
}

// Read yields the stored events with a higher Seq than after, oldest first,
// up to the last one that is stored when it gets there; of all runs when run
// is empty. An error is yielded once, as the last thing.
func Read(ctx context.Context, from Source, run string, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			events, err := from.Events(ctx, run, after, page)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
				after = e.Seq
			}
			if len(events) < page {
				return
			}
		}
	}
}
