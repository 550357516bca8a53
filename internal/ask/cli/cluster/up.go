package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/do/process"
)

func upCommand(a *command.App) *cobra.Command {
	local := false
	cmd := command.Leaf("up", "Start a database and an engine on this machine, to try a cluster, until you stop it",
		command.AtMost(0), func(ctx context.Context, _ []string) error {
			if !local {
				return command.Usage("servers of other machines are set up by hand: write --local")
			}
			return up(ctx, a)
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

func up(ctx context.Context, a *command.App) error {
	c, err := a.Load(nil)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	postgres, temporal := installed(a)
	switch {
	case postgres == "":
		return command.Usage("PostgreSQL is not installed here").Hint("On Debian: apt-get install postgresql")
	case temporal == "":
		return command.Usage("the Temporal CLI, which has a server to try things with, is not installed here").
			Hint("Put the program temporal on the PATH: https://docs.temporal.io/cli")
	case os.Geteuid() == 0:
		return command.Usage("PostgreSQL does not run as root").Hint("Start it as another user, who owns the repository")
	}
	s := servers{a: a, dir: filepath.Join(config.StateDir(c.Root, a.Env), "local")}
	if s.reaper, err = process.NewReaper(); err != nil {
		return err
	}
	defer s.reaper.Close()
	if err := s.initialise(filepath.Dir(postgres)); err != nil {
		return err
	}
	return s.run(ctx, postgres, temporal)
}

func (s *servers) data() string { return filepath.Join(s.dir, "data") }

// initialise makes the database, where there is none.
func (s *servers) initialise(programs string) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the servers' folder: %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.data(), "PG_VERSION")); err == nil {
		return nil
	}
	c, err := s.start("initdb", filepath.Join(programs, "initdb"), "-D", s.data(),
		"-A", "trust", "-U", "pawl", "-E", "UTF8", "--locale=C")
	if err != nil {
		return err
	}
	if <-c.Done(); c.Status() != 0 {
		return s.failed("initdb")
	}
	return nil
}

// run has both servers run until ctx is done.
func (s *servers) run(ctx context.Context, postgres, temporal string) error {
	database, err := s.start("postgres", postgres, "-D", s.data(), "-k", s.dir, "-c", "listen_addresses=")
	if err != nil {
		return err
	}
	defer end(database)
	address, err := freePort(ctx)
	if err != nil {
		return err
	}
	host, port, _ := net.SplitHostPort(address)
	engine, err := s.start("temporal", temporal, "server", "start-dev", "--headless", "--ip", host, "--port", port,
		"--namespace", "pawl", "--db-filename", filepath.Join(s.dir, "engine.db"))
	if err != nil {
		return err
	}
	defer end(engine)
	if !answers(ctx, "unix", filepath.Join(s.dir, ".s.PGSQL.5432"), database) {
		return s.failed("postgres")
	}
	if !answers(ctx, "tcp", address, engine) {
		return s.failed("temporal")
	}
	s.a.Say("A database and an engine run, with what they keep in %s. In other terminals:\n", s.dir)
	s.a.Result("export PAWL_CLUSTER_STORE='postgres://pawl@/postgres?host=%s' PAWL_CLUSTER_ENGINE=temporal://%s/pawl\n"+
		"export PAWL_MERGE_PUSH=true\npawl-cluster cluster check\npawl-cluster worker\npawl-cluster autopilot --detach\n",
		s.dir, address)
	s.a.Say("\nCtrl-C ends both. The next time they go on with what they have.")
	select {
	case <-ctx.Done():
		return nil
	case <-database.Done():
		return s.failed("postgres")
	case <-engine.Done():
		return s.failed("temporal")
	}
}

// installed are the servers' programs; "" is none.
func installed(a *command.App) (postgres, temporal string) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // Debian has none on the PATH
	if postgres, _ = a.LookPath("postgres"); len(found) > 0 {
		postgres = found[len(found)-1]
	}
	temporal, _ = a.LookPath("temporal")
	return postgres, temporal
}

func (s *servers) log(name string) string { return filepath.Join(s.dir, name+".log") }

// start starts a program that writes to a log.
func (s *servers) start(name string, args ...string) (*process.Child, error) {
	out, err := os.Create(s.log(name))
	if err != nil {
		return nil, fmt.Errorf("cannot make the log of %s: %v", name, err)
	}
	defer func() { _ = out.Close() }()
	return s.reaper.Start(process.Command{Args: args, Dir: s.dir, Env: s.a.Env, Stdout: out, Stderr: out})
}

func (s *servers) failed(name string) error {
	return fmt.Errorf("%s has ended, or does not answer: %s says why", name, s.log(name))
}

// freePort is an address that nobody listens on.
func freePort(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot find a port for the engine: %v", err)
	}
	return l.Addr().String(), l.Close()
}

// answers waits until a server does.
func answers(ctx context.Context, network, address string, server *process.Child) bool {
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

// end ends a server, and waits for it.
func end(c *process.Child) {
	_ = syscall.Kill(c.PID, syscall.SIGINT)
	<-c.Done()
}
