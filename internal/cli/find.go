package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/planner"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

// store opens the database of the repository that the person is in. There need
// be no valid pawl.yaml: runs can be looked at without one.
func (a *app) store(ctx context.Context) (*sqlite.Store, string, error) {
	root, err := a.root()
	if err != nil {
		return nil, "", err
	}
	store, err := sqlite.Open(ctx, filepath.Join(config.StateDir(root, a.env), "pawl.db"))
	if err != nil {
		return nil, "", err
	}
	store.OnWait(func(holder string) { a.say("%s", lockedBy(holder)) })
	return store, root, nil
}

// root is the folder of the repository that the person is in.
func (a *app) root() (string, error) {
	root, err := config.FindRoot(a.dir)
	if err != nil {
		return "", fault.Of(fault.Refused, err)
	}
	return root, nil
}

func lockedBy(holder string) string {
	return "Waiting for the database, which " + holder + " has locked."
}

// operator acts on the work of root, and says what came of it.
func (a *app) operator(store *sqlite.Store, root string) *action.Operator {
	return &action.Operator{
		Store: store, Root: root, Env: a.env, Log: openLog, Say: a.say,
		Planner: func(root string, f planner.Flags) (*planner.Planner, error) {
			there := *a
			there.dir = root
			c, err := there.load(f.Paths())
			return there.planner(c, f), err
		},
		Result: func(format string, args ...any) {
			if !a.json {
				a.result(format, args...)
			}
		},
	}
}

// withOperator opens the database for somebody who looks at the work or acts on it.
func (a *app) withOperator(ctx context.Context, do func(*action.Operator) error) (err error) {
	store, root, err := a.store(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := store.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("cannot close the database: %v", cerr)
		}
	}()
	return action.Explain(do(a.operator(store, root)))
}

// withRun finds a run and works on it.
func (a *app) withRun(ctx context.Context, name string, do func(*action.Operator, sqlite.Run) error) error {
	return a.withOperator(ctx, func(p *action.Operator) error {
		name = a.runName(name)
		run, err := findRun(ctx, p.Store, p.Root, name)
		if err != nil {
			return a.lookupError(err, name)
		}
		return do(p, run)
	})
}

// findRun finds a run by its id, a prefix of it, or the name of its procedure,
// whose last run it then is.
func findRun(ctx context.Context, store *sqlite.Store, root, name string) (sqlite.Run, error) {
	run, err := store.Latest(ctx, root, name)
	if err == nil || !errors.Is(err, sqlite.ErrNotFound) {
		return run, err
	}
	return store.Run(ctx, name)
}

// lookupError says what a person can do when a run is not found.
func (a *app) lookupError(err error, name string) error {
	var known *fault.Error
	switch {
	case errors.As(err, &known):
	case errors.Is(err, sqlite.ErrNotFound):
		return usage("there is no run or procedure %q with a run here", name).Hint("List the runs: pawl ps -a")
	case errors.Is(err, sqlite.ErrAmbiguous):
		return fault.Of(fault.Refused, err).Hint("Give more characters of the id")
	}
	return err
}
