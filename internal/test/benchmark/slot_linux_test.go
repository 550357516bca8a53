package benchmark

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// boardProject is a repository of 100 files with tasks, for an autopilot.
func boardProject(b *testing.B, name, script string, tasks, slots int) *project {
	b.Helper()
	p := newProject(b, diskDir(b), name, script)
	p.write("pawl.yaml", fmt.Sprintf("agent: noop\nagents:\n  noop: {command: [%q]}\nautopilot: {max_parallel: %d}\nverification: [\"true\"]\nloop: {safety: permissive}\n", p.agentPath, slots))
	p.fill(100)
	p.commit()
	var list strings.Builder
	for i := range tasks {
		fmt.Fprintf(&list, "{\"ref\":\"t%d\",\"title\":\"Task %d\"}\n", i, i)
	}
	add := p.pawl(b.Context(), "case", "add", "-f", "-")
	add.Stdin = strings.NewReader(list.String())
	timed(b, add)
	return p
}

// pawl is one command in the project.
func (p *project) pawl(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, pawl(p.b), args...)
	c.Dir = p.dir
	c.Env = append(os.Environ(), "XDG_STATE_HOME="+p.state)
	return c
}

// BenchmarkSlot is how long a slot of an autopilot is without an agent, task
// after task, and what the time is spent on.
func BenchmarkSlot(b *testing.B) {
	const tasks = 31
	for b.Loop() {
		log := filepath.Join(b.TempDir(), "agents")
		p := boardProject(b, "slot", fmt.Sprintf(`echo "$PAWL_CASE start $(date +%%s%%N)" >>%[1]q
echo "$PAWL_CASE" >"d00/$PAWL_CASE"
echo '<promise>COMPLETE</promise>'
echo "$PAWL_CASE end $(date +%%s%%N)" >>%[1]q`, log), tasks, 1)
		timed(b, p.pawl(b.Context(), "autopilot"))
		phases := [6][]float64{}
		all := p.turns(log)
		for i, t := range all[1:] {
			before := all[i]
			for n, d := range []time.Duration{
				t.agent.Sub(before.settled), before.settled.Sub(before.ended), t.started.Sub(before.settled),
				t.created.Sub(t.started), t.prompt.Sub(t.created), t.agent.Sub(t.prompt),
			} {
				phases[n] = append(phases[n], float64(d.Microseconds())/1e3)
			}
		}
		report(b, "a free slot: until the next agent runs", median(phases[0]), "ms", atMost(250))
		for n, name := range []string{"the choice", "workspace and plan", "first snapshot and prompt", "start of the agent"} {
			report(b, "a free slot: "+name, median(phases[n+2]), "ms", nil)
		}
		report(b, "a slot before it is free: verdict, collection", median(phases[1]), "ms", nil)
	}
}

// turn is one task in its slot.
type turn struct{ started, created, prompt, agent, ended, settled time.Time }

