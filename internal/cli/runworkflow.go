package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/planner"
	"github.com/pawl-dev/pawl/internal/sandbox"
	"github.com/pawl-dev/pawl/internal/sqlite"
	flow "github.com/pawl-dev/pawl/internal/workflow/run"
)

// workflowCommand is the name that some know run and stop by.
func (a *app) workflowCommand() *cobra.Command {
	run := a.runCommand()
	run.Use, run.Short, run.Args = "run FILE.yaml", "Run a workflow", exactlyOne("a workflow file")
	return group("workflow", "Run or stop a workflow: the same as 'pawl run FILE.yaml' and 'pawl stop RUN'", nil, run, a.stopCommand())
}

// runWorkflow runs a workflow file, or prints its plan.
func (a *app) runWorkflow(ctx context.Context, f planner.Flags, dry, fresh bool) error {
	w, err := config.LoadWorkflow(a.dir, f.File)
	if err != nil {
		return fault.Of(fault.Refused, err)
	}
	if dry {
		return a.planWorkflow(w)
	}
	if f.File, err = filepath.Abs(w.Path); err != nil {
		return fmt.Errorf("cannot tell where the workflow is: %v", err)
	}
	s, err := a.workflowSession(ctx, w, f)
	if err != nil {
		return err
	}
	defer s.close()
	for _, note := range w.Notes {
		a.say("Warning: %s", note)
	}
	return s.start(ctx, f, fresh)
}

// workflowSession makes ready what a workflow runs with.
func (a *app) workflowSession(ctx context.Context, w *config.Workflow, f planner.Flags) (*session, error) {
	c, err := a.load(f.Paths())
	if err != nil {
		return nil, err
	}
	pl := a.planner(c, f)
	plan, err := pl.Workflow(w)
	if err != nil {
		return nil, err
	}
	values, err := pl.ContextValues(w)
	if err != nil {
		return nil, err
	}
	s, err := a.open(ctx, c, plan, f.Unsandboxed)
	if err != nil {
		return nil, err
	}
	s.screen.Workflow(w)
	s.work = flow.New(flow.Options{
		Flow: flowOf(w), Context: values,
		Load: func(dir, name string) (*flow.Flow, error) {
			below, err := config.LoadWorkflow(dir, name)
			if err != nil {
				return nil, err
			}
			return flowOf(below), nil
		},
		Procedure: func(name string) (engine.Plan, error) { return s.innerPlan(name, f) },
	})
	return s, nil
}

// flowOf is the workflow as who runs it needs it.
func flowOf(w *config.Workflow) *flow.Flow {
	f := &flow.Flow{Path: w.Path, Plan: w.Plan, Nested: map[string]*flow.Flow{}}
	for id, below := range w.Nested {
		f.Nested[id] = flowOf(below)
	}
	return f
}

// innerPlan is the plan of a procedure that a step drives: held to what the
// workflow is held to.
func (s *session) innerPlan(name string, f planner.Flags) (engine.Plan, error) {
	inner := planner.Flags{Safety: f.Safety, Agent: f.Agent, AgentCmd: f.AgentCmd}
	plan, err := s.a.planner(s.c, inner).Procedure(name)
	if err != nil {
		return plan, err
	}
	plan.Sandbox, plan.Copy = s.plan.Sandbox, false
	if s.plan.Box != nil {
		box := *s.plan.Box
		box.Agents = map[string]sandbox.Policy{}
		for name, ag := range plan.Agents {
			box.Agents[name] = s.agentPolicy(name, ag)
		}
		plan.Box = &box
	}
	return plan, nil
}

// resumeWorkflow goes on with the run of a workflow. The file is read anew: what
// changed in it since runs again.
func (a *app) resumeWorkflow(ctx context.Context, run sqlite.Run, f planner.Flags) (*session, error) {
	if f.File == "" {
		return nil, fmt.Errorf("cannot resume run %s: its workflow file is not known", run.ID)
	}
	w, err := config.LoadWorkflow(a.dir, f.File)
	if err != nil {
		return nil, fault.Of(fault.Refused, err)
	}
	w.Plan.Name = run.Name
	return a.workflowSession(ctx, w, f)
}

// runName is what a run is looked up by: of a workflow file, its name.
func (a *app) runName(arg string) string {
	if !strings.HasSuffix(arg, ".yaml") && !strings.HasSuffix(arg, ".yml") {
		return arg
	}
	w, err := config.LoadWorkflow(a.dir, arg)
	if err != nil {
		return strings.TrimSuffix(filepath.Base(arg), filepath.Ext(arg))
	}
	return w.Plan.Name
}
