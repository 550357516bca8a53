package board

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Actor is who changes a case.
type Actor string

// The actors.
const (
	Person Actor = "person" // at a terminal or in a browser
	Pawl   Actor = "pawl"   // the autopilot, the merge queue, the board itself
)

// Action is an operation on a case.
type Action string

// The actions. Add, Edit and Remove change no status; they are in the history
// only.
const (
	Add      Action = "add"
	Edit     Action = "edit"
	Remove   Action = "remove"
	Start    Action = "start"
	Stop     Action = "stop"
	Crash    Action = "crash"
	Return   Action = "return"
	Block    Action = "block"
	Unblock  Action = "unblock"
	Defer    Action = "defer"
	Undefer  Action = "undefer"
	Verify   Action = "verify"
	Enqueue  Action = "queue"
	Land     Action = "land"
	Approve  Action = "approve"
	Redo     Action = "redo"
	Reject   Action = "reject"
	Fail     Action = "fail"
	Expire   Action = "expire"
	Retry    Action = "retry"
	Rollback Action = "rollback"
	Finish   Action = "finish"
	Reopen   Action = "reopen"
	Revert   Action = "revert"
	Keep     Action = "keep"
	Drop     Action = "drop"
)

// LimitsRaised is the reason of the [Retry] by which a task that has timed out continues with more room.
const LimitsRaised = "its limits were raised"

// Outcome ends a sentence about a task whose run ended: task-001 "is blocked".
func (a Action) Outcome() string {
	switch a {
	case Block:
		return "is blocked"
	case Verify:
		return "is verified"
	case Fail:
		return "failed"
	case Expire:
		return "timed out"
	case Stop, Return, Crash:
		return "is pending again"
	case Land:
		return "is done"
	}
	return "is unchanged"
}

// Rule is one line of the transition table.
type Rule struct {
	Action Action
	Type   Type // "" is both
	By     []Actor
	From   []Status
	To     Status
	Retry  bool   // counts as a retry
	Ready  bool   // only for a ready task
	When   string // what has happened, in words
}

var (
	anyone = []Actor{Person, Pawl}
	person = []Actor{Person}
	pawl   = []Actor{Pawl}
)

// RetryWithout is the reason of a retry for which a person gave none.
const RetryWithout = "it is tried again"

// Rules is the transition table: what is not here is refused. Of two lines for
// one action, the first that fits holds.
var Rules = []Rule{
	{Start, Task, anyone, []Status{Pending}, Active, false, true, "a run works on it"},
	{Stop, Task, anyone, []Status{Active}, Pending, false, false, "its run was stopped; the work is kept"},
	{Crash, Task, pawl, []Status{Active}, Pending, true, false, "its run ended unexpectedly; the workspace is kept"},
	{Return, Task, pawl, []Status{Active}, Pending, false, false, "its work has to change before it is taken"},
	{Verify, Task, pawl, []Status{Active}, Review, false, false, "COMPLETE, and all required gates passed"},
	{Enqueue, Task, anyone, []Status{Pending, Active, Blocked, Failed, Timeout, Deferred}, Review, false, false,
		"it waits to land"},
	{Land, Task, pawl, []Status{Pending, Active, Blocked, Review, Failed, Timeout, Deferred}, Done, false, false,
		"its change is on the target branch"},
	{Block, Task, pawl, []Status{Active, Review}, Blocked, false, false,
		"BLOCKED, a guard, or a conflict that needs a person"},
	{Block, "", person, []Status{Pending, Review, Failed, Timeout, Deferred}, Blocked, false, false, "put on hold"},
	{Fail, Task, pawl, []Status{Active}, Failed, false, false, "its run failed"},
	{Expire, Task, pawl, []Status{Active}, Timeout, false, false, "its run reached its limit of iterations or time"},
	{Approve, Task, person, []Status{Review, Pending, Blocked, Deferred}, Review, false, false, "it was approved"},
	{Redo, Task, person, []Status{Review}, Pending, false, false, "the review asked for changes"},
	{Reject, Task, person, []Status{Review}, Blocked, false, false, "the review rejected it"},
	{Unblock, "", person, []Status{Blocked}, Pending, false, false, "it was unblocked"},
	{Defer, "", person, []Status{Pending, Blocked}, Deferred, false, false, "it was deferred"},
	{Undefer, "", person, []Status{Deferred}, Pending, false, false, "it is wanted again"},
	{Retry, Task, person, []Status{Failed, Timeout, Blocked}, Pending, true, false, RetryWithout},
	{Rollback, Task, person, []Status{Failed, Timeout, Blocked}, Pending, false, false, "its work was rolled back"},
	{Finish, Operation, pawl, []Status{Pending, Blocked, Deferred}, Done, false, false, "all its tasks are done"},
	{Reopen, Operation, pawl, []Status{Done}, Pending, false, false, "not all its tasks are done"},
	{Revert, Task, anyone, []Status{Done}, Review, false, false, "its landing is queued to be reverted"},
	{Reopen, Task, pawl, []Status{Review, Blocked, Deferred, Done}, Pending, false, false, "its landing was reverted"},
	{Keep, Task, pawl, []Status{Pending, Review, Blocked, Deferred}, Done, false, false, "its landing is not reverted"},
	{Drop, Task, pawl, []Status{Review, Blocked}, Blocked, false, false, "it was taken out of the queue"},
}

