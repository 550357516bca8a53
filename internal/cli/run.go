package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/hook"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/planner"
	"github.com/pawl-dev/pawl/internal/prompt"
	"github.com/pawl-dev/pawl/internal/ratelimit"
	"github.com/pawl-dev/pawl/internal/sandbox"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/telemetry"
	"github.com/pawl-dev/pawl/internal/workspace"
)

func (a *app) runCommand() *cobra.Command {
	var f planner.Flags
	var dry, fresh, iterate bool
	cmd := leaf("run NAME|FILE.yaml", "Run a procedure, or a workflow", cobra.ArbitraryArgs, func(ctx context.Context, args []string) error {
		isWorkflow := len(args) == 1 && isFile(args[0])
		name, err := "", error(nil)
		if !isWorkflow {
			name, err = a.oneProcedure(args)
		}
		if err == nil && !dry {
			err = a.notInside()
		}
		if err != nil {
			return err
		}
		if isWorkflow {
			f.File, f.Iterate = args[0], iterate
			return a.runWorkflow(ctx, f, dry, fresh)
		}
		return a.run(ctx, name, f, dry, fresh)
	})
	cmd.Long = "Run a procedure: one fresh agent process after the other, each verified by the gates,\n" +
		"until the agent's COMPLETE is confirmed, a limit is reached, or a guard says stop.\n" +
		"A workflow file is run once; with --iterate until all its steps are done or a limit is reached."
	cmd.Example = "  pawl run build\n  pawl run build -n 5 --max-cost 2\n  pawl run build --dry-run\n  pawl run audit.yaml --dry-run\n" +
		"  pawl run audit.yaml --iterate --max-iterations 20"
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		c, err := a.load(nil)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return slices.Sorted(maps.Keys(c.Procedures)), cobra.ShellCompDirectiveNoFileComp
	}
	limitFlags(cmd, &f)
	fl := cmd.Flags()
	fl.StringVar(&f.Agent, "agent", "", "use the agent `NAME`")
	fl.StringVar(&f.AgentCmd, "agent-cmd", "", "use `\"CMD ARGS\"` as the agent; the prompt comes on stdin")
	fl.StringArrayVarP(&f.Context, "context", "c", nil, "add `TEXT|FILE` to the prompt; may be repeated")
	fl.StringVar(&f.Strategy, "strategy", "", "`NAME`: auto, conservative, aggressive, or one strategy for the whole run")
	fl.BoolVar(&dry, "dry-run", false, "print the prompt, or a workflow's plan, and run nothing")
	fl.BoolVar(&fresh, "fresh", false, "start anew although an earlier run could be resumed")
	fl.BoolVar(&iterate, "iterate", false, "go over a workflow again until all its steps are done (procedures always iterate)")
	fl.StringVar(&f.Checkpoint, "checkpoint-interval", "", "`N` iterations between full checkpoints of a workflow")
	return cmd
}

// notInside refuses a run that an agent or a gate of a run starts: it could
// start itself again and again, and its records are out of its sandbox's reach.
func (a *app) notInside() error {
	if run := a.getenv("PAWL_RUN"); run != "" {
		return usage("cannot start a run inside of run %s: an agent or a check of it called pawl run", run).
			Hint("An agent asks what to do next with: pawl check").
			Hint("To start it all the same, take PAWL_RUN out of its environment: env -u PAWL_RUN pawl run …")
	}
	return nil
}

// limitFlags are those that run and resume share.
func limitFlags(cmd *cobra.Command, f *planner.Flags) {
	fl := cmd.Flags()
	fl.StringVarP(&f.Max, "max-iterations", "n", "", "stop after `N` iterations; 0 is unlimited")
	fl.StringVar(&f.MaxCost, "max-cost", "", "stop at `USD`")
	fl.StringVar(&f.Timeout, "timeout", "", "stop after `DURATION` of wall clock, waits included")
	fl.StringVar(&f.Safety, "safety", "", "`LEVEL`: permissive, normal or paranoid")
	fl.BoolVar(&f.Unsandboxed, "unsandboxed", false, "run without a sandbox at every level; reports say so")
}

// oneProcedure checks the arguments of run.
func (a *app) oneProcedure(args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	if len(args) > 1 {
		return "", usage("one procedure at a time: got %s", strings.Join(args, " ")).Hint("Each 'pawl run' drives one; start another in a second terminal")
	}
	c, err := a.load(nil)
	if err != nil {
		return "", err
	}
	names := slices.Sorted(maps.Keys(c.Procedures))
	if len(names) == 0 {
		return "", usage("name a procedure: %s defines none", c.Name()).Hint("Write one with: pawl init")
	}
	e := usage("name a procedure: pawl run NAME")
	for _, n := range names {
		e = e.Hint("%-16s %s", n, c.Procedures[n].Summary)
	}
	return "", e
}

