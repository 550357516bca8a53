package trial

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
	"github.com/pawl-dev/pawl/internal/decide/trial"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// loadConfig is pawl in a scratch repository, with the person's configuration. What would reach other people, or wait
// for one, is left out of it.
func (b *bench) loadConfig(repo *git.Repo, over string, flags map[string]string) (*command.App, *config.Config, error) {
	app := *b.app
	below, err := filepath.Rel(b.repo.Top, b.config.Root)
	if err != nil {
		return nil, nil, err
	}
	app.Dir, app.File, app.Over = filepath.Join(repo.Top, below), b.config.File, over
	app.Stdin, app.Stdout, app.Stderr, app.JSON, app.Quiet = strings.NewReader(""), io.Discard, io.Discard, false, true
	app.TrustConfig = true                              // these files were judged when the trial began
	if err := os.MkdirAll(app.Dir, 0o755); err != nil { //nolint:gosec // as git makes folders
		return nil, nil, err
	}
	// The file makes the folder the root; what counts is the person's.
	err = config.WriteNew(filepath.Join(app.Dir, statedir.FileName), []byte("# see --config\n"))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, nil, err
	}
	c, err := app.Load(flags)
	if err != nil {
		return nil, nil, err
	}
	c.Cluster, c.Hooks, c.Notify, c.Run.Deliver = config.Cluster{}, config.Hooks{}, nil, "each"
	return &app, c, nil
}

// ran is a run in a scratch repository, come to rest.
type ran struct {
	store.Run
	iterations []loop.Record
	objects    *git.Repo     // that has the trees of its iterations
	limit      loop.MicroUSD // of its cost
}

// driveRun runs a procedure in a scratch repository, or resumes the run that was cut off there.
func (b *bench) driveRun(ctx context.Context, repo *git.Repo, over, name string, f planner.Flags) (r ran, err error) {
	app, c, err := b.loadConfig(repo, over, f.Paths())
	if err != nil {
		return r, err
	}
	plan, err := app.Planner(c, f).Procedure(name)
	if err != nil {
		return r, err
	}
	if of := plan.Policy.Agent; b.maxCost >= 0 {
		if _, again := b.warned.LoadOrStore(of, true); !again {
			session.WarnOfHiddenCost(b.app, of, plan.Agents[of])
		}
	}
	plan.SetUp = c.Workspace.Setup
	if plan.Policy.Reviewer == loop.Person { // none is there
		plan.Policy.Review, plan.Policy.Reviewer, plan.Prompt.Reviewer = false, "", ""
	}
	s, err := session.Open(ctx, app, c, plan, b.unsandboxed)
	if err != nil {
		return r, err
	}
	defer s.Close()
	last, err := s.Store.Latest(ctx, c.Root, name)
	rests := !loop.Status(last.Status).Active() && !wasEndedByPerson(last) && !isOutOfMoney(last)
	if ctx.Err() != nil {
		return r, command.StatusError(command.ExitInterrupted)
	}
	ctx = context.WithoutCancel(ctx) // the run heeds signals by itself
	if errors.Is(err, store.ErrNotFound) {
		err = s.Drive(ctx, engine.Start)
	} else if err == nil && !rests {
		err = s.DriveOn(ctx, last.ID, loop.Event{Kind: loop.Resumed, Policy: &s.Plan.Policy})
	}
	_, isStatus := errors.AsType[command.StatusError](err)
	ended := isStatus || errors.Is(err, loop.ErrAtLimit) // there is no more money now
	if err != nil && !ended {
		return r, err
	}
	if r.Run, err = s.Store.Latest(ctx, c.Root, name); err == nil {
		r.iterations, err = s.Store.Iterations(ctx, r.ID)
	}
	r.objects, r.limit = s.Tree.Store, plan.Policy.MaxCost
	return r, err
}

// isOutOfMoney reports whether a limit on cost ended a run: it can be resumed with more.
func isOutOfMoney(r store.Run) bool {
	var at loop.State
	return json.Unmarshal(r.State, &at) == nil && at.Status == loop.TimedOut && at.Command.OutOfMoney
}

func formatCostFlag(m loop.MicroUSD) string { return fmt.Sprintf("%d.%06d", m/1e6, m%1e6) }

// wasEndedByPerson reports whether a person ended the trial, or paused its run.
func wasEndedByPerson(r store.Run) bool {
	return slices.Contains([]loop.Status{loop.Interrupted, loop.Stopped, loop.Paused}, loop.Status(r.Status))
}

