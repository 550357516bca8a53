package web

import (
	"context"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/keep/store"
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
}

// caseHandlers answer what the board has, and change it.
type caseHandlers struct{ *core }

func (s caseHandlers) caseRoutes(api huma.API) {
	get(api, "/cases", "list-cases", "cases", "The board, in the order in which cases were added", s.listCases)
	get(api, "/cases/{id}", "get-case", "cases", "One case with its texts and its history", s.getCase)
	post(api, "/cases", "add-case", "cases", "Add a case", s.addCase)
	post(api, "/cases/import", "import-cases", "cases",
		"Add the cases of a list: Markdown, JSON lines, or a list of another tool; all or none", s.importCases)
	addRoute(api, huma.Operation{OperationID: "edit-case", Method: http.MethodPatch, Path: base + "/cases/{id}",
		Summary: "Change what a case says", Tags: []string{"cases"}}, s.editCase)
	addRoute(api, huma.Operation{OperationID: "remove-case", Method: http.MethodDelete, Path: base + "/cases/{id}",
		Summary: "Take a case off the board; its history stays", Tags: []string{"cases"},
		DefaultStatus: http.StatusOK}, s.removeCase)
	post(api, "/cases/{id}/rollback", "rollback-case", "cases",
		"Take back the work of a task: its workspace as it began, or after an iteration; itself undoable", s.rollbackCase)
	post(api, "/cases/{id}/clean", "clean-case", "cases",
		"Remove the workspace of a task; what is in it is kept on a ref", s.cleanCase)
	post(api, "/cases/{id}/actions", "move-case", "cases",
		"Block, unblock, defer, undefer, retry, start; for work in review: approve, redo, reject; for what landed: revert",
		s.moveCase)
	post(api, "/cases/{id}/extend", "extend-case", "cases",
		"Give a task more iterations or time; a timed-out one goes on", s.extendCase)
}

// CasePath names a case in an address.
type CasePath struct {
	ID string `path:"id" maxLength:"40" pattern:"^[0-9A-Za-z-]+$" doc:"task-042, op-005, or 42 for task-042."`
}

// Resolve is called for each request: it writes out a shortened id.
func (p *CasePath) Resolve(huma.Context) []error {
	if _, _, ok := board.ParseID(p.ID); !ok {
		return []error{problem(http.StatusNotFound, "CASE_NOT_FOUND",
			"%q is no id of a task: they look like task-042 or op-007", p.ID).
			suggest("List the board: GET /api/v1/cases")}
	}
	p.ID = board.Normal(p.ID)
	return nil
}

type caseQuery struct {
	Paging
	Status []string `query:"status" maxItems:"8" enum:"pending,active,blocked,review,done,failed,timeout,deferred"`
	Open   bool     `query:"open" doc:"Not done."`
	Ready  bool     `query:"ready" doc:"Only tasks that can be started now."`
	Type   string   `query:"type" enum:"operation,task"`
	Tag    string   `query:"tag" maxLength:"64"`
	Parent string   `query:"parent" maxLength:"40"`
	Text   string   `query:"q" maxLength:"200" doc:"In the title, the id or the tags."`
}

func (s caseHandlers) listCases(ctx context.Context, in *caseQuery) (*body[CasePage], error) {
	f := store.CaseFilter{Open: in.Open, Ready: in.Ready, Type: board.Type(in.Type), Tag: in.Tag,
		Parent: board.Normal(in.Parent)}
	for _, st := range in.Status {
		f.Status = append(f.Status, board.Status(st))
	}
	after, _ := strconv.ParseInt(in.Cursor, 10, 64) // an odd one is the first page's
	cases, next, err := s.o.Store.CasePage(ctx, f, in.Text, after, in.Limit)
	if err != nil {
		return nil, err
	}
	out := CasePage{Cases: lists.Each(cases, func(c board.Case) Case { return showCase(&c) })}
	if next > 0 {
		out.NextCursor = strconv.FormatInt(next, 10)
	}
	out.Total, err = s.o.Store.CaseTotal(ctx, f, in.Text)
	return answer(out), err
}

