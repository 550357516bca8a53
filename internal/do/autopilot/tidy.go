package autopilot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/do/drive"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// tidyWorkspaces removes workspaces that were kept for their time, and says what could
// not be removed. It may be called beside the slots.
func (p *workspaces) tidyWorkspaces(ctx context.Context) {
	p.freeing.Lock()
	defer p.freeing.Unlock()
	p.mendRefs(ctx)
	p.freeLanded(ctx)
	all, err := p.o.Pool.Sweep(ctx)
	if err != nil {
		p.warnAbout("", err.Error())
	}
	for _, v := range all {
		if !v.Remove {
			p.warnAbout(v.ID, fmt.Sprintf("the workspace of %s is kept: %s", v.ID, v.Reason))
			continue
		}
		if err := Forget(p.o.StateDir, v.ID); err != nil {
			p.o.Log.Warn(err.Error())
		}
	}
	if err := errors.Join(p.dropRecoveries(ctx), p.dropTravelled(ctx)); err != nil {
		p.warnAbout("", err.Error())
	}
}

// mendRefs repairs refs of pawl's own, which nothing else can be looked up with.
func (p *workspaces) mendRefs(ctx context.Context) {
	note, err := p.o.Pool.Mend(ctx)
	if note != "" {
		p.warnAbout("", note)
	}
	if err != nil {
		p.warnAbout("", err.Error())
	}
}

// sweepRegularly removes what is over, also while the autopilot keeps running.
func (p *workspaces) sweepRegularly(ctx context.Context) {
	for ctx.Err() == nil {
		if err := p.o.Sweep(ctx); err != nil && ctx.Err() == nil {
			p.o.Log.Warn(err.Error())
		}
		if drive.Sleep(ctx, time.Now().Add(sweepEvery)); ctx.Err() == nil {
			p.tidyWorkspaces(ctx)
		}
	}
}

// sweepEvery is how often it is looked for what is over.
const sweepEvery = time.Hour

// syncEvery is how often issues are asked for: with a look at pull requests every
// two minutes, a forge is asked 42 times an hour while nothing changes there.
const syncEvery = 5 * time.Minute

// syncBeside keeps board and issues together.
func (p *workspaces) syncBeside(ctx context.Context) {
	for drive.Sleep(ctx, time.Now().Add(syncEvery)); ctx.Err() == nil; drive.Sleep(ctx, time.Now().Add(syncEvery)) {
		p.syncIssues(ctx, syncLimit)
	}
}

// syncIssues does so once. A forge that does not answer is asked again with the next.
func (p *workspaces) syncIssues(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := p.o.Sync(ctx, func(text string) { p.notify(Notice{Kind: Told, Text: text}) })
	if err != nil && ctx.Err() == nil {
		p.warnAbout("", "cannot read issues: "+err.Error())
	}
}

const (
	syncLimit = 5 * time.Minute  // for one time: each issue that changed costs a few calls
	lastSync  = 20 * time.Second // the same at the end, for which a person may be waiting
)

// dropRecoveries deletes what was kept of the workspaces of tasks that are done,
// after the retention. Of a task that is not done it may be the only copy: that
// stays.
func (p *workspaces) dropRecoveries(ctx context.Context) error {
	list, err := p.o.Pool.Recoveries(ctx, "")
	if err != nil {
		return err
	}
	now := process.Cautious()
	var old []pool.Recovery
	for _, r := range list {
		if !p.o.Pool.Outdated(r, now) {
			continue
		}
		c, err := p.o.Store.Case(ctx, r.Task)
		if err == nil && c.Status == board.Done {
			old = append(old, r)
		}
	}
	return p.o.Pool.DropRecoveries(ctx, old)
}

// warnDisk warns once each time that the room on the disk gets less.
func (p *workspaces) warnDisk() {
	room, why := p.o.Pool.Room()
	if room > p.room && room > pool.RoomEnough {
		p.warnAbout("", why)
	}
	p.room = room
}

// freeLanded gives back the workspaces of tasks whose work landed while no autopilot
// was on.
func (p *workspaces) freeLanded(ctx context.Context) {
	all, err := p.o.Pool.List(ctx)
	if err != nil {
		p.warnAbout("", err.Error())
	}
	for _, e := range all {
		if e.Landed || e.Process != 0 {
			continue
		}
		c, err := p.o.Store.Case(ctx, board.TaskOf(e.ID)) // also of one that raced for it
		open := err == nil && c.Status != board.Done
		if open || errors.Is(err, store.ErrNoCase) {
			continue
		}
		if err == nil {
			err = p.freeWorkspace(ctx, e.ID)
		}
		if err != nil {
			p.warnAbout(e.ID, err.Error())
		}
	}
}
