package web

import (
	"github.com/pawl-dev/pawl/internal/ask/web/view"

	"github.com/pawl-dev/pawl/internal/ask/web/rest"

	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	flow "github.com/pawl-dev/pawl/internal/do/workflow/run"
	"github.com/pawl-dev/pawl/internal/keep/spool"
)

// Limits of what is shown of workflows.
const (
	maxWorkflowFiles = 100
	maxWorkflowText  = 1 << 20
)

func (s runHandlers) stepRoutes(api huma.API) {
	runs := rest.Tagged(api, "runs")
	overview := rest.Tagged(api, "overview")
	rest.Get(runs, "/runs/{run}/steps", "list-steps", "The steps of a workflow's run; none of other runs", s.listSteps)
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
	return rest.Answer(out), err
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
			if err != nil || !hasSteps(root, file) {
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
