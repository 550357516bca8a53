// Package cluster has the commands about what several people or machines share: the
// board in a database of PostgreSQL.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/do/autopilot/overview"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Command is the parent of the commands about what is shared.
func Command(a *command.App) *cobra.Command {
	return command.Group("cluster", "The board in a database that several people or machines share", nil,
		command.Plain("check", "Check the shared database, folder, remote and engine; say how to repair them",
			func(ctx context.Context) error { return withShared(ctx, a, checkCluster) }),
		command.Plain("status", "Show which machine does what on the shared board",
			func(ctx context.Context) error { return withShared(ctx, a, showStatus) }),
		upCommand(a),
		command.Plain("import", "Copy this machine's board with its history to the shared database",
			func(ctx context.Context) error { return withShared(ctx, a, importBoard) }))
}

// withShared opens the database that the configuration names.
func withShared(ctx context.Context, a *command.App,
	do func(context.Context, *command.App, *config.Config, *store.Store) error) (err error) {
	c, err := a.Load(nil)
	if err != nil {
		return err
	}
	if c.Cluster.Store == "" {
		return command.Usage("there is no shared database").
			Hint("Name one in pawl.yaml: cluster: {store: \"postgres://user@host/database\"}")
	}
	db, err := a.Database(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return do(ctx, a, c, db)
}

// Work is what a process of some machine does on the board.
type Work struct {
	Machine   string    `json:"machine"` // "" if no process drives the run now
	PID       int       `json:"pid,omitempty"`
	What      string    `json:"what"` // autopilot, or the kind of the run
	Name      string    `json:"name,omitempty"`
	Run       string    `json:"run,omitempty"`
	Status    string    `json:"status"`
	Iteration int       `json:"iteration,omitempty"`
	At        time.Time `json:"at"` // its last step
}

func showStatus(ctx context.Context, a *command.App, _ *config.Config, db *store.Store) error {
	pilot, there, err := db.Autopilot(ctx)
	if err != nil {
		return err
	}
	runs, err := db.Runs(ctx, store.RunQuery{Active: true})
	if err != nil {
		return err
	}
	all := []Work{}
	if there && pilot.Owner.PID != 0 {
		all = append(all, Work{Machine: pilot.Owner.Host, PID: pilot.Owner.PID, What: "autopilot",
			Status: pilot.Phase, At: pilot.UpdatedAt})
	}
	for _, r := range runs {
		all = append(all, Work{
			Machine: r.Owner.Host, PID: r.Owner.PID, What: r.Kind, Name: r.Name, Run: r.ID,
			Status: r.Status, Iteration: r.Iteration, At: r.UpdatedAt,
		})
	}
	slices.SortStableFunc(all, func(x, y Work) int { return strings.Compare(x.Machine, y.Machine) })
	workers, err := db.Workers(ctx)
	if err != nil {
		return err
	}
	out := Status{Workers: append([]store.Worker{}, workers...), Work: all}
	if out.Waiting, err = listWaiting(ctx, db); err != nil {
		return err
	}
	if a.JSON {
		return a.JSONLine(out)
	}
	out.printWorkers(a)
	return nil
}

// Status is the state of the shared board.
type Status struct {
	Workers []store.Worker `json:"workers"`
	Work    []Work         `json:"work"`
	Waiting []string       `json:"waiting"` // what waits, and for what
}

// listWaiting returns a line for each kind of task that waits for a worker, and for each
// queue in which work waits to land.
func listWaiting(ctx context.Context, db *store.Store) ([]string, error) {
	lines := []string{}
	idle, err := overview.IdleOf(ctx, db)
	if err != nil {
		return lines, err
	}
	lines = append(append(lines, idle.Away...), idle.Lines()...)
	targets, err := db.QueueTargets(ctx)
	for _, target := range targets {
		q, _, err := db.Queue(ctx, target)
		if err != nil {
			return lines, err
		}
		branch := command.BranchName(target)
		if n := len(q.State.Entries); n > 0 {
			lines = append(lines, fmt.Sprintf("to land on %s: %s", branch, fault.Numbered(n, "task")))
		}
		if u := q.State.Unpushed; u != nil {
			lines = append(lines, fmt.Sprintf("%s is not pushed yet: %s", branch, cmp.Or(u.Why, "it is being pushed")))
		}
		if q.State.Stop != nil {
			lines = append(lines, fmt.Sprintf("the queue of %s is blocked: %s", branch, q.State.Stop.Why))
		}
	}
	return lines, err
}

func (s *Status) printWorkers(a *command.App) {
	var rows [][]any
	for _, w := range s.Workers {
		does := fmt.Sprintf("%d of %d", w.Used, w.Slots)
		switch {
		case w.Silent:
			does = "silent"
		case w.Drains:
			does += ", drains"
		}
		if math.Abs(w.Behind) >= apart {
			does += fmt.Sprintf(", clock %+.0f s", -w.Behind)
		}
		rows = append(rows, []any{w.Name, w.PID, does, cmp.Or(strings.Join(w.Labels, ", "), "-"), w.Version,
			w.BeatAt.Local().Format(time.DateTime)})
	}
	if len(rows) > 0 {
		a.Table("WORKER\tPROCESS\tSLOTS\tLABELS\tVERSION\tLAST SEEN", rows, 0)
	}
	if rows = nil; len(s.Work) == 0 {
		a.Say("Nothing is running on the board.")
	}
	for _, w := range s.Work {
		process := ""
		if w.PID != 0 {
			process = strconv.Itoa(w.PID)
		}
		at := w.At.Local().Format(time.DateTime)
		rows = append(rows, []any{cmp.Or(w.Machine, "-"), process, w.What, w.Name, w.Run, w.Status, at})
	}
	if len(rows) > 0 {
		a.Table("MACHINE\tPROCESS\tWHAT\tNAME\tRUN\tSTATUS\tLAST STEP", rows, 0)
	}
	for _, w := range s.Workers {
		if w.OwnRules != "" {
			a.Result("%s does not follow the target's configuration: %s\n", w.Name, w.OwnRules)
		}
	}
	for _, line := range s.Waiting {
		a.Result("%s\n", line)
	}
}

// importBoard copies the board of this machine into the shared database.
func importBoard(ctx context.Context, a *command.App, c *config.Config, db *store.Store) error {
	path := filepath.Join(statedir.Of(c.Root, a.Env), "pawl.db")
	if _, err := os.Stat(path); err != nil {
		return command.Usage("this machine has no board of the repository: there is no %s", path)
	}
	local, err := a.LocalDatabase(ctx, c.Root)
	if err != nil {
		return err
	}
	defer func() { _ = local.Close() }() // it was only read
	rows, was, err := db.Import(ctx, local, time.Now(), storedrun.Alive)
	switch {
	case errors.Is(err, store.ErrRunning):
		return fault.Of(fault.Refused, err).Hint("Wait for it, or stop it: pawl autopilot stop, pawl stop NAME")
	case errors.Is(err, store.ErrNotEmpty):
		return fault.Of(fault.Refused, err).
			Hint("Two boards cannot be merged: their tasks have the same numbers. See it: pawl case list, pawl ps -a")
	case err != nil:
		return err
	case !was.IsZero():
		a.Say("This board was copied there on %s; nothing to do.", was.Local().Format("2006-01-02 15:04"))
		return nil
	}
	a.Say("Copied %s to %s.", fault.Numbered(rows, "row"), db.Path())
	a.Say("The board of this machine stays in %s, and is not used while cluster.store is set.", path)
	return nil
}

func upCommand(a *command.App) *cobra.Command {
	local := false
	cmd := command.Plain("up", "Start a database and an engine on this machine, to try a cluster, until you stop it",
		func(ctx context.Context) error {
			if !local {
				return command.Usage("write --local; on other machines set the servers up by hand")
			}
			return runServers(ctx, a)
		})
	cmd.Flags().BoolVar(&local, "local", false, "with the PostgreSQL and the Temporal CLI that are installed")
	return cmd
}

// servers are those that are tried on this machine, with all that they keep in a folder.
type servers struct {
	a      *command.App
	dir    string
	reaper *process.Reaper
}

// upWithin is how long a server may take to answer.
const upWithin = time.Minute

func runServers(ctx context.Context, a *command.App) error {
	c, err := a.Load(nil)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	postgres, temporal := findServers(a)
	switch {
	case postgres == "":
		return command.Usage("PostgreSQL is not installed here").Hint("On Debian: apt-get install postgresql")
	case temporal == "":
		return command.Usage("the Temporal CLI, which includes a server for tests, is not installed here").
			Hint("Put the program temporal on the PATH: https://docs.temporal.io/cli")
	case os.Geteuid() == 0:
		return command.Usage("PostgreSQL does not run as root").
			Hint("Start it as another user, who owns the repository")
	}
	s := servers{a: a, dir: filepath.Join(statedir.Of(c.Root, a.Env), "local")}
	if s.reaper, err = process.NewReaper(); err != nil {
		return err
	}
	defer s.reaper.Close()
	if err := s.initDatabase(filepath.Dir(postgres)); err != nil {
		return err
	}
	return s.runBothServers(ctx, postgres, temporal)
}

func (s *servers) databaseDir() string { return filepath.Join(s.dir, "data") }

// initDatabase makes the database, where there is none.
func (s *servers) initDatabase(programs string) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the servers' folder: %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.databaseDir(), "PG_VERSION")); err == nil {
		return nil
	}
	c, err := s.startServer("initdb", filepath.Join(programs, "initdb"), "-D", s.databaseDir(),
		"-A", "trust", "-U", "pawl", "-E", "UTF8", "--locale=C")
	if err != nil {
		return err
	}
	if <-c.Done(); c.Status() != 0 {
		return s.errorFailed("initdb")
	}
	return nil
}

