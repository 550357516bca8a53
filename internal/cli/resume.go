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
	cmd := &cobra.Command{
		Use:   "resume NAME|RUN",
		Short: "Go on where a run was interrupted, paused, blocked or aborted",
		Long: "Go on with a run. Cost, numbering and history stay. After an abort, a block or an answer\n" +
			"the guards count anew and the run gets a fresh allowance of iterations; at a limit, raise it.\n" +
			"The limits of a run that works are raised while it does, and hold from its next iteration.",
		Example: "  pawl resume build\n  pawl resume 7k3f --max-iterations 20",
		Args:    exactlyOne("a procedure or a run"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.resume(cmd.Context(), args[0], f) },
	}
	a.limitFlags(cmd, &f)
	cmd.Flags().BoolVar(&f.Iterate, "iterate", false, "from now on go over the workflow until all its steps are done")
	cmd.Flags().StringVar(&f.Strategy, "strategy", "", "`NAME`: auto, conservative, aggressive, or one strategy for the rest of the run")
	cmd.Flags().StringVar(&f.Agent, "agent", "", "go on with the agent `NAME`")
	return cmd
}

// exactlyOne is for commands with one argument.
func exactlyOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage("%s needs %s: pawl %s", cmd.CommandPath(), what, cmd.Use)
		}
		return nil
	}
}

func (a *app) resume(ctx context.Context, name string, f planner.Flags) error {
	store, root, err := a.store(ctx)
	if err != nil {
		return err
	}
	name = a.runName(name)
	run, err := findRun(ctx, store, root, name)
	if imported, ierr := adoptFile(ctx, store, root, name, run, err); ierr == nil {
		run, err = imported, nil
	} else if !errors.Is(ierr, engine.ErrNoStateFile) {
		err = ierr
	}
	if err == nil && (run.Kind == "task" || f.Raises() && action.Works(run)) {
		p := a.person(store, root)
		switch {
		case run.Kind != "task":
			err = p.Raise(ctx, run, f)
		case f.Raises():
			err = a.done(p.ExtendRun(ctx, run, f))
		default:
			err = p.Reopen(ctx, run, "a person resumed it")
		}
		if cerr := store.Close(); err == nil {
			err = cerr
		}
		return err
	}
	if err == nil {
		f, err = action.StoredFlags(run, f)
	}
	if cerr := store.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return a.lookupError(err, name)
	}
	if run.Kind == "workflow" {
		return a.resumeWorkflow(ctx, run, f)
	}
	return a.resumeRun(ctx, run, f)
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

func (a *app) resumeRun(ctx context.Context, run sqlite.Run, f planner.Flags) error {
	a.dir = run.Root
	c, err := a.load(f.Paths())
	if err != nil {
		return err
	}
	plan, err := a.planner(c, f).Procedure(run.Name)
	if err != nil {
		return err
	}
	s, err := a.open(ctx, c, plan)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.box(ctx, f.Unsandboxed); err != nil {
		return err
	}
	if s.store == nil {
		return fault.Of(fault.Failed, fmt.Errorf("cannot resume run %s: its record cannot be opened", run.ID))
	}
	e, err := s.resumeEvent(ctx, run)
	if err != nil {
		return err
	}
	return s.drive(ctx, func(ctx context.Context, o engine.Options) (*engine.Driver, error) {
		return engine.Resume(ctx, o, run.ID, e)
	})
}

// resumeEvent is Answered when an answer waits for the run, else Resumed.
func (s *session) resumeEvent(ctx context.Context, run sqlite.Run) (loop.Event, error) {
	rows, err := s.store.Controls(ctx, run.ID)
	if err != nil {
		return loop.Event{}, fault.Of(fault.Failed, err)
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
