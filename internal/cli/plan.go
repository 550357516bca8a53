package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/agents"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/control"
	"github.com/pawl-dev/pawl/internal/early"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/gate"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/prompt"
	"github.com/pawl-dev/pawl/internal/strategy"
)

// runFlags are the flags of a run. They are kept with the run, so that a
// resume starts from them.
type runFlags struct {
	Max        string   `json:"max_iterations,omitempty"`
	Safety     string   `json:"safety,omitempty"`
	Timeout    string   `json:"timeout,omitempty"`
	Strategy   string   `json:"strategy,omitempty"`
	Checkpoint string   `json:"checkpoint_interval,omitempty"`
	MaxCost    string   `json:"max_cost,omitempty"`
	Agent      string   `json:"agent,omitempty"`
	AgentCmd   string   `json:"agent_cmd,omitempty"`
	Context    []string `json:"context,omitempty"`
	// File is a workflow's, absolute; Iterate goes over it until it is done.
	File    string `json:"file,omitempty"`
	Iterate bool   `json:"iterate,omitempty"`
	// Unsandboxed is said anew with each start and resume, or it does not hold.
	Unsandboxed bool `json:"-"`
}

// paths are the configuration keys that the flags set.
func (f runFlags) paths() map[string]string {
	m := map[string]string{}
	for path, v := range map[string]string{
		"loop.max_iterations": f.Max, "loop.safety": f.Safety, "loop.timeout": f.Timeout, "loop.strategy": f.Strategy,
		"loop.checkpoint_interval": f.Checkpoint, "loop.max_cost": f.MaxCost, "agent": f.Agent,
	} {
		if v != "" {
			m[path] = v
		}
	}
	return m
}

// merge takes newer flags over older ones.
func (f runFlags) merge(newer runFlags) runFlags {
	for _, p := range []struct{ old, now *string }{
		{&f.Max, &newer.Max}, {&f.Safety, &newer.Safety}, {&f.Timeout, &newer.Timeout}, {&f.Strategy, &newer.Strategy},
		{&f.Checkpoint, &newer.Checkpoint}, {&f.MaxCost, &newer.MaxCost}, {&f.Agent, &newer.Agent}, {&f.AgentCmd, &newer.AgentCmd},
	} {
		if *p.now != "" {
			*p.old = *p.now
		}
	}
	f.Unsandboxed = newer.Unsandboxed
	f.Iterate = f.Iterate || newer.Iterate
	if len(newer.Context) > 0 {
		f.Context = newer.Context
	}
	return f
}

// load reads the configuration with the flags of a run in force.
func (a *app) load(flags map[string]string) (*config.Config, error) {
	c, err := config.Load(config.Options{
		Dir: a.dir, File: a.file, Env: a.env, Flags: flags, Builtin: prompt.Builtin, BuiltinNames: prompt.Builtins(),
		CheckTemplate: prompt.CheckTemplate, Agents: agents.Names(), Strategies: strategy.Names(),
	})
	if err != nil {
		return nil, fault.Of(fault.Refused, err)
	}
	for _, w := range c.Warnings {
		a.say("Warning: %s", w)
	}
	return c, nil
}

// planner makes the plan of one procedure.
type planner struct {
	a     *app
	c     *config.Config
	name  string
	p     config.Procedure
	flags runFlags
}

func (a *app) plan(c *config.Config, name string, flags runFlags) (engine.Plan, error) {
	p, ok := c.Procedures[name]
	if !ok {
		return engine.Plan{}, unknownProcedure(c, name)
	}
	pl := planner{a, c, name, p, flags}
	return pl.build()
}

func unknownProcedure(c *config.Config, name string) error {
	names := procedureNames(c)
	if len(names) == 0 {
		return usage("unknown procedure %q: %s defines none", name, configName(c)).Hint("Write one with: pawl init")
	}
	e := usage("unknown procedure %q", name)
	for _, n := range names {
		if distance(name, n) <= 2 {
			e = usage("unknown procedure %q (did you mean %q?)", name, n)
		}
	}
	return e.Hint("Procedures in %s: %s", configName(c), strings.Join(names, ", "))
}

func configName(c *config.Config) string {
	if c.File == "" {
		return "the configuration (there is no pawl.yaml in " + c.Root + ")"
	}
	return c.File
}