// makeAttempt makes one attempt, or resumes it. The error is a status where the trial rests before its end: the next
// one resumes it.
func (b *bench) makeAttempt(ctx context.Context, j *judge, p planned, most loop.MicroUSD) (a trial.Attempt, err error) {
	dir := b.attemptDir(p.Key)
	repo, err := b.scratchAt(ctx, dir, p.Task.Parent, false)
	if err != nil {
		return a, err
	}
	f := planner.Flags{Agent: p.Agent, Work: p.Task.Words}
	isOwnLimit := p.MaxCost > 0 && p.MaxCost <= most
	isShort := most >= 0 && !isOwnLimit
	if isShort {
		f.MaxCost = formatCostFlag(most)
	}
	r, err := b.driveRun(ctx, repo, p.Over, planner.Trial, f)
	switch {
	case err != nil:
		return a, err
	case wasEndedByPerson(r.Run):
		return a, command.StatusError(command.ExitInterrupted)
	case isShort && r.limit == most && isOutOfMoney(r.Run): // the next trial may have more money
		return a, command.StatusError(command.ExitLimit)
	}
	tree, err := repo.TreeOf(ctx, p.Task.Parent)
	if n := len(r.iterations); n > 0 && err == nil {
		tree = cmp.Or(r.iterations[n-1].TreeAfter, tree)
	}
	if err != nil {
		return a, err
	}
	v, err := j.judgeWork(ctx, r.objects, tree, p.Task.Commit)
	switch {
	case ctx.Err() != nil:
		return a, command.StatusError(command.ExitInterrupted)
	case err != nil:
		return a, err
	}
	a = trial.Attempt{
		Variant: p.Variant, Task: p.Task.Commit, Repeat: p.Repeat, Solved: v == green || v == flaky,
		Completed: r.Status == string(loop.Completed), Status: r.Status, Why: report.Line(r.Why, 200),
		Cost: r.Cost, CostKnown: r.CostKnown && !r.CostPartial, Iterations: len(r.iterations),
		Millis: r.Elapsed.Milliseconds(),
	}
	for _, it := range r.iterations {
		if it.Strategy != strategy.Default && !slices.Contains(a.Strategies, it.Strategy) {
			a.Strategies = append(a.Strategies, it.Strategy)
		}
	}
	return a, nil
}

func (b *bench) attemptDir(key string) string { return filepath.Join(b.dir, "attempts", key, "repo") }

// scratchAt is a scratch repository with a commit; see [git.Repo.NewScratch].
func (b *bench) scratchAt(ctx context.Context, dir, commit string, borrow bool) (*git.Repo, error) {
	return b.scratchOf(ctx, dir, func() (*git.Repo, error) { return b.repo.NewScratch(ctx, dir, commit, borrow) })
}

// scratchOf is a scratch repository: one that was made whole before of this repository, or a new one.
func (b *bench) scratchOf(ctx context.Context, dir string, create func() (*git.Repo, error)) (*git.Repo, error) {
	var of string
	if err := files.ReadJSON(dir+".made", &of); err == nil && of == b.repo.Objects {
		return git.Open(ctx, dir)
	}
	if err := b.dropScratch(dir); err != nil {
		return nil, err
	}
	repo, err := create()
	if err == nil {
		err = storeJSON(dir+".made", b.repo.Objects)
	}
	return repo, err
}

// dropScratch removes a scratch repository with the state that pawl has of it.
func (b *bench) dropScratch(dir string) error {
	below, err := filepath.Rel(b.repo.Top, b.config.Root)
	if err == nil {
		err = files.RemoveAll(statedir.Of(filepath.Join(dir, below), b.app.Env))
	}
	return errors.Join(err, files.RemoveAll(filepath.Dir(dir)))
}

// words are those that an agent wrote of a commit's message.
type words struct {
	Text string `json:"text"`
	Cost int64  `json:"cost_micro_usd"`
}

func (b *bench) wordsKey(t trial.Task) string { return "words-" + b.describer + "-" + t.Commit }

// describeTask has an agent write the words of a task anew, when the money reaches for it.
func (w *wallet) describeTask(ctx context.Context, t *trial.Task) error {
	b, key := w.b, w.b.wordsKey(*t)
	own := b.config.Loop.MaxCost
	most, isOurs, err := w.holdMoney(purchase{key: key, own: *cmp.Or(own, new(loop.MicroUSD)), least: 1, isWords: true})
	if err != nil {
		return err
	}
	var found words
	if isOurs {
		if found, err = b.askForWords(ctx, t, most); err != nil {
			return cmp.Or(w.leavePaid(key), err)
		}
		err = w.storePaidResult(key, found.Cost, found)
	} else {
		var made map[string]store.TrialAttempt
		if made, err = b.board.TrialAttempts(ctx, storedrun.Alive); err == nil {
			err = json.Unmarshal(made[key].Result, &found)
		}
	}
	if err != nil {
		return err
	}
	if found.Text == "" {
		b.app.Say("Warning: %s wrote no text for %.10s; the commit message is the task.", b.describer, t.Commit)
	}
	t.Words = cmp.Or(found.Text, t.Words)
	return nil
}

// askForWords runs the agent in a repository that has nothing but the message of the commit.
func (b *bench) askForWords(ctx context.Context, t *trial.Task, most loop.MicroUSD) (w words, err error) {
	dir := b.attemptDir("words-" + t.Commit)
	repo, err := b.scratchOf(ctx, dir, func() (*git.Repo, error) {
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			err = config.WriteNew(filepath.Join(dir, "message.txt"), []byte(t.Words))
		}
		if err == nil {
			err = git.Init(ctx, dir, "the message")
		}
		if err != nil {
			return nil, err
		}
		return git.Open(ctx, dir)
	})
	if err != nil {
		return w, err
	}
	f := planner.Flags{Agent: b.describer, Work: t.Words}
	if own := b.config.Loop.MaxCost; most >= 0 {
		f.MaxCost = formatCostFlag(min(most, *cmp.Or(own, &most)))
	}
	r, err := b.driveRun(ctx, repo, "", planner.Describing, f)
	switch {
	case err != nil:
		return w, err
	case wasEndedByPerson(r.Run):
		return w, command.StatusError(command.ExitInterrupted)
	case r.limit == most && isOutOfMoney(r.Run):
		return w, command.StatusError(command.ExitLimit)
	}
	w.Cost = r.Cost
	text, _ := files.ReadBelow(dir, planner.DescribeFile, 64<<10) // without it the message stays
	if _, text, ok := trial.Words(string(text)); ok && r.Status == string(loop.Completed) {
		w.Text = text
	}
	return w, b.dropScratch(dir)
}
