package cluster_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/flow"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/cluster"
	"github.com/pawl-dev/pawl/internal/do/engine/lanes"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/reexec"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/keep/store"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

var (
	chaosFaults = flag.Int("chaos-faults", 0, "so many faults while three workers work a board")
	chaosSeed   = flag.Uint64("chaos-seed", 1, "which faults")
)

// relay passes connections on to a server, until it is cut.
type relay struct {
	network, to string
	listener    net.Listener
	mu          sync.Mutex
	cut         bool
	open        map[net.Conn]bool
}

func newRelay(t *testing.T, network, at, to string) *relay {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), network, at)
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	r := &relay{network: network, to: to, listener: l, open: map[net.Conn]bool{}}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.pass(c)
		}
	}()
	return r
}

func (r *relay) pass(c net.Conn) {
	defer c.Close()
	s, err := net.Dial(r.network, r.to)
	if err != nil {
		return
	}
	defer s.Close()
	r.mu.Lock()
	if r.cut {
		r.mu.Unlock()
		return
	}
	r.open[c], r.open[s] = true, true
	r.mu.Unlock()
	go func() {
		_, _ = io.Copy(s, c)
		_ = s.Close()
	}()
	_, _ = io.Copy(c, s)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, c)
	delete(r.open, s)
}

func (r *relay) set(cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cut = cut; !cut {
		return
	}
	for c := range r.open {
		_ = c.Close()
	}
}

// chaos is a team that works while things go wrong.
type chaos struct {
	*team
	rand    *rand.Rand
	workers []*exec.Cmd // by machine; the first has none
	data    []*relay    // to the database
	orders  []*relay    // to the engine
	began   chan string // the tasks of agents that begin
	starts  map[string]int
	files   string // the folder with what runs print
	lossy   bool   // something has lost what it had just stored
}

const (
	chaosBeat  = 12 * time.Second // after which a worker's orders are another's
	chaosLease = 6 * time.Second  // of who drives
)

// TestClusterChaos works a board by three workers, one of which has the autopilot, while
// processes are killed and stopped, connections cut, and servers restarted. In the end
// each task landed once, and no agent was started without a record of it.
func TestClusterChaos(t *testing.T) {
	if *chaosFaults == 0 {
		t.Skip("it is for make cluster-chaos")
	}
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("it gives processes other host names")
	}
	c := newChaos(t)
	for n := 1; n < len(c.machines); n++ {
		c.workers[n] = c.machines[n].start(t)
	}
	o, err := c.machines[0].options(t.Context())
	must(t, err)
	o.Settings.Keep, o.Settings.MaxParallel, o.Settings.ErrorThreshold, o.Settings.MaxStarts = true, 5, 0, 1000
	must(t, autopilot.HandOver(t.Context(), o))
	must(t, o.Store.Close())
	for i := range *chaosFaults {
		c.add()
		c.count(<-c.began)
		c.fault(i)
	}
	c.finish()
}

