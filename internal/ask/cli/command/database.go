package command

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/forge"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/retention"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/outputs"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Database opens the database that a configuration names: that of cluster.store, or
// the file of this machine. It is for who uses the configuration as a whole: its address
// is one that the person has used from now on.
func (a *App) Database(ctx context.Context, c *config.Config) (*store.Store, error) {
	if c.Cluster.Store == "" {
		return a.LocalDatabase(ctx, c.Root)
	}
	if err := statedir.Make(c.Root, a.Env); err != nil {
		return nil, err
	}
	if a.KnowsShared(c) != nil {
		path := a.usedShared(c)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = files.Replace(path, nil, 0o600, false)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot record that cluster.store is used: %w", err)
		}
	}
	db, err := store.OpenShared(ctx, sharedBy(ctx, c))
	if err == nil {
		db.SetPerson(nameUser(c.Root))
		if others := db.OthersWhenMade(); len(others) > 0 {
			a.Say("Created a board for %s. The database already has %s, as %s. If you meant one of them, name it in "+
				"cluster.store, …?repository=NAME, or by the remote origin; 'pawl cluster check' lists them.",
				db.BoardName(), fault.Numbered(len(others), "other board"), others[0])
		}
		_ = statedir.KeepRoot(c.Root, a.Env, FindCommit(ctx, c.Root)) // without it another server does not list it
	}
	return db, err
}

// KnowsShared refuses a database that only the repository names, that the user has not used
// with it, and that would receive the user's password. So a look at a fresh clone sends no
// password to a stranger's server.
func (a *App) KnowsShared(c *config.Config) error {
	if c.Cluster.Store == "" || !c.IsOfProject("cluster.store") || !a.sendsPasswordToAnyServer() {
		return nil
	}
	if _, err := os.Stat(a.usedShared(c)); err == nil {
		return nil
	}
	host := "somewhere"
	if u, err := url.Parse(c.Cluster.Store); err == nil {
		host = u.Host
	}
	return Usage("pawl.yaml keeps the board in a database at %q, which you have not used with this repository", host).
		Hint("If you know it: pawl cluster check")
}

// sendsPasswordToAnyServer reports whether the user's password is in the environment, or
// ~/.pgpass has one for all hosts.
func (a *App) sendsPasswordToAnyServer() bool {
	if a.Getenv("PGPASSWORD") != "" {
		return true
	}
	path := cmp.Or(a.Getenv("PGPASSFILE"), filepath.Join(a.Getenv("HOME"), ".pgpass"))
	text, err := os.ReadFile(path)
	return err == nil && slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "*:")
	})
}

// usedShared is a file that is there once the person has used the address.
func (a *App) usedShared(c *config.Config) string {
	sum := sha256.Sum256([]byte(c.Cluster.Store))
	return filepath.Join(statedir.Of(c.Root, a.Env), "shared", hex.EncodeToString(sum[:8]))
}

// nameUser finds, once and when it is needed, the name of the person who works in a repository: that of git's
// settings, else of the system's user.
func nameUser(root string) func() string {
	return sync.OnceValue(func() string {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if repo, err := git.Open(ctx, root); err == nil {
			settings, _ := repo.Config(ctx) // without, the system's user has a name
			for _, s := range slices.Backward(settings) {
				if s.Key == "user.name" {
					return s.Value
				}
			}
		}
		if u, err := user.Current(); err == nil {
			return u.Username
		}
		return ""
	})
}

