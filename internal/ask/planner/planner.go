// Package planner makes plans of the configuration: what a run of a procedure or
// a workflow, a task of the board, or a landing is made of. A flag wins over the
// procedure, the procedure over the general settings, those over what the
// policy's kind has as its default; what is configured twice is the tighter of
// the two. The plan has everything resolved, so that who drives it looks
// nothing up.
//
// It looks for agents' programs and reads files named by --context; it starts
// nothing and writes nothing. What is left out of a plan is a warning.
// A problem is a [fault.Error] that names the key, the flag, the step or the
// agent, and what to do.
package planner

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/prompt"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/reexec"
)

// Planner makes the plans of one configuration with the flags of one command.
type Planner struct {
	Config *config.Config // with the flags in force
	Flags  Flags
	Env    []string // K=V; what pawl was started with
	Dir    string   // files named by flags are below it
	// LookPath finds a program in Env's PATH; a name with a slash is a path.
	LookPath func(name string) (string, error)
	// KeyFrom is what a command of gateway.keys prints.
	KeyFrom func(command string) (string, error)
	// Warn hears of what is left out: a sentence without its full stop.
	Warn func(text string)

	task board.Case // that is planned, for its checks; of a procedure those of its flags
}

// draft is a plan in the making.
type draft struct {
	*Planner
	name string
	p    config.Procedure // of a workflow without anything but its purpose
}

// Procedure is the plan of a procedure, or one of pawl's own: [Proposal], [Sealing], [Describing], [Trial].
func (pl *Planner) Procedure(name string) (runplan.Plan, error) {
	if pl.isBuiltInProcedure(name) {
		return pl.planBuiltInProcedure(name)
	}
	p, err := Lookup(pl.Config, name)
	if name == Trial {
		p, err = trialProcedure(pl.Config), nil
	}
	if err != nil {
		return runplan.Plan{}, err
	}
	if pl, err = pl.withChecks(); err != nil {
		return runplan.Plan{}, err
	}
	return draft{pl, name, p}.procedurePlan()
}

// withChecks is the planner of a run that has the checks of its flags.
func (pl *Planner) withChecks() (*Planner, error) {
	own := *pl
	own.task = board.Case{Type: board.Task, Title: "checks"}
	for _, text := range pl.Flags.Verify {
		check, err := board.ReadTaskCheck(text)
		if err != nil {
			return pl, fault.Refuse("--verify: %v", err)
		}
		own.task.Verify = append(own.task.Verify, check)
	}
	own.task = board.Tidy(own.task)
	if wrong := board.Check(own.task); len(wrong) > 0 {
		return pl, fault.Refuse("--verify: %s", strings.TrimPrefix(wrong[0], "verify: "))
	}
	return &own, nil
}

// DryRun makes the prompt of a procedure's first iteration, and the command line of
// its agent, which does not need to be installed.
func (pl *Planner) DryRun(name string) (in prompt.Input, command string, err error) {
	p, err := Lookup(pl.Config, name)
	if err != nil {
		return in, "", err
	}
	if pl, err = pl.withChecks(); err != nil {
		return in, "", err
	}
	d := draft{pl, name, p}
	gates := d.gateSpecs()
	pol, err := d.loopPolicy(gates)
	if err != nil {
		return in, "", err
	}
	if in, err = d.promptInput(gates); err != nil {
		return in, "", err
	}
	in.Iteration, in.MaxIterations, in.Agent, in.Strategy = 1, pol.MaxIterations, pol.Agent, strategy.Default
	in.Reviewer, in.Rules = reviewerOf(&pol), d.agentRules(&pol)
	return in, d.commandLine(pol.Agent), nil
}

// Lookup is a procedure of the configuration. An error names those there are.
func Lookup(c *config.Config, name string) (config.Procedure, error) {
	if p, ok := c.Procedures[name]; ok {
		return p, nil
	}
	names := slices.Sorted(maps.Keys(c.Procedures))
	if len(names) == 0 {
		return config.Procedure{}, WithoutProcedures(c)
	}
	meant := ""
	if near := config.Nearest(name, names); near != "" {
		meant = fmt.Sprintf(" (did you mean %q?)", near)
	}
	e := fault.Refuse("unknown procedure %q%s", name, meant)
	if strings.Contains(name, " ") { // it is what to do
		return config.Procedure{}, e.Hint("Name the procedure before the text: pawl run %s %q", names[0], name)
	}
	return config.Procedure{}, e.Hint("Procedures in %s: %s", c.Name(), strings.Join(names, ", "))
}

// WithoutProcedures refuses to run where the configuration has nothing to run.
func WithoutProcedures(c *config.Config) *fault.Error {
	if c.File == "" {
		return fault.Refuse("%s, so there is nothing to run, and no checks are configured",
			c.DescribeMissingFile()).
			Hint("Let pawl look at the repository, and write one: pawl init")
	}
	return fault.Refuse("%s has no procedure to run", c.Name()).
		Hint("Add one to it: procedures: {build: {act: [builtin:act/edit-and-test]}}").
		Hint("Or let pawl write a new one in its place: mv %s %s && pawl init", fault.QuoteShell(c.File),
			fault.QuoteShell(c.File+".old"))
}