// turns are the tasks of an autopilot with one slot, in order; the agents
// noted in log when they began and ended.
func (p *project) turns(log string) []turn {
	p.b.Helper()
	paths, err := filepath.Glob(filepath.Join(p.state, "pawl", "*", "pawl.db"))
	if err != nil || len(paths) != 1 {
		p.b.Fatalf("databases %v: %v", paths, err)
	}
	db, err := store.Open(p.b.Context(), paths[0])
	if err != nil {
		p.b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	cases := map[string]*turn{}
	var order []string
	events := func(run string, see func(journal.Event)) {
		for e, err := range journal.Read(p.b.Context(), db, run, 0) {
			if err != nil {
				p.b.Fatal(err)
			}
			see(e)
		}
	}
	events(journal.Autopilot, func(e journal.Event) {
		var task journal.Task
		if json.Unmarshal(e.Data, &task) != nil || task.Case == "" {
			return
		}
		switch e.Kind {
		case journal.TaskStarted:
			order = append(order, task.Case)
			cases[task.Case] = &turn{started: e.At}
		case journal.TaskSettled:
			cases[task.Case].settled = e.At
			cases[task.Case].prompt = p.writtenAt("runs", task.Run, "1", "prompt*")
			events(task.Run, func(e journal.Event) {
				if e.Kind == journal.RunCreated {
					cases[task.Case].created = e.At
				}
			})
		}
	})
	noted, err := os.ReadFile(log)
	if err != nil {
		p.b.Fatal(err)
	}
	for line := range strings.Lines(string(noted)) {
		words := strings.Fields(line)
		ns, err := strconv.ParseInt(words[2], 10, 64)
		if err != nil {
			p.b.Fatal(err)
		}
		if words[1] == "start" {
			cases[words[0]].agent = time.Unix(0, ns)
		} else {
			cases[words[0]].ended = time.Unix(0, ns)
		}
	}
	var list []turn
	for _, id := range order {
		list = append(list, *cases[id])
	}
	return list
}

// writtenAt is when a file of the state folder was written.
func (p *project) writtenAt(pattern ...string) time.Time {
	p.b.Helper()
	paths, err := filepath.Glob(filepath.Join(append([]string{p.state, "pawl", "*"}, pattern...)...))
	if err != nil || len(paths) != 1 {
		p.b.Fatalf("files %v: %v, want one of %v", paths, err, pattern)
	}
	info, err := os.Stat(paths[0])
	if err != nil {
		p.b.Fatal(err)
	}
	return info.ModTime()
}

// BenchmarkFiftyLoops is the private memory of an autopilot with fifty agents
// at work and of their fifty supervisors, together; the agents' own is not
// counted.
func BenchmarkFiftyLoops(b *testing.B) {
	const loops = 50
	for _, c := range []struct{ name, script string }{
		{"silent agents", ""},
		{"agents that said 20 kB", "yes 'the quick brown fox jumps over the lazy dog' | head -c 20000\n"},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				ours, theirs := fiftyLoops(b, c.script, loops)
				report(b, "memory, 50 loops, "+c.name, ours+theirs, "MiB", atMost(200))
				report(b, "memory, 50 loops, "+c.name+": the autopilot", ours, "MiB", nil)
				report(b, "memory, 50 loops, "+c.name+": one supervisor", theirs/loops, "MiB", nil)
			}
		})
	}
}

// fiftyLoops waits until all agents are at work, and looks then.
func fiftyLoops(b *testing.B, script string, loops int) (ours, theirs float64) {
	b.Helper()
	dir := b.TempDir()
	gate := filepath.Join(dir, "gate") // opens for all agents at once
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		b.Fatal(err)
	}
	p := boardProject(b, "fifty", fmt.Sprintf("%secho ready >%q/\"$PAWL_CASE\"\n: <%q\necho '<promise>COMPLETE</promise>'\n", script, dir, gate), loops, loops)
	ctx, cancel := context.WithTimeout(b.Context(), runBound)
	defer cancel()
	c := p.pawl(ctx, "autopilot", "-q")
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	defer func() { // the gate stays open until the last agent has passed it
		open, err := os.OpenFile(gate, os.O_RDWR, 0)
		if err != nil {
			b.Fatal(err)
		}
		<-ended
		_ = open.Close()
	}()
	ready := func() bool {
		names, err := filepath.Glob(filepath.Join(dir, "task-*"))
		return err == nil && len(names) == loops
	}
	for !ready() {
		select {
		case <-ended:
			b.Fatal("the autopilot ended before all agents were at work")
		case <-time.After(50 * time.Millisecond):
		}
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 20 { // the most that was seen
		<-tick.C
		mine, sum := float64(private(c.Process.Pid))/1024, 0.0
		for _, pid := range children(c.Process.Pid) {
			if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.Contains(string(line), "\x00__supervise\x00") {
				sum += float64(private(pid)) / 1024
			}
		}
		if mine+sum > ours+theirs {
			ours, theirs = mine, sum
		}
	}
	return ours, theirs
}
