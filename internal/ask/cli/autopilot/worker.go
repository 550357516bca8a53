package autopilot

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

func workerCommand(a *command.App) *cobra.Command {
	var f workerFlags
	cmd := command.Group("worker", "Work on tasks that the cluster's engine assigns, until you stop it",
		func(ctx context.Context) error { return runWorker(ctx, a, f) },
		command.Plain("kill", "Stop the worker of this machine and its agents at once, even if the engine is down",
			func(ctx context.Context) error { return killWorker(ctx, a) }))
	cmd.Long = "Work on tasks that the engine of cluster.engine assigns. An autopilot decides which; if nobody runs\n" +
		"the autopilot any more, this worker does.\n" +
		"After SIGTERM or Ctrl-C it starts nothing new; with --drain it waits for running iterations to end.\n" +
		"Agents that still run continue for 90 seconds: a worker that starts by then takes them over. A second\n" +
		"signal ends the worker at once. A task with a tag needs:LABEL goes only to workers with that label."
	cmd.Example = "  pawl-cluster worker --slots 4\n  pawl-cluster worker --label gpu --drain 1h"
	fl := cmd.Flags()
	fl.StringVar(&f.slots, "slots", "", "work on `N` tasks at once; without it autopilot.max_parallel")
	fl.StringArrayVar(&f.labels, "label", nil, "also take tasks that need `LABEL`; may be repeated")
	fl.DurationVar(&f.drain, "drain", 0, "after SIGTERM wait up to `LONG` for iterations to end, e.g. 1h")
	return cmd
}

// workerFlags are those of a worker.
type workerFlags struct {
	slots  string
	labels []string
	drain  time.Duration
}

// maxLabels bounds the queues that a worker asks: one for each choice of labels.
const maxLabels = 4

// parseOffer returns what this machine offers; without --slots that is no slot.
func (f *workerFlags) parseOffer() (o autopilot.Offer, err error) {
	o = autopilot.Offer{Drain: f.drain, Version: command.Version}
	if f.slots != "" {
		if o.Slots, err = strconv.Atoi(f.slots); err != nil || o.Slots < 1 {
			return o, command.Usage("--slots %s: write how many tasks at once, from 1", f.slots)
		}
	}
	if f.drain < 0 {
		return o, command.Usage("--drain %s: write how long, as 30m or 1h", f.drain)
	}
	for _, l := range f.labels {
		if !label().MatchString(l) {
			return o, command.Usage("--label %q: write one word of letters, digits, - _ and ., with at most 40", l)
		}
		o.Labels = append(o.Labels, strings.ToLower(l))
	}
	slices.Sort(o.Labels)
	o.Labels = slices.Compact(o.Labels)
	if len(o.Labels) > maxLabels {
		return o, command.Usage("%d labels; a worker has at most %d", len(o.Labels), maxLabels)
	}
	return o, nil
}

var label = lazy.Regexp(`^[A-Za-z0-9._-]{1,40}$`)

