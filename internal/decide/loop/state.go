package loop

import (
	"time"

	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
)

// Kind is the sort of work that a policy rules.
type Kind string

// The kinds of policy.
const (
	Procedure  Kind = "procedure"  // iterates until its maximum; COMPLETE with passing gates ends it earlier
	Task       Kind = "task"       // ends with COMPLETE and passing gates
	Workflow   Kind = "workflow"   // ends when all steps are complete
	Controlled Kind = "controlled" // ends with gates passed and review approved; asks at its maximum
)

// Policy is what a run may do. Amounts of zero mean: MaxIterations and the
// durations, no limit; the thresholds, guard off; MaxCost, MaxIterationCost
// and MaxIterationCalls, nothing allowed (use [NoLimit]).
type Policy struct {
	Kind             Kind `json:"kind"`
	MaxIterations    int  `json:"max_iterations"`
	FailureThreshold int  `json:"failure_threshold"`
	Thrashing        int  `json:"thrashing_threshold"`
	Stuck            int  `json:"stuck_threshold"`
	PauseOnStuck     bool `json:"pause_on_stuck,omitempty"`
	StuckLimit       int  `json:"stuck_limit,omitempty"`
	// InWords: the work is given in words, so that only COMPLETE ends it well.
	InWords  bool          `json:"in_words,omitempty"`
	Repeated int           `json:"repeated_threshold"`
	MaxWaits int           `json:"max_waits"`
	MaxWait  time.Duration `json:"max_wait"`
	Timeouts
	Costs

	// Once: a workflow that is not to iterate; its maximum is 1, and what fails
	// then fails the run.
	Once bool `json:"once,omitempty"`

	Workers
	// Strategy fixes one for the whole run; empty lets the loop choose.
	Strategy string `json:"strategy,omitempty"`
	// Mode is how it chooses, Strategies are the user's own.
	Mode        strategy.Mode       `json:"mode,omitempty"`
	Strategies  []strategy.Strategy `json:"strategies,omitempty"`
	HasOptional bool                `json:"has_optional,omitempty"` // there are gates that are not required
	// IterationCeiling is what a strategy may raise IterationTimeout to, by the
	// safety level; 0 is no such limit.
	IterationCeiling time.Duration `json:"iteration_ceiling,omitempty"`
	// Review is true when green work must also be approved by a review.
	Review bool `json:"review,omitempty"`
	// Control is iteration control: of the kind Controlled, where nil is its
	// defaults, and of a workflow that has it. Its maximum is MaxIterations, its review is Review.
	Control *control.Settings `json:"control,omitempty"`
	// Reviewer is the agent that reviews, or [Person]; empty: the program of
	// the author, in a fresh process.
	Reviewer string `json:"reviewer,omitempty"`
}

// Workers are the agents that work.
type Workers struct {
	// Agent is the default; Fallback and Stronger may be empty.
	Agent    string   `json:"agent"`
	Fallback []string `json:"fallback,omitempty"`
	Stronger string   `json:"stronger,omitempty"`
}

// Costs are the limits on money, calls and tokens.
type Costs struct {
	MaxCost           MicroUSD `json:"max_cost_micro_usd"`
	MaxIterationCost  MicroUSD `json:"max_iteration_cost_micro_usd"`
	MaxIterationCalls int      `json:"max_iteration_calls"`
	// MaxTaskCost is what all runs of a task may cost together; nil is no limit.
	// TaskCost is what the other ones have cost.
	MaxTaskCost *MicroUSD `json:"max_task_cost_micro_usd,omitempty"`
	TaskCost    MicroUSD  `json:"task_cost_micro_usd,omitempty"`
	// Tokens and Calls are further limits; that on the calls of an iteration is
	// MaxIterationCalls.
	Tokens Counts `json:"tokens,omitzero"`
	Calls  Counts `json:"calls,omitzero"`
}

// Timeouts are the limits on time.
type Timeouts struct {
	// Timeout is wall clock from the start, waits included.
	Timeout time.Duration `json:"timeout,omitempty"`
	// TaskTimeout is the sum of the iterations, waits excluded.
	TaskTimeout time.Duration `json:"task_timeout,omitempty"`
	// MaxDuration is the safety level's limit on the same sum.
	MaxDuration      time.Duration `json:"max_duration,omitempty"`
	IterationTimeout time.Duration `json:"iteration_timeout,omitempty"`
	IdleTimeout      time.Duration `json:"idle_timeout,omitempty"`
}

