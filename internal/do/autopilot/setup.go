package autopilot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
)

// setupWithin bounds each command that sets a workspace up.
const setupWithin = 30 * time.Minute

// errSetup is that a command of workspace.setup failed.
var errSetup = errors.New("setting up the workspace")

// longStep is how long a step before a run takes until there is a notice.
const longStep = 3 * time.Second

// takesLong gives a notice of what is being done for a task, unless it ends soon.
func (p *reporter) takesLong(task, what string) (end func()) {
	timer := time.AfterFunc(longStep, func() { p.notify(Notice{Kind: Told, Case: task, Text: task + ": " + what}) })
	return func() { timer.Stop() }
}

// setUpWorkspace runs the commands that a new workspace needs, in the sandbox of gates,
// under a supervisor of their own.
func (p *workspaces) setUpWorkspace(ctx context.Context, w pool.Workspace, plan runplan.Plan) error {
	for _, note := range w.Notes {
		p.warnAbout(w.ID, note)
	}
	if len(w.Setup) == 0 {
		return nil
	}
	defer p.takesLong(w.ID, "its workspace is being set up: "+strings.Join(w.Setup, " && "))()
	dir := setupDir(p.o.StateDir, w.ID)
	client, err := supervisor.Start(ctx, supervisor.Options{
		RunDir: dir, Exe: plan.Exe, Args: plan.Args, Lease: plan.Lease, Run: "setup-" + w.ID,
		Unboxed: plan.Box == nil,
	})
	if err != nil {
		return fmt.Errorf("cannot set up the workspace: %v", err)
	}
	for i, line := range w.Setup {
		if err = setupCommand(ctx, client, dir, i, line, w, plan); err != nil {
			break
		}
	}
	if cerr := client.Close(); err == nil {
		err = cerr
	}
	_ = os.RemoveAll(filepath.Join(dir, "tmp")) // it goes with the task at the latest
	if err != nil {
		return err
	}
	return p.o.Pool.SetupDone(ctx, w)
}

func setupCommand(ctx context.Context, client *supervisor.Client, dir string, i int, line string,
	w pool.Workspace, plan runplan.Plan) error {
	env, box := slices.Concat(plan.Environ, plan.Marks), (*sandbox.Policy)(nil)
	if plan.Box != nil {
		env, box = slices.Concat(plan.Environ, plan.Box.Caches, plan.Marks), &plan.Box.Setup
	}
	// The id is new each time: a set-up that failed is tried again.
	id := strconv.Itoa(i+1) + "-" + storedrun.NewID()
	res, err := client.Run(ctx, supervisor.Job{
		ID: id, Files: filepath.Join(dir, strconv.Itoa(i+1)), Args: []string{"sh", "-c", line},
		Dir: w.Dir, Env: env, Merge: true, Box: box,
		Limits: supervisor.Limits{Wall: setupWithin},
	}, nil)
	switch {
	case err != nil:
		return fmt.Errorf("cannot set up the workspace with %q: %v", line, err)
	case res.Error != "":
		return fmt.Errorf("cannot set up the workspace with %q: %s", line, res.Error)
	case res.Exit.Code != 0 || res.Exit.Ended != loop.NotEnded:
		said := fmt.Sprintf("with %q failed with status %d: %s", line, res.Exit.Code, lastLines(res.Stdout))
		return fmt.Errorf("%w %s", errSetup, strings.TrimSuffix(said, ": "))
	}
	return nil
}

// lastLines is the end of an output, for a message.
func lastLines(out supervisor.Stream) string {
	const most = 3
	lines := strings.Split(strings.TrimSpace(cmp.Or(out.Tail, out.Head)), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "; ")
}
