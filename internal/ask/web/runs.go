package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"

	flow "github.com/pawl-dev/pawl/internal/do/workflow/run"
	"github.com/pawl-dev/pawl/internal/keep/spool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// runHandlers answer which runs there are, how one is, and which steps it has.
type runHandlers struct{ *core }

func (s runHandlers) runRoutes(api huma.API) {
	at := rest.Tagged(api, "runs")
	rest.Get(at, "/runs", "list-runs", "Runs, newest first", s.listRuns)
	rest.Get(at, "/runs/{run}", "get-run", "One run with its task, question and limits", s.answerRunDetail)
}

type runQuery struct {
	rest.Paging
	Status []string `query:"status" maxItems:"12" enum:"running,waiting,paused,pending,blocked,completed,failed,aborted,timeout,exhausted,interrupted,stopped" doc:"One of these, as they are stored."`
	Active bool     `query:"active" doc:"Only runs that have not ended: those that run or wait for a person."`
	Kind   string   `query:"kind" maxLength:"20"`
	Name   string   `query:"name" maxLength:"500"`
	Text   string   `query:"q" maxLength:"200" doc:"In the id, the name, what it is to do or the reason."`
}

func (s runHandlers) listRuns(ctx context.Context, in *runQuery) (*rest.Body[view.RunPage], error) {
	q := store.RunQuery{Root: s.o.Root, Status: in.Status, Active: in.Active, Kind: in.Kind, Name: in.Name,
		Text: in.Text}
	runs, next, more, err := s.o.Store.RunPage(ctx, q, parseRunCursor(in.Cursor), in.Limit)
	if err != nil {
		return nil, err
	}
	out := view.RunPage{Runs: lists.Each(runs, func(r store.Run) view.Run { return s.viewOfRun(ctx, r) })}
	if more {
		out.NextCursor = fmt.Sprintf("%d.%d", next.Started, next.Row)
	}
	return rest.Answer(out), nil
}

// parseRunCursor reads a cursor; an odd one is the first page's.
func parseRunCursor(cursor string) store.RunMark {
	a, b, _ := strings.Cut(cursor, ".")
	started, err := strconv.ParseInt(a, 10, 64)
	row, err2 := strconv.ParseInt(b, 10, 64)
	if err != nil || err2 != nil {
		return store.RunMark{}
	}
	return store.RunMark{Started: started, Row: row}
}

// viewOfRun returns a run as the pages show it.
func (s *core) viewOfRun(ctx context.Context, r store.Run) view.Run {
	r, _ = s.o.AsIs(ctx, r)
	v := view.ShowRun(&r)
	v.Coming = s.pendingControls(ctx, r)
	if r.Kind == string(loop.Task) && !action.IsDriven(r) {
		v.Actions = s.actionsByTask(ctx, r, v.Actions)
	}
	return v
}

// actionsByTask leaves out what the board refuses for the run of a task.
func (s *core) actionsByTask(ctx context.Context, r store.Run, list []string) []string {
	c, err := s.o.Store.Case(ctx, board.TaskOf(r.Name))
	if err = errors.Join(err, s.o.CheckTask(ctx, r, false)); err != nil {
		return []string{}
	}
	return slices.DeleteFunc(list, func(one string) bool {
		if one == "rollback" {
			return s.o.CheckRollback(ctx, r.Name) != nil
		}
		isIdle := one == "answer" && s.o.CheckTask(ctx, r, true) != nil
		return isIdle || one == "resume" && c.Status != board.Blocked
	})
}

// pendingControls returns the kinds of what a run was asked and has not taken. A run that
// ended takes nothing.
func (s *core) pendingControls(ctx context.Context, r store.Run) []string {
	kinds := []string{}
	if !loop.Status(r.Status).Active() && !slices.Contains(waiting, r.Status) {
		return kinds
	}
	rows, _ := s.o.Store.Controls(ctx, r.ID) // they only show that something is on its way
	for _, row := range rows {
		kind := row.Kind
		if row.IsAnswer() {
			kind = store.ControlAnswer
		}
		kinds = lists.Union(kinds, kind)
	}
	return kinds
}

