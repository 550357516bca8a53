package web

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/report"
	flow "github.com/pawl-dev/pawl/internal/do/workflow/run"
	"github.com/pawl-dev/pawl/internal/keep/spool"
)

// Limits of what is shown of workflows.
const (
	maxStepOutput    = 8000 // bytes of each step, the last ones
	maxWorkflowFiles = 100
	maxWorkflowText  = 1 << 20
)

// Steps are those of a workflow's run, in the order in which they may begin.
type Steps struct {
	Steps []StepView `json:"steps" nullable:"false"`
}

// StepView is a step as it is after its newest execution.
type StepView struct {
	ID         string     `json:"id" doc:"With those of the steps that it is in before it: release/build."`
	Title      string     `json:"title"`
	Kind       string     `json:"kind" doc:"run, agent, procedure, ask or workflow"`
	Agent      string     `json:"agent"`
	Status     string     `json:"status" enum:"waiting,running,success,failure,cancelled,interrupted,asking,refused" doc:"waiting: it has not begun, or was skipped."`
	Needs      []string   `json:"needs" nullable:"false" doc:"Steps that must be done first; none where the file is gone."`
	Executions int        `json:"executions" doc:"How often it was begun."`
	Optional   bool       `json:"optional"`
	StartedAt  *time.Time `json:"started_at" nullable:"true"`
	Elapsed    float64    `json:"elapsed" doc:"Seconds."`
	Error      string     `json:"error"`
	Output     string     `json:"output" doc:"What it printed, said or asks; of a long one the end."`
}

// Workflows are the workflow files of the project that can be started.
type Workflows struct {
	Workflows []WorkflowFile `json:"workflows" nullable:"false"`
}

// WorkflowFile is one of them.
type WorkflowFile struct {
	File        string   `json:"file" doc:"From the project's folder."`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Inputs      []string `json:"inputs" nullable:"false" doc:"Names of the values that it needs."`
}

func (s runHandlers) stepRoutes(api huma.API) {
	get(api, "/runs/{run}/steps", "list-steps", "runs", "The steps of a workflow's run; none of other runs", s.listSteps)
	get(api, "/workflows", "list-workflows", "overview", "Workflow files of the project's folder and of workflows/",
		s.listWorkflows)
}

func (s runHandlers) listSteps(ctx context.Context, in *RunPath) (*body[Steps], error) {
	r, err := s.o.Store.Run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	begun, err := action.ListExecutions(ctx, s.o.Store, r.ID)
	if err != nil {
		return nil, err
	}
	out := Steps{Steps: []StepView{}}
	if file := action.SetupOf(r).Flags.File; file != "" {
		if w, err := config.LoadWorkflow(r.Root, file); err == nil {
			out.addPlanned(w, "")
		}
	}
	for _, e := range begun {
		out.addExecution(e)
	}
	rows, err := s.o.Store.Steps(ctx, r.ID)
	for _, row := range rows { // the newest of each step is the last
		at := slices.IndexFunc(out.Steps, func(v StepView) bool { return v.ID == row.Step })
		files, broken := flow.Files(row)
		if at < 0 || broken != nil || files == "" {
			continue
		}
		dir, oerr := s.openOutputs(r, row.Iteration)
		if oerr != nil {
			continue
		}
		if printed := endOf(dir, files+".out") + endOf(dir, files+".err"); printed != "" {
			out.Steps[at].Output = printed
		}
		_ = dir.Close()
	}
	return answer(out), err
}

// endOf is the end of what a stream has, as text; "" when it cannot be read.
func endOf(dir *os.Root, name string) string {
	f, err := spool.Open(dir, name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	size, err := f.Size()
	if err != nil {
		return ""
	}
	text := make([]byte, maxStepOutput)
	n, _, _ := f.ReadAt(text, max(0, size-maxStepOutput)) // what could be read counts
	return strings.ToValidUTF8(string(text[:n]), "\uFFFD")
}

// addPlanned adds the steps of a file, and of those that they run.
func (o *Steps) addPlanned(w *config.Workflow, prefix string) {
	for i := range w.Plan.Instances {
		in := &w.Plan.Instances[i]
		needs := lists.Each(in.Needs, func(n int) string { return prefix + w.Plan.Instances[n].ID })
		if prefix != "" && len(needs) == 0 {
			needs = []string{prefix[:len(prefix)-1]}
		}
		o.Steps = append(o.Steps, StepView{ID: prefix + in.ID, Kind: string(in.Step.Kind), Status: "waiting", Needs: needs,
			Optional: in.Step.Optional})
		if below := w.Nested[in.Step.ID]; below != nil {
			o.addPlanned(below, prefix+in.ID+"/")
		}
	}
}

// addExecution adds an execution to its step.
func (o *Steps) addExecution(e report.Execution) {
	at := slices.IndexFunc(o.Steps, func(v StepView) bool { return v.ID == e.Step })
	if at < 0 {
		at, o.Steps = len(o.Steps), append(o.Steps, StepView{ID: e.Step, Needs: []string{}})
	}
	v := &o.Steps[at]
	v.Title, v.Agent, v.Status, v.Optional = e.Title, e.Agent, e.Status, e.Optional
	if e.Kind != "" {
		v.Kind = e.Kind
	}
	v.StartedAt, v.Elapsed, v.Error = timeOrNil(e.StartedAt), seconds(e.Elapsed), e.Failure
	v.Output = strings.ToValidUTF8(e.Output[max(0, len(e.Output)-maxStepOutput):], "")
	v.Executions++
}

func (s runHandlers) listWorkflows(context.Context, *nothing) (*body[Workflows], error) {
	return answer(Workflows{Workflows: nonNil(findWorkflowFiles(s.o.Root))}), nil
}

// findWorkflowFiles returns the workflow files that can be read and planned. It skips
// what is below a link that leads out of the project.
func findWorkflowFiles(folder string) (found []WorkflowFile) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	for _, pattern := range []string{"*.yaml", "*.yml", "workflows/*.yaml", "workflows/*.yml"} {
		names, _ := filepath.Glob(filepath.Join(folder, pattern)) // the patterns are right
		for _, name := range names[:min(len(names), maxWorkflowFiles)] {
			file, err := filepath.Rel(folder, name)
			if err != nil || !hasSteps(root, file) {
				continue
			}
			if w, err := config.LoadWorkflow(folder, file); err == nil {
				found = append(found, WorkflowFile{File: file, Name: w.Plan.Name, Description: w.Plan.Description,
					Inputs: nonNil(planner.ContextNames(w))})
			}
		}
	}
	return found
}

// hasSteps reports whether name is a regular file with a top-level key "steps".
func hasSteps(root *os.Root, name string) bool {
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
