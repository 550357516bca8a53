package planner

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/prompt"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/gate"
)

func (d draft) safetyLevel() string {
	if d.p.Safety != "" && !d.Config.IsFlag("loop.safety") {
		return d.p.Safety
	}
	return d.Config.Loop.Safety
}

// loopPolicy resolves what the loop may do: flag, then procedure, then the general
// settings, then what the policy's kind has as its default. workflowPolicy does
// so for workflows: what every loop has is set in both.
func (d draft) loopPolicy(gates []gate.Spec) (loop.Policy, error) {
	c, p, l := d.Config, d.p, d.Config.Loop
	pol := loop.Policy{
		Kind: loop.Kind(p.Policy), FailureThreshold: l.FailureThreshold, Thrashing: l.ThrashingThreshold,
		Stuck:        l.StuckThreshold,
		PauseOnStuck: l.PauseOnStuck, StuckLimit: l.StuckLimit, Repeated: RepeatedThreshold,
		MaxWaits: l.MaxWaits, MaxWait: l.MaxWait.Std(),
		Timeouts: loop.Timeouts{Timeout: l.Timeout.Std(), IterationTimeout: l.IterationTimeout.Std(), IdleTimeout: l.IdleTimeout.Std()},
		Workers:  loop.Workers{Agent: c.Agent, Fallback: c.Agents.Fallback, Stronger: c.Agents.Stronger},
	}
	d.setMaximum(&pol)
	if pol.Kind == loop.Controlled {
		pol.Control = new(ControlSettings(d.iterationControl()))
	}
	pol.InWords = pol.Kind == loop.Procedure && d.Flags.Work != "" && !d.isBuiltInProcedure(d.name)
	if pol.Kind == loop.Task {
		pol.TaskTimeout = c.Autopilot.TaskTimeout.Std()
		if !c.IsSet("loop.failure_threshold") {
			pol.FailureThreshold = taskFailureThreshold
		}
	}
	if p.FailureThreshold != nil {
		pol.FailureThreshold = *p.FailureThreshold
	}
	if p.Timeout != nil && !c.IsFlag("loop.timeout") {
		pol.Timeout = p.Timeout.Std()
	}
	if p.IterationTimeout != nil {
		pol.IterationTimeout = p.IterationTimeout.Std()
	}
	if p.IdleTimeout != nil {
		pol.IdleTimeout = p.IdleTimeout.Std()
	}
	if p.Agent != "" && !c.IsFlag("agent") {
		pol.Agent = p.Agent
	}
	for _, g := range gates {
		pol.HasOptional = pol.HasOptional || !g.Required
	}
	d.setStrategies(&pol)
	d.reviewPolicy(&pol)
	err := d.setLimits(&pol)
	return pol, err
}

// RepeatedThreshold is how many failures alike stop a loop; `pawl check` asks a person at the same.
const RepeatedThreshold = 5

const taskFailureThreshold = 5

// setMaximum sets the iterations that the policy allows.
func (d draft) setMaximum(pol *loop.Policy) {
	c, p := d.Config, d.p
	switch {
	case c.IsFlag("loop.max_iterations"):
		pol.MaxIterations = c.Loop.MaxIterations
	case p.MaxIterations != nil:
		pol.MaxIterations = *p.MaxIterations
	case pol.Kind == loop.Task:
		pol.MaxIterations = c.Autopilot.MaxIterations
	case pol.Kind == loop.Controlled:
		pol.MaxIterations = d.iterationControl().MaxIterations
	default:
		pol.MaxIterations = c.Loop.MaxIterations
	}
}

// iterationControl is the procedure's own, else the general one.
func (d draft) iterationControl() config.IterationControl {
	if own := d.p.IterationControl; own != nil {
		return *own
	}
	return d.Config.IterationControl
}

// ControlSettings of the configuration, as iteration control takes them.
func ControlSettings(c config.IterationControl) control.Settings {
	return control.Settings{
		MaxIterations: c.MaxIterations, RetryTestFail: c.AutoRetryOnTestFail,
		RetryReviewReject: c.AutoRetryOnReviewReject,
		IncludeDiff:       c.EscalationIncludesDiff, FeedbackMax: c.FeedbackMaxLength,
	}
}

