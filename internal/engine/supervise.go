package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/supervisor"
)

// runJob runs one process under the run's supervisor, which is started when
// there is none. With a done ctx nothing is started.
func (d *Driver) runJob(ctx context.Context, job supervisor.Job, onEvent func(agent.Event)) (supervisor.Result, error) {
	if ctx.Err() != nil {
		stopped := supervisor.Result{ID: job.ID, StartedAt: time.Now(), Exit: loop.Exit{Code: -1, Ended: loop.EndedStop}}
		return stopped, nil //nolint:nilerr // a stop is how the job ended, and no error
	}
	client, err := d.supervisor(ctx)
	if err != nil {
		return supervisor.Result{}, err
	}
	res, err := client.Run(ctx, job, onEvent)
	if err != nil || gone(res) {
		d.dropSupervisor()
	}
	return res, err
}

// gone is true when the supervisor of a job has gone before pawl.
func gone(res supervisor.Result) bool {
	return res.Exit.Ended == loop.EndedLost || res.Exit.Ended == loop.EndedLease
}

func (d *Driver) supervisor(ctx context.Context) (*supervisor.Client, error) {
	d.clientMu.Lock()
	defer d.clientMu.Unlock()
	if d.client != nil {
		return d.client, nil
	}
	client, err := supervisor.Start(context.WithoutCancel(ctx), supervisor.Options{
		RunDir: d.runDir, Exe: d.plan.Exe, Args: d.plan.Args, Lease: d.plan.Lease, Run: d.id,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot start the supervisor: %v", err)
	}
	d.client = client
	return client, nil
}

func (d *Driver) dropSupervisor() {
	d.clientMu.Lock()
	defer d.clientMu.Unlock()
	if d.client == nil {
		return
	}
	if err := d.client.Close(); err != nil {
		d.warn(err.Error())
	}
	d.client = nil
}

// killNow ends what runs without grace.
func (d *Driver) killNow() {
	d.clientMu.Lock()
	defer d.clientMu.Unlock()
	if d.client != nil {
		d.client.Kill()
	}
	if d.lanes != nil {
		d.lanes.kill()
	}
}

// adopt finds the result of an attempt that an earlier pawl began: the agent
// may have ended meanwhile, or still run under its supervisor. When neither is
// so, the attempt is lost: found is false, and the result is what its files
// show of output, tokens and cost. The error is that another pawl has the run.
func (d *Driver) adopt(ctx context.Context, b begun) (res supervisor.Result, found bool, err error) {
	// The next job gets a supervisor of this pawl's, which can start another
	// when it is killed.
	defer d.dropSupervisor()
	if res, ok, err := supervisor.LoadResult(b.Job.Files); err == nil && ok && res.ID == b.Job.ID {
		return res, true, nil
	}
	d.clientMu.Lock()
	client := d.client
	d.clientMu.Unlock()
	if client != nil {
		res, err := client.Run(ctx, b.Job, d.agentEvent)
		if err == nil || errors.Is(err, supervisor.ErrTaken) {
			return res, true, err
		}
		d.warn(fmt.Sprintf("the agent that was still running is lost: %v", err))
	}
	res, err = supervisor.Lost(b.Job)
	if err != nil {
		d.warn(err.Error())
	}
	return res, false, nil
}

// lostFailure says for people what became of an attempt without a result. It
// is no failure of the agent's.
func lostFailure() *failure.Analysis {
	return &failure.Analysis{
		Class: failure.Unknown, Kind: failure.Transient, Transient: true, Severity: failure.Medium,
		Summary: "pawl and its supervisor were gone before the iteration ended", Fingerprint: "lost",
	}
}
