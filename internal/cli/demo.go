package cli

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/planner"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

//go:embed all:demo
var demoFiles embed.FS

func (a *app) demoCommand() *cobra.Command {
	var keep bool
	cmd := leaf("demo", "Watch it work: a scripted agent repairs a failing test in a scratch repository", atMost(0),
		func(ctx context.Context, _ []string) error { return a.demo(ctx, keep) })
	cmd.Long = "A small Go module with a failing test, in a scratch folder. The scripted agent first runs into a rate\n" +
		"limit, then claims to be done while a test is red, then repairs it. No network, no key; the folder is\n" +
		"removed at the end."
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the scratch folder to look at")
	return cmd
}

func (a *app) demo(ctx context.Context, keep bool) (err error) {
	if _, err := a.lookPath("go"); err != nil {
		return fault.Of(fault.Failed, errors.New("the demo repairs a Go test and needs the go command")).Hint("%s", "Install Go from https://go.dev/dl and run it again")
	}
	scratch, err := os.MkdirTemp("", "pawl-demo-")
	if err != nil {
		return fmt.Errorf("cannot make a scratch folder: %v", err)
	}
	if !keep {
		defer func() {
			if rerr := os.RemoveAll(scratch); rerr != nil {
				a.say("Warning: the scratch folder is still there: %v", rerr)
			}
		}()
	}
	demo, err := a.demoApp(ctx, scratch)
	if err != nil {
		return err
	}
	a.say("A small module with a failing test is in %s. A scripted agent plays a coding agent;\neverything else is real: git, gates, snapshots, the loop.\n", demo.dir)
	err = demo.run(ctx, "repair", planner.Flags{}, false, false)
	var s status
	if err != nil && !errors.As(err, &s) {
		return err
	}
	a.result("\nWhat the run changed (pawl show repair --diff):\n\n")
	derr := demo.withRun(ctx, "repair", func(p *action.Operator, r sqlite.Run) error { return demo.showDiff(ctx, p, r) })
	if derr != nil {
		return derr
	}
	if keep {
		a.say("\nThe folder stays: cd %s && XDG_STATE_HOME=%s pawl show repair", demo.dir, filepath.Join(scratch, "state"))
	} else {
		a.say("\nThe scratch folder is removed. Try it on your repository: pawl init && pawl run build")
	}
	return err
}

// demoApp lays the scratch repository out and returns an app that lives in it.
func (a *app) demoApp(ctx context.Context, scratch string) (*app, error) {
	dir := filepath.Join(scratch, "calculator")
	if err := writeDemo(dir); err != nil {
		return nil, err
	}
	if err := git.Init(ctx, dir, "The calculator, with a bug"); err != nil {
		a.say("Note: %v; the demo goes on without snapshots.", err)
	}
	demo := *a
	demo.dir, demo.file, demo.verbose = dir, "", !a.quiet && !a.json
	// A build cache of its own would make the first gate take half a minute.
	demo.writes = []string{a.goBuildCache()}
	demo.env = nil
	for _, kv := range a.env {
		if !strings.HasPrefix(kv, "PAWL_") && !strings.HasPrefix(kv, "XDG_STATE_HOME=") && !strings.HasPrefix(kv, "XDG_CONFIG_HOME=") {
			demo.env = append(demo.env, kv)
		}
	}
	demo.env = append(demo.env, "XDG_STATE_HOME="+filepath.Join(scratch, "state"), "XDG_CONFIG_HOME="+filepath.Join(scratch, "config"),
		"GOCACHE="+demo.writes[0], "GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local", "GOWORK=off")
	return &demo, nil
}

// goBuildCache is where the go command keeps what it built.
func (a *app) goBuildCache() string {
	if dir := a.getenv("GOCACHE"); dir != "" {
		return dir
	}
	if dir := a.getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "go-build")
	}
	return filepath.Join(a.getenv("HOME"), ".cache", "go-build")
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
