package cli

import (
	"context"

	"github.com/spf13/cobra"
)

// This file is what commands are made of: leaves that do something, groups of
// commands, and how many arguments they take.

// leaf is a command that does one thing.
func leaf(use, short string, args cobra.PositionalArgs, do func(ctx context.Context, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error { return do(cmd.Context(), args) },
	}
}

// group is a command with others below it. Alone it does something; without
// do it shows its help.
func group(use, short string, do func(context.Context) error, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.ArbitraryArgs, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return unknownCommand(cmd, args[0])
			case do == nil:
				return cmd.Help()
			}
			return do(cmd.Context())
		},
	}
	cmd.AddCommand(below...)
	return cmd
}

// atMost is for commands with up to n arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usage("unexpected argument %q; %s --help shows what it takes", args[n], cmd.CommandPath())
		}
		return nil
	}
}

// exactlyOne is for commands with one argument.
func exactlyOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage("%s needs %s: pawl %s", cmd.CommandPath(), what, cmd.Use)
		}
		return nil
	}
}