// setLimits sets cost, calls and time from the safety level. The level's times
// hold for a procedure only when the level is named on the command line.
func (d draft) setLimits(pol *loop.Policy) error {
	levels := d.Config.Safety.Limits
	limit, ok := map[string]config.Limit{
		"permissive": levels.Permissive, "normal": levels.Normal, "paranoid": levels.Paranoid,
	}[d.safetyLevel()]
	if !ok {
		return fault.Refuse("unknown safety level %q: write permissive, normal or paranoid", d.safetyLevel())
	}
	pol.MaxCost, pol.MaxIterationCost = limit.MaxTotalCost, limit.MaxCostPerIteration
	pol.MaxIterationCalls = limit.MaxAPICallsPerIteration
	of := d.Config.Limits
	if own := of.Calls.PerIteration; own != nil {
		pol.MaxIterationCalls = min(pol.MaxIterationCalls, *own)
	}
	pol.Calls.Run = stricterLimit(of.Calls.PerRun, limit.MaxTotalAPICalls)
	pol.Tokens.Run = stricterLimit(of.Tokens.PerRun, limit.MaxTotalTokens)
	pol.Tokens.Iteration = stricterLimit(of.Tokens.PerIteration, limit.MaxTokensPerIteration)
	if own := d.Config.Loop.MaxCost; own != nil {
		pol.MaxCost = min(pol.MaxCost, *own)
	}
	iterated := pol.Kind == loop.Workflow && !pol.Once
	if iterated || d.Config.IsFlag("loop.safety") {
		pol.IterationTimeout = shorterTime(pol.IterationTimeout, limit.MaxDurationPerIteration.Std())
		pol.IterationCeiling = limit.MaxDurationPerIteration.Std()
		pol.MaxDuration = limit.MaxTotalDuration.Std()
	}
	if pol.Kind != loop.Procedure && pol.MaxIterations == 0 {
		return fault.Refuse("procedure %q has policy %s and max_iterations 0, which allows nothing: "+
			"only policy procedure may run without a maximum", d.name, pol.Kind)
	}
	return nil
}

// stricterLimit is a limit of a person's own, where it is set and less than that of the level.
func stricterLimit(own *int, level int) *int64 {
	if own != nil {
		level = min(level, *own)
	}
	return countLimit(&level)
}

// limitsMoney is true where a limit of money is configured: then no model without a price is
// called. The levels' defaults do not count: they limit tokens and calls as well.
func (d draft) limitsMoney() bool {
	c, level := d.Config, "safety.limits."+d.safetyLevel()
	return !c.Safety.AllowUnpriced && slices.ContainsFunc([]string{
		"loop.max_cost", "limits.per_day", "limits.per_task", level + ".max_total_cost",
		level + ".max_cost_per_iteration",
	}, c.IsSet)
}

// countLimit is a limit as the kernel takes it; nil is none.
func countLimit(n *int) *int64 {
	if n == nil {
		return nil
	}
	return new(int64(*n))
}

func dayLimits(l config.OwnLimits) loop.DayLimits {
	return loop.DayLimits{Cost: l.PerDay, Tokens: countLimit(l.Tokens.PerDay), Calls: countLimit(l.Calls.PerDay)}
}

