package autopilot

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Sprint is what makes an autopilot a sprint.
type Sprint struct {
	Target   schedule.SprintTarget
	Settings schedule.SprintSettings
	// Checkpoint keeps the target as it is before the sprint.
	Checkpoint bool
}

// CheckpointRef keeps the target of before a sprint.
func CheckpointRef(id string) string { return "refs/pawl/checkpoints/" + id }

// sprintFile is where the statistics of sprints are, below the root: a line at
// the start and one at the end; the last line of an id holds.
const sprintFile = ".pawl/sprints.jsonl"

// maxSprints is the size in bytes at which the file begins anew.
const maxSprints = 64 << 20

// startSprint ends the statistics of sprints that a crash left open, and
// begins those of this one.
func (p *pilot) startSprint(ctx context.Context) error {
	if err := p.closeSprints(ctx); err != nil || p.o.Sprint == nil || p.row.Sprint != "" {
		return err
	}
	id, err := p.o.Store.NewSprintID(ctx, p.row.StartedAt.Local().Format(time.DateOnly))
	if err != nil {
		return err
	}
	p.sprint = &schedule.SprintStats{
		ID: id, StartedAt: p.row.StartedAt.UnixMilli(), Target: p.o.Sprint.Target,
		Settings: p.o.Sprint.Settings, TaskStats: []schedule.TaskStat{},
	}
	p.row.Sprint = id
	if p.o.Sprint.Checkpoint {
		if err := p.makeCheckpoint(ctx, id); err != nil {
			return err
		}
	}
	p.saveSprint(ctx)
	p.writeSprint(*p.sprint)
	p.notify(Notice{Kind: SprintBegan, Text: id})
	return nil
}

// makeCheckpoint keeps the target under a ref of the sprint's.
func (p *pilot) makeCheckpoint(ctx context.Context, id string) error {
	base, err := p.o.Base(ctx)
	if err == nil {
		err = p.o.Repo.UpdateRef(ctx, CheckpointRef(id), base, "", "pawl: before sprint "+id)
	}
	if err != nil {
		return fmt.Errorf("cannot create the checkpoint of the sprint: %v", err)
	}
	p.notify(Notice{Kind: Checkpoint, Text: CheckpointRef(id)})
	return nil
}

// closeSprints writes the statistics of sprints whose pawl died. One that continues is taken.
func (p *pilot) closeSprints(ctx context.Context) error {
	const some = 20
	list, err := p.o.Store.Sprints(ctx, some)
	if err != nil {
		return err
	}
	for _, row := range list {
		var s schedule.SprintStats
		if !row.EndedAt.IsZero() || json.Unmarshal(row.Stats, &s) != nil {
			continue
		}
		if row.ID == p.row.Sprint {
			p.sprint = &s
			continue
		}
		end := time.UnixMilli(s.StartedAt)
		for _, t := range s.TaskStats {
			end = time.UnixMilli(max(end.UnixMilli(), t.StartedAt, t.CompletedAt))
		}
		s.End(end)
		row.EndedAt, row.Stats = end, encodeJSON(s)
		if err := p.o.Store.SaveSprint(ctx, row); err != nil {
			return err
		}
		p.writeSprint(s)
	}
	return nil
}

// endSprint writes the statistics, however the sprint ended.
func (p *pilot) endSprint(ctx context.Context) {
	if p.sprint == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	p.addDecisions(ctx)
	p.sprint.End(time.Now())
	p.saveSprint(ctx)
	p.writeSprint(*p.sprint)
}

func (p *pilot) saveSprint(ctx context.Context) {
	row := store.Sprint{ID: p.sprint.ID, StartedAt: time.UnixMilli(p.sprint.StartedAt), Stats: encodeJSON(p.sprint)}
	if end := p.sprint.EndedAt; end != nil {
		row.EndedAt = time.UnixMilli(*end)
	}
	if err := p.o.Store.SaveSprint(ctx, row); err != nil {
		p.o.Log.Warn(err.Error())
	}
}

// writeSprint appends a line. The database has the same: losing the file loses
// nothing.
func (p *pilot) writeSprint(s schedule.SprintStats) {
	err := appendSprint(p.o.Root, encodeJSON(s))
	if err != nil {
		p.warnAbout("", fmt.Sprintf("the sprint's statistics are in the database only: %v", err))
	}
}

func appendSprint(root string, line []byte) error {
	return files.AppendBelow(root, filepath.FromSlash(sprintFile), append(line, '\n'), maxSprints)
}

// NoteDecision adds a person's decision about a task to the statistics of the
// last sprint that it was part of. The sprint that still runs does that itself
// at its end.
func NoteDecision(ctx context.Context, db *store.Store, root, id, decision string) error {
	const some = 20
	list, err := db.Sprints(ctx, some)
	if err != nil {
		return err
	}
	for _, row := range list {
		var s schedule.SprintStats
		if err := json.Unmarshal(row.Stats, &s); err != nil {
			return fmt.Errorf("cannot read the statistics of sprint %s: %v", row.ID, err)
		}
		if row.EndedAt.IsZero() || !s.Decided(id, decision) {
			continue
		}
		row.Stats = encodeJSON(s)
		if err := db.SaveSprint(ctx, row); err != nil {
			return err
		}
		return appendSprint(root, row.Stats)
	}
	return nil
}

// addDecisions adds what people decided while the sprint ran.
func (p *pilot) addDecisions(ctx context.Context) {
	for _, t := range p.sprint.TaskStats {
		list, err := p.o.Store.CaseReviews(ctx, t.TaskID)
		if err != nil {
			p.o.Log.Warn(err.Error())
			return
		}
		for _, r := range list {
			if r.Decision != "" && r.AskedAt.UnixMilli() >= p.sprint.StartedAt {
				p.sprint.Decided(t.TaskID, r.Decision)
			}
		}
	}
}
