package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/supervisor"
)

// An agent's program is away or half written while somebody updates it. The work is
// not at fault: the program is waited for, and started again.

// AwayFor is how long a program that is away is waited for.
const AwayFor = 2 * time.Minute

const (
	untouched = 10 * time.Second // since its last change a program may be half written
	atOnce    = time.Minute      // an agent that fails within it may have failed by that
)

// sinceHere is when this pawl began: what was changed before is a person's own.
var sinceHere = time.Now()

// ErrNoProgram is that an agent cannot be started.
var ErrNoProgram = errors.New("is not an executable program here")

// withProgram runs an agent's job, again after its program was away or half written.
// What was begun is kept at path.
func (w *worker) withProgram(ctx context.Context, b *begun, path string, run func() (supervisor.Result, error),
) (supervisor.Result, error) {
	id, by := b.Job.ID, time.Now().Add(AwayFor)
	for try := 2; ; try++ {
		res, err := run()
		why, still := w.away(b.Job, res)
		if err != nil || why == "" || !time.Now().Before(by) {
			return res, err
		}
		w.warn(fmt.Sprintf("%s; it may be being updated, so it is waited for (%s at most)", why, loop.Duration(AwayFor)))
		if !b.Job.AwaitProgram(ctx, still, by) && ctx.Err() != nil {
			res.Exit.Ended = loop.EndedStop
			return res, err
		}
		b.Job.ID = fmt.Sprintf("%s%s%d", id, againMark, try)
		if err := b.write(path); err != nil {
			return res, err
		}
	}
}

// againMark is between a job's name and the number of its start.
const againMark = "+"

// away says that a job failed since its program was not there, or not whole; "" that it
// did not. The program is whole when it was left alone for still. One that agents may
// write is theirs to keep.
func (w *worker) away(job supervisor.Job, res supervisor.Result) (why string, still time.Duration) {
	x := res.Exit
	if x.Ended != loop.NotEnded || x.Code == 0 && x.Signal == "" || res.Agent.Usage.Output > 0 {
		return "", 0
	}
	program, changed := job.Program()
	if _, own := files.Below(w.plan.Root, program); own {
		return "", 0
	}
	recent := changed.After(sinceHere) && changed.After(res.StartedAt.Add(-untouched)) && res.Elapsed < atOnce
	switch {
	case changed.IsZero():
		return fmt.Sprintf("the agent's program %s is away", program), 0
	case recent, strings.Contains(res.Error, syscall.ETXTBSY.Error()):
		return fmt.Sprintf("the agent failed at once, and its program %s was just changed", program), untouched
	}
	return "", 0
}
