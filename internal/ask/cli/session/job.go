package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/terminal"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// shell is a command that a person wants run in a workspace as its agent sees it, without the
// agent's key.
type shell struct {
	a       *command.App
	c       *config.Config
	at      pool.Workspace
	person  *workspace.Checkout
	private *delivery.Workspace // at is that of a run: it is shown where the person's files are
	level   string
	leave   func() // removes the copy that at is; nil for a workspace
}

// Shell runs a command, or the person's shell, in the workspace of a run; or of a task, of
// whose run only kind and name are needed.
func Shell(ctx context.Context, a *command.App, p *action.Operator, r store.Run, args []string) error {
	a.Dir = cmp.Or(r.Root, a.Dir)
	c, err := a.Load(nil)
	if err != nil {
		return err
	}
	s := shell{a: a, c: c}
	err = s.findWorkspace(ctx, p, r)
	if errors.Is(err, errNoWorkspace) {
		err = s.copyWorkspace(ctx, p, r, err)
	}
	if s.leave != nil {
		defer s.leave()
	}
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e // it says what to do
	}
	if err != nil {
		show := map[bool]string{true: "case show " + r.Name, false: "show " + r.ID}[r.ID == ""]
		return fault.Of(fault.Refused, fmt.Errorf("cannot open the workspace of %s: %w", cmp.Or(r.ID, r.Name), err)).
			Hint("See what was done: pawl %s", show)
	}
	plan, policy, err := s.planCommand(ctx, action.SetupOf(r).Flags.Unsandboxed)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"/bin/sh"}
		if shell := a.Getenv("SHELL"); filepath.IsAbs(shell) {
			args[0] = shell
		}
	}
	return runBoxedCommand(ctx, a, process.Command{Args: args, Dir: plan.Root, Env: plan.Environ}, policy)
}

// findWorkspace finds the workspace.
func (s *shell) findWorkspace(ctx context.Context, p *action.Operator, r store.Run) error {
	setup, id, isTask := action.SetupOf(r), r.Name, r.Kind == string(loop.Task)
	if !isTask {
		id = setup.Private
		s.level = r.Level()
	} else if task, err := p.Store.Case(ctx, id); err != nil {
		return err
	} else if s.level, err = s.a.Planner(s.c, planner.Flags{}).TaskLevel(task); err != nil {
		return err
	}
	s.level = planner.StricterLevel(s.level, r.Level())
	if id == "" {
		return errNoWorkspace
	}
	clones, err := s.a.Pool(ctx, s.c, p.Store)
	if err != nil {
		return err
	}
	if s.person, err = p.RootTree(ctx, s.c.Root); err != nil {
		return err
	}
	at, there, err := clones.Find(ctx, id)
	if _, serr := os.Stat(at.Dir); err != nil || !there || serr != nil {
		return cmp.Or(err, errNoWorkspace)
	}
	if s.at = at; isTask {
		return nil
	}
	if s.private, err = delivery.View(ctx, s.person, at, r.ID); err == nil {
		s.a.Say("Note: this is the private workspace of run %s; what you change here is the run's.", r.ID)
	}
	return err
}

// copyWorkspace makes a copy of the work of a task whose workspace is on another machine: what was sent to the
// remote last. Without one it returns why.
func (s *shell) copyWorkspace(ctx context.Context, p *action.Operator, r store.Run, why error) error {
	if r.Kind != string(loop.Task) {
		return cmp.Or(p.CheckHere(ctx, r, "run shell"), why)
	}
	last, host, err := p.TaskElsewhere(ctx, r.Name)
	if err != nil || host == "" {
		return cmp.Or(err, why)
	}
	w, _, err := p.WorkBetween(ctx, last, 0, -1)
	if err != nil {
		return err
	}
	clones, err := s.a.Pool(ctx, s.c, p.Store)
	if err != nil {
		return err
	}
	if s.at, err = clones.Integration(ctx, w.To); err != nil {
		return err
	}
	s.level = planner.StricterLevel(s.level, last.Level())
	s.leave = func() { _ = clones.Release(context.WithoutCancel(ctx), s.at, pool.Landed) }
	s.a.Say("Note: %s", w.Said)
	s.a.Say("Its workspace is on %s; here is a copy, which is removed when the command ends.", host)
	return nil
}

var errNoWorkspace = errors.New("there is none here: a task gets one when its work starts, and a run outside of git " +
	"works in your own files")

// planCommand chooses the folder, the environment and the box of the command. The box is nil
// if the command runs without one.
func (s *shell) planCommand(ctx context.Context, unsandboxed bool) (plan runplan.Plan, box *sandbox.Policy, err error) {
	if plan, err = s.a.Planner(s.c, planner.Flags{}).Shell(s.level); err != nil {
		return plan, nil, err
	}
	l := &Landing{a: s.a, c: s.c, Repo: s.person.Repo, Plan: plan}
	if l.verdict, err = judgeSandbox(ctx, s.a, plan.Safety, unsandboxed, "the command"); err != nil {
		return plan, nil, err
	}
	top := s.at.Top
	plan.Root = s.at.Dir
	if s.private != nil {
		plan.Root, top = s.c.Root, s.person.Repo.Top
	}
	if l.verdict.Boxed {
		plan.Box = l.buildGateBox(ctx, plan.Root, top)
	}
	if s.private != nil {
		plan = runplan.InWorkspace(plan, s.private)
	}
	plan.Environ = append(plan.Environ, s.at.Env()...)
	if plan.Box == nil {
		return plan, nil, nil
	}
	plan.Environ = append(plan.Environ, plan.Box.Caches...)
	return plan, plan.Box.Setup.TempIn(filepath.Join(statedir.Of(s.c.Root, s.a.Env), "shell", s.at.ID)), nil
}

// runBoxedCommand runs a command for a person, or for a script.
func runBoxedCommand(ctx context.Context, a *command.App, job process.Command, policy *sandbox.Policy) error {
	var screen *os.File
	if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		defer func() { _ = tty.Close() }()
		if a.Interactive() {
			screen = tty
		}
	}
	status, err := terminal.Run(ctx, job, policy, screen)
	if by, ok := errors.AsType[terminal.SignalError](err); ok {
		return command.ExitWith(128 + int(by)) // as a shell says it
	}
	if err == nil && status != 0 {
		err = fault.Of(fault.Failed, fmt.Errorf("%s ended with status %d", job.Args[0], status))
	}
	return err
}
