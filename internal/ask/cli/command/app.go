// Package command is what every command is made of: the streams, flags and
// configuration of one command line, the database and the operator who acts on it,
// tables and JSON, and the exit status of an error. Exit statuses are made here and
// nowhere else. It has no command of its own.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/quantity"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/trust"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// App is what every command works with.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Env            []string
	Args           []string // the command line as it was typed, without the program's name

	Dir, File   string
	Over        string // a file that is laid over File
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

// Cluster is what only the program pawl-cluster has: the client of an engine.
type Cluster interface {
	// Join connects an autopilot to the engine, until leave is called.
	Join(
		ctx context.Context, at autopilot.EngineAt, repo string, db *store.Store, log *slog.Logger,
	) (e autopilot.Elsewhere, leave func(), err error)
	// Work works tasks that the engine orders until ctx is done. The process has to
	// end after it.
	Work(ctx context.Context, at autopilot.EngineAt, repo string, f autopilot.Offer, o autopilot.Options) error
	// Inspect looks whether the engine can be reached and has the namespace.
	Inspect(ctx context.Context, at autopilot.EngineAt, repo string) (autopilot.EngineState, error)
	// Kill ends the worker of a state folder and its agents at once, without a question.
	Kill(ctx context.Context, stateDir string) (worked bool, tasks []string, err error)
}

// Operator acts on the work of root, and prints the results.
func (a *App) Operator(db *store.Store, root string) *action.Operator {
	return action.New(action.Options{
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
	})
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
		KeyFrom: func(command string) (string, error) { return a.KeyFrom(c, command) },
		Warn:    func(text string) { a.Say("Warning: %s", text) },
	}
}

// Getenv reads the environment that Main was given.
func (a *App) Getenv(name string) string { return lists.Getenv(a.Env, name) }

// Say prints a note for the person, not a result.
func (a *App) Say(format string, args ...any) {
	if !a.Quiet {
		_, _ = fmt.Fprintln(a.Stderr, console.Wrapped(a.Stderr, fmt.Sprintf(format, args...)))
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

// SomeIDs is for commands with the ids of cases.
func SomeIDs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return Usage("%s needs the id of a task: pawl case %s", cmd.CommandPath(), cmd.Use)
	}
	return nil
}

// CaseIDs reads ids as a person writes them.
func CaseIDs(args []string) ([]string, error) {
	ids := make([]string, len(args))
	for i, arg := range args {
		id, err := action.CaseID(arg)
		if err != nil {
			return nil, err
		}
		ids[i] = id
	}
	return ids, nil
}

// EachCase does something with each id. All are read before the first is
// changed; the first refusal ends it.
func EachCase(args []string, do func(id string) error) error {
	ids, err := CaseIDs(args)
	for _, id := range ids {
		if err == nil {
			err = do(id)
		}
	}
	return err
}

// This file is what commands are made of: leaves that do something, groups of
// commands, and how many arguments they take.

// Leaf is a command that does one thing.
func Leaf(use, short string, args cobra.PositionalArgs,
	do func(ctx context.Context, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error { return do(cmd.Context(), args) },
	}
}

// Plain is a leaf that takes no arguments.
func Plain(use, short string, do func(context.Context) error) *cobra.Command {
	return Leaf(use, short, AtMost(0), func(ctx context.Context, _ []string) error { return do(ctx) })
}

// OnBoard is a leaf without arguments that opens the database.
func OnBoard(a *App, use, short string, do func(context.Context, *action.Operator) error) *cobra.Command {
	return Plain(use, short, func(ctx context.Context) error {
		return a.WithOperator(ctx, func(p *action.Operator) error { return do(ctx, p) })
	})
}

// TextOnly marks a command that has no JSON to print.
func TextOnly(cmd *cobra.Command) { cmd.Annotations = map[string]string{textOnly: "yes"} }

// IsTextOnly reports whether the command has no JSON to print.
func IsTextOnly(cmd *cobra.Command) bool { return cmd.Annotations[textOnly] != "" }

const textOnly = "text-only"

