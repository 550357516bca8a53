package benchmark

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkPrivateWork is what a run in a private workspace adds in a repository of 5,000
// files: the first run of a procedure, the next, an iteration with nothing to deliver, and
// the delivery of 1,000 changed files; beside a bash loop with the same agent.
func BenchmarkPrivateWork(b *testing.B) {
	const rounds, n = 5, 8 // ten iterations without a change would rest the run
	dir := diskDir(b)
	tracked, plain := newProject(b, dir, "tracked", `date +%s%N >"$0.started"`), newProject(b, dir, "plain", "exit 0")
	edits := newProject(b, dir, "edits", `for f in d0?/f*; do echo "edit $$" >"$f"; done`)
	for _, p := range []*project{tracked, plain, edits} {
		p.fill(5000)
	}
	tracked.commit()
	edits.commit()
	edits.loop(1)
	for b.Loop() {
		wall, _ := interleave(rounds, 1, tracked.first, func() cost { return tracked.loop(1) },
			func() cost { return plain.loop(1) }, func() cost { return tracked.bash(1) }, tracked.start)
		report(b, "5,000 files: first run of one iteration", wall[0]/1000, "ms", atMost(1500))
		report(b, "5,000 files: the next such run", wall[1]/1000, "ms", nil)
		report(b, "5,000 files: the next such run, until its agent starts", wall[4]/1000, "ms", atMost(300))
		report(b, "5,000 files: such a run outside of git", wall[2]/1000, "ms", nil)
		report(b, "5,000 files: bash loop of one iteration", wall[3]/1000, "ms", nil)
		many := func(p *project) func() cost { return func() cost { return p.loop(n + 1) } }
		one := func(p *project) func() cost { return func() cost { return p.loop(1) } }
		wall, _ = interleave(rounds, 1, many(tracked), one(tracked), many(plain), one(plain))
		each := func(many, one float64) float64 { return (many - one) / n / 1000 }
		report(b, "5,000 files: an iteration, nothing to deliver", each(wall[0], wall[1]), "ms", nil)
		report(b, "5,000 files: an iteration outside of git", each(wall[2], wall[3]), "ms", nil)
		wall, _ = interleave(rounds, 1, func() cost { return edits.loop(1) }, func() cost { return tracked.loop(1) },
			func() cost { return edits.bash(1) })
		report(b, "1,000 changed files: snapshot and delivery", (wall[0]-wall[1]-wall[2])/1000, "ms", atMost(500))
		report(b, "1,000 changed files: the agent in a bash loop", wall[2]/1000, "ms", nil)
	}
}

// BenchmarkIgnored is what 60,000 files that git ignores add to a run's start, beside a
// copy of them by cp, and what the runs write to the disk.
func BenchmarkIgnored(b *testing.B) {
	const rounds, ignored = 3, 60_000
	dir := diskDir(b)
	p := newProject(b, dir, "ignored", "exit 0")
	p.fill(100)
	p.write(".gitignore", "node_modules/\n")
	p.commit()
	for i := range ignored {
		in := fmt.Sprintf("node_modules/p%03d/lib/s%d", i/100, i/10%10)
		if err := os.MkdirAll(filepath.Join(p.dir, in), 0o755); err != nil {
			b.Fatal(err)
		}
		p.write(fmt.Sprintf("%s/f%d.js", in, i%10), fmt.Sprintf("// file %d\n", i))
	}
	to := filepath.Join(dir, "copy")
	copied := func() cost {
		c := timed(b, exec.CommandContext(context.Background(), "cp", "-a", filepath.Join(p.dir, "node_modules"), to))
		if err := os.RemoveAll(to); err != nil {
			b.Fatal(err)
		}
		return c
	}
	for b.Loop() {
		wall, _ := interleave(rounds, 1, p.first, func() cost { return p.loop(1) }, copied)
		report(b, "60,000 ignored files: first run of one iteration", wall[0]/1000, "ms", nil)
		report(b, "60,000 ignored files: the next such run", wall[1]/1000, "ms", nil)
		report(b, "60,000 ignored files: cp -a of them", wall[2]/1000, "ms", nil)
		report(b, "60,000 ignored files: first run, ratio to cp -a", wall[0]/wall[2], "×", nil)
		before := p.used()
		p.loop(1)
		report(b, "60,000 ignored files: on disk, first runs", float64(before)/1e6, "MB", nil)
		report(b, "60,000 ignored files: on disk, one more run", float64(p.used()-before)/1e6, "MB", atMost(1))
	}
}

// first runs the procedure as if it had never run.
func (p *project) first() cost {
	p.b.Helper()
	if err := os.RemoveAll(p.state); err != nil {
		p.b.Fatal(err)
	}
	return p.loop(1)
}

// start is how long a run takes until its agent, which writes down when that is, starts.
func (p *project) start() cost {
	p.b.Helper()
	begin := time.Now()
	p.loop(1)
	text, err := os.ReadFile(p.agentPath + ".started")
	if err != nil {
		p.b.Fatal(err)
	}
	started, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		p.b.Fatal(err)
	}
	return cost{wall: time.Unix(0, started).Sub(begin)}
}

// used are the bytes on disk of pawl's state.
func (p *project) used() (bytes int64) {
	p.b.Helper()
	err := filepath.WalkDir(p.state, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			bytes += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return err
	})
	if err != nil {
		p.b.Fatal(err)
	}
	return bytes
}
