// Package trial has the commands that try agents and settings on tasks of the repository's own history: find them,
// work on them, report, and apply what the evidence shows. What the evidence shows is decided by decide/trial.
//
// Each attempt is an ordinary private run in a scratch repository below pawl's state, which ends with the parent of the
// commit: nothing of what came later is there. What a trial knows lies in files beside it, each written once.
package trial

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/quantity"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/trial"
	"github.com/pawl-dev/pawl/internal/do/agent/agents"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/forge"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// bench is one trial in this process.
type bench struct {
	app         *command.App
	config      *config.Config // of the person, as it is
	repo        *git.Repo
	dir         string
	unsandboxed bool
	again       bool          // commits that were no tasks are tried again
	requests    bool          // tasks have the texts of pull requests
	forge       *forge.Client // nil without requests

	last, most int // commits that are looked at, tasks that are wanted
	repeat     int
	slots      string // --max-parallel
	parallel   int    // attempts, or commits that are tried, at once
	agents     []string
	overs      []string // files that are laid over pawl.yaml
	maxCost    loop.MicroUSD
	describer  string
	unpaid     error        // the money did not reach for all words
	board      *store.Store // has what was begun, of all machines
	reporting  sync.Mutex
	warned     sync.Map // agents of whose hidden cost the person was warned
}

// planned is an attempt that is to be made. Its key is another one for whatever would make it another.
type planned struct {
	trial.Variant
	Task    trial.Task    `json:"task"`
	Repeat  int           `json:"repeat"`
	Over    string        `json:"over,omitempty"`     // the file of the setting, absolute
	MaxCost loop.MicroUSD `json:"max_cost,omitempty"` // loop.max_cost; 0 is none
	Key     string        `json:"key"`
}

// plan is a trial as it was asked for last. What is stored outlives the code.
type plan struct {
	Tasks    []trial.Task `json:"tasks"`
	Attempts []planned    `json:"attempts"`
	// Settings are the texts of the files that were laid over pawl.yaml, by name.
	Settings map[string]string `json:"settings,omitempty"`
}

// Command tries agents and settings on this repository's history.
func Command(a *command.App) *cobra.Command {
	b := &bench{app: a}
	var usd string
	var out output
	cmd := command.Group("trial", "Try agents and settings on tasks of this repository's own history",
		func(ctx context.Context) error {
			err := out.checkFiles(a)
			if err == nil {
				err = b.prepareBench(ctx, usd)
			}
			if err == nil {
				err = b.runTrial(ctx, out)
			}
			return err
		})
	find := command.Plain("find", "Find the tasks of a trial; costs nothing", func(ctx context.Context) error {
		err := b.prepareBench(ctx, "")
		if err == nil {
			err = b.showTasks(ctx)
		}
		return err
	})
	for _, c := range []*cobra.Command{cmd, find} {
		fl := c.Flags()
		fl.IntVar(&b.last, "last", 200, "look at the last `N` commits")
		fl.IntVar(&b.most, "tasks", 20, "take `N` tasks, the newest")
		fl.StringVarP(&b.slots, "max-parallel", "p", "",
			"work on `N` attempts or commits at once (default: autopilot.max_parallel)")
		fl.BoolVar(&b.again, "again", false, "try commits again that were no tasks when they were tried before")
		fl.BoolVar(&b.requests, "requests", false, "take a task's text from the pull request that its commit merged")
		fl.BoolVar(&b.unsandboxed, "unsandboxed", false, "run without a sandbox; then agents can find later commits")
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&b.agents, "agent", nil, "try the agent `NAME`; may be repeated (default: that of pawl.yaml)")
	fl.StringArrayVar(&b.overs, "with", nil,
		"also try pawl.yaml with the settings of `FILE` over it; may be repeated")
	fl.IntVar(&b.repeat, "repeat", 1, "try each task `N` times")
	fl.StringVar(&usd, "max-cost", "", "spend at most `USD` in all: start no attempt that may cost more than is left")
	fl.StringVar(&b.describer, "describe", "",
		"let the agent `NAME` write each task's text, from the commit message alone")
	out.addFlags(cmd)
	cmd.AddCommand(find, reportCommand(a), applyCommand(a))
	return cmd
}

