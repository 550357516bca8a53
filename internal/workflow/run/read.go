package run

import (
	"time"

	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

// Executed is one execution of a step as reports show it.
type Executed struct {
	Step, Title        string // Title is "" for none
	N                  int    // of the step's executions, from 1
	Iteration, Attempt int
	Kind, Agent        string // Agent is that of the kind agent
	Alternative        int    // 1-based; 0 is the step's own work
	Try                int    // 1-based, of this work in this iteration
	Optional           bool
	Status             string // sqlite.StepSuccess and the like
	Why                string // it ran again although it was done; "" for others
	StartedAt          time.Time
	Elapsed            time.Duration
	Exit               loop.Exit
	Failure            *failure.Analysis // nil where it did not fail
	Question           string            // that it asks
	Output             string            // where it was read, at most 1 MiB
	Cut                bool              // there was more output
	Outputs            map[string]string
	Cost               loop.MicroUSD
	CostSource         string // as in loop.Record; "" where no agent worked
	TokensIn           int64
	TokensOut          int64
	Calls              int
	// Files is the prefix of what it left: Files+".out", ".err"; "" is nothing.
	Files string
	// Run is the run of the procedure that it drives; "" for other kinds.
	Run string
}

// Read makes an execution of its row.
func Read(row sqlite.StepRun) (Executed, error) {
	e, err := executionOf(row)
	if err != nil {
		return Executed{}, err
	}
	r := &e.record
	x := Executed{
		Step: row.Step, Title: r.Title, N: row.N, Iteration: row.Iteration, Attempt: row.Attempt, Kind: r.Kind, Agent: r.Agent,
		Alternative: r.Alternative, Try: r.Try, Optional: r.Optional, Status: row.Status, Why: r.Why, StartedAt: row.StartedAt, Elapsed: row.Elapsed,
		Exit: r.Exit, Failure: r.Failure, Question: r.Question, Output: row.Output, Cut: r.Cut, Outputs: r.Outputs,
		Cost: r.Usage.Cost, CostSource: r.Usage.Source, TokensIn: r.Usage.TokensIn, TokensOut: r.Usage.TokensOut, Calls: r.Usage.Calls, Run: r.Inner,
	}
	if r.Job != nil {
		x.Files = r.Job.Files
	}
	return x, nil
}
