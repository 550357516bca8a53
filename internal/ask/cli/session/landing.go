package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/forge"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Landing makes what a merge queue works with, for one target.
type Landing struct {
	a     *command.App
	c     *config.Config
	store *store.Store
	Repo  *git.Repo
	Plan  runplan.Plan // the level, the gates, what they inherit
	// verdict is what the machine enforces for gates, once it is known.
	verdict sandbox.Verdict
	said    atomic.Bool // what the boxes of gates leave open; it is the same for each clone
	// unsandboxed is a person's choice; see [judgeSandbox].
	unsandboxed bool
}

// OpenLanding reads the repository and the configuration, and refuses what
// cannot be landed on.
func OpenLanding(ctx context.Context, a *command.App, c *config.Config, db *store.Store) (*Landing, error) {
	repo, err := git.OpenStore(ctx, c.Root)
	if errors.Is(err, git.ErrNotRepository) {
		return nil, command.Usage("nothing can be landed outside of a git repository").Hint("Create one: git init")
	}
	if err != nil {
		return nil, err
	}
	l := &Landing{a: a, c: c, store: db, Repo: repo}
	l.Plan, err = a.Planner(c, planner.Flags{}).Landing()
	return l, err
}

// Box asks the machine what it can enforce for gates, and says what it cannot.
func (l *Landing) Box(ctx context.Context, unsandboxed bool) (err error) {
	l.unsandboxed = unsandboxed
	l.verdict, err = judgeSandbox(ctx, l.a, l.Plan.Safety, unsandboxed, "")
	return err
}

// QueueOptions returns the options of the merge queue. Its gates run in workspaces of the
// pool.
func (l *Landing) QueueOptions(ctx context.Context, notify func(queue.Note)) (merge.Options, error) {
	target, err := action.LandingTarget(ctx, l.c, l.Repo)
	if err != nil {
		return merge.Options{}, err
	}
	self, err := process.Self()
	if err != nil {
		return merge.Options{}, err
	}
	m, protect := l.c.Merge, l.Plan.Protect
	protect.Files = runplan.SourceNames(l.Repo.Top, l.c.Root, l.c.Root, l.Plan.Sources)
	o := merge.Options{
		Store: l.store, Repo: l.Repo, Dir: filepath.Join(statedir.Of(l.c.Root, l.a.Env), "queue"), Target: target,
		SignOff: m.Signoff,
		Policy: queue.Policy{
			Batch: m.Batch, Retries: m.ConflictRetries, Timeout: m.EscalationTimeout.Std(),
			Action: queue.Action(m.EscalationAction),
			Push:   m.Push, Propose: m.Mode == "pull-request", Ask: !m.Auto,
		},
		Verifying: merge.Verifying{
			Gates: l.Plan.Gates, TaskGates: l.a.Planner(l.c, planner.Flags{}).TaskGates, Protect: protect,
			Environ: l.Plan.Environ, Regenerate: l.listRegenerations(),
		},
		Environment: l.hashEnvironment(),
		Exe:         l.Plan.Exe, Args: l.Plan.Args, Lease: l.Plan.Lease,
		Owner: storedrun.OwnerOf(self), Alive: storedrun.Alive, Notify: notify,
	}
	o.Folder, _ = files.Below(l.Repo.Top, l.c.Root)
	there := newTargetConfig(ctx, l.a, l.c, l.Repo, nil)
	o.RulesAt = func(ctx context.Context, commit string) (merge.Rules, error) {
		rules := merge.Rules{Gates: o.Gates, TaskGates: o.TaskGates, Protect: o.Protect, Environment: o.Environment}
		c, err := there.loadCommit(ctx, commit, nil)
		if err != nil || c == l.c {
			return rules, err
		}
		return l.rulesOfTarget(c, rules)
	}
	if l.store.BoardName() != "" && l.c.Cluster.Engine != "" {
		o.Travel = l.c.Cluster.Remote
	}
	return o, nil
}

// rulesOfTarget are the rules of a configuration of the target, in place of those that this process began with.
func (l *Landing) rulesOfTarget(c *config.Config, r merge.Rules) (merge.Rules, error) {
	quiet := *l.a
	quiet.Quiet = true
	p := quiet.Planner(c, planner.Flags{})
	plan, err := p.Landing()
	if err != nil {
		return r, err
	}
	r.Closed = plan.Safety == sandbox.Paranoid && l.Plan.Safety != sandbox.Paranoid
	r.Gates, r.TaskGates = plan.Gates, p.TaskGates
	files := r.Protect.Files
	r.Protect = plan.Protect
	r.Protect.Files = files
	there := Landing{a: l.a, c: c, Plan: l.Plan, verdict: l.verdict}
	there.Plan.Safety = plan.Safety
	r.Environment = there.hashEnvironment()
	return r, nil
}

