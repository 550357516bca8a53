package cli

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/schedule"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

// sprintFlags are those of sprint alone.
type sprintFlags struct {
	count, hours, until        string
	noReady                    bool
	ops, tags, excluded        []string
	checkpoint, onError, batch bool
	set                        func(name string) bool // a flag was given
}

func (a *app) sprintCommand() *cobra.Command {
	var f sprintFlags
	var p pilotFlags
	cmd := group("sprint", "Work the board up to a target: a number of tasks, a time, or all that is ready",
		func(ctx context.Context) error {
			p.sprint = &f
			return a.autopilot(ctx, p)
		}, a.sprintListCommand(), a.sprintShowCommand())
	cmd.Long = "Work the board up to a target. When it is reached nothing new starts, and what runs may end. Without a target\n" +
		"the configuration's holds (sprint.target). The statistics go to .pawl/sprints.jsonl, also after a stop or a crash."
	cmd.Example = "  pawl sprint --count 10\n  pawl sprint --hours 4 --op op-005 --exclude-tag later\n  pawl sprint --until 18:00 --batch-review"
	f.set = func(name string) bool { return cmd.Flags().Changed(name) }
	fl := cmd.Flags()
	fl.StringVar(&f.count, "count", "", "until `N` tasks are complete")
	fl.StringVar(&f.hours, "hours", "", "for `N` hours; 90m works too")
	fl.StringVar(&f.until, "until", "", "until `HH:MM`, local time; one that is past is tomorrow's")
	fl.BoolVar(&f.noReady, "no-ready", false, "until no task is ready")
	fl.StringArrayVar(&f.ops, "op", nil, "only what is in the operation `ID`; may be repeated")
	fl.StringArrayVar(&f.tags, "tag", nil, "only tasks with the `TAG`; may be repeated")
	fl.StringArrayVar(&f.excluded, "exclude-tag", nil, "no tasks with the `TAG`; may be repeated")
	fl.BoolVar(&f.checkpoint, "checkpoint", true, "keep the target as it is before the sprint, under refs/pawl/checkpoints/")
	fl.BoolVar(&f.onError, "pause-on-error", false, "pause when a task fails")
	fl.BoolVar(&f.batch, "batch-review", false, "verified work waits for your review, all of it when the sprint has ended")
	a.pilotFlags(cmd, &p)
	return cmd
}

// target is the sprint's: of the flags, else of the configuration.
func (f *sprintFlags) target(c *config.Config) (config.SprintTarget, error) {
	var given []config.SprintTarget
	for _, flag := range []struct{ name, kind, value string }{
		{"count", config.TargetCount, f.count}, {"hours", config.TargetDuration, f.hours}, {"until", config.TargetUntilTime, f.until},
	} {
		if !f.set(flag.name) {
			continue
		}
		t, err := config.ParseTarget(flag.kind, flag.value)
		if err != nil {
			return t, usage("--%s %v", flag.name, err)
		}
		given = append(given, t)
	}
	if f.noReady {
		given = append(given, config.SprintTarget{Type: config.TargetNoReady})
	}
	switch len(given) {
	case 0:
		return c.Sprint.Target, nil
	case 1:
		return given[0], nil
	}
	return config.SprintTarget{}, usage("a sprint has one target: write --count, --hours, --until or --no-ready")
}

// targetJSON is a target as the statistics have it.
func targetJSON(t config.SprintTarget) schedule.SprintTarget {
	out := schedule.SprintTarget{Type: t.Type}
	switch t.Type {
	case config.TargetCount:
		out.Value = json.RawMessage(strconv.Itoa(t.Count))
	case config.TargetDuration:
		out.Value = json.RawMessage(strconv.FormatFloat(t.Duration.Std().Hours(), 'g', -1, 64))
	case config.TargetUntilTime:
		out.Value = json.RawMessage(strconv.Quote(time.Date(0, 1, 1, t.Hour, t.Minute, 0, 0, time.UTC).Format("15:04")))
	}
	return out
}

// sprint makes an autopilot a sprint.
func (s *session) sprint(ctx context.Context, f *sprintFlags, o *autopilot.Options) error {
	t, err := f.target(s.c)
	if err != nil {
		return err
	}
	now := time.Now()
	switch t.Type {
	case config.TargetCount:
		o.Settings.Count = t.Count
	case config.TargetDuration:
		o.Settings.Until = now.Add(t.Duration.Std())
	case config.TargetUntilTime:
		o.Settings.Until = schedule.NextTimeOfDay(now, t.Hour, t.Minute)
	}
	set, option := s.c.Sprint, s.c.Sprint.Options
	o.Settings.PauseOnError = option.PauseOnError || f.onError
	o.Settings.Batch = o.Settings.Batch || option.BatchReview || f.batch
	o.Settings.Mode, o.Settings.Keep = schedule.Auto, false
	o.Sprint = &autopilot.Sprint{Target: targetJSON(t), Settings: schedule.SprintSettings{
		MaxIterations: s.plan.Policy.MaxIterations, TaskTimeout: int(s.c.Autopilot.TaskTimeout.Std() / time.Minute),
		PauseOnStuck: s.c.Loop.PauseOnStuck, PauseOnErrors: o.Settings.ErrorThreshold > 0 || o.Settings.PauseOnError,
	}}
	o.Sprint.Checkpoint = option.CheckpointBefore
	if f.set("checkpoint") {
		o.Sprint.Checkpoint = f.checkpoint
	}
	o.Filter = sqlite.CaseFilter{
		Within: given(f.ops, set.Filters.IncludeOperations), Tags: given(f.tags, set.Filters.IncludeTags), NotTags: given(f.excluded, set.Filters.ExcludeTags),
	}
	return s.knownCases(ctx, o.Filter.Within)
}

// given is what flags say, else what the configuration does.
func given(flags, configured []string) []string {
	if len(flags) > 0 {
		return flags
	}
	return configured
}

// knownCases refuses a filter that can match nothing.
func (s *session) knownCases(ctx context.Context, ids []string) error {
	for i, id := range ids {
		ids[i] = board.Normal(id)
		if _, err := s.store.Case(ctx, ids[i]); err != nil {
			return action.Explain(err)
		}
	}
	return nil
}
