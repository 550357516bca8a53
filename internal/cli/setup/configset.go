package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/files"
)

func configSetCommand(a *command.App) *cobra.Command {
	cmd := command.Leaf("set KEY VALUE", "Change one setting in pawl.yaml; comments and order stay",
		func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return command.Usage("pawl config set needs a key and a value: pawl config set loop.safety paranoid")
			}
			return nil
		},
		func(_ context.Context, args []string) error { return configSet(a, args[0], args[1]) })
	command.TextOnly(cmd)
	return cmd
}

func configSet(a *command.App, key, value string) error {
	path, err := a.ConfigFile()
	if err != nil {
		return err
	}
	data, err := os.ReadFile(path) //nolint:gosec // the person's own file
	if errors.Is(err, fs.ErrNotExist) {
		return command.Usage("there is no %s yet", path).Hint("Write one with: pawl init")
	}
	if err != nil {
		return command.CannotRead(path, err)
	}
	out, err := config.Set(data, key, value)
	if err != nil {
		return fault.Of(fault.Refused, fmt.Errorf("cannot set %s: %w", key, err))
	}
	c, err := a.PeekWith(string(out))
	if err != nil {
		return fault.Of(fault.Refused, fmt.Errorf("%s is not changed, since pawl would not load it:\n%w", path, err))
	}
	to, err := filepath.EvalSymlinks(path)
	if err == nil {
		err = replaceWhole(to, out)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %v", path, err)
	}
	a.Result("%s: %s is %s now\n", filepath.Base(path), key, value)
	for _, e := range c.Entries() {
		if e.Path == key && !strings.Contains(e.Source, filepath.Base(path)) {
			a.Say("Note: %s wins: it is %s there.", e.Source, e.Value)
		}
	}
	return nil
}

// replaceWhole writes a file in one step, and keeps its mode.
func replaceWhole(path string, data []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return files.Replace(path, data, info.Mode().Perm(), true)
}

func configExplainCommand(a *command.App) *cobra.Command {
	return command.Leaf("explain KEY", "Say what a setting is, what it takes, and what it is now",
		command.ExactlyOne("a key"), func(_ context.Context, args []string) error { return configExplain(a, args[0]) })
}

func configExplain(a *command.App, key string) error {
	e, ok := config.Explain(key)
	if !ok {
		err := command.Usage("there is no key %q", key)
		if near := config.NearestKey(key); near != "" {
			err = command.Usage("there is no key %q (did you mean %q?)", key, near)
		}
		return err.Hint("All of them: docs/configuration.md, or pawl config explain SECTION")
	}
	if c, err := a.Peek(); err == nil {
		for _, one := range c.Entries() {
			if one.Path == key {
				e.Value, e.Source = one.Value, one.Source
			}
		}
	} else {
		a.Say("Warning: the configuration cannot be loaded: %v", err)
	}
	if a.JSON {
		return a.Document(e)
	}
	a.Result("%s: %s\n\n", e.Path, e.Meaning)
	rows := [][]any{{"  takes", e.Takes}}
	if e.Default != "" {
		rows = append(rows, []any{"  default", e.Default})
	}
	if e.Source != "" {
		rows = append(rows, []any{"  now", e.Value + " (from: " + e.Source + ")"})
	}
	if len(e.Below) == 0 && !strings.Contains(e.Path, "<") {
		rows = append(rows, []any{"  variable", "PAWL_" + strings.ToUpper(strings.ReplaceAll(e.Path, ".", "_"))})
	}
	a.Table("", rows, 0)
	a.Result("\n  Example:\n    %s\n", strings.ReplaceAll(e.Example, "\n", "\n    "))
	rows = nil
	for _, b := range e.Below {
		first, _, _ := strings.Cut(b.Meaning, ". ")
		rows = append(rows, []any{"  " + b.Path, b.Default, strings.TrimSuffix(first, ".")})
	}
	if len(rows) > 0 {
		a.Result("\n")
		a.Table("  key\tdefault\tmeaning", rows, 0)
	}
	return nil
}
