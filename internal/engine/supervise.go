package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/supervisor"
)

// runJob runs one process under the run's supervisor, which is started when
// there is none.
func (d *Driver) runJob(ctx context.Context, job supervisor.Job, onEvent func(agent.Event)) (supervisor.Result, error) {
	client, err := d.supervisor(ctx)
	if err != nil {
		return supervisor.Result{}, err
	}
	res, err := client.Run(ctx, job, onEvent)
	if err != nil || res.Exit.Ended == loop.EndedLost {
		d.dropSupervisor()
	}
	return res, err
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
}

// adopt finds the result of an attempt that an earlier pawl began: the agent
// may have ended meanwhile, or still run under its supervisor.
func (d *Driver) adopt(ctx context.Context, b begun) (supervisor.Result, bool) {
	if res, ok, err := supervisor.LoadResult(b.Job.Files); err == nil && ok && res.ID == b.Job.ID {
		return res, true
	}
	d.clientMu.Lock()
	client := d.client
	d.clientMu.Unlock()
	if client == nil {
		return supervisor.Result{}, false
	}
	res, err := client.Run(ctx, b.Job, d.agentEvent)
	if err != nil || res.Exit.Ended == loop.EndedLost {
		d.dropSupervisor()
	}
	return res, err == nil
}

// attach connects to a supervisor that an earlier pawl left, if it lives and
// its job is the one that the run waits for. Any other job is ended.
func (d *Driver) attach(ctx context.Context, job string) (adopted bool, err error) {
	client, status, err := supervisor.Attach(ctx, d.runDir)
	if errors.Is(err, supervisor.ErrGone) {
		_, err = process.Sweep(ctx, supervisor.Mark(d.id), sweepGrace)
		return false, err
	}
	if err != nil {
		return false, err
	}
	if status.Job == nil || status.Job.ID != job {
		client.Kill()
		return false, client.Close()
	}
	d.clientMu.Lock()
	d.client = client
	d.clientMu.Unlock()
	return true, nil
}

const sweepGrace = 5 * time.Second

// lostAttempt is the event for an attempt of which neither a result nor a
// supervisor is left: it is used up, with the time that its files show.
func (d *Driver) lostAttempt(c loop.Command, b begun, p place) loop.Event {
	r := &loop.Record{
		Number: c.Iteration, Attempt: c.Attempt, StartedAt: b.At, Agent: c.Agent, Strategy: c.Strategy,
		Exit: loop.Exit{Code: -1, Ended: loop.EndedLost}, Progress: -1, Score: -1, CostSource: "none",
		Failure: &failure.Analysis{
			Class: failure.Unknown, Kind: failure.Transient, Transient: true, Severity: failure.Medium,
			Summary: "pawl and its supervisor were gone before the iteration ended", Fingerprint: "lost",
		},
	}
	if last := p.newest(); last.After(b.At) {
		r.Elapsed = last.Sub(b.At)
	}
	ctx, cancel := context.WithTimeout(context.Background(), aftermath)
	defer cancel()
	d.snapshot(ctx, r, b)
	return d.event(loop.Event{Kind: loop.Recovered, For: c.Seq, Record: r})
}