// Change asks for an action. Time comes in with it.
type Change struct {
	Action Action    `json:"action"`
	By     Actor     `json:"by"`
	Why    string    `json:"why,omitempty"` // in words; cut at MaxWhy bytes
	At     time.Time `json:"at"`
}

// Entry is one line of a case's history.
type Entry struct {
	At     time.Time `json:"at"`
	Action Action    `json:"action"`
	By     Actor     `json:"by"`
	Person string    `json:"person,omitempty"` // the name; "" of pawl's own actions and of old ones
	Host   string    `json:"host,omitempty"`   // the machine
	From   Status    `json:"from"`             // "" for an added case
	To     Status    `json:"to"`               // "" for a removed one
	Why    string    `json:"why"`
}

// Who names who acted: a person by name, and on a board that several machines share the machine.
func (e Entry) Who(shared bool) string {
	who := cmp.Or(e.Person, string(e.By))
	if shared && e.Host != "" {
		who += " on " + e.Host
	}
	return who
}

// RefusalError is the reason for a refused change, with an alternative.
type RefusalError struct {
	ID      string
	Why     string
	Instead string // "" when there is nothing to do
}

func (r *RefusalError) Error() string { return r.Why }

// Move carries out a change: the case after it, and the line of its history.
// The error is a [*RefusalError], and then the case is as it was. The counters are
// not touched: what a move means for other cases is for who stores them.
func Move(c Case, ch Change) (Case, Entry, error) {
	rule, refused := findRule(&c, ch)
	if refused != nil {
		return c, Entry{}, refused
	}
	why := cmp.Or(tidyReason(ch.Why), rule.When)
	e := Entry{At: ch.At, Action: ch.Action, By: ch.By, From: c.Status, To: rule.To, Why: why}
	c.Status, c.Why, c.UpdatedAt = rule.To, why, ch.At
	if rule.Retry {
		c.Retries++
	}
	return c, e, nil
}

// tidyReason gives a reason as it is stored: bounded, UTF-8, without NUL.
func tidyReason(why string) string {
	why = strings.ReplaceAll(strings.ToValidUTF8(why, "\uFFFD"), "\x00", "")
	if len(why) > MaxWhy {
		why = strings.ToValidUTF8(why[:MaxWhy], "")
	}
	return strings.TrimSpace(why)
}

