// Package session is one run, autopilot or landing in this process: its plan, its
// database, work tree and box, the screen and the hooks that hear of it, and the
// question that a person answers at its end. Whether a run may start at all is
// decided here, too.
package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/boxpolicy"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/ask/survey"
	"github.com/pawl-dev/pawl/internal/ask/telemetry"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/engine/stopsignal"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/hook"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Box decides what the operating system holds the run to.
func (s *Session) Box(ctx context.Context, unsandboxed bool) error {
	v, err := judgeSandbox(ctx, s.App, s.Plan.Safety, unsandboxed, "the agent")
	if err != nil {
		return err
	}
	s.Plan.Sandbox = s.Plan.Safety + ": " + v.Enforced
	if v.Boxed {
		s.Plan.Box = s.buildBox(ctx, v)
	}
	if s.Repo != nil {
		return nil
	}
	if s.Plan.Safety == sandbox.Paranoid {
		return command.Usage("cannot run at the level paranoid outside of git: the agent works in a private workspace, " +
			"and only git can tell what it changed").
			Hint("Create a repository: git init").Hint("Or run with --safety normal")
	}
	if len(s.Plan.Protect.Patterns) > 0 {
		return command.Usage("cannot run %s outside of git: only git can tell whether an agent changed a protected file",
			s.Plan.Name).Hint("Create a repository: git init").
			Hint("Or take verification.protect out of pawl.yaml")
	}
	return nil
}

// judgeSandbox asks the machine what it can enforce at a level, and warns of what it
// cannot. who is not confined where there is no sandbox; "" warns of nothing.
func judgeSandbox(ctx context.Context, a *command.App, level string, unsandboxed bool, who string,
) (sandbox.Verdict, error) {
	var offer sandbox.Offer
	if level != sandbox.Permissive && !unsandboxed {
		offer = sandbox.Probe(ctx)
	}
	v := sandbox.Judge(level, offer, unsandboxed)
	if v.Refused != "" {
		return v, command.Usage("cannot run at the level %s: %s", level, v.Refused).
			Hint("See what this machine can enforce: pawl doctor").
			Hint("Run without a sandbox, which every report then says: --unsandboxed")
	}
	if unsandboxed && who != "" {
		a.Say("Warning: no sandbox (--unsandboxed): nothing limits what %s may touch.", who)
	}
	for _, gap := range v.Gaps {
		a.Say("Note: safety level %s: %s.", level, gap)
	}
	return v, nil
}

// buildBox returns the boxes of the run's agents and gates. They see nothing that
// pawl keeps, of whatever repository: who reads the token of 'pawl serve' can
// answer for the person, and who reaches a supervisor can have it run commands.
func (s *Session) buildBox(ctx context.Context, v sandbox.Verdict) *runplan.Box {
	outside, _ := s.outsideEnv(nil)
	boxes := boxpolicy.Make(ctx, boxpolicy.Options{
		Config: s.Config, Plan: s.Plan, StateDir: s.StateDir, Repo: s.Repo, Top: s.Top, Env: s.App.Env,
		Outside: outside, Hide: []string{statedir.Base(s.App.Env)}, Say: s.App.Say,
	}, v)
	s.agentPolicy = boxes.Agent
	return boxes.Run
}

// warnFixedStrategy warns, before money is spent, that the strategy fixed for the run has
// no effect with this plan.
func (s *Session) warnFixedStrategy(pol *loop.Policy) {
	if pol.Strategy == "" {
		return
	}
	at := strategy.Situation{
		Own: pol.Strategies, CanFallback: len(pol.Fallback) > 0, CanStronger: pol.Stronger != "", CanRewind: s.Tree != nil,
		HasOptional: pol.HasOptional, IterationTimeout: pol.IterationTimeout, Ceiling: pol.IterationCeiling,
		Gate: len(s.Plan.Gates) > 0, Steps: pol.Kind == loop.Workflow,
	}
	if why := at.ReasonIneffective(pol.Strategy); why != "" {
		s.App.Say("Warning: strategy %s has no effect: %s.", pol.Strategy, why)
	}
}

// warnIgnored names the flags that mean nothing to a workflow that is gone over once.
func (s *Session) warnIgnored() {
	for _, f := range [][2]string{{"loop.max_iterations", "--max-iterations"}, {"loop.strategy", "--strategy"}} {
		if s.Config.IsFlag(f[0]) {
			s.App.Say("Warning: %s has no effect on a workflow that runs once; add --iterate.", f[1])
		}
	}
}

