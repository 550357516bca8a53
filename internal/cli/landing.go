package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/merge"
	"github.com/pawl-dev/pawl/internal/planner"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/queue"
	"github.com/pawl-dev/pawl/internal/sandbox"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace"
	"github.com/pawl-dev/pawl/internal/workspace/pool"
)

// landing makes what a merge queue works with, for one target.
type landing struct {
	a     *app
	c     *config.Config
	store *sqlite.Store
	repo  *git.Repo
	plan  engine.Plan // the level, the gates, what they inherit
	// verdict is what the machine enforces for gates, once it is known.
	verdict sandbox.Verdict
}

// openLanding reads the repository and the configuration, and refuses what
// cannot be landed on.
func (a *app) openLanding(ctx context.Context, c *config.Config, store *sqlite.Store) (*landing, error) {
	repo, err := git.OpenStore(ctx, c.Root)
	if errors.Is(err, git.ErrNotRepository) {
		return nil, usage("nothing can be landed outside of a git repository").Hint("Make one: git init")
	}
	if err != nil {
		return nil, err
	}
	l := &landing{a: a, c: c, store: store, repo: repo}
	l.plan, err = a.planner(c, planner.Flags{}).Landing()
	return l, err
}

// box asks the machine what it can enforce for gates, and says what it cannot.
func (l *landing) box(ctx context.Context, unsandboxed bool) (err error) {
	level := l.plan.Safety
	if level == sandbox.Paranoid {
		level = sandbox.Normal // the gates' folder is a disposable copy already
	}
	l.plan.Safety = level
	l.verdict, err = l.a.judge(ctx, level, unsandboxed, "")
	return err
}

// options are those of the queue. Gates run in workspaces of the pool.
func (l *landing) options(ctx context.Context, notify func(queue.Note)) (merge.Options, error) {
	target, err := action.LandingTarget(ctx, l.c, l.repo)
	if err != nil {
		return merge.Options{}, err
	}
	self, err := process.Self()
	if err != nil {
		return merge.Options{}, err
	}
	m := l.c.Merge
	o := merge.Options{
		Store: l.store, Repo: l.repo, Dir: filepath.Join(config.StateDir(l.c.Root, l.a.env), "queue"), Target: target,
		Policy: queue.Policy{
			Batch: m.Batch, Retries: m.ConflictRetries, Timeout: m.EscalationTimeout.Std(), Action: queue.Action(m.EscalationAction),
			Push: m.Push, Propose: m.Mode == "pull-request", Ask: !m.Auto,
		},
		Gates: l.plan.Gates, Protect: l.plan.Protect, Environ: l.plan.Environ, Environment: l.environment(), HostEnviron: l.a.env,
		Regenerate: l.regenerations(),
		Exe:        l.plan.Exe, Args: l.plan.Args, Lease: l.plan.Lease,
		Owner: engine.OwnerOf(self), Alive: engine.Alive, Notify: notify,
	}
	return o, nil
}

// canPropose refuses pull requests that could not be opened, before work is
// done for them.
func (l *landing) canPropose(ctx context.Context, o *merge.Options) error {
	err := merge.CanPropose(ctx, o)
	switch {
	case errors.Is(err, merge.ErrNoRemote):
		return usage("merge.mode is pull-request: %v", err).Hint("Name one: git remote add origin URL").Hint("Or land here: set merge.mode to local")
	case errors.Is(err, merge.ErrNoProgram):
		return usage("merge.mode is pull-request: %v", err).Hint("Install it, and log in: gh auth login").Hint("Or land here: set merge.mode to local")
	}
	return err
}

// regenerations are the commands that make lock files and the like anew.
func (l *landing) regenerations() []merge.Regeneration {
	var list []merge.Regeneration
	for _, r := range l.c.Merge.Regenerate {
		list = append(list, merge.Regeneration{Files: r.Files, Command: r.Command, Timeout: r.Timeout.Std()})
	}
	return list
}

// useWorkspaces makes the pool's integration clones those of the queue.
func (l *landing) useWorkspaces(o *merge.Options, p *pool.Pool) {
	o.Integration = func(ctx context.Context, commit string) (merge.Workspace, error) {
		w, err := p.Integration(ctx, commit)
		if err != nil {
			return merge.Workspace{}, err
		}
		done := func(ctx context.Context) {
			if err := p.Release(ctx, w, pool.Landed); err != nil {
				l.a.say("Warning: %v", err)
			}
		}
		out := merge.Workspace{Dir: w.Dir, Environ: w.Env(), Setup: w.Setup, Done: done}
		if l.verdict.Boxed {
			box, err := l.gateBox(ctx, w.Dir)
			if err != nil {
				done(ctx)
				return merge.Workspace{}, err
			}
			out.Box, out.Environ = &box.Gates, append(out.Environ, box.Caches...)
		}
		return out, nil
	}
}

// gateBox is the box of gates in a folder. Landing gates have caches of their
// own, so that what an agent left in its cannot make a gate green.
func (l *landing) gateBox(ctx context.Context, dir string) (*engine.Box, error) {
	s := &session{a: l.a, c: l.c, plan: l.plan, stateDir: config.StateDir(l.c.Root, l.a.env)}
	s.cache = filepath.Join(s.stateDir, "cache-landing")
	s.plan.Root, s.plan.Agents = dir, nil
	tree, err := workspace.Open(ctx, dir, workspace.Options{StateDir: filepath.Join(s.stateDir, "queue", "box")})
	if err != nil {
		return nil, err
	}
	s.tree = tree
	return s.policies(ctx, l.verdict), nil
}

// environment is what beside tree and gates a verdict depends on, as far as
// pawl can know: programs found by PATH, the level, setup and copied files.
func (l *landing) environment() string {
	h := sha256.New()
	for _, part := range []string{
		l.a.getenv("PATH"), l.plan.Safety, l.verdict.Enforced, strings.Join(l.c.Workspace.Setup, "\n"), strings.Join(l.c.Workspace.Copy, "\n"),
	} {
		fmt.Fprintf(h, "%q\n", part)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// merge is how verified work lands: as with pawl queue, with what the tasks'
// gates are held to.
func (t *taskPlanner) merge(ctx context.Context, repo *git.Repo, store *sqlite.Store, plan engine.Plan, clones *pool.Pool) (merge.Options, error) {
	l := &landing{a: t.a, c: t.c, store: store, repo: repo, plan: plan, verdict: t.verdict}
	o, err := l.options(ctx, nil)
	if err != nil {
		return o, err
	}
	if err := l.canPropose(ctx, &o); err != nil {
		return o, err
	}
	l.useWorkspaces(&o, clones)
	o.Resolve = t.resolver(clones, store).Resolve
	return o, nil
}