// LocalDatabase opens the file of this machine.
func (a *App) LocalDatabase(ctx context.Context, root string) (*store.Store, error) {
	if err := statedir.Make(root, a.Env); err != nil {
		return nil, err
	}
	shown := filepath.Join(statedir.Base(a.Env), "alive")
	if err := os.MkdirAll(shown, 0o700); err == nil {
		if id, err := files.Identity(shown); err == nil {
			process.ShowIn(shown, id)
		}
	}
	db, err := store.Open(ctx, filepath.Join(statedir.Of(root, a.Env), "pawl.db"))
	if err != nil {
		return nil, err
	}
	db.SetPerson(nameUser(root))
	if before := statedir.RootBefore(root, a.Env); before != "" {
		if err := db.MoveRuns(ctx, before, root); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	_ = statedir.KeepRoot(root, a.Env, FindCommit(ctx, root)) // without it another server does not list it
	return db, nil
}

// ClaimState finds the state of the repository that the person is in, where it was moved
// or made anew; see [config.ClaimState]. Agents and gates have no state of their own.
func (a *App) ClaimState(ctx context.Context) error {
	root, err := statedir.FindRoot(a.Dir)
	if err != nil || a.Getenv("PAWL_RUN") != "" {
		return nil //nolint:nilerr // the command that needs the root says so
	}
	err = statedir.Claim(root, a.Env, FindCommit(ctx, root))
	if before := statedir.RootBefore(root, a.Env); before != "" {
		a.Say("Note: this repository was in %s before; its board, runs and workspaces moved with it.", before)
	}
	return err
}

// FindCommit finds commits of the repository at root; none if git fails.
func FindCommit(ctx context.Context, root string) statedir.FindCommit {
	return func(name string) string {
		repo, err := git.OpenStore(ctx, root)
		if err != nil {
			return ""
		}
		id, _ := repo.Find(ctx, name)
		return id
	}
}

// EngineAt is the engine that the configuration names, with the key of this machine.
func (a *App) EngineAt(c *config.Config) (autopilot.EngineAt, error) {
	k := c.Cluster
	at := autopilot.EngineAt{Address: k.Engine, CA: string(k.TLS.CA), Cert: string(k.TLS.Cert), Key: string(k.TLS.Key)}
	if k.APIKey == "" {
		return at, nil
	}
	if at.APIKey = a.Getenv(k.APIKey); at.APIKey == "" {
		return at, Usage("cluster.api_key names the variable %s, which is not set", k.APIKey).
			Hint("Set it where pawl-cluster is started; pawl.yaml must not contain the key itself")
	}
	return at, nil
}

// sharedBy is the database that a configuration names for several people.
func sharedBy(ctx context.Context, c *config.Config) store.Shared {
	host, _ := os.Hostname()
	s := store.Shared{Address: c.Cluster.Store, Place: host + ":" + c.Root, Files: c.Cluster.Folder()}
	if self, err := process.Self(); err == nil {
		s.Boot = storedrun.OwnerOf(self).Boot
	}
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

// openDatabase returns [App.Database] for who may look without a valid configuration. One
// that is invalid names no other database only where nothing speaks of a cluster.
func (a *App) openDatabase(ctx context.Context, root string) (*store.Store, error) {
	quiet := *a
	quiet.Quiet = true // warnings are for who uses the rest of it
	c, read, err := quiet.loadConfig(nil)
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
		if err := a.askAboutChangedFiles(read); err != nil {
			return nil, err
		}
	}
	if err := a.KnowsShared(c); err != nil {
		return nil, err
	}
	return a.Database(ctx, c)
}

// RetentionOptions takes the limits from the configuration and the current time from the
// clock. Outside of git there is no tree, since there are no refs to remove.
func RetentionOptions(
	ctx context.Context, c *config.Config, stateDir string, db *store.Store,
) (o retention.Options, err error) {
	tree, err := workspace.Open(ctx, c.Root, workspace.Options{StateDir: stateDir})
	if errors.Is(err, git.ErrNotRepository) || errors.Is(err, git.ErrNoGit) {
		tree, err = nil, nil // there are no refs outside of git
	}
	r := c.Retention
	return retention.Options{
		StateDir: stateDir, Store: db, Tree: tree, Now: process.Cautious(),
		Runs: r.Runs.Std(), Most: r.MaxRuns, Output: r.Output.Std(), Events: r.Events.Std(),
		Keep: c.Snapshot.Keep.Std(),
	}, err
}

// Store opens the database of the repository that the person is in. There need
// be no valid pawl.yaml: runs can be looked at without one.
func (a *App) Store(ctx context.Context) (*store.Store, string, error) {
	root, err := a.Root()
	if err != nil {
		return nil, "", err
	}
	db, err := a.openDatabase(ctx, root)
	if err != nil {
		return nil, "", err
	}
	db.OnWait(func(why string) { a.Say("%s", LockedBy(why)) })
	return db, root, nil
}

// Root is the folder of the repository that the person is in.
func (a *App) Root() (string, error) {
	root, err := statedir.FindRoot(a.Dir)
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
			return a.ExplainNotFound(err, name)
		}
		if run, err = p.WaitUntilReleased(ctx, run); err != nil {
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
	if errors.Is(err, store.ErrNotFound) && db.BoardName() != "" {
		run, err = db.Latest(ctx, "", name) // of another machine's clone
	}
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

// Outputs opens the folder with what a run printed in an iteration: on this machine, or
// as the board's machines share it.
func (a *App) Outputs(db *store.Store, r store.Run, iteration int) (*os.Root, error) {
	return outputs.Open(filepath.Join(statedir.Of(r.Root, a.Env), "runs"), db.OutputsFolder(), r.ID,
		strconv.Itoa(iteration))
}

// ExplainNotFound adds hints to the error of a run that is not found. Other errors are
// returned as they are.
func (a *App) ExplainNotFound(err error, name string) error {
	switch {
	case fault.Is[*fault.Error](err):
	case errors.Is(err, store.ErrNotFound):
		e := Usage("there is no run or procedure %q with a run here%s", name, a.suggestRun(name)).
			Hint("List the runs: pawl ps -a")
		if _, _, isCase := board.ParseID(name); isCase {
			e = e.Hint("A task has a run only after it was started: pawl case show %s", board.Normal(name))
		}
		return e
	case errors.Is(err, store.ErrAmbiguous):
		return fault.Of(fault.Refused, err).Hint("Give more characters of the id")
	}
	return err
}

// RunName returns the name to look a run up by: that of the workflow in a file, else arg.
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

// Pool opens the board's workspaces of the repository that the configuration is for.
func (a *App) Pool(ctx context.Context, c *config.Config, db *store.Store) (*pool.Pool, error) {
	p, err := action.Pool(ctx, c, a.Env, db)
	if errors.Is(err, git.ErrNotRepository) {
		return nil, Usage("there are no workspaces outside of a git repository").Hint("Create one: git init")
	}
	if err == nil {
		err = p.CheckWritable()
	}
	if err == nil {
		err = p.ClaimBoard()
	}
	if err != nil {
		return nil, err
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
