package cli

import (
	"context"
	"errors"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/dashboard"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/merge"
	"github.com/pawl-dev/pawl/internal/planner"
	"github.com/pawl-dev/pawl/internal/queue"
	"github.com/pawl-dev/pawl/internal/ratelimit"
	"github.com/pawl-dev/pawl/internal/sandbox"
	"github.com/pawl-dev/pawl/internal/schedule"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace"
)

// pilotFlags are those that autopilot and sprint share.
type pilotFlags struct {
	run      planner.Flags
	parallel string
	semiAuto bool
	keep     bool
	serve    bool
	sprint   *sprintFlags // nil: the autopilot is no sprint
}

func (a *app) autopilotCommand() *cobra.Command {
	var f pilotFlags
	cmd := group("autopilot", "Work the board: ready tasks, several at once, verified and landed",
		func(ctx context.Context) error { return a.autopilot(ctx, f) },
		a.askAutopilotCommand(sqlite.AutopilotPause, "Start nothing new; runs rest at the end of their iteration"),
		a.askAutopilotCommand(sqlite.AutopilotResume, "Go on after a pause"),
		a.askAutopilotCommand(sqlite.AutopilotStop, "End the runs and the autopilot; the tasks go back to pending"),
		a.autopilotModeCommand(), a.autopilotStatusCommand())
	cmd.Long = "Work the board: the best ready tasks go into the free slots, one loop each, in a clone of its own.\n" +
		"What is verified goes to the merge queue. It ends when nothing is ready and nothing runs."
	cmd.Example = "  pawl autopilot\n  pawl autopilot --max-parallel 5 --keep\n  pawl autopilot pause     # from any terminal"
	a.pilotFlags(cmd, &f)
	cmd.Flags().BoolVar(&f.semiAuto, "semi-auto", false, "start only what 'pawl case start' assigns")
	cmd.Flags().BoolVar(&f.keep, "keep", false, "stay when nothing is left to do")
	cmd.Flags().BoolVar(&f.serve, "serve", false, "serve the web UI, too, until the autopilot ends")
	return cmd
}

func (a *app) pilotFlags(cmd *cobra.Command, f *pilotFlags) {
	fl := cmd.Flags()
	fl.StringVarP(&f.parallel, "max-parallel", "p", "", "work on `N` tasks at once")
	fl.StringVar(&f.run.Max, "max-iterations", "", "stop a task after `N` iterations")
	fl.StringVar(&f.run.MaxCost, "max-cost", "", "stop a task at `USD`")
	fl.StringVar(&f.run.Agent, "agent", "", "use the agent `NAME`")
	fl.StringVar(&f.run.Safety, "safety", "", "`LEVEL`: permissive, normal or paranoid")
	fl.BoolVar(&f.run.Unsandboxed, "unsandboxed", false, "run without a sandbox at every level; reports say so")
}

// paths are the configuration keys that the flags set.
func (f pilotFlags) paths() map[string]string {
	m := f.run.Paths()
	if f.parallel != "" {
		m["autopilot.max_parallel"] = f.parallel
	}
	if f.semiAuto {
		m["autopilot.mode"] = string(schedule.SemiAuto)
	}
	return m
}

// autopilot works the board until its end.
func (a *app) autopilot(ctx context.Context, f pilotFlags) error {
	if err := a.notInside(); err != nil {
		return err
	}
	c, err := a.load(f.paths())
	if err != nil {
		return err
	}
	s := &session{a: a, c: c, stateDir: config.StateDir(c.Root, a.env)}
	if s.store, err = sqlite.Open(ctx, filepath.Join(s.stateDir, "pawl.db")); err != nil {
		return err
	}
	defer s.close()
	screen := &pilotScreen{a: a}
	s.store.OnWait(screen.waits)
	// What the repository lacks is told before what the machine does.
	repo, err := git.Open(ctx, c.Root)
	if errors.Is(err, git.ErrNotRepository) {
		return usage("the autopilot works in clones: %v", err).Hint("Make a repository: git init")
	}
	if err != nil {
		return usage("%v", err)
	}
	if s.target, err = action.LandingTarget(ctx, c, repo); err != nil {
		return err
	}
	t, plan, err := a.newTaskPlanner(ctx, c, s.stateDir, f.run)
	if err != nil {
		return err
	}
	s.plan = plan
	o, err := s.pilotOptions(ctx, f, t, repo)
	if err != nil {
		return err
	}
	if f.sprint != nil {
		if err := s.sprint(ctx, f.sprint, &o); err != nil {
			return err
		}
	}
	a.warnNoGates(plan, "Tasks complete")
	if f.serve {
		return a.serveBeside(ctx, s.store, c.Root, func() error { return s.pilot(ctx, o, t.verdict, screen) })
	}
	return s.pilot(ctx, o, t.verdict, screen)
}

// tellOfPilot is the autopilot's screen, with hooks and notifications beside it.
func (s *session) tellOfPilot(ctx context.Context, v sandbox.Verdict, sprint bool, screen *pilotScreen) func(autopilot.Notice) {
	s.startHooksIn(s.hookBox(ctx, v), s.plan.Safety == sandbox.Paranoid, screen.warn)
	if s.hooks == nil {
		return screen.notice
	}
	told := newPilotTold(s.hooks, branchName(s.target), sprint)
	return func(n autopilot.Notice) {
		screen.notice(n)
		told.notice(ctx, n)
	}
}

