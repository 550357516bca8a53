package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/decide/workflow"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/ending"
	"github.com/pawl-dev/pawl/internal/do/engine/lanes"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// activeAttempt is one attempt while it is carried out.
type activeAttempt struct {
	s       *scope
	n       *node
	e       *execution
	resumed bool
	content string
	took    time.Duration // of a job that an earlier pawl began; 0 is not known
}

// outputVariables name the file that a command may write outputs to.
var outputVariables = []string{"PAWL_OUTPUT", "GITHUB_OUTPUT"}

// runCommand runs the step's command.
func (d *activeAttempt) runCommand(ctx context.Context) error {
	p := d.s.p
	if f, found := p.h.Forbidden(d.content); found && !d.resumed {
		refused := forbiddenFailure(f)
		refused.Actions = []string{
			"Check what the command would do.",
			"If it is right, run with --safety permissive.",
		}
		return d.cannotStart(refused)
	}
	wall, iteration := d.s.timeLimitOf(p.timeoutOf(d.n.in.Step))
	files := d.s.filesPrefix(d.e)
	out := filepath.Join(filepath.Dir(files), "out")
	env := d.n.given.envWith("PAWL_STEP=" + d.n.id)
	for _, name := range outputVariables {
		env = append(env, name+"="+filepath.Join(out, "outputs"))
	}
	job := p.h.Shell(jobID(d.e, ""), files, d.content, d.n.given.dir, env, wall)
	if err := os.MkdirAll(out, 0o700); err != nil {
		return fmt.Errorf("cannot make the folder of step %s: %v", d.n.id, err)
	}
	if len(d.content) >= longArgument {
		path := filepath.Join(out, "command.sh")
		if err := os.WriteFile(path, []byte(d.content), 0o600); err != nil {
			return fmt.Errorf("cannot write the command of step %s: %v", d.n.id, err)
		}
		job.Args = []string{"sh", "-e", path}
	}
	res, err := d.runOwnJob(ctx, job)
	if err != nil {
		return err
	}
	d.e.record.Usage.Output = res.Stdout.Bytes + res.Stderr.Bytes
	p.setStatus(d.e, res.Exit, nameLimit(ending.FailureOfShell(d.n.id, job, res), res.Exit, wall), iteration)
	if d.e.Status != store.StepSuccess {
		return nil
	}
	d.e.Output, d.e.record.Cut = outputOf(job.Files+".out", res.Stdout)
	outputs, err := readOutputs(filepath.Join(out, "outputs"))
	if err != nil {
		d.failOutputs(err)
		return nil
	}
	return d.completeAttempt(ctx, outputs)
}

// longArgument is what a system takes as one argument, with room to spare. A
// longer command is put into a file.
const longArgument = 100 << 10

// runOwnJob carries out the attempt's own job, or joins it.
func (d *activeAttempt) runOwnJob(ctx context.Context, job supervisor.Job) (supervisor.Result, error) {
	p := d.s.p
	watch := d.watchOutput(job)
	defer watch.endWatch()
	ctx, onEvent, release := d.listenTo(ctx, job)
	defer release()
	if d.resumed {
		known := job // with what it was begun with
		if d.e.record.Job != nil {
			known = *d.e.record.Job
		}
		st := d.e.eventData(journal.StepStarted)
		st.Status = "adopted"
		p.h.Tell(engine.StepStarted, d.s.noticeOf(d.n, st))
		res, fate, err := p.h.Resume(ctx, known, onEvent)
		d.took = res.Elapsed
		if err != nil || fate != lanes.NotBegun {
			return res, err
		}
	} else {
		d.e.record.Job = storedJob(job)
		if err := p.storeBegin(d.s, d.n, d.e); err != nil {
			return supervisor.Result{}, err
		}
	}
	if d.e.record.Kind != string(workflow.Agent) {
		return p.h.Do(ctx, job, onEvent)
	}
	return p.h.DoAgent(ctx, job, onEvent)
}

// storedJob is a job as it is stored.
func storedJob(job supervisor.Job) *supervisor.Job {
	job.Env, job.Box = nil, nil
	return &job
}

// forbiddenFailure is the failure of a command that the safety level forbids.
func forbiddenFailure(f safety.Finding) failure.Analysis {
	return failure.Analysis{
		Class: failure.Permission, Kind: failure.Permanent, Severity: failure.High,
		Fingerprint: "step-refused-" + f.Pattern, Summary: f.Reason(),
	}
}

// failOutputs fails an attempt whose outputs cannot be read.
func (d *activeAttempt) failOutputs(err error) {
	d.failAttempt(failure.Analysis{
		Class: failure.Validation, Kind: failure.Work, Severity: failure.Medium,
		Fingerprint: "step-outputs-" + d.n.in.Hash, Summary: err.Error(),
	})
}

// nameLimit adds to the failure the limit that ended a command.
func nameLimit(f *failure.Analysis, x loop.Exit, wall time.Duration) *failure.Analysis {
	if f != nil && x.Ended == loop.EndedTimeout {
		if wall > 100*time.Millisecond { // what was left of the iteration's time is no round number
			wall = wall.Round(10 * time.Millisecond)
		}
		f.Summary = strings.TrimSuffix("timed out after "+wall.String()+": "+f.Summary, ": ")
	}
	return f
}

// completeAttempt fills in the declared outputs and runs the step's checks: only what
// passes them is done.
func (d *activeAttempt) completeAttempt(ctx context.Context, outputs map[string]string) error {
	v := d.n.values
	v.Output = d.e.Output
	for _, o := range d.n.in.Step.Outputs {
		text, err := o.Text.Fill(v)
		if err != nil {
			d.failOutputs(fmt.Errorf("outputs.%s: %v", o.Name, err))
			return nil
		}
		if outputs == nil {
			outputs = map[string]string{}
		}
		outputs[o.Name] = text
	}
	d.e.record.Outputs = outputs
	return d.runChecks(ctx)
}

// runChecks runs the step's checks in turn. What a crash cut off runs again: a
// check changes nothing.
func (d *activeAttempt) runChecks(ctx context.Context) error {
	p := d.s.p
	for i, command := range d.n.given.verify {
		if f, found := p.h.Forbidden(command); found {
			d.failAttempt(forbiddenFailure(f))
			return nil
		}
		part := fmt.Sprintf("/verify/%d/%d", i+1, d.e.StartedAt.UnixNano())
		if d.resumed {
			part += "/again"
		}
		files := filepath.Join(filepath.Dir(d.s.filesPrefix(d.e)), fmt.Sprintf("verify-%d", i+1))
		wall, iteration := d.s.timeLimitOf(p.timeoutOf(d.n.in.Step))
		job := p.h.Shell(jobID(d.e, part), files, command, d.n.given.dir, d.n.given.envWith("PAWL_STEP="+d.n.id), wall)
		res, err := p.h.Do(ctx, job, nil)
		if err != nil {
			return err
		}
		f := nameLimit(ending.FailureOfShell(d.n.id, job, res), res.Exit, wall)
		if f != nil {
			f.Summary = fmt.Sprintf("check %q: %s", shortLine(command), f.Summary)
		}
		if p.setStatus(d.e, res.Exit, f, iteration); d.e.Status != store.StepSuccess {
			return nil
		}
	}
	return nil
}

// shortLine is a command in a message.
func shortLine(command string) string {
	line, _, more := strings.Cut(strings.TrimSpace(command), "\n")
	if r := []rune(line); len(r) > 60 {
		line, more = string(r[:60]), true
	}
	if more {
		line += " …"
	}
	return line
}
