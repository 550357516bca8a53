package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace/pool"
)

// pool opens the workspaces of the repository that the configuration is for.
func (a *app) pool(ctx context.Context, c *config.Config, store *sqlite.Store) (*pool.Pool, error) {
	p, err := pool.Open(ctx, pool.Options{
		Root: c.Root, StateDir: config.StateDir(c.Root, a.env), Dir: string(c.Workspace.Root), Store: store,
		Copy: c.Workspace.Copy, Setup: c.Workspace.Setup, Retention: c.Workspace.Retention.Std(),
		KeepOnSuccess: c.Workspace.KeepOnSuccess, MaxFile: int64(c.Snapshot.MaxFile), Warm: c.Autopilot.MaxParallel + 1, // the gates before a landing need one too
	})
	if errors.Is(err, git.ErrNotRepository) {
		return nil, usage("there are no workspaces outside of a git repository").Hint("Make one: git init")
	}
	if err != nil {
		return nil, err
	}
	if moved := p.Moved(); moved != "" {
		a.say("Warning: %s", moved)
	}
	for _, note := range p.Notes() {
		a.say("Warning: %s.", note)
	}
	return p, nil
}

// withPool opens the board and the workspaces.
func (a *app) withPool(ctx context.Context, do func(*action.Operator, *pool.Pool) error) error {
	c, err := a.load(nil)
	if err != nil {
		return err
	}
	return a.withOperator(ctx, func(p *action.Operator) error {
		clones, err := a.pool(ctx, c, p.Store)
		if err != nil {
			return err
		}
		return do(p, clones)
	})
}

// shownSpace is the workspace of a task in `case show --json`.
type shownSpace struct {
	Dir       string    `json:"dir"`
	State     string    `json:"state"`
	Branch    string    `json:"branch"`
	Base      string    `json:"base"`
	Commit    string    `json:"commit,omitempty"` // what was collected last
	PortBase  int       `json:"port_base,omitempty"`
	Why       string    `json:"why,omitempty"`
	Process   int       `json:"process,omitempty"` // the live process that works in it
	KeepUntil time.Time `json:"keep_until,omitzero"`
	Gone      bool      `json:"gone,omitempty"` // somebody removed its folder
}

// caseSpace is the workspace of a task; nil when it has none.
func caseSpace(ctx context.Context, store *sqlite.Store, id string) (*shownSpace, error) {
	r, ok, err := store.Workspace(ctx, id)
	if err != nil || !ok {
		return nil, err
	}
	s := &shownSpace{Dir: r.Dir, State: r.State, Branch: r.Branch, Base: r.Base, Commit: r.Head, PortBase: r.Ports, Why: r.Why}
	_, err = os.Lstat(r.Dir)
	s.Gone = errors.Is(err, os.ErrNotExist)
	if engine.Alive(r.Owner) {
		s.Process = r.Owner.PID
	} else {
		s.KeepUntil = r.KeepUntil
	}
	return s, nil
}

func (a *app) printSpace(s *shownSpace) {
	if s == nil {
		return
	}
	a.result("  workspace   %s\n", report.Line(s.Dir, 1000))
	what := s.State
	switch {
	case s.Gone:
		what = "its folder is gone, with what it held"
	case s.Process != 0:
		what = fmt.Sprintf("process %d works in it", s.Process)
	case s.Why != "":
		what += ": " + report.Line(s.Why, 300)
	}
	if !s.KeepUntil.IsZero() && !s.Gone {
		what += ", until " + minute(s.KeepUntil)
	}
	a.result("              %s\n", what)
	a.result("              branch %s from %.12s", s.Branch, s.Base)
	if s.PortBase > 0 {
		a.result(", ports %d to %d", s.PortBase, s.PortBase+pool.PortsIn-1)
	}
	a.result("\n")
}
