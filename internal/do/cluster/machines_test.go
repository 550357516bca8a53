package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/decide/signal"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/autopilot/overview"
	"github.com/pawl-dev/pawl/internal/do/cluster"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
	"github.com/pawl-dev/pawl/internal/test/gittest"
	"github.com/pawl-dev/pawl/internal/test/pgtest"
)

// team is several machines: each has a clone and a state folder of its own; they
// share a database, an engine and a remote. The first one has the autopilot.
type team struct {
	t        *testing.T
	dir      string
	remote   string
	machines []site
	store    *store.Store
	engine   *engineServer
	database *pgtest.Server
}

// newTeam makes a board of tasks whose agent is a shell script. A machine that is
// silent for a while is lost: on a loaded one that may be seconds.
func newTeam(t *testing.T, machines, tasks int, silent time.Duration, shell string) *team {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	m := &team{t: t, dir: dir, remote: filepath.Join(dir, "remote.git")}
	m.engine, m.database = startEngine(t, dir), pgtest.Start(t)
	address := m.database.New(t)
	gittest.Git(t, dir, "init", "-q", "--bare", m.remote)
	first := filepath.Join(dir, "m0")
	gittest.Git(t, dir, "clone", "-q", m.remote, first)
	gittest.Git(t, first, "commit", "-q", "--allow-empty", "-m", "first")
	gittest.Git(t, first, "push", "-q", "origin", "main")
	program := filepath.Join(dir, "agent.sh")
	must(t, os.WriteFile(program, []byte(strings.ReplaceAll(shell, "$DIR", dir)), 0o600))
	for i := range machines {
		s := site{
			Address: m.engine.at(), Repo: filepath.Join(dir, fmt.Sprint("m", i)), State: filepath.Join(dir, fmt.Sprint("state", i)),
			Store: address, Shell: program, Heartbeat: silent,
		}
		if i > 0 {
			gittest.Git(t, dir, "clone", "-q", m.remote, s.Repo)
		}
		m.machines = append(m.machines, s)
	}
	m.store, err = m.machines[0].open(t.Context())
	must(t, err)
	t.Cleanup(func() { must(t, m.store.Close()) })
	drafts := make([]board.Draft, tasks)
	for i := range drafts {
		drafts[i] = board.Draft{Case: board.Case{Title: fmt.Sprint("Task ", i)}}
	}
	_, err = m.store.AddCases(t.Context(), drafts, board.Person, time.Now())
	must(t, err)
	return m
}

// lost is how long a machine is silent that is lost, where a test waits for that. A
// worker that lives is never silent for so long, however loaded the machine is.
const lost = 30 * time.Second

// pilot runs the autopilot of a machine; what it returns waits for its end.
func (m *team) pilot(n int) func() autopilot.Result {
	m.t.Helper()
	s := m.machines[n]
	o, err := s.options(m.t.Context())
	must(m.t, err)
	type end struct {
		res autopilot.Result
		err error
	}
	ended := make(chan end, 1)
	go func() {
		res, err := s.pilot(context.WithoutCancel(m.t.Context()), o)
		ended <- end{res, errors.Join(err, o.Store.Close())}
	}()
	return func() autopilot.Result {
		e := <-ended
		must(m.t, e.err)
		return e.res
	}
}

// kill ends a process at once.
func (m *team) kill(c *exec.Cmd) {
	m.t.Helper()
	must(m.t, c.Process.Kill())
	_ = c.Wait()
}

// pipes makes what an agent waits for.
func (m *team) pipes(names ...string) {
	m.t.Helper()
	for _, name := range names {
		must(m.t, syscall.Mkfifo(filepath.Join(m.dir, name), 0o600))
	}
}

// drain has the only worker begin nothing more.
func (m *team) drain(worker *exec.Cmd) {
	m.t.Helper()
	must(m.t, worker.Process.Signal(syscall.SIGTERM))
	for drains := false; !drains; {
		list, err := m.store.Workers(m.t.Context())
		must(m.t, err)
		drains = len(list) == 1 && list[0].Drains
	}
}

