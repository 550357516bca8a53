package board

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/cli/session"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/sandbox"
	"github.com/pawl-dev/pawl/internal/terminal"
	"github.com/pawl-dev/pawl/internal/workspace/pool"
)

func caseShellCommand(a *command.App) *cobra.Command {
	cmd := command.Leaf("shell ID [COMMAND…]",
		"Open a shell in the workspace of a task, in the sandbox that its agent has; or run COMMAND there", nil, nil)
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.Flags().SetInterspersed(false) // flags after the id are COMMAND's
	cmd.Example = "pawl case shell task-001\npawl case shell task-001 npm run dev"
	command.TextOnly(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		return a.WithPool(ctx, func(p *action.Operator, clones *pool.Pool) error {
			job, policy, err := workspaceJob(ctx, a, p, clones, args)
			if err != nil {
				return err
			}
			return runJob(ctx, a, job, policy)
		})
	}
	return cmd
}

// workspaceJob is a command in the workspace of a task, and its box; nil is none.
func workspaceJob(ctx context.Context, a *command.App, p *action.Operator, clones *pool.Pool,
	args []string) (job process.Command, policy *sandbox.Policy, err error) {
	id, err := action.CaseID(args[0])
	if err != nil {
		return job, nil, err
	}
	c, err := p.Store.Case(ctx, id)
	if err != nil {
		return job, nil, err
	}
	found, ok, err := clones.Find(ctx, id)
	if err != nil {
		return job, nil, err
	}
	if _, err := os.Stat(found.Root); !ok || err != nil {
		return job, nil, fault.Refuse("%s has no workspace here", id).
			Hint("It gets one when work on it begins: pawl case start %s, or pawl autopilot", id)
	}
	conf, err := a.Load(nil)
	if err != nil {
		return job, nil, err
	}
	argv := args[1:]
	if len(argv) == 0 {
		argv = []string{shellOf(a)}
	}
	return session.Shell(ctx, a, conf, c, found, argv)
}

func shellOf(a *command.App) string {
	if shell := a.Getenv("SHELL"); filepath.IsAbs(shell) {
		return shell
	}
	return "/bin/sh"
}

// runJob runs a command for a person, or for a script.
func runJob(ctx context.Context, a *command.App, job process.Command, policy *sandbox.Policy) error {
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
