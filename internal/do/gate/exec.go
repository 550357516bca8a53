package gate

import (
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// Exec is how one command ended.
type Exec struct {
	ExitCode   int    // -1 when it did not exit by itself
	Signal     string // that ended it; empty when none
	TimedOut   bool   // ended at its time limit
	Stopped    bool   // ended because a person or pawl stopped
	NotStarted string // why it could not be started; empty when it was
	Elapsed    time.Duration
	Output     string // stdout and stderr together, head and tail
	// Green is what the command printed when it last passed; empty when that is
	// not known.
	Green string
	// Tampered are the protected files that were changed while it ran.
	Tampered []Violation
	// Changed are the files that are judged and that it changed, Added those that it
	// made beside them. All are as they were again.
	Changed, Added []string
	// Explain adds to a failure what the command's sandbox refused; nil is nothing.
	Explain func(*failure.Analysis)
}

// Status is how a command ended that had to judge, whatever it printed.
func (e *Exec) Status() loop.GateStatus {
	switch {
	case e.NotStarted != "":
		return loop.GateError
	case e.TimedOut:
		return loop.GateTimedOut
	case e.Stopped:
		return loop.GateNotRun
	case e.ExitCode != 0 || e.Signal != "" || len(e.Changed) > 0:
		return loop.GateFailed
	}
	return loop.GatePassed
}
