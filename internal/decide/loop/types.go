package loop

import (
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/decide/signal"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
)

// MicroUSD is money in whole millionths of a US dollar.
type MicroUSD int64

// Dollars is the amount as JSON shows it; nil where it is not known.
func (m MicroUSD) Dollars(known bool) *float64 {
	if !known {
		return nil
	}
	return new(float64(m) / 1e6)
}

// CostPartial is the source of a cost that is not all of it: the price of a model that was
// called, too, is not known.
const CostPartial = "partial"

// CostKnown reports whether a source knows a cost, or a part of it.
func CostKnown(source string) bool { return source != "none" && source != "" }

// GateStatus is how one gate ended.
type GateStatus string

// The gate statuses.
const (
	GatePassed   GateStatus = "passed"
	GateFailed   GateStatus = "failed"
	GateTimedOut GateStatus = "timeout"
	GateNotRun   GateStatus = "not run"
	GateError    GateStatus = "error" // the command could not be started
)

// Gate is the result of one verification command.
type Gate struct {
	Name     string        `json:"name"`
	Required bool          `json:"required"`
	Status   GateStatus    `json:"status"`
	Elapsed  time.Duration `json:"elapsed"`
	ExitCode int           `json:"exit_code"`
	// Test is true for a test gate; Passed and Total are its counts. Total is
	// -1 when no parser knew the output.
	Test   bool `json:"test,omitempty"`
	Passed int  `json:"passed"`
	Total  int  `json:"total"`
	// Note explains a status that the exit code does not, e.g. "no tests ran".
	Note string `json:"note,omitempty"`
	// Tries is how often it ran on the same tree until it could judge.
	Tries int `json:"tries,omitempty"`
	// Fixed is true for a time limit that was set for this gate: no strategy raises it.
	Fixed bool `json:"fixed,omitempty"`
	// Origin is whose the gate is; Criterion is what a check of a task shows.
	Origin    string `json:"origin,omitempty"`
	Criterion string `json:"criterion,omitempty"`
	// Before says how a check of a task ended before the work: "green", or "red" and why; "" where it was not tried.
	Before string `json:"before,omitempty"`
}

// Evidence is a file that a gate, or else the agent, left to show what the work does.
type Evidence struct {
	Gate  string `json:"gate,omitempty"` // its name; "" is the agent
	File  string `json:"file"`           // its name in the iteration's folder of evidence
	Bytes int64  `json:"bytes"`
}

// The origins of gates beside the project's own, which have none.
const (
	OfTask = "task"   // a check of one task, which its agent is shown
	Sealed = "sealed" // one that no agent at work on the task sees
)

// Flaky reports whether the gate could not judge, and passed on the same tree when it ran again.
func (g *Gate) Flaky() bool { return g.Tries > 1 && g.Status == GatePassed }

// Ended says why pawl ended a process that had not ended by itself.
type Ended string

// The reasons. NotEnded: the process ended by itself.
const (
	NotEnded     Ended = ""
	EndedTimeout Ended = "timeout" // iteration_timeout
	EndedIdle    Ended = "idle"    // idle_timeout
	EndedStop    Ended = "stop"    // a person's stop, or a signal to pawl
	EndedLease   Ended = "lease"   // pawl was away for longer than the lease
	EndedCost    Ended = "cost"
	EndedTokens  Ended = "tokens"
	EndedCalls   Ended = "calls"
	EndedTurns   Ended = "turns"
	EndedDay     Ended = "day"      // what all runs of the user may spend in a day
	EndedPrice   Ended = "no_price" // money is limited, and the model has no price
	EndedLost    Ended = "lost"     // the supervisor died too; what happened is not known

	EndedRepeats  Ended = "repeats"  // the same turns again and again
	EndedRequests Ended = "requests" // model calls that bring nothing new
	EndedRetries  Ended = "retries"  // the program's own retries do not end
	EndedOutput   Ended = "output"   // output, or one message, without end
	EndedDisk     Ended = "disk"     // the disk of the workspace is nearly full
	EndedGone     Ended = "gone"     // the folder that it worked in was removed

	EndedDestructive Ended = "destructive" // a tool call that the safety level forbids
)

// Terminal is how an agent's structured stream ended.
type Terminal string

// The terminals.
const (
	TerminalNone    Terminal = ""        // the agent has no structured stream
	TerminalOK      Terminal = "ok"      // its own terminal success event
	TerminalFailed  Terminal = "failed"  // its own terminal failure event
	TerminalMissing Terminal = "missing" // the stream was cut off
)

