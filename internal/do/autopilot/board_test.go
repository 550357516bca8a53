package autopilot_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/agent/script"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/boxnet"
	"github.com/pawl-dev/pawl/internal/do/egress"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/do/netstack"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/reexec"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// The test binary is the supervisor and the scripted agent too.
func TestMain(m *testing.M) {
	if code, ok := reexec.Finish(supervisor.Rest{Ways: boxnet.Ways{Proxy: egress.Out(os.Getenv), Stack: netstack.Serve}}); ok {
		os.Exit(code)
	}
	os.Exit(gittest.Run(m))
}

// desk is a repository with a board, and an autopilot without a person beside it.
type desk struct {
	t     *testing.T
	repo  string
	store *store.Store
	o     autopilot.Options
	plan  runplan.Plan // of every task
	told  []autopilot.Notice
}

// newDesk makes a board of one task, whose agent plays the turns.
func newDesk(t *testing.T, turns string) *desk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	d := &desk{t: t, repo: filepath.Join(dir, "repo")}
	must(t, os.Mkdir(d.repo, 0o700))
	gittest.Git(t, d.repo, "init", "-q")
	gittest.Git(t, d.repo, "commit", "-q", "--allow-empty", "-m", "first")
	scenario := filepath.Join(dir, "scenario.yaml")
	must(t, os.WriteFile(scenario, []byte("turns:\n"+turns), 0o600))
	state := filepath.Join(dir, "state")
	d.store, err = store.Open(t.Context(), filepath.Join(state, "pawl.db"))
	must(t, err)
	t.Cleanup(func() { must(t, d.store.Close()) })
	d.plan = runplan.Plan{
		Kind: "task", Safety: sandbox.Permissive, Bounds: runplan.Bounds{Lease: time.Minute}, Environ: os.Environ(), Exe: os.Args[0], Args: []string{reexec.Supervise},
		Policy: loop.Policy{
			Kind: loop.Task, MaxIterations: 3, FailureThreshold: 3, MaxWaits: 1, Costs: loop.Costs{MaxCost: loop.NoLimit, MaxIterationCost: loop.NoLimit,
				MaxIterationCalls: loop.NoLimit}, Workers: loop.Workers{Agent: "script"},
		},
		Agents: map[string]runplan.Agent{"script": {Adapter: script.Adapter{Executable: os.Executable}, Command: []string{scenario}, Account: "script"}},
	}
	d.plan.Prompt.Budget = 100_000
	repo, err := git.Open(t.Context(), d.repo)
	must(t, err)
	clones, err := pool.Open(t.Context(), pool.Options{Root: d.repo, StateDir: state, Store: d.store, Retention: time.Hour, Warm: -1})
	must(t, err)
	d.o = autopilot.Options{
		Root: d.repo, StateDir: state, Repo: repo, Store: d.store, Pool: clones,
		Settings: schedule.Settings{MaxParallel: 1, ErrorThreshold: 5, Mode: schedule.Auto},
		Plan:     d.planOf, Base: func(ctx context.Context) (string, error) { return repo.Find(ctx, "refs/heads/main") },
		Queue:  d.queue(repo, state),
		Notify: func(n autopilot.Notice) { d.told = append(d.told, n) },
	}
	_, err = d.store.AddCases(t.Context(), []board.Draft{{Case: board.Case{Title: "Greet"}}}, board.Person, time.Now())
	must(t, err)
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (d *desk) planOf(ctx context.Context, task autopilot.Task) (runplan.Plan, *workspace.Checkout, error) {
	p := d.plan
	p.Name, p.Root, p.Project, p.Prompt.Procedure = task.Case.ID, task.Workspace.Dir, d.repo, task.Case.ID
	tree, err := d.o.Pool.Tree(ctx, task.Workspace, 0)
	return p, tree, err
}

