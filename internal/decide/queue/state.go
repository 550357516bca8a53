package queue

import (
	"cmp"
	"slices"
	"time"
)

// The limits of a queue.
const (
	// AgeLimit is how often later entries may go before one that is ready.
	AgeLimit = 8
	// MaxBatch is the most entries that are verified as one, whatever is asked for.
	MaxBatch = 500
	// UnverifiedBatches is how many batches land as one while there are no gates:
	// none of them can be red, and each landing waits for the disk.
	UnverifiedBatches = 8
	// MaxForeseen is how many entries are looked at for conflicts after a landing.
	MaxForeseen = 32
)

// Status is the progress of an entry.
type Status string

// The statuses. A landed or dropped entry is in the queue no more.
const (
	Waiting   Status = "waiting"   // for its turn, for what it needs, or for a file in the user's checkout
	OnHold    Status = "held"      // by a person
	Resolving Status = "resolving" // an agent works on its conflict, or on why it is red on the target
	Parked    Status = "parked"    // a person has to act
	Proposed  Status = "proposed"  // its pull request is open
)

// Policy has a person's settings for a queue.
type Policy struct {
	Batch   int           `json:"batch"`         // most entries that are verified as one; 0 lands nothing
	Retries int           `json:"retries"`       // runs of an agent at one entry's conflict; 0 is none
	Timeout time.Duration `json:"timeout"`       // for a person to answer about a parked entry; 0 is no limit
	Action  Action        `json:"action"`        // what follows after Timeout
	Resolve bool          `json:"resolve"`       // there is an agent for conflicts
	Push    bool          `json:"push"`          // push the target after a landing
	Propose bool          `json:"propose"`       // land by pull requests
	Ask     bool          `json:"ask,omitempty"` // hold what is added until a person lets it land
	// Checks: what is green here has to be green at the forge too. Key differs
	// for verdicts by other gates.
	Checks bool   `json:"checks,omitempty"`
	Key    string `json:"key,omitempty"`
}

// Action is taken on a parked entry without an answer in time.
type Action string

// The actions.
const (
	Defer  Action = "defer"  // it stays parked, without a limit
	Skip   Action = "skip"   // it leaves the queue; its work is kept
	Retry  Action = "retry"  // it is tried again
	Notify Action = "notify" // the person is notified again
)

// Entry is one task's verified change that waits to land. What is stored
// outlives the code: fields are added, never renamed.
type Entry struct {
	ID       string    `json:"id"` // of the task
	Run      string    `json:"run,omitempty"`
	Commit   string    `json:"commit"` // what is to land
	Base     string    `json:"base,omitempty"`
	Title    string    `json:"title"`
	Result   string    `json:"result,omitempty"`   // what it changed and what proves it
	Priority int       `json:"priority,omitempty"` // higher first
	Needs    []string  `json:"needs,omitempty"`    // tasks that have not landed; in no order
	Allow    []string  `json:"allow,omitempty"`    // patterns of protected files that it may change
	Closed   bool      `json:"closed,omitempty"`   // its agents worked at the level paranoid: so do its gates
	AddedAt  time.Time `json:"added_at"`

	Order  int64     `json:"order"` // of arrival; lower is older
	Status Status    `json:"status"`
	Why    string    `json:"why,omitempty"`
	Until  time.Time `json:"until,omitzero"` // Waiting: not before; Parked: the action comes then
	Tried
	// Problem is for an agent or a person to solve.
	Problem *Problem `json:"problem,omitempty"`
	// Ahead are paths in which it will conflict once it is its turn.
	Ahead []string `json:"ahead,omitempty"`
	ForgeRequest
	// RedOn is the red target's commit that it did not repair.
	RedOn string `json:"red_on,omitempty"`
	// Apart is a commit that the forge checks and that this does not go with.
	Apart string `json:"apart,omitempty"`
	// Revert is why the task's landing is taken back by this; "" for a landing.
	Revert string `json:"revert,omitempty"`
	// Since is that of the landing which is taken back.
	Since string `json:"since,omitempty"`
}

// ForgeRequest is an entry's pull request, as it was seen last.
type ForgeRequest struct {
	// Request is its open pull request.
	Request string `json:"request,omitempty"`
	// Heard has the ids of comments that an agent's prompt has had, the last
	// [heardLimit]; Seen is the state of it that was looked at last.
	Heard []string `json:"heard,omitempty"`
	Seen  string   `json:"seen,omitempty"`
}