func runWorker(ctx context.Context, a *command.App, f workerFlags) error {
	offer, err := f.parseOffer() // report wrong flags before anything is opened
	if err != nil {
		return err
	}
	b, err := openWorkplace(ctx, a, autopilotFlags{})
	if err != nil {
		return err
	}
	defer b.s.Close()
	c := b.s.Config
	offer.Slots, offer.OwnRules = cmp.Or(offer.Slots, c.Autopilot.MaxParallel), b.t.ReasonForOwnRules()
	if len(offer.Labels) > 0 && b.s.Store.BoardName() == "" {
		return command.Usage("labels distinguish machines, but the board is on this one: cluster.store is not set")
	}
	if c.Cluster.Engine == "" {
		return command.Usage("a worker needs an engine: cluster.engine is not set").
			Hint("Name it in pawl.yaml: cluster: {engine: temporal://host:7233/namespace}")
	}
	if err := b.findRemote(ctx); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	b.o.Log, b.o.Notify = command.OpenLog(c.Root), b.screen.showNotice
	with := ""
	if len(offer.Labels) > 0 {
		with = ", with the labels " + strings.Join(offer.Labels, ", ")
	}
	at, err := b.s.App.EngineAt(c)
	if err != nil {
		return err
	}
	wait := func() {}
	offer.Begins = func() {
		a.Say("Working on up to %s at once%s", fault.Numbered(offer.Slots, "task"), with)
		switch why := reasonNoStandby(c); {
		case why == "":
			wait = b.waitToTakeOver(ctx)
		case b.s.Store.BoardName() != "":
			a.Say("Working on tasks, but cannot take over an autopilot whose process ended: %s", why)
		}
	}
	err = a.Cluster.Work(ctx, at, b.boardName(), offer, b.o)
	stop()
	wait()
	if err != nil {
		return err
	}
	a.Say("Stopped. Running agents continue for 90 seconds; a worker that starts by then takes them over")
	return nil
}

// killWorker ends this machine's worker. It opens no database: that may be away.
func killWorker(ctx context.Context, a *command.App) error {
	c, err := a.Load(nil)
	if err != nil {
		return err
	}
	worked, tasks, err := a.Cluster.Kill(ctx, statedir.Of(c.Root, a.Env))
	if err != nil {
		return err
	}
	if !worked && len(tasks) == 0 {
		a.Say("No worker of this repository is running here")
		return nil
	}
	slices.Sort(tasks)
	a.Say("Stopped the worker, and what it was running of %s", cmp.Or(strings.Join(tasks, ", "), "no task"))
	if len(tasks) > 0 {
		a.Say("Unfinished work counts as lost: another worker starts it again within three minutes")
	}
	return nil
}

// reasonNoStandby returns why no other process could continue this autopilot; "" if one
// can.
func reasonNoStandby(c *config.Config) string {
	switch {
	case c.Cluster.Store == "":
		return "the board is this machine's: cluster.store is not set"
	case c.Cluster.Engine == "":
		return "there are no workers: cluster.engine is not set"
	case !c.Merge.Push && c.Merge.Mode != "pull-request":
		return "landed work would stay on one machine: merge.push is not set"
	}
	return ""
}

func mayDetach(c *config.Config) error {
	if why := reasonNoStandby(c); why != "" {
		return command.Usage("--detach lets the workers of a cluster drive the autopilot, but %s", why).
			Hint("Set it in pawl.yaml, then check the rest: pawl cluster check")
	}
	return nil
}

// handOverToWorkers leaves the autopilot to the workers.
func (b *workplace) handOverToWorkers(ctx context.Context) error {
	if err := mayDetach(b.s.Config); err != nil {
		return err
	}
	err := autopilot.HandOver(ctx, b.o)
	var running *store.RunningError
	switch {
	case errors.As(err, &running):
		return alreadyRuns(running)
	case err == nil:
		b.s.App.Say("The autopilot is on. The next worker drives it; if that worker ends, another one takes over.")
		b.s.App.Say("See what it does: pawl autopilot status. Stop it: pawl autopilot stop")
	}
	return err
}

func alreadyRuns(r *store.RunningError) error {
	by := "it is on, and the next worker drives it"
	if r.Owner.PID != 0 {
		by = r.Owner.String()
	}
	return command.Usage("the autopilot is already running: %s", by).
		Hint("See what it does: pawl autopilot status").Hint("Stop it:          pawl autopilot stop")
}

