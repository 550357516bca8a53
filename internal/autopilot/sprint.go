package autopilot

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-dev/pawl/internal/schedule"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

// Sprint is what makes an autopilot a sprint.
type Sprint struct {
	Target   schedule.SprintTarget
	Settings schedule.SprintSettings
}

// SprintFile is where the statistics of sprints are, a line at the start and
// one at the end; the last line of an id holds.
func SprintFile(root string) string { return filepath.Join(root, ".pawl", "sprints.jsonl") }

// startSprint ends the statistics of sprints that a crash left open, and
// begins those of this one.
func (p *pilot) startSprint(ctx context.Context) error {
	if err := p.closeSprints(ctx); err != nil || p.o.Sprint == nil {
		return err
	}
	id, err := p.o.Store.NewSprintID(ctx, p.row.StartedAt.Local().Format(time.DateOnly))
	if err != nil {
		return err
	}
	p.sprint = &schedule.SprintStats{
		ID: id, StartedAt: p.row.StartedAt.UnixMilli(), Target: p.o.Sprint.Target, Settings: p.o.Sprint.Settings, TaskStats: []schedule.TaskStat{},
	}
	p.row.Sprint = id
	p.saveSprint(ctx)
	p.writeSprint(*p.sprint)
	return nil
}

// closeSprints writes the statistics of sprints whose pawl died.
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
		end := time.UnixMilli(s.StartedAt)
		for _, t := range s.TaskStats {
			end = time.UnixMilli(max(end.UnixMilli(), t.StartedAt, t.CompletedAt))
		}
		s.End(end)
		row.EndedAt, row.Stats = end, encode(s)
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
	p.sprint.End(time.Now())
	p.saveSprint(context.WithoutCancel(ctx))
	p.writeSprint(*p.sprint)
}

func (p *pilot) saveSprint(ctx context.Context) {
	row := sqlite.Sprint{ID: p.sprint.ID, StartedAt: time.UnixMilli(p.sprint.StartedAt), Stats: encode(p.sprint)}
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
	path := SprintFile(p.o.Root)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = appendLine(path, encode(s))
	}
	if err != nil {
		p.tell(Notice{Kind: Warning, Text: fmt.Sprintf("the sprint's statistics are in the database only: %v", err)})
	}
}

func appendLine(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
