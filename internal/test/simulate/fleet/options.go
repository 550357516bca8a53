package fleet

import (
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
)

// Options say what is played.
type Options struct {
	Seed   uint64
	Tasks  int // on the board; operations and dependencies come with them
	Agents int // slots, and so the agents that may run at once
	Rules  Rules
	// Watch are the cases whose story is told in a violation; nil is nobody's.
	Watch []string
}

// Rules are what decides. A nil one is the real one.
type Rules struct {
	Schedule func(schedule.State, schedule.Event) (schedule.State, schedule.Command)
	Recover  func([]schedule.Found, int) []schedule.Recovery
	Loop     func(loop.State, loop.Event) (loop.State, loop.Command)
	Queue    func(queue.State, queue.Event) (queue.State, queue.Command)
	Move     func(board.Case, board.Change) (board.Case, board.Entry, error)
	Ready    func(*board.Case) bool
	// Apart stores that a task is verified before it asks the queue to land it,
	// in two transactions instead of one.
	Apart bool
	// Again does not look whether a task that is queued has landed already.
	Again bool
}

func (r Rules) complete() Rules {
	if r.Schedule == nil {
		r.Schedule = schedule.Step
	}
	if r.Recover == nil {
		r.Recover = schedule.Recover
	}
	if r.Loop == nil {
		r.Loop = loop.Step
	}
	if r.Queue == nil {
		r.Queue = queue.Step
	}
	if r.Move == nil {
		r.Move = board.Move
	}
	if r.Ready == nil {
		r.Ready = (*board.Case).IsReady
	}
	return r
}

// Report is how often what happened: events that were handed to schedule, loop
// and queue, crashes, landings and so on.
type Report map[string]int
