package session

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/planner"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/sandbox"
	"github.com/pawl-dev/pawl/internal/workspace/pool"
)

// Shell is a command in the workspace of a task, at the task's safety level and without
// its agent's key. policy is nil where no sandbox is.
func Shell(ctx context.Context, a *command.App, c *config.Config, task board.Case, w pool.Entry,
	args []string) (job process.Command, policy *sandbox.Policy, err error) {
	plan, err := a.Planner(c, planner.Flags{}).Shell(task)
	if err != nil {
		return job, nil, err
	}
	l := &Landing{a: a, c: c, Plan: plan}
	if l.verdict, err = judge(ctx, a, plan.Safety, false, "the command"); err != nil {
		return job, nil, err
	}
	ports := pool.Workspace{Ports: w.Ports}.Env()
	job = process.Command{Args: args, Dir: w.Root, Env: slices.Concat(plan.Environ, ports)}
	if !l.verdict.Boxed {
		return job, nil, nil
	}
	box, err := l.gateBox(ctx, w.Root)
	if err != nil {
		return job, nil, err
	}
	job.Env = slices.Concat(plan.Environ, box.Caches, ports)
	temp := filepath.Join(config.StateDir(c.Root, a.Env), "shell", w.ID)
	return job, box.Setup.TempIn(temp), nil
}
