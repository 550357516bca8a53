// Package command is what every command is made of: the streams, flags and
// configuration of one command line, the database and the operator who acts on it,
// tables and JSON, and the exit status of an error. Exit statuses are made here and
// nowhere else. It has no command of its own.
package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/trust"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/outputs"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// App is what every command works with.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Env            []string

	Dir, File   string
	JSON, Quiet bool
	Verbose     bool
	Color       string
	// TrustConfig: files that changed while an agent had the tree are taken as they are.
	TrustConfig bool
	// Cluster is nil in the program pawl.
	Cluster Cluster
	Keys    *Keys // all copies of an App have the same
	// Checks say what a command would refuse at its start, once its flags are parsed, and do nothing else.
	Checks map[*cobra.Command]func(args []string) error

	pinned []trust.File // see [App.PinTo]
}

// Cluster is what only the program pawl-cluster has: the clients of an engine and of buckets.
type Cluster interface {
	// Join connects an autopilot to the engine, until leave is called.
	Join(
		ctx context.Context, at autopilot.EngineAt, repo string, log *slog.Logger,
	) (e autopilot.Elsewhere, leave func(), err error)
	// Work works tasks that the engine orders until ctx is done. The process has to
	// end after it.
	Work(ctx context.Context, at autopilot.EngineAt, repo string, f autopilot.Offer, o autopilot.Options) error
	// Inspect looks whether the engine can be reached and has the namespace.
	Inspect(ctx context.Context, at autopilot.EngineAt, repo string) (autopilot.EngineState, error)
	// Bucket opens the bucket at an address of cluster.files. It is not asked yet.
	Bucket(ctx context.Context, address string) (outputs.Objects, error)
	// Kill ends the worker of a state folder at once with its agents, and asks nobody.
	Kill(ctx context.Context, stateDir string) (worked bool, tasks []string, err error)
}

// Operator acts on the work of root, and prints the results.
func (a *App) Operator(db *store.Store, root string) *action.Operator {
	return &action.Operator{
		Store: db, Root: root, Env: a.Env, Log: OpenLog, Say: a.Say,
		Planner: func(root string, f planner.Flags) (*planner.Planner, error) {
			there := *a
			there.Dir = root
			c, err := there.Load(f.Paths())
			return there.Planner(c, f), err
		},
		Result: func(format string, args ...any) {
			if !a.JSON {
				a.Result(format, args...)
			}
		},
	}
}

// logFile is a root, whose .pawl/log.jsonl is appended to. The file is opened for
// each record: an agent may delete the folder, or put something else in the
// place of the file, at any time. Losing it loses nothing.
type logFile string

// OpenLog makes the log of a root. One that cannot be written is silent: the
// database has the same events.
func OpenLog(root string) *slog.Logger { return slog.New(slog.NewJSONHandler(logFile(root), nil)) }

// maxLog is the size in bytes at which the log begins anew.
const maxLog = 64 << 20

// Write adds one record. They come one at a time.
func (root logFile) Write(p []byte) (int, error) {
	return len(p), files.AppendBelow(string(root), filepath.Join(".pawl", "log.jsonl"), p, maxLog)
}

// Planner makes plans, and warns of what is left out of them.
func (a *App) Planner(c *config.Config, f planner.Flags) *planner.Planner {
	return &planner.Planner{
		Config: c, Flags: f, Env: a.Env, Dir: a.Dir, LookPath: a.LookPath,
		KeyFrom: func(command string) (string, error) { return a.KeyFrom(c.Root, command) },
		Warn:    func(text string) { a.Say("Warning: %s", text) },
	}
}

// Getenv reads the environment that Main was given.
func (a *App) Getenv(name string) string {
	for i := len(a.Env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(a.Env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// Say prints a note for the person, not a result.
func (a *App) Say(format string, args ...any) {
	if !a.Quiet {
		_, _ = fmt.Fprintf(a.Stderr, format+"\n", args...)
	}
}

// Result writes to stdout.
func (a *App) Result(format string, args ...any) {
	_, _ = fmt.Fprintf(a.Stdout, format, args...)
}

// Version is set by the build; empty for a build without one.
var Version string

// BuildVersion is the version that the build set, else what Go recorded of the source.
func BuildVersion() string {
	if Version != "" {
		return Version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision := ""
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			revision = " (" + s.Value[:12] + ")"
		}
	}
	return fmt.Sprintf("%s%s", info.Main.Version, revision)
}