// waitToTakeOver takes over an enabled autopilot whenever its process ends, until ctx is done.
func (b *workplace) waitToTakeOver(ctx context.Context) (wait func()) {
	quiet := *b.s.App
	quiet.Quiet = true // this worker has said what is to be said
	return autopilot.StandBy(ctx, b.s.Store, b.o.Log, func(ctx context.Context) (
		o autopilot.Options, _ func(), err error,
	) {
		d, err := openWorkplace(ctx, &quiet, autopilotFlags{})
		if err != nil {
			return o, nil, err
		}
		leave, err := d.joinCluster(ctx)
		if err != nil {
			d.s.Close()
			return o, nil, err
		}
		d.o.Log, d.o.Notify = b.o.Log, watchAutopilot(ctx, d.s, d.t.Verdict, b.screen)
		return d.o, func() { leave(); d.s.Close() }, nil
	})
}

// joinCluster connects the autopilot to the engine, if the configuration names one.
func (b *workplace) joinCluster(ctx context.Context) (leave func(), err error) {
	if b.s.Config.Cluster.Engine == "" {
		return func() {}, nil
	}
	if len(b.o.Race) > 1 {
		return nil, command.Usage("autopilot.race and cluster.engine are set, but agents of an engine cannot race").
			Hint("Set autopilot.race to 0, or remove cluster.engine to work without the engine")
	}
	a := b.s.App
	if a.Cluster == nil {
		return nil, command.Usage("cluster.engine is set, but this program cannot talk to an engine").
			Hint("Run the same command with the program that can: pawl-cluster")
	}
	if err := b.findRemote(ctx); err != nil {
		return nil, err
	}
	at, err := a.EngineAt(b.s.Config)
	if err != nil {
		return nil, err
	}
	b.o.Elsewhere, leave, err = a.Cluster.Join(ctx, at, b.boardName(), b.s.Store, command.OpenLog(b.s.Config.Root))
	if err != nil {
		return nil, err
	}
	b.o.HandsOn, b.o.Asked = reasonNoStandby(b.s.Config) == "", b.asked
	if err := b.checkAsked(); err != nil {
		leave()
		return nil, err
	}
	n, err := b.o.Elsewhere.Workers(ctx)
	if err != nil {
		leave()
		return nil, err
	}
	if n == 0 {
		a.Say("Warning: no worker is running; tasks start when one is: pawl-cluster worker")
		b.tellOthers(ctx)
	}
	return leave, nil
}

// checkAsked refuses a level that no worker would work at.
func (b *workplace) checkAsked() error {
	own, err := b.s.App.Load(nil)
	if err != nil {
		return err
	}
	asked, level := b.asked["loop.safety"], own.Loop.Safety
	if asked == planner.OrderedPaths(b.asked, level)["loop.safety"] {
		return nil
	}
	return command.Usage("--safety %s is lower than loop.safety of pawl.yaml, %s: workers refuse that", asked,
		level)
}

// tellOthers names the workers that are there and take no orders from this autopilot.
func (b *workplace) tellOthers(ctx context.Context) {
	workers, _ := b.s.Store.Workers(ctx) // without a list no worker is named
	for _, w := range workers {
		if !w.Silent && w.Version != command.Version {
			b.s.App.Say("Warning: worker %s runs pawl %s, this is %s; install the same version", w.Name, w.Version,
				command.Version)
		}
	}
}

// boardName names the board on the engine: as its database calls it, or that of
// this checkout on this machine.
func (b *workplace) boardName() string {
	if name := b.s.Store.BoardName(); name != "" {
		return name
	}
	host, _ := os.Hostname()
	return host + ":" + filepath.Base(b.s.StateDir)
}

// findRemote finds the remote by which work goes from machine to machine, where the board
// is shared by several.
func (b *workplace) findRemote(ctx context.Context) error {
	c := b.s.Config.Cluster
	if b.s.Store.BoardName() == "" {
		return nil
	}
	if _, err := b.o.Repo.RemoteURL(ctx, c.Remote); err != nil {
		return command.Usage("there is no git remote %q, through which work moves between machines", c.Remote).
			Hint("Add it: git remote add %s ADDRESS", c.Remote).
			Hint("Or name another one in pawl.yaml: cluster: {remote: NAME}")
	}
	b.o.Remote = c.Remote
	return nil
}