func procedureNames(c *config.Config) []string {
	names := make([]string, 0, len(c.Procedures))
	for n := range c.Procedures {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

func (pl planner) build() (engine.Plan, error) {
	exe, err := os.Executable()
	if err != nil {
		return engine.Plan{}, fmt.Errorf("cannot find pawl's own program: %v", err)
	}
	flags, err := json.Marshal(pl.flags)
	if err != nil {
		return engine.Plan{}, err
	}
	plan := engine.Plan{
		Kind: "procedure", Name: pl.name, Root: pl.c.Root, Safety: pl.safety(), Lease: pl.c.Loop.Lease.Std(), Environ: pl.a.env,
		Guards: pl.guards(), MaxTurns: pl.c.Loop.MaxTurns, MaxOutput: int64(pl.c.Loop.MaxOutput),
		Exe: exe, Args: []string{early.Supervise}, Flags: flags, SnapshotMaxFile: int64(pl.c.Snapshot.MaxFile), SnapshotKeep: time.Duration(pl.c.Snapshot.Keep),
		Prices:  pl.prices(),
		Protect: gate.Protect{Patterns: pl.c.Verification.Protect, Allow: pl.p.Allow, New: pl.c.Verification.ProtectNew},
		Gates:   pl.gates(),
	}
	if err := pl.checkPatterns(); err != nil {
		return plan, err
	}
	if plan.Policy, err = pl.policy(plan.Gates); err != nil {
		return plan, err
	}
	if plan.Agents, err = pl.agents(&plan.Policy); err != nil {
		return plan, err
	}
	if err := pl.review(&plan); err != nil { // its agent's environment is judged below, too
		return plan, err
	}
	if err := pl.safe(&plan); err != nil {
		return plan, err
	}
	plan.Prompt, err = pl.prompt(plan.Gates)
	plan.Prompt.Reviewer = reviewer(&plan.Policy)
	return plan, err
}

// gates are the configuration's.
func (pl planner) gates() []gate.Spec {
	var specs []gate.Spec
	for _, g := range pl.c.Verification.Commands {
		specs = append(specs, gate.Spec{
			Name: g.Name, Command: g.Command, Timeout: g.Timeout.Std(), Required: g.Required, AllowEmpty: g.AllowEmpty, Kind: g.Kind,
		})
	}
	return specs
}

// checkPatterns refuses a pattern that could match nothing: a file that is
// thought to be protected would not be.
func (pl planner) checkPatterns() error {
	type patterns struct {
		path     string
		patterns []string
	}
	lists := []patterns{{"verification.protect", pl.c.Verification.Protect}, {"procedures." + pl.name + ".allow", pl.p.Allow}}
	for i, r := range pl.c.Merge.Regenerate {
		lists = append(lists, patterns{fmt.Sprintf("merge.regenerate[%d].files", i), r.Files})
	}
	for _, list := range lists {
		for i, pattern := range list.patterns {
			if err := gate.CheckPattern(pattern); err != nil {
				return fault.Of(fault.Refused, pl.c.ErrorAt(fmt.Sprintf("%s[%d]", list.path, i), "", err.Error()))
			}
		}
	}
	return nil
}

// prices are the list prices with the user's over them.
func (pl planner) prices() agent.Prices {
	all := agent.ListPrices()
	for model, p := range pl.c.Prices {
		all[model] = agent.Price{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
	}
	return all
}

// guards end an agent that runs in circles.
func (pl planner) guards() agent.Guards {
	l := pl.c.Loop
	return agent.Guards{Repeats: l.RepeatThreshold, EmptyCalls: l.MaxEmptyCalls, Retries: l.MaxRetries, RetryTime: l.RetryTimeout.Std()}
}

func (pl planner) safety() string {
	if pl.p.Safety != "" && !pl.c.IsFlag("loop.safety") {
		return pl.p.Safety
	}
	return pl.c.Loop.Safety
}

// policy resolves what the loop may do: flag, then procedure, then the general
// settings, then what the policy's kind has as its default.
func (pl planner) policy(gates []gate.Spec) (loop.Policy, error) {
	c, p, l := pl.c, pl.p, pl.c.Loop
	pol := loop.Policy{
		Kind: loop.Kind(p.Policy), FailureThreshold: l.FailureThreshold, Thrashing: l.ThrashingThreshold, Stuck: l.StuckThreshold,
		PauseOnStuck: l.PauseOnStuck, Repeated: repeatedThreshold, MaxWaits: l.MaxWaits, MaxWait: l.MaxWait.Std(),
		Timeout: l.Timeout.Std(), IterationTimeout: l.IterationTimeout.Std(), IdleTimeout: l.IdleTimeout.Std(),
		Agent: c.Agent, Fallback: c.Agents.Fallback, Stronger: c.Agents.Stronger,
	}
	pl.maximum(&pol)
	if pol.Kind == loop.Controlled {
		set := controlSettings(pl.iterationControl())
		pol.Control = &set
	}
	if pol.Kind == loop.Task && !c.IsSet("loop.failure_threshold") {
		pol.FailureThreshold = taskFailureThreshold
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
	pl.strategies(&pol)
	pl.reviewPolicy(&pol)
	err := pl.limits(&pol)
	return pol, err
}

const (
	repeatedThreshold    = 5
	taskFailureThreshold = 5
)

// maximum sets the iterations that the policy allows.
func (pl planner) maximum(pol *loop.Policy) {
	c, p := pl.c, pl.p
	switch {
	case c.IsFlag("loop.max_iterations"):
		pol.MaxIterations = c.Loop.MaxIterations
	case p.MaxIterations != nil:
		pol.MaxIterations = *p.MaxIterations
	case pol.Kind == loop.Task:
		pol.MaxIterations = c.Autopilot.MaxIterations
		pol.TaskTimeout = c.Autopilot.TaskTimeout.Std()
	case pol.Kind == loop.Controlled:
		pol.MaxIterations = pl.iterationControl().MaxIterations
	default:
		pol.MaxIterations = c.Loop.MaxIterations
	}
}

// iterationControl is the procedure's own, else the general one.
func (pl planner) iterationControl() config.IterationControl {
	if own := pl.p.IterationControl; own != nil {
		return *own
	}
	return pl.c.IterationControl
}

// controlSettings are those of the configuration as iteration control takes them.
func controlSettings(c config.IterationControl) control.Settings {
	return control.Settings{
		MaxIterations: c.MaxIterations, RetryTestFail: c.AutoRetryOnTestFail, RetryReviewReject: c.AutoRetryOnReviewReject,
		IncludeDiff: c.EscalationIncludesDiff, FeedbackMax: c.FeedbackMaxLength,
	}
}

// limits sets cost, calls and time from the safety level. The level's times
// hold for a procedure only when the level is named on the command line.
func (pl planner) limits(pol *loop.Policy) error {
	levels := pl.c.Safety.Limits
	limit, ok := map[string]config.Limit{"permissive": levels.Permissive, "normal": levels.Normal, "paranoid": levels.Paranoid}[pl.safety()]
	if !ok {
		return usage("unknown safety level %q: write permissive, normal or paranoid", pl.safety())
	}
	pol.MaxCost, pol.MaxIterationCost, pol.MaxIterationCalls = limit.MaxTotalCost, limit.MaxCostPerIteration, limit.MaxAPICallsPerIteration
	if own := pl.c.Loop.MaxCost; own != nil {
		pol.MaxCost = min(pol.MaxCost, *own)
	}
	if pl.c.IsFlag("loop.safety") || pol.Kind == loop.Workflow && !pol.Once {
		pol.IterationTimeout = shorter(pol.IterationTimeout, limit.MaxDurationPerIteration.Std())
		pol.IterationCeiling = limit.MaxDurationPerIteration.Std()
		pol.MaxDuration = limit.MaxTotalDuration.Std()
	}
	if pol.Kind != loop.Procedure && pol.MaxIterations == 0 {
		return usage("procedure %q has policy %s and max_iterations 0, which allows nothing: only policy procedure may run without a maximum", pl.name, pol.Kind)
	}
	return nil
}

func shorter(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// prompt has all that stays the same from iteration to iteration.
func (pl planner) prompt(gates []gate.Spec) (prompt.Input, error) {
	in := prompt.Input{
		Procedure: pl.name, Budget: pl.c.Prompt.TokenBudget, NoGates: len(gates) == 0,
		Observe: fragments(pl.p.Observe), Orient: fragments(pl.p.Orient), Decide: fragments(pl.p.Decide), Act: fragments(pl.p.Act),
	}
	for _, g := range gates {
		in.Gates = append(in.Gates, g.Name)
	}
	for _, item := range pl.flags.Context {
		c, err := pl.context(item)
		if err != nil {
			return in, err
		}
		in.Context = append(in.Context, c)
	}
	return in, nil
}

// context is one --context: a file's content when there is such a file, else
// the text itself.
func (pl planner) context(item string) (prompt.Item, error) {
	if strings.TrimSpace(item) == "" {
		return prompt.Item{}, usage("empty text is not allowed for --context: give a text or a file")
	}
	path := item
	if !filepath.IsAbs(path) {
		path = filepath.Join(pl.a.dir, path)
	}
	if !fileExists(path) {
		return prompt.Item{Text: item}, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return prompt.Item{}, usage("--context %s: %v", item, err)
	}
	return prompt.Item{Source: item, Text: string(data)}, nil
}

// fileExists is false for folders too.
func fileExists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

func fragments(list []config.Fragment) []prompt.Fragment {
	out := make([]prompt.Fragment, len(list))
	for i, f := range list {
		out[i] = prompt.Fragment{Name: f.Name, Text: f.Text}
	}
	return out
}

// dryPrompt is the first iteration's prompt, for --dry-run.
func (pl planner) dryPrompt(pol loop.Policy) (prompt.Input, error) {
	var gates []gate.Spec
	for _, g := range pl.c.Verification.Commands {
		gates = append(gates, gate.Spec{Name: g.Name})
	}
	in, err := pl.prompt(gates)
	in.Iteration, in.MaxIterations, in.Agent, in.Strategy = 1, pol.MaxIterations, pol.Agent, strategy.Default
	in.Reviewer = reviewer(&pol)
	return in, err
}