func shorterTime(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// UpdatedPrices is the list that the user took over the built-in one (`pawl prices --update`),
// and where it is from; nil and "" for none.
func UpdatedPrices(env []string) (agent.Prices, string) {
	text, err := os.ReadFile(statedir.PricesFile(env))
	if err != nil {
		return nil, ""
	}
	return agent.ParsePrices(string(text))
}

// Prices are the list prices, with those of a list that the user took over them, and the
// configuration's over all.
func Prices(c *config.Config, env []string) agent.Prices {
	all := agent.ListPrices()
	updated, _ := UpdatedPrices(env)
	maps.Copy(all, updated)
	for model, p := range c.Prices {
		own := agent.Price{Input: p.Input, Output: p.Output, CacheRead: p.Input, CacheWrite: p.Input}
		if p.CacheRead != nil {
			own.CacheRead = *p.CacheRead
		}
		if p.CacheWrite != nil {
			own.CacheWrite = *p.CacheWrite
		}
		maps.DeleteFunc(all, func(name string, _ agent.Price) bool { return strings.HasSuffix(name, "/"+model) })
		all[model] = own
	}
	return all
}

// agentGuards end an agent that runs in circles.
func (d draft) agentGuards() agent.Guards {
	l := d.Config.Loop
	return agent.Guards{
		Repeats: l.RepeatThreshold, EmptyCalls: l.MaxEmptyCalls, Retries: l.MaxRetries, RetryTime: l.RetryTimeout.Std(),
	}
}

// setStrategies sets how the run chooses its strategies, or the one that is fixed.
func (d draft) setStrategies(pol *loop.Policy) {
	for i := range d.Config.Strategies {
		pol.Strategies = append(pol.Strategies, ownStrategy(&d.Config.Strategies[i]))
	}
	name := d.Config.Loop.Strategy
	if d.p.Strategy != "" && !d.Config.IsFlag("loop.strategy") {
		name = d.p.Strategy
	}
	if _, ok := strategy.Lookup(name, pol.Strategies); ok {
		pol.Strategy = name
		return
	}
	pol.Mode = strategy.Mode(name) // the configuration was checked
}

func ownStrategy(c *config.Strategy) strategy.Strategy {
	s := strategy.Strategy{
		Name: c.Name, Description: c.Description, Priority: c.Priority, Instruction: c.Instruction,
		Timeout: c.Timeout.Std(), TimeoutFloor: c.Timeout.Std(), Backoff: strategy.Backoff(c.RetryBackoff),
		Parallelism: c.Parallelism, Agent: c.Agent, Fallback: c.FallbackProviders, Stronger: c.StrongerAgent,
		Rewind: c.Rewind, SkipOptional: c.SkipOptionalSteps, UseCache: c.UseCache,
	}
	for _, class := range c.ApplicableErrors {
		s.Classes = append(s.Classes, failure.Class(class))
	}
	return s
}

// strategyAgents makes ready the agents that own strategies use. A strategy
// whose agent is missing is left out with a warning, unless it is the one that was fixed.
func (d draft) strategyAgents(all map[string]runplan.Agent, pol *loop.Policy) error {
	kept := pol.Strategies[:0:0]
	for _, s := range pol.Strategies {
		if s.Agent != "" {
			fixed := s.Name == pol.Strategy
			err := d.addAgent(all, s.Agent, fixed)
			if fixed && err != nil {
				return err
			}
			if err != nil {
				d.warnFormatted("strategy %s ignored: %v", s.Name, err)
				continue
			}
		}
		kept = append(kept, s)
	}
	pol.Strategies = kept
	return nil
}

// builtinReview is the reviewer's prompt when the configuration has none.
const builtinReview = "review/diff"

// reviewPolicy sets who reviews green work. A batch is collected until a
// sprint ends; a run of its own has no sprint, so each is asked for like that
// of a person.
func (d draft) reviewPolicy(pol *loop.Policy) {
	switch d.Config.Review.Mode {
	case "agent":
		pol.Review, pol.Reviewer = true, d.Config.Review.Agent
	case "person", "batch":
		pol.Review, pol.Reviewer = true, loop.Person
	}
}

// reviewerOf the work, for the author's prompt.
func reviewerOf(pol *loop.Policy) string {
	switch {
	case !pol.Review:
		return ""
	case pol.Reviewer != "":
		return pol.Reviewer
	}
	return pol.Agent
}

// setReview resolves the reviewing agent, which must be installed, and its prompt.
func (d draft) setReview(plan *runplan.Plan) error {
	if d.Config.Review.Mode != "agent" {
		return nil
	}
	if name := plan.Policy.Reviewer; name != "" {
		if err := d.addAgent(plan.Agents, name, true); err != nil {
			err = onlyFirstHint(err,
				"Or review with another program, or with the author's own: remove review.agent from the configuration")
			return aboutError("review.agent", err)
		}
	}
	plan.Review = runplan.Review{Purpose: d.p.Summary}
	if f := d.Config.Review.Prompt; f != nil {
		plan.Review.Fragment = prompt.Fragment{Name: f.Name, Text: f.Text}
		return nil
	}
	text, _ := prompt.Builtin(builtinReview)
	plan.Review.Fragment = prompt.Fragment{Name: "builtin:" + builtinReview, Text: text}
	return nil
}

// onlyFirstHint puts a hint in the place of all but the first of an error about
// an agent: those say how --agent would choose another one.
func onlyFirstHint(err error, hint string) error {
	var e *fault.Error
	if !errors.As(err, &e) {
		return err
	}
	out := fault.Of(e.Kind, e.Err)
	out.Hints = slices.Clone(e.Hints[:min(1, len(e.Hints))])
	return out.Hint("%s", hint)
}
