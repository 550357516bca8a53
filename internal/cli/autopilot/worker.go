package autopilot

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/report"
)

func workerCommand(a *command.App) *cobra.Command {
	var slots string
	var f autopilotFlags
	cmd := command.Leaf("worker", "Work tasks that the cluster's engine orders, until you stop it", command.AtMost(0),
		func(ctx context.Context, _ []string) error { return work(ctx, a, f, slots) })
	cmd.Long = "Work tasks that the engine of cluster.engine orders. An autopilot decides which; it may end meanwhile.\n" +
		"After TERM or Ctrl-C agents go on for 90 seconds: a worker that starts by then goes on with them."
	cmd.Example = "  pawl-cluster worker --slots 4"
	cmd.Flags().StringVar(&slots, "slots", "", "work on `N` tasks at once; without it autopilot.max_parallel")
	return cmd
}

func work(ctx context.Context, a *command.App, f autopilotFlags, slots string) error {
	b, err := open(ctx, a, f)
	if err != nil {
		return err
	}
	defer b.s.Close()
	c := b.s.Config
	n := c.Autopilot.MaxParallel
	if slots != "" {
		if n, err = strconv.Atoi(slots); err != nil || n < 1 {
			return command.Usage("--slots %s: write how many tasks at once, from 1", slots)
		}
	}
	if c.Cluster.Engine == "" {
		return command.Usage("a worker needs an engine: cluster.engine is not set").
			Hint("Name it in pawl.yaml: cluster: {engine: temporal://host:7233/namespace}")
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	b.o.Log, b.o.Notify = command.OpenLog(c.Root), b.screen.notice
	a.Say("Works up to %s at once", report.Numbered(n, "task"))
	if err := a.Cluster.Work(ctx, c.Cluster.Engine, b.repository(), n, b.o); err != nil {
		return err
	}
	a.Say("Ends. Agents go on for 90 seconds; a worker that starts by then goes on with them")
	return nil
}

// join connects the autopilot to the engine, if the configuration names one.
func (b *workplace) join(ctx context.Context) (leave func(), err error) {
	at := b.s.Config.Cluster.Engine
	if at == "" {
		return func() {}, nil
	}
	a := b.s.App
	if a.Cluster == nil {
		return nil, command.Usage("cluster.engine is set, and this program has no client of an engine").
			Hint("Start the program that has it: pawl-cluster autopilot")
	}
	b.o.Elsewhere, leave, err = a.Cluster.Join(ctx, at, b.repository(), command.OpenLog(b.s.Config.Root))
	if err != nil {
		return nil, err
	}
	n, err := b.o.Elsewhere.Workers(ctx)
	if err != nil {
		leave()
		return nil, err
	}
	if n == 0 {
		a.Say("Warning: no worker is there; tasks begin when one is: pawl-cluster worker")
	}
	return leave, nil
}

// repository names the board on the engine: that of this checkout on this machine.
func (b *workplace) repository() string {
	host, _ := os.Hostname()
	return host + ":" + filepath.Base(b.s.StateDir)
}
