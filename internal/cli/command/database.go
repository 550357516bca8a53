package command

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/forge"
	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/store"
)

// Database opens the database that a configuration names: that of cluster.store, or
// the file of this machine.
func (a *App) Database(ctx context.Context, c *config.Config) (*store.Store, error) {
	if c.Cluster.Store == "" {
		return a.LocalDatabase(ctx, c.Root)
	}
	return store.OpenShared(ctx, SharedBy(ctx, c))
}

// LocalDatabase opens the file of this machine.
func (a *App) LocalDatabase(ctx context.Context, root string) (*store.Store, error) {
	return store.Open(ctx, filepath.Join(config.StateDir(root, a.Env), "pawl.db"))
}

// SharedBy is the database that a configuration names for several people.
func SharedBy(ctx context.Context, c *config.Config) store.Shared {
	host, _ := os.Hostname()
	s := store.Shared{Address: c.Cluster.Store, Place: host + ":" + c.Root}
	if u, err := url.Parse(s.Address); err == nil && u.Query().Has("repository") {
		return s // it has the name itself
	}
	if repo, err := git.Open(ctx, c.Root); err == nil {
		if remote, err := repo.RemoteURL(ctx, "origin"); err == nil {
			s.Repository = forge.Name(remote)
		}
	}
	return s
}

// database is [App.Database] for who may look without a valid configuration. One
// that is invalid names no other database only where nothing speaks of a cluster.
func (a *App) database(ctx context.Context, root string) (*store.Store, error) {
	quiet := *a
	quiet.Quiet = true // warnings are for who uses the rest of it
	c, read, err := quiet.load(nil)
	if err != nil {
		for _, f := range read {
			if strings.Contains(f.Text, "cluster") {
				return nil, err
			}
		}
		if a.Getenv("PAWL_CLUSTER_STORE") != "" {
			return nil, err
		}
		return a.LocalDatabase(ctx, root)
	}
	if c.Cluster.Store != "" {
		if err := a.trusted(read); err != nil {
			return nil, err
		}
	}
	return a.Database(ctx, c)
}