// DriveOn resumes a run.
func (s *Session) DriveOn(ctx context.Context, run string, e loop.Event) error {
	err := s.Drive(ctx, func(ctx context.Context, o engine.Options) (*engine.Driver, error) {
		return engine.Resume(ctx, o, run, e)
	})
	var refused *fault.Error
	if errors.Is(err, loop.ErrFinal) && errors.As(err, &refused) {
		if r, rerr := s.Store.Run(ctx, run); rerr == nil && storedrun.ReasonUndelivered(r) != "" {
			return refused.Hint("Bring its work into your files: pawl apply %s", run)
		}
	}
	return err
}

// resumeHint adds what to do about a run that cannot be resumed.
func resumeHint(err error, name, anew string) error {
	e := fault.Of(fault.Refused, fmt.Errorf("cannot resume %s: %w", name, err))
	switch {
	case errors.Is(err, loop.ErrFinal):
		return e.Hint("Start a new run: %s", strings.TrimSuffix(anew, " --fresh"))
	case errors.Is(err, loop.ErrActive):
		return e.Hint("Watch it: pawl logs %s -f", name)
	case errors.Is(err, loop.ErrNeedsAnswer):
		return e.Hint("See the question: pawl show %s", name).Hint("Answer it:        pawl answer %s \"…\"", name)
	}
	return e.Hint("Raise the limit: pawl resume %s --max-iterations N, --max-cost USD or --timeout DURATION", name)
}

// NotInside refuses a run that an agent or a gate of a run starts: it could
// start itself again and again, and its records are out of its sandbox's reach.
func NotInside(a *command.App) error {
	if run := a.Getenv("PAWL_RUN"); run != "" {
		return command.Usage("cannot start a run inside of run %s: an agent or a check of it called pawl run", run).
			Hint("An agent asks what to do next with: pawl check").
			Hint("To start it all the same, take PAWL_RUN out of its environment: env -u PAWL_RUN pawl run …")
	}
	return nil
}

// Session is one run or resume in this process.
type Session struct {
	file     string // of a workflow
	App      *command.App
	Config   *config.Config
	Plan     runplan.Plan
	StateDir string
	Store    *store.Store
	Tree     *workspace.Checkout // the person's own files; nil outside of git
	Repo     *git.Repo           // the person's repository; nil outside of git
	Top      string              // top level of the files that are worked in
	Screen   *console.Screen
	work     engine.Work // of a workflow
	// agentPolicy is the box of one more agent, where there are boxes.
	agentPolicy func(name string, ag runplan.Agent) sandbox.Policy

	Hooks   *hook.Runner // nil: there are none
	showing sync.Mutex   // over screen and running while hooks may report
	running string       // the run's id, once it is known
	Target  string       // of the autopilot's landings
}