// NoLimit is an amount without a limit.
const NoLimit = -1

// Status is what a run is, as users see it.
type Status string

// The statuses.
const (
	Running     Status = "running"
	Waiting     Status = "waiting"
	Paused      Status = "paused"
	Pending     Status = "pending" // a question waits for a person
	Blocked     Status = "blocked"
	Completed   Status = "completed"
	FailedRun   Status = "failed"
	Aborted     Status = "aborted"
	TimedOut    Status = "timeout"   // a limit was reached
	Exhausted   Status = "exhausted" // a procedure reached its maximum, and its last iteration did not succeed
	Interrupted Status = "interrupted"
	Stopped     Status = "stopped"
)

// Active is true while a process works on the run or should.
func (s Status) Active() bool { return s == Running || s == Waiting }

// Spent is what a run has used up. It never falls.
type Spent struct {
	Cost      MicroUSD `json:"cost_micro_usd"`
	CostKnown bool     `json:"cost_known"` // some iteration reported a cost
	// CostPartial: the price of a model is missing, so that the cost is at least Cost.
	CostPartial bool  `json:"cost_partial,omitempty"`
	TokensIn    int64 `json:"tokens_in"`
	TokensOut   int64 `json:"tokens_out"`
	Calls       int   `json:"calls"`
	// Active is time in iterations; Wall is time from start to end, waits
	// included, the time between sessions excluded.
	Active time.Duration `json:"active"`
	Wall   time.Duration `json:"wall"`
}

// State is all that a decision is made from. It goes through JSON to the
// database; fields can be added, but names must not change.
type State struct {
	Policy    Policy    `json:"policy"`
	Status    Status    `json:"status,omitempty"` // "" before the start
	Why       string    `json:"why,omitempty"`
	StartedAt time.Time `json:"started_at"`
	// LastAt is the time of the last event while running or waiting.
	LastAt time.Time `json:"last_at"`

	// Iteration counts the iterations that are used up.
	Iteration int `json:"iteration"`
	// Limit is the highest number that an iteration may have; 0 is no limit.
	// Invariant: Limit == 0 || Iteration <= Limit.
	Limit int `json:"limit"`
	// Raised are the thresholds of guards that a person has raised by an answer.
	Raised map[string]int `json:"raised,omitempty"`
	// Attempts counts those of the next iteration that a limit of the
	// provider cut off.
	Attempts int   `json:"attempts,omitempty"`
	Spent    Spent `json:"spent"`

	// Command is the one being carried out; a restart performs it again.
	Command Command `json:"command"`
	// Seq numbers the commands.
	Seq int `json:"seq"`

	Guards Guards `json:"guards"`
	Best   Best   `json:"best"`
	// Green is the last iteration whose required gates all passed, with a snapshot; 0 is none.
	Green int `json:"green,omitempty"`
	// Changed: an iteration changed a file, or it cannot be seen whether one did.
	Changed bool `json:"changed,omitempty"`
	// Recent are the last 10 iterations. States share them: they never change.
	Recent []*Past `json:"recent,omitempty"`
	// Wrong says what kept the last iteration from being a success; "" when nothing.
	Wrong string `json:"wrong,omitempty"`

	Choosing
	Waits  int  `json:"waits,omitempty"`  // in a row
	Warned bool `json:"warned,omitempty"` // of 80 % of the cost
	Late   bool `json:"late,omitempty"`   // warned of 80 % of the run's time

	// PendingReview is the iteration that waits for its review. It is used up, but not
	// yet decided.
	PendingReview *PendingReview `json:"held,omitempty"`

	Asking
}

// Asking is what people asked of the run, and what it asks.
type Asking struct {
	StopAsked  Cause     `json:"stop_asked,omitempty"`
	PauseAsked bool      `json:"pause_asked,omitempty"`
	Question   *Question `json:"question,omitempty"`
	// Memory is what people said, oldest first; all prompts have it.
	Memory []Said `json:"memory,omitempty"`
}

