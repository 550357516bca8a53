package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/pawl-dev/pawl/internal/decide/flow"
	"github.com/pawl-dev/pawl/internal/test/gittest"
	"github.com/pawl-dev/pawl/internal/test/pgtest"
)

var (
	chaosFaults = flag.Int("chaos-faults", 0, "so many faults while three machines work a board")
	chaosSeed   = flag.Uint64("chaos-seed", 1, "which faults")
)

// chaos is a team whose members have the whole program, while things go wrong.
type chaos struct {
	t           *testing.T
	dir, remote string
	rand        *rand.Rand
	env         []string
	database    *pgtest.Server
	engine      *engine
	schema      string
	copied      string // of the board, "" before there is one
	workers     [4]*runner
	tasks       int // that were added, also those that a copy does not have
	version     int // of the gate and of the agent's command on main
	lossy       bool
	strange     int // how often a stranger ordered tasks
	ended       int // workflows that a stranger ended
}

// The gate writes down which trees it has seen, with its version, and the agent with which command it was started.
const (
	chaosGate = `V=%d
i=$(mktemp -u)
export GIT_INDEX_FILE=$i
git read-tree HEAD && git add -A && echo "$(git write-tree) $V" >>%s/seen
rm -f $i
test ! -e bad
`
	chaosAgent = `prompt=$(cat)
n=$(echo "$prompt" | grep -o 'nonce-[0-9]*' | head -1)
echo "$n $1" >>%[1]s/began
sleep 0.5
case $n in
*3) echo "$prompt" | grep -q 'blue-please' || { echo '<promise>PENDING: which colour?</promise>'; exit; } ;;
*5) mkdir -p review; echo $n >>review/$n ;;
*7) [ -e half.$n ] || { echo half >half.$n; exit; } ;;
esac
list=list.$(echo $n | grep -o '.$')
grep -qx $n $list 2>/dev/null || echo $n >>$list
echo '<promise>COMPLETE</promise>'
`
	chaosConfig = `agent: mine
agents: {mine: {command: [sh, agent.sh, v%d], output: text}}
autopilot: {max_parallel: 6, error_threshold: 0}
loop: {safety: permissive, max_iterations: %d}
merge: {push: true}
review: {when: {paths: ['review/*']}}
verification: {commands: ["sh gate.sh"]}
`
)

// TestTeamUnderFaults has three machines work on a board with the whole program, while a person on a fourth adds,
// answers, approves, sends back, rejects and takes back tasks, and changes gate, agent and limit on the remote's
// branch; and while processes are killed and stopped, services go away, a machine is lost, the board is put back
// from a copy, and a stranger orders tasks and ends workflows. In the end each task that the board has is done with
// work of its own, nothing was pushed that the gate of its base had not seen, the last configuration counts, what the
// stranger ordered was refused, and no process is left.
func TestTeamUnderFaults(t *testing.T) {
	if *chaosFaults == 0 {
		t.Skip("it is for make cluster-chaos")
	}
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("it gives processes other host names")
	}
	c := newChaos(t)
	for i := range *chaosFaults {
		c.add(2)
		c.playFault(i)
		c.actAsPerson()
	}
	c.finish()
}

func newChaos(t *testing.T) *chaos {
	t.Helper()
	dir := t.TempDir()
	c := &chaos{
		t: t, dir: dir, remote: filepath.Join(dir, "remote.git"), database: pgtest.Start(t), version: 1,
		rand: rand.New(rand.NewPCG(*chaosSeed, 0)), //nolint:gosec // it is to be repeated
	}
	c.engine = newEngine(t, filepath.Join(dir, "engine.db"))
	home := filepath.Join(dir, "home")
	c.must(os.Mkdir(home, 0o700))
	c.must(os.Mkdir(filepath.Join(dir, "shop"), 0o700))
	c.must(os.WriteFile(filepath.Join(home, ".gitconfig"),
		[]byte("[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"), 0o600))
	c.env = append(os.Environ(), "HOME="+home, "WORK="+dir, "GIT_CONFIG_NOSYSTEM=1",
		"PAWL_CLUSTER_ENGINE=temporal://"+c.engine.address+"/pawl", "PAWL_CLUSTER_REMOTE=origin",
		"PAWL_CLUSTER_STORE="+c.database.Address("postgres")+"&repository=shop")
	gittest.Git(t, dir, "init", "-q", "-b", "main", "--bare", c.remote)
	gittest.Git(t, c.remote, "config", "core.logAllRefUpdates", "always")
	first := filepath.Join(dir, "n0")
	gittest.Git(t, dir, "init", "-q", "-b", "main", first)
	gittest.Git(t, first, "remote", "add", "origin", c.remote)
	c.must(os.WriteFile(filepath.Join(first, "agent.sh"), fmt.Appendf(nil, chaosAgent, dir), 0o600))
	c.configure(first)
	c.run("pawl", "case", "add", "nonce-0: begin")
	c.tasks = 1
	c.schema = c.database.SQL(t, "postgres", "SELECT nspname FROM pg_namespace WHERE nspname LIKE '%shop%'")
	c.direct()
	for n := 1; n < len(c.workers); n++ {
		gittest.Git(t, dir, "clone", "-q", c.remote, fmt.Sprint("n", n))
		c.workers[n] = c.startWorker(n)
	}
	return c
}

