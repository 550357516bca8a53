package queue

import (
	"slices"
	"time"
)

// EventKind is the kind of an event.
type EventKind string

// The events. Those that answer a command carry its number in For; one that
// does not fit changes nothing.
const (
	Opened    EventKind = "opened"    // a worker begins: Policy, Facts
	Added     EventKind = "added"     // Entry; a task that is in the queue is replaced
	Asked     EventKind = "asked"     // Ask
	Prepared  EventKind = "prepared"  // Prepared
	Verified  EventKind = "verified"  // Verdict
	Checked   EventKind = "checked"   // Verdict: the forge's, of the first that it checks; none while it checks
	Landed    EventKind = "landed"    // the target is at the batch's head
	Refused   EventKind = "refused"   // Refusal: it could not be landed
	Foreseen  EventKind = "foreseen"  // Ahead
	Pushed    EventKind = "pushed"    // Push
	Resolved  EventKind = "resolved"  // Resolution: an agent's run at an entry is over
	WaitOver  EventKind = "wait over" // the time has come
	Stumbled  EventKind = "stumbled"  // Why: pawl could not do its part
	Looked    EventKind = "looked"    // Facts
	Proposals EventKind = "proposals" // Requests: what became of pull requests
)

// Event is one thing that happened.
type Event struct {
	Kind EventKind `json:"kind"`
	At   time.Time `json:"at"`
	For  int64     `json:"for,omitempty"`
	// ClockSet is by how much the clock was set since the last event, At included,
	// as far as somebody saw it: what is waited for comes as much later.
	ClockSet time.Duration `json:"clock_set,omitempty"`

	Policy     *Policy     `json:"policy,omitempty"`
	Facts      *Facts      `json:"facts,omitempty"`
	Entry      *Entry      `json:"entry,omitempty"`
	Done       bool        `json:"done,omitempty"` // of Added: the task is on the target already
	Busy       bool        `json:"busy,omitempty"` // of Checked: a check is under way
	Ask        *Ask        `json:"ask,omitempty"`
	Prepared   *Prepare    `json:"prepared,omitempty"`
	Verdict    *Verdict    `json:"verdict,omitempty"`
	Refusal    *Refusal    `json:"refusal,omitempty"`
	Ahead      []Ahead     `json:"ahead,omitempty"`
	Push       *Push       `json:"push,omitempty"` // of Landed: the remote has it already
	Resolution *Resolution `json:"resolution,omitempty"`
	Requests   []Request   `json:"requests,omitempty"`
	Why        string      `json:"why,omitempty"`
	Lasting    bool        `json:"lasting,omitempty"` // of Stumbled: it does not pass by itself
	// Warnings are passed on to people.
	Warnings []string `json:"warnings,omitempty"`
}

// Facts is the observed state of the target.
type Facts struct {
	Tip  string `json:"tip"`  // empty when there is no such branch
	Tree string `json:"tree"` // of Tip
	// Remote has the branch that is the target; "" where that is the branch here.
	Remote string `json:"remote,omitempty"`
	// Past is true when Tip is the commit that was seen last, or a descendant, or where
	// the remote is.
	Past bool `json:"past"`
	// Diverged says that the target here and at the remote each have commits of
	// their own.
	Diverged string `json:"diverged,omitempty"`
	// Theirs is the remote's commit then. Apart: the two cannot be merged.
	Theirs string `json:"theirs,omitempty"`
	Apart  bool   `json:"apart,omitempty"`
	// Lost are done tasks whose landing is no ancestor of Tip, at most 100.
	Lost []string `json:"lost,omitempty"`
}

// Wish is a request of a person.
type Wish string

// The requests. Those without an id are about the whole queue.
const (
	WishHold    Wish = "hold"
	WishRelease Wish = "release"
	WishRetry   Wish = "retry"
	WishDrop    Wish = "drop"
	WishSettle  Wish = "settle" // a parked entry's conflict, by a commit that a person made
	WishPause   Wish = "pause"
	WishResume  Wish = "resume"
	WishVerify  Wish = "verify" // the target itself
	WishLook    Wish = "look"   // at what the forge says of requests and checks
)

// Ask is one request.
type Ask struct {
	Wish Wish   `json:"wish"`
	ID   string `json:"id,omitempty"`
	Why  string `json:"why,omitempty"`
	// Of [WishSettle]: Commit replaces From, the entry's commit that the person saw.
	From   string `json:"from,omitempty"`
	Commit string `json:"commit,omitempty"`
}

// Prepare is how the entries of a batch merge, one onto the other.
type Prepare struct {
	Facts
	Steps  []Merged `json:"steps"`
	Head   string   `json:"head"`   // Tip, when nothing is to be moved
	Result string   `json:"result"` // the tree of Head
}

// Merged is one entry of a batch after the merge: a commit, or why not.
type Merged struct {
	ID     string `json:"id"`
	Commit string `json:"commit,omitempty"`
	Empty  bool   `json:"empty,omitempty"` // nothing is left of its change: Commit is what it was merged onto
	// Settled are the paths whose simple conflict a rule resolved.
	Settled []string `json:"settled,omitempty"`
	// Regenerated are the paths that Commands made anew.
	Regenerated []string `json:"regenerated,omitempty"`
	Commands    []string `json:"commands,omitempty"`
	// Many says how many files it adds, where they are many.
	Many string `json:"many,omitempty"`
	// Kept are protected paths that stay as the target has them.
	Kept []string `json:"kept,omitempty"`
	// Conflict is with the target itself.
	Conflict *Conflict `json:"conflict,omitempty"`
	// Later: it conflicts with the entries before it in this batch only.
	Later bool `json:"later,omitempty"`
	// Lost says why it can never be merged, such as that its commit is gone.
	Lost string `json:"lost,omitempty"`
}

