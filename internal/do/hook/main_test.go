package hook

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/boxnet"
	"github.com/pawl-dev/pawl/internal/do/egress"
	"github.com/pawl-dev/pawl/internal/do/netstack"
	"github.com/pawl-dev/pawl/internal/do/reexec"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// The test binary is the supervisor of the commands.
func TestMain(m *testing.M) {
	if code, ok := reexec.Finish(supervisor.Rest{Ways: boxnet.Ways{Proxy: egress.Out(os.Getenv), Stack: netstack.Serve}}); ok {
		os.Exit(code)
	}
	// Of a program that is built with -race each end takes a second, else.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// heard collects what a person was told.
type heard struct {
	mu    sync.Mutex
	lines []string
}

func (h *heard) say(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, text)
}

func (h *heard) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.lines, "\n")
}

// runner makes a runner whose commands work in a new folder.
func runner(t *testing.T, o Options) (*Runner, *heard) {
	t.Helper()
	h := &heard{}
	o.Root, o.Dir, o.Args, o.Say = t.TempDir(), filepath.Join(t.TempDir(), "hooks"), []string{reexec.Supervise}, h.say
	o.Whole, o.Environ = os.Environ(), []string{"PATH=" + os.Getenv("PATH"), "BOXED=yes"}
	if o.Grace == 0 {
		o.Grace = 50 * time.Millisecond
	}
	r := New(o)
	t.Cleanup(func() { r.Close(context.Background()) })
	return r, h
}

// sh is a command that works in the project, and has all the time that a slow machine
// may need.
func sh(line string) Command {
	return Command{Line: "cd \"$PAWL_ROOT\"\n" + line, Timeout: time.Minute}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// tryHooks carries out the hooks of e, one after the other.
func (r *Runner) tryHooks(ctx context.Context, e Event) []Delivery {
	if r == nil {
		return nil
	}
	e = e.completeEvent(time.Now())
	return lists.Each(r.hookJobs(e), func(j job) Delivery { return r.deliverJob(ctx, j) })
}