// Exit is how the agent's process ended.
type Exit struct {
	Code     int      `json:"code"`             // -1 when it did not exit by itself
	Signal   string   `json:"signal,omitempty"` // e.g. "killed"
	Ended    Ended    `json:"ended,omitempty"`
	Terminal Terminal `json:"terminal,omitempty"`
	// Why says what was seen and what to do, where Ended is a guard's.
	Why string `json:"why,omitempty"`
}

// Record is one iteration as the journal keeps it. What is stored outlives
// the code: fields can be added or removed, but their names must not change.
type Record struct {
	Number    int           `json:"number"`  // 1-based
	Attempt   int           `json:"attempt"` // 1-based; rises when a provider's limit cut an attempt off
	StartedAt time.Time     `json:"started_at"`
	Elapsed   time.Duration `json:"elapsed"`
	Host      string        `json:"host,omitempty"` // the machine
	Agent     string        `json:"agent"`
	Strategy  string        `json:"strategy"`
	Exit      Exit          `json:"exit"`

	Signal    signal.Signal `json:"signal"`
	Progress  int           `json:"progress"` // 0-100; -1 unknown
	Malformed []string      `json:"malformed,omitempty"`

	Gates []Gate `json:"gates,omitempty"`
	// Verified is true when the gates were run, or when there are none to run.
	Verified bool `json:"verified"`
	// Tampered lists protected paths that the iteration changed.
	Tampered []string `json:"tampered,omitempty"`
	// Score is the quality, 0 to 1000 per mille; -1 when there is none.
	Score int `json:"score"`
	// Evidence are the files that the agent and the gates left.
	Evidence []Evidence `json:"evidence,omitempty"`
	// Review is nil when none was asked for in this iteration.
	Review *Review `json:"review,omitempty"`

	// Steps is what an iteration of a workflow came to; nil for any other.
	Steps *Steps `json:"steps,omitempty"`

	// Refused is the tool call that ended the iteration, when one did.
	Refused *safety.Finding `json:"refused,omitempty"`
	// Secrets are places in what the iteration added that look like secrets; at
	// most 100.
	Secrets []safety.Secret `json:"secrets,omitempty"`
	// Withheld are the names of variables that the agent did not get.
	Withheld []string `json:"withheld,omitempty"`

	// Failure is set when anything failed: the agent or a required gate.
	Failure *failure.Analysis `json:"failure,omitempty"`

	// TestProtected is true when the agent may not change the test that failed, or the file of its gate.
	TestProtected bool `json:"test_protected,omitempty"`

	// TreeKnown is false outside of git, where changes cannot be seen.
	TreeKnown  bool     `json:"tree_known"`
	TreeBefore string   `json:"tree_before,omitempty"`
	TreeAfter  string   `json:"tree_after,omitempty"`
	Files      []string `json:"files,omitempty"` // changed by this iteration, at most 1,000
	// Flagged are files that the gates' output names ("file: path").
	Flagged []string `json:"flagged,omitempty"`
	Commits int      `json:"commits"`
	// Size is how the tree differs from what it was before the run, of work that is said to
	// be complete; nil is not known.
	Size     *Size  `json:"size,omitempty"`
	Snapshot string `json:"snapshot,omitempty"` // commit id
	// Pushed is where other machines find what the iteration left; nil where there are none.
	Pushed *Pushed `json:"pushed,omitempty"`

	TokensIn   int64    `json:"tokens_in"`
	TokensOut  int64    `json:"tokens_out"`
	Cost       MicroUSD `json:"cost_micro_usd"`
	CostSource string   `json:"cost_source"` // "metered" by the gateway, "reported", "estimated" or "none"
	Calls      int      `json:"calls"`
	// Models is the use by model, where the gateway saw the calls; by name.
	Models []ModelUse `json:"models,omitempty"`
	Output int64      `json:"output_bytes"`

	// WarnedTime and WarnedRunTime: while the agent worked a person was warned that 80 % of
	// the iteration's time, or of the run's, was used.
	WarnedTime    bool `json:"warned_time,omitempty"`
	WarnedRunTime bool `json:"warned_run_time,omitempty"`
	WarnedCost    bool `json:"warned_cost,omitempty"` // the same of the run's limit on cost

	// Kept counts what the kernel made of it, set by Step on the copy that is
	// journalled: "success", "failed", "neutral", "asked" or "waited".
	Outcome Outcome `json:"outcome,omitempty"`
}