// findRule gives the rule that allows a change, or why there is none.
func findRule(c *Case, ch Change) (Rule, *RefusalError) {
	refuse := func(why, instead string) *RefusalError {
		return &RefusalError{c.ID, fmt.Sprintf("cannot %s %s: %s", ch.Action, c.ID, why), instead}
	}
	var typed, known bool
	for _, r := range Rules {
		if r.Action != ch.Action {
			continue
		}
		known = true
		if r.Type != "" && r.Type != c.Type {
			continue
		}
		typed = true
		if !slices.Contains(r.From, c.Status) || !slices.Contains(r.By, ch.By) {
			continue
		}
		if r.Ready && !c.IsReady() {
			return Rule{}, refuse(c.NotReady(), "See what it waits for: pawl case show "+c.ID)
		}
		return r, nil
	}
	switch {
	case !known:
		return Rule{}, refuse("there is no such action", "")
	case !typed && c.Type == Operation:
		return Rule{}, refuse("it is an operation, which only groups",
			"Name one of its tasks: pawl case list --parent "+c.ID)
	case !typed:
		return Rule{}, refuse("it is a task", "")
	}
	return Rule{}, refuse("it is "+c.Status.Phrase(), whatToDoInstead(c, ch))
}

// whatToDoInstead names what a person can do with a case whose status is in the way.
func whatToDoInstead(c *Case, ch Change) string {
	switch c.Status {
	case Active:
		return "A run works on it; stop that first: pawl stop " + c.ID
	case Done:
		return "It has landed; to take it back: pawl revert " + c.ID + "; for more work add a new task that needs it"
	case Blocked:
		if ch.Action == Block {
			return "It is already blocked; to open it: pawl case unblock " + c.ID
		}
		return "To open it: pawl case unblock " + c.ID
	case Deferred:
		return "To open it: pawl case undefer " + c.ID
	case Failed, Timeout:
		return "To try it again: pawl case retry " + c.ID
	case Review:
		return "Its work waits for a review or to land; to stop that: pawl case block " + c.ID
	case Pending:
		return "It is already open"
	}
	return ""
}

// CanEdit refuses to change what has landed. The error is a [*RefusalError].
func CanEdit(c *Case) error {
	if c.Status == Done {
		why := fmt.Sprintf("cannot edit %s: it is done", c.ID)
		return &RefusalError{c.ID, why, whatToDoInstead(c, Change{Action: Edit})}
	}
	return nil
}

// CanRemove refuses to remove what a loop works on, what others need, and
// what holds others. The error is a [*RefusalError].
func CanRemove(c *Case, dependents []string) error {
	switch {
	case c.Status == Active || c.Status == Review:
		why := fmt.Sprintf("cannot remove %s: it is %s", c.ID, c.Status.Phrase())
		return &RefusalError{c.ID, why, whatToDoInstead(c, Change{Action: Remove})}
	case c.Children > 0:
		return &RefusalError{
			c.ID, fmt.Sprintf("cannot remove %s: it contains %d tasks", c.ID, c.Children),
			"Remove those first, or move them: pawl case edit ID --parent ''",
		}
	case len(dependents) > 0:
		const most = 5
		list := strings.Join(dependents[:min(len(dependents), most)], ", ")
		if len(dependents) > most {
			list += fmt.Sprintf(" and %d more", len(dependents)-most)
		}
		return &RefusalError{
			c.ID, fmt.Sprintf("cannot remove %s: it is needed by %s", c.ID, list),
			"Remove the need first: pawl case edit " + dependents[0] + " --unneed " + c.ID,
		}
	}
	return nil
}

// Changed names the fields that an edit changed.
func Changed(before, after *Case) []string {
	var names []string
	for _, f := range []struct {
		name string
		same bool
	}{
		{"title", before.Title == after.Title},
		{"description", before.Description == after.Description},
		{"acceptance", slices.Equal(before.Acceptance, after.Acceptance)},
		{"verify", sameChecks(before.Verify, after.Verify)},
		{"sealed", sameChecks(before.Sealed, after.Sealed)},
		{"tags", slices.Equal(before.Tags, after.Tags)},
		{"priority", before.Priority == after.Priority},
		{"parent", before.Parent == after.Parent},
		{"needs", slices.Equal(before.Needs, after.Needs)},
		{"iteration_control", before.Control.String() == after.Control.String()},
	} {
		if !f.same {
			names = append(names, f.name)
		}
	}
	return names
}