// pathsByRule gives the paths of a conflict that no agent and no person saw.
func (m *Merged) pathsByRule() []string { return slices.Concat(m.Settled, m.Regenerated) }

func (m *Merged) canBeLanded() bool {
	return m.Commit != "" && m.Conflict == nil && !m.Later && m.Lost == ""
}

// Verdict is the gate record of a tree.
type Verdict struct {
	Tree    string `json:"tree"`
	Green   bool   `json:"green"`
	Cached  bool   `json:"cached,omitempty"`  // from an earlier run; a red one had its second try
	Empty   bool   `json:"empty,omitempty"`   // there are no gates
	Summary string `json:"summary,omitempty"` // why red, in one line
	// Absent: a check of the forge that is required was not reported for this commit.
	Absent bool `json:"absent,omitempty"`
	// Log is what red checks of a forge printed, quoted, for an agent.
	Log string `json:"log,omitempty"`
	// Retried: red at first, and this is the second try.
	Retried  bool     `json:"retried,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// By says of a red commit whose it is, such as "by Ann Lee (Break it)".
	By string `json:"by,omitempty"`
	// Transient: red for something that passes, such as a service that is down.
	Transient bool `json:"transient,omitempty"`
}

// Refusal is the reason why a batch could not be landed.
type Refusal struct {
	Moved bool     `json:"moved,omitempty"` // the target is not where it was
	Why   string   `json:"why,omitempty"`
	IDs   []string `json:"ids,omitempty"` // the entries that have to wait; none is all
	// Commits: the remote refuses what these commits say or bring, and would take others.
	Commits bool `json:"commits,omitempty"`
}

// Ahead is a conflict to come.
type Ahead struct {
	ID    string   `json:"id"`
	Paths []string `json:"paths,omitempty"` // none: no conflict
}

// Push is the result of a push.
type Push struct {
	Diverged string `json:"diverged,omitempty"` // the remote has commits that are not here
	Failed   string `json:"failed,omitempty"`   // it could not be reached, or refused
	Refused  bool   `json:"refused,omitempty"`
	Words    string `json:"words,omitempty"` // of the remote, without advice
}

// Resolution is how an agent's run at an entry ended.
type Resolution struct {
	ID      string `json:"id"`
	Attempt int    `json:"attempt"` // the entry's Attempts when it began
	Commit  string `json:"commit,omitempty"`
	Why     string `json:"why,omitempty"` // without a commit
}

// Request is the observed state of an entry's pull request.
type Request struct {
	ID     string `json:"id"`
	URL    string `json:"url,omitempty"`
	Merged string `json:"merged,omitempty"` // the commit on the target
	Since  string `json:"since,omitempty"`  // as in [Landing]
	Closed string `json:"closed,omitempty"` // why it will not be merged
	// Why is the obstacle to merging an open one.
	Why string `json:"why,omitempty"`
	// Pushed is a commit that somebody put on top of what pawl pushed.
	Pushed string `json:"pushed,omitempty"`
	// Refused is why the remote takes no such commits.
	Refused string `json:"refused,omitempty"`
	// Behind: the target has moved since it was brought up to date.
	Behind bool `json:"behind,omitempty"`
	// Said is what people who may write want changed, and Red what its checks
	// complain about. Heard has the ids of what is in them.
	Said  string   `json:"said,omitempty"`
	Red   string   `json:"red,omitempty"`
	Heard []string `json:"heard,omitempty"`
	// Seen is the state of the open one that was looked at.
	Seen string `json:"seen,omitempty"`
}

// CommandKind is the kind of a command.
type CommandKind string

// The commands.
const (
	DoWait    CommandKind = "wait"    // until Until, or until something is asked
	DoLook    CommandKind = "look"    // where the target is
	DoPrepare CommandKind = "prepare" // merge IDs onto From, or else the target, in order; or Commit with it
	DoVerify  CommandKind = "verify"  // run the gates on Tree, the tree of Commit
	DoCheck   CommandKind = "check"   // ask the forge about the first of Checking; it gets them all
	DoLand    CommandKind = "land"    // move the target From, To; safe to repeat
	DoForesee CommandKind = "foresee" // look at IDs for conflicts with the target
	DoPush    CommandKind = "push"    // the target to its remote
	DoPropose CommandKind = "propose" // open a pull request for IDs
	DoReview  CommandKind = "review"  // ask what became of the pull requests of IDs
)

// Command is the one thing that is to be done now. A newer one replaces it,
// unless it lands.
type Command struct {
	Seq    int64       `json:"seq"`
	Kind   CommandKind `json:"kind,omitempty"`
	Why    string      `json:"why,omitempty"`
	IDs    []string    `json:"ids,omitempty"`
	Batch  int64       `json:"batch,omitempty"`
	From   string      `json:"from,omitempty"`
	To     string      `json:"to,omitempty"`
	Commit string      `json:"commit,omitempty"`
	Tree   string      `json:"tree,omitempty"`
	// Target: it is the target by itself that is verified, without what IDs would land.
	Target bool `json:"target,omitempty"`
	// Again: a red gate gets its second try.
	Again bool `json:"again,omitempty"`
	// Fresh: what was red before is tried again; each request is looked at.
	Fresh bool      `json:"fresh,omitempty"`
	Until time.Time `json:"until,omitzero"` // zero: no time
}