func showCase(c *board.Case) Case {
	score, _ := board.Score(c)
	return Case{
		ID: c.ID, Type: string(c.Type), Title: c.Title, Tags: nonNil(c.Tags),
		Priority: c.Priority, Parent: c.Parent, Needs: nonNil(c.Needs), Ref: c.Ref,
		Status: string(c.Status), Why: c.Why, Ready: c.IsReady(), NotReady: c.NotReady(),
		Score: score, Retries: c.Retries, Unblocks: c.Unblocks,
		Children: c.Children, Finished: c.ChildrenDone, CreatedAt: c.CreatedAt,
		UpdatedAt: c.UpdatedAt, Actions: caseActions(c),
		Description: c.Description, Acceptance: c.Acceptance, Control: c.Control,
		Checks: c.Checks,
	}
}

// personal are the actions that a person has, in the order of a menu. Landing,
// failing and the like are pawl's.
var personal = []board.Action{board.Retry, board.Unblock, board.Block, board.Defer, board.Undefer, board.Rollback}

// caseActions tries what is allowed: a move that is not stored changes nothing.
func caseActions(c *board.Case) []string {
	out := []string{}
	for _, a := range personal {
		if _, _, err := board.Move(*c, board.Change{Action: a, By: board.Person, Why: "?", At: c.UpdatedAt}); err == nil {
			out = append(out, string(a))
		}
	}
	switch c.Status {
	case board.Failed, board.Timeout, board.Blocked:
		out = append(out, "clean", "extend")
	case board.Review:
		out = append(out, "approve", "redo", "reject")
	case board.Pending:
		if c.IsReady() {
			out = append(out, "start")
		}
	case board.Done:
		if c.Type == board.Task {
			out = append(out, "revert")
		}
	case board.Active, board.Deferred:
	}
	if board.CanEdit(c) == nil {
		out = append(out, string(board.Edit))
	}
	return out
}

func (s caseHandlers) getCase(ctx context.Context, in *CasePath) (*body[CaseDetail], error) {
	return s.caseDetail(ctx, in.ID)
}

