package command

import (
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/retention"
	"github.com/pawl-dev/pawl/internal/store"
)

// Retention is what the configuration says about what is over.
func Retention(c *config.Config, stateDir string, db *store.Store, repo *git.Repo) retention.Options {
	r := c.Retention
	return retention.Options{
		StateDir: stateDir, Store: db, Repo: repo,
		Runs: r.Runs.Std(), Most: r.MaxRuns, Output: r.Output.Std(), Events: r.Events.Std(), Keep: c.Snapshot.Keep.Std(),
	}
}
