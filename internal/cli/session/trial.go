package session

import (
	"context"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/merge"
)

// TryGates runs each gate once on the target, in a clone that is set up like that of a
// task. begins hears of each. A green verdict is that which the autopilot starts with.
func TryGates(ctx context.Context, a *command.App, c *config.Config, begins func(string)) (
	t merge.Trial, err error) {
	db, err := a.Database(ctx, c)
	if err != nil {
		return t, err
	}
	defer func() { _ = db.Close() }() // the verdict is stored
	l, err := OpenLanding(ctx, a, c, db)
	if err != nil {
		return t, err
	}
	if err := l.Box(ctx, false); err != nil {
		return t, err
	}
	o, err := l.Options(ctx, nil)
	if err != nil {
		return t, err
	}
	clones, err := a.Pool(ctx, c, db)
	if err != nil {
		return t, err
	}
	l.UseWorkspaces(&o, clones)
	o.Begins, o.Local = begins, true
	q, err := merge.Open(ctx, o)
	if err != nil {
		return t, err
	}
	own, err := filepath.Rel(l.Repo.Top, c.File)
	if c.File == "" || err != nil || !filepath.IsLocal(own) {
		own = ""
	}
	return q.Try(ctx, filepath.ToSlash(own))
}