// has fails the test unless files are on the remote's branch.
func (m *team) has(files ...string) {
	m.t.Helper()
	for _, name := range files {
		gittest.Git(m.t, m.remote, "show", "main:"+name)
	}
}

// starts fails the test if the agent was started another number of times.
func (m *team) starts(want int) {
	m.t.Helper()
	data, err := os.ReadFile(filepath.Join(m.dir, "starts"))
	if n := strings.Count(string(data), "\n"); err != nil || n != want {
		m.t.Errorf("the agent was started %d times, not %d (%v)", n, want, err)
	}
}

// lose takes a machine away with all that it has.
func (m *team) lose(n int, worker *exec.Cmd, task string) {
	m.t.Helper()
	m.kill(worker)
	run, err := m.store.Latest(m.t.Context(), "", task)
	must(m.t, err)
	_, err = process.Sweep(m.t.Context(), supervisor.Mark(run.ID), 0)
	must(m.t, err)
	for _, dir := range []string{m.machines[n].State, m.machines[n].Repo} {
		must(m.t, os.RemoveAll(dir))
	}
}

// landed fails the test unless each task landed once, and nothing is left on the remote.
func (m *team) landed(tasks int) {
	m.t.Helper()
	m.landedOnce(tasks)
	if left := gittest.Git(m.t, m.remote, "for-each-ref", "refs/pawl/"); left != "" {
		m.t.Errorf("the remote has:\n%s", left)
	}
}

// landedOnce fails the test unless each task landed once.
func (m *team) landedOnce(tasks int) {
	m.t.Helper()
	log := gittest.Git(m.t, m.remote, "log", "--first-parent", "--format=%(trailers:key=Pawl-Task,valueonly)", "main")
	for i := range tasks {
		id := fmt.Sprintf("task-%03d", i+1)
		if n := strings.Count(log, id); n != 1 {
			m.t.Errorf("%s landed %d times", id, n)
			m.tell(id)
		}
		if c, err := m.store.Case(m.t.Context(), id); err != nil || c.Status != board.Done {
			m.t.Errorf("%s is %s: %s (%v)", id, c.Status, c.Why, err)
			m.tell(id)
		}
	}
	if m.t.Failed() {
		row, _, err := m.store.Queue(m.t.Context(), "refs/heads/main")
		m.t.Logf("the queue: %+v, not pushed: %+v (%v)", row.State, row.State.Unpushed, err)
	}
}

// tell says what became of a task.
func (m *team) tell(id string) {
	m.t.Helper()
	history, err := m.store.CaseHistory(m.t.Context(), id)
	m.t.Logf("its history: %+v (%v)", history, err)
	runs, err := m.store.Runs(m.t.Context(), store.RunQuery{Name: id})
	for _, r := range runs {
		list, err := m.store.LastIterations(m.t.Context(), r.ID, 100)
		m.t.Logf("its run: %+v (%v)", r, err)
		for _, i := range list {
			m.t.Logf("iteration %d: %s, pushed %+v", i.Number, i.Outcome, i.Pushed)
		}
	}
	must(m.t, err)
}

// twice is an agent that needs two iterations, of which the second goes on with what
// the first left. The first time that it begins the second, it waits for ever.
const twice = `
echo x >> $DIR/starts
[ -f one.txt ] || { echo one > one.txt; echo so far so good; exit; }
if mkdir $DIR/waited 2> $DIR/null; then echo up > $DIR/up; read x < $DIR/go; fi
echo two > two.txt
echo "<promise>COMPLETE</promise>"
`

// loseInTheSecond is a team whose machine 1 is lost for good while it works at the second
// iteration of the only task. An autopilot on machine 0 goes on.
func loseInTheSecond(t *testing.T) (m *team, ended func() autopilot.Result) {
	t.Helper()
	m = newTeam(t, 3, 1, lost, twice)
	m.pipes("up", "go")
	first := m.machines[1].start(t)
	ended = m.pilot(0)
	_, err := os.ReadFile(filepath.Join(m.dir, "up"))
	must(t, err)
	m.lose(1, first, "task-001")
	return m, ended
}

