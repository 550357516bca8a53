package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/keep/spool"
)

const (
	defaultGrace = 5 * time.Second
	// helpersBound is the time for the last helpers of a job (a tee behind a shell)
	// to go by themselves after it has ended.
	helpersBound = 100 * time.Millisecond
	// drainBound is how long a pipe is read after all processes are gone.
	drainBound = 2 * time.Second
	// pipeSize holds what programs write just before they exit: some lose it.
	pipeSize = 1 << 20
	// stuckBound is how long the end of a killed process is waited for.
	stuckBound = 5 * time.Second
)

// task is one job while it runs.
type task struct {
	job     Job
	mark    string
	runDir  string
	reaper  *process.Reaper
	parsers Parsers
	rest    func() (Rest, error)
	buffers *buffers
	emit    func([]json.RawMessage)
	started time.Time

	ending chan verdict    // why to end it; the first counts
	hurry  context.Context // done: no grace
	rush   context.CancelFunc
	seen   atomic.Int64
	box    box
	models *models
	talk   *talk                // nil for a program that takes no messages
	limit  func(sandbox.Limits) // puts the supervisor under limits, once
	logf   func(format string, args ...any)
}

func newJobTask(job Job, s *server) *task {
	t := &task{
		job: job, mark: s.mark, runDir: s.runDir, reaper: s.reaper, parsers: s.parsers, rest: s.rest, buffers: &s.buffers,
		emit: s.emitEvents, limit: s.limitGroup, started: time.Now(), ending: make(chan verdict, 1), logf: s.writeLog,
	}
	t.hurry, t.rush = context.WithCancel(context.Background())
	return t
}

// requestEnd asks for the end of the job. Later reasons than the first do not count.
func (t *task) requestEnd(reason loop.Ended) { t.endForReason(reason, "") }

// endForReason is end with what was seen and what to do, in words.
func (t *task) endForReason(reason loop.Ended, why string) {
	select {
	case t.ending <- verdict{reason: reason, why: why}:
		if reason == loop.EndedDestructive || t.canSpendInGrace(reason) {
			t.rush()
		}
	default:
	}
}

// canSpendInGrace reports whether an agent that is over its limit could spend more in its grace, as
// the gateway does not stop its calls.
func (t *task) canSpendInGrace(over loop.Ended) bool {
	ofSpending := over == loop.EndedCost || over == loop.EndedTokens
	return ofSpending && t.models == nil
}

// cutGraceShort cuts the grace short.
func (t *task) cutGraceShort() {
	t.requestEnd(loop.EndedStop)
	t.rush()
}

// runToEnd runs the job to its end, leaves nothing running, and returns the result
// after it was stored.
func (t *task) runToEnd() Result {
	defer t.rush()
	r := Result{ID: t.job.ID, StartedAt: t.started}
	if err := t.performJob(&r); err != nil {
		r.Error = err.Error()
		r.Exit.Code = -1
		if start, ok := errors.AsType[*process.StartError](err); ok {
			r.Exit.Code = start.Code
		}
		r.Elapsed = time.Since(t.started)
	}
	if err := storeResult(t.job.Files, r); err != nil {
		t.logf("%v", err)
	}
	return r
}

// output is the two streams of a job while they are read.
type output struct {
	out, err capture
	meter    *meter
	ends     []*os.File // our ends of the pipes
	pumps    sync.WaitGroup
}

func (t *task) performJob(r *Result) error {
	o, err := t.openOutputs()
	if err != nil {
		return err
	}
	if t.models, err = t.openModels(o.meter); err != nil {
		return err
	}
	defer t.models.closeServer()
	least := leastFree(t.job) // of what is free before the job
	child, err := t.launchProcess(o)
	defer func() { t.talk.closeInput() }()
	defer t.leaveBox()
	if err != nil {
		return err
	}
	why := t.watchProcess(child, o.meter, least)
	r.Told = t.talk.endAndCountRead()
	r.Elapsed = time.Since(t.started)
	r.Exit = exitOfChild(child)
	r.Exit.Ended, r.Exit.Why = why.reason, why.why
	r.Killed = why.killed + t.endLeftProcesses(child)
	r.Unreached = t.box.network.Refused()
	t.drainPipes(o, r)
	return nil
}

