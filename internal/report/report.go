package report

import (
	"time"

	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

// Input is what is known of a run.
type Input struct {
	Run, Name string
	Kind      string // "procedure", "task", "workflow" or "demo"
	Status    loop.Status
	Why       string
	StartedAt time.Time
	// Now is when the run is looked at.
	Now     time.Time
	State   loop.State
	Records []loop.Record
	Moments []Moment // oldest first
	// Executions are those of a workflow's steps, in the order of their beginning.
	Executions []Execution
	// Changes are what the run did to the files; nil: not known.
	Changes *Changes
	Next    []Advice
	// Sandbox says what was enforced, Version which pawl made the report.
	Sandbox, Version string
}

// Advice is one thing that can be done next.
type Advice struct {
	What    string
	Command string // may be empty
}

// Changes are the differences between a run's first and last snapshot.
type Changes struct {
	Files          []File
	More           bool // there are others
	Added, Deleted int  // lines
}

// File is one changed file.
type File struct {
	Status string // "added", "modified", "deleted", "renamed", "changed"
	Path   string
	Times  int // iterations that changed it; 0 where that is not known
}

// Execution is one execution of a workflow's step, as it is stored.
type Execution struct {
	Step, Title string
	Kind        string // run, agent, procedure or ask
	Agent       string
	Status      string // running, success, failure, cancelled, interrupted, asking or refused
	Iteration   int
	Try         int // 1-based
	Alternative int // 1-based; 0 is the step's own work
	Optional    bool
	StartedAt   time.Time
	Elapsed     time.Duration
	Failure     string // its summary; "" for none
	Output      string // what it printed or said; its last line is shown
}

// MomentKind is what happened.
type MomentKind string

// The kinds.
const (
	Began      MomentKind = "began"
	Resumed    MomentKind = "resumed"
	Recovered  MomentKind = "recovered"
	Rested     MomentKind = "rested" // it ended, or is paused
	WaitBegan  MomentKind = "waiting"
	WaitEnded  MomentKind = "wait over"
	Chosen     MomentKind = "chosen" // of a strategy: Number, Attempt, Text is why
	Ended      MomentKind = "ended"  // an iteration
	Sign       MomentKind = "sign"   // of life: a step began or ended
	Asked      MomentKind = "asked"
	Answered   MomentKind = "answered"
	Warned     MomentKind = "warned"
	RolledBack MomentKind = "rolled back"
	Applied    MomentKind = "applied"
)

// Moment is one event of the run's journal.
type Moment struct {
	At              time.Time
	Kind            MomentKind
	Text            string
	Number, Attempt int
}

// Report is a run, ready for the templates. All texts, those of Input too, are
// one line without control characters, and none is escaped.
type Report struct {
	Input
	Agents     []string
	Cost       string // "unknown" where it is
	Iterations Count
	Times      Times
	Question   *loop.Question // nil when nobody is asked
	Work       []Step         // of a workflow
	MoreWork   int            // steps that are not in Work
	StepCount  string         // "3 of 5 steps done", of a workflow
	Steps      []Iteration
	LeftOut    int       // iterations that are not in Steps
	Failures   []Failure // most frequent first
	Strategies []Strategy
	Notes      []Note
}

// Count is of iterations.
type Count struct {
	Done, Limit             int // Limit 0 is none
	Succeeded, Failed, Cuts int // Cuts are attempts that a provider cut off
}

// Times are where the time went. Their sum is Wall.
type Times struct {
	// Stepped is true for a workflow: Agents is the time of its steps.
	Stepped bool
	// Going is true while an iteration is under way, also of a run that was left
	// in the middle of one: its time is part of Rest.
	Going                                     bool
	Wall, Agents, Gates, Reviews, Waits, Rest time.Duration
}

// Iteration is one attempt.
type Iteration struct {
	*loop.Record
	Label       string // "3", or "3.2" for its second attempt
	StrategyWhy string
}

// Step is a step of a workflow over the whole run, with its last execution.
type Step struct {
	Execution         // Status is in words
	Mark       string // one character
	Tone       Tone
	Runs       int
	Iterations string // in which it ran: "1, 3"
	Took       time.Duration
}

// Failure is what iterations failed of, in the same way.
type Failure struct {
	*failure.Analysis
	Times int
	Where []string // labels of iterations
}

// Strategy is one that was in force.
type Strategy struct {
	Name                    string
	Used, Succeeded, Failed int
	Where                   []string // labels of iterations
	Took                    time.Duration
	Cost                    loop.MicroUSD
	CostKnown               bool
}

// Note is something that a person should know of the run's course.
type Note struct {
	At   time.Time
	Text string
	Warn bool
}

// Tone is whether something is good.
type Tone string

// The tones.
const (
	Good  Tone = "good"
	Bad   Tone = "bad"
	Wait  Tone = "wait" // somebody or something is waited for
	Going Tone = "going"
	Plain Tone = "plain"
)
