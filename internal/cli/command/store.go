package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/outputs"
	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/internal/workspace/pool"
)

// Store opens the database of the repository that the person is in. There need
// be no valid pawl.yaml: runs can be looked at without one.
func (a *App) Store(ctx context.Context) (*store.Store, string, error) {
	root, err := a.Root()
	if err != nil {
		return nil, "", err
	}
	db, err := a.database(ctx, root)
	if err != nil {
		return nil, "", err
	}
	db.OnWait(func(why string) { a.Say("%s", LockedBy(why)) })
	return db, root, nil
}

// Root is the folder of the repository that the person is in.
func (a *App) Root() (string, error) {
	root, err := config.FindRoot(a.Dir)
	if err != nil {
		return "", fault.Of(fault.Refused, err)
	}
	return root, nil
}

// LockedBy is the note that somebody else has the database, or that it is away.
func LockedBy(why string) string {
	return "Waiting for the database, " + why + "."
}

// WithOperator opens the database for somebody who looks at the work or acts on it.
func (a *App) WithOperator(ctx context.Context, do func(*action.Operator) error) (err error) {
	db, root, err := a.Store(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := db.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("cannot close the database: %v", cerr)
		}
	}()
	return action.Explain(do(a.Operator(db, root)))
}

// WithRun finds a run and works on it.
func (a *App) WithRun(ctx context.Context, name string, do func(*action.Operator, store.Run) error) error {
	return a.WithOperator(ctx, func(p *action.Operator) error {
		name = a.RunName(name)
		run, err := FindRun(ctx, p.Store, p.Root, name)
		if err != nil {
			return a.LookupError(err, name)
		}
		if run, err = p.LetGo(ctx, run); err != nil {
			return err
		}
		return do(p, run)
	})
}

// FindRun finds a run by its id, a prefix of it, or the name of its procedure or
// task, whose last run it then is; 42 is task-042, and no run whose id begins so where
// the board has that task.
func FindRun(ctx context.Context, db *store.Store, root, name string) (store.Run, error) {
	run, err := db.Latest(ctx, root, name)
	if _, _, isCase := board.ParseID(name); isCase && errors.Is(err, store.ErrNotFound) {
		run, err = db.Latest(ctx, root, board.Normal(name))
		if _, cerr := db.Case(ctx, board.Normal(name)); cerr == nil {
			return run, err
		}
	}
	if err == nil || !errors.Is(err, store.ErrNotFound) {
		return run, err
	}
	return db.Run(ctx, name)
}

// Outputs opens the folder with what a run printed, or one below it: on this machine, or
// in the folder that the board's machines share.
func (a *App) Outputs(db *store.Store, r store.Run, below ...string) (*os.Root, error) {
	return outputs.Open(filepath.Join(config.StateDir(r.Root, a.Env), "runs"), db.Files(), r.ID, below...)
}

// LookupError says what a person can do when a run is not found.
func (a *App) LookupError(err error, name string) error {
	var known *fault.Error
	switch {
	case errors.As(err, &known):
	case errors.Is(err, store.ErrNotFound):
		e := Usage("there is no run or procedure %q with a run here%s", name, a.meant(name)).
			Hint("List the runs: pawl ps -a")
		if _, _, isCase := board.ParseID(name); isCase {
			e = e.Hint("A task has a run once it was started: pawl case show %s", board.Normal(name))
		}
		return e
	case errors.Is(err, store.ErrAmbiguous):
		return fault.Of(fault.Refused, err).Hint("Give more characters of the id")
	}
	return err
}

// RunName is what a run is looked up by: of a workflow file, its name.
func (a *App) RunName(arg string) string {
	if !strings.HasSuffix(arg, ".yaml") && !strings.HasSuffix(arg, ".yml") {
		return arg
	}
	w, err := config.LoadWorkflow(a.Dir, arg)
	if err != nil {
		return strings.TrimSuffix(filepath.Base(arg), filepath.Ext(arg))
	}
	return w.Plan.Name
}

// Pool opens the workspaces of the repository that the configuration is for.
func (a *App) Pool(ctx context.Context, c *config.Config, db *store.Store) (*pool.Pool, error) {
	p, err := action.Pool(ctx, c, a.Env, db)
	if errors.Is(err, git.ErrNotRepository) {
		return nil, Usage("there are no workspaces outside of a git repository").Hint("Make one: git init")
	}
	if err != nil {
		return nil, err
	}
	if moved := p.Moved(); moved != "" {
		a.Say("Warning: %s", moved)
	}
	for _, note := range p.Notes() {
		a.Say("Warning: %s.", note)
	}
	return p, nil
}

// WithPool opens the board and the workspaces.
func (a *App) WithPool(ctx context.Context, do func(*action.Operator, *pool.Pool) error) error {
	c, err := a.Load(nil)
	if err != nil {
		return err
	}
	return a.WithOperator(ctx, func(p *action.Operator) error {
		clones, err := a.Pool(ctx, c, p.Store)
		if err != nil {
			return err
		}
		return do(p, clones)
	})
}
