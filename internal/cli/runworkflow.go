package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/agent/agents"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/early"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/gate"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/prompt"
	"github.com/pawl-dev/pawl/internal/sandbox"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workflow"
	flow "github.com/pawl-dev/pawl/internal/workflow/run"
)

// workflowCommand is the name that some know run and stop by.
func (a *app) workflowCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "workflow", Short: "Run or stop a workflow: the same as 'pawl run FILE.yaml' and 'pawl stop RUN'"}
	run, stop := a.runCommand(), a.stopCommand()
	run.Use, run.Short = "run FILE.yaml", "Run a workflow"
	run.Args = exactlyOne("a workflow file")
	cmd.AddCommand(run, stop)
	return cmd
}

// runWorkflow runs a workflow file, or prints its plan.
func (a *app) runWorkflow(ctx context.Context, f runFlags, dry, fresh bool) error {
	w, err := config.LoadWorkflow(a.dir, f.File)
	if err != nil {
		return fault.Of(fault.Refused, err)
	}
	if dry {
		return a.planWorkflow(w)
	}
	if f.File, err = filepath.Abs(w.Path); err != nil {
		return fault.Of(fault.Failed, fmt.Errorf("cannot tell where the workflow is: %v", err))
	}
	c, err := a.load(f.paths())
	if err != nil {
		return err
	}
	s, err := a.workflowSession(ctx, c, w, f)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.mayStart(ctx, fresh); errors.Is(err, errResumeInstead) {
		return a.resume(ctx, s.plan.Name, f)
	} else if err != nil {
		return err
	}
	for _, note := range w.Notes {
		a.say("Warning: %s", note)
	}
	s.preambleWorkflow()
	return s.drive(ctx, engine.Start)
}

// workflowSession makes ready what a workflow runs with.
func (a *app) workflowSession(ctx context.Context, c *config.Config, w *config.Workflow, f runFlags) (*session, error) {
	pl := planner{a: a, c: c, name: w.Plan.Name, flags: f}
	plan, err := pl.buildWorkflow(w)
	if err != nil {
		return nil, err
	}
	values, err := pl.contextValues(w)
	if err != nil {
		return nil, err
	}
	s, err := a.open(ctx, c, plan)
	if err != nil {
		return nil, err
	}
	if err := s.box(ctx, f.Unsandboxed); err != nil {
		s.close()
		return nil, err
	}
	s.screen.Workflow(w)
	s.work = flow.New(flow.Options{
		Flow: flowOf(w), Context: values,
		Load: func(dir, name string) (*flow.Flow, error) {
			below, err := config.LoadWorkflow(dir, name)
			if err != nil {
				return nil, err
			}
			return flowOf(below), nil
		},
		Procedure: func(name string) (engine.Plan, error) { return s.innerPlan(name, f) },
	})
	return s, nil
}

// flowOf is the workflow as who runs it needs it.
func flowOf(w *config.Workflow) *flow.Flow {
	f := &flow.Flow{Path: w.Path, Plan: w.Plan, Nested: map[string]*flow.Flow{}}
	for id, below := range w.Nested {
		f.Nested[id] = flowOf(below)
	}
	return f
}

// innerPlan is the plan of a procedure that a step drives: held to what the
// workflow is held to.
func (s *session) innerPlan(name string, f runFlags) (engine.Plan, error) {
	inner := runFlags{Safety: f.Safety, Agent: f.Agent, AgentCmd: f.AgentCmd}
	plan, err := s.a.plan(s.c, name, inner)
	if err != nil {
		return plan, err
	}
	plan.Sandbox, plan.Copy = s.plan.Sandbox, false
	if s.plan.Box != nil {
		box := *s.plan.Box
		box.Agents = map[string]sandbox.Policy{}
		for name, ag := range plan.Agents {
			box.Agents[name] = s.agentPolicy(name, ag)
		}
		plan.Box = &box
	}
	return plan, nil
}