func (d *desk) queue(repo *git.Repo, state string) func(context.Context, func(queue.Note)) (*merge.Queue, error) {
	return func(ctx context.Context, tell func(queue.Note)) (*merge.Queue, error) {
		self, err := process.Self()
		if err != nil {
			return nil, err
		}
		return merge.Open(ctx, merge.Options{
			Store: d.store, Repo: repo, Dir: filepath.Join(state, "queue"), Target: "main", Verifying: merge.Verifying{Environ: os.Environ()}, Local: true,
			Policy: queue.Policy{Batch: 1, Retries: 1, Timeout: time.Hour},
			Exe:    os.Args[0], Args: []string{reexec.Supervise}, Lease: time.Minute, Owner: storedrun.OwnerOf(self), Alive: storedrun.Alive, Notify: tell,
		})
	}
}

// work lets the autopilot work until nothing is left to do, and returns the
// task as it is then.
func (d *desk) work() board.Case {
	d.t.Helper()
	_, err := autopilot.Run(d.t.Context(), d.o)
	must(d.t, err)
	cases, err := d.store.Cases(d.t.Context(), store.CaseFilter{})
	must(d.t, err)
	return cases[0]
}

// alerts is what a person is told to act on.
func (d *desk) alerts() string {
	var all []string
	for _, n := range d.told {
		if n.Kind == autopilot.Alert {
			all = append(all, n.Text)
		}
	}
	return strings.Join(all, "\n")
}

// landed is the files of the target.
func (d *desk) landed() string {
	return strings.Join(strings.Fields(gittest.Git(d.t, d.repo, "ls-tree", "-r", "--name-only", "main")), " ")
}

const greets = `
  - - write: {path: greet.txt, content: "hello"}
    - say: <promise>COMPLETE</promise>
`

// Work that is verified lands, unless somebody has to look at it first: because
// the settings say so, or because everything is reviewed at the level paranoid.
func TestWhatLandsAndWhatWaitsForAReview(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*desk)
		status board.Status
		landed string
		alert  string // what a person is told at once
	}{
		{"normal", func(*desk) {}, board.Done, "greet.txt", ""},
		{"paranoid", func(d *desk) { d.plan.Safety = sandbox.Paranoid }, board.Review, "", "everything is reviewed at the level paranoid"},
		{"review", func(d *desk) { d.o.Settings.Review = true }, board.Review, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, greets)
			c.change(d)
			if got := d.work(); got.Status != c.status {
				t.Errorf("the task is %s, want %s", got.Status, c.status)
			}
			if got := d.landed(); got != c.landed {
				t.Errorf("%q landed, want %q", got, c.landed)
			}
			reviews, err := d.store.OpenReviews(t.Context(), 10)
			must(t, err)
			if waits := c.status == board.Review; waits != (len(reviews) == 1) {
				t.Errorf("the open reviews are %+v", reviews)
			}
			if got := d.alerts(); !strings.Contains(got, c.alert) || c.alert == "" && got != "" {
				t.Errorf("a person is told %q, want %q", got, c.alert)
			}
		})
	}
}

// A task whose agent asked goes on with what a person answered, in the same run,
// also when something else was asked of the run after that.
func TestAnAnswerIsFoundBehindLaterRows(t *testing.T) {
	t.Parallel()
	d := newDesk(t, `
  - - say: "<promise>PENDING: which language?</promise>"
  - - expect_prompt: in Danish
    - write: {path: greet.txt, content: "hej"}
    - say: <promise>COMPLETE</promise>
`)
	if got := d.work(); got.Status != board.Blocked {
		t.Fatalf("the task is %s, want it blocked by a question", got.Status)
	}
	asked, err := d.store.Latest(t.Context(), d.repo, "task-001")
	must(t, err)
	for _, c := range []store.Control{{Kind: store.ControlAnswer, Text: "in Danish"}, {Kind: store.ControlMessage, Text: "be friendly"}} {
		c.Run, c.At = asked.ID, time.Now()
		_, err := d.store.AddControl(t.Context(), c)
		must(t, err)
	}
	_, err = d.store.MoveCase(t.Context(), "task-001", board.Change{Action: board.Unblock, By: board.Person, At: time.Now()})
	must(t, err)
	if got := d.work(); got.Status != board.Done {
		t.Errorf("the task is %s, want done", got.Status)
	}
	if last, err := d.store.Latest(t.Context(), d.repo, "task-001"); err != nil || last.ID != asked.ID {
		t.Errorf("the task was done by run %s, want %s, which asked: %v", last.ID, asked.ID, err)
	}
}
