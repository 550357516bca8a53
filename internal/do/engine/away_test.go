package engine

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// What is the fault of a program that is being updated, and what is the agent's.
func TestAway(t *testing.T) {
	t.Parallel()
	dir, root := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(dir, "agent"), filepath.Join(root, "agent")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := &worker{session: &session{plan: Plan{Root: root}}}
	now := time.Now()
	failed := func(at time.Time) supervisor.Result {
		return supervisor.Result{StartedAt: at, Exit: loop.Exit{Code: 1}}
	}
	for name, c := range map[string]struct {
		program string
		res     supervisor.Result
		away    bool
	}{
		"it is gone":                 {dir + "/gone", failed(now), true},
		"it is gone, and that is ok": {dir + "/gone", supervisor.Result{StartedAt: now}, false},
		"a stop":                     {dir + "/gone", supervisor.Result{Exit: loop.Exit{Code: -1, Ended: loop.EndedStop}}, false},
		"it is new":                  {dir + "/agent", failed(now), true},
		"it is older":                {dir + "/agent", failed(now.Add(time.Hour)), false},
		"it is being written": {dir + "/agent", supervisor.Result{StartedAt: now.Add(time.Hour), Error: "text file busy",
			Exit: loop.Exit{Code: -1}}, true},
		"it worked for long": {dir + "/agent", supervisor.Result{StartedAt: now, Elapsed: time.Hour,
			Exit: loop.Exit{Code: 1}}, false},
		"a model answered": {dir + "/agent", supervisor.Result{StartedAt: now, Exit: loop.Exit{Code: 1},
			Agent: agent.Outcome{Usage: agent.Usage{Output: 9}}}, false},
		"it is of the work": {root + "/agent", failed(now), false},
	} {
		why, _ := w.away(supervisor.Job{Args: []string{c.program}}, c.res)
		if (why != "") != c.away {
			t.Errorf("%s: %q", name, why)
		}
	}
}