// Group is a command with others below it. Alone it does something; without
// do it shows its help.
func Group(use, short string, do func(context.Context) error, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, SuggestionsMinimumDistance: 2,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return UnknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if do == nil {
				return cmd.Help()
			}
			return do(cmd.Context())
		},
	}
	cmd.AddCommand(below...)
	return cmd
}

// AtMost is for commands with up to n arguments.
func AtMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return Usage("unexpected argument %q; %s --help shows what it takes", args[n], cmd.CommandPath())
		}
		return nil
	}
}

// ExactlyOne is for commands with one argument.
func ExactlyOne(what string, hints ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			err := Usage("%s needs %s: %s", cmd.CommandPath(), what, strings.TrimSuffix(cmd.UseLine(), " [flags]"))
			for _, h := range hints {
				err = err.Hint("%s", h)
			}
			return err
		}
		return nil
	}
}

// SeeRuns is the hint where a run has to be named.
const SeeRuns = "List the running and waiting ones: pawl ps"

// OnRun is a command that does one thing with a run.
func (a *App) OnRun(use, short string, do func(*action.Operator, context.Context, store.Run) error) *cobra.Command {
	return Leaf(use, short, ExactlyOne("a run or a procedure", SeeRuns),
		func(ctx context.Context, args []string) error {
			return a.WithRun(ctx, args[0], func(p *action.Operator, r store.Run) error { return do(p, ctx, r) })
		})
}

// OpensShell is a command that opens a shell in the workspace of args[0], or runs the rest
// there, with all its flags.
func OpensShell(use, short string, do func(ctx context.Context, args []string) error) *cobra.Command {
	var cmd *cobra.Command
	cmd = Leaf(use+" [COMMAND…]", short, nil, func(ctx context.Context, args []string) error {
		if len(args) == 0 {
			return Usage("name a task or a run: %s", cmd.UseLine())
		}
		if len(args) > 1 && args[1] == "--" {
			args = append(args[:1], args[2:]...)
		}
		return do(ctx, args)
	})
	cmd.Flags().SetInterspersed(false) // flags after the name are COMMAND's
	TextOnly(cmd)
	return cmd
}

// RunAndText is for commands that take a run and words; what names the words.
func RunAndText(what, example string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < 2 || strings.TrimSpace(strings.Join(args[1:], " ")) == "" {
			return Usage("%s needs a run and a text: pawl %s RUN TEXT", what, example)
		}
		return nil
	}
}

// CheckBackTo checks --to and --undo of a rollback; before is what 0 is before.
func CheckBackTo(cmd *cobra.Command, to action.BackTo, before string) error {
	switch given := cmd.Flags().Changed("to"); {
	case given && to.Undo:
		return Usage("--to and --undo cannot be used together")
	case given && to.N < 0:
		return Usage("--to %d: iterations count from 1; 0 is before the %s", to.N, before)
	}
	return nil
}

// UnknownCommand is an error with the nearest command.
func UnknownCommand(cmd *cobra.Command, name string) error {
	hint := ""
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		hint = fmt.Sprintf(" (did you mean %q?)", near[0])
	}
	return Usage("unknown command %q%s; '%s --help' lists the commands", name, hint, cmd.CommandPath())
}

// FlagError is for cobra: it names the value that a flag takes, or the nearest flag.
func FlagError(cmd *cobra.Command, err error) error {
	if bad, is := errors.AsType[*pflag.InvalidValueError](err); is && bad.GetFlag().Value.Type() == "int" {
		return Usage("--%s: write a whole number, not %q", bad.GetFlag().Name, bad.GetValue())
	}
	bad, is := errors.AsType[*pflag.NotExistError](err)
	if !is {
		return Usage("%v", err)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	best := config.Nearest(bad.GetSpecifiedName(), names)
	if best == "" {
		return Usage("%v; '%s --help' lists the flags", err, cmd.CommandPath())
	}
	return Usage("%v (did you mean --%s?)", err, best)
}

// The exit statuses.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitLimit       = 3
	ExitPerson      = 4
	ExitHangup      = 129
	ExitInterrupted = 130
	ExitTerminated  = 143
)