// prepareBench reads what a trial is about, and refuses what cannot be tried.
func (b *bench) prepareBench(ctx context.Context, usd string) (err error) {
	if err := session.NotInside(b.app); err != nil {
		return err
	}
	if b.last < 1 || b.most < 1 || b.repeat < 0 {
		return command.Usage("--last, --tasks and --repeat count from 1")
	}
	b.maxCost = -1
	if usd != "" {
		if b.maxCost, err = quantity.ParseUSD(usd); err != nil {
			return command.Usage("--max-cost: %v", err)
		}
	}
	flags := map[string]string{}
	if b.slots != "" {
		flags["autopilot.max_parallel"] = b.slots
	}
	if b.config, err = b.app.Load(flags); err != nil {
		return err
	}
	b.parallel = b.config.Autopilot.MaxParallel
	if len(b.agents) == 0 {
		b.agents = []string{b.config.Agent}
	}
	b.agents, b.overs = lists.Union(nil, b.agents...), lists.Union(nil, b.overs...)
	for _, name := range append(lists.NonEmpty(b.describer), b.agents...) {
		_, known := b.config.Agents.Named[name]
		mayDefineIt := len(b.overs) > 0
		isDefined := known || mayDefineIt || slices.Contains(agents.Names(), name)
		if !isDefined {
			return planner.UnknownAgent(name)
		}
	}
	if len(b.config.Verification.Commands) == 0 {
		return command.Usage("%s has no gate that could judge a task", b.config.Name()).
			Hint("Add the command that runs your tests: verification: [make test]")
	}
	b.repo, err = git.Open(ctx, b.config.Root)
	var head git.Head
	if err == nil {
		head, err = b.repo.Head(ctx)
	}
	switch {
	case errors.Is(err, git.ErrNotRepository), err == nil && head.Commit == "":
		return command.Usage("a trial takes its tasks from the history of a git repository, and here is none").
			Hint("Commit the code and its tests first")
	case err != nil:
		return err
	}
	if err := statedir.Make(b.config.Root, b.app.Env); err != nil {
		return err
	}
	b.dir = trialDir(b.app, b.config.Root)
	if b.requests {
		_, _, target, err := session.OpenRepository(ctx, b.app)
		if err == nil {
			b.forge, err = session.OpenForge(ctx, b.app, b.config, b.repo, target)
		}
		if err != nil {
			return err
		}
	}
	return os.MkdirAll(b.dir, 0o700)
}

func trialDir(a *command.App, root string) string {
	return filepath.Join(statedir.Of(root, a.Env), "trial")
}

// lockWait is how long another trial of the repository is waited for.
const lockWait = 2 * time.Second

// withJudge finds the tasks, and hands them on with who judges.
func (b *bench) withJudge(ctx context.Context, do func(*judge, []trial.Task) error) (err error) {
	short, cancel := context.WithTimeout(ctx, lockWait)
	lock, err := files.Lock(short, filepath.Join(b.dir, "lock"))
	cancel()
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Refuse("another trial of this repository is running").Hint("Wait for it, or stop it with Ctrl+C")
	case err != nil:
		return fmt.Errorf("cannot start a trial: %w", err)
	}
	defer lock.Close()
	j, err := b.openJudge(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.closeJudge()) }()
	tasks, err := b.findTasks(ctx, j)
	if err != nil {
		return err
	}
	return do(j, tasks)
}

func (b *bench) showTasks(ctx context.Context) error {
	return b.withJudge(ctx, func(_ *judge, tasks []trial.Task) error {
		r := trial.Build(tasks, nil, 0)
		if b.app.JSON {
			return b.app.Document(r)
		}
		for _, t := range tasks {
			b.app.Result("%.10s  %s, %d lines  %s\n", t.Commit, fault.Numbered(t.Files, "file"), t.Lines, t.Title)
		}
		return nil
	})
}

// runTrial finds tasks, makes the attempts that are missing, and reports.
func (b *bench) runTrial(ctx context.Context, out output) (err error) {
	if b.board, err = b.app.Database(ctx, b.config); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.board.Close()) }()
	return b.withJudge(ctx, func(j *judge, tasks []trial.Task) error {
		if len(tasks) == 0 {
			return fault.Of(fault.Failed, errors.New("no commit is a task, so nothing was tried")).
				Hint("Look further back: pawl trial --last %d", 4*b.last)
		}
		tasks, err := b.describeTasks(ctx, j, tasks)
		if err != nil {
			return err
		}
		p, err := b.planAttempts(j, tasks)
		if err == nil {
			err = storeJSON(filepath.Join(b.dir, "last.json"), p)
		}
		if err != nil {
			return err
		}
		if err := b.storeReport(ctx, p); err != nil {
			return err
		}
		ended := cmp.Or(b.makeAttempts(ctx, j, p), b.unpaid)
		if ended != nil && !fault.Is[command.StatusError](ended) {
			return ended
		}
		made, err := b.attemptsOf(ctx, p)
		if err == nil {
			err = out.showReport(b.app, trial.Build(tasks, made, len(p.Attempts)))
		}
		return errors.Join(err, ended)
	})
}

