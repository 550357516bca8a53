package session

import (
	"context"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/sandbox"

	flow "github.com/pawl-dev/pawl/internal/do/workflow/run"
)

// WorkflowSession makes ready what a workflow runs with.
func WorkflowSession(ctx context.Context, a *command.App, w *config.Workflow, f planner.Flags) (*Session, error) {
	c, err := a.Load(f.Paths())
	if err != nil {
		return nil, err
	}
	pl := a.Planner(c, f)
	plan, err := pl.Workflow(w)
	if err != nil {
		return nil, err
	}
	values, err := pl.ContextValues(w)
	if err != nil {
		return nil, err
	}
	s, err := Open(ctx, a, c, plan, f.Unsandboxed)
	if err != nil {
		return nil, err
	}
	s.file = f.File
	s.work = flow.New(flow.Options{
		Flow: flowOfWorkflow(w), Context: values,
		Load: func(dir, name string) (*flow.Flow, error) {
			below, err := config.LoadWorkflow(dir, name)
			if err != nil {
				return nil, err
			}
			return flowOfWorkflow(below), nil
		},
		Procedure: func(name string) (runplan.Plan, error) { return s.innerPlan(name, f) },
	})
	return s, nil
}

// flowOfWorkflow is the workflow as who runs it needs it.
func flowOfWorkflow(w *config.Workflow) *flow.Flow {
	f := &flow.Flow{Path: w.Path, Plan: w.Plan, Nested: map[string]*flow.Flow{}}
	for id, below := range w.Nested {
		f.Nested[id] = flowOfWorkflow(below)
	}
	return f
}

// innerPlan is the plan of a procedure that a step drives. The workflow's box and
// limits apply to it.
func (s *Session) innerPlan(name string, f planner.Flags) (runplan.Plan, error) {
	inner := planner.Flags{Safety: f.Safety, Agent: f.Agent, AgentCmd: f.AgentCmd}
	plan, err := s.App.Planner(s.Config, inner).Procedure(name)
	if err != nil {
		return plan, err
	}
	plan.Sandbox = s.Plan.Sandbox
	if s.Plan.Box != nil {
		box := *s.Plan.Box
		box.Agents = map[string]sandbox.Policy{}
		for name, ag := range plan.Agents {
			box.Agents[name] = s.agentPolicy(name, ag)
		}
		plan.Box = &box
	}
	return plan, nil
}
