package autopilot

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/quantity"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/autopilot/overview"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// askAutopilotCommand asks the autopilot that runs. A stop waits for its end.
func askAutopilotCommand(a *command.App, kind, short string) *cobra.Command {
	return command.OnBoard(a, kind, short, func(ctx context.Context, p *action.Operator) error {
		return p.AskAutopilot(ctx, kind, "", true)
	})
}

func autopilotModeCommand(a *command.App) *cobra.Command {
	return command.Leaf("mode auto|semi-auto", "Switch who chooses tasks: the autopilot, or you with 'pawl case start'",
		command.ExactlyOne("a mode"),
		func(ctx context.Context, args []string) error {
			if m := schedule.Mode(args[0]); m != schedule.Auto && m != schedule.SemiAuto {
				return command.Usage("unknown mode %q: write auto or semi-auto", args[0])
			}
			return a.WithOperator(ctx, func(p *action.Operator) error {
				return p.AskAutopilot(ctx, store.AutopilotMode, args[0], true)
			})
		})
}

func autopilotSlotsCommand(a *command.App) *cobra.Command {
	return command.Leaf("slots N", "Change how many tasks are worked on at once; running tasks continue",
		command.ExactlyOne("a number"),
		func(ctx context.Context, args []string) error {
			if n, err := strconv.Atoi(args[0]); err != nil || n < 1 {
				return command.Usage("%q is not a number of tasks: write 1 or more", args[0])
			}
			return a.WithOperator(ctx, func(p *action.Operator) error {
				return p.AskAutopilot(ctx, store.AutopilotSlots, args[0], true)
			})
		})
}

func autopilotStatusCommand(a *command.App) *cobra.Command {
	return command.OnBoard(a, "status", "Show what the autopilot does: slots, board, what needs you",
		func(ctx context.Context, p *action.Operator) error {
			v, err := overview.Read(ctx, p.Store, p.Root)
			if err != nil {
				return err
			}
			if a.JSON {
				return a.Document(v)
			}
			printAutopilot(a, v)
			return nil
		})
}

func printAutopilot(a *command.App, v overview.View) {
	printPhase(a, v)
	slotTable(a, v)
	a.Result("Board:  ")
	for _, s := range board.Statuses {
		if n := v.Board[s]; n > 0 {
			a.Result("%d %s  ", n, s)
		}
	}
	a.Result("(%d ready)\n", v.Ready)
	if v.Queued > 0 {
		a.Result("Queue:  %d on their way to the target\n", v.Queued)
	}
	for _, line := range v.Away {
		a.Result("Away:   %s\n", report.Line(line, 400))
	}
	for _, line := range v.Lines() {
		a.Result("Waits for: %s\n", report.Line(line, 300))
	}
	for _, plan := range v.Plans {
		a.Result("Used:   %s\n", report.Line(plan, 200))
	}
	t := v.Tally
	a.Result("So far: %d complete, %d landed, %d failed, %d timed out, %d blocked\n", t.Completed, t.Landed, t.Failed,
		t.TimedOut, t.Blocked)
	printNeeds(v, func(format string, args ...any) { a.Result(format+"\n", args...) })
}

// printPhase prints whether an autopilot works here, or how the last one ended.
func printPhase(a *command.App, v overview.View) {
	switch {
	case v.Session == "":
		a.Result("No autopilot has run here. Start one with: pawl autopilot\n")
	case v.Running:
		phase, color := v.Phase, "33"
		if phase == string(schedule.Running) {
			color = "32"
		}
		if v.Sprint != "" {
			phase += " for the sprint " + v.Sprint
		}
		a.Result("The autopilot is %s (%s), process %d on %s, since %s%s\n", a.Painted(color, phase), v.Mode, v.PID,
			report.Line(v.Host, 60), command.Minute(v.StartedAt), command.Aside(v.PhaseReason()))
	case v.Waits:
		a.Result("The autopilot is on (%s); the next worker that starts drives it: pawl-cluster worker\n", v.Phase)
	case v.Phase == string(schedule.Finished):
		a.Result("The autopilot has ended, %s%s\n", command.Minute(v.EndedAt), command.Aside(v.Why))
	default:
		a.Result("The autopilot was killed. Start it again with 'pawl autopilot'; it cleans up after the old one.\n")
	}
}

// printEvents lists what the autopilot did last, the latest first.
func printEvents(a *command.App, events []overview.Event) {
	if len(events) > 0 {
		a.Result("Last:\n")
	}
	for _, e := range events {
		text := strings.TrimSpace(e.Task.Case + " " + e.Kind)
		switch e.Kind {
		case journal.TaskStarted:
			text = e.Task.Case + " started"
		case journal.TaskLanded:
			text = e.Task.Case + " landed"
		case journal.TaskSettled:
			text = e.Task.Case + " " + board.Action(e.Task.Action).Outcome()
		case journal.Alerted:
			text = "attention"
		}
		for _, more := range lists.NonEmpty(e.Text, e.Task.Why) {
			text += ": " + report.Line(more, 200)
		}
		a.Result("  %s  %s\n", e.At.Local().Format(time.TimeOnly), text)
	}
}

