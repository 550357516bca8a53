package autopilot

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
)

// collect makes of a complete run what can land.
func (p *pilot) collect(ctx context.Context, l *slot, w pool.Workspace, s loop.State, o *schedule.Outcome) {
	run := l.runID()
	commit, err := p.o.Pool.Collect(ctx, w, message(l.task, run))
	if err == nil {
		o.Secrets, err = p.secrets(ctx, run)
	}
	if err == nil && p.o.Remote != "" {
		err = p.o.push(ctx, l.task.ID, commit)
	}
	switch {
	case errors.Is(err, pool.ErrRefused):
		*o = schedule.Outcome{Status: loop.Blocked, Why: "it is complete, but " + err.Error()}
		return
	case err != nil: // its run is complete, and stays so: the next start collects again
		*o = schedule.Outcome{Status: loop.Completed, NotStarted: true, Machine: true,
			Why: "it is complete, but " + err.Error()}
		return
	}
	o.Empty, o.Hold = commit == w.Base, l.hold
	l.result = queue.Entry{
		ID: l.task.ID, Title: l.task.Title, Run: run, Commit: commit, Base: w.Base,
		Priority: l.task.Priority, Allow: l.allow, AddedAt: s.LastAt,
	}
}

// blameDisk makes of a run that ended since a disk was full what can go on later.
func (p *pilot) blameDisk(ctx context.Context, l *slot, o *schedule.Outcome) {
	if endedByDisk(ctx, p.o.Store, l.runID()) {
		o.NotStarted, o.Machine = true, true
	}
}

// message is that of the commit of what was not committed.
func message(c board.Case, run string) string {
	return fmt.Sprintf("%s: %s\n\nPawl-Task: %s\nPawl-Run: %s\n", c.ID, c.Title, c.ID, run)
}

// secrets says where the work may hold a secret that it still has: what the
// last iteration found.
func (p *pilot) secrets(ctx context.Context, run string) (string, error) {
	list, err := p.o.Store.LastIterations(ctx, run, 1)
	if err != nil || len(list) == 0 {
		return "", err
	}
	found := list[len(list)-1].Secrets
	if len(found) == 0 {
		return "", nil
	}
	where := fmt.Sprintf("%s:%d (%s)", found[0].File, found[0].Line, found[0].Kind)
	if len(found) > 1 {
		where += fmt.Sprintf(" and %d more", len(found)-1)
	}
	return where, nil
}
