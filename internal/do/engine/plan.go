package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/prompt"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/trust"
	"github.com/pawl-dev/pawl/internal/keep/store"
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
	Gates  []gate.Spec
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
	Safety   string
	// Box is what agents and gates are held to; nil is nothing.
	Box *Box
	// Sources are the files that the plan was made of.
	Sources []trust.File
	// Sandbox says for reports what is enforced.
	Sandbox string
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

// project is the root that the run belongs to.
func (p *Plan) project() string { return cmp.Or(p.Project, p.Root) }

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

// usableGuards leaves out the guards that cannot judge the agent's output: the lines of a
// text are no turns.
func (a Agent) usableGuards(g agent.Guards) agent.Guards {
	if !a.Adapter.Structured() {
		g.Repeats = 0
	}
	return g
}

// agentGateway returns the gateway of the agent's model calls; nil where they do not go
// through one.
func (a Agent) agentGateway(p *Plan, dayDir string) *agent.Gateway {
	if len(a.Routes) == 0 {
		return nil
	}
	return &agent.Gateway{Routes: a.Routes, CA: p.GatewayCA, DayDir: dayDir, Day: p.Day}
}

// countsTools reports whether a running tool counts as a sign of life. It does where the
// program is known and the user set no limit of silence.
func (a Agent) countsTools() bool {
	_, known := a.Adapter.(agent.Patient)
	return known && a.Idle == 0
}

// idle is how long the agent may be silent; 0 is without end.
func (a Agent) idle(policy time.Duration) time.Duration {
	if a.Idle > 0 {
		return a.Idle
	}
	if p, ok := a.Adapter.(agent.Patient); ok && policy > 0 {
		return max(policy, p.IdleTimeout())
	}
	return policy
}

// Kernel decides for a run whose state is kept elsewhere, as loop.Step does for
// one that is kept here. The driver stores what it decides, and carries it out.
// While such a run waits nobody drives it: [Start] and [Resume] return
// [ErrWaits], and whoever keeps the state resumes it when the wait is over.
type Kernel interface {
	// Step returns the state after e, and the command. s is the state here, and
	// counts only where the kernel has none yet. After an error nothing is stored,
	// and the driver ends with it.
	Step(ctx context.Context, run string, s loop.State, e loop.Event) (loop.State, loop.Command, error)
	// Pending is what was decided last, which may not be stored here; nil for none.
	Pending() *loop.Decision
}

// ErrWaits is that a run waits whose state is kept elsewhere.
var ErrWaits = errors.New("the run waits")

func (d *Driver) step(ctx context.Context, s loop.State, e loop.Event) (loop.State, loop.Command, error) {
	if k := d.o.Kernel; k != nil {
		return k.Step(ctx, d.id, s, e)
	}
	after, c := loop.Step(s, e)
	return after, c, nil
}

// pendingDecision returns what was decided before this driver began; nil for none.
func (d *Driver) pendingDecision() *loop.Decision {
	if d.o.Kernel == nil {
		return nil
	}
	return d.o.Kernel.Pending()
}

// followPending stores what was decided before this driver began, if the one
// before had not. It is false when nothing was.
func (d *Driver) followPending(ctx context.Context) bool {
	p := d.pendingDecision()
	switch {
	case p == nil:
	case p.State.Seq > d.state.Seq:
		d.worker.missing = false
		d.follow(ctx, input{event: p.Event}, p.State, p.Whole())
	default: // whoever stored it may have begun it, perhaps on another machine
		d.worker.missing = d.state.Status == loop.Running
	}
	return p != nil
}

// mayStillDrive reports whether another owner may be driving the run. Where the state is
// kept elsewhere, the run belongs to the pawl that it was given to.
func (d *Driver) mayStillDrive(o store.Owner) bool { return d.o.Kernel == nil && Alive(o) }