// procedurePlan fills the plan. Its order is that of the messages that a person
// gets: first what is wrong in the configuration, then what the machine lacks.
func (d draft) procedurePlan() (runplan.Plan, error) {
	plan, err := d.basePlan("procedure")
	if err != nil {
		return plan, err
	}
	if plan.Policy, err = d.loopPolicy(plan.Gates); err != nil {
		return plan, err
	}
	if plan.Agents, err = d.resolveAgents(&plan.Policy); err != nil {
		return plan, err
	}
	if err := d.setReview(&plan); err != nil { // its agent's environment is judged below, too
		return plan, err
	}
	if err := d.applySafety(&plan); err != nil {
		return plan, err
	}
	if err := d.checkRunnable(); err != nil {
		return plan, err
	}
	plan.Prompt, err = d.promptInput(plan.Gates)
	plan.Prompt.Reviewer, plan.Prompt.Rules = reviewerOf(&plan.Policy), d.agentRules(&plan.Policy)
	return plan, err
}

// basePlan returns the part of a plan that all kinds take from the configuration.
func (d draft) basePlan(kind string) (runplan.Plan, error) {
	exe, err := os.Executable()
	if err != nil {
		return runplan.Plan{}, fault.Refuse("cannot find pawl's own program: %v", err).
			Hint("Where /proc is missing, mount it: mount -t proc proc /proc")
	}
	flags, err := json.Marshal(d.Flags)
	if err != nil {
		return runplan.Plan{}, err
	}
	c := d.Config
	return runplan.Plan{
		Kind: kind, Name: d.name, Root: c.Root, Safety: d.safetyLevel(), Environ: d.Env,
		Bounds: runplan.Bounds{
			Lease: c.Loop.Lease.Std(), Guards: d.agentGuards(), MaxTurns: c.Loop.MaxTurns,
			MaxOutput: int64(c.Loop.MaxOutput), Prices: Prices(c, d.Env), Day: dayLimits(c.Limits),
			Priced: d.limitsMoney(),
		},
		Exe: exe, Args: []string{reexec.Supervise}, Flags: flags,
		GatewayCA: string(c.Gateway.CA), SnapshotMaxFile: int64(c.Snapshot.MaxFile),
		Judging: runplan.Judging{Protect: d.buildProtection(), Gates: d.gateSpecs(), RedFirst: c.RedFirst}, Sources: c.Files,
	}, d.checkPatterns()
}

// envValue is a variable of the environment that pawl was started with.
func (pl *Planner) envValue(name string) string { return lists.Getenv(pl.Env, name) }

// warnFormatted warns the person of what is left out.
func (pl *Planner) warnFormatted(format string, args ...any) { pl.Warn(fmt.Sprintf(format, args...)) }

// Flags are the flags of a run; "" is not given. They are kept with the run, so that a
// resume starts from them.
type Flags struct {
	Max        string   `json:"max_iterations,omitempty"`
	Safety     string   `json:"safety,omitempty"`
	Timeout    string   `json:"timeout,omitempty"`
	Strategy   string   `json:"strategy,omitempty"`
	Checkpoint string   `json:"checkpoint_interval,omitempty"`
	MaxCost    string   `json:"max_cost,omitempty"`
	Agent      string   `json:"agent,omitempty"`
	AgentCmd   string   `json:"agent_cmd,omitempty"`
	Context    []string `json:"context,omitempty"`
	Verify     []string `json:"verify,omitempty"` // checks of this run, see [board.ReadTaskCheck]
	// Work is what a procedure is to do, in words. It is a run's own: newer flags do not change it.
	Work string `json:"work,omitempty"`
	// File is a workflow's, absolute; Iterate goes over it until it is done.
	File    string `json:"file,omitempty"`
	Iterate bool   `json:"iterate,omitempty"`
	// Unsandboxed is said anew with each start and resume, or it does not hold.
	Unsandboxed bool `json:"-"`
}

// Paths are the configuration keys that the flags set.
func (f Flags) Paths() map[string]string {
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

// OrderedPaths leaves of some keys those that an order for another machine may set: the four flags of an
// autopilot. The level is never lower than the one of the configuration.
func OrderedPaths(asked map[string]string, level string) map[string]string {
	m := map[string]string{}
	for _, path := range []string{"loop.max_iterations", "loop.max_cost", "agent", "loop.safety"} {
		if v := asked[path]; v != "" {
			m[path] = v
		}
	}
	if m["loop.safety"] != "" {
		m["loop.safety"] = StricterLevel(m["loop.safety"], level)
	}
	return m
}

// Merge takes newer flags over older ones.
func (f Flags) Merge(newer Flags) Flags {
	if newer.Agent != "" {
		f.AgentCmd = ""
	}
	for _, p := range []struct{ old, now *string }{
		{&f.Max, &newer.Max}, {&f.Safety, &newer.Safety}, {&f.Timeout, &newer.Timeout}, {&f.Strategy, &newer.Strategy},
		{&f.Checkpoint, &newer.Checkpoint}, {&f.MaxCost, &newer.MaxCost}, {&f.Agent, &newer.Agent},
		{&f.AgentCmd, &newer.AgentCmd},
	} {
		if *p.now != "" {
			*p.old = *p.now
		}
	}
	f.Unsandboxed = newer.Unsandboxed
	f.Iterate = f.Iterate || newer.Iterate
	if len(newer.Verify) > 0 {
		f.Verify = newer.Verify
	}
	if len(newer.Context) > 0 {
		f.Context = newer.Context
	}
	return f
}

// Raises is true when a limit is named.
func (f Flags) Raises() bool { return f.Max != "" || f.MaxCost != "" || f.Timeout != "" }

// Limits are the limits alone.
func (f Flags) Limits() Flags { return Flags{Max: f.Max, MaxCost: f.MaxCost, Timeout: f.Timeout} }