// A machine is lost for good while it works. Another one goes on with what the last
// iteration left, and the task lands once, by an autopilot on a third machine.
func TestAMachineIsLost(t *testing.T) {
	t.Parallel()
	m, ended := loseInTheSecond(t)
	m.machines[2].start(t)
	if res := ended(); res.Tally.Landed != 1 {
		t.Errorf("it ended with %+v", res)
	}
	m.landed(1)
	m.has("one.txt", "two.txt")
	m.starts(3)
}

// A machine is lost, and what it left on the remote is gone, too. The iteration is made again,
// and the run says why.
func TestAMachineIsLostWithItsWork(t *testing.T) {
	t.Parallel()
	m, ended := loseInTheSecond(t)
	for ref := range strings.FieldsSeq(gittest.Git(t, m.remote, "for-each-ref", "--format=%(refname)", "refs/pawl/work")) {
		gittest.Git(t, m.remote, "update-ref", "-d", ref)
	}
	m.machines[2].start(t)
	if res := ended(); res.Tally.Landed != 1 {
		t.Errorf("it ended with %+v", res)
	}
	m.landed(1)
	m.has("one.txt", "two.txt")
	m.starts(4)
	run, err := m.store.Latest(t.Context(), "", "task-001")
	must(t, err)
	var warned []string
	for e, err := range journal.Read(t.Context(), m.store, run.ID, 0) {
		must(t, err)
		if e.Kind == journal.Warning {
			warned = append(warned, string(e.Data))
		}
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "is not at origin, so the work starts over") {
		t.Errorf("the run warns of %q", warned)
	}
}

// Another board uses the same remote, with tasks of the same numbers. What it sent stays, and
// what this board sent of a task goes when that has landed.
func TestTwoBoardsHaveOneRemote(t *testing.T) {
	t.Parallel()
	m := newTeam(t, 2, 1, time.Minute, `
echo one > one.txt
echo "<promise>COMPLETE</promise>"
`)
	theirs := strings.TrimSpace(gittest.Git(t, m.machines[1].Repo, "commit-tree", "-m", "theirs", "HEAD^{tree}"))
	others := []string{git.WorkRef("task-001", theirs), git.WorkRef("task-007", theirs)}
	for _, ref := range others {
		gittest.Git(t, m.machines[1].Repo, "push", "-q", "origin", theirs+":"+ref)
	}
	m.machines[1].start(t)
	if res := m.pilot(0)(); res.Tally.Landed != 1 {
		t.Errorf("it ended with %+v", res)
	}
	left := strings.Fields(gittest.Git(t, m.remote, "for-each-ref", "--format=%(refname)", "refs/pawl/work"))
	if !slices.Equal(left, others) {
		t.Errorf("the remote has %v", left)
	}
}

// An iteration that changed nothing is not pushed: the remote has what it left. Its record
// says so, since another machine would begin there.
func TestWhatDidNotChangeIsNotPushed(t *testing.T) {
	t.Parallel()
	m := newTeam(t, 2, 1, time.Minute, `
case $PAWL_ITERATION in
1) echo one > one.txt ;;
4) echo two > two.txt; echo "<promise>COMPLETE</promise>" ;;
esac
`)
	m.countPushes()
	m.machines[1].start(t)
	if res := m.pilot(0)(); res.Tally.Landed != 1 {
		t.Errorf("it ended with %+v", res)
	}
	m.landed(1)
	run, err := m.store.Latest(t.Context(), "", "task-001")
	must(t, err)
	records, err := m.store.LastIterations(t.Context(), run.ID, 10)
	must(t, err)
	commits := map[string]bool{}
	for _, r := range records {
		if r.Pushed == nil {
			t.Fatalf("iteration %d was not pushed", r.Number)
		}
		commits[r.Pushed.Commit] = true
	}
	if len(records) != 4 || len(commits) != 2 {
		t.Errorf("%d iterations left %d commits", len(records), len(commits))
	}
	text, err := os.ReadFile(filepath.Join(m.dir, "pushes"))
	must(t, err)
	got := 0
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); strings.HasPrefix(f[2], "refs/pawl/work/") && strings.Trim(f[1], "0") != "" {
			got++
		}
	}
	if got != 3 { // the commit that the task begins at, too
		t.Errorf("the remote got\n%s", text)
	}
}