// Choosing is which strategy and which agent the run has, and why.
type Choosing struct {
	Strategy string         `json:"strategy"`
	Used     []strategy.Use `json:"used,omitempty"`     // each once
	Fallback int            `json:"fallback,omitempty"` // which of Policy.Fallback works, 1-based; 0: Policy.Agent
	// Left are the agents that limits of their providers made the run leave; the
	// first is the one to go back to.
	Left []Left `json:"left,omitempty"`
	// Trial is the use of a strategy that the iteration under way will judge.
	Trial Trial `json:"trial,omitzero"`
	// Passing counts failed iterations in a row that were transient.
	Passing int `json:"passing,omitempty"`
	// Kept are the strategies that helped against transient failures and whose
	// settings stay in force, oldest first.
	Kept []string `json:"kept,omitempty"`
	// Learned is what is known of strategies, from this run and those before
	// its start. It is part of the state, so that a replay needs no database.
	Learned []strategy.Tally `json:"learned,omitempty"`
}

// Trial is a strategy that was chosen against a class of failure.
type Trial struct {
	strategy.Use
	Transient bool `json:"transient,omitempty"` // of the failure
}

// Best is the snapshot with the best score so far.
type Best struct {
	Number   int    `json:"number,omitempty"`
	Score    int    `json:"score,omitempty"`
	Green    bool   `json:"green,omitempty"` // its required gates passed
	Snapshot string `json:"snapshot,omitempty"`
}

// Past is what is remembered of an iteration for feedback and escalation.
type Past struct {
	Number      int     `json:"number"`
	Strategy    string  `json:"strategy"`
	Outcome     Outcome `json:"outcome"`
	Class       string  `json:"class,omitempty"`
	Fingerprint string  `json:"fingerprint,omitempty"`
	Summary     string  `json:"summary,omitempty"`
	Where       string  `json:"where,omitempty"` // the file or test that failed
	Step        string  `json:"step,omitempty"`  // the gate that was red
	Found       string  `json:"found,omitempty"` // what it found first: place, test, values
	Score       int     `json:"score"`
	Cut         bool    `json:"cut,omitempty"` // interrupted
}

// Question is an escalation: what was tried, what was found, what to decide.
type Question struct {
	Text string `json:"text"`
	// Options are the texts of Choices, numbered from 1 on screen. Both are
	// empty when the agent asks: its question may have numbers of its own.
	Options  []string         `json:"options,omitempty"`
	Choices  []control.Choice `json:"choices,omitempty"`
	Attempts []string         `json:"attempts,omitempty"`
	Pattern  string           `json:"pattern,omitempty"` // in words
	// Items are what the last iteration left to repair, Step its red gate and ExitCode
	// that one's; they go into the prompt after an answer, and so do the Notes.
	Items    []failure.Item `json:"items,omitempty"`
	Step     string         `json:"step,omitempty"`
	ExitCode int            `json:"exit_code,omitempty"`
	Notes    []string       `json:"notes,omitempty"`
	// Strategy is the one that the failure asks for when the run continues; "" is the first.
	Strategy string `json:"strategy,omitempty"`
	// Asker is the workflow's step that asks; "" for any other question.
	Asker string `json:"asker,omitempty"`
	// Open are the questions of all steps that ask, where several do; the first is
	// that of Asker.
	Open []Asks `json:"open,omitempty"`
	// NoDiff is true when the configuration leaves the diff out of escalations.
	NoDiff bool `json:"no_diff,omitempty"`
}

// Cause is why a run is to stop.
type Cause string

// The causes.
const (
	NoCause        Cause = ""
	CauseStop      Cause = "stop"      // pawl stop
	CauseInterrupt Cause = "interrupt" // Ctrl+C
	CauseTerminate Cause = "terminate" // SIGTERM
	CauseHangup    Cause = "hangup"    // SIGHUP
	CauseSettled   Cause = "settled"   // somebody else landed the task, or took it over
	CauseRaced     Cause = "raced"     // another agent has done the task
	CauseAutopilot Cause = "autopilot" // the autopilot that it runs for ends
)