// openOutputs prepares files and parser.
func (t *task) openOutputs() (*output, error) {
	o := &output{}
	t.seen.Store(t.started.UnixNano())
	limit := t.job.Limits.Output
	errors := limit
	if limit == 0 && t.job.Parser != "" {
		limit, errors = outputLimit, errorLimit
	}
	o.out = capture{file: spool.NewWriter(t.job.Files+".out", limit), path: t.job.Files + ".out", seen: &t.seen}
	o.err = capture{file: spool.NewWriter(t.job.Files+".err", errors), path: t.job.Files + ".err", seen: &t.seen}
	if t.job.Parser != "" {
		parser, err := t.parsers(t.job.Parser, t.job)
		if err != nil {
			return nil, fmt.Errorf("cannot read the output of %s: %v", t.job.Args[0], err)
		}
		o.meter = newMeter(t.job, parser, t.emit, t.endForReason)
		o.out.also = o.meter.feedStream
		o.err.also = o.meter.countStderr
	} else if most := t.job.Limits.Printed; most > 0 {
		count := countPrinted(most, t.endForReason)
		o.out.also, o.err.also = count, count
	}
	return o, nil
}

// launchProcess starts the process and the readers of its output.
func (t *task) launchProcess(o *output) (*process.Child, error) {
	if err := t.models.writeSettings(t.job); err != nil {
		return nil, err
	}
	c := process.Command{Args: t.models.withAddress(t.job.Args), Dir: t.job.Dir, Env: t.models.withAddress(t.job.Env)}
	if t.mark != "" {
		c.Env = append(c.Env[:len(c.Env):len(c.Env)], t.mark)
	}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
	}()
	if t.job.Stdin != "" {
		in, err := openInput(t.job.Stdin)
		if err != nil {
			return nil, err
		}
		if t.job.Talks && o.meter != nil {
			if t.talk, in, err = newPromptTalk(in, t.job.Messages()); err != nil {
				return nil, fmt.Errorf("cannot hand over the input: %v", err)
			}
			o.meter.ended = t.talk.closeInput
		}
		theirs = append(theirs, in)
		c.Stdin = in
	}
	makeOut := process.Pipe
	if t.job.Box != nil && t.job.Parser != "" && t.job.Parser != "text" { // its events are its own
		makeOut = process.Channel
	}
	outR, outW, err := makeOut(pipeSize)
	if err != nil {
		return nil, err
	}
	theirs = append(theirs, outW)
	o.ends = append(o.ends, outR)
	c.Stdout, c.Stderr = outW, outW
	if !t.job.Merge {
		errR, errW, err := process.Pipe(pipeSize / 4)
		if err != nil {
			o.closeEnds()
			return nil, err
		}
		theirs = append(theirs, errW)
		o.ends = append(o.ends, errR)
		c.Stderr = errW
	}
	child, err := t.startInBox(c)
	if err != nil {
		o.closeEnds()
		return nil, err
	}
	o.startPumps(t.buffers)
	return child, nil
}

// openInput is a copy of a file for stdin: what has the file itself may change its
// mode and its owner. A pipe or a socket could block for ever.
func openInput(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open the input: %v", err)
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("cannot open the input: %s is not a regular file", path)
	}
	sealed, err := process.Sealed(f)
	if err != nil {
		return nil, fmt.Errorf("cannot hand over the input: %v", err)
	}
	return sealed, nil
}

func (o *output) startPumps(b *buffers) {
	if b.out == nil {
		b.out, b.err = make([]byte, chunkSize), make([]byte, chunkSize)
	}
	o.pumps.Go(func() { o.out.pumpOutput(o.ends[0], b.out) })
	if len(o.ends) > 1 {
		o.pumps.Go(func() { o.err.pumpOutput(o.ends[1], b.err) })
	}
}

func (o *output) closeEnds() {
	for _, f := range o.ends {
		_ = f.Close()
	}
}

// verdict is how the watch over a process ended.
type verdict struct {
	reason loop.Ended
	why    string
	killed int
}

