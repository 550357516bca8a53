package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/process"
)

// Run runs job and returns how it ended, whatever that was: an error means
// that there is no result, because the job was refused, another pawl took the
// run over (ErrTaken), or there is no supervisor and none can be started
// (ErrGone). A job that ran before returns its stored result; one that runs
// is joined. onEvent, if not nil, gets the parsed events as they come, on
// Run's goroutine; when it is slow, the oldest texts are dropped.
//
// A done ctx ends the job (TERM, grace, KILL of all that it started); the
// result, with Ended "stop", is still waited for. If the supervisor dies, what
// it ran is ended here and the result has Ended "lost"; a started Client (not
// an attached one) starts a new supervisor with the next Run.
func (c *Client) Run(ctx context.Context, job Job, onEvent func(agent.Event)) (Result, error) {
	c.turn.Lock()
	defer c.turn.Unlock()
	for try := 1; ; try++ {
		s, err := c.liveSession(ctx)
		if err != nil {
			return Result{}, err
		}
		t := transfer{s: s, job: job, onEvent: onEvent}
		r, err := t.runTransferredJob(ctx)
		if err == nil {
			return r, nil
		}
		if s.wasTakenOver() {
			return Result{}, ErrTaken
		}
		if !s.hasEnded() {
			return Result{}, err
		}
		elapsed := time.Since(t.at)
		if err := c.endDeadSupervisor(s); err != nil {
			return Result{}, err
		}
		if r, ok := knownResult(job); ok {
			return r, nil
		}
		if !wasClaimed(job) && c.opts.Exe != "" && try == 1 {
			continue
		}
		return lostResult(job, t.at, elapsed)
	}
}

// liveSession returns a live session, a new one if the supervisor has gone.
func (c *Client) liveSession(ctx context.Context) (*session, error) {
	s := c.currentSession()
	if !s.hasEnded() {
		return s, nil
	}
	if s.wasTakenOver() {
		return nil, ErrTaken
	}
	if err := c.endDeadSupervisor(s); err != nil {
		return nil, err
	}
	if c.opts.Exe == "" {
		return nil, ErrGone
	}
	fresh, err := startSession(context.WithoutCancel(ctx), c.opts)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.s = fresh
	c.mu.Unlock()
	return fresh, nil
}

// transfer is one job handed over.
type transfer struct {
	s       *session
	job     Job
	onEvent func(agent.Event)
	at      time.Time
}

// runTransferredJob hands the job over and waits for its result. An error means that
// the session has ended, or that the job was refused.
func (t *transfer) runTransferredJob(ctx context.Context) (Result, error) {
	t.at = time.Now()
	stopped := ctx.Err() != nil
	t.s.busy.Store(true)
	if err := t.s.sendRequest(request{Op: opRun, Job: &t.job, Keys: t.job.Gateway.Keys(), Stop: stopped}); err != nil {
		_ = t.s.conn.Close()
		<-t.s.gone
		return t.lastResult()
	}
	stop := ctx.Done()
	if stopped {
		stop = nil
	}
	for {
		select {
		case <-stop:
			stop = nil
			_ = t.s.sendRequest(request{Op: opStop})
		case events := <-t.s.events:
			t.deliverEvents(events)
		case r := <-t.s.replies:
			if done, err := t.takeReply(r); done {
				return *r.Result, nil
			} else if err != nil {
				return Result{}, err
			}
		case <-t.s.gone:
			return t.lastResult()
		}
	}
}

// takeReply handles a reply; done when it is the job's result.
func (t *transfer) takeReply(r reply) (done bool, err error) {
	if r.ID != "" && r.ID != t.job.ID {
		return false, nil
	}
	switch {
	case r.Op == opRefused:
		return false, fmt.Errorf("the supervisor refused the job: %s", r.Error)
	case r.Op == opResult && r.Result != nil:
		t.deliverAll()
		t.s.busy.Store(false)
		return true, nil
	}
	return false, nil
}

// lastResult looks for a result that came just before the end of the session.
func (t *transfer) lastResult() (Result, error) {
	for {
		select {
		case r := <-t.s.replies:
			if done, _ := t.takeReply(r); done {
				return *r.Result, nil
			}
		default:
			t.deliverAll()
			return Result{}, ErrGone
		}
	}
}

// deliverAll passes on the events that wait.
func (t *transfer) deliverAll() {
	for {
		select {
		case events := <-t.s.events:
			t.deliverEvents(events)
		default:
			return
		}
	}
}

func (t *transfer) deliverEvents(events []json.RawMessage) {
	if t.onEvent == nil {
		return
	}
	for _, data := range events {
		var e agent.Event
		if json.Unmarshal(data, &e) == nil {
			t.onEvent(e)
		}
	}
}

// HasProgram reports whether the job's program is there.
func (j Job) HasProgram() bool {
	path, err := process.Command{Args: j.Args, Dir: j.Dir, Env: j.Env}.Resolve()
	if err == nil {
		_, err = os.Stat(path)
	}
	return err == nil
}
