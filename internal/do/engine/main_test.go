package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent/script"
	"github.com/pawl-dev/pawl/internal/do/boxnet"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/egress"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/netstack"
	"github.com/pawl-dev/pawl/internal/do/ratelimit"
	"github.com/pawl-dev/pawl/internal/do/reexec"
	"github.com/pawl-dev/pawl/internal/do/statefile"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// driveCommand makes the test binary a pawl that can be killed.
const driveCommand = "__drive"

// The test binary is pawl, its supervisor and its agent.
func TestMain(m *testing.M) {
	if code, ok := reexec.Finish(supervisor.Rest{Ways: boxnet.Ways{Proxy: egress.Out(os.Getenv), Stack: netstack.Serve}}); ok {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == driveCommand {
		os.Exit(playPawl(os.Stdin, os.Stdout))
	}
	// Of a program that is built with -race each end takes a second, else.
	os.Exit(gittest.Run(m, "GORACE=atexit_sleep_ms=0"))
}

// order is what a pawl in a process of its own does.
type order struct {
	Root, State, DB string
	NoGit           bool
	Private         bool   // work in a private workspace, as runs in git do
	Resume          string // a run; "" starts a new one
	Answer          string
	Policy          loop.Policy
	Scenarios       map[string]string // agent to scenario file
	Gates           []gate.Spec
	Protect         gate.Protect
	Lease           int64 // milliseconds
	Flags           json.RawMessage
	Accounts        string // the folder of shared limits
	// Hold is a line of the output. Pawl prints it and stops right there, for ever.
	Hold string
}

func (o order) plan() runplan.Plan {
	p := runplan.Plan{
		Kind: "procedure", Name: "build", Root: o.Root, Policy: o.Policy, Agents: map[string]runplan.Agent{}, Judging: runplan.Judging{Gates: o.Gates, Protect: o.Protect},
		Safety: "permissive", Bounds: runplan.Bounds{Lease: ms(o.Lease)}, Environ: os.Environ(), Exe: os.Args[0], Args: []string{reexec.Supervise}, Flags: o.Flags,
	}
	p.Prompt.Procedure, p.Prompt.Budget = "build", 100000
	p.Review.Fragment.Name, p.Review.Fragment.Text, p.Review.Purpose = "review.md", "Look at it, {{.Agent}}.", "Make it work"
	for name, file := range o.Scenarios {
		p.Agents[name] = runplan.Agent{Adapter: script.Adapter{Executable: os.Executable}, Command: []string{file}, Account: name}
	}
	return p
}

// options opens what the order names.
func (o order) options(ctx context.Context) (Options, error) {
	db, err := store.Open(ctx, o.DB)
	if err != nil {
		return Options{}, err
	}
	opts := Options{Plan: o.plan(), StateDir: o.State, Store: db}
	if o.Accounts != "" {
		opts.Accounts = ratelimit.NewStore(o.Accounts)
	}
	switch {
	case o.Private:
		opts.Private, err = o.takeWorkspace(ctx, db)
	case !o.NoGit:
		opts.Tree, err = workspace.Open(ctx, o.Root, workspace.Options{StateDir: o.State})
		if err == nil {
			err = opts.Tree.IgnoreOwnFolder()
		}
	}
	return opts, err
}

// takeWorkspace takes the private workspace of the order's runs.
func (o order) takeWorkspace(ctx context.Context, db *store.Store) (*delivery.Workspace, error) {
	person, err := workspace.Open(ctx, o.Root, workspace.Options{StateDir: o.State})
	if err != nil {
		return nil, err
	}
	if err := person.IgnoreOwnFolder(); err != nil {
		return nil, err
	}
	clones, err := pool.Open(ctx, pool.Options{Root: o.Root, StateDir: o.State, Store: db, Retention: time.Hour})
	if err != nil {
		return nil, err
	}
	w, err := delivery.Take(ctx, delivery.Options{
		Person: person, Pool: clones, ID: pool.RunPrefix + "build", StateDir: o.State, When: deliver.Each, Confirm: []string{".envrc"},
	})
	if err == nil {
		_, err = storedrun.FinishEarlier(ctx, db, w)
	}
	return w, err
}

// playPawl carries out an order, says on out what happens, and is its exit code.
func playPawl(in io.Reader, out io.Writer) int {
	var o order
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		panic(err)
	}
	ctx := context.Background()
	opts, err := o.options(ctx)
	if err != nil {
		fmt.Fprintln(out, "error", err)
		return 1
	}
	opts.Notify = func(n Notice) {
		line := noticeLine(n)
		fmt.Fprintln(out, line)
		if o.Hold != "" && strings.HasPrefix(line, o.Hold) {
			select {}
		}
	}
	d, err := o.drive(ctx, opts)
	if err != nil {
		fmt.Fprintln(out, "error", err)
		return 1
	}
	fmt.Fprintln(out, "end", d.State().Status, d.State().Why)
	return 0
}

