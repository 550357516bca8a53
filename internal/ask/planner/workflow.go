package planner

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/prompt"
	"github.com/pawl-dev/pawl/internal/decide/workflow"
	"github.com/pawl-dev/pawl/internal/do/agent/agents"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
)

// Workflow is the plan of a workflow's run.
func (pl *Planner) Workflow(w *config.Workflow) (runplan.Plan, error) {
	d := draft{pl, w.Plan.Name, config.Procedure{Summary: w.Plan.Description}}
	plan, err := d.basePlan("workflow")
	if err != nil {
		return plan, err
	}
	plan.Sources = slices.Concat(plan.Sources, w.Files)
	plan.CheckpointInterval = pl.Config.Loop.CheckpointInterval
	in := contentsOf(w)
	if plan.Policy, err = d.workflowPolicy(w, in); err != nil {
		return plan, err
	}
	if err := d.knowProcedures(in); err != nil {
		return plan, err
	}
	if plan.Agents, err = d.workflowAgents(in, &plan.Policy); err != nil {
		return plan, err
	}
	if in.later {
		d.allAgents(&plan)
	}
	if err := d.setReview(&plan); err != nil {
		return plan, err
	}
	plan.Prompt = prompt.Input{
		Procedure: d.name, Budget: pl.Config.Prompt.TokenBudget,
		Act: []prompt.Fragment{{Name: w.Path, Text: describeWorkflow(w)}},
	}
	if err = d.applySafety(&plan); err == nil {
		err = d.checkRunnable()
	}
	return plan, err
}

// describeWorkflow describes a workflow for its reviewer: what its steps do.
func describeWorkflow(w *config.Workflow) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The workflow %s, in steps.\n", w.Plan.Name)
	for _, s := range w.Plan.Steps {
		fmt.Fprintf(&b, "\n- %s (%s): %s", s.ID, s.Kind,
			strings.ReplaceAll(strings.TrimSpace(s.Step.Content), "\n", "\n  "))
	}
	return strings.ReplaceAll(b.String(), "{{", `{{"{{"}}`) // it is no template
}

// contents are what the steps of a workflow and of those below it ask for.
type contents struct {
	agents            []reference // each agent that steps name, once
	procedures        []reference
	context           []string // names of values
	unnamed, optional bool     // there are steps that name no agent, or that may be left out
	later             bool     // a step runs a workflow whose name is known only then
}

// reference is a name and the step that has it, with the steps above before it.
type reference struct{ name, step string }

func contentsOf(w *config.Workflow) *contents {
	c := &contents{}
	c.addWorkflow(w, "")
	return c
}

func (c *contents) addWorkflow(w *config.Workflow, prefix string) {
	c.context = lists.Union(c.context, w.Plan.Context...)
	for _, s := range w.Plan.Steps {
		id := prefix + s.ID
		c.optional = c.optional || s.Optional
		for _, work := range append([]workflow.Work{s.Work}, s.Step.Alternatives...) {
			c.addStepWork(work, id)
		}
		if below := w.Nested[s.ID]; below != nil {
			c.addWorkflow(below, id+"/")
		} else if s.Kind == workflow.Nested {
			c.later = true
		}
	}
}

func (c *contents) addStepWork(work workflow.Work, step string) {
	switch {
	case work.Kind == workflow.Procedure && !strings.Contains(work.Content, "{{"):
		c.procedures = append(c.procedures, reference{work.Content, step})
	case work.Kind != workflow.Agent:
	case work.Agent == "":
		c.unnamed = true
	case !slices.ContainsFunc(c.agents, func(r reference) bool { return r.name == work.Agent }):
		c.agents = append(c.agents, reference{work.Agent, step})
	}
}

// knowProcedures refuses a workflow whose steps drive procedures that are not
// there, or whose agents are not.
func (d draft) knowProcedures(in *contents) error {
	for _, r := range in.procedures {
		p, err := Lookup(d.Config, r.name)
		if err == nil && d.Flags.AgentCmd == "" {
			own := p.Agent
			if d.Config.IsFlag("agent") {
				own = ""
			}
			err = d.addAgent(map[string]runplan.Agent{}, cmp.Or(own, d.Config.Agent), true)
		}
		if err != nil {
			return aboutError("step "+r.step, err)
		}
	}
	return nil
}

