package loop

import (
	"time"

	"github.com/pawl-dev/pawl/internal/strategy"
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
	// Limited are the limits of the providers of the run's agents that are known,
	// one an agent at most, whoever met them; those that are just over, too.
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
// the command under way goes on.
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
	// GateFactor multiplies the time limits of gates; 0 and 1 leave them.
	GateFactor int `json:"gate_factor,omitempty"`
	// Parallelism is how many steps run at once; 0 is the strategy's own.
	Parallelism int `json:"parallelism,omitempty"`
	// StepTimeout is for steps that have no time limit of their own.
	StepTimeout time.Duration `json:"step_timeout,omitempty"`
	// Fresh begins a failed step anew: with its own work, not with the next alternative.
	Fresh bool `json:"fresh,omitempty"`

	// Until is when a wait is over; of a run that rests since a provider limits it,
	// when that may be over.
	Until time.Time `json:"until,omitzero"`
	// Limited: it waits for the provider of Agent.
	Limited bool `json:"limited,omitempty"`
	// Insist starts the agent although a limit of its provider is known.
	Insist bool `json:"insist,omitempty"`

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

// Decision is what followed from an event, for whoever keeps a run's state in
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
