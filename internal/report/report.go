package report

import (
	"time"

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

// Report is a run, ready to be written. All texts are one line without control
// characters, and none is escaped.
type Report struct {
	Run, Name, Kind string
	Status          string
	Why             string
	Tone            Tone
	Started, Made   time.Time
	Sandbox         string
	Version         string
	Agents          []string

	Iterations Count
	Times      Times
	Cost       string // "unknown" where it is
	TokensIn   int64
	TokensOut  int64
	Calls      int

	Question   *Question
	Next       []Advice
	Timeline   Timeline
	Work       []Step      // of a workflow
	MoreWork   int         // steps that are not in Work
	StepCount  string      // "3 of 5 steps done", of a workflow
	Steps      []Iteration // in order
	LeftOut    int         // iterations that are not in Steps
	LeftAfter  int         // the number of Steps before those
	Failures   []Failure   // most frequent first
	MoreKinds  int         // kinds of failure that are not in Failures
	Strategies []Strategy
	Changes    *Changes
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
	Label                   string // "3", or "3.2" for its second attempt
	Outcome                 string
	Tone                    Tone
	Agent                   string
	Strategy                string
	StrategyWhy             string
	StartedAt               time.Time
	Took, Agents, Verifying time.Duration
	Ending                  string // "" for a normal end, else "exit 1", "timeout"…
	Said                    string // a signal of the agent
	Gates                   []Gate
	Review                  *Review
	Class                   string
	Summary                 string // of the failure
	Step                    string // that failed
	Items                   []string
	MoreItems               int
	Files                   []string
	MoreFiles               int
	Cost                    string // "" where unknown
	Tokens                  int64
	Warnings                []string
}

// Gate is a verification command.
type Gate struct {
	Name, Status, Mark string
	Tone               Tone
	Took               time.Duration
	Tests              string // "3/4", or ""
	Note               string
	Optional           bool
}

// Review is what a second look said.
type Review struct {
	Verdict, By, Summary string
	Tone                 Tone
	Took                 time.Duration
	Items                []string
	Told                 bool // the iteration's failure says the same
}

// Failure is what iterations failed of, in the same way.
type Failure struct {
	Class, Summary, Step, Severity string
	Transient                      bool
	Times                          int
	Where                          []string // labels of iterations
	Actions                        []string
}

// Strategy is one that was in force.
type Strategy struct {
	Name                    string
	Used, Succeeded, Failed int
	Where                   []string // labels of iterations
	Took                    time.Duration
	Cost                    string
}

// Question is what a person is asked.
type Question struct {
	Text, Pattern string
	Attempts      []string
	Options       []string
}

// Note is something that a person should know of the run's course.
type Note struct {
	At   time.Time
	Text string
	Tone Tone
}