func isFile(arg string) bool {
	return strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml") || strings.Contains(arg, "/")
}

func (a *app) run(ctx context.Context, name string, f planner.Flags, dry, fresh bool) error {
	c, err := a.load(f.Paths())
	if err != nil {
		return err
	}
	if dry {
		return a.dryRun(c, name, f)
	}
	plan, err := a.planner(c, f).Procedure(name)
	if err != nil {
		return err
	}
	s, err := a.open(ctx, c, plan, f.Unsandboxed)
	if err != nil {
		return err
	}
	defer s.close()
	return s.start(ctx, f, fresh)
}

// start starts the run, or goes on with an earlier one where the person wants that.
func (s *session) start(ctx context.Context, f planner.Flags, fresh bool) error {
	err := s.mayStart(ctx, fresh)
	switch {
	case errors.Is(err, errResumeInstead):
		return s.a.resume(ctx, s.plan.Name, f)
	case err != nil:
		return err
	}
	s.preamble()
	return s.drive(ctx, engine.Start)
}

// dryRun prints what the first iteration would be told. It touches neither
// state nor lock, and does not need the agent to be installed.
func (a *app) dryRun(c *config.Config, name string, f planner.Flags) error {
	in, command, err := a.planner(c, f).DryRun(name)
	if err != nil {
		return err
	}
	text, err := prompt.Compose(in)
	if err != nil {
		return fault.Of(fault.Refused, err)
	}
	a.result("%s", prompt.DryRun(text, name, command, in.Budget))
	if text.Over {
		a.say("WARNING: Prompt exceeds token budget: %s > %s", prompt.Thousands(text.Tokens), prompt.Thousands(in.Budget))
	}
	return nil
}

// session is one run or resume in this process.
type session struct {
	a        *app
	c        *config.Config
	plan     engine.Plan
	stateDir string
	cache    string // the tools' caches; "" is in stateDir
	store    *sqlite.Store
	tree     *workspace.Checkout
	screen   *console.Screen
	work     engine.Work // of a workflow
	// agentPolicy is the box of one more agent, where there are boxes.
	agentPolicy func(name string, ag engine.Agent) sandbox.Policy

	hooks   *hook.Runner // nil: nobody is told
	showing sync.Mutex   // over screen and running while hooks may report
	running string       // the run's id, once it is known
	target  string       // of the autopilot's landings
}

// open makes ready what a run works with. What is not there is said once: no
// database, no git, no sandbox.
func (a *app) open(ctx context.Context, c *config.Config, plan engine.Plan, unsandboxed bool) (*session, error) {
	s := &session{a: a, c: c, plan: plan, stateDir: config.StateDir(c.Root, a.env)}
	s.screen = console.New(a.terminal(), plan.Name)
	store, err := sqlite.Open(ctx, filepath.Join(s.stateDir, "pawl.db"))
	switch {
	case errors.Is(err, sqlite.ErrNewer):
		return nil, fault.Of(fault.Refused, err)
	case err != nil && plan.Policy.Kind != loop.Procedure:
		return nil, err
	case err != nil:
		a.say("Warning: %v", err)
		a.say("Warning: the run is not recorded and cannot be resumed after a crash; its limits hold.")
	}
	if s.store = store; store != nil {
		store.OnWait(func(holder string) { s.warn(lockedBy(holder)) })
	}
	s.openTree(ctx)
	if err := s.box(ctx, unsandboxed); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// openTree opens the work tree, where there is one.
func (s *session) openTree(ctx context.Context) {
	tree, err := workspace.Open(ctx, s.c.Root, workspace.Options{StateDir: s.stateDir, MaxFile: s.plan.SnapshotMaxFile})
	switch {
	case errors.Is(err, git.ErrNotRepository), errors.Is(err, git.ErrNoGit):
		s.a.say("Note: %v; no snapshots are taken, so nothing can be rolled back.", err)
		return
	case err != nil:
		s.a.say("Warning: no snapshots: %v", err)
		return
	}
	s.tree = tree
	notes, err := tree.Repo.AfterBoot(ctx, s.stateDir)
	for _, note := range notes {
		s.a.say("Warning: %s.", note)
	}
	if err = errors.Join(err, tree.Exclude(ctx)); err != nil {
		s.a.say("Warning: %v", err)
	}
}

func (s *session) close() {
	s.hooks.Close(context.Background())
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			s.a.say("Warning: %v", err)
		}
	}
}

