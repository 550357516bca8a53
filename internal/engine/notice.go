package engine

import (
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/loop"
)

// NoticeKind is the sort of a notice.
type NoticeKind string

// The notices, in the order in which they can come.
const (
	RunStarted       NoticeKind = "run started"       // Run
	RunResumed       NoticeKind = "run resumed"       // Run
	IterationStarted NoticeKind = "iteration started" // Command
	AgentEvent       NoticeKind = "agent"             // Event
	GateStarted      NoticeKind = "gate started"      // Gate.Name
	GateEnded        NoticeKind = "gate ended"        // Gate
	IterationEnded   NoticeKind = "iteration ended"   // Record, Failures
	ReviewStarted    NoticeKind = "review started"    // Command
	ReviewEnded      NoticeKind = "review ended"      // Record, Command
	WaitStarted      NoticeKind = "wait started"      // Command.Until, Command.Why
	RunEnded         NoticeKind = "run ended"         // Command, State
	Warning          NoticeKind = "warning"           // Text
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
	// Summary is one line for a red verification.
	Summary string
}
