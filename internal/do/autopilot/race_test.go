package autopilot_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/decide/stats"
	"github.com/pawl-dev/pawl/internal/do/agent/script"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// course makes a board of one task for which agents race; each plays its own turns.
func course(t *testing.T, agents map[string]string, race ...string) *desk {
	t.Helper()
	d := newDesk(t, greets)
	d.o.Race = race
	begun := filepath.Join(filepath.Dir(d.repo), "begun")
	must(t, syscall.Mkfifo(begun, 0o600))
	for name, turns := range agents {
		turns = strings.ReplaceAll(turns, "BEGUN", begun)
		scenario := filepath.Join(filepath.Dir(d.repo), name+".yaml")
		must(t, os.WriteFile(scenario, []byte("turns:\n"+turns), 0o600))
		d.plan.Agents[name] = runplan.Agent{
			Adapter: script.Adapter{Executable: os.Executable}, Command: []string{scenario}, Account: name,
		}
	}
	d.o.Plan = func(ctx context.Context, task autopilot.Task) (runplan.Plan, *workspace.Checkout, error) {
		p := d.plan
		if _, ok := p.Agents[task.Agent]; !ok {
			return p, nil, errors.New("nobody knows " + task.Agent)
		}
		p.Name, p.Root, p.Project, p.Prompt.Procedure = task.RunName(), task.Workspace.Dir, d.repo, task.Case.ID
		if task.Agent != "" {
			p.Policy.Agent = task.Agent
		}
		tree, err := d.o.Pool.Tree(ctx, task.Workspace, 0)
		return p, tree, err
	}
	return d
}

// ready writes a file, and is complete. One that hangs works until it is stopped, and
// one that waits is not ready before another one hangs.
const (
	ready = "  - - write: {path: greet.txt, content: hello}\n    - say: <promise>COMPLETE</promise>\n"
	hangs = "  - - write: {path: half.txt, content: half}\n    - run: echo >BEGUN\n    - hang: true\n"
	waits = "  - - run: cat BEGUN\n    - write: {path: greet.txt, content: hello}\n    - say: <promise>COMPLETE</promise>\n"
)

// The first agent whose work is verified wins, whichever it is: its work lands once, the
// task has its run, and the others are stopped. What they did is kept.
func TestTheFirstVerifiedWorkWinsARace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, first, second, winner string
	}{
		{"the first racer", waits, hangs, "quick"},
		{"the other racer", hangs, waits, "slow"},
		{"one gives up", "  - - say: \"<promise>BLOCKED: no idea</promise>\"\n", ready, "slow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := course(t, map[string]string{"quick": c.first, "slow": c.second}, "quick", "slow")
			if got := d.work(); got.Status != board.Done {
				t.Fatalf("the task is %s, want done: %s", got.Status, got.Why)
			}
			d.won(c.winner)
			recoveries, err := d.o.Pool.Recoveries(t.Context(), "")
			must(t, err)
			if kept := len(recoveries) == 1; kept != (c.name != "one gives up") {
				t.Errorf("what the others did is kept as %+v", recoveries)
			}
			if left, err := d.o.Pool.List(t.Context()); err != nil || len(left) != 0 {
				t.Errorf("workspaces are left: %+v, %v", left, err)
			}
		})
	}
}

// Where the best is picked, an agent that is ready does not stop the other one, and the
// smaller change wins, but not one that changes nothing. Who loses lands nothing.
func TestTheBestWorkWinsARace(t *testing.T) {
	t.Parallel()
	const (
		large   = "  - - write: {path: greet.txt, content: \"hello\\nand\\nmore\\n\"}\n    - say: <promise>COMPLETE</promise>\n"
		nothing = "  - - say: <promise>COMPLETE</promise>\n"
	)
	for _, c := range []struct {
		name, soon, late, winner string
		tag                      bool // it is the task that says so
	}{
		{"the smaller change", large, waits, "late", false},
		{"by a tag", large, waits, "late", true},
		{"equal work", ready, waits, "soon", false},
		{"no change", nothing, waits, "late", false},
		{"one gives up", "  - - say: \"<promise>BLOCKED: no idea</promise>\"\n", waits, "late", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := course(t, map[string]string{"soon": c.soon, "late": c.late}, "soon", "late")
			d.o.PickBest = !c.tag
			if c.tag {
				_, err := d.store.EditCase(t.Context(), "task-001", board.Person, time.Now(), func(b *board.Case) error {
					b.Tags = []string{"pick:best"}
					return nil
				})
				must(t, err)
			}
			var told sync.WaitGroup
			notify, begun := d.o.Notify, filepath.Join(filepath.Dir(d.repo), "begun")
			d.o.Notify = func(n autopilot.Notice) {
				if notify(n); n.Kind == autopilot.RunNotice && n.Agent == "soon" && n.Engine.Kind == engine.RunEnded {
					told.Go(func() { _ = os.WriteFile(begun, nil, 0o600) }) // the other one may be ready now
				}
			}
			got := d.work()
			told.Wait()
			if got.Status != board.Done {
				t.Fatalf("the task is %s, want done: %s", got.Status, got.Why)
			}
			d.won(c.winner)
		})
	}
}