// Size counts what differs between two trees.
type Size struct {
	Files   int `json:"files"`
	Added   int `json:"added"` // lines
	Deleted int `json:"deleted"`
}

// Pushed is the work on a task as it was sent to the remote.
type Pushed struct {
	Worker string `json:"worker"` // whose workspace it is of
	Base   string `json:"base"`   // commit that the work began at
	Commit string `json:"commit"` // "" where it could not be sent: only the worker has it
}

// ModelUse is what an iteration used of one model, in tokens.
type ModelUse struct {
	Model      string   `json:"model"`
	Calls      int      `json:"calls"`
	Input      int64    `json:"input"` // without what came from a cache
	CacheRead  int64    `json:"cache_read"`
	CacheWrite int64    `json:"cache_write"`
	Output     int64    `json:"output"`
	Cost       MicroUSD `json:"cost_micro_usd"`
	Unpriced   bool     `json:"unpriced,omitempty"` // the cost is not all of it, or not known
}

// Took is the time that the iteration took a person: its agent's, and its
// gates', which run one after the other. Its review is not in it.
func (r *Record) Took() time.Duration { return r.Elapsed + r.Verifying() }

// Verifying is the time of its gates.
func (r *Record) Verifying() time.Duration {
	var sum time.Duration
	for i := range r.Gates {
		sum += max(0, r.Gates[i].Elapsed)
	}
	return sum
}

// Outcome is what an iteration was for the loop.
type Outcome string

// The outcomes.
const (
	Success Outcome = "success"
	Failed  Outcome = "failed"
	Neutral Outcome = "neutral" // nothing red, nothing changed, nothing claimed
	Asked   Outcome = "asked"   // it only asks a person; neither success nor failure
	Waited  Outcome = "waited"  // cut off by a limit of the provider; not an iteration
)

// EventKind is the sort of an event.
type EventKind string

// The events.
const (
	Started        EventKind = "started"         // Policy, Learned
	IterationEnded EventKind = "iteration ended" // For, Record
	WaitOver       EventKind = "wait over"       // For
	Answered       EventKind = "answered"        // Text, Choice
	PauseAsked     EventKind = "pause asked"
	StopAsked      EventKind = "stop asked" // Cause
	Resumed        EventKind = "resumed"    // Policy: limits as they are now
	Raised         EventKind = "raised"     // Policy: what a person allows the run that works
	Throttled      EventKind = "barred"     // For, Limited: the command was not begun
	Reviewed       EventKind = "reviewed"   // For, Review of one try
	Recovered      EventKind = "recovered"  // For, Record of what is known: the iteration in flight was lost
)

// Event is something that happened. Time and seed come in with it.
type Event struct {
	Kind EventKind `json:"kind"`
	At   time.Time `json:"at"`
	Seed uint64    `json:"seed,omitempty"`
	// For is the Seq of the command that the event answers.
	For    int     `json:"for,omitempty"`
	Record *Record `json:"record,omitempty"`
	Review *Review `json:"review,omitempty"`
	Policy *Policy `json:"policy,omitempty"`
	Text   string  `json:"text,omitempty"`
	// Choice is the number of the option that a person chose, 1-based; 0 when
	// the text alone is the answer.
	Choice int `json:"choice,omitempty"`
	// Replies are answers to steps that ask, by step; then Text is none.
	Replies []Asks `json:"replies,omitempty"`
	Cause   Cause  `json:"cause,omitempty"`
	// Limited are the known limits of the providers of the run's agents, one an agent
	// at most, met by any run; those that are just over, too.
	Limited []Limited `json:"limited,omitempty"`
	// Messages are those that the iteration's prompt had; Memory is what was said in
	// the earlier runs of the task, for a start.
	Messages []string `json:"messages,omitempty"`
	Memory   []Said   `json:"memory,omitempty"`
	// Learned is what the runs before learned of strategies.
	Learned []strategy.Tally `json:"learned,omitempty"`

	// Set by Step in its own copy: the record that the event leads to, and that
	// the event changed the state and no command.
	judged *Record
	noted  bool
}

// CommandKind is the sort of a command.
type CommandKind string

