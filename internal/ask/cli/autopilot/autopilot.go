// Package autopilot has the commands that work the board, or look on while that is
// done: autopilot, sprint and top.
package autopilot

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/action/issues"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/serve"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/autopilot/overview"
	"github.com/pawl-dev/pawl/internal/do/engine/stopsignal"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Commands are the commands that work the board or look on.
func Commands(a *command.App) []*cobra.Command {
	list := []*cobra.Command{autopilotCommand(a), sprintCommand(a), topCommand(a)}
	if a.Cluster != nil {
		list = append(list, workerCommand(a))
	}
	return list
}

// autopilotFlags are those that autopilot and sprint share.
type autopilotFlags struct {
	run      planner.Flags
	parallel string
	semiAuto bool
	keep     bool
	serve    bool
	detach   bool
	sprint   *sprintFlags // nil: the autopilot is no sprint
}

func autopilotCommand(a *command.App) *cobra.Command {
	var f autopilotFlags
	cmd := command.Group("autopilot", "Work on the board: ready tasks, several at once, verified and landed",
		func(ctx context.Context) error { return workBoard(ctx, a, f) },
		askAutopilotCommand(a, store.AutopilotPause, "Start nothing new; runs pause at the end of their iteration"),
		askAutopilotCommand(a, store.AutopilotResume, "Continue after a pause"),
		askAutopilotCommand(a, store.AutopilotStop, "End the runs and the autopilot; the tasks go back to pending"),
		autopilotModeCommand(a), autopilotSlotsCommand(a), autopilotStatusCommand(a))
	addAutopilotFlags(cmd, &f)
	a.Checks[cmd] = func([]string) error { return f.checkFlags(a) }
	cmd.Flags().BoolVar(&f.semiAuto, "semi-auto", false, "start only what 'pawl case start' assigns")
	cmd.Flags().BoolVar(&f.keep, "keep", false, "keep running when nothing is left to do")
	cmd.Flags().BoolVar(&f.serve, "serve", false, "also serve the web UI, until the autopilot ends")
	return cmd
}

func addAutopilotFlags(cmd *cobra.Command, f *autopilotFlags) {
	fl := cmd.Flags()
	fl.StringVarP(&f.parallel, "max-parallel", "p", "", "work on `N` tasks at once")
	fl.StringVar(&f.run.Max, "max-iterations", "", "stop a task after `N` iterations")
	fl.StringVar(&f.run.MaxCost, "max-cost", "", "stop a task at `USD`")
	fl.StringVar(&f.run.Agent, "agent", "", "use the agent `NAME`")
	fl.StringVar(&f.run.Safety, "safety", "", "`LEVEL`: permissive, normal or paranoid")
	fl.BoolVar(&f.detach, "detach", false, "let the workers of the cluster drive it, and return at once")
	fl.BoolVar(&f.run.Unsandboxed, "unsandboxed", false, "run without a sandbox at every level; reports say so")
}

// configKeys returns the configuration keys that the flags set.
func (f autopilotFlags) configKeys() map[string]string {
	m := f.run.Paths()
	if f.parallel != "" {
		m["autopilot.max_parallel"] = f.parallel
	}
	if f.semiAuto {
		m["autopilot.mode"] = string(schedule.SemiAuto)
	}
	return m
}

// checkFlags refuses flags that cannot be meant.
func (f autopilotFlags) checkFlags(a *command.App) error {
	c, err := a.Load(f.configKeys())
	if err == nil && f.sprint != nil {
		_, err = f.sprint.sprintTarget(c)
	}
	if err == nil && f.detach {
		err = mayDetach(c)
	}
	return err
}

