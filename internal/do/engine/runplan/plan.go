// Package runplan is what a run is made of: everything resolved from configuration and
// flags, nothing left to look up. The planner makes it, and the engine carries it out.
package runplan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/prompt"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/trust"
)

// Plan is what a run is made of: everything resolved, nothing left to look up.
type Plan struct {
	Kind string // "procedure", "task", "workflow" or "demo"
	Name string // the procedure's
	Root string // where agents and gates start
	// Project is the root that the run belongs to, where agents work elsewhere: in
	// the workspace of a task. "" is Root.
	Project string
	Policy  loop.Policy
	// Prompt has all but what differs from iteration to iteration.
	Prompt prompt.Input
	// Agents by name: the default one, the fallbacks and the stronger one.
	Agents map[string]Agent
	// Review is how green work is reviewed, where the policy asks for it.
	Review Review
	Judging
	Safety string
	// Box is what agents and gates are held to; nil is nothing.
	Box *Box
	// Sources are the files that the plan was made of.
	Sources []trust.File
	// Sandbox says for reports what is enforced.
	Sandbox string
	Bounds
	// Environ is what gates inherit, and agents that have none of their own, K=V.
	Environ []string
	// Marks are added to the environment of all that the run starts, K=V.
	Marks []string
	// Withheld are the names of variables that are not in Environ.
	Withheld []string
	// Home is the user's, for judging paths; "" is not known.
	Home string
	// Exe and Args re-execute pawl as the supervisor; the run's folder is appended.
	Exe  string
	Args []string
	// GatewayCA is a file of certificates that the gateway trusts; "" is none.
	GatewayCA string
	// Flags is how the run was asked for; resume starts from it.
	Flags []byte
	// CheckpointInterval is how many iterations by steps share one snapshot; the
	// last one has its own. 0 is 1.
	CheckpointInterval int
	// SnapshotMaxFile in bytes; larger files are left alone.
	SnapshotMaxFile int64
}

// Bounds are the limits that hold while an agent works.
type Bounds struct {
	// Prices let a cost limit work for programs that report tokens only.
	Prices agent.Prices
	// Priced: money is limited, so that no model without a price is called.
	Priced bool
	// Day is what all runs of the user may use in a day.
	Day loop.DayLimits
	// Guards end an agent that runs in circles; MaxTurns and MaxOutput bound
	// turns and bytes of output of one iteration. 0 is no limit.
	Guards    agent.Guards
	MaxTurns  int
	MaxOutput int64
	// Lease is how long an agent goes on without pawl.
	Lease time.Duration
}

// Judging is what judges the work of a run.
type Judging struct {
	Gates []gate.Spec
	// OnBase: the gates run once before the first agent. SetUp are the commands that
	// make a clone ready for them, for the message when these files are not.
	OnBase bool
	SetUp  []string
	// Landing: the gates for landing run in each iteration, since the work was red there.
	Landing bool
	// RedFirst says what becomes of checks that prove nothing, since they are green before
	// the work: "warn", "require" to have a person asked, or else nothing. Worked: an
	// earlier run has worked in these files, so they are no base.
	RedFirst string
	Worked   bool
	// BaseTree is the tree that the work of all runs is compared with; "" is that before this one.
	BaseTree string
	Protect  gate.Protect
}

// ProjectRoot is the root that the run belongs to.
func (p *Plan) ProjectRoot() string { return cmp.Or(p.Project, p.Root) }

// Agent is one program that may work on the run.
type Agent struct {
	Adapter agent.Adapter
	Command []string
	Env     []string
	Model   string
	// Mode is one of a program that speaks ACP; "" is the widest that it has.
	Mode string
	// Account names whose limits the program shares with that of other runs; ""
	// shares none.
	Account string
	Isolate bool
	// Tools: it has pawl's tools for its own task.
	Tools bool
	// Endpoints is what the program may reach at the level paranoid, in the
	// words of egress.ParseEndpoint.
	Endpoints []string
	// Routes are the ways to its models through the gateway; nil is none. Around:
	// it could go through the gateway, and has no key for it.
	Routes []agent.Route
	Around bool
	// Environ is what the program inherits, K=V; nil is the plan's. Withheld are
	// the names that are not in it.
	Environ, Withheld []string
	// Idle is the user's own limit on silence; 0: the policy's, or what the
	// program needs while it works.
	Idle time.Duration
}

// UsableGuards leaves out the guards that cannot judge the agent's output: the lines of a
// text are no turns.
func (a Agent) UsableGuards(g agent.Guards) agent.Guards {
	if !a.Adapter.About().Structured {
		g.Repeats = 0
	}
	return g
}

