package engine

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/pawl-dev/pawl/internal/gate"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/signal"
	"github.com/pawl-dev/pawl/internal/supervisor"
)

// verifies says whether the gates run: after an iteration that exits 0 or
// validly claims COMPLETE; in tasks only COMPLETE runs them.
func (d *Driver) verifies(r *loop.Record) bool {
	if !r.Valid() {
		return false
	}
	claimed := r.Signal.Kind == signal.Complete
	if d.plan.Policy.Kind == loop.Task {
		return claimed
	}
	return claimed || r.Exit.Code == 0
}

// verify runs the gates and looks for tampering; what is red becomes the
// record's failure.
func (d *Driver) verify(ctx, after context.Context, c loop.Command, b begun, r *loop.Record) {
	r.Verified = true
	if len(d.plan.Gates) > 0 {
		d.runGates(ctx, c, r)
	}
	if v := d.tampered(after, b, r); len(v) > 0 {
		for _, one := range v {
			r.Tampered = append(r.Tampered, one.Path)
		}
		f := gate.TamperingFailure(v)
		r.Failure = &f
	}
	if ctx.Err() != nil && r.Exit.Ended == loop.NotEnded {
		r.Exit.Ended = loop.EndedStop
	}
}

func (d *Driver) runGates(ctx context.Context, c loop.Command, r *loop.Record) {
	specs := d.plan.Gates
	if c.SkipOptional {
		specs = requiredOnly(specs)
	}
	rep, err := gate.Verify(ctx, specs, func(ctx context.Context, n int, s gate.Spec) (gate.Exec, error) {
		return d.runGate(ctx, c, n, s)
	}, time.Now)
	if err != nil {
		d.warn(err.Error())
	}
	r.Gates, r.Score = rep.Gates, rep.Score
	r.Verified = err == nil && ctx.Err() == nil
	for _, w := range rep.Warnings {
		d.warn(w)
	}
	if rep.Failure != nil {
		r.Failure = rep.Failure
		r.Flagged = d.flagged(c, rep)
	}
}

func requiredOnly(specs []gate.Spec) []gate.Spec {
	var out []gate.Spec
	for _, s := range specs {
		if s.Required {
			out = append(out, s)
		}
	}
	return out
}

// runGate runs one gate as a supervised job, so that nothing it starts outlives it.
func (d *Driver) runGate(ctx context.Context, c loop.Command, n int, s gate.Spec) (gate.Exec, error) {
	d.notify(Notice{Kind: GateStarted, Gate: loop.Gate{Name: s.Name, Required: s.Required}})
	p := d.place(c.Iteration, c.Attempt)
	res, err := d.runJob(ctx, supervisor.Job{
		ID: fmt.Sprintf("%d.%d/gate/%d/%d", c.Iteration, c.Attempt, n+1, time.Now().UnixNano()), Files: p.gate(n), Args: []string{"sh", "-c", s.Command},
		Dir: d.plan.Root, Env: d.environ(c.Iteration, nil, nil), Merge: true, Limits: supervisor.Limits{Wall: s.Timeout},
	}, nil)
	if err != nil {
		return gate.Exec{}, fmt.Errorf("cannot run gate %s: %v", s.Name, err)
	}
	e := gate.Exec{
		ExitCode: res.Exit.Code, Signal: res.Exit.Signal, TimedOut: res.Exit.Ended == loop.EndedTimeout,
		Stopped:    res.Exit.Ended == loop.EndedStop || res.Exit.Ended == loop.EndedLost || res.Exit.Ended == loop.EndedLease,
		NotStarted: res.Error, Elapsed: res.Elapsed, Output: streamText(res.Stdout),
	}
	status := loop.GatePassed
	if e.ExitCode != 0 || e.TimedOut {
		status = loop.GateFailed
	}
	d.notify(Notice{Kind: GateEnded, Gate: loop.Gate{Name: s.Name, Required: s.Required, Status: status, Elapsed: res.Elapsed, ExitCode: e.ExitCode}})
	return e, nil
}

// maxFlaggedOutput is how much of a gate's output is searched for files, from its end.
const maxFlaggedOutput = 1 << 20

// flagged are the files that the red gate's output names.
func (d *Driver) flagged(c loop.Command, rep report) []string {
	p := d.place(c.Iteration, c.Attempt)
	for i, g := range rep.Gates {
		if !g.Required || g.Status == loop.GatePassed || g.Status == loop.GateNotRun {
			continue
		}
		f, err := os.Open(p.gate(i) + ".out")
		if err != nil {
			return nil
		}
		defer f.Close() //nolint:errcheck // read only
		info, err := f.Stat()
		if err != nil {
			return nil
		}
		buf := make([]byte, min(info.Size(), maxFlaggedOutput))
		n, _ := f.ReadAt(buf, max(0, info.Size()-maxFlaggedOutput))
		return loop.FlaggedFiles(string(buf[:n]))
	}
	return nil
}

// tampered lists protected paths that differ from the run's base, and a
// changed git hook or configuration.
func (d *Driver) tampered(ctx context.Context, b begun, r *loop.Record) []gate.Violation {
	if d.o.Tree == nil || !r.TreeKnown {
		return nil
	}
	var found []gate.Violation
	if now, err := d.o.Tree.ConfigFingerprint(ctx); err == nil && b.Guarded != nil {
		for _, part := range b.Guarded.Differs(now) {
			found = append(found, gate.Violation{Path: ".git", Why: part + " changed"})
		}
	}
	if r.TreeAfter == d.base {
		return found
	}
	changes, err := d.changes(ctx, d.base, r.TreeAfter)
	if err != nil {
		d.warn(fmt.Sprintf("cannot look for tampering: %v", err))
		return append(found, gate.Violation{Path: ".", Why: "the changes of the run could not be listed"})
	}
	rules := d.plan.Protect
	rules.Allow = append(append([]string(nil), rules.Allow...), d.lifted...)
	return append(found, gate.Tampered(changes, rules)...)
}