// UseForge gives the queue the forge that it opens pull requests at, and refuses
// those that could not be opened, before work is done for them.
func (l *Landing) UseForge(ctx context.Context, o *merge.Options) error {
	checks := l.c.Verification.Checks()
	if !o.Policy.Propose && checks.Forge == "" {
		return nil
	}
	remote, _, err := l.Repo.UpstreamOf(ctx, merge.Ref(o.Target))
	if err != nil {
		return err
	}
	if remote == "" && !o.Policy.Propose {
		return command.Usage("gate %q asks the forge: %s %v", checks.Name, command.BranchName(o.Target), merge.ErrNoRemote).
			Hint("Name one: git remote add origin URL")
	}
	if remote == "" {
		return command.Usage("merge.mode is pull-request: %s %v", command.BranchName(o.Target), merge.ErrNoRemote).
			Hint("Name one: git remote add origin URL").Hint("Or land here: set merge.mode to local")
	}
	o.Forge, err = OpenForge(ctx, l.a, l.c, l.Repo, o.Target)
	if err == nil && o.Policy.Propose {
		o.Fork, err = l.findFork(ctx, remote, o)
	}
	o.AutoMerge, o.Required, o.ChecksTimeout = l.c.Merge.AutoMerge, checks.Checks, checks.Timeout.Std()
	if refused, ok := errors.AsType[*fault.Error](err); ok && o.Policy.Propose {
		return refused.Hint("Or land here: set merge.mode to local")
	}
	return err
}

// findFork returns the fork that branches are pushed to, by git's own push settings. It
// is empty if git pushes to the target's remote.
func (l *Landing) findFork(ctx context.Context, upstream string, o *merge.Options) (merge.Fork, error) {
	remote, err := l.Repo.PushRemoteOf(ctx, merge.Ref(o.Target))
	if err != nil || remote == "" || remote == upstream {
		return merge.Fork{}, err
	}
	address, err := l.Repo.RemoteURL(ctx, remote)
	if err != nil {
		return merge.Fork{}, err
	}
	owner, _, _ := strings.Cut(forge.FromRemote(address).Repository, "/")
	if owner == "" {
		return merge.Fork{}, fault.Refuse("git pushes to the remote %s, whose address names no fork at the forge: %s", remote,
			address).
			Hint("Or push elsewhere: git config remote.pushDefault %s", upstream)
	}
	return merge.Fork{Remote: remote, Owner: owner}, nil
}

// listRegenerations returns the commands that make lock files and the like again.
func (l *Landing) listRegenerations() []merge.Regeneration {
	var list []merge.Regeneration
	for _, r := range l.c.Merge.Regenerate {
		list = append(list, merge.Regeneration{Files: r.Files, Command: r.Command, Timeout: r.Timeout.Std()})
	}
	return list
}