// countPushes notes in a file each ref that the remote gets.
func (m *team) countPushes() {
	m.t.Helper()
	hook := fmt.Sprintf("#!/bin/sh\ncat >> %s/pushes\n", m.dir)
	must(m.t, os.WriteFile(filepath.Join(m.remote, "hooks", "post-receive"), []byte(hook), 0o700)) //nolint:gosec // git runs it
}

// The autopilot's machine is lost. One on another machine takes over what is worked,
// or was done meanwhile, and lands it; the agents do not notice.
func TestTheAutopilotIsLost(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]bool{"it is worked": false, "it was done meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newTeam(t, 3, 1, time.Minute, `
echo x >> $DIR/starts
echo up > $DIR/up
read x < $DIR/go
echo one > one.txt
echo "<promise>COMPLETE</promise>"
`)
			m.pipes("up", "go")
			m.machines[1].start(t)
			first := m.machines[0]
			first.Pilot = true
			pilot := first.start(t)
			_, err := os.ReadFile(filepath.Join(m.dir, "up"))
			must(t, err)
			m.kill(pilot)
			for _, dir := range []string{first.State, first.Repo} {
				must(t, os.RemoveAll(dir))
			}
			letGo := func() { must(t, os.WriteFile(filepath.Join(m.dir, "go"), []byte("on\n"), 0o600)) }
			if meanwhile {
				letGo()
				m.done("task-001")
			}
			ended := m.pilot(2)
			if !meanwhile {
				letGo()
			}
			if res := ended(); res.Tally.Landed != 1 {
				t.Errorf("it ended with %+v", res)
			}
			m.landed(1)
			m.starts(1)
		})
	}
}

// done waits until a task that is worked is done.
func (m *team) done(task string) {
	m.t.Helper()
	engine, leave, err := cluster.Program{}.Join(m.t.Context(), m.machines[0].at(), "repo", m.store, nil)
	must(m.t, err)
	defer leave()
	_, _, err = engine.Work(m.t.Context(), board.Case{ID: task}, "", "", nil)
	must(m.t, err)
}

// staying runs an autopilot of a machine that stays, and tells which tasks land.
func (m *team) staying(n int, landed func(task string)) (end func()) {
	m.t.Helper()
	s := m.machines[n]
	o, err := s.options(m.t.Context())
	must(m.t, err)
	stops := make(chan loop.Cause, 1)
	o.Stops, o.Settings.Keep = stops, true
	o.Notify = func(n autopilot.Notice) {
		if n.Kind == autopilot.Landed {
			landed(n.Case)
		}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.pilot(context.WithoutCancel(m.t.Context()), o)
		ended <- errors.Join(err, o.Store.Close())
	}()
	return func() {
		stops <- loop.CauseStop
		must(m.t, <-ended)
	}
}

// A task that needs a label goes to the worker that has it. Until one is there the task
// keeps no slot, and what others can do is done.
func TestLabels(t *testing.T) {
	t.Parallel()
	m := newTeam(t, 3, 2, time.Minute, `
pwd >> $DIR/where
echo done > "done.$(date +%N)"
echo "<promise>COMPLETE</promise>"
`)
	_, err := m.store.EditCase(t.Context(), "task-001", board.Person, time.Now(), func(c *board.Case) error {
		c.Tags = []string{"needs:GPU", "needs:arm"}
		return nil
	})
	must(t, err)
	m.machines[1].Offer.Labels = []string{"arm"}
	m.machines[2].Offer.Labels = []string{"arm", "big", "gpu"}
	landed := make(chan string, 2)
	end := m.staying(0, func(task string) { landed <- task })
	m.machines[1].start(t)
	if task := <-landed; task != "task-002" {
		t.Fatalf("%s landed first", task)
	}
	if list, err := m.store.Unserved(t.Context()); err != nil || len(list) != 1 || list[0].ID != "task-001" {
		t.Errorf("no worker is there for %v (%v)", list, err)
	}
	m.machines[2].start(t)
	if task := <-landed; task != "task-001" {
		t.Fatalf("%s landed next", task)
	}
	end()
	where, err := os.ReadFile(filepath.Join(m.dir, "where"))
	must(t, err)
	w := strings.Fields(string(where))
	if len(w) != 2 || !strings.Contains(w[0], "state1") || !strings.Contains(w[1], "state2") {
		t.Errorf("they were worked in %q", w)
	}
}

// A machine has lost its agent. The task that it took goes to another one, as if nothing was.
func TestAMachineHasNoAgent(t *testing.T) {
	t.Parallel()
	m := newTeam(t, 3, 1, time.Minute, `
echo x >> $DIR/starts
echo one > one.txt
echo "<promise>COMPLETE</promise>"
`)
	m.pipes("tried")
	m.machines[1].Lacks = filepath.Join(m.dir, "tried")
	m.machines[1].start(t)
	tried, err := os.OpenFile(m.machines[1].Lacks, os.O_RDWR, 0) // stays open: it may try more often
	must(t, err)
	defer func() { _ = tried.Close() }()
	ended := m.pilot(0)
	_, err = tried.Read(make([]byte, 1))
	must(t, err)
	m.machines[2].start(t)
	if tally := ended().Tally; tally.Landed != 1 || tally.Completed != 1 || tally.Failed+tally.Blocked+tally.Stopped != 0 {
		t.Errorf("it ended with %+v", tally)
	}
	m.landed(1)
	m.starts(1)
}

// No machine has the agent of one task. It alone waits, which is shown with the reason; the others are worked as
// if it was not there.
func TestNoMachineHasTheAgent(t *testing.T) {
	t.Parallel()
	m := newTeam(t, 3, 4, time.Minute, `
date +%N > "done.$(date +%N)"
echo "<promise>COMPLETE</promise>"
`)
	landed := make(chan string, 4)
	for i := range m.machines {
		m.machines[i].Absent = "task-001"
	}
	m.machines[1].start(t)
	m.machines[2].start(t)
	end := m.staying(0, func(task string) { landed <- task })
	for range 3 {
		if task := <-landed; task == "task-001" {
			t.Fatal("it was worked")
		}
	}
	idle, err := overview.IdleOf(t.Context(), m.store)
	for err == nil && len(idle.KeptOut) == 0 { // it is ordered just now
		idle, err = overview.IdleOf(t.Context(), m.store)
	}
	must(t, err)
	line := strings.Join(idle.LinesOf("task-001"), "; ")
	if idle.Held != "" || !strings.HasPrefix(line, "task-001 waits for a machine that has what it needs: ") ||
		!strings.Contains(line, "absent") {
		t.Errorf("nothing is started since %q, and %q", idle.Held, line)
	}
	end()
	if c, err := m.store.Case(t.Context(), "task-001"); err != nil || c.Status != board.Pending {
		t.Errorf("it is %s: %s (%v)", c.Status, c.Why, err)
	}
}

// A worker that drains lets its iteration end, and hands the task to another one.
func TestAWorkerDrains(t *testing.T) {
	t.Parallel()
	m := newTeam(t, 3, 1, time.Minute, `
echo x >> $DIR/starts
[ -f one.txt ] || { echo up > $DIR/up; read x < $DIR/go; echo one > one.txt; echo so far so good; exit; }
echo two > two.txt
echo "<promise>COMPLETE</promise>"
`)
	m.pipes("up", "go")
	m.machines[1].Offer.Drain = time.Hour
	first := m.machines[1].start(t)
	ended := m.pilot(0)
	_, err := os.ReadFile(filepath.Join(m.dir, "up"))
	must(t, err)
	m.drain(first)
	m.machines[2].start(t)
	must(t, os.WriteFile(filepath.Join(m.dir, "go"), []byte("on\n"), 0o600))
	must(t, first.Wait())
	if res := ended(); res.Tally.Landed != 1 {
		t.Errorf("it ended with %+v", res)
	}
	m.landed(1)
	m.starts(2)
}

// A machine that has just taken a task over loses its worker. The one that is started
// goes on with the agent, in the workspace that it works in.
func TestAWorkerThatTookOverIsGone(t *testing.T) {
	t.Parallel()
	m := newTeam(t, 3, 1, time.Minute, `
echo x >> $DIR/starts
echo up > $DIR/up
read x < $DIR/go
[ -f one.txt ] || { echo one > one.txt; echo so far so good; exit; }
echo two > two.txt
echo "<promise>COMPLETE</promise>"
`)
	m.pipes("up", "go")
	m.machines[1].Offer.Drain = time.Hour
	first := m.machines[1].start(t)
	ended := m.pilot(0)
	next := func() {
		_, err := os.ReadFile(filepath.Join(m.dir, "up"))
		must(t, err)
	}
	goOn := func() { must(t, os.WriteFile(filepath.Join(m.dir, "go"), []byte("on\n"), 0o600)) }
	next()
	m.drain(first)
	second := m.machines[2].start(t)
	goOn()
	must(t, first.Wait())
	next()
	m.kill(second)
	m.machines[2].start(t)
	goOn()
	if res := ended(); res.Tally.Landed != 1 {
		t.Errorf("it ended with %+v", res)
	}
	m.landed(1)
	m.has("one.txt", "two.txt")
	m.starts(2)
}

// A worker is ended at once with its agents, by nobody but its own machine.
func TestAWorkerIsKilled(t *testing.T) {
	t.Parallel()
	m := newTeam(t, 3, 1, lost, `
echo x >> $DIR/starts
if mkdir $DIR/waited; then echo up > $DIR/up; read x < $DIR/go; fi
echo one > one.txt
echo "<promise>COMPLETE</promise>"
`)
	m.pipes("up", "go")
	m.machines[1].start(t)
	ended := m.pilot(0)
	_, err := os.ReadFile(filepath.Join(m.dir, "up"))
	must(t, err)
	worked, tasks, err := cluster.Program{}.Kill(t.Context(), m.machines[1].State)
	if !worked || len(tasks) != 1 || err != nil {
		t.Errorf("it ended a worker: %v, with %v: %v", worked, tasks, err)
	}
	run, err := m.store.Latest(t.Context(), "", "task-001")
	must(t, err)
	if left, err := process.Sweep(t.Context(), supervisor.Mark(run.ID), 0); err != nil || left != (process.Ended{}) {
		t.Errorf("of the agent it left %+v (%v)", left, err)
	}
	m.machines[2].start(t)
	if res := ended(); res.Tally.Landed != 1 {
		t.Errorf("it ended with %+v", res)
	}
	m.landed(1)
	m.starts(2)
}

// An autopilot that was left to whoever can outlives the processes that drive it, with
// what it has counted and what the person asked for. What a person committed in a clone
// of theirs is in no way, and does not get to the remote.
func TestAnAutopilotIsHandedOn(t *testing.T) {
	t.Parallel()
	m := newTeam(t, 3, 2, time.Minute, `
echo x >> $DIR/starts
echo $MAX_COST >> $DIR/limits
if mkdir $DIR/waited; then echo up > $DIR/up; read x < $DIR/go; fi
date +%N > "done.$(date +%N)"
echo "<promise>COMPLETE</promise>"
`)
	m.pipes("up", "go")
	o, err := m.machines[0].options(t.Context())
	must(t, err)
	o.Asked = map[string]string{"loop.max_cost": "2.50"}
	must(t, autopilot.HandOver(t.Context(), o))
	if err := autopilot.HandOver(t.Context(), o); !errors.Is(err, store.ErrRunning) {
		t.Errorf("two are on: %v", err)
	}
	must(t, o.Store.Close())
	for i, s := range m.machines {
		gittest.Git(t, s.Repo, "commit", "-q", "--allow-empty", "-m", fmt.Sprint("own of ", i))
	}
	m.machines[1].Stands, m.machines[1].Pilot = true, true
	first := m.machines[1].start(t)
	m.driver(first.Process.Pid)
	m.machines[2].Stands = true
	second := m.machines[2].start(t)
	_, err = os.ReadFile(filepath.Join(m.dir, "up"))
	must(t, err)
	m.kill(first)
	m.driver(second.Process.Pid)
	must(t, os.WriteFile(filepath.Join(m.dir, "go"), []byte("on\n"), 0o600))
	a := m.driver(0)
	var s schedule.State
	must(t, json.Unmarshal(a.State, &s))
	if a.EndedAt.IsZero() || a.Turn != 3 || s.Tally.Started != 2 || s.Tally.Completed != 2 || s.Tally.Landed != 2 {
		t.Errorf("it ended in turn %d with %+v: %s", a.Turn, s.Tally, a.Why)
	}
	m.landed(2)
	if log := gittest.Git(t, m.remote, "log", "--format=%s", "main"); strings.Contains(log, "own of") {
		t.Errorf("the remote has\n%s", log)
	}
	m.starts(2)
	if limits, err := os.ReadFile(filepath.Join(m.dir, "limits")); err != nil || string(limits) != "2.50\n2.50\n" {
		t.Errorf("the tasks were worked with the limits %q (%v)", limits, err)
	}
}

// driver waits until a process drives the autopilot; 0 until it has ended.
func (m *team) driver(pid int) store.Autopilot {
	m.t.Helper()
	for {
		a, _, err := m.store.Autopilot(m.t.Context())
		must(m.t, err)
		if a.Owner.PID == pid && (pid != 0 || !a.EndedAt.IsZero()) {
			return a
		}
	}
}

// A crash of the database took the last steps of a task, whose workflow has ended: the
// worker that worked it is its owner again. The next autopilot has it worked anew.
func TestTheDatabaseLostTheEnd(t *testing.T) {
	t.Parallel()
	m := newTeam(t, 2, 1, time.Minute, `
echo x >> $DIR/starts
echo one > one.txt
echo "<promise>COMPLETE</promise>"
`)
	worker := m.machines[1].start(t)
	for there := false; !there; {
		list, err := m.store.Workers(t.Context())
		must(t, err)
		there = len(list) == 1
	}
	owner, err := process.Identify(worker.Process.Pid)
	must(t, err)
	now := time.Now()
	run := storedrun.NewID() // who takes a run over ends all of its name, in a test beside this one too
	_, err = m.store.MoveCase(t.Context(), "task-001", board.Change{Action: board.Start, By: board.Pawl, At: now})
	must(t, err)
	s, _ := loop.Step(loop.State{}, loop.Event{Kind: loop.Started, At: now, Policy: &loop.Policy{Kind: loop.Task, MaxIterations: 3, Workers: loop.Workers{Agent: "script"}}})
	state, err := json.Marshal(s)
	must(t, err)
	e, err := journal.New(run, 1, now, journal.RunCreated, struct{}{})
	must(t, err)
	must(t, m.store.Create(t.Context(), store.Run{
		ID: run, Kind: "task", Name: "task-001", Status: string(s.Status), State: state, Setup: json.RawMessage(`{}`),
		Owner: storedrun.OwnerOf(owner), StartedAt: now, UpdatedAt: now,
	}, e, func(store.Owner) bool { return false }))
	if res := m.pilot(0)(); res.Tally.Landed != 1 {
		t.Errorf("it ended with %+v", res)
	}
	m.landed(1)
}

// decided is a kernel that has decided for a run already.
type decided struct{ loop.Decision }

func (d decided) Pending() *loop.Decision { return &d.Decision }

func (d decided) Step(context.Context, string, loop.State, loop.Event) (loop.State, loop.Command, error) {
	return d.State, d.Whole(), nil
}

// A run was decided to be complete, and the machine that has its work is gone before it
// sent that. What is left is not taken for the work: the task is worked again.
func TestCompleteWorkThatDidNotTravel(t *testing.T) {
	t.Parallel()
	m := newTeam(t, 2, 1, time.Minute, `
echo one > one.txt
echo "<promise>COMPLETE</promise>"
`)
	now := time.Now()
	run := storedrun.NewID() // who takes a run over ends all of its name, in a test beside this one too
	_, err := m.store.MoveCase(t.Context(), "task-001", board.Change{Action: board.Start, By: board.Pawl, At: now})
	must(t, err)
	s, _ := loop.Step(loop.State{}, loop.Event{Kind: loop.Started, At: now, Policy: &loop.Policy{
		Kind: loop.Task, MaxIterations: 3, FailureThreshold: 3, Costs: loop.Costs{MaxCost: loop.NoLimit, MaxIterationCost: loop.NoLimit,
			MaxIterationCalls: loop.NoLimit}, Workers: loop.Workers{Agent: "script"},
	}})
	state, err := json.Marshal(s)
	must(t, err)
	e, err := journal.New(run, 1, now, journal.RunCreated, struct{}{})
	must(t, err)
	self, err := process.Self()
	must(t, err)
	dead := storedrun.OwnerOf(self)
	dead.Start = "1"
	must(t, m.store.Create(t.Context(), store.Run{
		ID: run, Kind: "task", Name: "task-001", Status: string(s.Status), State: state, Setup: json.RawMessage(`{}`),
		Owner: dead, StartedAt: now, UpdatedAt: now,
	}, e, func(store.Owner) bool { return false }))
	o, err := m.machines[1].options(t.Context())
	must(t, err)
	o.Worker = "second"
	d := loop.Decide(s, loop.Event{Kind: loop.IterationEnded, At: now, For: s.Command.Seq, Record: &loop.Record{
		Number: 1, Attempt: 1, Verified: true, Signal: signal.Signal{Kind: signal.Complete}, Pushed: &loop.Pushed{Worker: "first"},
	}})
	if d.State.Status != loop.Completed {
		t.Fatalf("the run is %s: %s", d.State.Status, d.State.Why)
	}
	kernel := decided{d}
	outcome, entry := autopilot.Work(t.Context(), o, "task-001", run, "", kernel)
	if !outcome.NotStarted || !outcome.Machine || outcome.Empty || entry.Commit != "" {
		t.Errorf("it came to %+v, with commit %q", outcome, entry.Commit)
	}
	must(t, o.Store.Close())
	m.machines[1].start(t)
	if res := m.pilot(0)(); res.Tally.Landed != 1 {
		t.Errorf("it ended with %+v", res)
	}
	m.landed(1)
}

// A task whose landing was taken back begins anew, on whatever machine: what its last run sent has landed, and the
// target is without it.
func TestWhatWasTakenBackIsDoneAgain(t *testing.T) {
	t.Parallel()
	m := newTeam(t, 2, 1, time.Minute, `
echo one > one.txt
echo "<promise>COMPLETE</promise>"
`)
	m.machines[1].start(t)
	m.pilot(0)()
	o, err := m.machines[1].options(t.Context())
	must(t, err)
	defer func() { must(t, o.Store.Close()) }()
	q, err := o.Queue(t.Context(), func(queue.Note) {})
	must(t, err)
	ask, err := q.OfferRevert(t.Context(), "task-001", "Task 0", "wrong")
	must(t, err)
	_, err = m.store.AskQueue(t.Context(), ask)
	must(t, err)
	for range 2 { // it is taken back, and with the next, done again
		m.pilot(0)()
	}
	m.has("one.txt")
	if c, err := m.store.Case(t.Context(), "task-001"); err != nil || c.Status != board.Done {
		t.Errorf("it is %s: %s (%v)", c.Status, c.Why, err)
	}
}
