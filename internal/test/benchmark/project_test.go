package benchmark

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// project is a folder with a configuration whose agent is a script, and a
// state folder beside it.
type project struct {
	level     string // of safety; "" is permissive
	b         *testing.B
	dir       string
	state     string
	agentPath string
}

// newProject makes one below dir; script is the agent's, after its #! line.
func newProject(b *testing.B, dir, name, script string) *project {
	b.Helper()
	p := &project{b: b, dir: filepath.Join(dir, name, "project"), state: filepath.Join(dir, name, "state")}
	p.agentPath = filepath.Join(dir, name, "agent")
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		b.Fatal(err)
	}
	p.write("pawl.yaml", fmt.Sprintf("agents:\n  noop: {command: [%q]}\nprocedures:\n  noop: {agent: noop, act: [{content: do nothing}]}\n", p.agentPath))
	if err := os.WriteFile(p.agentPath, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		b.Fatal(err)
	}
	return p
}

func (p *project) write(name, content string) {
	p.b.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o644); err != nil {
		p.b.Fatal(err)
	}
}

// fill writes n files in folders of a hundred.
func (p *project) fill(n int) {
	p.b.Helper()
	for i := range n {
		dir := fmt.Sprintf("d%02d", i/100)
		if err := os.MkdirAll(filepath.Join(p.dir, dir), 0o755); err != nil {
			p.b.Fatal(err)
		}
		p.write(fmt.Sprintf("%s/f%02d", dir, i%100), fmt.Sprintf("file %d\nwith two lines\n", i))
	}
}

// commit makes the folder a git repository with all of it committed.
func (p *project) commit() {
	p.b.Helper()
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "all"}} {
		c := exec.Command("git", args...)
		c.Dir = p.dir
		if out, err := c.CombinedOutput(); err != nil {
			p.b.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

const runBound = 5 * time.Minute

// command is one run of pawl with n iterations. The bound on it is for a pawl
// that hangs.
func (p *project) command(ctx context.Context, n int) *exec.Cmd {
	c := exec.CommandContext(ctx, pawl(p.b), "run", "noop", "-n", fmt.Sprint(n), "-q", "--safety", cmp.Or(p.level, "permissive"), "--fresh")
	c.Dir = p.dir
	c.Env = append(os.Environ(), "XDG_STATE_HOME="+p.state)
	return c
}

// loop runs pawl for n iterations and checks that all were performed.
func (p *project) loop(n int) cost {
	p.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runBound)
	defer cancel()
	c := timed(p.b, p.command(ctx, n))
	results, err := filepath.Glob(filepath.Join(p.state, "pawl", "*", "runs", "*", fmt.Sprint(n), "agent.result.json"))
	if err != nil || len(results) == 0 {
		p.b.Fatalf("the run has no iteration %d: %v", n, err)
	}
	for _, path := range results { // so that the next run is seen by its own
		if err := os.Remove(path); err != nil {
			p.b.Fatal(err)
		}
	}
	return c
}

// bash runs the same agent n times in a while loop, which keeps nothing.
func (p *project) bash(n int) cost {
	p.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runBound)
	defer cancel()
	script := `i=0; while [ $i -lt "$1" ]; do "$2" </dev/null >/dev/null; i=$((i+1)); done`
	c := exec.CommandContext(ctx, "bash", "-c", script, "bash", fmt.Sprint(n), p.agentPath)
	c.Dir = p.dir
	return timed(p.b, c)
}

// timed runs c; the CPU time is that of all its descendants too.
func timed(b *testing.B, c *exec.Cmd) cost {
	b.Helper()
	began := time.Now()
	out, err := c.CombinedOutput()
	wall := time.Since(began)
	if err != nil {
		b.Fatalf("%v: %v\n%s", c.Args, err, out)
	}
	return cost{wall, c.ProcessState.UserTime() + c.ProcessState.SystemTime()}
}