// The commands. NoCommand: nothing changed. Noted: the state is to be stored, and
// the command under way continues.
const (
	NoCommand CommandKind = ""
	Noted     CommandKind = "noted"
	Run       CommandKind = "run"    // Iteration, Attempt, Agent, Strategy, Feedback, Limits, Rewind
	RunReview CommandKind = "review" // Iteration, Attempt, Review, Agent, Limits
	Wait      CommandKind = "wait"   // Until
	Ask       CommandKind = "ask"    // Status, Question
	Finish    CommandKind = "finish" // Status, Question when a person is needed
)

// Command is what to do next.
type Command struct {
	Kind CommandKind `json:"kind,omitempty"`
	Seq  int         `json:"seq,omitempty"`
	Why  string      `json:"why,omitempty"`

	Iteration   int           `json:"iteration,omitempty"`
	Attempt     int           `json:"attempt,omitempty"`
	Agent       string        `json:"agent,omitempty"`
	Strategy    string        `json:"strategy,omitempty"`
	StrategyWhy string        `json:"strategy_why,omitempty"`
	Feedback    *Feedback     `json:"feedback,omitempty"`
	Limits      CommandLimits `json:"limits,omitzero"`
	// Rewind is the iteration whose snapshot the tree is put back to first; 0: none.
	Rewind       int  `json:"rewind,omitempty"`
	SkipOptional bool `json:"skip_optional,omitempty"`
	// Review is the number of the try, 1-based.
	Review int `json:"review,omitempty"`
	Measures

	Resting

	Status   Status    `json:"status,omitempty"`
	Guard    string    `json:"guard,omitempty"`   // the guard that ended the run
	Message  string    `json:"message,omitempty"` // the guard's literal message
	Question *Question `json:"question,omitempty"`
	// Warnings are for the user's eyes, in the order to show.
	Warnings []string `json:"warnings,omitempty"`
	// Learned is what the iteration that ended showed of strategies.
	Learned []strategy.Credit `json:"learned,omitempty"`

	// Record is the iteration that ended or was reviewed, judged: it is to be stored
	// with the state. It is not part of the state. Nil when no iteration changed.
	Record *Record `json:"-"`
}

// Resting is how long the run waits, or rests.
type Resting struct {
	// Until is when a wait is over; of a run that rests since a provider limits it,
	// when that may be over.
	Until time.Time `json:"until,omitzero"`
	// Limited: it waits for the provider of Agent.
	Limited bool `json:"limited,omitempty"`
	// Settled: pawl ends the run since its task was decided by another process.
	Settled bool `json:"settled,omitempty"`
	// OutOfMoney: a limit on the cost of the run or its task ended the run.
	OutOfMoney bool `json:"out_of_money,omitempty"`
	// Insist starts the agent although a limit of its provider is known.
	Insist bool `json:"insist,omitempty"`
}

// Measures are what the strategy of an iteration changes beside its prompt.
type Measures struct {
	// GateFactor multiplies the time limits of gates; 0 and 1 leave them.
	GateFactor int `json:"gate_factor,omitempty"`
	// Parallelism is how many steps run at once; 0 is the strategy's own.
	Parallelism int `json:"parallelism,omitempty"`
	// StepTimeout is for steps that have no time limit of their own.
	StepTimeout time.Duration `json:"step_timeout,omitempty"`
	// Fresh begins a failed step anew: with its own work, not with the next alternative.
	Fresh bool `json:"fresh,omitempty"`
}

// CommandLimits bound one iteration; [NoLimit] or a zero duration is none.
type CommandLimits struct {
	Wall time.Duration `json:"wall,omitempty"`
	// WallOf names the limit that Wall comes from, e.g. "iteration_timeout 10m".
	WallOf string        `json:"wall_of,omitempty"`
	Idle   time.Duration `json:"idle,omitempty"`
	Cost   MicroUSD      `json:"cost_micro_usd"`
	Calls  int           `json:"calls"`
	Tokens *int64        `json:"tokens,omitempty"` // nil is no limit
}

// Decision is what followed from an event, for a caller that keeps a run's state in
// another place than where its commands are carried out. What is stored outlives
// the code: fields can be added or removed, but their names must not change.
type Decision struct {
	Event   Event   `json:"event"`
	State   State   `json:"state"` // after it
	Command Command `json:"command"`
	// Record is the command's, which does not encode it.
	Record *Record `json:"record,omitempty"`
}

// Decide is [Step] as a decision.
func Decide(s State, e Event) Decision {
	after, c := Step(s, e)
	return Decision{e, after, c, c.Record}
}

// Whole is the command with its record.
func (d *Decision) Whole() Command {
	c := d.Command
	c.Record = d.Record
	return c
}
