package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/cluster/flow"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/queue"
	"github.com/pawl-dev/pawl/internal/schedule"
	"github.com/pawl-dev/pawl/internal/workspace"
)

// Program is what the program pawl-cluster has and pawl has not.
type Program struct{}

// Join connects an autopilot to the engine: its tasks are worked by workers.
func (Program) Join(ctx context.Context, at, repo string, log *slog.Logger) (autopilot.Elsewhere, func(), error) {
	b, err := join(ctx, at, repo, log)
	if err != nil {
		return nil, nil, err
	}
	return b, b.client.Close, nil
}

// Work works tasks of a board until ctx is done. The process has to end after it.
func (Program) Work(ctx context.Context, at, repo string, slots int, o autopilot.Options) error {
	b, err := join(ctx, at, repo, o.Log)
	if err != nil {
		return err
	}
	plan := o.Plan
	o.Plan = func(ctx context.Context, task autopilot.Task) (engine.Plan, *workspace.Checkout, error) {
		p, tree, err := plan(ctx, task)
		p.Lease = Lease
		return p, tree, err
	}
	return Run(ctx, Options{
		Engine: b.client, Repo: repo, Slots: slots, Dir: filepath.Join(o.StateDir, "worker"), Log: o.Log,
		Work: func(ctx context.Context, task, run string, k engine.Kernel) (schedule.Outcome, queue.Entry) {
			return autopilot.Work(ctx, o, task, run, k)
		},
	})
}

// Board is a repository's board on an engine.
type Board struct {
	client client.Client
	repo   string
}

func join(ctx context.Context, at, repo string, log *slog.Logger) (*Board, error) {
	a, err := ParseAddress(at)
	if err != nil {
		return nil, err
	}
	c, err := Dial(ctx, a, log)
	return &Board{c, repo}, err
}

// Work starts the workflow of a task, or joins the one that is there, and waits
// for its end.
func (b *Board) Work(ctx context.Context, task string) (schedule.Outcome, queue.Entry, error) {
	q := flow.QueuesOf(b.repo)
	run, err := b.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: flow.TaskID(b.repo, task), TaskQueue: q.Board,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, flow.TaskName, flow.Begin{Queues: q, Case: task})
	var r flow.Result
	if err == nil {
		err = run.Get(ctx, &r)
	}
	if err != nil {
		err = fmt.Errorf("cannot have %s worked on the engine: %v", task, err)
	}
	return r.Outcome, r.Entry, err
}

// Look tells the workflow of a task that something was asked of its run.
func (b *Board) Look(ctx context.Context, task string) error {
	return unlessGone(b.client.SignalWorkflow(ctx, flow.TaskID(b.repo, task), "", flow.LookName, nil))
}

// Workers is how many processes asked for orders in the last minutes.
func (b *Board) Workers(ctx context.Context) (int, error) {
	q, err := b.client.DescribeTaskQueue(ctx, flow.QueuesOf(b.repo).Board, enums.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return 0, fmt.Errorf("cannot ask the engine for its workers: %v", err)
	}
	return len(q.GetPollers()), nil
}

// Kill ends the workflow of a task. Its worker learns of it by its next beat.
func (b *Board) Kill(ctx context.Context, task string) error {
	return unlessGone(b.client.TerminateWorkflow(ctx, flow.TaskID(b.repo, task), "", "it was ended at once"))
}

// unlessGone forgets that there is no such workflow any more.
func unlessGone(err error) error {
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return nil
	}
	return err
}
