package boxpolicy

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

// BenchmarkBox runs programs in the box that an agent has on this machine, and without one in turn: the medians
// of the same minutes are compared, also of the processor's time, which other programs change less. Each program
// works where both may write.
func BenchmarkBox(b *testing.B) {
	v := sandbox.Judge(sandbox.Normal, sandbox.Probe(b.Context()), false)
	work := b.TempDir()
	o := Options{StateDir: b.TempDir(), Env: os.Environ(), Say: b.Logf, Plan: runplan.Plan{Root: work, Safety: sandbox.Normal}}
	o.Config = &config.Config{}
	policy := Make(b.Context(), o, v).Run.Setup
	policy = *policy.TempIn(b.TempDir())
	for name, script := range map[string]string{
		"start":     "",
		"processor": "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done",
		"files":     "for i in $(seq 5000); do echo $i >f$i; read x <f$i; done; rm f*",
		"processes": "for i in $(seq 500); do /bin/true; done",
	} {
		b.Run(name, func(b *testing.B) {
			var took, busy [2][]time.Duration
			for b.Loop() {
				for i, p := range []*sandbox.Policy{nil, &policy} {
					begun := time.Now()
					busy[i] = append(busy[i], runScript(b, p, work, script))
					took[i] = append(took[i], time.Since(begun))
				}
			}
			outside, inside := median(took[0]), median(took[1])
			b.ReportMetric(outside.Seconds()*1000, "ms-outside")
			b.ReportMetric((inside-outside).Seconds()*1000, "ms-more")
			b.ReportMetric(100*(inside-outside).Seconds()/outside.Seconds(), "%-more")
			outside, inside = median(busy[0]), median(busy[1])
			b.ReportMetric((inside-outside).Seconds()*1000, "CPU-ms-more")
			b.ReportMetric(100*(inside-outside).Seconds()/outside.Seconds(), "CPU-%-more")
		})
	}
}

func median(of []time.Duration) time.Duration { return slices.Sorted(slices.Values(of))[len(of)/2] }

// runScript runs a script of the shell, or the program "true", in a box if there is a policy, and returns the
// time that the processor worked.
func runScript(b *testing.B, policy *sandbox.Policy, dir, script string) time.Duration {
	b.Helper()
	c := process.Command{Args: []string{"sh", "-c", script}, Env: os.Environ(), Dir: dir}
	if strings.TrimSpace(script) == "" {
		c.Args = []string{"true"}
	}
	path, err := c.Resolve()
	if err != nil {
		b.Fatal(err)
	}
	if policy == nil {
		cmd := exec.Cmd{Path: path, Args: c.Args, Dir: dir, Env: c.Env}
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	c, entry, err := sandbox.Prepare(c, *policy)
	if err != nil {
		b.Fatal(err)
	}
	defer entry.Close()
	cmd := exec.Cmd{Path: c.Path, Args: c.Args, Dir: c.Dir, Env: c.Env, ExtraFiles: c.Extra, SysProcAttr: c.Sys}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	if err := entry.Wait(); err != nil {
		b.Fatal(err)
	}
	entry.Outcome(func(syscall.WaitStatus) {})
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