func (o order) drive(ctx context.Context, opts Options) (*Driver, error) {
	if o.Resume == "" {
		return Start(ctx, opts)
	}
	e := loop.Event{Kind: loop.Resumed, Policy: &opts.Plan.Policy}
	if o.Answer != "" {
		e = loop.Event{Kind: loop.Answered, Text: o.Answer, Policy: &opts.Plan.Policy}
	}
	return Resume(ctx, opts, o.Resume, e)
}

// noticeLine is a notice as tests wait for it.
func noticeLine(n Notice) string {
	line := string(n.Kind)
	switch n.Kind {
	case RunStarted:
		line += " " + n.Run
	case IterationStarted:
		line += fmt.Sprintf(" %d.%d %s %s", n.Command.Iteration, n.Command.Attempt, n.Command.Agent, n.Command.Strategy)
	case IterationEnded:
		line += fmt.Sprintf(" %d.%d %s %s", n.Record.Number, n.Record.Attempt, n.Record.Outcome, n.Record.Exit.Ended)
	case AgentEvent:
		line += " " + string(n.Event.Kind) + " " + n.Event.Text
	case WaitStarted:
		line += " " + n.Command.Why
	case ReviewStarted:
		line += fmt.Sprintf(" %d %s %d", n.Command.Iteration, n.Command.Agent, n.Command.Review)
	case ReviewEnded:
		line += fmt.Sprintf(" %d %s %s: %s", n.Record.Number, n.Record.Review.Agent, n.Record.Review.Verdict, n.Record.Review.Summary)
	case GateStarted:
		line += " " + n.Gate.Name
	case GateEnded:
		line += fmt.Sprintf(" %s %s", n.Gate.Name, n.Gate.Status)
	case RunEnded:
		line += " " + string(n.State.Status)
	case Tick:
	default:
		line += " " + n.Text
	}
	return strings.ReplaceAll(line, "\n", " ")
}

// world is a repository with an agent's scenario, and all that is outside of it.
type world struct {
	t   *testing.T
	dir string
	o   order

	mu   sync.Mutex
	runs []string
}

// newWorld makes a world whose agent plays the turns. In them and in gates,
// {dir} is a folder outside of the repository.
func newWorld(t *testing.T, turns string) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir}
	w.o = order{
		Root: filepath.Join(dir, "repo"), State: filepath.Join(dir, "state"), DB: filepath.Join(dir, "state", "pawl.db"), Lease: 60_000,
		Policy: loop.Policy{
			Kind: loop.Procedure, MaxIterations: 2, FailureThreshold: 3, MaxWaits: 20, Costs: loop.Costs{MaxCost: loop.NoLimit, MaxIterationCost: loop.NoLimit,
				MaxIterationCalls: loop.NoLimit}, Workers: loop.Workers{Agent: "script"},
		},
		Scenarios: map[string]string{},
	}
	w.agent("script", turns)
	w.write("repo/kept.txt", "kept\n")
	w.git("init", "-q", "-b", "main")
	w.commit("first")
	t.Cleanup(w.nothingRuns)
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) agent(name, turns string) {
	w.t.Helper()
	w.write(name+".yaml", "turns:\n"+strings.ReplaceAll(turns, "{dir}", w.dir))
	w.o.Scenarios[name] = w.path(name + ".yaml")
}

