package schedule

import (
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// Outcome is the result of a task's run, or the reason why there was none.
type Outcome struct {
	Status loop.Status `json:"status,omitempty"` // "" when no run came to be
	Why    string      `json:"why,omitempty"`
	// Question is true when the run rests with one.
	Question bool `json:"question,omitempty"`
	// Guard is true when a guard of the loop blocked it.
	Guard bool `json:"guard,omitempty"`
	// Empty is true when the work changes nothing on the target.
	Empty bool `json:"empty,omitempty"`
	// Secrets is where the change looks as if it held a secret; "" nowhere.
	Secrets string `json:"secrets,omitempty"`
	// Hold asks for a person's review whatever the settings say, and why.
	Hold string `json:"hold,omitempty"`
	// NotStarted is true when the run could not be begun or resumed, or with a status,
	// when its result could not be stored: the next start tries that again.
	NotStarted bool `json:"not_started,omitempty"`
	// Machine: any task would have met that now, so it is not the task's.
	Machine bool `json:"machine,omitempty"`
	// Lacks: the machine does not have the agent's program, and another one may.
	Lacks bool `json:"lacks,omitempty"`
	// Person: only a person can set right what stopped the agent, its key, its credit or its model.
	Person failure.Class `json:"person,omitempty"`
	// Setup: the commands that set a workspace up failed, as they would for the next task.
	Setup bool `json:"setup,omitempty"`
	// Until is set when it rests since its agent's provider is limited: that may be
	// over then.
	Until Time `json:"until,omitzero"`
	// Refused: its work is complete but cannot be taken over, and its agent does not know so yet.
	Refused bool `json:"refused,omitempty"`
	// Taken is true when another process drives the run now.
	Taken bool `json:"taken,omitempty"`
	// Settled is true when pawl stopped it since another process had decided its task.
	Settled bool `json:"settled,omitempty"`
}

// Manner is how the autopilot stands to the task when its run ends.
type Manner struct {
	Mode   Mode
	Review bool // green work waits for a person's review
	Ending bool // the autopilot itself asked the run to stop
	// Gone says what somebody else made of the task meanwhile; "" nothing.
	Gone   string
	Tries  int  // to start it, with this one
	Starts int  // tries that are allowed
	Alone  bool // others get past what stopped its agent
}

// Settlement is the decision about a task after its run. Its slot is free then.
type Settlement struct {
	// Action moves the case; "" leaves it.
	Action board.Action `json:"action,omitempty"`
	Why    string       `json:"why,omitempty"`
	// Queue: the work goes to the merge queue. Review: a person decides first.
	Queue  bool `json:"queue,omitempty"`
	Review bool `json:"review,omitempty"`
	// Alert is for a person; "" none.
	Alert string `json:"alert,omitempty"`
	// Failed counts for the errors in a row, Worked ends them.
	Failed bool `json:"failed,omitempty"`
	Worked bool `json:"worked,omitempty"`
	// Later is when a task that waits for a provider is to be resumed.
	Later Time `json:"later,omitzero"`
	// Bench keeps the task out of the slots until a person says otherwise.
	Bench bool `json:"bench,omitempty"`
}

// endsBadly is true when the task has failed, reached a limit, or was stopped by a guard.
func (v Settlement) endsBadly() bool {
	isFailedBlock := v.Action == board.Block && v.Failed
	return isFailedBlock || v.Action == board.Fail || v.Action == board.Expire
}

// Judge decides about a task whose run has ended: whether it is done,
// failed, blocked or starts again, and what counts as an error in a row.
func Judge(o Outcome, m Manner) Settlement {
	switch {
	case m.Gone != "": // the board says already what became of it
		return Settlement{Why: m.Gone}
	case o.Taken:
		return Settlement{Why: o.Why, Bench: true, Alert: o.Why}
	case o.NotStarted:
		return notStarted(o, m)
	case o.Person != "" && !m.Alone:
		return Settlement{Action: board.Stop, Why: o.Why}
	case o.Refused:
		return Settlement{Action: board.Return, Why: o.Why}
	}
	switch o.Status {
	case loop.Completed:
		return settleCompleted(o, m)
	case loop.Blocked:
		s := settleBlocked(o.Why, m)
		s.Failed = o.Guard
		return s
	case loop.Pending:
		return settleBlocked(o.Why, m)
	case loop.Paused:
		if m.Ending {
			return settleStopped(o, m)
		}
		if !o.Until.IsZero() {
			return Settlement{Action: board.Stop, Why: o.Why, Later: o.Until}
		}
		return settleBlocked(o.Why, m)
	case loop.TimedOut, loop.Exhausted:
		return Settlement{Action: board.Expire, Why: o.Why, Alert: "it reached a limit: " + o.Why}
	case loop.Interrupted, loop.Stopped:
		return settleStopped(o, m)
	case loop.Running, loop.Waiting: // its pawl died
		return Settlement{Action: board.Crash, Why: "its run ended unexpectedly"}
	}
	return Settlement{Action: board.Fail, Why: o.Why, Failed: true, Alert: "it failed: " + o.Why}
}

func settleCompleted(o Outcome, m Manner) Settlement {
	s := Settlement{Action: board.Verify, Why: o.Why, Worked: true}
	switch {
	case o.Secrets != "":
		return Settlement{
			Action: board.Block, Why: "the change may hold a secret: " + o.Secrets, Worked: true,
			Alert: "it is verified, but the change may hold a secret: " + o.Secrets,
		}
	case o.Hold != "":
		s.Review, s.Why, s.Alert = true, o.Why+"; "+o.Hold, "it waits for your review: "+o.Hold
	case m.Review:
		s.Review = true
	case o.Empty:
		return Settlement{Action: board.Land, Why: o.Why + "; it changes nothing", Worked: true}
	default:
		s.Queue = true
	}
	return s
}

// settleBlocked frees the slot: work that waits for a person waits on the board.
func settleBlocked(why string, m Manner) Settlement {
	alert := why
	if m.Mode == SemiAuto {
		alert += "; decide how it continues"
	}
	return Settlement{Action: board.Block, Why: why, Alert: alert}
}

// settleStopped gives the task back. One that a person stopped by itself is not
// started again at once. One that an autopilot before interrupted is.
func settleStopped(o Outcome, m Manner) Settlement {
	why := o.Why
	if m.Ending {
		why = "the autopilot was stopped"
	}
	return Settlement{Action: board.Stop, Why: why, Bench: o.Status == loop.Stopped && !m.Ending && !o.Settled}
}

func notStarted(o Outcome, m Manner) Settlement {
	why := o.Why
	if o.Status == "" {
		why = "it could not be started: " + why
	}
	if m.Ending {
		return Settlement{Action: board.Stop, Why: "the autopilot was stopped"}
	}
	if o.Machine {
		return Settlement{Action: board.Stop, Why: why}
	}
	if m.Tries < m.Starts {
		return Settlement{Action: board.Stop, Why: why, Failed: true}
	}
	return Settlement{Action: board.Fail, Why: why, Failed: true, Alert: why}
}