func newChaos(t *testing.T) *chaos {
	t.Helper()
	const workers = 3
	c := &chaos{
		team: newTeam(t, workers+1, 4, chaosBeat, `
task=${PWD##*/}
echo $task > $DIR/began
sleep 1
list=list.${task%??}
grep -qx $task $list || echo $task >> $list
echo done > done.$task
echo "<promise>COMPLETE</promise>"
`), rand: rand.New(rand.NewPCG(*chaosSeed, 0)), //nolint:gosec // it is to be repeated
		workers: make([]*exec.Cmd, workers+1), data: make([]*relay, workers+1), orders: make([]*relay, workers+1),
		began: make(chan string, 100_000), starts: map[string]int{},
	}
	const lists = 5 // that two tasks write into at the same time
	for i := range lists {
		must(t, os.WriteFile(filepath.Join(c.machines[0].Repo, fmt.Sprint("list.task-", i)), []byte("begin\n"), 0o600))
	}
	gittest.Git(t, c.machines[0].Repo, "add", ".")
	gittest.Git(t, c.machines[0].Repo, "commit", "-q", "-m", "lists")
	gittest.Git(t, c.machines[0].Repo, "push", "-q", "origin", "main")
	c.files = filepath.Join(c.dir, "files")
	must(t, os.Mkdir(c.files, 0o700))
	c.pipes("began")
	pipe, err := os.OpenFile(filepath.Join(c.dir, "began"), os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { _ = pipe.Close() })
	go func() {
		lines := bufio.NewScanner(pipe)
		for lines.Scan() {
			c.began <- lines.Text()
		}
	}()
	for n := 1; n <= workers; n++ {
		s := &c.machines[n]
		dir, err := os.MkdirTemp("/tmp", "chaos") //nolint:usetesting // sockets want short names
		must(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		must(t, os.Chmod(dir, 0o755)) //nolint:gosec // it has a socket only
		before, folder, _ := strings.Cut(s.Store, "?host=")
		c.data[n] = newRelay(t, "unix", filepath.Join(dir, ".s.PGSQL.5432"), filepath.Join(folder, ".s.PGSQL.5432"))
		c.orders[n] = newRelay(t, "tcp", "127.0.0.1:0", c.engine.address)
		s.Store, s.Address = before+"?host="+dir, "temporal://"+c.orders[n].listener.Addr().String()+"/pawl"
		s.Files = c.files
		s.Host, s.Lease, s.Stands, s.Offer.Slots = fmt.Sprint("chaos-", n), chaosLease, true, 2
	}
	return c
}

// again tries something until it works: the database may be away.
func (c *chaos) again(do func(context.Context) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	err := do(ctx)
	for err != nil && ctx.Err() == nil {
		<-time.After(100 * time.Millisecond)
		err = do(ctx)
	}
	must(c.t, err)
}

// add adds two tasks, of which the second needs the first.
func (c *chaos) add() {
	c.again(func(ctx context.Context) error {
		first := fmt.Sprint(time.Now().UnixNano())
		_, err := c.store.AddCases(ctx, []board.Draft{
			{Case: board.Case{Ref: first, Title: "A task"}}, {Case: board.Case{Title: "The next", Needs: []string{first}}},
		}, board.Person, time.Now())
		return err
	})
}

func (c *chaos) count(task string) {
	c.starts[task]++
	for len(c.began) > 0 {
		c.starts[<-c.began]++
	}
}

// driver is the machine that drives the autopilot; 0 is none.
func (c *chaos) driver() (n int) {
	a, _, err := c.store.Autopilot(c.t.Context())
	if err == nil && a.Owner.PID != 0 {
		_, _ = fmt.Sscanf(a.Owner.Host, "chaos-%d", &n)
	}
	return n
}

// fault plays one, at one of the machines; half of them meet the one that drives.
func (c *chaos) fault(i int) {
	n := 1 + c.rand.IntN(len(c.machines)-1)
	d := c.driver()
	if c.rand.IntN(2) == 0 && d != 0 {
		n = d
	}
	faults := []struct {
		name string
		do   func(n int)
	}{
		{"killed", func(n int) { c.kill(c.workers[n]); c.workers[n] = c.machines[n].start(c.t) }},
		{"ended", func(n int) {
			must(c.t, c.workers[n].Process.Signal(syscall.SIGTERM))
			_ = c.workers[n].Wait()
			c.workers[n] = c.machines[n].start(c.t)
		}},
		{"stopped", func(n int) {
			must(c.t, c.workers[n].Process.Signal(syscall.SIGSTOP))
			c.lasts()
			must(c.t, c.workers[n].Process.Signal(syscall.SIGCONT))
		}},
		{"cut off from the database", func(n int) { c.data[n].set(true); c.lasts(); c.data[n].set(false) }},
		{"cut off from the engine", func(n int) { c.orders[n].set(true); c.lasts(); c.orders[n].set(false) }},
		{"there while the database crashes", func(int) { c.database.Stop(); must(c.t, c.database.Run()); c.lossy = true }},
		{"there while the engine crashes", func(int) { c.kill(c.engine.cmd); c.engine.run() }},
		{"there while a copy takes the database's place", func(int) {
			must(c.t, c.database.FailOver(func() { <-time.After(time.Second) }))
			c.lossy = true
		}},
		{"without its supervisors", c.killSupervisors},
		{"lost, and another one comes with its name", func(n int) {
			c.kill(c.workers[n])
			c.endRuns(n)
			must(c.t, os.RemoveAll(c.machines[n].State))
			c.workers[n], c.lossy = c.machines[n].start(c.t), true
		}},
		{"there while the remote is away", func(int) { c.away(c.remote) }},
		{"there while the files are away", func(int) { c.away(c.files) }},
		{"there while the remote refuses pushes", func(int) { c.refusePushes() }},
		{"there while a stranger orders", func(int) { c.orderAsStranger(i) }},
	}
	f := faults[c.rand.IntN(len(faults))]
	c.t.Logf("%s fault %d: machine %d is %s; machine %d drives", time.Now().Format("15:04:05"), i+1, n, f.name, d)
	f.do(n)
}

// killSupervisors ends those of a machine at once.
func (c *chaos) killSupervisors(n int) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(c.t, err)
	for _, name := range all {
		line, _ := os.ReadFile(name) //nolint:gosec // it may have ended
		if args := string(line); strings.Contains(args, reexec.Supervise) && strings.Contains(args, c.machines[n].State+"/") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			must(c.t, err)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// endRuns ends all that runs of tasks on a machine.
func (c *chaos) endRuns(n int) {
	dirs, err := filepath.Glob(filepath.Join(c.machines[n].State, "runs", "*"))
	must(c.t, err)
	for _, dir := range dirs {
		must(c.t, lanes.EndUnattended(c.t.Context(), dir, filepath.Base(dir)))
	}
}

// refusePushes has the remote refuse all pushes for a while.
func (c *chaos) refusePushes() {
	hook := filepath.Join(c.remote, "hooks", "pre-receive")
	must(c.t, os.WriteFile(hook, []byte("#!/bin/sh\necho not now >&2\nexit 1\n"), 0o700)) //nolint:gosec // git runs it
	c.lasts()
	must(c.t, os.Remove(hook))
}

// orderAsStranger starts a workflow of a stranger's, with settings of their own, for a task that an agent works on.
func (c *chaos) orderAsStranger(i int) {
	task := <-c.began
	c.count(task)
	stranger, err := cluster.Dial(c.t.Context(), c.machines[0].at(), nil)
	must(c.t, err)
	defer stranger.Close()
	q := flow.QueuesOf("repo")
	begin := flow.Begin{Queues: q, Case: task, Heartbeat: chaosBeat}
	o := client.StartWorkflowOptions{ID: fmt.Sprint("strange:", i), TaskQueue: q.Board}
	r, err := stranger.ExecuteWorkflow(c.t.Context(), o, flow.TaskName, withSettings(c.t, begin))
	must(c.t, err)
	_ = r.Get(c.t.Context(), nil) // it is refused
}

// away has a folder missing for a while.
func (c *chaos) away(dir string) {
	must(c.t, os.Rename(dir, dir+".away"))
	c.lasts()
	must(c.t, os.Rename(dir+".away", dir))
}

// lasts is the time of a fault: a moment, or until leases and orders are over.
func (c *chaos) lasts() {
	<-time.After([]time.Duration{time.Second, chaosLease * 3 / 2, chaosBeat * 3 / 2}[c.rand.IntN(3)])
}

// finish waits until all is done, as long as more and more is, and holds the board to what
// it promises.
func (c *chaos) finish() {
	c.t.Helper()
	tasks, least := 0, math.MaxInt
	const patience = 4 * time.Minute
	stuck := time.NewTimer(patience)
	defer stuck.Stop()
	for open := math.MaxInt; open > 0; {
		if open < least {
			least = open
			stuck.Reset(patience)
		}
		select {
		case <-stuck.C:
			c.t.Errorf("%d of %d tasks are still open", open, tasks)
			open = 0
		case <-time.After(time.Second):
			c.again(func(ctx context.Context) error {
				all, err := c.store.Cases(ctx, store.CaseFilter{})
				tasks, open = len(all), 0
				for _, one := range all {
					if one.Status != board.Done {
						open++
					}
				}
				return err
			})
		}
	}
	c.landedOnce(tasks)
	c.listed(tasks)
	c.again(func(ctx context.Context) error {
		_, err := c.store.AskAutopilot(ctx, store.AutopilotControl{Kind: store.AutopilotStop, At: time.Now()})
		return err
	})
	a := c.team.driver(0)
	total := 0
	for len(c.began) > 0 {
		c.count(<-c.began)
	}
	for task, n := range c.starts {
		records := c.records(task)
		if total += n; n > records && !c.lossy {
			c.t.Errorf("the agent of %s was started %d times, and %d iterations are recorded", task, n, records)
		}
	}
	for _, w := range c.workers[1:] {
		must(c.t, w.Process.Signal(syscall.SIGTERM))
		if err := w.Wait(); err != nil {
			c.t.Errorf("a worker ended with %v", err)
		}
	}
	active, err := c.store.Runs(c.t.Context(), store.RunQuery{Active: true})
	must(c.t, err)
	for _, r := range active {
		if loop.Status(r.Status).Active() {
			c.t.Errorf("run %s of %s is %s", r.ID, r.Name, r.Status)
			c.tell(r.Name)
		}
	}
	c.t.Logf("%d faults: %d tasks landed, %d agents were started, %d processes drove in turn", *chaosFaults, tasks, total,
		a.Turn-1)
}

// listed fails the test unless what all tasks wrote into the same files is there once.
func (c *chaos) listed(tasks int) {
	c.t.Helper()
	lists := "\n" + gittest.Git(c.t, c.remote, "grep", "-h", "", "main", "--", "list.*") + "\n"
	for i := range tasks {
		id := fmt.Sprintf("task-%03d", i+1)
		if n := strings.Count(lists, "\n"+id+"\n"); n != 1 {
			c.t.Errorf("%s is in the lists %d times", id, n)
		}
	}
}

// records counts the iterations of a task, and ends what is left of its agents.
func (c *chaos) records(task string) (n int) {
	c.t.Helper()
	runs, err := c.store.Runs(c.t.Context(), store.RunQuery{Name: task})
	must(c.t, err)
	for _, r := range runs {
		list, err := c.store.LastIterations(c.t.Context(), r.ID, 1000)
		must(c.t, err)
		n += len(list)
		if left, err := process.Sweep(c.t.Context(), supervisor.Mark(r.ID), 0); err != nil || left != (process.Ended{}) {
			c.t.Errorf("run %s of %s left %+v (%v)", r.ID, task, left, err)
		}
	}
	return n
}