// runBothServers has both servers run until ctx is done.
func (s *servers) runBothServers(ctx context.Context, postgres, temporal string) error {
	database, err := s.startServer("postgres", postgres, "-D", s.databaseDir(), "-k", s.dir, "-c", "listen_addresses=")
	if err != nil {
		return err
	}
	defer endServer(database)
	address, err := findFreePort(ctx)
	if err != nil {
		return err
	}
	host, port, _ := net.SplitHostPort(address)
	engine, err := s.startServer("temporal", temporal, "server", "start-dev", "--headless", "--ip", host, "--port",
		port, "--namespace", "pawl", "--db-filename", filepath.Join(s.dir, "engine.db"))
	if err != nil {
		return err
	}
	defer endServer(engine)
	if !waitForAnswer(ctx, "unix", filepath.Join(s.dir, ".s.PGSQL.5432"), database) {
		return s.errorFailed("postgres")
	}
	if !waitForAnswer(ctx, "tcp", address, engine) {
		return s.errorFailed("temporal")
	}
	s.a.Say("A database and an engine are running; their data is in %s. In other terminals:\n", s.dir)
	s.a.Result("export PAWL_CLUSTER_STORE='postgres://pawl@/postgres?host=%s' PAWL_CLUSTER_ENGINE=temporal://%s/pawl\n"+
		"export PAWL_MERGE_PUSH=true\npawl-cluster cluster check\npawl-cluster worker\npawl-cluster autopilot --detach\n",
		s.dir, address)
	s.a.Say("\nCtrl-C stops both. Their data is kept for the next time.")
	select {
	case <-ctx.Done():
		return nil
	case <-database.Done():
		return s.errorFailed("postgres")
	case <-engine.Done():
		return s.errorFailed("temporal")
	}
}

