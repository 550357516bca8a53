package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/planner"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

func (a *app) resumeCommand() *cobra.Command {
	var f planner.Flags
	cmd := leaf("resume NAME|RUN", "Go on where a run was interrupted, paused, blocked or aborted", exactlyOne("a procedure or a run"),
		func(ctx context.Context, args []string) error { return a.resume(ctx, args[0], f) })
	cmd.Long = "Go on with a run. Cost, numbering and history stay. After an abort, a block or an answer\n" +
		"the guards count anew and the run gets a fresh allowance of iterations; at a limit, raise it.\n" +
		"The limits of a run that works are raised while it does, and hold from its next iteration."
	cmd.Example = "  pawl resume build\n  pawl resume 7k3f --max-iterations 20"
	limitFlags(cmd, &f)
	cmd.Flags().BoolVar(&f.Iterate, "iterate", false, "from now on go over the workflow until all its steps are done")
	cmd.Flags().StringVar(&f.Strategy, "strategy", "", "`NAME`: auto, conservative, aggressive, or one strategy for the rest of the run")
	cmd.Flags().StringVar(&f.Agent, "agent", "", "go on with the agent `NAME`")
	return cmd
}

func (a *app) resume(ctx context.Context, name string, f planner.Flags) error {
	var run sqlite.Run
	elsewhere := false
	err := a.withOperator(ctx, func(p *action.Operator) (err error) {
		name = a.runName(name)
		run, err = findRun(ctx, p.Store, p.Root, name)
		if imported, ierr := adoptFile(ctx, p.Store, p.Root, name, run, err); ierr == nil {
			run, err = imported, nil
		} else if !errors.Is(ierr, engine.ErrNoStateFile) {
			err = ierr
		}
		if err == nil {
			elsewhere, err = p.ResumeElsewhere(ctx, run, f)
		}
		if err == nil {
			f, err = action.StoredFlags(run, f)
		}
		return a.lookupError(err, name)
	})
	if err != nil || elsewhere {
		return err
	}
	a.dir = run.Root
	open := a.resumeRun
	if run.Kind == "workflow" {
		open = a.resumeWorkflow
	}
	s, err := open(ctx, run, f)
	if err != nil {
		return err
	}
	defer s.close()
	if s.store == nil {
		return fmt.Errorf("cannot resume run %s: its record cannot be opened", run.ID)
	}
	e, err := s.resumeEvent(ctx, run)
	if err != nil {
		return err
	}
	return s.driveOn(ctx, run.ID, e)
}

// driveOn goes on with a run.
func (s *session) driveOn(ctx context.Context, run string, e loop.Event) error {
	return s.drive(ctx, func(ctx context.Context, o engine.Options) (*engine.Driver, error) {
		return engine.Resume(ctx, o, run, e)
	})
}

// adoptFile makes a run of a state file that the database knows nothing of,
// when nothing that it knows can be resumed instead.
// [engine.ErrNoStateFile] when there is no such file.
func adoptFile(ctx context.Context, store *sqlite.Store, root, name string, last sqlite.Run, lookup error) (sqlite.Run, error) {
	if lookup != nil && !errors.Is(lookup, sqlite.ErrNotFound) {
		return last, engine.ErrNoStateFile
	}
	path := engine.StateFilePath(root, name)
	file, err := engine.ReadStateFile(path)
	if err != nil && lookup == nil {
		return last, engine.ErrNoStateFile // the database rules
	}
	if err != nil {
		return last, err
	}
	if lookup == nil && (!foreign(file, last) || last.Status != string(loop.Completed)) {
		return last, engine.ErrNoStateFile
	}
	if err := mayRun(file, name, path); err != nil {
		return last, err
	}
	return engine.Import(ctx, store, root, name)
}

func (a *app) resumeRun(ctx context.Context, run sqlite.Run, f planner.Flags) (*session, error) {
	c, err := a.load(f.Paths())
	if err != nil {
		return nil, err
	}
	plan, err := a.planner(c, f).Procedure(run.Name)
	if err != nil {
		return nil, err
	}
	return a.open(ctx, c, plan, f.Unsandboxed)
}

// resumeEvent is Answered when an answer waits for the run, else Resumed.
func (s *session) resumeEvent(ctx context.Context, run sqlite.Run) (loop.Event, error) {
	rows, err := s.store.Controls(ctx, run.ID)
	if err != nil {
		return loop.Event{}, err
	}
	if answer, ok := engine.Replies(rows, &s.plan.Policy); ok {
		return answer, nil
	}
	return loop.Event{Kind: loop.Resumed, Policy: &s.plan.Policy}, nil
}

// resumeHint says what to do about a run that does not go on.
func resumeHint(err error, name string) error {
	e := fault.Of(fault.Refused, fmt.Errorf("cannot resume %s: %w", name, err))
	switch {
	case errors.Is(err, loop.ErrFinal):
		return e.Hint("Start a new run: pawl run %s", name)
	case errors.Is(err, loop.ErrActive):
		return e.Hint("Watch it: pawl logs %s -f", name)
	case errors.Is(err, loop.ErrNeedsAnswer):
		return e.Hint("See the question: pawl show %s", name).Hint("Answer it:        pawl answer %s \"…\"", name)
	}
	return e.Hint("Raise the limit: pawl resume %s --max-iterations N, --max-cost USD or --timeout DURATION", name)
}