// An agent that cannot race is named, and the others race without it.
func TestARaceGoesOnWithoutAnAgentThatIsNotThere(t *testing.T) {
	t.Parallel()
	d := course(t, map[string]string{"slow": waits}, "gone", "slow")
	begun := filepath.Join(filepath.Dir(d.repo), "begun")
	var told sync.WaitGroup
	notify, warned, settled := d.o.Notify, "", ""
	d.o.Notify = func(n autopilot.Notice) {
		if n.Kind == autopilot.TaskEnded {
			settled = n.Settlement.Why
		}
		if notify(n); n.Kind == autopilot.Warning && warned == "" {
			warned = n.Text
			told.Go(func() { _ = os.WriteFile(begun, nil, 0o600) }) // the other one may be ready now
		}
	}
	if got := d.work(); got.Status != board.Done {
		t.Fatalf("the task is %s, want done: %s", got.Status, got.Why)
	}
	told.Wait()
	if want := "gone does not race: nobody knows gone"; warned != want {
		t.Errorf("a person is told %q, want %q", warned, want)
	}
	d.won("slow")
	if !strings.HasPrefix(settled, "slow ran alone: ") {
		t.Errorf("the task ended with %q", settled)
	}
}

// won checks that the race was won by one agent, landed once, and left nobody at work.
func (d *desk) won(agent string) {
	d.t.Helper()
	run, err := d.store.Latest(d.t.Context(), d.repo, "task-001")
	must(d.t, err)
	if run.Agent != agent || run.Status != "completed" {
		d.t.Errorf("the task's run is %s by %s, want it completed by %s", run.Status, run.Agent, agent)
	}
	if got := d.landed(); got != "greet.txt" {
		d.t.Errorf("%q landed", got)
	}
	runs, err := d.store.Runs(d.t.Context(), store.RunQuery{})
	must(d.t, err)
	for _, r := range runs {
		if r.Owner.PID != 0 {
			d.t.Errorf("run %s of %s has an owner", r.ID, r.Name)
		}
	}
	by, err := d.store.Tallies(d.t.Context(), stats.Agent, time.Time{}, time.Now(), time.UTC, 10)
	must(d.t, err)
	for _, tally := range by {
		if want := map[bool]int{true: 1}[tally.Key == agent]; tally.Landed != want {
			d.t.Errorf("%s landed %d, want %d", tally.Key, tally.Landed, want)
		}
	}
}

// Whatever comes between when a race is won: nobody works twice, and it lands once.
func TestAWonRaceIsNotRunAgain(t *testing.T) {
	t.Parallel()
	for name, inTheWay := range map[string]string{
		"before the swap is stored": "repo/.git/refs/pawl/base/task-001/of-base/x",
		"after it":                  "repo/.git/refs/pawl/tasks/task-001/x",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := course(t, map[string]string{"quick": hangs, "slow": waits}, "quick", "slow")
			place := filepath.Join(filepath.Dir(d.repo), inTheWay)
			must(t, os.MkdirAll(filepath.Dir(place), 0o700))
			must(t, os.WriteFile(place, nil, 0o600))
			notify := d.o.Notify
			d.o.Notify = func(n autopilot.Notice) {
				if notify(n); n.Kind == autopilot.TaskEnded && n.Settlement.Action == board.Stop {
					must(t, os.Remove(place))
				}
			}
			if got := d.work(); got.Status != board.Done {
				t.Fatalf("the task is %s, want done: %s\n%+v", got.Status, got.Why, d.told)
			}
			if _, err := os.Stat(place); err == nil {
				t.Error("nothing was in the way")
			}
			d.won("slow")
			runs, err := d.store.Runs(t.Context(), store.RunQuery{})
			must(t, err)
			for _, r := range runs {
				if len(runs) != 2 || r.Iteration != 1 {
					t.Errorf("run %s of %s has %d iterations; of %d runs", r.ID, r.Name, r.Iteration, len(runs))
				}
			}
		})
	}
}

// alone is another process that works on tasks, and asks a person about each.
type alone struct{}

func (alone) Work(context.Context, board.Case, string, string, map[string]string) (schedule.Outcome, queue.Entry, error) {
	return schedule.Outcome{Status: loop.Blocked, Why: "no idea"}, queue.Entry{}, nil
}
func (alone) Look(context.Context, string) error          { return nil }
func (alone) Works(context.Context, string) (bool, error) { return false, nil }
func (alone) Workers(context.Context) (int, error)        { return 1, nil }
func (alone) Kill(context.Context, string) error          { return nil }

// A task for which agents are to race elsewhere, where they do not, is worked on by one, and
// a person is told.
func TestATaskDoesNotRaceElsewhere(t *testing.T) {
	t.Parallel()
	d := newDesk(t, greets)
	d.o.Elsewhere = alone{}
	_, err := d.store.EditCase(t.Context(), "task-001", board.Person, time.Now(), func(c *board.Case) error {
		c.Tags = []string{"race:3"}
		return nil
	})
	must(t, err)
	if got := d.work(); got.Status != board.Blocked || got.Why != "no idea" {
		t.Errorf("the task is %s: %s", got.Status, got.Why)
	}
	want := "3 agents should race for task-001, but agents of an engine cannot: one works on it"
	for _, n := range d.told {
		if n.Kind == autopilot.Warning && n.Text == want {
			return
		}
	}
	t.Errorf("nobody is told %q: %+v", want, d.told)
}