// buildWorkflow makes the plan of a workflow's run.
func (pl planner) buildWorkflow(w *config.Workflow) (engine.Plan, error) {
	exe, err := os.Executable()
	if err != nil {
		return engine.Plan{}, fmt.Errorf("cannot find pawl's own program: %v", err)
	}
	flags, err := json.Marshal(pl.flags)
	if err != nil {
		return engine.Plan{}, err
	}
	plan := engine.Plan{
		Kind: "workflow", Name: pl.name, Root: pl.c.Root, Safety: pl.safety(), Lease: pl.c.Loop.Lease.Std(), Environ: pl.a.env,
		Guards: pl.guards(), MaxTurns: pl.c.Loop.MaxTurns, MaxOutput: int64(pl.c.Loop.MaxOutput),
		Exe: exe, Args: []string{early.Supervise}, Flags: flags, SnapshotMaxFile: int64(pl.c.Snapshot.MaxFile), SnapshotKeep: pl.c.Snapshot.Keep.Std(),
		Prices: pl.prices(), CheckpointInterval: pl.c.Loop.CheckpointInterval, Gates: pl.gates(),
		Protect: gate.Protect{Patterns: pl.c.Verification.Protect, New: pl.c.Verification.ProtectNew},
	}
	if err := pl.checkPatterns(); err != nil {
		return plan, err
	}
	named, unnamed, optional := agentsNamed(w)
	if plan.Policy, err = pl.workflowPolicy(w, named, unnamed, optional); err != nil {
		return plan, err
	}
	if err := pl.knowProcedures(w); err != nil {
		return plan, err
	}
	if plan.Agents, err = pl.workflowAgents(&plan.Policy, named); err != nil {
		return plan, err
	}
	if namedLater(w) {
		pl.allAgents(&plan)
	}
	pl.p.Summary = w.Plan.Description
	if err := pl.review(&plan); err != nil {
		return plan, err
	}
	plan.Prompt = prompt.Input{Procedure: pl.name, Budget: pl.c.Prompt.TokenBudget, Act: []prompt.Fragment{{Name: w.Path, Text: taskOf(w)}}}
	err = pl.safe(&plan)
	return plan, err
}

// taskOf is the workflow as its reviewer is told of it: what its steps do.
func taskOf(w *config.Workflow) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The workflow %s, in steps.\n", w.Plan.Name)
	for _, s := range w.Plan.Steps {
		fmt.Fprintf(&b, "\n- %s (%s): %s", s.ID, s.Kind, strings.ReplaceAll(strings.TrimSpace(s.Step.Content), "\n", "\n  "))
	}
	return strings.ReplaceAll(b.String(), "{{", `{{"{{"}}`) // it is no template
}

// agentsNamed are the agents that steps name, in order; unnamed is true when a
// step leaves that to the run, optional when there are steps that may be left out.
func agentsNamed(w *config.Workflow) (named []string, unnamed, optional bool) {
	note := func(work workflow.Work) {
		switch {
		case work.Kind != workflow.Agent:
		case work.Agent == "":
			unnamed = true
		case !slices.Contains(named, work.Agent):
			named = append(named, work.Agent)
		}
	}
	for _, s := range w.Plan.Steps {
		optional = optional || s.Optional
		note(s.Work)
		for _, alt := range s.Step.Alternatives {
			note(alt)
		}
		below := w.Nested[s.ID]
		if below == nil {
			continue
		}
		more, without, opt := agentsNamed(below)
		for _, name := range more {
			note(workflow.Work{Kind: workflow.Agent, Agent: name})
		}
		unnamed, optional = unnamed || without, optional || opt
	}
	return named, unnamed, optional
}

