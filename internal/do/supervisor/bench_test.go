package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func newBenchRun(b *testing.B) (*Client, Job) {
	b.Helper()
	dir := b.TempDir()
	c, err := Start(context.Background(), Options{
		RunDir: filepath.Join(dir, "run"), Exe: os.Args[0], Args: []string{"__supervise"},
		Run: fmt.Sprintf("bench-%d-%d", os.Getpid(), time.Now().UnixNano()),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.Error(err)
		}
	})
	return c, Job{Files: filepath.Join(dir, "run", "job"), Dir: dir, Args: []string{"/bin/true"}, Env: os.Environ(), Parser: "json"}
}

// BenchmarkNoopJob is a job that does nothing, through the supervisor and, in
// the same run, by plain fork and exec; extra-us is the difference, elapsed-us
// what the supervisor measures from before the fork to the end.
func BenchmarkNoopJob(b *testing.B) {
	c, job := newBenchRun(b)
	base := job.Files
	var through, within, plain time.Duration
	for i := 0; b.Loop(); i++ {
		job.ID = fmt.Sprint(i)
		job.Files = base + job.ID
		began := time.Now()
		r, err := c.Run(context.Background(), job, nil)
		if err != nil {
			b.Fatal(err)
		}
		within += r.Elapsed
		through += time.Since(began)
		began = time.Now()
		forkExecWait(b)
		plain += time.Since(began)
	}
	n := float64(b.N)
	b.ReportMetric(float64(through.Microseconds())/n, "job-us")
	b.ReportMetric(float64(within.Microseconds())/n, "elapsed-us")
	b.ReportMetric(float64(plain.Microseconds())/n, "forkexec-us")
	b.ReportMetric(float64((through-plain).Microseconds())/n, "extra-us")
}

func forkExecWait(b *testing.B) {
	b.Helper()
	p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{
		Env: os.Environ(), Files: []*os.File{nil, nil, nil}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkOutput1GB is an agent that prints 1 GB, in lines and as one line.
// extra-MB is what the supervisor's private memory peaks at over idle.
func BenchmarkOutput1GB(b *testing.B) {
	for name, script := range map[string]string{
		"lines":    "yes 'the quick brown fox jumps over the lazy dog, and so on until the line is long enough to be one' | head -c 1000000000",
		"one-line": "head -c 1000000000 /dev/zero | tr '\\0' x",
	} {
		b.Run(name, func(b *testing.B) {
			c, job := newBenchRun(b)
			job.Args = []string{"/bin/sh", "-c", script}
			job.Parser = "text"
			base := job.Files
			pid := c.currentSession().status.Supervisor.PID
			before := privateMB(pid)
			b.SetBytes(1_000_000_000)
			for i := 0; b.Loop(); i++ {
				job.ID = fmt.Sprint(i)
				job.Files = base + job.ID
				if _, err := c.Run(context.Background(), job, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(before, "idle-MB")
			b.ReportMetric(statusMB(pid, "VmHWM:")-statusMB(pid, "RssFile:")-before, "extra-MB")
		})
	}
}

// BenchmarkStart is starting a supervisor and closing it; private-MB is what
// one that is idle costs.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	var memory float64
	for i := 0; b.Loop(); i++ {
		c, err := Start(context.Background(), Options{
			RunDir: filepath.Join(dir, fmt.Sprint(i)), Exe: os.Args[0], Args: []string{"__supervise"},
			Run: fmt.Sprintf("bench-%d-%d", os.Getpid(), i),
		})
		if err != nil {
			b.Fatal(err)
		}
		memory = max(memory, privateMB(c.currentSession().status.Supervisor.PID))
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(memory, "private-MB")
}

// privateMB is the memory that the process shares with nobody.
func privateMB(pid int) float64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	kb := 0
	for line := range strings.Lines(string(data)) {
		var n int
		if _, err := fmt.Sscanf(line, "Private_Dirty: %d kB", &n); err == nil {
			kb += n
		}
	}
	return float64(kb) / 1024
}

func statusMB(pid int, field string) float64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			var kb int
			_, _ = fmt.Sscan(rest, &kb)
			return float64(kb) / 1024
		}
	}
	return 0
}