// OpenJudge opens a queue that runs gates, in boxed workspaces of the pool, on commits of the repository. What prepare
// changes of its options counts; nil changes nothing.
func OpenJudge(ctx context.Context, a *command.App, c *config.Config, db *store.Store, unsandboxed bool,
	prepare func(*merge.Options)) (*Landing, *merge.Queue, error) {
	l, err := OpenLanding(ctx, a, c, db)
	if err == nil {
		err = l.Box(ctx, unsandboxed)
	}
	if err != nil {
		return nil, nil, err
	}
	o, err := l.QueueOptions(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	clones, err := a.Pool(ctx, c, db)
	if err != nil {
		return nil, nil, err
	}
	l.UseWorkspaces(&o, clones)
	if prepare != nil {
		prepare(&o)
	}
	q, err := merge.Open(ctx, o)
	return l, q, err
}

// UseWorkspaces makes the pool's integration clones those of the queue.
func (l *Landing) UseWorkspaces(o *merge.Options, p *pool.Pool) {
	o.Integration = func(ctx context.Context, commit string, closed bool) (merge.Workspace, error) {
		l, err := l.withParanoidGates(ctx, closed)
		if err != nil {
			return merge.Workspace{}, err
		}
		w, err := p.Integration(ctx, commit)
		if err != nil {
			return merge.Workspace{}, err
		}
		done := func(ctx context.Context) {
			if err := p.Release(ctx, w, pool.Landed); err != nil {
				l.a.Say("Warning: %v", err)
			}
		}
		out := merge.Workspace{Dir: w.Dir, Environ: w.Env(), Setup: w.Setup, Done: done}
		if l.verdict.Boxed {
			box := l.buildGateBox(ctx, w.Dir, w.Top)
			out.Box, out.Caches, out.Environ = &box.Gates, box.GateCaches, append(out.Environ, box.GateEnv...)
		}
		return out, nil
	}
}

// withParanoidGates is l with gates that are held to the level paranoid, if what they judge is closed.
func (l *Landing) withParanoidGates(ctx context.Context, closed bool) (*Landing, error) {
	if !closed || l.Plan.Safety == sandbox.Paranoid {
		return l, nil
	}
	quiet, plan := *l.a, l.Plan
	quiet.Quiet, plan.Safety = true, sandbox.Paranoid
	verdict, err := judgeSandbox(ctx, &quiet, sandbox.Paranoid, l.unsandboxed, "")
	return &Landing{a: &quiet, c: l.c, store: l.store, Repo: l.Repo, Plan: plan, verdict: verdict}, err
}

// buildGateBox is the box of gates in a folder of a clone at top.
func (l *Landing) buildGateBox(ctx context.Context, dir, top string) *runplan.Box {
	app := *l.a
	app.Quiet = app.Quiet || l.said.Swap(true)
	s := &Session{App: &app, Config: l.c, Plan: l.Plan, StateDir: statedir.Of(l.c.Root, l.a.Env), Repo: l.Repo}
	s.Plan.Root, s.Plan.Agents, s.Top = dir, nil, top
	return s.buildBox(ctx, l.verdict)
}

// hashEnvironment returns a hash of everything but tree and gates that can change a
// verdict, as far as pawl can know: PATH, the safety level, setup and copied files.
func (l *Landing) hashEnvironment() string {
	h := sha256.New()
	for _, part := range []string{
		l.a.Getenv("PATH"), l.Plan.Safety, l.verdict.Enforced, strings.Join(l.c.Workspace.Setup, "\n"),
		strings.Join(l.c.Workspace.Copy, "\n"),
	} {
		fmt.Fprintf(h, "%q\n", part)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Merge is how verified work lands: as with pawl queue, with what the tasks'
// gates are held to.
func (t *TaskPlanner) Merge(ctx context.Context, repo *git.Repo, db *store.Store, plan runplan.Plan,
	clones *pool.Pool) (merge.Options, error) {
	l := &Landing{a: t.a, c: t.c, store: db, Repo: repo, Plan: plan, verdict: t.Verdict, unsandboxed: t.unsandboxed}
	o, err := l.QueueOptions(ctx, nil)
	if err != nil {
		return o, err
	}
	if err := l.UseForge(ctx, &o); err != nil {
		return o, err
	}
	l.UseWorkspaces(&o, clones)
	o.Resolve = t.Resolver(clones, db).Resolve
	return o, nil
}

// TaskPlanner makes the plans of tasks. It has judged the machine and said
// what there is to say, once; plans are made in silence.
type TaskPlanner struct {
	a        *command.App
	c        *config.Config
	there    *targetConfig
	target   string // the branch's full name
	flags    planner.Flags
	repo     *git.Repo // which lends its objects to the clones of tasks
	planner  *planner.Planner
	stateDir string
	Verdict  sandbox.Verdict
	Store    *store.Store // what guards came to, for thresholds that adapt; nil where that does not matter
	level    string       // that Verdict is for
	// Unsandboxed is a person's choice; see [judgeSandbox].
	unsandboxed bool
}

// NewTaskPlanner checks that tasks can be worked on at all: agents, gates,
// sandbox. The plan is that of a task in the root itself.
func NewTaskPlanner(ctx context.Context, a *command.App, c *config.Config, repo *git.Repo, stateDir string,
	f planner.Flags) (*TaskPlanner, runplan.Plan, error) {
	t := &TaskPlanner{
		a: a, c: c, repo: repo, planner: a.Planner(c, f), stateDir: stateDir, unsandboxed: f.Unsandboxed,
	}
	plan, err := t.planner.Task(autopilot.Task{})
	if err != nil {
		return nil, plan, err
	}
	for _, name := range c.Autopilot.Race { // one that cannot work is found before work begins
		if _, err := t.planner.Task(autopilot.Task{Agent: name}); err != nil {
			return nil, plan, err
		}
	}
	if t.Verdict, err = judgeSandbox(ctx, a, plan.Safety, f.Unsandboxed, "the agents"); err != nil {
		return nil, plan, err
	}
	t.level = plan.Safety
	if c.Forge.Issues.Label != "" { // a machine that cannot hold them is found before work begins
		outside, err := t.planner.Task(autopilot.Task{Case: board.Case{Ref: board.IssueRef(1)}})
		if err == nil && outside.Safety != t.level {
			_, err = judgeSandbox(ctx, a, outside.Safety, f.Unsandboxed, "")
		}
		if err != nil {
			return nil, plan, err
		}
	}
	quiet := *a
	quiet.Quiet = true
	t.a, t.planner, t.flags = &quiet, quiet.Planner(c, f), f
	t.there = newTargetConfig(ctx, a, c, repo, f.Paths())
	t.target, err = action.LandingTarget(ctx, c, repo)
	return t, plan, err
}

// ReasonForOwnRules returns why tasks are judged by the configuration of this checkout instead of the target's; ""
// where they are judged by the target's.
func (t *TaskPlanner) ReasonForOwnRules() string { return t.there.whyOwn }

// Plan is the plan of a task in its workspace, and its tree.
func (t *TaskPlanner) Plan(ctx context.Context, task autopilot.Task) (runplan.Plan, *workspace.Checkout, error) {
	asked := planner.OrderedPaths(task.Asked, t.c.Loop.Safety)
	commit, err := t.newestCommit(ctx, task.Workspace.Base)
	if err != nil {
		return runplan.Plan{}, nil, err
	}
	c, err := t.there.loadCommit(ctx, commit, asked)
	if err != nil {
		return runplan.Plan{}, nil, err
	}
	if c != t.c {
		other, f := *t, t.flags
		if len(asked) > 0 {
			f = planner.Flags{}
		}
		t, other.c, other.planner = &other, c, t.a.Planner(c, f)
	}
	plan, err := t.planner.Task(task)
	if err != nil {
		return plan, nil, err
	}
	Adapt(ctx, t.a, t.c, t.Store, &plan.Policy)
	tree, err := pool.OpenTree(ctx, t.repo, t.stateDir, task.Workspace, plan.SnapshotMaxFile)
	if err != nil {
		return plan, nil, err
	}
	if err := tree.IgnoreOwnFolder(); err != nil {
		return plan, nil, err
	}
	verdict := t.Verdict
	if plan.Safety != t.level {
		if verdict, err = judgeSandbox(ctx, t.a, plan.Safety, t.unsandboxed, ""); err != nil {
			return plan, nil, err
		}
	}
	plan.Sandbox = plan.Safety + ": " + verdict.Enforced
	if verdict.Boxed {
		s := &Session{App: t.a, Config: t.c, Plan: plan, StateDir: t.stateDir, Repo: t.repo, Top: tree.Repo.Top}
		plan.Box = s.buildBox(ctx, verdict)
	}
	return plan, tree, nil
}

// newestCommit returns the target as it is now, or a base that it does not have yet: that was fetched since.
func (t *TaskPlanner) newestCommit(ctx context.Context, base string) (string, error) {
	tip, err := t.repo.Find(ctx, t.target)
	if err != nil || tip == "" {
		return base, err
	}
	if base == "" {
		return tip, nil
	}
	if has, err := t.repo.IsAncestor(ctx, base, tip); err != nil || !has {
		return base, err
	}
	return tip, nil
}

// Adapt lets what guards came to in this repository change their thresholds, and says so.
func Adapt(ctx context.Context, a *command.App, c *config.Config, db *store.Store, pol *loop.Policy) {
	if !c.Loop.AdaptiveThresholds || db == nil {
		return
	}
	list, err := db.GuardStats(ctx)
	if err != nil {
		a.Say("Warning: cannot adapt thresholds: %v", err)
	}
	var seen []loop.Tripped
	for _, g := range list {
		seen = append(seen, loop.Tripped{Guard: g.Guard, Runs: g.Runs, Completed: g.Completed})
	}
	for _, change := range loop.Adapt(pol, seen) {
		a.Say("Adapted: %s.", change)
	}
}

// Resolver is an agent for conflicts, planned like that of a task.
func (t *TaskPlanner) Resolver(clones *pool.Pool, db *store.Store) *autopilot.Resolver {
	return &autopilot.Resolver{
		Plan: t.Plan, Pool: clones, Store: db, StateDir: t.stateDir,
		Repo: t.repo, Confirm: action.ConfirmPatterns(t.c),
		Accounts: planner.Accounts(t.c, t.a.Env), Log: slog.New(slog.DiscardHandler),
	}
}
