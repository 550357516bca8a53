package session

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/git/blob"
	"github.com/pawl-dev/pawl/internal/do/trust"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// targetConfig reads the configuration that the target has at a commit. So all machines judge and work by the same
// gates, limits, level and agents, whatever their clones have checked out. Files that the person has changed and not
// committed, or named with --config, stay in force, and so does what concerns this machine and its person: keys,
// hooks, what the sandbox shows.
type targetConfig struct {
	a     command.App
	own   *config.Config // as it was loaded here
	repo  *git.Repo
	flags map[string]string

	mu     sync.Mutex
	whyOwn string            // why it is not to be read from commits; "" is that it is
	here   map[string]string // the blobs of its files
	read   []trust.File      // the files that the last one was made of
	last   string
	config *config.Config
}

func newTargetConfig(ctx context.Context, a *command.App, c *config.Config, repo *git.Repo, flags map[string]string,
) *targetConfig {
	t := &targetConfig{a: *a, own: c, repo: repo, flags: flags, read: c.Files}
	t.a.Quiet = true
	var err error
	t.here, err = blob.List(ctx, repo, "HEAD", t.pathsBelow(c.Files))
	switch {
	case err != nil:
		t.whyOwn = err.Error()
	case a.File != "":
		t.whyOwn = "--config names another file"
	case a.Over != "":
		t.whyOwn = "it was started with settings of its own"
	}
	for _, f := range c.Files {
		if path, ok := files.Below(repo.Top, f.Path); ok && t.whyOwn == "" && f.Why != trust.Missing {
			text, err := blob.Content(ctx, repo, t.here[filepath.ToSlash(path)])
			if err != nil || unixLines(string(text)) != unixLines(f.Text) {
				t.whyOwn = path + " has changes that are not committed"
			}
		}
	}
	return t
}

func unixLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// pathsBelow returns those of the files that are in the repository, relative to its top.
func (t *targetConfig) pathsBelow(list []trust.File) (paths []string) {
	for _, f := range list {
		if path, ok := files.Below(t.repo.Top, f.Path); ok {
			paths = append(paths, filepath.ToSlash(path))
		}
	}
	return paths
}

// loadCommit loads the configuration of a commit. flags are set besides those of this process. For a commit without
// pawl.yaml it is that of this process: nothing would be judged otherwise.
func (t *targetConfig) loadCommit(ctx context.Context, commit string, flags map[string]string) (*config.Config, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.whyOwn != "" {
		return t.loadLocalConfig(flags)
	}
	for {
		blobs, err := blob.List(ctx, t.repo, commit, t.pathsBelow(t.read))
		key := fmt.Sprint(blobs, flags)
		name, _ := files.Below(t.repo.Top, filepath.Join(t.own.Root, statedir.FileName))
		differs := func(path string) bool { return blobs[path] != t.here[path] }
		isOwn := blobs[filepath.ToSlash(name)] == "" || !slices.ContainsFunc(t.pathsBelow(t.own.Files), differs)
		switch {
		case err != nil:
			return nil, err
		case isOwn:
			return t.loadLocalConfig(flags)
		case key == t.last:
			return t.config, nil
		}
		pins, err := t.readPins(ctx, blobs)
		if err != nil {
			return nil, err
		}
		c, err := command.LoadFrom(t.a, pins, t.withFlags(flags))
		if err != nil {
			return nil, fmt.Errorf("the configuration of %.10s: %w", commit, err)
		}
		if t.hasReadAll(c.Files) {
			t.last, t.config = key, t.keepLocalSettings(c)
			return t.config, nil
		}
		t.read = append(slices.Clone(t.read), c.Files...) // it names files that none did before
	}
}

// loadLocalConfig is the configuration that lies here.
func (t *targetConfig) loadLocalConfig(flags map[string]string) (*config.Config, error) {
	if len(flags) == 0 {
		return t.own, nil
	}
	return t.a.Load(t.withFlags(flags))
}

// hasReadAll reports whether all of the files are among those that are read from commits.
func (t *targetConfig) hasReadAll(list []trust.File) bool {
	known := lists.Set(t.pathsBelow(t.read))
	return !slices.ContainsFunc(t.pathsBelow(list), func(path string) bool { return !known[path] })
}

func (t *targetConfig) withFlags(more map[string]string) map[string]string {
	all := maps.Clone(t.flags)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, more)
	return all
}

// readPins are the files as the blobs have them; what is outside of the repository is read where it is.
func (t *targetConfig) readPins(ctx context.Context, blobs map[string]string) (pins []trust.File, err error) {
	for _, f := range t.read {
		path, ok := files.Below(t.repo.Top, f.Path)
		if !ok {
			continue
		}
		pin := trust.File{Path: f.Path, Why: trust.Missing}
		if name := blobs[filepath.ToSlash(path)]; name != "" {
			text, err := blob.Content(ctx, t.repo, name)
			if err != nil {
				return nil, err
			}
			pin.Text, pin.Why = string(text), ""
		}
		pins = append(pins, pin)
	}
	return pins, nil
}

// keepLocalSettings leaves to this machine and its person what is theirs. The level is not lower than here.
func (t *targetConfig) keepLocalSettings(c *config.Config) *config.Config {
	own := t.own
	c.Safety, c.Gateway, c.Hooks, c.Notify, c.Forge = own.Safety, own.Gateway, own.Hooks, own.Notify, own.Forge
	c.Cluster, c.Server, c.Merge, c.Workspace = own.Cluster, own.Server, own.Merge, own.Workspace
	c.Autopilot, c.Sprint, c.Prices = own.Autopilot, own.Sprint, own.Prices
	c.Retention, c.Snapshot = own.Retention, own.Snapshot
	c.Loop.Safety = planner.StricterLevel(c.Loop.Safety, own.Loop.Safety)
	return c
}