// knowProcedures refuses a workflow whose steps drive procedures that are not
// there, or whose agents are not.
func (pl planner) knowProcedures(w *config.Workflow) error {
	check := func(step string, work workflow.Work) error {
		if work.Kind != workflow.Procedure || strings.Contains(work.Content, "{{") {
			return nil
		}
		p, ok := pl.c.Procedures[work.Content]
		var err error
		if !ok {
			err = unknownProcedure(pl.c, work.Content)
		} else if pl.flags.AgentCmd == "" {
			own := p.Agent
			if pl.c.IsFlag("agent") {
				own = ""
			}
			err = pl.add(map[string]engine.Agent{}, cmp.Or(own, pl.c.Agent), true)
		}
		return ofStep(step, err)
	}
	for _, s := range w.Plan.Steps {
		for _, work := range append([]workflow.Work{s.Work}, s.Step.Alternatives...) {
			if err := check(s.ID, work); err != nil {
				return err
			}
		}
		if below := w.Nested[s.ID]; below != nil {
			if err := pl.knowProcedures(below); err != nil {
				return err
			}
		}
	}
	return nil
}

// ofStep says whose error it is.
func ofStep(step string, err error) error {
	var e *fault.Error
	if !errors.As(err, &e) {
		return err
	}
	return &fault.Error{Kind: e.Kind, Err: fmt.Errorf("step %s: %w", step, e.Err), Hints: e.Hints}
}

// namedLater is true when a step runs a workflow whose name is known only then.
func namedLater(w *config.Workflow) bool {
	for _, s := range w.Plan.Steps {
		below := w.Nested[s.ID]
		if s.Kind == workflow.Nested && below == nil || below != nil && namedLater(below) {
			return true
		}
	}
	return false
}

// allAgents adds to the plan every agent that is on this machine, for steps that
// nobody knows yet.
func (pl planner) allAgents(plan *engine.Plan) {
	for _, name := range append(slices.Sorted(maps.Keys(pl.c.Agents.Named)), agents.Names()...) {
		if err := pl.add(plan.Agents, name, false); err != nil {
			continue // the step that wants it says so
		}
	}
	if _, ok := plan.Agents[pl.c.Agent]; ok && plan.Policy.Agent == "" {
		plan.Policy.Agent = pl.c.Agent
	}
}

// iterations is how often a workflow is passed over where nothing says so.
const iterations = 10

// workflowPolicy resolves what a workflow's run may do.
func (pl planner) workflowPolicy(w *config.Workflow, named []string, unnamed, optional bool) (loop.Policy, error) {
	c, l := pl.c, pl.c.Loop
	pol := loop.Policy{
		Kind: loop.Workflow, Once: !pl.flags.Iterate, MaxIterations: 1, Stuck: l.StuckThreshold, PauseOnStuck: l.PauseOnStuck, Repeated: repeatedThreshold,
		MaxWaits: l.MaxWaits, MaxWait: l.MaxWait.Std(), Timeout: w.Plan.Timeout, IdleTimeout: l.IdleTimeout.Std(), HasOptional: optional,
		Fallback: c.Agents.Fallback, Stronger: c.Agents.Stronger,
	}
	if c.IsSet("loop.timeout") {
		pol.Timeout = l.Timeout.Std()
	}
	if c.IsSet("loop.iteration_timeout") {
		pol.IterationTimeout = l.IterationTimeout.Std()
	}
	if c.IsSet("loop.failure_threshold") {
		pol.FailureThreshold = l.FailureThreshold
	}
	if pl.flags.Iterate {
		if pol.MaxIterations = iterations; c.IsSet("loop.max_iterations") {
			pol.MaxIterations = l.MaxIterations
		}
		if pol.MaxIterations == 0 {
			return pol, usage("a workflow needs a maximum: max_iterations 0 allows nothing").Hint("Write for example: --max-iterations 20")
		}
	}
	if list := w.Plan.Agents; len(list) > 0 {
		pol.Fallback = list[1:]
		if unnamed {
			pol.Agent = list[0]
		}
	}
	switch {
	case unnamed && (pol.Agent == "" || c.IsFlag("agent")):
		pol.Agent = c.Agent
	case !unnamed && len(named) > 0: // limits of a provider need somebody to be met by
		pol.Agent = named[0]
	}
	if pl.reviewPolicy(&pol); pol.Review {
		pol.Reviewer = cmp.Or(pol.Reviewer, pol.Agent, c.Agent)
	}
	pl.strategies(&pol)
	err := pl.limits(&pol)
	return pol, err
}

