package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/terminal"
)

// ShellOf is the shell of the person.
func ShellOf(a *command.App) string {
	if shell := a.Getenv("SHELL"); filepath.IsAbs(shell) {
		return shell
	}
	return "/bin/sh"
}

// RunJob runs a command for a person, or for a script.
func RunJob(ctx context.Context, a *command.App, job process.Command, policy *sandbox.Policy) error {
	var screen *os.File
	if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		defer func() { _ = tty.Close() }()
		if a.Interactive() {
			screen = tty
		}
	}
	status, err := terminal.Run(ctx, job, policy, screen)
	if by, ok := errors.AsType[terminal.SignalError](err); ok {
		return command.ExitWith(128 + int(by)) // as a shell says it
	}
	if err == nil && status != 0 {
		err = fault.Of(fault.Failed, fmt.Errorf("%s ended with status %d", job.Args[0], status))
	}
	return err
}
