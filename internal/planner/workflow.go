package planner

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/agent/agents"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/prompt"
	"github.com/pawl-dev/pawl/internal/workflow"
)

// Workflow is the plan of a workflow's run.
func (pl *Planner) Workflow(w *config.Workflow) (engine.Plan, error) {
	d := draft{pl, w.Plan.Name, config.Procedure{Summary: w.Plan.Description}}
	plan, err := d.base("workflow")
	if err != nil {
		return plan, err
	}
	plan.CheckpointInterval = pl.Config.Loop.CheckpointInterval
	named, unnamed, optional := agentsNamed(w)
	if plan.Policy, err = d.workflowPolicy(w, named, unnamed, optional); err != nil {
		return plan, err
	}
	if err := d.knowProcedures(w); err != nil {
		return plan, err
	}
	if plan.Agents, err = d.workflowAgents(w, &plan.Policy, named); err != nil {
		return plan, err
	}
	if namedLater(w) {
		d.allAgents(&plan)
	}
	if err := d.review(&plan); err != nil {
		return plan, err
	}
	plan.Prompt = prompt.Input{Procedure: d.name, Budget: pl.Config.Prompt.TokenBudget, Act: []prompt.Fragment{{Name: w.Path, Text: taskOf(w)}}}
	err = d.safe(&plan)
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
func (d draft) knowProcedures(w *config.Workflow) error {
	check := func(step string, work workflow.Work) error {
		if work.Kind != workflow.Procedure || strings.Contains(work.Content, "{{") {
			return nil
		}
		p, err := Lookup(d.Config, work.Content)
		if err == nil && d.Flags.AgentCmd == "" {
			own := p.Agent
			if d.Config.IsFlag("agent") {
				own = ""
			}
			err = d.add(map[string]engine.Agent{}, cmp.Or(own, d.Config.Agent), true)
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
			if err := d.knowProcedures(below); err != nil {
				return err
			}
		}
	}
	return nil
}

// ofNamed says which step names the agent that an error is about: no flag
// chooses another one for it.
func ofNamed(w *config.Workflow, agent string, err error) error {
	var e *fault.Error
	if !errors.As(err, &e) {
		return err
	}
	out := &fault.Error{Kind: e.Kind, Err: e.Err, Hints: slices.Clone(e.Hints[:min(1, len(e.Hints))])}
	return ofStep(stepOf(w, agent), out.Hint("Or name another agent in the step"))
}

// stepOf is the first step that names an agent; in a workflow below, with the
// step that runs it.
func stepOf(w *config.Workflow, agent string) string {
	for _, s := range w.Plan.Steps {
		for _, work := range append([]workflow.Work{s.Work}, s.Step.Alternatives...) {
			if work.Kind == workflow.Agent && work.Agent == agent {
				return s.ID
			}
		}
		if below := w.Nested[s.ID]; below != nil {
			if id := stepOf(below, agent); id != "" {
				return s.ID + "/" + id
			}
		}
	}
	return ""
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
func (d draft) allAgents(plan *engine.Plan) {
	for _, name := range append(slices.Sorted(maps.Keys(d.Config.Agents.Named)), agents.Names()...) {
		if err := d.add(plan.Agents, name, false); err != nil {
			continue // the step that wants it says so
		}
	}
	if _, ok := plan.Agents[d.Config.Agent]; ok && plan.Policy.Agent == "" {
		plan.Policy.Agent = d.Config.Agent
	}
}

// iterations is how often a workflow is passed over where nothing says so.
const iterations = 10

// workflowPolicy resolves what a workflow's run may do.
func (d draft) workflowPolicy(w *config.Workflow, named []string, unnamed, optional bool) (loop.Policy, error) {
	c, l := d.Config, d.Config.Loop
	pol := loop.Policy{
		Kind: loop.Workflow, Once: !d.Flags.Iterate, MaxIterations: 1, Stuck: l.StuckThreshold, PauseOnStuck: l.PauseOnStuck, Repeated: repeatedThreshold,
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
	if d.Flags.Iterate {
		if pol.MaxIterations = iterations; c.IsSet("loop.max_iterations") {
			pol.MaxIterations = l.MaxIterations
		}
		if pol.MaxIterations == 0 {
			return pol, fault.Refuse("a workflow needs a maximum: max_iterations 0 allows nothing").Hint("Write for example: --max-iterations 20")
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
	if d.reviewPolicy(&pol); pol.Review {
		pol.Reviewer = cmp.Or(pol.Reviewer, pol.Agent, c.Agent)
	}
	d.strategies(&pol)
	err := d.limits(&pol)
	return pol, err
}

// workflowAgents resolves the agents of all steps, which must be installed.
func (d draft) workflowAgents(w *config.Workflow, pol *loop.Policy, named []string) (map[string]engine.Agent, error) {
	all := map[string]engine.Agent{}
	if pol.Agent == "" {
		pol.Fallback, pol.Stronger = nil, ""
		return all, nil
	}
	for _, name := range named {
		if err := d.add(all, name, true); err != nil {
			return nil, ofNamed(w, name, err)
		}
	}
	more, err := d.agents(pol)
	for name, ag := range all {
		if _, ok := more[name]; !ok && err == nil {
			more[name] = ag
		}
	}
	return more, err
}

// ContextValues are those of --context, by name; all that the workflow asks for
// must be there.
func (pl *Planner) ContextValues(w *config.Workflow) (map[string]string, error) {
	values := map[string]string{}
	for _, item := range pl.Flags.Context {
		name, value, ok := strings.Cut(item, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, fault.Refuse("--context %s: a workflow takes NAME=VALUE", item)
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
		return nil, fault.Refuse("the workflow needs values for: %s", strings.Join(missing, ", ")).Hint("Give them: --context %s=…", missing[0])
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