// aboutError puts the subject of an error before it.
func aboutError(what string, err error) error {
	var e *fault.Error
	if !errors.As(err, &e) {
		return err
	}
	return &fault.Error{Kind: e.Kind, Err: fmt.Errorf("%s: %w", what, e.Err), Hints: e.Hints}
}

// allAgents adds to the plan every agent that is on this machine, for steps that
// are not known yet.
func (d draft) allAgents(plan *runplan.Plan) {
	for _, name := range append(slices.Sorted(maps.Keys(d.Config.Agents.Named)), agents.Names()...) {
		if err := d.addAgent(plan.Agents, name, false); err != nil {
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
func (d draft) workflowPolicy(w *config.Workflow, in *contents) (loop.Policy, error) {
	c, l := d.Config, d.Config.Loop
	pol := loop.Policy{
		Kind: loop.Workflow, Once: !d.Flags.Iterate && !w.Controlled, MaxIterations: 1, Stuck: l.StuckThreshold,
		PauseOnStuck: l.PauseOnStuck, StuckLimit: l.StuckLimit, Repeated: RepeatedThreshold,
		MaxWaits: l.MaxWaits, MaxWait: l.MaxWait.Std(),
		Timeouts: loop.Timeouts{Timeout: w.Plan.Timeout, IdleTimeout: l.IdleTimeout.Std()}, HasOptional: in.optional,
		Workers: loop.Workers{Fallback: c.Agents.Fallback, Stronger: c.Agents.Stronger},
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
	if w.Controlled {
		pol.Control = new(ControlSettings(w.IterationControl(c.IterationControl)))
	}
	if !pol.Once {
		switch {
		case w.Controlled && !c.IsFlag("loop.max_iterations"):
			pol.MaxIterations = pol.Control.MaxIterations
		case c.IsSet("loop.max_iterations"):
			pol.MaxIterations = l.MaxIterations
		default:
			pol.MaxIterations = iterations
		}
		if pol.MaxIterations == 0 {
			return pol, fault.Refuse("a workflow needs a maximum: max_iterations 0 allows nothing").
				Hint("Write for example: --max-iterations 20")
		}
	}
	if list := w.Plan.Agents; len(list) > 0 {
		pol.Fallback = list[1:]
		if in.unnamed {
			pol.Agent = list[0]
		}
	}
	general := pol.Agent == "" || c.IsFlag("agent")
	switch {
	case in.unnamed && general:
		pol.Agent = c.Agent
	case !in.unnamed && len(in.agents) > 0: // limits of a provider need somebody to be met by
		pol.Agent = in.agents[0].name
	}
	if d.reviewPolicy(&pol); pol.Review {
		pol.Reviewer = cmp.Or(pol.Reviewer, pol.Agent, c.Agent)
	}
	d.setStrategies(&pol)
	err := d.setLimits(&pol)
	return pol, err
}

// workflowAgents resolves the agents of all steps, which must be installed.
func (d draft) workflowAgents(in *contents, pol *loop.Policy) (map[string]runplan.Agent, error) {
	all := map[string]runplan.Agent{}
	if pol.Agent == "" {
		pol.Fallback, pol.Stronger = nil, ""
		return all, nil
	}
	for _, r := range in.agents {
		if err := d.addAgent(all, r.name, true); err != nil {
			// No flag chooses another agent for the step: only the first hint holds.
			return nil, aboutError("step "+r.step, onlyFirstHint(err, "Or name another agent in the step"))
		}
	}
	more, err := d.resolveAgents(pol)
	for name, ag := range all {
		if _, ok := more[name]; !ok && err == nil {
			more[name] = ag
		}
	}
	return more, err
}

// ContextNames are the values that --context must give a workflow.
func ContextNames(w *config.Workflow) []string { return contentsOf(w).context }

// ContextValues reads those of --context, by name; all that the workflow asks for
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
	for _, name := range ContextNames(w) {
		if _, ok := values[name]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fault.Refuse("the workflow needs values for: %s", strings.Join(missing, ", ")).
			Hint("Give them: --context %s=…", missing[0])
	}
	return values, nil
}