// GatewayOf returns the gateway of the agent's model calls; nil where they do not go
// through one.
func (a Agent) GatewayOf(p *Plan, dayDir string) *agent.Gateway {
	if len(a.Routes) == 0 {
		return nil
	}
	return &agent.Gateway{Routes: a.Routes, CA: p.GatewayCA, DayDir: dayDir, Day: p.Day}
}

// CountsTools reports whether a running tool counts as a sign of life. It does where the
// program is known and the user set no limit of silence.
func (a Agent) CountsTools() bool {
	return a.Adapter.About().Facts != nil && a.Idle == 0
}

// IdleLimit is how long the agent may be silent; 0 is without end.
func (a Agent) IdleLimit(policy time.Duration) time.Duration {
	if a.Idle > 0 {
		return a.Idle
	}
	if policy > 0 {
		return max(policy, a.Adapter.About().Idle)
	}
	return policy
}

// SafetyRules judge the run's tool calls and commands.
func (p Plan) SafetyRules() safety.Rules {
	return safety.Rules{Level: safety.Level(p.Safety), Root: p.Root, Home: p.Home}
}

// RefusedGate is the first gate whose command the run's safety level forbids,
// with what it is.
func (p Plan) RefusedGate() (name string, f safety.Finding, refused bool) {
	for _, g := range p.Gates {
		if f, refused = p.SafetyRules().Command(g.Command); refused {
			if name = g.Name; name == "" {
				name = g.Command
			}
			return name, f, true
		}
	}
	return "", f, false
}

// InheritedEnviron is what the program inherits, K=V.
func (a Agent) InheritedEnviron(p Plan) []string {
	if a.Environ != nil {
		return a.Environ
	}
	return p.Environ
}

// NameKey adds to a refused key the variable that the program has it from. The gateway does so itself.
func (a Agent) NameKey(f *failure.Analysis, p Plan) {
	pointed, ok := a.Adapter.(agent.Pointed)
	if !ok || f == nil || f.Class != failure.Auth || len(a.Routes) > 0 {
		return
	}
	in := agent.Invocation{Env: slices.Concat(a.InheritedEnviron(p), a.Env)}
	routes, _ := pointed.Routes(true, func(name string) string { return in.Value(nil, name) })
	if variables := lists.Each(routes, func(r agent.Route) string { return r.KeyIn }); len(variables) > 0 {
		f.Summary += "; its key is in " + strings.Join(variables, " or ") + ": set another there"
	}
}

// FailureOfTime is the failure of an iteration that ended at a limit of time which no
// strategy can raise: the safety level's, or what was left of the run's own.
// Nil when the limit was the iteration's own.
func (p Plan) FailureOfTime(wall time.Duration) *failure.Analysis {
	pol := &p.Policy
	var why, advice string
	switch {
	case pol.IterationCeiling > 0 && wall == pol.IterationCeiling:
		why = fmt.Sprintf("the safety level %s allows an iteration %s", p.Safety, wall)
		advice = "Raise safety.limits." + p.Safety + ".max_duration_per_iteration, or do less in one iteration."
	case pol.IterationTimeout > 0 && wall < pol.IterationTimeout:
		why = "it had only the rest of the run's time, " + wall.Round(time.Millisecond).String()
		advice = "Give the run more time."
	default:
		return nil
	}
	return &failure.Analysis{
		Class: failure.LimitExceeded, Kind: failure.Work, Severity: failure.Medium, Fingerprint: "limit-time",
		Summary: "ended by pawl: " + why, Actions: []string{advice},
	}
}

// Review is how green work is reviewed by an agent.
type Review struct {
	Fragment prompt.Fragment // what to look for
	Purpose  string          // of the work, in a line
}

// Check is what is stored of a gate. Timeout 0 is none of its own.
type Check struct {
	Name     string        `json:"name"`
	Command  string        `json:"command"`
	Required bool          `json:"required"`
	Timeout  time.Duration `json:"timeout"`
	Origin   string        `json:"origin,omitempty"` // see [loop.OfTask]
}

// StoredChecks are the plan's gates as they are stored; never nil.
func (p *Plan) StoredChecks() []Check {
	list := make([]Check, len(p.Gates))
	for i, g := range p.Gates {
		list[i] = Check{Name: cmp.Or(g.Name, g.Command), Command: g.Command, Required: g.Required, Timeout: g.Timeout,
			Origin: g.Origin}
		if g.Origin == loop.Sealed { // what is known of a run is read by many
			list[i].Command = ""
		}
	}
	return list
}