// Tried is what was tried to land an entry.
type Tried struct {
	// Waits is how often in a row a file of the user's stood in its way.
	Waits int `json:"waits,omitempty"`
	// Passed counts batches of later entries that landed while it was ready.
	Passed int `json:"passed,omitempty"`
	// Attempts counts the runs of an agent at its conflict.
	Attempts int `json:"attempts,omitempty"`
	// Outrun counts those whose result did not merge any more, since others had
	// landed meanwhile. They are not held against the entry.
	Outrun int `json:"outrun,omitempty"`
	// Solved is the target's commit that an agent brought Commit together with.
	Solved string `json:"solved,omitempty"`
	// Plain: what a rule resolved or a command made anew was red, so a conflict goes to an agent.
	Plain bool `json:"plain,omitempty"`
	// Worded: it lands with the message of its commit, since the remote refused that of pawl.
	Worded bool `json:"worded,omitempty"`
}

// Problem is the reason why an entry cannot land as it is.
type Problem struct {
	Class    Class     `json:"class"`
	Tip      string    `json:"tip"` // the target's commit at which it was found
	Conflict *Conflict `json:"conflict,omitempty"`
	Said     string    `json:"said,omitempty"`    // what the forge answers: people and checks, quoted
	Red      string    `json:"red,omitempty"`     // the gates' summary, when it merges but is red on the target
	Refused  string    `json:"refused,omitempty"` // what the remote has against its commits
	Why      string    `json:"why,omitempty"`     // the same in a sentence, for a person; "" in older data
}

// Cause is the reason why a whole queue stands still.
type Cause string

// The causes.
const (
	ByPerson  Cause = "person"     // somebody paused it
	RedTarget Cause = "red target" // the target fails its own gates
	Rewritten Cause = "rewritten"  // the target is not a descendant of what was landed
	Missing   Cause = "missing"    // there is no such branch
	Diverged  Cause = "diverged"   // the target here and at the remote each have commits of their own
	Broken    Cause = "broken"     // pawl cannot do its part, and trying again does not help
)

// Stop is a queue that stands still until somebody resumes it. While the target
// is red, entries are tried one by one: what makes it green lands.
type Stop struct {
	Cause Cause     `json:"cause"`
	Why   string    `json:"why"`
	Tip   string    `json:"tip,omitempty"`
	Since time.Time `json:"since"`
	// Again is when a red target is verified once more as it is: what it needs
	// of the machine may be back.
	Again time.Time `json:"again,omitzero"`
	// Theirs is the remote's commit that the target has diverged from.
	Theirs string `json:"theirs,omitempty"`
}

// awaitsTarget reports whether the queue resumes by itself once the target, or what its remote
// has, has changed.
func (s *Stop) awaitsTarget() bool {
	return slices.Contains([]Cause{RedTarget, Missing, Diverged, Broken}, s.Cause)
}

// stillHoldsFor is true when the queue stands still for how the target is to its remote now.
func (s *Stop) stillHoldsFor(f *Facts) bool {
	return s != nil && s.Cause == Diverged && s.Tip == f.Tip && s.Theirs == f.Theirs
}

// Batch is a set of entries that land together. Steps are those that merge, in order.
type Batch struct {
	// Since is when it was chosen first: others join it for [joinFor] at most.
	Since   time.Time `json:"since,omitzero"`
	N       int64     `json:"n"`
	IDs     []string  `json:"ids"` // as they were chosen
	Tip     string    `json:"tip,omitempty"`
	Tree    string    `json:"tree,omitempty"` // of Tip
	Steps   []Merged  `json:"steps,omitempty"`
	Head    string    `json:"head,omitempty"`      // what the target is to be
	Result  string    `json:"head_tree,omitempty"` // its tree: the one that is verified
	Retried bool      `json:"retried,omitempty"`   // the red gate has had its second try
	Target  bool      `json:"target,omitempty"`    // Tip itself is being verified
	Red     string    `json:"red,omitempty"`       // why Result is red
	Log     string    `json:"log,omitempty"`       // what a forge's checks printed then
	Absent  bool      `json:"absent,omitempty"`    // a required check of the forge was not reported
	Theirs  string    `json:"theirs,omitempty"`    // the remote's commit, when it brings that together with Tip
	Landing bool      `json:"landing,omitempty"`   // it is green, and the target is being moved
	Place   int       `json:"place,omitempty"`     // names the branch that the forge checks it at
	Asked   time.Time `json:"asked,omitzero"`      // the forge checks it since then
	Busy    time.Time `json:"busy,omitzero"`       // a check of it went on then
}