func (s caseHandlers) caseDetail(ctx context.Context, id string) (*body[CaseDetail], error) {
	c, err := s.o.Store.Case(ctx, id)
	if err != nil {
		return nil, err
	}
	_, parts := board.Score(&c)
	needed, err := s.o.Store.Dependents(ctx, id)
	if err != nil {
		return nil, err
	}
	place, err := s.readWorkspace(ctx, id)
	if err != nil {
		return nil, err
	}
	history, err := s.o.Store.CaseHistory(ctx, id)
	return answer(CaseDetail{Case: showCase(&c), Dependents: nonNil(needed), History: nonNil(history),
		ScoreParts: nonNil(parts), Workspace: place}), err
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

func (t CaseText) applyTo(c *board.Case) error {
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

func (s caseHandlers) addCase(ctx context.Context, in *struct {
	Body struct {
		CaseText
		Type string `json:"type,omitempty" enum:"operation,task" doc:"A task when left out."`
		Ref  string `json:"ref,omitempty" maxLength:"200"`
	}
}) (*body[CaseDetail], error) {
	d := board.Draft{Case: board.Case{Type: board.Type(in.Body.Type), Ref: in.Body.Ref}}
	_ = in.Body.applyTo(&d.Case) // it refuses nothing
	added, err := s.o.Store.AddCases(ctx, []board.Draft{d}, board.Person, time.Now())
	if err != nil {
		return nil, err
	}
	return s.caseDetail(ctx, added[0].ID)
}

// Imported are the cases of a list.
type Imported struct {
	Format string   `json:"format" enum:"markdown,jsonl,beads,ralph,csv"`
	IDs    []string `json:"ids" nullable:"false"`
	Notes  []string `json:"notes" nullable:"false" doc:"What was left out, and why."`
}

func (s caseHandlers) importCases(ctx context.Context, in *struct {
	Body struct {
		Text string `json:"text" minLength:"1" doc:"The list."`
	}
}) (*body[Imported], error) {
	l, err := board.Parse([]byte(in.Body.Text))
	if err != nil {
		if p := explainCase(err); p != nil {
			return nil, p
		}
		return nil, problem(http.StatusUnprocessableEntity, "INVALID_LIST", "Nothing was stored: %v", err).
			suggest("A list is Markdown with checkboxes (- [ ] title), one JSON object a line, or a list of another tool")
	}
	added, err := s.o.Store.AddCases(ctx, l.Drafts, board.Person, time.Now())
	if err != nil {
		return nil, err
	}
	ids := lists.Each(added, func(c board.Case) string { return c.ID })
	return answer(Imported{Format: string(l.Format), IDs: ids, Notes: nonNil(l.Notes)}), nil
}

func (s caseHandlers) editCase(ctx context.Context, in *struct {
	CasePath
	Body CaseText
}) (*body[CaseDetail], error) {
	if _, err := s.o.Store.EditCase(ctx, in.ID, board.Person, time.Now(), in.Body.applyTo); err != nil {
		return nil, err
	}
	return s.caseDetail(ctx, in.ID)
}

// Extent is how far a task may go.
type Extent struct {
	MaxIterations string `json:"max_iterations,omitempty" maxLength:"20" doc:"In all."`
	Timeout       string `json:"timeout,omitempty" maxLength:"20" doc:"In all, waits aside, with its unit: 1h30m."`
}

func (s caseHandlers) extendCase(ctx context.Context, in *struct {
	CasePath
	Body Extent
}) (*body[Done], error) {
	return s.onCase(ctx, &in.CasePath, func(p *action.Operator) (done action.Done, err error) {
		l, err := action.ReadLimits(in.Body.MaxIterations, in.Body.Timeout)
		if err != nil {
			return done, err
		}
		return p.Extend(ctx, in.ID, l)
	})
}

// CaseWish is where the work of a task goes back to.
type CaseWish struct {
	To   *int `json:"to,omitempty" minimum:"0" maximum:"1000000" doc:"rollback: the iteration of its last run; left out: before the first."`
	Undo bool `json:"undo,omitempty" doc:"rollback: get back what was there before the last one."`
}

func (s caseHandlers) rollbackCase(ctx context.Context, in *struct {
	CasePath
	Body CaseWish
}) (*body[Done], error) {
	to := action.BackTo{Undo: in.Body.Undo}
	if in.Body.To != nil {
		to.N = *in.Body.To
	}
	if to.Undo && in.Body.To != nil {
		return nil, bothWays()
	}
	return s.onCase(ctx, &in.CasePath, func(p *action.Operator) (done action.Done, err error) {
		clones, err := s.o.Pool(ctx)
		if err != nil {
			return done, err
		}
		return p.RollbackTask(ctx, clones, in.ID, to)
	})
}

func (s caseHandlers) cleanCase(ctx context.Context, in *CasePath) (*body[Done], error) {
	return s.onCase(ctx, in, func(p *action.Operator) (done action.Done, err error) {
		clones, err := s.o.Pool(ctx)
		if err != nil {
			return done, err
		}
		return p.CleanTask(ctx, clones, in.ID)
	})
}

// onCase does something with a case that exists.
func (s caseHandlers) onCase(ctx context.Context, in *CasePath,
	do func(*action.Operator) (action.Done, error)) (*body[Done], error) {
	if _, err := s.o.Store.Case(ctx, in.ID); err != nil {
		return nil, err
	}
	return s.doAction(ctx, func(p *action.Operator) (string, error) {
		done, err := do(p)
		p.Say("%s", done.Text)
		return "", err
	})
}

// Removed names a case that is gone.
type Removed struct {
	Removed string `json:"removed"`
}

func (s caseHandlers) removeCase(ctx context.Context, in *CasePath) (*body[Removed], error) {
	return answer(Removed{in.ID}), s.o.Store.RemoveCase(ctx, in.ID, board.Person, time.Now())
}

func (s caseHandlers) moveCase(ctx context.Context, in *struct {
	CasePath
	Body struct {
		Action string `json:"action" enum:"retry,unblock,block,defer,undefer,start,approve,redo,reject,revert" doc:"start gives it the next free slot of the autopilot that runs; approve, redo and reject are about verified work that waits for a review; revert takes back what has landed."`
		Why    string `json:"why,omitempty" maxLength:"20000" doc:"Kept in the history; for redo, what must change: the next prompt has it."`
	}
}) (*body[CaseDetail], error) {
	if _, err := s.onCase(ctx, &in.CasePath, func(p *action.Operator) (action.Done, error) {
		return p.Change(ctx, in.Body.Action, in.ID, strings.TrimSpace(in.Body.Why))
	}); err != nil {
		return nil, err
	}
	return s.caseDetail(ctx, in.ID)
}
