package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-dev/pawl/internal/do/engine/runplan"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/pawl-dev/pawl/internal/decide/flow"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/drive"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Program has the settings that only the program pawl-cluster has.
type Program struct {
	// Heartbeat is how long a worker may be silent before another one has its tasks;
	// 0 is [flow.Heartbeat].
	Heartbeat time.Duration
}

// Join connects an autopilot to the engine: its tasks are worked by workers.
func (p Program) Join(
	ctx context.Context, at autopilot.EngineAt, repo string, db *store.Store, log *slog.Logger,
) (autopilot.Elsewhere, func(), error) {
	b, err := p.joinBoard(ctx, at, repo, log)
	if err != nil {
		return nil, nil, err
	}
	b.store = db
	return b, b.client.Close, nil
}

// Inspect looks whether the engine can be reached and has the namespace.
func (p Program) Inspect(ctx context.Context, at autopilot.EngineAt, repo string) (s autopilot.EngineState, err error) {
	b, err := p.joinBoard(ctx, at, repo, nil)
	if err != nil {
		return s, err
	}
	defer b.client.Close()
	i, err := b.client.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	if err == nil {
		s.Version = i.GetServerVersion()
		s.Workers, err = b.Workers(ctx)
	}
	return s, err
}

// Work works tasks of a board until ctx is done. The process has to end after it.
func (p Program) Work(
	ctx context.Context, at autopilot.EngineAt, repo string, f autopilot.Offer, o autopilot.Options,
) error {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	b, err := p.joinLater(ctx, at, repo, o)
	if err != nil || b == nil {
		return err
	}
	w := Options{
		Engine: b.client, Repo: repo, Offer: f, Dir: filepath.Join(o.StateDir, "worker"), Log: o.Log,
		Heartbeat: cmp.Or(p.Heartbeat, flow.Heartbeat),
	}
	if o.Worker, err = workerNameOf(w.Dir); err != nil {
		return err
	}
	host, _ := os.Hostname()
	lacks := &lacking{of: map[string]string{}, warn: func(text string) {
		o.Log.Warn(text)
		w.Warn(text)
	}}
	w.Look = func(ctx context.Context) bool { return lacks.lookAround(ctx, b.client, at, &o) }
	w.Seen = newWorkerSaver(o, f, lacks)
	w.Waits = func(why error) { w.Warn(why.Error() + "; waits up to half a minute to see whether it has ended") }
	plan := o.Plan
	o.Plan = func(ctx context.Context, task autopilot.Task) (runplan.Plan, *workspace.Checkout, error) {
		p, tree, err := plan(ctx, task)
		p.Lease = w.agentLease()
		return p, tree, err
	}
	w.Warn = func(text string) {
		if o.Notify != nil {
			o.Notify(autopilot.Notice{Kind: autopilot.Warning, At: time.Now(), Text: text})
		}
	}
	w.Same = lacks.sameBoard(o.Store)
	w.Placed, w.Ended = o.Store.Order, o.Store.EndOrder
	w.Believe = func(ctx context.Context, placed store.Order, d *flow.Order) error {
		return believeOrder(ctx, o.Store, placed, d)
	}
	w.Work = func(
		ctx context.Context, d flow.Order, placed store.Order, k engine.Kernel,
	) (schedule.Outcome, queue.Entry) {
		o := o
		o.Asked = placed.Asked
		out, entry := autopilot.Work(ctx, o, d.Case, d.Run, placed.Base, k)
		if isMachineUnfit(out) && ctx.Err() == nil {
			out.Why = host + ": " + out.Why
			text := out.Why + "; this worker takes no new task for a minute"
			if out.Lacks {
				text = out.Why + "; another worker may have it"
			}
			o.Log.Warn(text, "task", d.Case)
			if o.Notify != nil {
				o.Notify(autopilot.Notice{Kind: autopilot.Warning, At: time.Now(), Case: d.Case, Text: text})
			}
		}
		return out, entry
	}
	if o.Remote != "" {
		o.Refused = lacks.noteRefused
		w.Push = o.Push
	}
	w.Gone = func(ctx context.Context) {
		if err := o.Store.DropWorker(ctx, o.Worker); err != nil {
			o.Log.Warn(err.Error())
		}
	}
	return Run(ctx, w)
}