// State is one queue. It goes through JSON.
type State struct {
	Seq int64 `json:"seq"` // of the last command
	// Stepped is the time of the last step: a clock that was set back since is seen by it.
	Stepped time.Time `json:"stepped,omitzero"`
	Target  string    `json:"target"`
	Policy  Policy    `json:"policy"`
	Tip     string    `json:"tip,omitempty"`   // the target's commit when it was seen last
	Green   string    `json:"green,omitempty"` // the tree of Tip, when that is known to be green
	// Wanted: somebody waits for the verdict on the target itself.
	Wanted bool `json:"wanted,omitempty"`
	Window int  `json:"window"` // entries of the next batch; 1 <= Window <= Policy.Batch
	// Unverified: there were no gates for the last batch.
	Unverified bool  `json:"unverified,omitempty"`
	Batches    int64 `json:"batches"` // numbered so far
	Arrived    int64 `json:"arrived"` // the last Order
	// Entries are in no order that counts; [State.InOrder] has it.
	Entries []Entry `json:"entries,omitempty"`
	// Suspects landed together would be red: they are tried by halves.
	Suspects []string `json:"suspects,omitempty"`
	// Fresh: red records do not count, since somebody asked for another try.
	Fresh bool   `json:"fresh,omitempty"`
	Batch *Batch `json:"batch,omitempty"`
	AtForge
	Stop *Stop `json:"stop,omitempty"`
	// Theirs is the remote's commit that the target is to be brought together with.
	Theirs string `json:"theirs,omitempty"`
	// Unpushed: what landed is not at the remote yet. Nil when it is, or need not be.
	Unpushed *Unpushed `json:"unpushed,omitempty"`
	// Ignored is the remote's commit that a person resumed the queue over.
	Ignored string `json:"ignored,omitempty"`
	Trouble
	Due     []CommandKind `json:"due,omitempty"` // what follows a landing, in order
	Command Command       `json:"command"`
	Out     Out           `json:"out,omitzero"`
}

// Trouble is that pawl could not do its part.
type Trouble struct {
	Stumbles int `json:"stumbles,omitempty"` // in a row: pawl could not do its part
	// Stumbled is the command that failed so.
	Stumbled CommandKind `json:"stumbled,omitempty"`
	Rest     time.Time   `json:"rest,omitzero"` // nothing is begun before, after a stumble
}

// AtForge is what the forge checks.
type AtForge struct {
	// Checking are the batches that the forge checks, each merged onto the one before.
	// It is asked about the first not before Ask; Checked is the tree that was green there last.
	Checking []Batch   `json:"checking,omitempty"`
	Ask      time.Time `json:"ask,omitzero"`
	Checked  string    `json:"checked,omitempty"`
	// Rung: the forge says that something has happened to a pull request.
	Rung bool `json:"rung,omitempty"`
}

// Unpushed is a target that is to be pushed.
type Unpushed struct {
	IDs     []string  `json:"ids,omitempty"`   // of the tasks that landed since the last push
	Tries   int       `json:"tries,omitempty"` // that failed
	Why     string    `json:"why,omitempty"`   // the last one did
	Refused bool      `json:"refused,omitempty"`
	Until   time.Time `json:"until,omitzero"` // not before
}

// pushTries is how often a push is tried before a person is needed for it. It is
// tried on after that too.
const pushTries = 5

// Stuck is true when a person is needed.
func (u *Unpushed) Stuck() bool { return u != nil && (u.Refused || u.Tries >= pushTries) }

// Out is what follows from the last step beside its command. It is stored in the
// transaction of the step.
type Out struct {
	Landings []Landing  `json:"landings,omitempty"`
	Cases    []CaseMove `json:"cases,omitempty"`
	Notes    []Note     `json:"notes,omitempty"`
}

// Landing is one task on the target.
type Landing struct {
	Task   string    `json:"task"`
	Run    string    `json:"run,omitempty"`
	Commit string    `json:"commit"` // an ancestor of To, or To
	Tree   string    `json:"tree"`   // of To: what was verified
	Batch  int64     `json:"batch"`
	From   string    `json:"from"`
	To     string    `json:"to"`
	Empty  bool      `json:"empty,omitempty"` // its change was on the target already
	At     time.Time `json:"at"`
	// Regenerated are paths in conflict that a command made anew.
	Regenerated []string `json:"regenerated,omitempty"`
	// Many says how many files it adds, where they are many.
	Many string `json:"many,omitempty"`
	// Since is the target's commit before it where a forge put several on top of that; "" is Commit's parent.
	Since string `json:"since,omitempty"`
	// Revert: it took back what the task had landed.
	Revert bool `json:"revert,omitempty"`
}