// printNeeds lists what waits for a person, and what to do about each.
func printNeeds(v overview.View, line func(format string, args ...any)) {
	if len(v.NeedsYou) > 0 || v.QueueHeld != "" {
		line("Needs you:")
	}
	if v.QueueHeld != "" {
		line("  %s", report.Line(v.QueueHeld, 300))
		line("    pawl queue")
	}
	for _, n := range v.NeedsYou {
		line("  %s %s: %s%s", n.Case, n.What, report.Line(n.Title, 80), command.Aside(n.Why))
		line("    %s", suggestCommands(n))
	}
}

// suggestCommands returns the commands by which a person can handle an entry. They can be
// pasted as they are.
func suggestCommands(n overview.Need) string {
	look, next, retry := "pawl show "+n.Case, n.NextCommand(), "pawl case retry "+n.Case
	then := next
	switch {
	case n.What == board.Review:
		look += " --diff"
		then += fmt.Sprintf(", pawl case redo %[1]s --feedback TEXT, or pawl case reject %[1]s", n.Case)
	case n.Parked:
		own := ""
		if n.Conflict {
			own = "pawl queue add " + n.Case + " --commit BRANCH, to land your own merge of it, "
		}
		look, then = look+" --diff", own+next+" to land it again, or "+retry+" for another attempt"
	case n.What == board.Blocked && !n.Asks && n.Run != "":
		then += " to continue with its work, or " + retry + " for another attempt"
	case n.Run != "" && next != retry:
		then += ", or " + retry
	}
	if n.Run == "" {
		look = "pawl case show " + n.Case
	}
	return look + ", then " + then
}

func slotTable(a *command.App, v overview.View) {
	var rows [][]any
	cost := func(c loop.MicroUSD, known, partial bool) string {
		return cmp.Or(loop.Money(c, known, partial), "unknown")
	}
	for _, l := range v.Slots {
		phase, does := l.Phase, l.Activity
		if phase == string(schedule.Working) && l.Status == string(loop.Waiting) {
			phase, does = "waiting", strings.TrimPrefix(does, "waits: ")
		}
		if l.Host != "" {
			does = l.Host + ": " + does
		}
		rows = append(rows, []any{
			l.Case, l.Run, phase, console.Of(l.Iteration, l.MaxIterations), loop.Duration(l.Elapsed),
			cost(l.Cost, l.CostKnown, l.CostPartial), report.Line(does, 40), report.Line(l.Title, 60),
		})
		for _, r := range l.Racers {
			rows = append(rows, []any{
				"  " + r.Agent, r.Run, r.Status, console.Of(r.Iteration, r.MaxIterations), "",
				cost(r.Cost, r.CostKnown, r.CostPartial), "", "",
			})
		}
	}
	if len(rows) > 0 {
		a.Table("TASK\tRUN\tSLOT\tITERATION\tELAPSED\tCOST\tDOES\tTITLE", rows, 0)
	}
}

// sprintFlags are those of sprint alone.
type sprintFlags struct {
	count, hours, until, plan  string
	noReady                    bool
	ops, tags, excluded        []string
	checkpoint, onError, batch bool
	set                        func(name string) bool // a flag was given
}

func sprintCommand(a *command.App) *cobra.Command {
	var f sprintFlags
	p := autopilotFlags{sprint: &f}
	cmd := command.Group("sprint", "Work on the board up to a target: a number of tasks, a time, or no ready task",
		func(ctx context.Context) error { return workBoard(ctx, a, p) },
		sprintListCommand(a), sprintShowCommand(a))
	f.set = func(name string) bool { return cmd.Flags().Changed(name) }
	fl := cmd.Flags()
	fl.StringVar(&f.count, "count", "", "until `N` tasks are complete")
	fl.StringVar(&f.hours, "hours", "", "for `N` hours; 90m works too")
	fl.StringVar(&f.until, "until", "", "until `HH:MM`, local time; one that is past is tomorrow's")
	fl.StringVar(&f.plan, "plan", "", "until `PERCENT` of a subscription's window is used, e.g. 80%")
	fl.BoolVar(&f.noReady, "no-ready", false, "until no task is ready")
	fl.StringArrayVar(&f.ops, "op", nil, "only tasks of the operation `ID`; may be repeated")
	fl.StringArrayVar(&f.tags, "tag", nil, "only tasks with the `TAG`; may be repeated")
	fl.StringArrayVar(&f.excluded, "exclude-tag", nil, "no tasks with the `TAG`; may be repeated")
	fl.BoolVar(&f.checkpoint, "checkpoint", true,
		"save the target under refs/pawl/checkpoints/ before the sprint")
	fl.BoolVar(&f.onError, "pause-on-error", false, "pause when a task fails")
	fl.BoolVar(&f.batch, "batch-review", false, "hold all verified work for your review at the end of the sprint")
	addAutopilotFlags(cmd, &p)
	a.Checks[cmd] = func([]string) error { return p.checkFlags(a) }
	return cmd
}

