package run

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

//go:embed all:demo
var demoFiles embed.FS

func demoCommand(a *command.App) *cobra.Command {
	var keep bool
	cmd := command.Leaf("demo", "Watch it work: a scripted agent repairs a failing test in a scratch repository",
		command.AtMost(0),
		func(ctx context.Context, _ []string) error { return demo(ctx, a, keep) })
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the scratch folder to look at")
	return cmd
}

func demo(ctx context.Context, a *command.App, keep bool) (err error) {
	if _, err := a.LookPath("go"); err != nil {
		return fault.Of(fault.Failed, errors.New("the demo repairs a Go test and needs the go command")).
			Hint("%s", "Install Go from https://go.dev/dl and run it again")
	}
	scratch, err := os.MkdirTemp("", "pawl-demo-")
	if err != nil {
		return fmt.Errorf("cannot make a scratch folder: %v", err)
	}
	if !keep {
		defer func() {
			if rerr := os.RemoveAll(scratch); rerr != nil {
				a.Say("Warning: the scratch folder is still there: %v", rerr)
			}
		}()
	}
	demo, err := demoApp(ctx, a, scratch)
	if err != nil {
		return err
	}
	a.Say("A small module with a failing test is in %s. A scripted agent plays a coding agent;\n"+
		"everything else is real: git, gates, snapshots, the loop.\n", demo.Dir)
	err = runProcedure(ctx, demo, "repair", planner.Flags{}, false, false)
	var s command.StatusError
	if err != nil && !errors.As(err, &s) {
		return err
	}
	a.Result("\nWhat the run changed (pawl show repair --diff):\n\n")
	derr := demo.WithRun(ctx, "repair", func(p *action.Operator, r store.Run) error { return showDiff(ctx, demo, p, r) })
	if derr != nil {
		return derr
	}
	if keep {
		a.Say("\nThe folder stays: cd %s && XDG_STATE_HOME=%s pawl show repair", demo.Dir,
			filepath.Join(scratch, "state"))
	} else {
		a.Say("\nThe scratch folder is removed. Try it on your repository: pawl init && pawl run build")
	}
	return err
}

// demoApp lays the scratch repository out and returns an app that lives in it.
func demoApp(ctx context.Context, a *command.App, scratch string) (*command.App, error) {
	dir := filepath.Join(scratch, "calculator")
	if err := writeDemo(dir); err != nil {
		return nil, err
	}
	if err := git.Init(ctx, dir, "The calculator, with a bug"); err != nil {
		a.Say("Note: %v; the demo goes on without snapshots.", err)
	}
	demo := *a
	demo.Dir, demo.File, demo.Verbose = dir, "", !a.Quiet && !a.JSON
	demo.Env = slices.DeleteFunc(slices.Clone(a.Env), func(kv string) bool { return strings.HasPrefix(kv, "PAWL_") })
	// Built as pawl itself is, and not vetted: the user's cache has most of what the gates need then.
	demo.Env = append(demo.Env, "XDG_STATE_HOME="+filepath.Join(scratch, "state"),
		"XDG_CONFIG_HOME="+filepath.Join(scratch, "config"), "CGO_ENABLED=0", "GOFLAGS=-mod=mod -trimpath -vet=off",
		"GOPROXY=off", "GOTOOLCHAIN=local", "GOWORK=off")
	return &demo, nil
}

// writeDemo copies the embedded files. Their names end in .txt, so that they
// are no part of this module.
func writeDemo(dir string) error {
	return fs.WalkDir(demoFiles, "demo", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := demoFiles.ReadFile(path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimSuffix(strings.TrimPrefix(path, "demo/"), ".txt"))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return fmt.Errorf("cannot lay the demo out: %v", err)
		}
		if err := os.WriteFile(to, data, 0o644); err != nil {
			return fmt.Errorf("cannot lay the demo out: %v", err)
		}
		return nil
	})
}