// workflowAgents resolves the agents of all steps, which must be installed.
func (pl planner) workflowAgents(pol *loop.Policy, named []string) (map[string]engine.Agent, error) {
	all := map[string]engine.Agent{}
	if pol.Agent == "" {
		pol.Fallback, pol.Stronger = nil, ""
		return all, nil
	}
	for _, name := range named {
		if err := pl.add(all, name, true); err != nil {
			return nil, err
		}
	}
	more, err := pl.agents(pol)
	for name, ag := range all {
		if _, ok := more[name]; !ok && err == nil {
			more[name] = ag
		}
	}
	return more, err
}

// contextValues are those of --context, by name; all that the workflow asks for
// must be there.
func (pl planner) contextValues(w *config.Workflow) (map[string]string, error) {
	values := map[string]string{}
	for _, item := range pl.flags.Context {
		name, value, ok := strings.Cut(item, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, usage("--context %s: a workflow takes NAME=VALUE", item)
		}
		values[name] = value
	}
	var missing []string
	for _, name := range needed(w, nil) {
		if _, ok := values[name]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, usage("the workflow needs values for: %s", strings.Join(missing, ", ")).Hint("Give them: --context %s=…", missing[0])
	}
	return values, nil
}

func needed(w *config.Workflow, names []string) []string {
	for _, n := range w.Plan.Context {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	for _, s := range w.Plan.Steps {
		if below := w.Nested[s.ID]; below != nil {
			names = needed(below, names)
		}
	}
	return names
}

// preambleWorkflow says what a person should know before anything runs.
func (s *session) preambleWorkflow() {
	if !s.plan.Policy.Once {
		s.warnFixedStrategy(&s.plan.Policy)
	}
	if s.plan.Policy.Agent != "" {
		s.sayWithheld(s.plan)
	}
	if !s.c.IsSet("loop.max_cost") {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.plan.Agents)) {
		if a := s.plan.Agents[name].Adapter; !a.LiveUsage() && !a.Structured() {
			s.a.say("Warning: the cost limit cannot be enforced: the cost of agent %q is unknown.", name)
		}
	}
}

// resumeWorkflow goes on with the run of a workflow. The file is read anew: what
// changed in it since runs again.
func (a *app) resumeWorkflow(ctx context.Context, run sqlite.Run, f runFlags) error {
	a.dir = run.Root
	if f.File == "" {
		return fault.Of(fault.Failed, fmt.Errorf("cannot resume run %s: its workflow file is not known", run.ID))
	}
	w, err := config.LoadWorkflow(a.dir, f.File)
	if err != nil {
		return fault.Of(fault.Refused, err)
	}
	w.Plan.Name = run.Name
	c, err := a.load(f.paths())
	if err != nil {
		return err
	}
	s, err := a.workflowSession(ctx, c, w, f)
	if err != nil {
		return err
	}
	defer s.close()
	e, err := s.resumeEvent(ctx, run)
	if err != nil {
		return err
	}
	return s.drive(ctx, func(ctx context.Context, o engine.Options) (*engine.Driver, error) {
		return engine.Resume(ctx, o, run.ID, e)
	})
}

// runName is what a run is looked up by: of a workflow file, its name.
func (a *app) runName(arg string) string {
	if !strings.HasSuffix(arg, ".yaml") && !strings.HasSuffix(arg, ".yml") {
		return arg
	}
	w, err := config.LoadWorkflow(a.dir, arg)
	if err != nil {
		return strings.TrimSuffix(filepath.Base(arg), filepath.Ext(arg))
	}
	return w.Plan.Name
}
