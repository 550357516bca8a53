package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

// store opens the database of the repository that the person is in. There need
// be no valid pawl.yaml: runs can be looked at without one.
func (a *app) store(ctx context.Context) (*sqlite.Store, string, error) {
	root, err := config.FindRoot(a.dir)
	if err != nil {
		return nil, "", fault.Of(fault.Refused, err)
	}
	store, err := sqlite.Open(ctx, filepath.Join(config.StateDir(root, a.env), "pawl.db"))
	if err != nil {
		return nil, "", fault.Of(fault.Failed, err)
	}
	store.OnWait(func(holder string) { a.say("%s", lockedBy(holder)) })
	return store, root, nil
}

func lockedBy(holder string) string {
	return "Waiting for the database, which " + holder + " has locked."
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
	if errors.As(err, &known) {
		return err
	}
	if errors.Is(err, sqlite.ErrNotFound) {
		return usage("there is no run or procedure %q with a run here", name).Hint("List the runs: pawl ps -a")
	}
	if errors.Is(err, sqlite.ErrAmbiguous) {
		return fault.Of(fault.Refused, err).Hint("%s", "Give more characters of the id")
	}
	return fault.Of(fault.Failed, err)
}

// withRun opens the database, finds a run and works on it.
func (a *app) withRun(ctx context.Context, name string, do func(*sqlite.Store, sqlite.Run) error) (err error) {
	store, root, err := a.store(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := store.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("cannot close the database: %v", cerr)
		}
	}()
	name = a.runName(name)
	run, err := findRun(ctx, store, root, name)
	if err != nil {
		return a.lookupError(err, name)
	}
	return do(store, run)
}