// watchProcess waits until the process has ended, by itself or at a limit.
func (t *task) watchProcess(child *process.Child, m *meter, least uint64) verdict {
	ctx, stop := context.WithCancel(context.Background())
	var watchers sync.WaitGroup
	defer func() {
		stop()
		watchers.Wait()
	}()
	var dog *watchdog
	if m != nil {
		dog = m.dog
		watchers.Go(func() { dog.watchDoubts(ctx) })
		watchers.Go(func() { t.watchResult(ctx, &m.result) })
	}
	watchers.Go(func() { t.watchIdle(ctx, dog) })
	watchers.Go(func() { t.watchDisk(ctx, least) })
	watchers.Go(func() {
		if wall := t.job.Limits.Wall; wall > 0 && process.Sleep(ctx, wall) {
			t.requestEnd(loop.EndedTimeout)
		}
	})
	select {
	case <-child.Done():
		return verdict{}
	case why := <-t.ending:
		return t.terminateTree(child, why)
	}
}

// terminateTree ends the whole tree while the process still runs.
func (t *task) terminateTree(child *process.Child, why verdict) verdict {
	t.askToEnd(child)
	ended := t.reaper.Terminate(t.hurry, t.graceTime())
	select {
	case <-child.Done():
	case <-time.After(stuckBound):
		t.logf("%s does not end although it was killed; it is still running", t.job.ID)
		why.killed = ended.Killed
		return why
	}
	killed := ended.Killed
	if child.Status().Signaled() && child.Status().Signal() == syscall.SIGKILL && killed > 0 {
		killed-- // the process itself
	}
	why.killed = killed
	return why
}

// askToEnd lets the process itself end what it started, where it knows a better way
// than a signal.
func (t *task) askToEnd(child *process.Child) {
	select {
	case <-child.Done():
		return
	default:
	}
	if t.job.Limits.Ask <= 0 || syscall.Kill(child.PID, syscall.SIGTERM) != nil {
		return
	}
	timer := time.NewTimer(t.job.Limits.Ask)
	defer timer.Stop()
	select {
	case <-child.Done():
	case <-timer.C:
	case <-t.hurry.Done():
	}
}

// endLeftProcesses ends what the process left behind.
func (t *task) endLeftProcesses(child *process.Child) int {
	idle := t.reaper.Idle()
	select {
	case <-child.Done():
	default:
		return 0
	}
	// The reaper looks once more right after each end, so a job that left
	// nothing does not get as far as the timer.
	timer := time.NewTimer(helpersBound)
	defer timer.Stop()
	select {
	case <-idle:
		return 0
	case <-timer.C:
	case <-t.hurry.Done():
	}
	ended := t.reaper.Terminate(t.hurry, t.graceTime())
	if ended.Left > 0 {
		t.logf("%d processes of %s could not be ended", ended.Left, t.job.ID)
	}
	return ended.Found
}

func (t *task) graceTime() time.Duration {
	if t.job.Limits.Grace > 0 {
		return t.job.Limits.Grace
	}
	return defaultGrace
}

// drainPipes reads what is left in the pipes, within a bound: an end of a pipe may
// have been passed to a process that is not ours.
func (t *task) drainPipes(o *output, r *Result) {
	for _, f := range o.ends {
		_ = f.SetReadDeadline(time.Now().Add(drainBound))
	}
	o.pumps.Wait()
	o.closeEnds()
	r.Stdout, r.Stderr = o.out.finishCapture(), o.err.finishCapture()
	if o.meter == nil {
		return
	}
	t.models.closeServer()
	r.Agent = o.meter.finishStream()
	t.models.completeOutcome(&r.Agent)
	r.Refused = o.meter.refused
	if _, has := o.meter.result.resultSince(); has {
		r.Exit = exitWithResult(r.Exit, r.Agent.Terminal)
	}
	r.Exit.Terminal = r.Agent.Terminal
	if o.meter.problem != "" {
		t.logf("%s: %s", t.job.ID, o.meter.problem)
		r.Stdout.Note = strings.TrimPrefix(r.Stdout.Note+"; "+o.meter.problem, "; ")
	}
}

// exitOfChild turns the system's status into ours.
func exitOfChild(child *process.Child) loop.Exit {
	select {
	case <-child.Done():
	default:
		return loop.Exit{Code: -1}
	}
	status := child.Status()
	if status.Signaled() {
		return loop.Exit{Code: -1, Signal: status.Signal().String()}
	}
	return loop.Exit{Code: status.ExitStatus()}
}

// Parsers makes a parser for the stream of a job by the format's name.
type Parsers func(name string, job Job) (agent.Parser, error)