func (c *chaos) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// on is a command on one of the machines, which all have their clone at the same path.
func (c *chaos) on(n int, args ...string) *exec.Cmd {
	script := `echo n$N >/proc/sys/kernel/hostname && mount --bind $WORK/n$N $WORK/shop && cd $WORK/shop && exec "$@"`
	all := append([]string{"-u", "-m", "sh", "-c", script, "sh"}, args...)
	cmd := exec.CommandContext(c.t.Context(), "unshare", all...)
	cmd.Env = slices.Concat(c.env, []string{fmt.Sprint("N=", n), fmt.Sprintf("XDG_STATE_HOME=%s/state-%d", c.dir, n)})
	return cmd
}

// try runs a command on the person's machine, which may fail.
func (c *chaos) try(args ...string) (string, error) {
	cmd := c.on(0, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return string(out), err
}

// run runs a command on the person's machine until it works, or a minute is over.
func (c *chaos) run(args ...string) string {
	c.t.Helper()
	out, err := c.try(args...)
	for until := time.Now().Add(time.Minute); err != nil && time.Now().Before(until); {
		<-time.After(200 * time.Millisecond)
		out, err = c.try(args...)
	}
	c.must(err)
	return out
}

// runner keeps a worker running, as systemd does.
type runner struct {
	mu      sync.Mutex
	cmd     *exec.Cmd
	isEnded bool
	done    chan struct{}
}

func (c *chaos) startWorker(n int) *runner {
	r := &runner{done: make(chan struct{})}
	said, err := os.OpenFile(filepath.Join(c.dir, fmt.Sprint("said-", n)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	c.must(err)
	go func() {
		defer close(r.done)
		defer said.Close()
		for {
			r.mu.Lock()
			if r.isEnded {
				r.mu.Unlock()
				return
			}
			r.cmd = c.on(n, "pawl", "worker", "--slots", "2")
			r.cmd.Stdout, r.cmd.Stderr = said, said
			err := r.cmd.Start()
			cmd := r.cmd
			r.mu.Unlock()
			if err == nil {
				err = cmd.Wait()
			}
			fmt.Fprintf(said, "-- ended: %v\n", err)
			<-time.After(200 * time.Millisecond)
		}
	}()
	c.t.Cleanup(func() { r.end(syscall.SIGKILL) })
	return r
}

func (r *runner) signal(s os.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd != nil && r.cmd.Process != nil {
		_ = r.cmd.Process.Signal(s)
	}
}

// end ends the worker for good.
func (r *runner) end(s os.Signal) {
	r.mu.Lock()
	r.isEnded = true
	r.mu.Unlock()
	r.signal(s)
	<-r.done
}

// direct starts the autopilot, if none is on.
func (c *chaos) direct() {
	_, err := c.try("pawl", "autopilot", "--keep", "--detach", "-p", "6")
	if err != nil && !strings.Contains(err.Error(), "already") {
		c.t.Logf("the autopilot does not start: %v", err)
	}
}

func (c *chaos) add(n int) {
	for range n {
		c.run("pawl", "case", "add", fmt.Sprintf("nonce-%d: a task", c.tasks))
		c.tasks++
	}
}

// configure pushes the next version of gate, agent and limit.
func (c *chaos) configure(dir string) {
	c.t.Helper()
	c.must(os.WriteFile(filepath.Join(dir, "gate.sh"), fmt.Appendf(nil, chaosGate, c.version, c.dir), 0o600))
	c.must(os.WriteFile(filepath.Join(dir, "pawl.yaml"), fmt.Appendf(nil, chaosConfig, c.version, 20+c.version), 0o600))
	gittest.Git(c.t, dir, "add", "-A")
	gittest.Git(c.t, dir, "commit", "-qm", fmt.Sprint("person: version ", c.version))
	for {
		push := exec.CommandContext(c.t.Context(), "git", "-C", dir, "push", "-q", "origin", "HEAD:main")
		out, err := push.CombinedOutput()
		if err == nil {
			break
		}
		if !bytes.Contains(out, []byte("rejected")) && !bytes.Contains(out, []byte("failed to")) {
			c.t.Fatalf("%s", out)
		}
		gittest.Git(c.t, dir, "pull", "-q", "--rebase", "origin", "main")
	}
}

// lasts is the time of a fault: a moment, or longer than a lease.
func (c *chaos) lasts() {
	if c.rand.IntN(4) == 0 {
		<-time.After(40 * time.Second)
		return
	}
	<-time.After(time.Second)
}

func (c *chaos) playFault(i int) {
	n := 1 + c.rand.IntN(len(c.workers)-1)
	w := c.workers[n]
	faults := []struct {
		name string
		do   func()
	}{
		{"a worker is killed", func() { w.signal(syscall.SIGKILL) }},
		{"a worker is ended", func() { w.signal(syscall.SIGTERM) }},
		{"a worker stands still", func() { w.signal(syscall.SIGSTOP); c.lasts(); w.signal(syscall.SIGCONT) }},
		{"the engine is away", func() { c.engine.stop(); c.lasts(); c.must(c.engine.start()) }},
		{"the database crashes", func() { c.database.Stop(); c.must(c.database.Run()); c.lossy = true }},
		{"the remote is away", func() {
			c.must(os.Rename(c.remote, c.remote+".away"))
			c.lasts()
			c.must(os.Rename(c.remote+".away", c.remote))
		}},
		{"the remote refuses pushes", c.refusePushes},
		{"a machine is lost", func() { c.lose(n) }},
		{"the board is put back from a copy", c.putBack},
		{"the board is put back from a copy", c.putBack},
		{"the configuration changes", func() { c.version++; c.pullFirst(); c.configure(filepath.Join(c.dir, "n0")) }},
		{"the configuration changes", func() { c.version++; c.pullFirst(); c.configure(filepath.Join(c.dir, "n0")) }},
		{"a stranger orders tasks", func() { c.orderAsStranger(i) }},
		{"a stranger ends workflows", c.endAsStranger},
	}
	f := faults[c.rand.IntN(len(faults))]
	c.t.Logf("%s fault %d, machine %d: %s", time.Now().Format("15:04:05"), i+1, n, f.name)
	f.do()
}

// dialAsStranger reaches the engine, as an agent could that finds its address, and nothing else.
func (c *chaos) dialAsStranger() client.Client {
	stranger, err := client.Dial(client.Options{HostPort: c.engine.address, Namespace: "pawl",
		Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	c.must(err)
	c.t.Cleanup(stranger.Close)
	return stranger
}

// orderAsStranger starts workflows with settings of a stranger's own for two tasks of the board, and one that it
// does not have. Each is refused.
func (c *chaos) orderAsStranger(i int) {
	stranger, q := c.dialAsStranger(), flow.QueuesOf("shop")
	list := c.board()
	for n, id := range []string{list[c.rand.IntN(len(list))].ID, list[len(list)-1].ID, "task-999"} {
		order := map[string]any{
			"queues": q, "case": id, "asked": map[string]string{"loop.safety": "permissive", "agent": "theirs"},
		}
		o := client.StartWorkflowOptions{ID: fmt.Sprintf("strange:%d:%d", i, n), TaskQueue: q.Board}
		_, err := stranger.ExecuteWorkflow(c.t.Context(), o, flow.TaskName, order)
		c.must(err)
	}
	c.strange++
}

// endAsStranger ends the workflows of half of the tasks that are worked.
func (c *chaos) endAsStranger() {
	stranger := c.dialAsStranger()
	all, err := stranger.ListWorkflow(c.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
		Query: `ExecutionStatus = "Running" AND WorkflowId STARTS_WITH "task:"`,
	})
	c.must(err)
	for _, one := range all.Executions {
		if c.rand.IntN(2) == 0 {
			err := stranger.TerminateWorkflow(c.t.Context(), one.Execution.WorkflowId, "", "a stranger's")
			var gone *serviceerror.NotFound
			if !errors.As(err, &gone) {
				c.must(err)
			}
			c.ended++
		}
	}
}

func (c *chaos) pullFirst() {
	gittest.Git(c.t, filepath.Join(c.dir, "n0"), "pull", "-q", "--rebase", "origin", "main")
}

func (c *chaos) refusePushes() {
	hook := filepath.Join(c.remote, "hooks", "pre-receive")
	c.must(os.WriteFile(hook, []byte("#!/bin/sh\necho not now >&2\nexit 1\n"), 0o700)) //nolint:gosec // git runs it
	c.lasts()
	c.must(os.Remove(hook))
}

// lose ends all that runs on a machine, and makes a new one with its name.
func (c *chaos) lose(n int) {
	c.workers[n].end(syscall.SIGKILL)
	c.endBelow(filepath.Join(c.dir, fmt.Sprint("state-", n)))
	for _, dir := range []string{"state-", "n"} {
		c.must(os.RemoveAll(filepath.Join(c.dir, fmt.Sprint(dir, n))))
	}
	gittest.Git(c.t, c.dir, "clone", "-q", c.remote, fmt.Sprint("n", n))
	c.workers[n], c.lossy = c.startWorker(n), true
}

// endBelow ends what runs in a folder, or names it, until nothing does any more.
func (c *chaos) endBelow(dir string) {
	for range 100 {
		left := c.running(dir)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-time.After(20 * time.Millisecond)
	}
	c.t.Fatalf("what runs in %s does not end", dir)
}

// running are the processes in a folder, and those whose command names it.
func (c *chaos) running(dir string) (pids []int) {
	all, err := filepath.Glob("/proc/[0-9]*")
	c.must(err)
	for _, p := range all {
		cwd, _ := os.Readlink(filepath.Join(p, "cwd"))
		line, _ := os.ReadFile(filepath.Join(p, "cmdline")) //nolint:gosec // it may have ended
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(p), "%d", &pid); err != nil || pid == os.Getpid() {
			continue
		}
		if strings.HasPrefix(cwd+"/", dir+"/") || bytes.Contains(line, []byte(dir+"/")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// putBack puts the board back from the copy that was made when it was put back before, and makes a new copy.
func (c *chaos) putBack() {
	if c.copied != "" {
		c.database.PutBack(c.t, "postgres", c.schema, c.copied)
		c.lossy = true
	}
	c.copied = c.database.Dump(c.t, "postgres", c.schema)
}

// task is one of the board's.
type task struct{ ID, Title, Status, Why string }

func (c *chaos) board() (list []task) {
	c.t.Helper()
	out := c.run("pawl", "case", "list", "--all", "--json")
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		var one task
		c.must(json.Unmarshal(lines.Bytes(), &one))
		list = append(list, one)
	}
	return list
}

// actAsPerson decides what waits for one. Any of it may come too late: the machines work on.
func (c *chaos) actAsPerson() {
	c.direct()
	for _, one := range c.board() {
		var args []string
		switch one.Status {
		case "review":
			args = [][]string{
				{"case", "approve", one.ID}, {"case", "approve", one.ID},
				{"case", "redo", one.ID, "--feedback", "Another line."}, {"case", "reject", one.ID},
			}[c.rand.IntN(4)]
		case "blocked":
			args = [][]string{
				{"answer", one.ID, "blue-please"}, {"case", "retry", one.ID}, {"case", "rollback", one.ID},
			}[c.rand.IntN(3)]
		case "failed", "timeout":
			args = []string{"case", "retry", one.ID}
		case "deferred":
			args = []string{"case", "undefer", one.ID}
		default:
			continue
		}
		if _, err := c.try(append([]string{"pawl"}, args...)...); err != nil {
			c.t.Logf("a person at %s (%s): %v", one.ID, one.Status, err)
		}
	}
}

// finish waits until all is done, as long as more and more is, and holds the board to what it promises.
func (c *chaos) finish() {
	c.t.Helper()
	last := c.tasks
	c.add(1)
	const patience = 5 * time.Minute
	least, since := -1, time.Now()
	var list []task
	for open := 1; open > 0; {
		c.actAsPerson()
		list, open = c.board(), 0
		for _, one := range list {
			if one.Status != "done" {
				open++
			}
		}
		if least < 0 || open < least {
			least, since = open, time.Now()
		}
		if time.Since(since) > patience {
			for _, one := range list {
				if one.Status != "done" {
					c.t.Errorf("%s is %s: %s", one.ID, one.Status, one.Why)
				}
			}
			break
		}
		<-time.After(time.Second)
	}
	_, err := c.try("pawl", "autopilot", "stop")
	c.must(err)
	for _, w := range c.workers[1:] {
		w.end(syscall.SIGTERM)
	}
	c.holdsOwnWork(list)
	c.holdsSeenTrees()
	c.usesLastConfiguration(last)
	c.refusesStrangers()
	c.leavesNothing()
	c.t.Logf("%d faults: %d tasks of %d are on the board and done; a stranger ordered %d times, and ended %d workflows",
		*chaosFaults, len(list), c.tasks, c.strange, c.ended)
}

// holdsOwnWork fails the test unless the work of each task is there once.
func (c *chaos) holdsOwnWork(list []task) {
	lines := strings.Split(gittest.Git(c.t, c.remote, "grep", "-h", "", "main", "--", "list.*"), "\n")
	for _, one := range list {
		nonce, _, _ := strings.Cut(one.Title, ":")
		n := 0
		for _, l := range lines {
			if l == nonce {
				n++
			}
		}
		if one.Status == "done" && n != 1 {
			c.t.Errorf("the work of %s (%s) is on main %d times", one.ID, one.Title, n)
		}
	}
}

// holdsSeenTrees fails the test if something was pushed that the gate of its base had not seen.
func (c *chaos) holdsSeenTrees() {
	text, err := os.ReadFile(filepath.Join(c.dir, "seen"))
	c.must(err)
	seen := map[string]bool{}
	for l := range strings.Lines(string(text)) {
		seen[strings.TrimSpace(l)] = true
	}
	moved, err := os.ReadFile(filepath.Join(c.remote, "logs", "refs", "heads", "main"))
	c.must(err)
	version := regexp.MustCompile(`(?m)^V=(\d+)$`)
	landed := 0
	for l := range strings.Lines(string(moved)) {
		f := strings.Fields(l)
		base, tip := f[0], f[1]
		if strings.HasPrefix(gittest.Git(c.t, c.remote, "show", "-s", "--format=%s", tip), "person:") {
			continue
		}
		landed++
		tree := gittest.Git(c.t, c.remote, "rev-parse", tip+"^{tree}")
		v := version.FindStringSubmatch(gittest.Git(c.t, c.remote, "show", base+":gate.sh"))[1]
		if !seen[tree+" "+v] {
			c.t.Errorf("%s was pushed on %s, and gate %s has not seen it", tip, base, v)
		}
	}
	c.t.Logf("%d pushes of work, all seen by the gate of their base", landed)
}

// usesLastConfiguration fails the test unless the last task was worked with the configuration of the remote's branch.
func (c *chaos) usesLastConfiguration(last int) {
	text, err := os.ReadFile(filepath.Join(c.dir, "began"))
	c.must(err)
	if want := fmt.Sprintf("nonce-%d v%d\n", last, c.version); !strings.Contains(string(text), want) {
		c.t.Errorf("no agent was started as %q", want)
	}
}

// refusesStrangers fails the test unless a worker said that it refused what a stranger ordered.
func (c *chaos) refusesStrangers() {
	if c.strange == 0 {
		return
	}
	said := ""
	for n := range c.workers {
		text, _ := os.ReadFile(filepath.Join(c.dir, fmt.Sprint("said-", n)))
		said += string(text)
	}
	if !strings.Contains(said, "order for task-999") {
		c.t.Errorf("no worker says that it refused a stranger's order for task-999:\n%s", said)
	}
}

// leavesNothing fails the test if a process is left, or one had a fault of its own.
func (c *chaos) leavesNothing() {
	for n := range c.workers {
		for _, pid := range c.running(filepath.Join(c.dir, fmt.Sprint("state-", n))) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			c.t.Errorf("process %d is left: %q", pid, line)
		}
		text, err := os.ReadFile(filepath.Join(c.dir, fmt.Sprint("said-", n)))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		c.must(err)
		for _, wrong := range []string{"panic:", "DATA RACE", "fatal error:"} {
			if bytes.Contains(text, []byte(wrong)) {
				c.t.Errorf("machine %d said %q", n, wrong)
			}
		}
	}
}