// Usage is an error of the command line or the configuration.
func Usage(format string, args ...any) *fault.Error { return fault.Refuse(format, args...) }

// exitStatus is that of an error of a kind; of others it is [ExitFailed].
var exitStatus = map[fault.Kind]int{fault.Refused: ExitUsage, fault.Waiting: ExitPerson}

// StatusError ends with a code and says nothing more.
type StatusError int

func (s StatusError) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// ExitWith ends with a status; nothing has to be said.
func ExitWith(code int) error {
	if code == ExitOK {
		return nil
	}
	return StatusError(code)
}

// Exit prints an error for the person who must act and says the exit status.
func (a *App) Exit(err error) int {
	if err == nil {
		return ExitOK
	}
	if s, ok := errors.AsType[StatusError](err); ok {
		return int(s)
	}
	code, hints := ExitFailed, []string(nil)
	if e, ok := errors.AsType[*fault.Error](err); ok {
		code, hints = cmp.Or(exitStatus[e.Kind], ExitFailed), e.Hints
	}
	if errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		return code
	}
	_, _ = fmt.Fprintf(a.Stderr, "pawl: %s\n", strings.TrimSuffix(err.Error(), "\n"))
	for _, h := range hints {
		_, _ = fmt.Fprintf(a.Stderr, "  %s\n", h)
	}
	return code
}

// keyBound is how long a command may take to print a key: a person may have to
// unlock it.
const keyBound = 2 * time.Minute

// Keys are those that commands printed: a person is asked for a password once.
type Keys struct {
	mu   sync.Mutex
	have map[string]string
}

// KeyFrom is the first line that a command of gateway.keys or forge prints. It runs outside
// of any box, where no agent writes, and finds no program that one may have put in the tree.
func (a *App) KeyFrom(c *config.Config, command string) (string, error) {
	a.Keys.mu.Lock()
	defer a.Keys.mu.Unlock()
	if key := a.Keys.have[command]; key != "" {
		return key, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), keyBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	trees := lists.Each(c.Safety.Write, func(path quantity.Path) string { return string(path) })
	cmd.Env, _ = a.Outside(append(trees, c.Root)...)
	cmd.Dir, cmd.Stderr, cmd.WaitDelay = "/", a.Stderr, time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", fmt.Errorf("the command did not end within %s", keyBound)
	}
	if err != nil {
		return "", fmt.Errorf("the command failed: %v", err)
	}
	key, _, _ := strings.Cut(string(out), "\n")
	key = strings.TrimSpace(key)
	if key == "" {
		return "", errors.New("the command printed nothing")
	}
	if a.Keys.have == nil {
		a.Keys.have = map[string]string{}
	}
	a.Keys.have[command] = key
	return key, nil
}

// Painted is a text in a color, where stdout has colors.
func (a *App) Painted(color, text string) string {
	inColor := console.OnTerminal(a.Stdout) && a.wantsColor()
	if a.Color == "always" {
		inColor = true
	}
	if a.Color == "never" || !inColor {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// Interactive is true when a person can answer.
func (a *App) Interactive() bool {
	return !a.JSON && console.OnTerminal(a.Stdin) && a.onTerminal()
}

// Terminal combines the output streams with the flags that change how runs are shown.
func (a *App) Terminal() console.Terminal {
	return console.Terminal{
		Results: a.Stdout, Progress: a.Stderr, Drawn: a.onTerminal(), Color: a.wantsColorOnStderr(), Verbose: a.Verbose,
		Quiet: a.Quiet, JSON: a.JSON,
	}
}

// onTerminal is true when progress is drawn on a terminal.
func (a *App) onTerminal() bool {
	return console.OnTerminal(a.Stderr) && a.Getenv("TERM") != "dumb"
}

// wantsColor is false where the environment speaks against color.
func (a *App) wantsColor() bool { return a.Getenv("TERM") != "dumb" && a.Getenv("NO_COLOR") == "" }

func (a *App) wantsColorOnStderr() bool {
	if a.Color == "auto" {
		return a.onTerminal() && a.wantsColor()
	}
	return a.Color == "always"
}
