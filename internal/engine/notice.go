package engine

import (
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

// NoticeKind is the sort of a notice.
type NoticeKind string

// The notices, in the order in which they can come.
const (
	RunStarted       NoticeKind = "run started"       // Run
	RunResumed       NoticeKind = "run resumed"       // Run
	IterationStarted NoticeKind = "iteration started" // Command
	AgentStarts      NoticeKind = "agent starts"      // Command; all is ready for it
	AgentEvent       NoticeKind = "agent"             // Event
	GateStarted      NoticeKind = "gate started"      // Gate.Name
	GateEnded        NoticeKind = "gate ended"        // Gate
	IterationEnded   NoticeKind = "iteration ended"   // Record, Failures
	ReviewStarted    NoticeKind = "review started"    // Command
	ReviewEnded      NoticeKind = "review ended"      // Record, Command
	StepStarted      NoticeKind = "step started"      // Step
	StepOutput       NoticeKind = "step output"       // Step.Line, of a workflow's step
	StepWaits        NoticeKind = "step waits"        // Step.Elapsed is how long, before it is tried again
	StepEnded        NoticeKind = "step ended"        // Step
	WaitStarted      NoticeKind = "wait started"      // Command.Until, Command.Why
	LimitsRaised     NoticeKind = "limits raised"     // Text: what the run may from now on
	RunEnded         NoticeKind = "run ended"         // Command, State
	Warning          NoticeKind = "warning"           // Text
	Note             NoticeKind = "note"              // Text: what pawl does; it is stored nowhere
	// Tick comes once a second while a command is carried out, so that a clock
	// on a screen moves. It is stored nowhere.
	Tick NoticeKind = "tick"
)

// Notice is what the engine tells whoever watches. It is told after it is
// stored, one at a time, and telling never fails.
type Notice struct {
	Kind    NoticeKind
	At      time.Time
	Run     string
	State   loop.State
	Command loop.Command
	Record  *loop.Record
	Gate    loop.Gate
	Event   agent.Event
	Text    string
	// NearTime: the warning is that 80 % of the run's time is used.
	NearTime bool
	// Step is the workflow's step; with an agent's event, which step's agent it is.
	Step *StepNotice
	// Summary is one line for a red verification.
	Summary string
}

// StepNotice is what happened to one step of a workflow.
type StepNotice struct {
	Step      string // with its matrix values, below its workflow
	Kind      string // run, agent, procedure, ask or workflow
	Agent     string // of the kind agent
	Try       int    // 1-based, of its attempts in this iteration
	Alternate int    // 1-based; 0 is the step's own work
	Optional  bool
	// Status of a step that starts is "adopted" where an earlier pawl began it, else
	// "". At its end it is how it ended: success, failure, cancelled, skipped, interrupted,
	// asking; kept: its result is from before; or held: one that it needs failed.
	Status  string
	Why     string // of a skip, a repetition or a wait, in words
	Elapsed time.Duration
	Failure *failure.Analysis
	Line    string // of output, without its end
}