// pilotOptions are what the configuration and the flags come to.
func (s *session) pilotOptions(ctx context.Context, f pilotFlags, t *taskPlanner, repo *git.Repo) (o autopilot.Options, err error) {
	c, target := s.c, s.target
	tree, err := workspace.Open(ctx, c.Root, workspace.Options{StateDir: s.stateDir, MaxFile: s.plan.SnapshotMaxFile})
	if err == nil {
		err = tree.Exclude(ctx)
	}
	if err != nil {
		s.a.say("Warning: %v", err)
	}
	p := c.Autopilot
	o = autopilot.Options{
		Root: c.Root, StateDir: s.stateDir, Repo: repo, Store: s.store, Accounts: ratelimit.NewStore(config.LimitsDir(s.a.env)),
		Settings: schedule.Settings{
			MaxParallel: p.MaxParallel, WIPLimit: p.WIPLimit, ErrorThreshold: p.ErrorThreshold, Mode: schedule.Mode(p.Mode), Keep: f.keep,
			Review: c.Review.Mode == "person", Batch: c.Review.Mode == "batch",
		},
		Plan: t.plan, Base: func(ctx context.Context) (string, error) { return repo.Find(ctx, target) },
	}
	if !s.a.interactive() { // at a terminal a person sees that it has paused
		o.Settings.PauseLimit = p.PauseLimit.Std()
	}
	if o.Pool, err = s.a.pool(ctx, c, s.store); err != nil {
		return o, err
	}
	m, err := t.merge(ctx, repo, s.store, s.plan, o.Pool)
	o.Queue = func(ctx context.Context, tell func(queue.Note)) (*merge.Queue, error) {
		m.Notify = tell
		if s.hooks != nil {
			m.Before = s.beforeLanding(branchName(target))
		}
		return merge.Open(ctx, m)
	}
	return o, err
}

// pilot runs the autopilot with signals and screen attached.
func (s *session) pilot(ctx context.Context, o autopilot.Options, v sandbox.Verdict, screen *pilotScreen) error {
	sig := engine.CatchSignals()
	defer sig.Stop()
	o.Stops, o.Kill, o.Log, o.Notify = sig.Stops, sig.Kill, openLog(s.c.Root), s.tellOfPilot(ctx, v, o.Sprint != nil, screen)
	res, err := s.watchedPilot(ctx, o, screen)
	var running *sqlite.RunningError
	if errors.As(err, &running) {
		return usage("the autopilot is already running: process %d on %s", running.Owner.PID, running.Owner.Host).
			Hint("See what it does: pawl autopilot status").Hint("Stop it:          pawl autopilot stop")
	}
	if err != nil {
		return err
	}
	if s.a.json {
		if err := s.a.jsonLine(pilotEnd{"end", res.Exit, res.Why, res.Tally}); err != nil {
			return err
		}
	}
	s.saySummary(ctx, res)
	return exitWith(res.Exit)
}

// saySummary tells of the sprint, and what waits for a person.
func (s *session) saySummary(ctx context.Context, res autopilot.Result) {
	if res.Sprint != nil {
		s.a.say("Sprint %s: %s, %d complete, %d failed. See it: pawl sprint show", res.Sprint.ID, console.Count(res.Sprint.TotalTasks, "task"), res.Sprint.CompletedTasks, res.Sprint.FailedTasks)
	}
	v, err := autopilot.Status(context.WithoutCancel(ctx), s.store, s.c.Root)
	if err != nil {
		s.a.say("Warning: what needs you cannot be listed: %v", err)
		return
	}
	printNeeds(v, s.a.say)
}

// watchedPilot runs the autopilot below its dashboard where a person looks on,
// else behind plain lines.
func (s *session) watchedPilot(ctx context.Context, o autopilot.Options, screen *pilotScreen) (res autopilot.Result, err error) {
	if s.a.getenv("GOGC") == "" {
		debug.SetGCPercent(50) // it waits most of the time, beside many agents
	}
	if !s.a.interactive() || s.a.quiet {
		return autopilot.Run(ctx, o)
	}
	screen.cover(true)
	err = dashboard.Own(ctx, s.a.dashboard(s.store, s.c.Root), func(err error) {
		screen.cover(false)
		s.a.say("Warning: the dashboard cannot go on: %v", err)
		s.a.say("  The autopilot goes on; look at it from another terminal with: pawl top")
	}, func(wake func()) error {
		notify := o.Notify
		o.Notify = func(n autopilot.Notice) {
			notify(n)
			wake()
		}
		var err error
		res, err = autopilot.Run(ctx, o)
		return err
	})
	screen.cover(false)
	return res, err
}

// pilotEnd is the last line of `autopilot --json`.
type pilotEnd struct {
	Event string         `json:"event"`
	Exit  int            `json:"exit"`
	Why   string         `json:"why"`
	Tally schedule.Tally `json:"tally"`
}
