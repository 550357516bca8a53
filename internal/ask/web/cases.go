package web

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// caseHandlers answer what the board has, and change it.
type caseHandlers struct{ *core }

func (s caseHandlers) caseRoutes(api huma.API) {
	at := rest.Tagged(api, "cases")
	rest.Get(at, "/cases", "list-cases", "The board, in the order in which tasks were added", s.listCases)
	rest.Get(at, "/cases/{id}", "get-case", "One task with its texts and its history", s.answerCaseDetail)
	rest.Post(at, "/cases", "add-case", "Add a task", s.addCaseToBoard)
	rest.Post(at, "/cases/import", "import-cases",
		"Add the tasks of a list: Markdown, JSON lines, or a list of another tool; all or none", s.importCases)
	rest.Patch(at, "/cases/{id}", "edit-case", "Change a task", s.editCase)
	rest.Delete(at, "/cases/{id}", "remove-case", "Remove a task from the board; its history is kept", s.removeCase)
	rest.Post(at, "/cases/{id}/rollback", "rollback-case",
		"Roll back the workspace of a task to its start, or to an iteration; this can be undone",
		s.rollbackCase)
	rest.Post(at, "/cases/{id}/clean", "clean-case", "Remove the workspace of a task; its content is saved under a ref",
		s.cleanCase)
	rest.Post(at, "/cases/{id}/actions", "move-case",
		"Block, unblock, defer, undefer, retry, start; for work in review: approve, redo, reject; for what "+
			"landed: revert",
		s.moveCase)
	rest.Post(at, "/cases/bisect", "bisect",
		"Find the landing that made a command red: a new task says how it goes. Then revert the task that it needs, or "+
			"unblock it to have an agent repair it, or remove it",
		s.startBisect)
	rest.Post(at, "/cases/{id}/extend", "extend-case", "Give a task more iterations or time; a timed-out one continues",
		s.extendCase)
}

type caseQuery struct {
	rest.Paging
	Status []string `query:"status" maxItems:"8" enum:"pending,active,blocked,review,done,failed,timeout,deferred"`
	Open   bool     `query:"open" doc:"Not done."`
	Ready  bool     `query:"ready" doc:"Only tasks that can be started now."`
	Type   string   `query:"type" enum:"operation,task"`
	Tag    string   `query:"tag" maxLength:"64"`
	Parent string   `query:"parent" maxLength:"40"`
	Text   string   `query:"q" maxLength:"200" doc:"In the title, the id or the tags."`
}

func (s caseHandlers) listCases(ctx context.Context, in *caseQuery) (*rest.Body[view.CasePage], error) {
	f := store.CaseFilter{Open: in.Open, Ready: in.Ready, Type: board.Type(in.Type), Tag: in.Tag,
		Parent: board.Normal(in.Parent)}
	f.Status = append(f.Status, lists.Each(in.Status, func(word string) board.Status { return board.Status(word) })...)
	after, _ := strconv.ParseInt(in.Cursor, 10, 64) // an odd one is the first page's
	cases, next, err := s.o.Store.CasePage(ctx, f, in.Text, after, in.Limit)
	if err != nil {
		return nil, err
	}
	known, err := s.caseFacts(ctx, cases...)
	if err != nil {
		return nil, err
	}
	out := view.CasePage{Cases: lists.Each(cases, func(c board.Case) view.Case { return known.showCase(&c) })}
	if next > 0 {
		out.NextCursor = strconv.FormatInt(next, 10)
	}
	out.Total, err = s.o.Store.CaseTotal(ctx, f, in.Text)
	return rest.Answer(out), err
}

