package schedule

import (
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// Mode says who chooses tasks.
type Mode string

// The modes.
const (
	Auto     Mode = "auto"      // the best ready task goes into a free slot
	SemiAuto Mode = "semi-auto" // only what a person assigns is started
)

// Phase is what the autopilot is doing as a whole.
type Phase string

// The phases.
const (
	Running  Phase = "running"
	Paused   Phase = "paused"   // nothing new; runs rest at the end of their iteration
	Stopping Phase = "stopping" // runs are being ended
	Finished Phase = "ended"
)

// Settings are what the autopilot is started with.
type Settings struct {
	MaxParallel    int  `json:"max_parallel"`    // slots; below 1 nothing starts
	WIPLimit       int  `json:"wip_limit"`       // tasks that wait for a person's review; 0 is no limit
	ErrorThreshold int  `json:"error_threshold"` // tasks in a row that failed or that a guard stopped; 0 is off
	Mode           Mode `json:"mode"`            // at the start
	Keep           bool `json:"keep,omitempty"`  // stay when nothing is left to do
	PauseOnError   bool `json:"pause_on_error"`  // any failed task pauses
	// PauseLimit is how long a pause after errors lasts; 0 is without end.
	PauseLimit time.Duration `json:"pause_limit,omitempty"`
	Count      int           `json:"count,omitempty"`      // sprint: completed tasks after which nothing starts; 0 is no such target
	Batch      bool          `json:"batch,omitempty"`      // green work waits for the review after the sprint
	Review     bool          `json:"review,omitempty"`     // green work waits for a person's review
	MaxStarts  int           `json:"max_starts,omitempty"` // tries before a task has failed; 0 is [DefaultStarts]
	Until      Time          `json:"until,omitzero"`       // sprint: from then on nothing starts; zero is no such target
	Plan       int           `json:"plan,omitempty"`       // sprint: used of a subscription, in per cent; 0 is none
	// Verify: there are gates, so the target is verified by itself. WaitGreen:
	// nothing but repairs starts while it is not known to be green.
	Verify    bool `json:"verify,omitempty"`
	WaitGreen bool `json:"wait_green,omitempty"`
	// TargetLimit is how long a red target is waited for, once nothing else is left.
	TargetLimit time.Duration `json:"target_limit,omitempty"`
	// GreenFirst: one that is red before anything was started is not waited for.
	GreenFirst bool `json:"green_first,omitempty"`
}

// Time is a moment that may be none.
type Time = time.Time

// DefaultStarts is how often a task is tried to be started.
const DefaultStarts = 3

// SlotPhase is what happens in a slot.
type SlotPhase string

// The phases of a slot.
const (
	Working SlotPhase = "working" // from the command to start on
	Pausing SlotPhase = "pausing" // asked to rest at the end of its iteration
	Resting SlotPhase = "resting" // at rest, to go on when the autopilot does
	Ending  SlotPhase = "ending"  // asked to stop
)

// Slot is one that is taken. Free ones are not kept.
type Slot struct {
	Case  string    `json:"case"`
	Phase SlotPhase `json:"phase"`
	Since time.Time `json:"since"`
	Why   string    `json:"why,omitempty"` // it was chosen
	// Gone says what somebody else made of the task meanwhile: its run is to end,
	// and means nothing any more.
	Gone string `json:"gone,omitempty"`
	// End is the result of its run, until that is recorded.
	End *Outcome `json:"end,omitempty"`
}

// Bench keeps a task out that could not be started, or that a person took out.
type Bench struct {
	Case  string    `json:"case"`
	Tries int       `json:"tries"`           // that failed
	Until time.Time `json:"until,omitzero"`  // zero: until a person says otherwise
	Seen  bool      `json:"seen,omitempty"`  // Until is over, and the board was looked at since
	Lacks bool      `json:"lacks,omitempty"` // no machine has what it needs
	Why   string    `json:"why"`
}

// Counts is what the board and the queue hold, as far as it matters here.
type Counts struct {
	Ready   int `json:"ready"`   // tasks, those of the filters only; as far as it was looked for
	Review  int `json:"review"`  // wait for a person's review
	Waiting int `json:"waiting"` // wait for a person at all: blocked, to be reviewed
	Failed  int `json:"failed"`  // failed or timed out, also before this session
	Queued  int `json:"queued"`  // verified, and on their way to the target
	// QueueHeld says why the queue does not go on without a person; "" it does.
	QueueHeld string `json:"queue_held,omitempty"`
	Target    Target `json:"target,omitzero"`
	// Plans are the agents' subscriptions in words, Plan how much of the fullest is used, in per cent.
	Plans []string `json:"plans,omitempty"`
	Plan  int      `json:"plan,omitempty"`
}

// Tally counts what the tasks of this session came to.
type Tally struct {
	Started   int `json:"started"`
	Completed int `json:"completed"` // verified
	Landed    int `json:"landed"`
	Failed    int `json:"failed"`
	TimedOut  int `json:"timed_out"`
	Blocked   int `json:"blocked"` // questions included
	Stopped   int `json:"stopped"`
}

// State is all that a decision is made from. It goes through JSON; fields can
// be added, but names must not change.
type State struct {
	Settings Settings `json:"settings"`
	Mode     Mode     `json:"mode"`
	Phase    Phase    `json:"phase"`
	// Why is the reason of the phase, in words.
	Why string `json:"why,omitempty"`

	// Ends is when a pause after errors ends the session, unless somebody looks
	// on; zero when it does not.
	Ends time.Time `json:"ends,omitzero"`
	// Alone is true when the session ended since a pause was too long.
	Alone bool `json:"alone,omitempty"`

	// Slots are the taken ones, the oldest first.
	// Nothing is started where as many as Settings.MaxParallel are taken; a person may have lowered that.
	Slots    []Slot   `json:"slots,omitempty"`
	Bench    []Bench  `json:"bench,omitempty"`
	Assigned []string `json:"assigned,omitempty"` // by a person, in order
	Adopt    []string `json:"adopt,omitempty"`    // run already; their slots are to be taken first

	// Errors counts tasks in a row that failed or that a guard stopped.
	Errors int   `json:"errors"`
	Tally  Tally `json:"tally"`
	// Environment is what may be wrong for all tasks.
	Environment Environment `json:"environment,omitzero"`
	Halt        Halt        `json:"halt,omitzero"`

	Outlook
	Holding
	RedTarget
	// Unstored: what became of tasks could not be stored, so that waits too.
	Unstored bool `json:"unstored,omitempty"`

	StopRequest
	Alerts []string `json:"alerts,omitempty"` // not yet shown
	// Outages are limits of providers that runs wait for; the next field has the notices about
	// them.
	Outages []Outage  `json:"outages,omitempty"`
	Tells   []string  `json:"tells,omitempty"`
	At      time.Time `json:"at"`
}

// StopRequest is how the session was asked to stop.
type StopRequest struct {
	Cause  loop.Cause `json:"cause,omitempty"`
	Killed bool       `json:"killed,omitempty"`
	// WasPaused: it was paused until then.
	WasPaused bool `json:"was_paused,omitempty"`
}

// ByPerson is true where a person asked; else the process was ended, with its machine or its server.
func (r StopRequest) ByPerson() bool {
	return r.Cause != loop.NoCause && r.Cause != loop.CauseTerminate && r.Cause != loop.CauseHangup
}

// RedTarget is what is known of a target that is red.
type RedTarget struct {
	// RedSince is since when the target has been seen red; VerifyAt when the
	// verdict on it was asked for that is still to come.
	RedSince time.Time `json:"red_since,omitzero"`
	VerifyAt time.Time `json:"verify_at,omitzero"`
}

// Holding is that nothing is started for now.
type Holding struct {
	// Hold is why nothing is started or stored for now, and until when.
	Hold  string    `json:"hold,omitempty"`
	Until time.Time `json:"until,omitzero"`
	Holds int       `json:"holds,omitempty"` // in a row
}

// Outlook is what is known of the board.
type Outlook struct {
	Counts Counts `json:"counts"`
	// Stale is true when Counts may not hold any more.
	Stale bool `json:"stale,omitempty"`
	// Dry says why the last look at the board brought nothing; "" when the
	// board is to be looked at.
	Dry string `json:"dry,omitempty"`
	// Again is when it is looked at again, since ready tasks wait for a provider; zero
	// when none do.
	Again time.Time `json:"again,omitzero"`
}

// cloneLists makes a copy whose lists may be changed.
func (s State) cloneLists() State {
	s.Slots, s.Bench = slices.Clone(s.Slots), slices.Clone(s.Bench)
	s.Assigned, s.Adopt, s.Alerts = slices.Clone(s.Assigned), slices.Clone(s.Adopt), slices.Clone(s.Alerts)
	s.Outages, s.Tells = slices.Clone(s.Outages), slices.Clone(s.Tells)
	return s
}

// slotOfTask gives the slot of a task; nil when it has none.
func (s *State) slotOfTask(id string) *Slot {
	for i := range s.Slots {
		if s.Slots[i].Case == id {
			return &s.Slots[i]
		}
	}
	return nil
}

func (s *State) freeSlot(id string) {
	s.Slots = slices.DeleteFunc(s.Slots, func(l Slot) bool { return l.Case == id })
	s.lookAtBoardAgain()
}

// lookAtBoardAgain has the board looked at again.
func (s *State) lookAtBoardAgain() { s.Dry, s.Stale, s.Again = "", true, time.Time{} }

// benchEntryOf gives the entry of a task; nil when it is not kept out.
func (s *State) benchEntryOf(id string) *Bench {
	for i := range s.Bench {
		if s.Bench[i].Case == id {
			return &s.Bench[i]
		}
	}
	return nil
}

func (s *State) removeBench(id string) {
	s.Bench = slices.DeleteFunc(s.Bench, func(b Bench) bool { return b.Case == id })
}

// Excluded are the tasks that a look at the board is to pass over: those in
// slots and those that are kept out for now.
func (s *State) Excluded() []string {
	ids := lists.Each(s.Slots, func(l Slot) string { return l.Case })
	for _, b := range s.Bench {
		if b.Until.IsZero() || b.Until.After(s.At) {
			ids = append(ids, b.Case)
		}
	}
	return ids
}

// TakenOver is the state by which another process continues an autopilot. The runs that
// continue are those of adopt; what was about to be stored is found on the board.
func TakenOver(s State, adopt []string) State {
	s = s.cloneLists()
	s.Slots, s.Adopt = nil, adopt[:min(len(adopt), max(0, s.Settings.MaxParallel))]
	s.Unstored, s.VerifyAt = false, time.Time{}
	s.lookAtBoardAgain()
	return s
}

// EventKind is the sort of an event.
type EventKind string

// The events, with the fields that each has beside its time.
const (
	Began EventKind = "began" // Settings, Cases: those that run already and are adopted
	// Picked has in Case the task to start, "" is none; Why; in Named the one that Pick
	// named; Repairs as Pick had it; Counts. It answers Pick.
	Picked     EventKind = "picked"
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
	Gone       EventKind = "gone"        // Case, Why: it has a slot, and another process decided it
	Woken      EventKind = "woken"       // the time of a rest is over
	Did        EventKind = "did"         // answers every other command
)

// Fault is whose a start that failed was.
type Fault string

// The faults.
const (
	OfTask    Fault = "task"    // another try may fail alike: it counts
	OfBoard   Fault = "board"   // the task is not ready any more
	OfMachine Fault = "machine" // the database, the disk, or an unknown one: nothing is started for a while
)

// Ask is what a person wants.
type Ask string

// The asks.
const (
	AskPause  Ask = "pause"
	AskResume Ask = "resume"
	AskStop   Ask = "stop" // Cause; a second one ends at once
	AskMode   Ask = "mode"
	AskSlots  Ask = "slots" // Settings.MaxParallel
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
	Start  CommandKind = "start"  // Case; Adopt: its run is there already
	Settle CommandKind = "settle" // Case, Settlement
	Pause  CommandKind = "pause"  // Case: its run is to rest at the end of its iteration
	Resume CommandKind = "resume" // Case: its run is to go on
	Stop   CommandKind = "stop"   // Case, Cause, Kill
	Alert  CommandKind = "alert"  // Why is shown to a person
	Tell   CommandKind = "tell"   // Why is what happened; no action is needed
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
