package benchmark

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkIdle is what an autopilot that stays and a server cost the processor when
// nothing happens.
func BenchmarkIdle(b *testing.B) {
	for name, args := range map[string][]string{"autopilot --keep": {"autopilot", "--keep", "-q"}, "serve": {"serve"}} {
		b.Run(args[0], func(b *testing.B) {
			p := boardProject(b, "idle-"+args[0], "echo x >x; echo '<promise>COMPLETE</promise>'", 1, 2)
			for b.Loop() {
				report(b, "idle "+name, p.idle(args...), "%", atMost(0.1))
			}
		})
	}
}

// idle is the share of one core, in percent, that a command takes once it has begun.
func (p *project) idle(args ...string) float64 {
	p.b.Helper()
	const begins, lasts = 10 * time.Second, 20 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), runBound)
	defer cancel()
	c := p.pawl(ctx, args...)
	if err := c.Start(); err != nil {
		p.b.Fatal(err)
	}
	<-time.After(begins)
	before := onCPU(c.Process.Pid)
	<-time.After(lasts)
	spent := onCPU(c.Process.Pid) - before
	cancel()
	if err := c.Wait(); before == 0 || spent <= 0 {
		p.b.Fatalf("%v ended, or did nothing: %v", c.Args, err)
	}
	return 100 * float64(spent) / float64(lasts)
}

// onCPU is how long the threads of a process were on a processor; 0 when it is gone.
func onCPU(pid int) (sum time.Duration) {
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, name := range names {
		data, _ := os.ReadFile(name)
		var one time.Duration
		_, _ = fmt.Sscan(string(data), &one)
		sum += one
	}
	return sum
}