func (s runHandlers) answerRunDetail(ctx context.Context, in *rest.RunPath) (*rest.Body[view.RunDetail], error) {
	r, err := s.o.Store.Run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	state, err := storedrun.StateOf(r)
	if err != nil {
		return nil, err
	}
	setup := action.SetupOf(r)
	rows, err := s.o.Store.Controls(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	out := view.ShowDetail(s.viewOfRun(ctx, r), r.Root, &state, rows)
	out.Sandbox, out.Copy, out.Gates = setup.Sandbox, setup.Undelivered != "", s.checksOfRun(r)
	out.GatesSeen = len(out.Gates) > 0
	if out.Live {
		return rest.Answer(out), nil
	}
	conflict, err := s.o.InConflict(ctx, r)
	if err != nil {
		return nil, err
	}
	if conflict && out.Copy {
		out.Actions = append(out.Actions, "settle")
	}
	if setup.Undelivered != "" {
		out.Actions = append(out.Actions, "apply")
	}
	if action.CanDiscard(r) {
		out.Actions = append(out.Actions, "discard")
	}
	return rest.Answer(out), nil
}

// checksOfRun returns the checks stored with the run. If there are none, it returns those
// of the configuration.
func (s *core) checksOfRun(r store.Run) []view.GateSpec {
	stored := action.SetupOf(r).Checks
	if stored == nil {
		c, err := s.loadConfig()
		if err != nil {
			return []view.GateSpec{} // the overview says what is wrong
		}
		return view.ConfiguredChecks(c)
	}
	return view.StoredChecks(stored)
}

// checksOfRunID are the checks of a run by its id.
func (s *core) checksOfRunID(ctx context.Context, id string) []view.GateSpec {
	r, err := s.o.Store.Run(ctx, id)
	if err != nil {
		return []view.GateSpec{} // the hub says so
	}
	return s.checksOfRun(r)
}

// Limits of what is shown of workflows.
const (
	maxWorkflowFiles = 100
	maxWorkflowText  = 1 << 20
)

func (s runHandlers) stepRoutes(api huma.API) {
	runs := rest.Tagged(api, "runs")
	overview := rest.Tagged(api, "overview")
	rest.Get(runs, "/runs/{run}/steps", "list-steps", "The steps of a workflow's run, else none", s.listSteps)
	rest.Get(overview, "/workflows", "list-workflows", "Workflow files of the project's folder and of workflows/",
		s.listWorkflows)
}

func (s runHandlers) listSteps(ctx context.Context, in *rest.RunPath) (*rest.Body[view.Steps], error) {
	r, err := s.o.Store.Run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	begun, err := action.ListExecutions(ctx, s.o.Store, r.ID)
	if err != nil {
		return nil, err
	}
	out := view.Steps{Steps: []view.StepView{}}
	if file := action.SetupOf(r).Flags.File; file != "" {
		if w, err := config.LoadWorkflow(r.Root, file); err == nil {
			out.AddPlanned(w, "")
		}
	}
	for _, e := range begun {
		out.AddExecution(e)
	}
	rows, err := s.o.Store.Steps(ctx, r.ID)
	for _, row := range rows { // the newest of each step is the last
		at := slices.IndexFunc(out.Steps, func(v view.StepView) bool { return v.ID == row.Step })
		files, broken := flow.Files(row)
		if at < 0 || broken != nil || files == "" || out.Steps[at].Agent != "" { // an agent has a conversation
			continue
		}
		dir, oerr := s.openOutputs(r, row.Iteration)
		if oerr != nil {
			continue
		}
		if printed := endOfStream(dir, files+".out") + endOfStream(dir, files+".err"); printed != "" {
			out.Steps[at].Output = printed
		}
		_ = dir.Close()
	}
	return rest.Answer(out), err
}

// endOfStream is the end of what a stream has, as text; "" when it cannot be read.
func endOfStream(dir *os.Root, name string) string {
	f, err := spool.Open(dir, name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	size, err := f.Size()
	if err != nil {
		return ""
	}
	text := make([]byte, view.MaxStepOutput)
	n, _, _ := f.ReadAt(text, max(0, size-view.MaxStepOutput)) // what could be read counts
	return strings.ToValidUTF8(string(text[:n]), "\uFFFD")
}

func (s runHandlers) listWorkflows(context.Context, *rest.Nothing) (*rest.Body[view.Workflows], error) {
	return rest.Answer(view.Workflows{Workflows: view.NonNil(findWorkflowFiles(s.o.Root))}), nil
}

// findWorkflowFiles returns the workflow files that can be read and planned. It skips
// what is below a link that leads out of the project.
func findWorkflowFiles(folder string) (found []view.WorkflowFile) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	for _, pattern := range []string{"*.yaml", "*.yml", "workflows/*.yaml", "workflows/*.yml"} {
		names, _ := filepath.Glob(filepath.Join(folder, pattern)) // the patterns are right
		for _, name := range names[:min(len(names), maxWorkflowFiles)] {
			file, err := filepath.Rel(folder, name)
			if err != nil || !isWorkflowFile(root, file) {
				continue
			}
			if w, err := config.LoadWorkflow(folder, file); err == nil {
				found = append(found, view.WorkflowFile{File: file, Name: w.Plan.Name, Description: w.Plan.Description,
					Inputs: view.NonNil(planner.ContextNames(w))})
			}
		}
	}
	return found
}

// isWorkflowFile reports whether name is a regular file with a top-level key "steps".
func isWorkflowFile(root *os.Root, name string) bool {
	if info, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a pipe by now
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxWorkflowText))
	return err == nil && bytes.Contains(append([]byte{'\n'}, text...), []byte("\nsteps:"))
}