// sprintTarget takes the target from the flags, else from the configuration.
func (f *sprintFlags) sprintTarget(c *config.Config) (quantity.SprintTarget, error) {
	var given []quantity.SprintTarget
	for _, flag := range []struct{ name, kind, value string }{
		{"count", quantity.TargetCount, f.count}, {"hours", quantity.TargetDuration, f.hours},
		{"until", quantity.TargetUntilTime, f.until}, {"plan", quantity.TargetPlan, f.plan},
	} {
		if !f.set(flag.name) {
			continue
		}
		t, err := quantity.ParseTarget(flag.kind, flag.value)
		if err != nil {
			return t, command.Usage("--%s %v", flag.name, err)
		}
		given = append(given, t)
	}
	if f.noReady {
		given = append(given, quantity.SprintTarget{Type: quantity.TargetNoReady})
	}
	switch len(given) {
	case 0:
		return c.Sprint.Target, nil
	case 1:
		return given[0], nil
	}
	return quantity.SprintTarget{}, command.Usage(
		"a sprint has one target: write --count, --hours, --until, --plan or --no-ready")
}

// targetJSON is a target as the statistics have it.
func targetJSON(t quantity.SprintTarget) schedule.SprintTarget {
	out := schedule.SprintTarget{Type: t.Type}
	switch t.Type {
	case quantity.TargetCount:
		out.Value = json.RawMessage(strconv.Itoa(t.Count))
	case quantity.TargetDuration:
		out.Value = json.RawMessage(strconv.FormatFloat(t.Duration.Std().Hours(), 'g', -1, 64))
	case quantity.TargetPlan:
		out.Value = json.RawMessage(strconv.Itoa(int(t.Plan)))
	case quantity.TargetUntilTime:
		out.Value = json.RawMessage(strconv.Quote(time.Date(0, 1, 1, t.Hour, t.Minute, 0, 0, time.UTC).Format("15:04")))
	}
	return out
}

// setUpSprint makes an autopilot a sprint.
func setUpSprint(ctx context.Context, s *session.Session, f *sprintFlags, o *autopilot.Options) error {
	t, err := f.sprintTarget(s.Config)
	if err != nil {
		return err
	}
	now := time.Now()
	switch t.Type {
	case quantity.TargetCount:
		o.Settings.Count = t.Count
	case quantity.TargetDuration:
		o.Settings.Until = now.Add(t.Duration.Std())
	case quantity.TargetPlan:
		o.Settings.Plan = int(t.Plan)
	case quantity.TargetUntilTime:
		o.Settings.Until = schedule.NextTimeOfDay(now, t.Hour, t.Minute)
	}
	set, option := s.Config.Sprint, s.Config.Sprint.Options
	o.Settings.PauseOnError = option.PauseOnError || f.onError
	o.Settings.Batch = o.Settings.Batch || option.BatchReview || f.batch
	o.Settings.Mode, o.Settings.Keep, o.Settings.GreenFirst = schedule.Auto, false, o.Settings.Until.IsZero()
	o.Sprint = &autopilot.Sprint{Target: targetJSON(t), Settings: schedule.SprintSettings{
		MaxIterations: s.Plan.Policy.MaxIterations, TaskTimeout: int(s.Config.Autopilot.TaskTimeout.Std() / time.Minute),
		PauseOnStuck: s.Config.Loop.PauseOnStuck, PauseOnErrors: o.Settings.ErrorThreshold > 0 || o.Settings.PauseOnError,
	}}
	o.Sprint.Checkpoint = option.CheckpointBefore
	if f.set("checkpoint") {
		o.Sprint.Checkpoint = f.checkpoint
	}
	o.Filter = store.CaseFilter{
		Within: firstGiven(f.ops, set.Filters.IncludeOperations), Tags: firstGiven(f.tags, set.Filters.IncludeTags),
		NotTags: firstGiven(f.excluded, set.Filters.ExcludeTags),
	}
	return knownCases(ctx, s, o.Filter.Within)
}

func firstGiven(flags, configured []string) []string {
	if len(flags) > 0 {
		return flags
	}
	return configured
}

// knownCases refuses a filter that can match nothing.
func knownCases(ctx context.Context, s *session.Session, ids []string) error {
	for i, id := range ids {
		ids[i] = board.Normal(id)
		if _, err := s.Store.Case(ctx, ids[i]); err != nil {
			return action.Explain(err)
		}
	}
	return nil
}

