package autopilot

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
)

// collectWork makes of a complete run what can land.
func (p *pilot) collectWork(ctx context.Context, l *slot, w pool.Workspace, s loop.State, o *schedule.Outcome) {
	run := l.runID()
	commit, err := p.o.Pool.Collect(ctx, w, commitMessage(l.task, run))
	if err == nil {
		o.Secrets, err = p.secretsIn(ctx, run)
	}
	if err == nil && p.o.Remote != "" {
		err = p.o.pushWork(ctx, l.task.ID, commit)
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
	if o.Hold == "" && !o.Empty {
		o.Hold = p.reasonToConfirm(ctx, w.Base, commit)
	}
	l.result = queue.Entry{
		ID: l.task.ID, Title: l.task.Title, Run: run, Commit: commit, Base: w.Base,
		Priority: l.task.Priority, Allow: l.allow, AddedAt: s.LastAt,
	}
}

// reasonToConfirm: a person has to see the work before it lands, since it changes what
// programs of theirs run by themselves. "" when it does not.
func (p *pilot) reasonToConfirm(ctx context.Context, base, commit string) string {
	changes, err := p.o.Repo.Changes(ctx, base, commit)
	var found []string
	if err == nil {
		paths := lists.Each(changes, func(c git.Change) string { return c.Path })
		found, err = delivery.RunsItself(ctx, p.o.Repo, paths, p.o.Confirm)
	}
	switch {
	case err != nil:
		return "it cannot be told whether it changes what programs run by themselves: " + err.Error()
	case len(found) > 0:
		return "it changes " + deliver.Some(found) + ", which programs of yours run by themselves"
	}
	return ""
}

// blameDisk makes of a run that ended since a disk was full what can go on later.
func (p *pilot) blameDisk(ctx context.Context, l *slot, o *schedule.Outcome) {
	if endedByDisk(ctx, p.o.Store, l.runID()) {
		o.NotStarted, o.Machine = true, true
	}
}

// commitMessage is for the commit of what was not committed.
func commitMessage(c board.Case, run string) string {
	return fmt.Sprintf("%s: %s\n\nPawl-Task: %s\nPawl-Run: %s\n", c.ID, c.Title, c.ID, run)
}

// secretsIn lists places where the work may still hold a secret, by the last
// iteration.
func (p *pilot) secretsIn(ctx context.Context, run string) (string, error) {
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