// preamble says what a person should know before money is spent.
func (s *session) preamble() {
	plan := &s.plan
	isProcedure := plan.Policy.Kind == loop.Procedure
	if isProcedure {
		s.a.warnNoGates(s.plan, plan.Name+" completes")
	}
	names := slices.Sorted(maps.Keys(plan.Agents))
	if isProcedure {
		names = []string{plan.Policy.Agent}
	}
	for _, name := range names {
		if a := plan.Agents[name].Adapter; s.c.IsSet("loop.max_cost") && !a.LiveUsage() && !a.Structured() {
			s.a.say("Warning: the cost limit cannot be enforced: the cost of agent %q is unknown.", name)
		}
	}
	if !plan.Policy.Once {
		s.warnFixedStrategy(&plan.Policy)
	}
	if plan.Policy.Agent != "" {
		s.sayWithheld(s.plan)
	}
}

// warnNoGates says that nothing is verified; completes is who or what then completes.
func (a *app) warnNoGates(plan engine.Plan, completes string) {
	if len(plan.Gates) == 0 {
		a.say("Warning: No verification commands configured")
		a.say("  %s on COMPLETE without validation. Suggestion: add to pawl.yaml:", completes)
		a.say("    verification: [%q]", "go test ./...")
	}
}

// mayStart refuses a second start, and asks before an earlier run that could
// go on is left behind.
func (s *session) mayStart(ctx context.Context, fresh bool) error {
	path := engine.StateFilePath(s.plan.Root, s.plan.Name)
	file, ferr := engine.ReadStateFile(path)
	if ferr != nil && !errors.Is(ferr, engine.ErrNoStateFile) {
		to, err := engine.KeepAside(path)
		if err != nil {
			s.a.say("Warning: %v", err)
		} else {
			s.a.say("Warning: %v; it was renamed to %s", ferr, filepath.Base(to))
		}
	}
	if ferr != nil {
		file = engine.StateFile{} // says nothing
	}
	if s.store != nil {
		last, err := s.store.Latest(ctx, s.plan.Root, s.plan.Name)
		if err == nil {
			err = s.mayFollow(ctx, last, errors.Is(ferr, engine.ErrNoStateFile), fresh)
			if err != nil || !foreign(file, last) {
				return err
			}
		} else if !errors.Is(err, sqlite.ErrNotFound) {
			return err
		}
	}
	if fresh {
		return nil
	}
	return s.mayFollowFile(file, path)
}

// mayFollow decides by the last run of this procedure.
func (s *session) mayFollow(ctx context.Context, last sqlite.Run, noFile, fresh bool) error {
	st := loop.Status(last.Status)
	if engine.Alive(last.Owner) {
		return usage("%s is already running: run %s, process %d", s.plan.Name, last.ID, last.Owner.PID).
			Hint("Watch it: pawl logs %s -f", last.ID).Hint("Stop it:  pawl stop %s", last.ID)
	}
	if st.Active() {
		if left, ok := unattended(ctx, s.stateDir, last.ID); ok {
			return usage("%s is running unattended: its pawl is gone, the agent ends in %s", s.plan.Name, left).
				Hint("Take it up again: pawl resume %s", s.plan.Name)
		}
		st = loop.Interrupted
	}
	waits := st == loop.Interrupted || st == loop.Stopped || st == loop.Paused || st == loop.Pending
	if !waits || noFile && !loop.Status(last.Status).Active() {
		return nil
	}
	if fresh {
		return engine.Archive(ctx, s.store, last.ID, "left behind by --fresh")
	}
	if s.a.interactive() {
		return s.offer(ctx, last, st)
	}
	return usage("%s can be resumed: run %s is %s after iteration %d", s.plan.Name, last.ID, st, last.Iteration).
		Hint("Go on with it:  pawl resume %s", s.plan.Name).Hint("Start anew:     pawl run %s --fresh", s.plan.Name)
}

// offer asks on a terminal whether to go on with the run that waits.
func (s *session) offer(ctx context.Context, last sqlite.Run, st loop.Status) error {
	_, _ = fmt.Fprintf(s.a.stderr, "Run %s of %s is %s after iteration %d.\n[r]esume it, start [f]resh, or [q]uit? ", last.ID, s.plan.Name, st, last.Iteration)
	line, _ := bufio.NewReader(s.a.stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "r", "resume":
		return errResumeInstead
	case "f", "fresh":
		return engine.Archive(ctx, s.store, last.ID, "left behind by a fresh start")
	}
	return status(exitUsage)
}

// errResumeInstead: the person wants to go on with the earlier run.
var errResumeInstead = errors.New("resume instead")

// foreign is true when the state file is not the image of the last run: it was
// written by hand, by another tool, or put back.
func foreign(f engine.StateFile, last sqlite.Run) bool { return f.Run != last.ID }

