package view

import (
	"reflect"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/report"
)

// Case is an operation or a task of the board.
type Case struct {
	ID          string    `json:"id"`
	Type        string    `json:"type" enum:"operation,task"`
	Title       string    `json:"title"`
	Tags        []string  `json:"tags" nullable:"false"`
	Priority    int       `json:"priority" doc:"Higher first."`
	Parent      string    `json:"parent" doc:"The operation that it is in."`
	Needs       []string  `json:"needs" nullable:"false" doc:"Cases that must be done first."`
	Ref         string    `json:"ref" doc:"Its name where it was imported from."`
	Status      string    `json:"status" enum:"pending,active,blocked,review,done,failed,timeout,deferred"`
	Why         string    `json:"why"`
	Ready       bool      `json:"ready" doc:"A task that can be started now."`
	NotReady    string    `json:"not_ready" doc:"Why a pending case is not ready."`
	Score       int       `json:"score"`
	Retries     int       `json:"retry_count"`
	Unblocks    int       `json:"unblocks" doc:"Cases that wait for this one."`
	Children    int       `json:"children" doc:"Of an operation."`
	Finished    int       `json:"children_done"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
	Actions     []string  `json:"actions" nullable:"false" doc:"What a person may do with it as it is."`
	Description string    `json:"description,omitempty" doc:"Only where one case is asked for."`
	Acceptance  []string  `json:"acceptance,omitempty" doc:"Only where one case is asked for."`

	board.Checks
	Control *board.Control `json:"iteration_control,omitempty" doc:"Only where one case is asked for."`
}

// CasePage is one page of the board.
type CasePage struct {
	Cases      []Case `json:"cases" nullable:"false"`
	Total      int    `json:"total" doc:"How many the filter finds in all."`
	NextCursor string `json:"next_cursor"`
}

// CaseDetail is a case with all that belongs to it.
type CaseDetail struct {
	Case
	ScoreParts []board.Part  `json:"score_parts" nullable:"false"`
	Dependents []string      `json:"dependents" nullable:"false" doc:"Cases that need it."`
	History    []board.Entry `json:"history" nullable:"false" doc:"What was done with it, oldest first."`
	Workspace  *Workspace    `json:"workspace,omitempty" doc:"Of a task that has one."`

	Proof []report.Proof `json:"proof" nullable:"false" doc:"Which checks show its criteria."`
}

// Facts decide with the case what a person may do with it.
type Facts struct {
	Autopilot bool // one works
	Workspace bool // it has one
	Asked     bool // a person is asked to review its work
	Needed    bool // others need it
	Landed    bool // what landed last is work of it
}

// ShowCase shows a case with what a person may do with it.
func ShowCase(c *board.Case, f Facts) Case {
	score, _ := board.Score(c)
	return Case{
		ID: c.ID, Type: string(c.Type), Title: c.Title, Tags: NonNil(c.Tags),
		Priority: c.Priority, Parent: c.Parent, Needs: NonNil(c.Needs), Ref: c.Ref,
		Status: string(c.Status), Why: c.Why, Ready: c.IsReady(), NotReady: c.NotReady(),
		Score: score, Retries: c.Retries, Unblocks: c.Unblocks,
		Children: c.Children, Finished: c.ChildrenDone, CreatedAt: c.CreatedAt,
		UpdatedAt: c.UpdatedAt, Actions: caseActions(c, f),
		Description: c.Description, Acceptance: c.Acceptance, Control: c.Control,
		Checks: c.Checks,
	}
}

// personal are the actions that a person has, in the order of a menu. Landing,
// failing and the like are pawl's.
var personal = []board.Action{board.Approve, board.Redo, board.Reject, board.Start, board.Retry, board.Unblock,
	board.Block, board.Defer, board.Undefer, board.Rollback}

// caseActions tries what is allowed: a move that is not stored changes nothing.
func caseActions(c *board.Case, f Facts) []string {
	out := []string{}
	for _, a := range personal {
		switch a {
		case board.Approve, board.Redo, board.Reject:
			if !f.Asked {
				continue
			}
		case board.Start:
			if !f.Autopilot {
				continue
			}
		}
		if _, _, err := board.Move(*c, board.Change{Action: a, By: board.Person, Why: "?",
			At: c.UpdatedAt}); err == nil {
			out = append(out, string(a))
		}
	}
	hasBegun := []board.Status{board.Active, board.Failed, board.Timeout, board.Blocked}
	if c.Type == board.Task && slices.Contains(hasBegun, c.Status) {
		out = append(out, "extend")
	}
	if f.Workspace && c.Status != board.Active {
		out = append(out, "clean")
	}
	if board.CanEdit(c) == nil {
		out = append(out, string(board.Edit))
	}
	if f.Landed && c.Status == board.Done {
		out = append(out, string(board.Revert))
	}
	if !f.Needed && board.CanRemove(c, nil) == nil {
		out = append(out, string(board.Remove))
	}
	return out
}

// CaseText is what a case says. What is left out of an edit stays as it is.
type CaseText struct {
	Title       *string   `json:"title,omitempty" maxLength:"500"`
	Description *string   `json:"description,omitempty" maxLength:"262144"`
	Acceptance  *[]string `json:"acceptance,omitempty" maxItems:"100"`
	Tags        *[]string `json:"tags,omitempty" maxItems:"50"`
	Priority    *int      `json:"priority,omitempty" minimum:"-1000000" maximum:"1000000"`
	Parent      *string   `json:"parent,omitempty" maxLength:"200" doc:"An operation's id or ref; empty for none."`
	Needs       *[]string `json:"needs,omitempty" maxItems:"1000" doc:"Ids or refs."`

	Verify  *checkList     `json:"verify,omitempty"`
	Sealed  *checkList     `json:"sealed,omitempty"`
	Control *board.Control `json:"iteration_control,omitempty" doc:"Of a task with policy:controlled; {} takes all away."`
}

// checkList are checks as they are given: each a command, or an object.
type checkList []board.TaskCheck

// Schema describes them.
func (checkList) Schema(r huma.Registry) *huma.Schema {
	object := r.Schema(reflect.TypeFor[board.TaskCheck](), false, "TaskCheck")
	most := board.MaxChecks
	return &huma.Schema{Type: huma.TypeArray, MaxItems: &most, Description: "Checks of it: commands, or objects.",
		Items: &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeString, Description: "A command."}, object}}}
}

// ApplyTo changes a case to what the text says.
func (t CaseText) ApplyTo(c *board.Case) error {
	setIfGiven(&c.Title, t.Title)
	setIfGiven(&c.Description, t.Description)
	setIfGiven(&c.Acceptance, t.Acceptance)
	setIfGiven(&c.Tags, t.Tags)
	setIfGiven(&c.Priority, t.Priority)
	setIfGiven(&c.Parent, t.Parent)
	setIfGiven(&c.Needs, t.Needs)
	setIfGiven(&c.Verify, (*[]board.TaskCheck)(t.Verify))
	setIfGiven(&c.Sealed, (*[]board.TaskCheck)(t.Sealed))
	if t.Control != nil {
		c.Control = t.Control
	}
	return nil
}

func setIfGiven[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// Imported are the cases of a list.
type Imported struct {
	Format string   `json:"format" enum:"markdown,jsonl,beads,ralph,csv"`
	IDs    []string `json:"ids" nullable:"false"`
	Notes  []string `json:"notes" nullable:"false" doc:"What was left out, and why."`
}

// Extent is how far a task may go.
type Extent struct {
	MaxIterations string `json:"max_iterations,omitempty" maxLength:"20" doc:"In all."`
	Timeout       string `json:"timeout,omitempty" maxLength:"20" doc:"In all, waits aside, with its unit: 1h30m."`
}

// CaseWish is where the work of a task goes back to.
type CaseWish struct {
	To   *int `json:"to,omitempty" minimum:"0" maximum:"1000000" doc:"rollback: the iteration of its last run; left out: before the first."`
	Undo bool `json:"undo,omitempty" doc:"rollback: get back what was there before the last one."`
}

// Removed names a case that is gone.
type Removed struct {
	Removed string `json:"removed"`
}

// Reviews are verified changes that wait for a person, the oldest first.
type Reviews struct {
	Reviews []ReviewAsked `json:"reviews" nullable:"false"`
}

// ReviewAsked is one of them. Its diff is GET /cases/{id}/diff, and the
// decision POST /cases/{id}/actions.
type ReviewAsked struct {
	Case    string     `json:"case"`
	Title   string     `json:"title"`
	Run     string     `json:"run"`
	Why     string     `json:"why"`
	AskedAt time.Time  `json:"asked_at"`
	Commit  string     `json:"commit" doc:"What is to land."`
	Base    string     `json:"base"`
	Last    *Iteration `json:"last,omitempty" doc:"The iteration that came to it, with its checks."`

	Proof []report.Proof `json:"proof" nullable:"false" doc:"Which checks show its criteria, and how they ended."`
	Used  *RunUse        `json:"used,omitempty" doc:"What its run used."`
}

// RunUse is what a run used.
type RunUse struct {
	Iterations int      `json:"iterations"`
	Elapsed    float64  `json:"elapsed" doc:"Seconds."`
	Agent      string   `json:"agent"`
	CostUSD    *float64 `json:"cost_usd" nullable:"true"`
}

// Queues are the merge queues, one a target.
type Queues struct {
	Queues []action.QueueView `json:"queues" nullable:"false"`
}

// Proposal are the tasks that an agent proposed for a goal, until a person adds them.
type Proposal struct {
	Version  string                `json:"version" doc:"Of the list; \"\" where there is none. It is named by what changes or adds the list."`
	Tasks    []action.ProposedTask `json:"tasks" nullable:"false"`
	Judged   bool                  `json:"judged" doc:"The configuration has gates, which will judge the tasks."`
	Problems []string              `json:"problems" nullable:"false" doc:"Why the list is not in order; then it shows no tasks."`
}

// Workspace is what is known of a task's workspace.
type Workspace struct {
	FirstPort int `json:"first_port" doc:"PAWL_PORT_BASE in it."`
	Ports     int `json:"ports" doc:"How many, from the first on."`
}

// Terminal lets its bearer in.
type Terminal struct {
	Ticket string `json:"ticket" doc:"Good once, for a minute: GET /api/v1/terminal?ticket=TICKET is a WebSocket."`
}

// Preview is what can be looked at.
type Preview struct {
	Listening []int  `json:"listening" nullable:"false" doc:"Ports of the task on which something answers."`
	URL       string `json:"url" doc:"Opens it once, within a minute. Empty where no port was named and not just one answers."`
}