// findServers returns the servers' programs; "" is none.
func findServers(a *command.App) (postgres, temporal string) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // Debian has none on the PATH
	if postgres, _ = a.LookPath("postgres"); len(found) > 0 {
		postgres = found[len(found)-1]
	}
	temporal, _ = a.LookPath("temporal")
	return postgres, temporal
}

func (s *servers) serverLogPath(name string) string { return filepath.Join(s.dir, name+".log") }

// startServer starts a program that writes to a log.
func (s *servers) startServer(name string, args ...string) (*process.Child, error) {
	out, err := os.Create(s.serverLogPath(name))
	if err != nil {
		return nil, fmt.Errorf("cannot make the log of %s: %v", name, err)
	}
	defer func() { _ = out.Close() }()
	return s.reaper.Start(process.Command{Args: args, Dir: s.dir, Env: s.a.Env, Stdout: out, Stderr: out})
}

func (s *servers) errorFailed(name string) error {
	return fmt.Errorf("%s has ended, or does not answer: see %s", name, s.serverLogPath(name))
}

// findFreePort returns an address on which no process listens.
func findFreePort(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot find a port for the engine: %v", err)
	}
	return l.Addr().String(), l.Close()
}

// waitForAnswer returns false if the server ends, or does not answer in time.
func waitForAnswer(ctx context.Context, network, address string, server *process.Child) bool {
	ctx, cancel := context.WithTimeout(ctx, upWithin)
	defer cancel()
	for {
		if c, err := (&net.Dialer{}).DialContext(ctx, network, address); err == nil {
			return c.Close() == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-server.Done():
			return false
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// endServer ends a server, and waits for it.
func endServer(c *process.Child) {
	_ = syscall.Kill(c.PID, syscall.SIGINT)
	<-c.Done()
}
