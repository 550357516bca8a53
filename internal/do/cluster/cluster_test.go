package cluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/flow"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/command"
	"github.com/pawl-dev/pawl/internal/do/agent/script"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/boxnet"
	"github.com/pawl-dev/pawl/internal/do/cluster"
	"github.com/pawl-dev/pawl/internal/do/egress"
	"github.com/pawl-dev/pawl/internal/do/engine"
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
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// environ is the environment before a test changes it: the cache is in it.
var environ = os.Environ()

const workCommand = "__work" // makes the test binary a worker

// The test binary is a worker, its supervisor and its agent.
func TestMain(m *testing.M) {
	if code, ok := reexec.Finish(supervisor.Rest{Ways: boxnet.Ways{Proxy: egress.Out(os.Getenv), Stack: netstack.Serve}}); ok {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == workCommand {
		os.Exit(playWorker())
	}
	os.Exit(gittest.Run(m))
}

// site is a repository with a board, on an engine of its own.
type site struct {
	Address, Repo, State, Scenario string
	// Of several machines: the database, and the program that is the agent.
	Store, Shell     string
	Heartbeat, Lease time.Duration
	Host             string // that the process believes to be on; "" is this one
	Offer            autopilot.Offer
	Pilot            bool   // the process is the autopilot, and no worker
	Lacks            string // the machine has no agent: the pipe that is told so; "" it has
	Absent           string // the task whose agent the machine does not have; "" is none
	Stands           bool   // the process goes on with the autopilot that is on
	Files            string // the folder with what runs print, for all machines; "" is none
	Told             string // the file that gets what the worker tells a person; "" is none
}

func (s site) offer() autopilot.Offer {
	s.Offer.Slots = max(s.Offer.Slots, 1)
	return s.Offer
}

func (s site) at() autopilot.EngineAt { return autopilot.EngineAt{Address: s.Address} }

// boardName is what the board of several machines is called.
const boardName = "acme/shop"

// playWorker is a worker in a process of its own.
func playWorker() int {
	var s site
	if err := json.NewDecoder(os.Stdin).Decode(&s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if s.Host != "" {
		if err := rename(s.Host); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
	}
	if err := s.work(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (s site) work(ctx context.Context) error {
	o, err := s.options(ctx)
	for s.Host != "" && errors.Is(err, store.ErrAway) && ctx.Err() == nil { // as systemd starts it again
		<-time.After(100 * time.Millisecond)
		o, err = s.options(ctx)
	}
	if err != nil {
		return err
	}
	if s.Stands {
		log := slog.New(slog.NewTextHandler(os.Stderr, nil))
		defer autopilot.StandBy(ctx, o.Store, log, s.another)()
	}
	if s.Pilot {
		if s.Stands {
			<-ctx.Done()
			return nil
		}
		_, err := s.pilot(ctx, o)
		return err
	}
	return cluster.Program{Heartbeat: s.Heartbeat}.Work(ctx, s.at(), "repo", s.offer(), o)
}

// another is what an autopilot that is gone on with works with.
func (s site) another(ctx context.Context) (autopilot.Options, func(), error) {
	o, err := s.options(ctx)
	if err != nil {
		return o, nil, err
	}
	var leave func()
	o.Elsewhere, leave, err = (cluster.Program{Heartbeat: s.Heartbeat}).Join(ctx, s.at(), "repo", o.Store, nil)
	if err != nil {
		return o, nil, errors.Join(err, o.Store.Close())
	}
	return o, func() { leave(); _ = o.Store.Close() }, nil
}

// pilot works the board as its autopilot.
func (s site) pilot(ctx context.Context, o autopilot.Options) (res autopilot.Result, err error) {
	var leave func()
	if o.Elsewhere, leave, err = (cluster.Program{Heartbeat: s.Heartbeat}).Join(ctx, s.at(), "repo", o.Store, nil); err != nil {
		return res, err
	}
	defer leave()
	return autopilot.Run(ctx, o)
}

// options are those of an autopilot of the site.
func (s site) options(ctx context.Context) (o autopilot.Options, err error) {
	o = autopilot.Options{Root: s.Repo, StateDir: s.State, Settings: schedule.Settings{MaxParallel: 1, ErrorThreshold: 5, Mode: schedule.Auto}}
	if o.Store, err = s.open(ctx); err != nil {
		return o, err
	}
	if s.Told != "" {
		o.Notify = func(n autopilot.Notice) {
			if n.Kind == autopilot.Warning {
				_ = files.AppendBelow(filepath.Dir(s.Told), filepath.Base(s.Told), []byte(n.Text+"\n"), 1<<20)
			}
		}
	}
	if s.Store != "" {
		o.Remote = "origin"
	}
	if o.Repo, err = git.Open(ctx, s.Repo); err != nil {
		return o, err
	}
	o.Pool, err = pool.Open(ctx, pool.Options{Root: s.Repo, StateDir: s.State, Store: o.Store, Retention: time.Hour, Warm: -1})
	o.Base = func(ctx context.Context) (string, error) { return o.Repo.Find(ctx, "refs/heads/main") }
	o.Plan = func(ctx context.Context, task autopilot.Task) (runplan.Plan, *workspace.Checkout, error) {
		p := runplan.Plan{
			Kind: "task", Name: task.Case.ID, Root: task.Workspace.Dir, Project: s.Repo, Safety: sandbox.Permissive, Bounds: runplan.Bounds{Lease: time.Millisecond},
			Environ: append(os.Environ(), "MAX_COST="+task.Asked["loop.max_cost"]), Exe: os.Args[0], Args: []string{reexec.Supervise},
			Policy: loop.Policy{
				Kind: loop.Task, MaxIterations: 9, FailureThreshold: 9, MaxWaits: 1, Costs: loop.Costs{MaxCost: loop.NoLimit, MaxIterationCost: loop.NoLimit,
					MaxIterationCalls: loop.NoLimit}, Workers: loop.Workers{Agent: "script"},
			},
			Agents: map[string]runplan.Agent{"script": {
				Adapter: script.Adapter{Executable: os.Executable}, Command: []string{s.Scenario}, Account: "script",
			}},
		}
		if s.Shell != "" {
			p.Agents["script"] = runplan.Agent{Adapter: command.New("script", []string{"sh", s.Shell}, "text", agent.Traits{}), Account: "script"}
		}
		p.Prompt.Procedure, p.Prompt.Budget = task.Case.ID, 100_000
		if task.Case.ID == s.Absent {
			return p, nil, fault.Of(fault.Refused, fmt.Errorf("agent %q %w", "absent", engine.ErrNoProgram))
		}
		if s.Lacks != "" {
			return p, nil, errors.Join(engine.ErrNoProgram, os.WriteFile(s.Lacks, []byte("x\n"), 0o600))
		}
		tree, err := o.Pool.Tree(ctx, task.Workspace, 0)
		return p, tree, err
	}
	o.Queue = func(ctx context.Context, tell func(queue.Note)) (*merge.Queue, error) {
		self, err := process.Self()
		if err != nil {
			return nil, err
		}
		return merge.Open(ctx, merge.Options{
			Travel: o.Remote, Store: o.Store, Repo: o.Repo, Dir: filepath.Join(s.State, "queue"), Target: "main",
			Verifying: merge.Verifying{Environ: os.Environ()}, Local: s.Store == "",
			Policy: queue.Policy{Batch: 1, Retries: 1, Timeout: time.Hour, Push: s.Store != ""},
			Exe:    os.Args[0], Args: []string{reexec.Supervise}, Lease: time.Minute, Owner: storedrun.OwnerOf(self), Alive: storedrun.Alive, Notify: tell,
		})
	}
	return o, err
}

// open opens the board.
func (s site) open(ctx context.Context) (*store.Store, error) {
	if s.Store == "" {
		return store.Open(ctx, filepath.Join(s.State, "pawl.db"))
	}
	self, err := process.Self()
	if err != nil {
		return nil, err
	}
	o := store.Shared{
		Address: s.Store, Repository: boardName, Place: s.Repo, Lease: s.Lease, Boot: storedrun.OwnerOf(self).Boot,
		Files: s.Files,
	}
	return store.OpenShared(ctx, o)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// desk is a site, seen by its test.
type desk struct {
	site
	t      *testing.T
	store  *store.Store
	engine autopilot.Elsewhere
}

// newDesk makes a board of one task, whose agent plays the turns.
func newDesk(t *testing.T, turns string) *desk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	d := &desk{t: t, site: site{
		Address: startEngine(t, dir).at(), Repo: filepath.Join(dir, "repo"), State: filepath.Join(dir, "state"), Scenario: filepath.Join(dir, "scenario.yaml"),
	}}
	must(t, os.Mkdir(d.Repo, 0o700))
	gittest.Git(t, d.Repo, "init", "-q")
	gittest.Git(t, d.Repo, "commit", "-q", "--allow-empty", "-m", "first")
	must(t, os.WriteFile(d.Scenario, []byte("turns:\n"+strings.ReplaceAll(turns, "$DIR", dir)), 0o600))
	d.store, err = store.Open(t.Context(), filepath.Join(d.State, "pawl.db"))
	must(t, err)
	t.Cleanup(func() { must(t, d.store.Close()) })
	_, err = d.store.AddCases(t.Context(), []board.Draft{{Case: board.Case{Title: "Greet"}}}, board.Person, time.Now())
	must(t, err)
	var leave func()
	d.engine, leave, err = cluster.Program{}.Join(t.Context(), d.at(), "repo", d.store, nil)
	must(t, err)
	t.Cleanup(leave)
	return d
}

// engineServer is a Temporal server.
type engineServer struct {
	t                          *testing.T
	program, database, address string
	cmd                        *exec.Cmd
}

func (e *engineServer) at() string { return "temporal://" + e.address + "/pawl" }

// run starts the server, again where it ended. On a loaded machine it may give up before it
// is ready.
func (e *engineServer) run() {
	e.t.Helper()
	err := e.tryRun()
	for range 2 {
		if err != nil {
			_ = e.cmd.Wait()
			err = e.tryRun()
		}
	}
	must(e.t, err)
}

func (e *engineServer) tryRun() error {
	e.cmd = exec.CommandContext(context.WithoutCancel(e.t.Context()), e.program, e.address, e.database)
	e.cmd.Stderr = os.Stderr
	first, err := e.cmd.StdoutPipe()
	must(e.t, err)
	ends(e.t, e.cmd)
	line, err := bufio.NewReader(first).ReadString('\n')
	if err == nil {
		e.address = strings.TrimSpace(line)
	}
	return err
}

// startEngine starts a Temporal server that ends with the test.
func startEngine(t *testing.T, dir string) *engineServer {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs a Temporal server")
	}
	cached := exec.CommandContext(t.Context(), "../../../scripts/temporal/build", "cached")
	cached.Env = environ
	out, err := cached.CombinedOutput()
	program := strings.TrimSpace(string(out))
	if err != nil {
		t.Skip(program)
	}
	e := &engineServer{t: t, program: program, database: filepath.Join(dir, "engine.db"), address: "127.0.0.1:0"}
	e.run()
	return e
}

// ends starts a program that ends with the test.
func ends(t *testing.T, c *exec.Cmd) {
	t.Helper()
	must(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
}

// worker starts a worker.
func (d *desk) worker() *exec.Cmd { return d.start(d.t) }

func (s site) start(t *testing.T) *exec.Cmd {
	t.Helper()
	input, err := json.Marshal(s)
	must(t, err)
	c := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], workCommand)
	c.Stdin, c.Stderr = strings.NewReader(string(input)), os.Stderr
	if s.Host != "" {
		c.SysProcAttr = onHost()
	}
	ends(t, c)
	return c
}

// begin has the task worked on the engine; what it returns waits for the end.
func (d *desk) begin() func() flow.Result {
	d.t.Helper()
	_, err := d.store.MoveCase(d.t.Context(), "task-001", board.Change{Action: board.Start, By: board.Pawl, At: time.Now()})
	must(d.t, err)
	ended := make(chan flow.Result, 1)
	go func() {
		var r flow.Result
		var err error
		if r.Outcome, r.Entry, err = d.engine.Work(d.t.Context(), board.Case{ID: "task-001"}, "", "", nil); err != nil {
			d.t.Error(err)
		}
		ended <- r
	}()
	return func() flow.Result { return <-ended }
}

// A task is worked on the engine: its workflow decides, and a worker in another
// process does the work and keeps the run in the database.
func TestATaskOnTheEngine(t *testing.T) {
	t.Parallel()
	d := newDesk(t, `
  - - write: {path: hello.txt, content: "hello"}
    - say: so far so good
  - - write: {path: hello.txt, content: "hello, world"}
    - say: "<promise>COMPLETE</promise>"
`)
	d.worker()
	r := d.begin()()
	d.keepHistory()
	if r.Outcome.Status != loop.Completed || r.Entry.Commit == "" {
		t.Fatalf("the task ended as %+v", r)
	}
	gittest.Git(t, d.Repo, "show", r.Entry.Commit+":hello.txt")
	run, err := d.store.Latest(t.Context(), d.Repo, "task-001")
	must(t, err)
	if run.Status != string(loop.Completed) || run.Iteration != 2 || run.Owner.PID != 0 {
		t.Errorf("the run is stored as %s after iteration %d, with owner %d", run.Status, run.Iteration, run.Owner.PID)
	}
}

// held is an agent that says that it has begun, and waits; it has the file life
// open as long as it lives.
const held = `
  - - append: {path: "$DIR/starts", content: "x"}
    - run: {command: "echo up > $DIR/up; exec 9> $DIR/life; read x < $DIR/go"}
    - write: {path: hello.txt, content: "hello"}
    - say: "<promise>COMPLETE</promise>"
`

// newHeld is a desk with a held agent, which a worker has begun.
func newHeld(t *testing.T) (d *desk, first *exec.Cmd, run func() flow.Result) {
	t.Helper()
	d = newDesk(t, held)
	d.pipes("up", "go")
	first, run = d.worker(), d.begin()
	_, err := os.ReadFile(d.path("up"))
	must(t, err)
	return d, first, run
}

func (d *desk) pipes(names ...string) {
	d.t.Helper()
	for _, name := range names {
		must(d.t, syscall.Mkfifo(d.path(name), 0o600))
	}
}

func (d *desk) path(name string) string { return filepath.Join(filepath.Dir(d.Repo), name) }

// completed fails the test if the task did not complete, or its agent was started twice.
func (d *desk) completed(run func() flow.Result) {
	d.t.Helper()
	r := run()
	starts, err := os.ReadFile(d.path("starts"))
	must(d.t, err)
	if r.Outcome.Status != loop.Completed || string(starts) != "x" {
		d.t.Errorf("after %d starts the task ended as %+v", len(starts), r.Outcome)
	}
	left, err := filepath.Glob(filepath.Join(d.State, "worker", "*.json"))
	must(d.t, err)
	if len(left) > 0 {
		d.t.Errorf("orders are left open: %q", left)
	}
}

// An agent goes on while its worker is gone, however that ended, and the worker
// that comes next takes up what it did. Nothing is done twice.
func TestAWorkerIsGone(t *testing.T) {
	t.Parallel()
	for _, how := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(how.String(), func(t *testing.T) {
			t.Parallel()
			d, first, run := newHeld(t)
			must(t, first.Process.Signal(how))
			_ = first.Wait()
			d.worker()
			must(t, os.WriteFile(d.path("go"), []byte("on\n"), 0o600))
			d.completed(run)
		})
	}
}

// What is asked of a run in the database is heard wherever the run is worked.
func TestAStopIsHeard(t *testing.T) {
	t.Parallel()
	d, _, run := newHeld(t)
	last, err := d.store.Latest(t.Context(), d.Repo, "task-001")
	must(t, err)
	_, err = d.store.AddControl(t.Context(), store.Control{Run: last.ID, Kind: store.ControlStop, At: time.Now()})
	must(t, err)
	r := run()
	if r.Outcome.Status != loop.Stopped {
		t.Errorf("the task ended as %+v", r.Outcome)
	}
}

// An autopilot whose tasks are worked elsewhere settles and lands them as its own.
func TestAnAutopilotOnTheEngine(t *testing.T) {
	t.Parallel()
	d := newDesk(t, `
  - - write: {path: hello.txt, content: "hello"}
    - say: "<promise>COMPLETE</promise>"
`)
	o, err := d.options(t.Context())
	must(t, err)
	t.Cleanup(func() { must(t, o.Store.Close()) })
	o.Elsewhere = d.engine
	d.worker()
	res, err := autopilot.Run(t.Context(), o)
	must(t, err)
	if c, err := d.store.Case(t.Context(), "task-001"); err != nil || c.Status != board.Done || res.Tally.Landed != 1 {
		t.Errorf("the task is %s after %+v (%v)", c.Status, res, err)
	}
	gittest.Git(t, d.Repo, "show", "main:hello.txt")
}

// A task lands by another way while a worker has it. Its run is ended, but not as if a
// person had stopped it: whoever takes the task up again need not ask one first.
func TestATaskThatLandsMeanwhile(t *testing.T) {
	t.Parallel()
	d := newDesk(t, held)
	d.pipes("up", "go", "life")
	o, err := d.options(t.Context())
	must(t, err)
	t.Cleanup(func() { must(t, o.Store.Close()) })
	o.Elsewhere = d.engine
	d.worker()
	ended := make(chan error, 1)
	go func() {
		_, err := autopilot.Run(t.Context(), o)
		ended <- err
	}()
	_, err = os.ReadFile(d.path("up"))
	must(t, err)
	life, err := os.Open(d.path("life"))
	must(t, err)
	defer life.Close()
	_, err = d.store.MoveCase(t.Context(), "task-001", board.Change{Action: board.Land, By: board.Pawl, At: time.Now()})
	must(t, err)
	must(t, <-ended)
	run, err := d.store.Latest(t.Context(), d.Repo, "task-001")
	must(t, err)
	s, err := storedrun.StateOf(run)
	must(t, err)
	if s.Status != loop.Stopped || !s.Command.Settled {
		t.Errorf("its run is %s: %s", s.Status, s.Why)
	}
}

// A stop ends what a worker began; the task goes back to the board.
func TestAnAutopilotThatIsStopped(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]bool{"stopped": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, held)
			d.pipes("up", "go", "life")
			o, err := d.options(t.Context())
			must(t, err)
			t.Cleanup(func() { must(t, o.Store.Close()) })
			stops, kills := make(chan loop.Cause, 1), make(chan struct{})
			o.Elsewhere, o.Stops, o.Kill = d.engine, stops, kills
			d.worker()
			ended := make(chan error, 1)
			go func() {
				_, err := autopilot.Run(context.WithoutCancel(t.Context()), o)
				ended <- err
			}()
			_, err = os.ReadFile(d.path("up"))
			must(t, err)
			life, err := os.Open(d.path("life"))
			must(t, err)
			stops <- loop.CauseStop
			if kill {
				close(kills)
			}
			must(t, <-ended)
			c, err := d.store.Case(t.Context(), "task-001")
			must(t, err)
			if c.Status != board.Pending {
				t.Errorf("the task is %s: %s", c.Status, c.Why)
			}
			_, err = io.ReadAll(life) // ends with the agent
			must(t, errors.Join(err, life.Close()))
		})
	}
}