func (s caseHandlers) answerCaseDetail(ctx context.Context, in *rest.CasePath) (*rest.Body[view.CaseDetail], error) {
	c, err := s.o.Store.Case(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	_, parts := board.Score(&c)
	needed, err := s.o.Store.Dependents(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	place, err := s.readWorkspace(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	known, err := s.caseFacts(ctx, c)
	if err != nil {
		return nil, err
	}
	history, err := s.o.Store.CaseHistory(ctx, in.ID)
	return rest.Answer(view.CaseDetail{Case: known.showCase(&c), Dependents: view.NonNil(needed), Workspace: place,
		History: view.NonNil(history), ScoreParts: view.NonNil(parts),
		Proof: view.NonNil(report.ProofsOf(&c, nil))}), err
}

// caseFacts are known beside the cases of the board.
type caseFacts struct {
	autopilot                     bool
	places, asked, needed, landed map[string]bool
}

// caseFacts reads them; what landed only of the cases that are given.
func (s *core) caseFacts(ctx context.Context, cases ...board.Case) (caseFacts, error) {
	f := caseFacts{places: map[string]bool{}, asked: map[string]bool{}, needed: map[string]bool{},
		landed: map[string]bool{}}
	ids := lists.Each(cases, func(c board.Case) string { return c.ID })
	landings, lerr := s.o.Store.TaskLandings(ctx, append(ids, "")) // a list of none is no SQL
	for _, l := range slices.Backward(landings) {                  // the last one decides
		f.landed[l.Task] = l.Commit != "" && !l.Revert && !l.Empty
	}
	needed, nerr := s.o.Store.Needed(ctx)
	for _, id := range needed {
		f.needed[id] = true
	}
	places, err := s.o.Store.Workspaces(ctx)
	for _, w := range places {
		f.places[w.ID] = true
	}
	asked, rerr := s.o.Store.OpenReviews(ctx, maxNeeds)
	for _, r := range asked {
		f.asked[r.Case] = true
	}
	pilot, _, perr := s.o.Store.Autopilot(ctx)
	f.autopilot = storedrun.Alive(pilot.Owner) || pilot.On()
	return f, errors.Join(err, rerr, perr, lerr, nerr)
}

func (f caseFacts) showCase(c *board.Case) view.Case {
	return view.ShowCase(c, view.Facts{Autopilot: f.autopilot, Workspace: f.places[c.ID], Asked: f.asked[c.ID],
		Needed: f.needed[c.ID], Landed: f.landed[c.ID]})
}

func (s caseHandlers) addCaseToBoard(ctx context.Context, in *struct {
	Body struct {
		view.CaseText
		Type string `json:"type,omitempty" enum:"operation,task" doc:"A task when left out."`
		Ref  string `json:"ref,omitempty" maxLength:"200"`
	}
}) (*rest.Body[view.CaseDetail], error) {
	d := board.Draft{Case: board.Case{Type: board.Type(in.Body.Type), Ref: in.Body.Ref}}
	_ = in.Body.ApplyTo(&d.Case) // it refuses nothing
	added, err := s.o.Store.AddCases(ctx, []board.Draft{d}, board.Person, time.Now())
	if err != nil {
		return nil, err
	}
	return s.answerCaseDetail(ctx, &rest.CasePath{ID: added[0].ID})
}

func (s caseHandlers) startBisect(ctx context.Context, in *struct {
	Body struct {
		Command string `json:"command" minLength:"1" maxLength:"4000" doc:"Red on the target now; it runs as gates do."`
		Good    string `json:"good,omitempty" maxLength:"200" doc:"A commit in which it was green."`
	}
}) (*rest.Body[view.CaseDetail], error) {
	c := board.Case{Type: board.Task, Title: "Repair: " + report.Line(in.Body.Command, 80), Status: board.Blocked,
		Ref:         "late:" + time.Now().UTC().Format(time.RFC3339Nano),
		Why:         "revert the landing that made it red, or unblock this to have an agent repair it",
		Description: "Pawl looks for the landing that made it red. What it tried and found:\n",
		Checks:      board.Checks{Verify: []board.TaskCheck{{Command: in.Body.Command}}}}
	added, err := s.o.Store.AddCases(ctx, []board.Draft{{Case: c}}, board.Person, time.Now())
	if err != nil {
		return nil, err
	}
	path := rest.CasePath{ID: added[0].ID}
	args := []string{"bisect", "--task=" + path.ID, "--good=" + in.Body.Good, "--", in.Body.Command}
	if _, err = s.o.Launch(ctx, args, func(int) (string, bool, error) { return "", true, nil }); err != nil {
		_ = s.o.Store.RemoveCase(ctx, path.ID, board.Person, time.Now()) // the error that matters is the one at hand
		return nil, err
	}
	return s.answerCaseDetail(ctx, &path)
}

func (s caseHandlers) importCases(ctx context.Context, in *struct {
	Body struct {
		Text string `json:"text" minLength:"1" doc:"The list."`
	}
}) (*rest.Body[view.Imported], error) {
	l, err := board.Parse([]byte(in.Body.Text))
	if err != nil {
		if p := rest.ExplainCase(err); p != nil {
			return nil, p
		}
		return nil, rest.Problem(http.StatusUnprocessableEntity, "INVALID_LIST", "Nothing was stored: %v", err).
			Suggest("A list is Markdown with checkboxes (- [ ] title), one JSON object a line, or a list of another tool")
	}
	added, err := s.o.Store.AddCases(ctx, l.Drafts, board.Person, time.Now())
	if err != nil {
		return nil, err
	}
	ids := lists.Each(added, func(c board.Case) string { return c.ID })
	return rest.Answer(view.Imported{Format: string(l.Format), IDs: ids, Notes: view.NonNil(l.Notes)}), nil
}

func (s caseHandlers) editCase(ctx context.Context, in *struct {
	rest.CasePath
	Body view.CaseText
}) (*rest.Body[view.CaseDetail], error) {
	if _, err := s.o.Store.EditCase(ctx, in.ID, board.Person, time.Now(), in.Body.ApplyTo); err != nil {
		return nil, err
	}
	return s.answerCaseDetail(ctx, &in.CasePath)
}

func (s caseHandlers) extendCase(ctx context.Context, in *struct {
	rest.CasePath
	Body view.Extent
}) (*done, error) {
	return s.actOnCase(ctx, &in.CasePath, func(p *action.Operator) (done action.Done, err error) {
		l, err := action.ReadLimits(in.Body.MaxIterations, in.Body.Timeout)
		if err != nil {
			return done, err
		}
		return p.Extend(ctx, in.ID, l)
	})
}

func (s caseHandlers) rollbackCase(ctx context.Context, in *struct {
	rest.CasePath
	Body view.CaseWish
}) (*done, error) {
	to := action.BackTo{Undo: in.Body.Undo}
	if in.Body.To != nil {
		to.N = *in.Body.To
	}
	if to.Undo && in.Body.To != nil {
		return nil, toAndUndoTogether()
	}
	return s.actOnCase(ctx, &in.CasePath, func(p *action.Operator) (done action.Done, err error) {
		clones, err := s.o.Pool(ctx)
		if err != nil {
			return done, err
		}
		return p.RollbackTask(ctx, clones, in.ID, to)
	})
}

func (s caseHandlers) cleanCase(ctx context.Context, in *rest.CasePath) (*done, error) {
	return s.actOnCase(ctx, in, func(p *action.Operator) (done action.Done, err error) {
		clones, err := s.o.Pool(ctx)
		if err != nil {
			return done, err
		}
		return p.CleanTask(ctx, clones, in.ID)
	})
}

// actOnCase does something with a case that exists.
func (s caseHandlers) actOnCase(ctx context.Context, in *rest.CasePath,
	do func(*action.Operator) (action.Done, error)) (*done, error) {
	if _, err := s.o.Store.Case(ctx, in.ID); err != nil {
		return nil, err
	}
	return s.doAction(ctx, func(p *action.Operator) (string, error) {
		done, err := do(p)
		p.Say("%s", done.Text)
		return "", err
	})
}

func (s caseHandlers) removeCase(ctx context.Context, in *rest.CasePath) (*rest.Body[view.Removed], error) {
	_, err := s.doAction(ctx, func(p *action.Operator) (string, error) { return "", p.RemoveTask(ctx, in.ID) })
	return rest.Answer(view.Removed{Removed: in.ID}), err
}

func (s caseHandlers) moveCase(ctx context.Context, in *struct {
	rest.CasePath
	Body struct {
		Action string `json:"action" enum:"retry,unblock,block,defer,undefer,start,approve,redo,reject,revert" doc:"start gives it the next free slot of the autopilot that runs; approve, redo and reject are about verified work that waits for a review; revert takes back what has landed."`
		Why    string `json:"why,omitempty" maxLength:"20000" doc:"Kept in the history; for redo, what must change: the next prompt has it."`
	}
}) (*rest.Body[view.CaseDetail], error) {
	if _, err := s.actOnCase(ctx, &in.CasePath, func(p *action.Operator) (action.Done, error) {
		return p.Change(ctx, in.Body.Action, in.ID, strings.TrimSpace(in.Body.Why))
	}); err != nil {
		return nil, err
	}
	return s.answerCaseDetail(ctx, &in.CasePath)
}

// Version names the list that a person has seen.
type Version struct {
	Version string `query:"version" required:"true" maxLength:"64" doc:"As in GET /proposal: nothing is done to a list that has changed since."`
}

func (s caseHandlers) proposalRoutes(api huma.API) {
	at := rest.Tagged(api, "cases")
	rest.Get(at, "/proposal", "get-proposal", "The tasks that an agent proposed for a goal (pawl plan)", s.showProposal)
	rest.Post(at, "/proposal", "edit-proposal", "Replace the proposed tasks", s.editProposal)
	rest.Post(at, "/proposal/add", "add-proposal", "Add the proposed tasks to the board, all or none", s.addProposal)
	rest.Delete(at, "/proposal", "drop-proposal", "Discard the proposed tasks", s.dropProposal)
}

func (s caseHandlers) showProposal(context.Context, *rest.Nothing) (*rest.Body[view.Proposal], error) {
	drafts, version, err := action.ReadProposal(s.o.Root)
	out := view.Proposal{Version: version, Tasks: action.Proposed(drafts), Problems: []string{}}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return rest.Answer(out), nil
	case err != nil && version == "":
		return nil, err
	case err != nil:
		out.Problems = strings.Split(err.Error(), "\n")
	}
	if c, err := s.loadConfig(); err == nil {
		out.Judged = len(c.Verification.Gates()) > 0
	}
	return rest.Answer(out), nil
}

func (s caseHandlers) editProposal(ctx context.Context, in *struct {
	Version
	Body struct {
		Tasks []action.ProposedTask `json:"tasks" minItems:"1" maxItems:"50" nullable:"false"`
	}
}) (*rest.Body[view.Proposal], error) {
	_, err := s.doAction(ctx, func(p *action.Operator) (string, error) {
		return "", p.SaveProposal(in.Body.Tasks, in.Version.Version)
	})
	if err != nil {
		return nil, err
	}
	return s.showProposal(ctx, nil)
}

func (s caseHandlers) addProposal(ctx context.Context, in *Version) (*done, error) {
	return s.doAction(ctx, func(p *action.Operator) (string, error) { return "", p.AddProposal(ctx, in.Version) })
}

func (s caseHandlers) dropProposal(ctx context.Context, in *Version) (*done, error) {
	return s.doAction(ctx, func(p *action.Operator) (string, error) { return "", p.DropProposal(in.Version) })
}