// mostSprints is how many are listed.
const mostSprints = 1000

func sprintListCommand(a *command.App) *cobra.Command {
	return command.Plain("list", "List the sprints, newest first", func(ctx context.Context) error {
		return withSprints(ctx, a, func(live string, list []schedule.SprintStats) error {
			return listSprints(a, live, list)
		})
	})
}

// withSprints reads the sprints of the repository, and which of them is running.
func withSprints(ctx context.Context, a *command.App, do func(live string, list []schedule.SprintStats) error) error {
	return a.WithOperator(ctx, func(p *action.Operator) error {
		rows, err := p.Store.Sprints(ctx, mostSprints)
		if err != nil {
			return err
		}
		list := make([]schedule.SprintStats, len(rows))
		for i, row := range rows {
			if err := json.Unmarshal(row.Stats, &list[i]); err != nil {
				return fmt.Errorf("cannot read the statistics of sprint %s: %v", row.ID, err)
			}
		}
		pilot, _, err := p.Store.Autopilot(ctx)
		if err != nil {
			return err
		}
		live := ""
		if storedrun.Alive(pilot.Owner) {
			live = pilot.Sprint
		}
		return do(live, list)
	})
}

func listSprints(a *command.App, live string, list []schedule.SprintStats) error {
	return command.Listing(a, list, "No sprints yet. Start one with: pawl sprint --count 10",
		"SPRINT\tSTARTED\tTOOK\tTARGET\tTASKS\tCOMPLETE\tFAILED\tREVIEWING", func(s schedule.SprintStats) command.Row {
			return command.Row{JSON: s, Cells: []any{
				s.ID, command.Minute(time.UnixMilli(s.StartedAt)), formatElapsed(s, live), targetWords(s.Target),
				s.TotalTasks, s.CompletedTasks, s.FailedTasks, s.ReviewingTasks,
			}}
		})
}

// formatElapsed returns the duration of a sprint, or "runs" if it is the one called live. Any
// other sprint without an end was cut off; the next start of the autopilot stores its end.
func formatElapsed(s schedule.SprintStats, live string) string {
	switch {
	case s.EndedAt == nil && s.ID == live:
		return "runs"
	case s.EndedAt == nil:
		return "interrupted"
	}
	return loop.Duration(time.Duration(*s.EndedAt-s.StartedAt) * time.Millisecond)
}

func targetWords(t schedule.SprintTarget) string {
	return strings.TrimSpace(t.Type + " " + strings.Trim(string(t.Value), `"`))
}

func sprintShowCommand(a *command.App) *cobra.Command {
	return command.Leaf("show [ID]", "Show a sprint, task by task; the last one without an id", command.AtMost(1),
		func(ctx context.Context, args []string) error {
			return withSprints(ctx, a, func(live string, list []schedule.SprintStats) error {
				for _, s := range list {
					if len(args) == 0 || s.ID == args[0] {
						return showSprint(a, live, s)
					}
				}
				return command.Usage("there is no such sprint").Hint("List them: pawl sprint list")
			})
		})
}

func showSprint(a *command.App, live string, s schedule.SprintStats) error {
	if a.JSON {
		return a.Document(s)
	}
	how := formatElapsed(s, live)
	if s.EndedAt != nil {
		how = "took " + how
	}
	a.Result("Sprint %s, %s, %s, target %s\n", s.ID, command.Minute(time.UnixMilli(s.StartedAt)), how,
		targetWords(s.Target))
	line := fmt.Sprintf("%s: %d complete", fault.Numbered(s.TotalTasks, "task"), s.CompletedTasks)
	if s.ReviewingTasks > 0 {
		line += fmt.Sprintf(" (%d for your review)", s.ReviewingTasks)
	}
	line += fmt.Sprintf(", %d failed", s.FailedTasks)
	if rest := s.TotalTasks - s.CompletedTasks - s.FailedTasks; rest > 0 {
		line += fmt.Sprintf(", %d not done", rest)
	}
	a.Result("%s\n", line)
	var rows [][]any
	for _, t := range s.TaskStats {
		done, verified := "-", "no"
		if s.EndedAt == nil && s.ID == live {
			done = "runs"
		}
		if t.CompletedAt > 0 {
			done = loop.Duration(time.Duration(t.CompletedAt-t.StartedAt) * time.Millisecond)
		}
		if t.VerificationPassed {
			verified = "yes"
		}
		rows = append(rows, []any{t.TaskID, t.Iterations, done, verified, t.ReviewDecision})
	}
	if len(rows) > 0 {
		a.Table("TASK\tITERATIONS\tTOOK\tVERIFIED\tREVIEW", rows, 0)
	}
	return nil
}
