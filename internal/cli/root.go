// Package cli is the command line: one file per command reads its flags, calls
// the packages that do the work, and prints. Exit codes are made here and
// nowhere else. It decides nothing about a run.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/egress"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/reexec"
)

// app is what every command works with.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            []string

	dir, file   string
	json, quiet bool
	verbose     bool
	color       string
	writes      []string // folders that every box of this app may write besides
}

// Main runs one command line and returns pawl's exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	if code, ok := reexec.Finish(egress.Out(os.Getenv)); ok {
		return code
	}
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, env: env}
	root := a.commands()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return a.exit(root.ExecuteContext(context.Background()))
}

func (a *app) commands() *cobra.Command {
	root := &cobra.Command{
		Use:           "pawl",
		Short:         "Run AI coding agents in bounded, verified iterations",
		Long:          "Pawl runs AI coding agents in bounded, verified iterations: work moves forward only\nwhen verification says so, and whatever happens can be resumed, undone and explained.",
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.ArbitraryArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if a.color != "auto" && a.color != "always" && a.color != "never" {
				return usage("--color %s: write auto, always or never", a.color)
			}
			if info, err := os.Stat(cmp.Or(a.dir, ".")); err != nil {
				return usage("-C %s: %v", a.dir, errors.Unwrap(err))
			} else if !info.IsDir() {
				return usage("-C %s: not a folder", a.dir)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	f := root.PersistentFlags()
	f.StringVarP(&a.dir, "directory", "C", "", "work as if started in `DIR`")
	f.StringVar(&a.file, "config", "", "use `FILE` instead of pawl.yaml")
	f.BoolVar(&a.json, "json", false, "print JSON")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print results and errors only")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "show what the agent does and why the loop decides")
	f.StringVar(&a.color, "color", "auto", "`WHEN`: auto, always or never")
	root.AddCommand(
		a.demoCommand(), a.initCommand(), a.runCommand(), a.resumeCommand(), a.psCommand(), a.showCommand(), a.logsCommand(), a.statsCommand(),
		a.workflowCommand(), a.stopCommand(), a.pauseCommand(), a.answerCommand(), a.messageCommand(), a.rollbackCommand(), a.applyCommand(), a.caseCommand(), a.queueCommand(), a.notifyCommand(), a.configCommand(), a.schemaCommand(),
		a.autopilotCommand(), a.sprintCommand(), a.topCommand(),
		a.checkCommand(), a.serveCommand(), a.skillCommand(), a.explainCommand(), a.doctorCommand(), a.versionCommand(),
	)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage("%v%s", err, suggestFlag(cmd, err)) })
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.HiddenDefaultCmd = false
	return root
}

func unknownCommand(cmd *cobra.Command, name string) error {
	hint := ""
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		hint = fmt.Sprintf(" (did you mean %q?)", near[0])
	}
	return usage("unknown command %q%s; 'pawl --help' lists the commands", name, hint)
}

// suggestFlag names the flag that a mistyped one is nearest to.
func suggestFlag(cmd *cobra.Command, err error) string {
	var bad *pflag.NotExistError
	if !errors.As(err, &bad) {
		return ""
	}
	best, dist := "", 3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := config.Distance(bad.GetSpecifiedName(), f.Name); d < dist {
			best, dist = f.Name, d
		}
	})
	if best == "" {
		return fmt.Sprintf("; '%s --help' lists the flags", cmd.CommandPath())
	}
	return fmt.Sprintf(" (did you mean --%s?)", best)
}

// The exit statuses.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitLimit       = 3
	exitPerson      = 4
	exitHangup      = 129
	exitInterrupted = 130
	exitTerminated  = 143
)

// usage is an error of the command line or the configuration.
func usage(format string, args ...any) *fault.Error { return fault.Refuse(format, args...) }

// exitStatus is that of an error of a kind.
func exitStatus(k fault.Kind) int {
	switch k {
	case fault.Refused:
		return exitUsage
	case fault.Waiting:
		return exitPerson
	}
	return exitFailed
}

// status ends with a code and says nothing more.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// exitWith ends with a status; nothing has to be said.
func exitWith(code int) error {
	if code == exitOK {
		return nil
	}
	return status(code)
}

// exit prints an error for the person who must act and says the exit status.
func (a *app) exit(err error) int {
	if err == nil {
		return exitOK
	}
	var s status
	if errors.As(err, &s) {
		return int(s)
	}
	code, hints := exitFailed, []string(nil)
	var e *fault.Error
	if errors.As(err, &e) {
		code, hints = exitStatus(e.Kind), e.Hints
	}
	if errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		return code
	}
	_, _ = fmt.Fprintf(a.stderr, "pawl: %s\n", strings.TrimSuffix(err.Error(), "\n"))
	for _, h := range hints {
		_, _ = fmt.Fprintf(a.stderr, "  %s\n", h)
	}
	return code
}

// getenv reads the environment that Main was given.
func (a *app) getenv(name string) string {
	for i := len(a.env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(a.env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// say prints a note for the person, not a result.
func (a *app) say(format string, args ...any) {
	if !a.quiet {
		_, _ = fmt.Fprintf(a.stderr, format+"\n", args...)
	}
}

// result writes to stdout.
func (a *app) result(format string, args ...any) {
	_, _ = fmt.Fprintf(a.stdout, format, args...)
}
