package benchmark

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// chain is a workflow of n steps that do nothing, each after the one before.
func chain(n int) string {
	var b strings.Builder
	b.WriteString("name: chain\nsteps:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {id: s%d, run: ':'", i)
		if i > 0 {
			fmt.Fprintf(&b, ", needs: s%d", i-1)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// BenchmarkWorkflowStep is pawl's own time for a step that does nothing, its
// result kept, against a shell that starts the same command.
func BenchmarkWorkflowStep(b *testing.B) {
	b.Run("memory", func(b *testing.B) {
		dir, err := newFolder(memoryDir)
		if err != nil {
			b.Skipf("no file system in memory: %v", err)
		}
		b.Cleanup(func() { _ = os.RemoveAll(dir) })
		workflowStep(b, dir, "tmpfs")
	})
	b.Run("disk", func(b *testing.B) { workflowStep(b, diskDir(b), "disk") })
}

func workflowStep(b *testing.B, dir, where string) {
	const rounds, n = 5, 200
	p := newProject(b, dir, "steps", "exit 0")
	p.write("chain.yaml", chain(n))
	p.workflow("chain.yaml") // the database is made
	for b.Loop() {
		wall, cpu := interleave(rounds, n, func() cost { return p.workflow("chain.yaml") }, func() cost { return p.shell(n) })
		report(b, "step of a workflow, "+where+": pawl's own", (wall[0]-wall[1])/1000, "ms", atMost(5))
		report(b, "step of a workflow, "+where+": sh alone", wall[1]/1000, "ms", nil)
		report(b, "CPU of a step, "+where+": pawl's own", (cpu[0]-cpu[1])/1000, "ms", nil)
	}
}

// BenchmarkIterate is what iterating adds to a workflow that succeeds at once:
// of ten seconds, 2 % are 200 ms.
func BenchmarkIterate(b *testing.B) {
	const rounds = 9
	p := newProject(b, diskDir(b), "iterate", "exit 0")
	p.write("chain.yaml", chain(10))
	p.workflow("chain.yaml")
	for b.Loop() {
		wall, _ := interleave(rounds, 1, func() cost { return p.workflow("chain.yaml") }, func() cost { return p.workflow("chain.yaml", "--iterate") })
		report(b, "a workflow of 10 steps", wall[0]/1000, "ms", nil)
		report(b, "iterate mode adds", (wall[1]-wall[0])/1000, "ms", atMost(200))
	}
}

// BenchmarkHistory is what 1,000 iterations of a workflow cost in private
// memory of pawl and its supervisors, over one.
func BenchmarkHistory(b *testing.B) {
	p := newProject(b, diskDir(b), "history", "exit 0")
	// Each failure differs in a word, or the guard against repetition ends the run.
	p.write("red.yaml", "name: red\nsteps:\n  - {id: green, run: echo done}\n  - {id: red, needs: green, run: 'echo \"cannot find $(echo $PAWL_ITERATION | tr 0-9 a-j)q\"; exit 1'}\n")
	for b.Loop() {
		one := p.peakOf(p.workflowCommand(context.Background(), "red.yaml", "--iterate", "-n", "2"))
		all := p.peakOf(p.workflowCommand(context.Background(), "red.yaml", "--iterate", "-n", "1000"))
		report(b, "memory, 1,000 iterations of history", all-one, "MiB", atMost(10))
	}
}

func (p *project) workflowCommand(ctx context.Context, file string, more ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, pawl(p.b), append([]string{"run", file, "-q", "--safety", "permissive", "--fresh"}, more...)...)
	c.Dir = p.dir
	c.Env = append(os.Environ(), "XDG_STATE_HOME="+p.state)
	return c
}

// workflow runs a workflow to its end.
func (p *project) workflow(file string, more ...string) cost {
	p.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runBound)
	defer cancel()
	return timed(p.b, p.workflowCommand(ctx, file, more...))
}

// shell starts the command of a step n times.
func (p *project) shell(n int) cost {
	p.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runBound)
	defer cancel()
	c := exec.CommandContext(ctx, "sh", "-c", `i=0; while [ $i -lt "$1" ]; do sh -e -c : </dev/null >/dev/null; i=$((i+1)); done`, "sh", fmt.Sprint(n))
	c.Dir = p.dir
	return timed(p.b, c)
}
