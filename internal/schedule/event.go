package schedule

import (
	"time"

	"github.com/pawl-dev/pawl/internal/loop"
)

// EventKind is the sort of an event.
type EventKind string

// The events, with the fields that each has beside its time.
const (
	Began      EventKind = "began"       // Settings, Cases: those that run already and are adopted
	Picked     EventKind = "picked"      // Case: the task to start, "" is none, Why; Named: the one that Pick named; Repairs as Pick had it; Counts; answers Pick
	Counted    EventKind = "counted"     // Counts; answers Count
	Started    EventKind = "started"     // Case; answers Start
	NotStarted EventKind = "not started" // Case, Why, Fault, Outcome; answers Start, at once or later
	Iterated   EventKind = "iterated"    // Case, Iteration
	Ended      EventKind = "ended"       // Case, Outcome
	Settled    EventKind = "settled"     // Case; answers Settle. With a Fault it could not be stored, Why
	Asked      EventKind = "asked"       // Ask, Case, Mode, Cause
	Changed    EventKind = "changed"     // the board or the queue is not what it was
	Landed     EventKind = "landed"      // Case
	Limited    EventKind = "limited"     // Named: the agent that a provider limits, Why; without a Why it answers again
	Gone       EventKind = "gone"        // Case, Why: it has a slot, and somebody else settled it
	Woken      EventKind = "woken"       // the time of a rest is over
	Did        EventKind = "did"         // answers every other command
)

// Fault is whose a start that failed was.
type Fault string

// The faults.
const (
	OfTask    Fault = "task"    // another try may fail alike: it counts
	OfBoard   Fault = "board"   // the task is not ready any more
	OfMachine Fault = "machine" // the database, the disk, or what nobody knows: nothing is started for a while
)

// Ask is what a person wants.
type Ask string

// The asks.
const (
	AskPause  Ask = "pause"
	AskResume Ask = "resume"
	AskStop   Ask = "stop" // Cause; a second one ends at once
	AskMode   Ask = "mode"
	AskStart  Ask = "start" // Case
)

// Event is something that happened.
type Event struct {
	Kind    EventKind `json:"kind"`
	At      time.Time `json:"at"`
	Case    string    `json:"case,omitempty"`
	Named   string    `json:"named,omitempty"`
	Repairs bool      `json:"repairs,omitempty"`
	Cases   []string  `json:"cases,omitempty"`
	Why     string    `json:"why,omitempty"`
	// Again is when a task may be ready that waits for its agent's provider.
	Again   time.Time `json:"again,omitzero"`
	Fault   Fault     `json:"fault,omitempty"`
	Outcome Outcome   `json:"outcome,omitzero"`
	// Iteration is one that ended in the slot of the task.
	Iteration Iteration  `json:"iteration,omitzero"`
	Settings  Settings   `json:"settings,omitzero"`
	Counts    Counts     `json:"counts,omitzero"`
	Ask       Ask        `json:"ask,omitempty"`
	Mode      Mode       `json:"mode,omitempty"`
	Cause     loop.Cause `json:"cause,omitempty"`
	Kill      bool       `json:"kill,omitempty"`
}

// CommandKind is the sort of a command.
type CommandKind string

// The commands, with the fields that each has beside its reason.
const (
	Pick   CommandKind = "pick"   // Case: only that one; else Exclude; Repairs: only what repairs the target
	Verify CommandKind = "verify" // the target, by the queue
	Count  CommandKind = "count"  // what the board and the queue hold
	Start  CommandKind = "start"  // Case; Adopt: its run goes on already
	Settle CommandKind = "settle" // Case, Settlement
	Pause  CommandKind = "pause"  // Case: its run is to rest at the end of its iteration
	Resume CommandKind = "resume" // Case: its run is to go on
	Stop   CommandKind = "stop"   // Case, Cause, Kill
	Alert  CommandKind = "alert"  // Why is what a person is told
	Tell   CommandKind = "tell"   // Why is what happened; nobody has to act
	Rest   CommandKind = "rest"   // until an event, or Until
	Finish CommandKind = "finish" // Exit
)

// Command is what is to be done.
type Command struct {
	Kind       CommandKind `json:"kind"`
	Why        string      `json:"why"`
	Case       string      `json:"case,omitempty"`
	Exclude    []string    `json:"exclude,omitempty"`
	Repairs    bool        `json:"repairs,omitempty"`
	Adopt      bool        `json:"adopt,omitempty"`
	Settlement Settlement  `json:"settlement,omitzero"`
	Cause      loop.Cause  `json:"cause,omitempty"`
	Kill       bool        `json:"kill,omitempty"`
	Until      time.Time   `json:"until,omitzero"` // zero: no time ends the rest
	Exit       int         `json:"exit,omitempty"` // pawl's exit status
}