// workBoard works the board until its end.
func workBoard(ctx context.Context, a *command.App, f autopilotFlags) error {
	b, err := openWorkplace(ctx, a, f)
	if err != nil {
		return err
	}
	defer b.s.Close()
	leave, err := b.joinCluster(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if f.sprint != nil {
		if err := setUpSprint(ctx, b.s, f.sprint, &b.o); err != nil {
			return err
		}
	}
	if f.detach {
		return b.handOverToWorkers(ctx)
	}
	session.WarnNoGates(a, b.s.Plan, "Tasks complete")
	work := func() error { return runAutopilot(ctx, b.s, b.o, b.t.Verdict, b.screen) }
	if f.serve {
		return serve.Beside(ctx, a, b.s.Store, b.s.Config.Root, work)
	}
	return work()
}

// workplace is what works the board here.
type workplace struct {
	s      *session.Session
	t      *session.TaskPlanner
	o      autopilot.Options
	screen *autopilotScreen
	asked  map[string]string // by the flags
}

// openWorkplace makes all that is needed to work on tasks. The caller closes its session.
func openWorkplace(ctx context.Context, a *command.App, f autopilotFlags) (b workplace, err error) {
	if err := session.NotInside(a); err != nil {
		return b, err
	}
	c, err := a.Load(f.configKeys())
	if err != nil {
		return b, err
	}
	s := &session.Session{App: a, Config: c, StateDir: statedir.Of(c.Root, a.Env)}
	if s.Store, err = a.Database(ctx, c); err != nil {
		return b, err
	}
	b.s, b.screen, b.asked = s, &autopilotScreen{a: a}, f.run.Paths()
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	s.Store.OnWait(b.screen.showDatabaseWait)
	// What the repository lacks is reported before what the machine lacks.
	repo, err := git.Open(ctx, c.Root)
	if errors.Is(err, git.ErrNotRepository) {
		return b, command.Usage("the autopilot works in clones: %v", err).Hint("Make a repository: git init")
	}
	if err != nil {
		return b, command.Usage("%v", err)
	}
	if s.Target, err = action.LandingTarget(ctx, c, repo); err != nil {
		return b, err
	}
	b.screen.target = report.Line(command.BranchName(s.Target), 100)
	b.screen.checkedOut = func() string {
		head, _ := repo.Head(ctx) // it is only shown
		return report.Line(command.BranchName(head.Branch), 100)
	}
	if b.t, s.Plan, err = session.NewTaskPlanner(ctx, a, c, repo, s.StateDir, f.run); err != nil {
		return b, err
	}
	b.t.Store = s.Store
	session.Adapt(ctx, a, c, s.Store, &s.Plan.Policy)
	b.o, err = buildOptions(ctx, s, f, b.t, repo)
	return b, err
}

// watchAutopilot is the autopilot's screen, with hooks and notifications beside it.
func watchAutopilot(ctx context.Context, s *session.Session, v sandbox.Verdict,
	screen *autopilotScreen) func(autopilot.Notice) {
	s.StartHooksIn(s.HookBox(ctx, v), s.Plan.Safety == sandbox.Paranoid, screen.printWarning)
	if s.Hooks == nil {
		return screen.showNotice
	}
	told := session.NewAutopilotHooks(s.Hooks, command.BranchName(s.Target))
	return func(n autopilot.Notice) {
		screen.showNotice(n)
		told.Notice(ctx, n)
	}
}

// buildOptions combines the configuration and the flags.
func buildOptions(ctx context.Context, s *session.Session, f autopilotFlags, t *session.TaskPlanner,
	repo *git.Repo) (o autopilot.Options, err error) {
	c, target := s.Config, s.Target
	tree, err := workspace.Open(ctx, c.Root, workspace.Options{StateDir: s.StateDir, MaxFile: s.Plan.SnapshotMaxFile})
	if err == nil {
		err = tree.IgnoreOwnFolder()
	}
	if err != nil {
		s.App.Say("Warning: %v", err)
	}
	p := c.Autopilot
	var accounts []string
	for _, a := range s.Plan.Agents {
		accounts = append(accounts, a.Account)
	}
	o = autopilot.Options{
		Confirm: action.ConfirmPatterns(c),
		Root:    c.Root, StateDir: s.StateDir, Repo: repo, Store: s.Store,
		Racing:   autopilot.Racing{Race: p.RacingAgents(), PickBest: p.Pick == "best"},
		Accounts: planner.Accounts(c, s.App.Env), PlanAccounts: accounts,
		Settings: schedule.Settings{
			MaxParallel: p.MaxParallel, WIPLimit: p.WIPLimit, ErrorThreshold: p.ErrorThreshold,
			Mode: schedule.Mode(p.Mode), Keep: f.keep,
			Review: c.Review.Mode == "person", Batch: c.Review.Mode == "batch",
			Verify: len(s.Plan.Gates) > 0, WaitGreen: len(s.Plan.Gates) > 0 && p.OnRedTarget == "wait",
			TargetLimit: p.WaitForTarget.Std(),
		},
		Plan: t.Plan, Base: func(ctx context.Context) (string, error) { return repo.Find(ctx, target) },
	}
	o.ReviewWhen = autopilot.ReviewWhen(c.Review.When)
	o.Late = autopilot.Late{Gates: s.App.Planner(c, planner.Flags{}).LaterGates(),
		Every: c.Verification.LaterEvery.Std(), Revert: c.Merge.OnLateRed == "revert"}
	for i := range o.Late.Gates {
		o.Late.Gates[i].Doubted = true // a landing is blamed for it
	}
	o.Sweep = s.Sweep
	if !s.App.Interactive() { // at a terminal a person sees that it has paused
		o.Settings.PauseLimit = p.PauseLimit.Std()
	}
	if o.Pool, err = s.App.Pool(ctx, c, s.Store); err != nil {
		return o, err
	}
	m, err := t.Merge(ctx, repo, s.Store, s.Plan, o.Pool)
	if err != nil {
		return o, err
	}
	source, ok, err := session.Issues(ctx, s.App, c, repo, target, s.StateDir, m.Forge)
	if ok {
		p := *s.App.Operator(s.Store, c.Root)
		o.Sync = func(ctx context.Context, say func(string)) error {
			p := p
			p.Say = func(format string, args ...any) { say(fmt.Sprintf(format, args...)) }
			return issues.Sync(ctx, &p, source)
		}
		o.Claim = func(ctx context.Context, c board.Case) (string, error) { return issues.Claim(ctx, &p, source, c) }
	}
	o.Queue = func(ctx context.Context, tell func(queue.Note)) (*merge.Queue, error) {
		m := m // a worker opens one for each of its slots
		m.Notify = tell
		if s.Hooks != nil {
			m.Before = s.BeforeLanding(command.BranchName(target))
		}
		return merge.Open(ctx, m)
	}
	return o, err
}

// runAutopilot runs the autopilot with signals and screen attached.
func runAutopilot(ctx context.Context, s *session.Session, o autopilot.Options, v sandbox.Verdict,
	screen *autopilotScreen) error {
	sig := stopsignal.Catch()
	defer sig.Stop()
	o.Stops, o.Kill, o.Log = sig.Stops, sig.Kill, command.OpenLog(s.Config.Root)
	o.Notify = watchAutopilot(ctx, s, v, screen)
	res, err := drivenOnScreen(ctx, s, o, screen)
	if running, ok := errors.AsType[*store.RunningError](err); ok {
		return alreadyRuns(running)
	}
	if err != nil {
		return err
	}
	if s.App.JSON {
		if err := s.App.JSONLine(endEvent{"end", res.Exit, res.Why, res.Tally}); err != nil {
			return err
		}
	}
	bad := res.Exit == command.ExitFailed || res.Exit == command.ExitPerson
	if bad && s.App.Quiet {
		fmt.Fprintf(s.App.Stderr, "Autopilot ends: %s\n", report.Line(res.Why, 600))
	}
	saySummary(ctx, s, res)
	return command.ExitWith(res.Exit)
}

// saySummary prints the sprint's result, and what waits for a person.
func saySummary(ctx context.Context, s *session.Session, res autopilot.Result) {
	if res.Sprint != nil {
		s.App.Say("Sprint %s: %s, %d complete, %d failed. See it: pawl sprint show", res.Sprint.ID,
			fault.Numbered(res.Sprint.TotalTasks, "task"), res.Sprint.CompletedTasks, res.Sprint.FailedTasks)
	}
	v, err := overview.Read(context.WithoutCancel(ctx), s.Store, s.Config.Root)
	if err != nil {
		s.App.Say("Warning: cannot list what needs you: %v", err)
		return
	}
	printNeeds(v, s.App.Say)
}

// drivenOnScreen runs the autopilot below its dashboard where a person looks on,
// else behind plain lines.
func drivenOnScreen(ctx context.Context, s *session.Session, o autopilot.Options,
	screen *autopilotScreen) (res autopilot.Result, err error) {
	if s.App.Getenv("GOGC") == "" {
		debug.SetGCPercent(50) // it waits most of the time, beside many agents
	}
	if !s.App.Interactive() || s.App.Quiet {
		return autopilot.Run(ctx, o)
	}
	d := newDashboard(s.App, s.Store, s.Config.Root, "Ctrl+C ends it. In another terminal: pawl autopilot pause")
	screen.setCovered(true)
	err = d.drawDuring(ctx, func(wake func()) error {
		notify := o.Notify
		o.Notify = func(n autopilot.Notice) {
			notify(n)
			wake()
		}
		var err error
		res, err = autopilot.Run(ctx, o)
		return err
	})
	screen.setCovered(false)
	return res, err
}

// endEvent is the last line of `autopilot --json`.
type endEvent struct {
	Event string         `json:"event"`
	Exit  int            `json:"exit"`
	Why   string         `json:"why"`
	Tally schedule.Tally `json:"tally"`
}
