package cli

import (
	"context"
	"log/slog"

	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/planner"
	"github.com/pawl-dev/pawl/internal/ratelimit"
	"github.com/pawl-dev/pawl/internal/sandbox"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace"
	"github.com/pawl-dev/pawl/internal/workspace/pool"
)

// taskPlanner makes the plans of tasks. It has judged the machine and said
// what there is to say, once; plans are made in silence.
type taskPlanner struct {
	a        *app
	c        *config.Config
	planner  *planner.Planner
	stateDir string
	verdict  sandbox.Verdict
}

// newTaskPlanner checks that tasks can be worked on at all: agents, gates,
// sandbox. The plan is that of a task in the root itself.
func (a *app) newTaskPlanner(ctx context.Context, c *config.Config, stateDir string, f planner.Flags) (*taskPlanner, engine.Plan, error) {
	t := &taskPlanner{a: a, c: c, planner: a.planner(c, f), stateDir: stateDir}
	plan, err := t.planner.Task(autopilot.Task{})
	if err != nil {
		return nil, plan, err
	}
	if t.verdict, err = a.judge(ctx, plan.Safety, f.Unsandboxed, "the agents"); err != nil {
		return nil, plan, err
	}
	quiet := *a
	quiet.quiet = true
	t.a, t.planner = &quiet, quiet.planner(c, f)
	return t, plan, nil
}

// plan is the plan of a task in its workspace, and its tree.
func (t *taskPlanner) plan(ctx context.Context, task autopilot.Task) (engine.Plan, *workspace.Checkout, error) {
	plan, err := t.planner.Task(task)
	if err != nil {
		return plan, nil, err
	}
	tree, err := workspace.Open(ctx, plan.Root, workspace.Options{
		StateDir: autopilot.TreeDir(t.stateDir, task.Case.ID), MaxFile: plan.SnapshotMaxFile,
	})
	if err != nil {
		return plan, nil, err
	}
	if err := tree.Exclude(ctx); err != nil {
		return plan, nil, err
	}
	plan.Sandbox = plan.Safety + ": " + t.verdict.Enforced
	if t.verdict.Boxed {
		s := &session{a: t.a, c: t.c, plan: plan, stateDir: t.stateDir, tree: tree}
		plan.Box = s.policies(ctx, t.verdict)
	}
	return plan, tree, nil
}

// resolver is an agent for conflicts, planned like that of a task.
func (t *taskPlanner) resolver(clones *pool.Pool, store *sqlite.Store) *autopilot.Resolver {
	return &autopilot.Resolver{
		Plan: t.plan, Pool: clones, Store: store, StateDir: t.stateDir,
		Accounts: ratelimit.NewStore(config.LimitsDir(t.a.env)), Log: slog.New(slog.DiscardHandler),
	}
}
