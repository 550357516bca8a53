package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/do/forge"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// installedBy is the last line of a script that pawl wrote. One without it is
// somebody else's.
const installedBy = "# Written by 'pawl completion install'.\n"

// AddCompletionInstall adds the command that puts a completion script where its shell
// looks for it.
func AddCompletionInstall(a *command.App, root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.AddCommand(completionInstall(a, root))
		}
	}
}

func completionInstall(a *command.App, root *cobra.Command) *cobra.Command {
	cmd := command.Leaf("install [SHELL]", "Write the completion script to where bash, zsh or fish looks for it",
		command.AtMost(1), func(_ context.Context, args []string) error {
			shell := filepath.Base(a.Getenv("SHELL"))
			if len(args) > 0 {
				shell = args[0]
			}
			return installCompletion(a, root, shell)
		})
	cmd.ValidArgs = []string{"bash", "zsh", "fish"}
	return cmd
}

func installCompletion(a *command.App, root *cobra.Command, shell string) error {
	var script bytes.Buffer
	var path, next string
	var err error
	data := below(a, "XDG_DATA_HOME", ".local", "share")
	switch shell {
	case "bash":
		path = filepath.Join(data, "bash-completion", "completions", "pawl")
		err = root.GenBashCompletionV2(&script, true)
		next = "It works in new shells where the package bash-completion is installed. " +
			"Elsewhere add to ~/.bashrc: . " + path
	case "zsh":
		path, err = filepath.Join(data, "zsh", "site-functions", "_pawl"), root.GenZshCompletion(&script)
		next = "It works in new shells once ~/.zshrc has this line before compinit: " +
			"fpath=(" + filepath.Dir(path) + " $fpath)"
	case "fish":
		path = filepath.Join(below(a, "XDG_CONFIG_HOME", ".config"), "fish", "completions", "pawl.fish")
		err = root.GenFishCompletion(&script, true)
		next = "It works in new shells."
	default:
		return command.Usage("cannot install completion for %q: it is made for bash, zsh and fish", shell).
			Hint("Name one: pawl completion install bash").
			Hint("For others print it, and put it where your shell looks: pawl completion --help")
	}
	if err != nil {
		return fmt.Errorf("cannot make the script: %v", err)
	}
	if !filepath.IsAbs(path) {
		return command.Usage("cannot install completion: HOME is not set")
	}
	script.WriteString(installedBy)
	if err := writeOwn(path, script.Bytes()); err != nil {
		return err
	}
	a.Result("Wrote %s\n", path)
	a.Say("%s", next)
	return nil
}

// below is a folder of the XDG rules; a relative one does not count.
func below(a *command.App, variable string, home ...string) string {
	if dir := a.Getenv(variable); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(append([]string{a.Getenv("HOME")}, home...)...)
}

// writeOwn writes a file that is not there, or that pawl wrote.
func writeOwn(path string, data []byte) error {
	info, err := os.Lstat(path)
	if err == nil {
		old, rerr := os.ReadFile(path) //nolint:gosec // a path that we made
		isOwn := info.Mode().IsRegular() && rerr == nil && strings.HasSuffix(string(old), installedBy)
		if !isOwn {
			return command.Usage("%s is there already, and pawl did not write it", path).
				Hint("Move it away, or print the script and put it where you want: pawl completion --help")
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fault.Of(fault.Refused, fmt.Errorf("cannot look at %s: %v", path, err))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as shells make it
		return fault.Of(fault.Refused, fmt.Errorf("cannot make the folder of the script: %v", err))
	}
	if err := files.Replace(path, data, 0o644, false); err != nil {
		return fmt.Errorf("cannot write %s: %v", path, err)
	}
	return nil
}

func upgradeCommand(a *command.App) *cobra.Command {
	check, from := false, ""
	cmd := command.Leaf("upgrade --check", "Say which release is the newest; nothing is replaced", command.AtMost(0),
		func(ctx context.Context, _ []string) error {
			if !check {
				return command.Usage("pawl does not replace itself").
					Hint("See whether there is a newer one: pawl upgrade --check").
					Hint("Install it as this one was installed: docs/install.md")
			}
			r, err := forge.NewestRelease(ctx, from)
			if err != nil {
				return fault.Of(fault.Failed, fmt.Errorf("cannot see which release is the newest: %v", err)).
					Hint("This is pawl %s; all are at https://github.com/pawl-dev/pawl/releases", command.BuildVersion()).
					Hint("Ask a mirror: pawl upgrade --check --from URL")
			}
			if a.JSON {
				return a.JSONLine(map[string]any{"version": command.BuildVersion(), "newest": r.Name, "published": r.When,
					"page": r.Page})
			}
			a.Result("%s\n", comparison(command.BuildVersion(), r))
			return nil
		})
	cmd.Flags().BoolVar(&check, "check", false, "ask which release is the newest")
	cmd.Flags().StringVar(&from, "from", forge.Releases, "ask `URL`, which answers as GitHub does")
	return cmd
}

// comparison puts the newest release beside this program.
func comparison(version string, r forge.Release) string {
	if own, _, _ := strings.Cut(version, " "); own == r.Name {
		return fmt.Sprintf("This is pawl %s, the newest release.", r.Name)
	}
	return fmt.Sprintf("This is pawl %s. The newest release is %s, of %s: %s", version, r.Name, r.When.Format(time.DateOnly),
		r.Page)
}