func (w *world) gate(name, command string) {
	w.o.Gates = append(w.o.Gates, gate.Spec{Name: name, Command: strings.ReplaceAll(command, "{dir}", w.dir), Required: true})
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := w.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// read is a file's content; "" when there is none.
func (w *world) read(name string) string {
	data, _ := os.ReadFile(w.path(name))
	return string(data)
}

func (w *world) git(args ...string) string { w.t.Helper(); return gittest.Git(w.t, w.o.Root, args...) }

// snapshot is what git says of the repository in which snapshots of runs are.
func (w *world) snapshot(args ...string) string {
	w.t.Helper()
	return gittest.Git(w.t, w.path("state/store"), args...)
}

func (w *world) commit(message string) {
	w.t.Helper()
	w.git("add", "-A")
	w.git("commit", "-q", "-m", message)
}

func (w *world) fifo(name string) {
	w.t.Helper()
	if err := syscall.Mkfifo(w.path(name), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// open lets the one go on that reads the fifo. Any goroutine may call it.
func (w *world) open(name string) {
	w.t.Helper()
	f, err := os.OpenFile(w.path(name), os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("go\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		w.t.Error(err)
	}
}

// pawl is one in a process of its own.
type pawl struct {
	w     *world
	cmd   *exec.Cmd
	lines *bufio.Scanner
	seen  []string
}

// start starts a pawl on the world's order as it is now.
func (w *world) start(env ...string) *pawl {
	w.t.Helper()
	data, err := json.Marshal(w.o)
	if err != nil {
		w.t.Fatal(err)
	}
	p := &pawl{w: w, cmd: exec.CommandContext(context.WithoutCancel(w.t.Context()), os.Args[0], driveCommand)}
	p.cmd.Stdin, p.cmd.Stderr = strings.NewReader(string(data)), os.Stderr
	p.cmd.Env = append(os.Environ(), env...)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	w.t.Cleanup(p.kill)
	return p
}

// resume starts a pawl that goes on with the world's last run.
func (w *world) resume() *pawl {
	w.t.Helper()
	w.o.Resume, w.o.Hold = w.run(), ""
	return w.start()
}

// await reads lines up to one that starts with want.
func (p *pawl) await(want string) string {
	p.w.t.Helper()
	for p.lines.Scan() {
		line := p.lines.Text()
		p.seen = append(p.seen, line)
		if id, ok := strings.CutPrefix(line, string(RunStarted)+" "); ok {
			p.w.know(id)
		}
		if strings.HasPrefix(line, want) {
			return line
		}
	}
	p.w.t.Fatalf("pawl ended before %q; it said:\n%s", want, strings.Join(p.seen, "\n"))
	return ""
}

// saw counts the lines so far that have text in them.
func (p *pawl) saw(text string) int {
	n := 0
	for _, l := range p.seen {
		if strings.Contains(l, text) {
			n++
		}
	}
	return n
}

func (p *pawl) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
}

func (w *world) know(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs = append(w.runs, id)
}

// run is the last run that was started.
func (w *world) run() string {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.runs) == 0 {
		w.t.Fatal("no run was started")
	}
	return w.runs[len(w.runs)-1]
}

func (w *world) runDir(parts ...string) string {
	return filepath.Join(append([]string{"state", "runs", w.run()}, parts...)...)
}

// nothingRuns fails the test when a process of its runs is left.
func (w *world) nothingRuns() {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		env, _ := os.ReadFile(f)
		for _, id := range w.runs {
			if strings.Contains("\x00"+string(env), "\x00"+supervisor.Mark(id)+"\x00") {
				line, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
				w.t.Errorf("left behind: %s %q", f, line)
			}
		}
	}
}

// stored is what the database knows of the last run.
func (w *world) stored() (store.Run, []loop.Record, loop.State) {
	w.t.Helper()
	ctx := context.Background()
	db, err := store.Open(ctx, w.o.DB)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	run, err := db.Run(ctx, w.run())
	if err != nil {
		w.t.Fatal(err)
	}
	records, err := db.Iterations(ctx, run.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := storedrun.StateOf(run)
	if err != nil {
		w.t.Fatal(err)
	}
	return run, records, s
}

// told is a run as its records tell it, a word an attempt: "1.1 success".
func (w *world) told() []string {
	w.t.Helper()
	_, records, _ := w.stored()
	var out []string
	for _, r := range records {
		word := fmt.Sprintf("%d.%d %s", r.Number, r.Attempt, r.Outcome)
		if r.Exit.Ended != loop.NotEnded {
			word += " " + string(r.Exit.Ended)
		}
		out = append(out, word)
	}
	return out
}

// holds checks what must be true of every run that came to rest: who wrote it
// last gave it up, records and state agree, and what was spent is their sum.
func (w *world) holds(status loop.Status, attempts ...string) {
	w.t.Helper()
	run, records, s := w.stored()
	if told := w.told(); !slices.Equal(told, attempts) {
		w.t.Errorf("iterations %q, want %q", told, attempts)
	}
	if s.Status != status || run.Status != string(status) || run.Owner.PID != 0 {
		w.t.Errorf("state %s, row %s, owner %d; want %s without an owner", s.Status, run.Status, run.Owner.PID, status)
	}
	var cost loop.MicroUSD
	last := 0
	for _, r := range records {
		cost += r.Cost
		if r.Review != nil {
			cost += r.Review.Cost
		}
		if r.Outcome != loop.Waited {
			if last++; r.Number != last {
				w.t.Errorf("iteration %d comes after %d", r.Number, last-1)
			}
		}
	}
	if s.Spent.Cost != cost || s.Iteration != last {
		w.t.Errorf("the state says %d iterations for %v, the records %d for %v", s.Iteration, s.Spent.Cost, last, cost)
	}
	w.imageHolds(s)
	w.nothingRuns()
}

// imageHolds compares the state file with the state.
func (w *world) imageHolds(s loop.State) {
	w.t.Helper()
	f, err := statefile.Read(statefile.Path(w.o.Root, "build"))
	if s.Status == loop.Completed {
		if !errors.Is(err, statefile.ErrNone) {
			w.t.Errorf("a completed run left a state file: %+v, %v", f, err)
		}
		return
	}
	if err != nil || f.Status != string(s.Status) || f.Iteration != s.Iteration || len(f.ElapsedPerIteration) != s.Iteration || f.Owner != nil {
		w.t.Errorf("the state file says %+v, %v; the state is %s after %d", f, err, s.Status, s.Iteration)
	}
}

// starts is how often agents were started; their turns add a line.
func (w *world) starts() int { return strings.Count(w.read("starts"), "x") }

// supervisorOf is the supervisor that serves the last run.
func (w *world) supervisorOf() supervisor.Status {
	w.t.Helper()
	st, err := supervisor.Probe(context.Background(), w.path(w.runDir()))
	if err != nil {
		w.t.Fatal(err)
	}
	return st
}

// heldGit makes a git that stops at update-ref while the file "hold" is there,
// and says so through the fifo "held". It returns the environment for it.
func (w *world) heldGit() string {
	w.t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		w.t.Fatal(err)
	}
	w.fifo("held")
	w.fifo("never")
	w.write("bin/git", fmt.Sprintf(`#!/bin/sh
case "$*" in *write-tree*) if [ -e '%[1]s/hold' ]; then echo $$ >'%[1]s/held'; read x <'%[1]s/never'; fi;; esac
exec '%[2]s' "$@"
`, w.dir, program))
	if err := os.Chmod(w.path("bin/git"), 0o700); err != nil {
		w.t.Fatal(err)
	}
	return "PATH=" + w.path("bin") + ":" + os.Getenv("PATH")
}

func goroutines() int { return runtime.NumGoroutine() }