// Before names the target's commit before a landing.
func (l *Landing) Before() string { return cmp.Or(l.Since, l.Commit+"^1") }

// CaseMove is the change of the task on the board that a step requires.
type CaseMove struct {
	ID   string   `json:"id"`
	Move Movement `json:"move"`
	Why  string   `json:"why"`
}

// Movement is a kind of [CaseMove].
type Movement string

// The movements.
const (
	MoveQueued  Movement = "queued"  // to review: it waits to be landed
	MoveLanded  Movement = "landed"  // to done
	MoveBlocked Movement = "blocked" // a person has to act
	MoveRevert  Movement = "revert"  // from done to review: its landing is to be taken back
	MoveReopen  Movement = "reopen"  // to pending: its landing was taken back
	MoveKept    Movement = "kept"    // to done again: its landing stays
	MoveDropped Movement = "dropped" // a person took it out of the queue
)

// Note is a message for people, hooks or agents.
type Note struct {
	Kind  NoteKind `json:"kind"`
	ID    string   `json:"id,omitempty"` // the entry
	Text  string   `json:"text"`
	Paths []string `json:"paths,omitempty"`
	// Commit is what landed, Class how hard a conflict is.
	Commit string `json:"commit,omitempty"`
	Class  Class  `json:"class,omitempty"`
	// Parked, of a conflict: a person is asked about it next, in the same words.
	Parked bool `json:"parked,omitempty"`
}

// NoteKind is the subject of a note.
type NoteKind string

// The kinds of notes.
const (
	NoteLanded    NoteKind = "landed"
	NoteReverted  NoteKind = "reverted"
	NoteConflict  NoteKind = "conflict"       // an entry does not merge
	NoteAhead     NoteKind = "conflict_ahead" // it will not, once it is its turn
	NoteSettled   NoteKind = "settled"        // a rule resolved a simple conflict
	NoteMany      NoteKind = "many"           // it adds many files
	NoteMade      NoteKind = "regenerated"    // files in conflict were made anew by their command
	NoteKept      NoteKind = "protected"      // protected files stay as the target has them
	NoteRed       NoteKind = "red"            // an entry is red on the target
	NoteFlaky     NoteKind = "flaky"          // a red gate was green when it ran again
	NoteSlow      NoteKind = "slow"           // a gate runs for long
	NoteEmpty     NoteKind = "unverified"     // there are no gates
	NoteWaiting   NoteKind = "waiting"        // a file of the user's is in the way
	NoteResolving NoteKind = "resolving"
	NoteProposed  NoteKind = "proposed"  // a pull request was opened for an entry
	NoteEscalated NoteKind = "escalated" // a person is asked
	NoteDropped   NoteKind = "dropped"
	NoteStopped   NoteKind = "stopped" // the whole queue
	NoteResumed   NoteKind = "resumed"
	NoteMoved     NoteKind = "moved" // somebody else moved the target
	NoteTrouble   NoteKind = "trouble"
	NoteRefused   NoteKind = "refused" // what was asked cannot be done
	NoteWarning   NoteKind = "warning"
)

// IsClosed reports whether agents at the level paranoid wrote some of what a command tries.
func (s *State) IsClosed(c Command) bool {
	return slices.ContainsFunc(c.IDs, func(id string) bool {
		e, ok := s.Find(id)
		return ok && e.Closed && !c.Target
	})
}

// Find is the entry of a task, and whether there is one.
func (s *State) Find(id string) (Entry, bool) {
	if i := s.entryIndexOf(id); i >= 0 {
		return s.Entries[i], true
	}
	return Entry{}, false
}

func (s *State) entryIndexOf(id string) int {
	return slices.IndexFunc(s.Entries, func(e Entry) bool { return e.ID == id })
}

// entryOfTask gives the entry of a task for a change; nil when there is none.
func (s *State) entryOfTask(id string) *Entry {
	if i := s.entryIndexOf(id); i >= 0 {
		return &s.Entries[i]
	}
	return nil
}

func (s *State) removeEntry(id string) {
	s.Entries = slices.DeleteFunc(s.Entries, func(e Entry) bool { return e.ID == id })
	s.Suspects = withoutValue(s.Suspects, id)
}

// withoutValue gives a list less one value, in a list of its own.
func withoutValue(list []string, id string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == id })
}