// Open prepares what a run works with, and warns once of what is missing: git, or a
// sandbox. Nothing starts without a database: what an agent could change is recorded there.
func Open(ctx context.Context, a *command.App, c *config.Config, plan runplan.Plan, unsandboxed bool) (*Session, error) {
	s := &Session{App: a, Config: c, Plan: plan, StateDir: statedir.Of(c.Root, a.Env)}
	s.Screen = console.New(a.Terminal(), plan.Name)
	db, err := a.Database(ctx, c)
	if errors.Is(err, store.ErrNewer) {
		err = fault.Of(fault.Refused, err)
	}
	if err != nil {
		return nil, err
	}
	s.Store = db
	db.OnWait(func(why string) { s.printWarning(command.LockedBy(why)) })
	if err := s.openTree(ctx); err != nil {
		s.Close()
		return nil, err
	}
	Adapt(ctx, a, c, db, &s.Plan.Policy)
	if err := s.Box(ctx, unsandboxed); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// openTree opens the work tree, where there is one. One that cannot be opened is an
// error: agents would work in the user's own files, and nothing could be undone.
func (s *Session) openTree(ctx context.Context) error {
	tree, err := workspace.Open(ctx, s.Config.Root,
		workspace.Options{StateDir: s.StateDir, MaxFile: s.Plan.SnapshotMaxFile})
	switch {
	case errors.Is(err, git.ErrNotRepository), errors.Is(err, git.ErrNoGit):
		if statedir.HasGit(s.Config.Root) {
			return command.Usage("cannot start, since changes could not be undone: %v, though there is a .git", err).
				Hint("Install git, or repair .git; see git status").
				Hint("Or remove .git: then agents work directly in your files")
		}
		s.App.Say("Note: %v; agents work directly in your files, and nothing can be rolled back.", err)
		return nil
	case err != nil:
		return fmt.Errorf("cannot start, since changes could not be undone: %w", err)
	}
	s.Tree, s.Repo, s.Top = tree, tree.Repo, tree.Repo.Top
	notes, err := tree.Repo.AfterBoot(ctx, s.StateDir)
	for _, note := range slices.Concat(notes, tree.Notes) {
		s.App.Say("Warning: %s.", note)
	}
	if err = errors.Join(err, tree.IgnoreOwnFolder()); err != nil {
		s.App.Say("Warning: %v", err)
	}
	return nil
}

// Close ends hooks and closes the database.
func (s *Session) Close() {
	s.Hooks.Close(context.Background())
	if s.Store != nil {
		if err := s.Store.Close(); err != nil {
			s.App.Say("Warning: %v", err)
		}
	}
}

// PrintPreamble prints the task and the warnings before money is spent.
func (s *Session) PrintPreamble() {
	plan := &s.Plan
	if work := plan.Prompt.Work; work != "" {
		s.App.Say("Task: %s", report.Line(work, 300))
	}
	isProcedure := plan.Policy.Kind == loop.Procedure
	if isProcedure {
		WarnNoGates(s.App, s.Plan, plan.Name+" completes")
	}
	names := slices.Sorted(maps.Keys(plan.Agents))
	if isProcedure {
		names = []string{plan.Policy.Agent}
	}
	for _, name := range names {
		if s.Config.IsSet("loop.max_cost") {
			WarnOfHiddenCost(s.App, name, plan.Agents[name])
		}
	}
	if plan.Policy.Once {
		s.warnIgnored()
	} else {
		s.warnFixedStrategy(&plan.Policy)
	}
	if plan.Policy.Agent != "" {
		s.sayWithheld(s.Plan)
		s.sayGateway(s.Plan)
	}
}

// WarnNoGates warns if nothing is verified. completes begins the sentence, as "Tasks complete".
func WarnNoGates(a *command.App, plan runplan.Plan, completes string) {
	if len(plan.Gates) == 0 {
		a.Say("Warning: No verification commands configured")
		a.Say("  %s on COMPLETE without validation.", completes)
		found, err := survey.Of(plan.Root, nil, a.LookPath)
		if err != nil || len(found.Gates) == 0 {
			a.Say("  Add the commands that check your project to pawl.yaml, under verification.")
			return
		}
		commands := lists.Each(found.Gates, func(g survey.Gate) string { return strconv.Quote(g.Command) })
		a.Say("  Suggestion: add to pawl.yaml:\n    verification: [%s]", strings.Join(commands, ", "))
	}
}

// Drive runs the engine with signals and screen attached, and makes the exit
// status of how the run ended.
func (s *Session) Drive(ctx context.Context,
	start func(context.Context, engine.Options) (*engine.Driver, error)) error {
	sig := stopsignal.Catch()
	defer sig.Stop()
	private, err := s.takeWorkspace(ctx)
	if err != nil {
		return err
	}
	notify, sent := s.buildNotifier(ctx)
	d, err := start(ctx, engine.Options{
		Plan: s.Plan, Work: s.work, StateDir: s.StateDir, Store: s.Store, Private: private, Notify: notify,
		Log: command.OpenLog(s.Plan.Root), Stops: sig.Stops, Kill: sig.Kill,
		Accounts: planner.Accounts(s.Config, s.App.Env),
	})
	s.Screen.Done()
	sent()
	if private != nil {
		if rerr := private.Release(ctx, delivery.Kept); rerr != nil {
			s.App.Say("Warning: %v", rerr)
		}
	}
	if running, ok := errors.AsType[*store.RunningError](err); ok {
		return command.Usage("%v", running).Hint("Stop it:  pawl stop %s", running.Run)
	}
	if err != nil {
		return s.driveError(err)
	}
	if sig.First() == loop.NoCause { // else a person waits for the end
		s.sweepAfter(ctx)
	}
	sig.Stop() // at a question Ctrl+C ends pawl, and the question waits
	return s.reportEnd(ctx, d, sig.First())
}

// buildNotifier returns a function that passes notices to the screen, to hooks and notifications,
// and a collector of telemetry if the environment names one. sent ends the last.
func (s *Session) buildNotifier(ctx context.Context) (notify func(engine.Notice), sent func()) {
	s.StartHooks()
	fire := s.Hooks.Watch(ctx, hook.About{Name: s.Plan.Name, Workspace: s.Plan.Root, Branch: s.currentBranch(ctx)})
	sender, err := telemetry.Open(s.App.Getenv, command.BuildVersion())
	if err != nil {
		s.App.Say("Warning: no telemetry is sent: %v", err)
	}
	return func(n engine.Notice) {
			s.showNotice(n)
			fire(n)
			if sender != nil {
				sender.Notice(n)
			}
		}, func() {
			if sender == nil {
				return
			}
			if err := sender.Close(ctx); err != nil {
				s.App.Say("Warning: %v", err)
			}
		}
}

// currentBranch returns "" if no branch is checked out.
func (s *Session) currentBranch(ctx context.Context) string {
	if s.Hooks == nil || s.Tree == nil {
		return ""
	}
	head, err := s.Tree.Repo.Head(ctx)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(head.Branch, "refs/heads/")
}

func (s *Session) driveError(err error) error {
	if errors.Is(err, engine.ErrTaken) {
		return fault.Of(fault.Failed, err).Hint("%s", "It continues there; 'pawl ps' shows it")
	}
	for _, known := range []error{loop.ErrFinal, loop.ErrActive, loop.ErrNeedsAnswer, loop.ErrAtLimit} {
		if errors.Is(err, known) {
			return resumeHint(err, s.Plan.Name, s.commandForFresh())
		}
	}
	return err
}

// reportEnd prints the result of a run, and returns an error with its exit status. On a
// terminal a question can be answered at once, and the run resumes.
func (s *Session) reportEnd(ctx context.Context, d *engine.Driver, cause loop.Cause) error {
	st := d.State()
	code := exitCode(st, cause)
	setup := s.readSetup(ctx, d.ID())
	if code == command.ExitOK && setup.UndeliveredNeeds {
		code = command.ExitPerson
	}
	if s.App.JSON {
		if line, err := json.Marshal(console.End{Event: "end", Run: d.ID(), Status: string(st.Status), Why: st.Why,
			Exit: code}); err == nil {
			s.App.Result("%s\n", line)
		}
	} else if q := st.Question; q != nil && !s.App.Quiet {
		here := s.App.Interactive() && cause == loop.NoCause
		PrintQuestion(s.App, d.ID(), &board.Case{}, st.Status, q, s.shownChanges(d.ID(), q), here)
		if here {
			if rep, ok := askPerson(s.App, d.ID(), st); ok {
				return s.resumeAnswered(ctx, d.ID(), rep)
			}
		}
	}
	if code == command.ExitLimit {
		s.printHowToResume(d.ID(), st)
	}
	if st.Question == nil && storedrun.NeedsPerson(st) && !s.App.JSON {
		s.App.Say("  See what happened:          pawl show %s", d.ID())
		if strings.Contains(st.Why, "missing command") {
			s.App.Say("  See what is missing:        pawl doctor")
		}
		s.App.Say("  Continue when it is cured:  pawl resume %s", d.ID())
	}
	if s.Store != nil && !s.App.JSON && s.Plan.Name != planner.Sealing {
		for _, line := range setup.ListUndelivered(ctx, s.Store, s.Top, d.ID(), st.Status) {
			s.App.Say("%s", line)
		}
	}
	if code == command.ExitOK {
		return nil
	}
	return command.StatusError(code)
}

// printHowToResume prints how a run that ended at a limit can be resumed.
func (s *Session) printHowToResume(run string, st loop.State) {
	if s.App.JSON {
		return
	}
	s.App.Say("  See what happened: pawl show %s", run)
	switch {
	case st.Limit > 0 && st.Iteration >= st.Limit:
		s.App.Say("  Continue:          pawl resume %s --max-iterations %d", run, 2*st.Limit)
	case st.Policy.Timeout > 0 && st.Spent.Wall >= st.Policy.Timeout:
		s.App.Say("  Continue:          pawl resume %s --timeout DURATION", run)
	default:
		s.App.Say("  Continue:          pawl resume %s --max-cost USD, or with --timeout DURATION", run)
	}
}

// exitCode is pawl's exit status for how a run ended.
func exitCode(s loop.State, cause loop.Cause) int {
	switch s.Status {
	case loop.FailedRun:
		if s.Question != nil { // a guard ended a workflow
			return command.ExitPerson
		}
	case loop.Completed:
		return command.ExitOK
	case loop.TimedOut, loop.Exhausted:
		return command.ExitLimit
	case loop.Paused, loop.Blocked, loop.Pending:
		return command.ExitPerson
	case loop.Interrupted, loop.Stopped:
		switch cause {
		case loop.CauseTerminate:
			return command.ExitTerminated
		case loop.CauseHangup:
			return command.ExitHangup
		}
		return command.ExitInterrupted
	}
	return command.ExitFailed
}

// printNote shows what pawl does, without breaking the live line.
func (s *Session) printNote(text string) {
	s.showing.Lock()
	defer s.showing.Unlock()
	s.Screen.Notice(engine.Notice{Kind: engine.Note, At: time.Now(), Text: text, Run: s.running})
}
