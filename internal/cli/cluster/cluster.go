// Package cluster has the commands about what several people or machines share: the
// board in a database of PostgreSQL.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/store"
)

// Command is the parent of the commands about what is shared.
func Command(a *command.App) *cobra.Command {
	return command.Group("cluster", "The board in a database that several people or machines share", nil,
		command.Leaf("check", "Try whether the shared database does what a board needs", command.AtMost(0),
			func(ctx context.Context, _ []string) error { return withShared(ctx, a, check) }),
		command.Leaf("import", "Bring this machine's board with its history to the shared database", command.AtMost(0),
			func(ctx context.Context, _ []string) error { return withShared(ctx, a, bring) }))
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

// apart is how many seconds clocks may differ before it is worth a word: times in
// lists are those of the machine that wrote them.
const apart = 2

func check(ctx context.Context, a *command.App, _ *config.Config, db *store.Store) error {
	i, err := db.Inspect(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.JSONLine(i)
	} else {
		show(a, i)
	}
	if err == nil && !i.Notified {
		a.Say("What others do is not seen here: the server's notices do not arrive.")
		a.Say("  A pooler between pawl and the server must keep sessions: pool_mode = session")
		return command.StatusError(command.ExitFailed)
	}
	return err
}

// shown is how many other boards are named.
const shown = 10

func show(a *command.App, i store.Inspection) {
	clock := "the server's, as far as it matters"
	if math.Abs(i.Behind) >= apart {
		clock = fmt.Sprintf("%.0f s from the server's: set it by NTP, or times in lists will not fit", math.Abs(i.Behind))
	}
	notices := "arrive"
	if !i.Notified {
		notices = "do not arrive"
	}
	a.Table("", [][]any{
		{"address", i.Address}, {"server", "PostgreSQL " + i.Version}, {"board", i.Board},
		{"schema", fmt.Sprintf("%s, step %d; it can be written", i.Schema, i.Steps)},
		{"clock here", clock}, {"notices", notices},
	}, 0)
	if len(i.Others) > 0 {
		a.Result("%s in the same database:\n", report.Numbered(len(i.Others), "other board"))
		for _, o := range i.Others[:min(len(i.Others), shown)] {
			a.Result("  %s\n", o)
		}
		if len(i.Others) > shown {
			a.Result("  …\n")
		}
		a.Say("If one of them is this repository's, two people name it differently: have all name it the same way,")
		a.Say("with ?repository=NAME at the end of cluster.store.")
	}
}

// bring brings the board of this machine.
func bring(ctx context.Context, a *command.App, c *config.Config, db *store.Store) error {
	path := filepath.Join(config.StateDir(c.Root, a.Env), "pawl.db")
	if _, err := os.Stat(path); err != nil {
		return command.Usage("this machine has no board of the repository: there is no %s", path)
	}
	local, err := a.LocalDatabase(ctx, c.Root)
	if err != nil {
		return err
	}
	defer func() { _ = local.Close() }() // it was only read
	rows, was, err := db.Import(ctx, local, time.Now(), engine.Alive)
	switch {
	case errors.Is(err, store.ErrRunning):
		return fault.Of(fault.Refused, err).Hint("Let it end, or stop it: pawl autopilot stop, pawl stop NAME")
	case errors.Is(err, store.ErrNotEmpty):
		return fault.Of(fault.Refused, err).
			Hint("Two boards cannot become one: their tasks have the same numbers. Look at it: pawl case list, pawl ps -a")
	case err != nil:
		return err
	case !was.IsZero():
		a.Say("This board was brought there on %s; nothing is done.", was.Local().Format("2006-01-02 15:04"))
		return nil
	}
	a.Say("Brought %s to %s.", report.Numbered(rows, "row"), db.Path())
	a.Say("What was here stays as it is, in %s, and is not used while cluster.store is set.", path)
	return nil
}