// mayRun refuses a state file that says that somebody works on it, unless that
// process is proved dead.
func mayRun(f engine.StateFile, name, path string) error {
	if !loop.Status(f.Status).Active() || f.OwnerDead() {
		return nil
	}
	return usage("%s may be running already: %s says %q", name, path, f.Status).
		Hint("If nothing runs, start with: pawl run %s --fresh", name)
}

// mayFollowFile decides by a state file of which the database knows nothing.
func (s *session) mayFollowFile(f engine.StateFile, path string) error {
	if err := mayRun(f, s.plan.Name, path); err != nil {
		return err
	}
	switch loop.Status(f.Status) {
	case loop.Running, loop.Waiting, loop.Interrupted, loop.Stopped, loop.Paused, loop.Pending:
	default:
		return nil
	}
	return usage("%s can be resumed: %s says %q after iteration %d", s.plan.Name, path, f.Status, f.Iteration).
		Hint("Go on with it:  pawl resume %s", s.plan.Name).Hint("Start anew:     pawl run %s --fresh", s.plan.Name)
}

// drive runs the engine with signals and screen attached, and makes the exit
// status of how the run ended.
func (s *session) drive(ctx context.Context, start func(context.Context, engine.Options) (*engine.Driver, error)) error {
	sig := engine.CatchSignals()
	defer sig.Stop()
	notify, sent := s.watched(ctx)
	d, err := start(ctx, engine.Options{
		Plan: s.plan, Work: s.work, StateDir: s.stateDir, Store: s.store, Tree: s.tree, Notify: notify, Log: openLog(s.plan.Root), Stops: sig.Stops, Kill: sig.Kill,
		Accounts: ratelimit.NewStore(config.LimitsDir(s.a.env)),
	})
	s.screen.Done()
	sent()
	var running *sqlite.RunningError
	if errors.As(err, &running) {
		return usage("%v", running).Hint("Stop it:  pawl stop %s", running.Run)
	}
	if err != nil {
		return s.driveError(err)
	}
	sig.Stop() // at a question Ctrl+C ends pawl, and the question waits
	return s.ended(ctx, d, sig.First())
}

// watched is who is told of what happens: the screen, hooks and notifications,
// and a collector of telemetry if the environment names one. sent ends the last.
func (s *session) watched(ctx context.Context) (notify func(engine.Notice), sent func()) {
	s.startHooks()
	fire := s.hooks.Watch(ctx, hook.About{Name: s.plan.Name, Workspace: s.plan.Root, Branch: s.branch(ctx)})
	sender, err := telemetry.Open(s.a.getenv, version())
	if err != nil {
		s.a.say("Warning: no telemetry is sent: %v", err)
	}
	return func(n engine.Notice) {
			s.heard(n)
			fire(n)
			if sender != nil {
				sender.Notice(n)
			}
		}, func() {
			if sender == nil {
				return
			}
			if err := sender.Close(ctx); err != nil {
				s.a.say("Warning: %v", err)
			}
		}
}

// branch is the one that is checked out; "" when there is none.
func (s *session) branch(ctx context.Context) string {
	if s.hooks == nil || s.tree == nil {
		return ""
	}
	head, err := s.tree.Repo.Head(ctx)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(head.Branch, "refs/heads/")
}

func (s *session) driveError(err error) error {
	if errors.Is(err, engine.ErrTaken) {
		return fault.Of(fault.Failed, err).Hint("%s", "It goes on there; 'pawl ps' shows it")
	}
	for _, known := range []error{loop.ErrFinal, loop.ErrActive, loop.ErrNeedsAnswer, loop.ErrAtLimit} {
		if errors.Is(err, known) {
			return resumeHint(err, s.plan.Name)
		}
	}
	return err
}

// ended makes the exit status of a run's end, and prints its result. On a
// terminal a question can be answered at once, and the run goes on.
func (s *session) ended(ctx context.Context, d *engine.Driver, cause loop.Cause) error {
	st := d.State()
	s.sayCopy(ctx, d.ID())
	code := exitCode(st, cause)
	if s.a.json {
		if line, err := json.Marshal(console.End{Event: "end", Run: d.ID(), Status: string(st.Status), Why: st.Why, Exit: code}); err == nil {
			s.a.result("%s\n", line)
		}
	} else if q := st.Question; q != nil && !s.a.quiet {
		here := s.a.interactive() && s.store != nil && cause == loop.NoCause
		s.a.printQuestion(d.ID(), st.Status, q, s.shownChanges(d.ID(), q), here)
		if here {
			if rep, ok := s.a.askPerson(d.ID(), st); ok {
				return s.answered(ctx, d.ID(), rep)
			}
		}
	}
	if code == exitOK {
		return nil
	}
	return status(code)
}
