package web

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/ask/web/listen"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// benchServer is the variable with the state folder of a server that a
// benchmark starts in a process of its own, so that its memory can be told
// from that of its viewers.
const benchServer = "PAWL_BENCH_SERVER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(benchServer); dir != "" {
		if err := serveBench(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	neighbourly.Timeout = 0 // how long a busy machine takes is no matter of tests
	os.Exit(m.Run())
}

// serveBench serves until its stdin ends.
func serveBench(dir string) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	db, err := store.Open(ctx, filepath.Join(dir, "pawl.db"))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	listener, err := listen.Open(ctx, listen.Address{Address: "127.0.0.1:0"})
	if err != nil {
		return err
	}
	s := New(listener, Options{
		Operator: action.New(action.Options{
			Store: db, Root: "/repo", Log: func(string) *slog.Logger { return slog.New(slog.DiscardHandler) },
			Planner: func(string, planner.Flags) (*planner.Planner, error) {
				return &planner.Planner{Config: &config.Config{}}, nil
			},
		}),
		StateDir: dir, Token: testToken,
	})
	fmt.Println(listener.URL())
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		stop()
	}()
	return s.Serve(ctx)
}

// viewers starts a server of its own with so many streams open, each of which
// sends the time at which an event came in.
func viewers(b *testing.B, r *rig, n int) (pid int, came chan time.Time) {
	b.Helper()
	c := exec.CommandContext(context.WithoutCancel(b.Context()), os.Args[0])
	c.Env = append(os.Environ(), benchServer+"="+r.dir)
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = in.Close(); _ = c.Wait() })
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	came = make(chan time.Time, 100*n)
	for range n {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, strings.TrimSpace(url)+rest.Base+"/events", http.NoBody)
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+testToken)
		res, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = res.Body.Close() })
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() {
			if lines.Text() == "event: hello" { // it is there now
				break
			}
		}
		go func() {
			for lines.Scan() {
				if lines.Text() == "event: journal" {
					came <- time.Now()
				}
			}
		}()
	}
	return c.Process.Pid, came
}

// memory is what a process holds and held at most, in MB.
func memory(b *testing.B, pid int) (now, most float64) {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip("the memory of a process is read from /proc")
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.ParseFloat(f[1], 64)
		switch f[0] {
		case "VmRSS:":
			now = kb / 1024
		case "VmHWM:":
			most = kb / 1024
		}
	}
	return now, most
}

func benchRig(b *testing.B) *rig {
	b.Helper()
	dir := b.TempDir()
	db, err := store.Open(b.Context(), filepath.Join(dir, "pawl.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	return &rig{store: db, dir: dir}
}

// BenchmarkEvent is how long an event takes from its commit by one process to a
// reader of another one, with 20 viewers.
func BenchmarkEvent(b *testing.B) {
	r := benchRig(b)
	pid, came := viewers(b, r, 20)
	var took []time.Duration
	for b.Loop() {
		if _, err := journal.Append(b.Context(), r.store, "abc123", noon, journal.Warning, journal.Notice{Text: "x"}); err != nil {
			b.Fatal(err)
		}
		stored := time.Now()
		for range 20 {
			took = append(took, (<-came).Sub(stored))
		}
	}
	slices.Sort(took)
	now, most := memory(b, pid)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "max-ms")
	b.ReportMetric(now, "MB")
	b.ReportMetric(most, "peak-MB")
}