// describeTasks has the words of tasks written, as far as the money reaches beside the attempts that were made: tasks
// without are left out.
func (b *bench) describeTasks(ctx context.Context, j *judge, tasks []trial.Task) ([]trial.Task, error) {
	if b.describer == "" {
		return tasks, nil
	}
	for i := range tasks {
		p, err := b.planAttempts(j, tasks[:i])
		if err != nil {
			return nil, err
		}
		p.Tasks = tasks
		w, err := b.openWallet(ctx, b.keysOfPlan(p))
		if err == nil {
			err = w.describeTask(ctx, &tasks[i])
		}
		if status, isStatus := errors.AsType[command.StatusError](err); isStatus && status == command.ExitLimit {
			b.app.Say("%s left out: what is left of --max-cost does not pay for their words.",
				fault.Numbered(len(tasks)-i, "task"))
			b.unpaid = err
			return tasks[:i], nil
		} else if err != nil {
			return nil, err
		}
	}
	return tasks, nil
}

// keysOfPlan are the keys of what a plan pays for.
func (b *bench) keysOfPlan(p plan) []string {
	keys := lists.Each(p.Attempts, func(one planned) string { return one.Key })
	if b.describer != "" {
		keys = append(keys, lists.Each(p.Tasks, b.wordsKey)...)
	}
	return keys
}

// planAttempts lists all attempts so that a trial that ends early has the same tasks for each.
func (b *bench) planAttempts(j *judge, tasks []trial.Task) (p plan, err error) {
	p.Tasks, p.Settings = tasks, map[string]string{}
	for _, over := range b.overs {
		text, err := os.ReadFile(b.app.InDir(over))
		if err != nil {
			return p, command.Usage("--with: %v", err)
		}
		p.Settings[over] = string(text)
	}
	for repeat := range max(1, b.repeat) {
		for _, t := range tasks {
			for _, over := range append([]string{""}, b.overs...) {
				for _, agent := range b.agents {
					one := planned{Task: t, Repeat: repeat + 1, Over: over}
					one.Agent, one.Setting = agent, cmp.Or(over, trial.AsIs)
					if err := b.completePlan(j, &one); err != nil {
						return p, err
					}
					p.Attempts = append(p.Attempts, one)
				}
			}
		}
	}
	return p, nil
}

// completePlan reads the settings of an attempt, and makes its key.
func (b *bench) completePlan(j *judge, one *planned) error {
	if one.Over != "" {
		path, err := filepath.Abs(b.app.InDir(one.Over))
		if err != nil {
			return err
		}
		one.Over = path
	}
	app := *b.app
	app.Over, app.Quiet = one.Over, true
	c, err := app.Load(planner.Flags{Agent: one.Agent}.Paths())
	if err != nil {
		return err
	}
	if own := c.Loop.MaxCost; own != nil {
		one.MaxCost = *own
	}
	plain := *c // without what no attempt depends on, and what differs between machines
	plain.Root, plain.File, plain.Files, plain.Warnings = "", "", nil, nil
	plain.Cluster, plain.Server, plain.Hooks, plain.Notify = config.Cluster{}, config.Server{}, config.Hooks{}, nil
	settings, err := json.Marshal(plain)
	if err != nil {
		return err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %d %q\n", one.Task.Commit, one.Agent, one.Repeat, one.Task.Words)
	fmt.Fprintf(h, "%s\n%s", b.hashGates(j), settings)
	one.Key = hex.EncodeToString(h.Sum(nil)[:8])
	return nil
}

// attemptsOf are the attempts of a plan that were made.
func (b *bench) attemptsOf(ctx context.Context, p plan) (made []trial.Attempt, err error) {
	begun, err := b.board.TrialAttempts(ctx, storedrun.Alive)
	if err != nil {
		return nil, err
	}
	for _, one := range p.Attempts {
		var a trial.Attempt
		if begun[one.Key].Result == nil {
			continue
		}
		if err := json.Unmarshal(begun[one.Key].Result, &a); err != nil {
			return nil, fmt.Errorf("cannot read an attempt: %w", err)
		}
		a.Variant = one.Variant // a setting may have another name now
		made = append(made, a)
	}
	return made, nil
}

// storeReport stores what the attempts of a plan show so far, for the browser.
func (b *bench) storeReport(ctx context.Context, p plan) error {
	b.reporting.Lock()
	defer b.reporting.Unlock()
	made, err := b.attemptsOf(ctx, p)
	if err == nil {
		file := filepath.Join(filepath.Dir(b.dir), trial.ReportFile)
		err = files.ReplaceJSON(file, trial.Build(p.Tasks, made, len(p.Attempts)), false)
	}
	return err
}

// storeJSON stores what must not be lost, with the folder that it is in.
func storeJSON(path string, v any) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return files.ReplaceJSON(path, v, true)
}