// newWorkerSaver stores in the database what a worker has. While that is away it is not seen.
func newWorkerSaver(o autopilot.Options, f autopilot.Offer, lacks *lacking) func(context.Context, int, bool) error {
	host, _ := os.Hostname()
	return func(ctx context.Context, used int, drains bool) error {
		ctx, cancel := context.WithTimeout(ctx, seenEvery)
		defer cancel()
		err := o.Store.SaveWorker(ctx, store.Worker{
			Name: o.Worker, Host: host, PID: os.Getpid(), Version: f.Version, Labels: f.Labels, Slots: f.Slots,
			Used: used, Drains: drains, OwnRules: f.OwnRules, Lacks: lacks.joinCauses(),
		})
		if _, isTwin := errors.AsType[*store.TwinError](err); isTwin || errors.Is(err, store.ErrGone) {
			return err
		}
		lacks.noteCause(unwritable, writable, err)
		return nil
	}
}

// Board is a repository's board on an engine.
type Board struct {
	client    client.Client
	repo      string
	heartbeat time.Duration
	log       *slog.Logger
	store     *store.Store // nil where nothing is ordered
}

func (p Program) joinBoard(ctx context.Context, at autopilot.EngineAt, repo string, log *slog.Logger) (*Board, error) {
	c, err := Dial(ctx, at, log)
	return &Board{client: c, repo: repo, heartbeat: p.Heartbeat, log: cmp.Or(log, slog.New(slog.DiscardHandler))}, err
}

// joinLater waits for an engine that cannot be reached, and says why, once for each
// reason. Nil is that ctx ended meanwhile.
func (p Program) joinLater(
	ctx context.Context, at autopilot.EngineAt, repo string, o autopilot.Options,
) (*Board, error) {
	said := ""
	for {
		b, err := p.joinBoard(ctx, at, repo, o.Log)
		var away *awayError
		switch {
		case err == nil:
			return b, nil
		case ctx.Err() != nil:
			return nil, nil //nolint:nilnil,nilerr // there is nothing to go on with
		case !errors.As(err, &away):
			return nil, err
		}
		if said != err.Error() && o.Notify != nil {
			said = err.Error()
			o.Notify(autopilot.Notice{Kind: autopilot.Warning, At: time.Now(), Text: said + "; it is tried again"})
		}
		drive.Sleep(ctx, time.Now().Add(dialAgain))
	}
}

// Look signals the workflow of a task that there is a request to its run.
func (b *Board) Look(ctx context.Context, task string) error {
	o, err := b.store.Order(ctx, task)
	if err != nil {
		return unlessGone(err)
	}
	return unlessGone(b.client.SignalWorkflow(ctx, o.Workflow, "", flow.LookName, nil))
}

// Works is true until the workflow of a task ends.
func (b *Board) Works(ctx context.Context, task string) (bool, error) {
	o, err := b.store.Order(ctx, task)
	if err != nil || o.Execution == "" {
		return false, unlessGone(err)
	}
	w, err := b.client.DescribeWorkflowExecution(ctx, o.Workflow, "")
	if err != nil {
		return false, unlessGone(err)
	}
	i := w.GetWorkflowExecutionInfo()
	return i.GetFirstRunId() == o.Execution && i.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
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
	o, err := b.store.Order(ctx, task)
	if err == nil {
		err = b.store.DropOrder(ctx, task) // else it would be ordered again
	}
	if err != nil {
		return unlessGone(err)
	}
	return unlessGone(b.client.TerminateWorkflow(ctx, o.Workflow, "", "it was ended at once"))
}

// isUnanswered reports whether the error is no answer, as the engine is away.
func isUnanswered(err error) bool {
	if _, away := errors.AsType[*serviceerror.Unavailable](err); away {
		return true
	}
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	return late || errors.Is(err, context.DeadlineExceeded)
}

// unlessGone forgets that there is no such order or workflow any more.
func unlessGone(err error) error {
	if errors.Is(err, store.ErrNoOrder) {
		return nil
	}
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return nil
	}
	return err
}
