package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/prompt"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/do/trust"
	"github.com/pawl-dev/pawl/internal/keep/files"
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

// place is where the files of one attempt are: runs/<run>/<n>/. An attempt
// that a limit of the provider cut off moves to runs/<run>/<n>/<attempt>/.
type place struct {
	dir     string
	attempt int
}

func (s *session) place(iteration, attempt int) place {
	return place{filepath.Join(s.runDir, strconv.Itoa(iteration)), attempt}
}

func (p place) prompt() string { return filepath.Join(p.dir, "prompt.md") }
func (p place) agent() string  { return filepath.Join(p.dir, "agent") }
func (p place) begun() string  { return filepath.Join(p.dir, "begun.json") }
func (p place) review(try int) string {
	if try > 1 {
		return filepath.Join(p.dir, fmt.Sprintf("review-%d", try))
	}
	return filepath.Join(p.dir, "review")
}
func (p place) reviewPrompt(try int) string { return p.review(try) + ".prompt.md" }
func (p place) reviewBegun(try int) string  { return p.review(try) + ".begun.json" }
func (p place) tools() string               { return filepath.Join(p.dir, "tools") }
func (p place) caches() string              { return filepath.Join(p.dir, "caches") }
func (p place) left() string                { return filepath.Join(p.dir, "caches", "agent") }
func (p place) evidence() string            { return filepath.Join(p.dir, "evidence") }
func (p place) shows(n int) string          { return filepath.Join(p.caches(), filepath.Base(p.gate(n))) }
func (p place) gate(n int) string {
	return filepath.Join(p.dir, fmt.Sprintf("gate-%d", n+1))
}

// begun is what must be known to go on with an attempt after a crash: it is
// written before the agent is started.
type begun struct {
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
	// Since is when the session began that works on it, and Worked how long those
	// before did; of iterations by steps.
	Since      time.Time      `json:"since,omitzero"`
	Worked     time.Duration  `json:"worked,omitempty"`
	Job        supervisor.Job `json:"job"`
	TreeBefore string         `json:"tree_before,omitempty"`
	HeadBefore string         `json:"head_before,omitempty"`
	// BranchBefore is what a review is put back to.
	BranchBefore string `json:"branch_before,omitempty"`
	// Messages are the control rows whose texts are in the prompt.
	Messages []int64  `json:"messages,omitempty"`
	Said     []string `json:"said,omitempty"` // their texts
	// Later is how many of them, the last ones, were left while the agent worked.
	Later int `json:"later,omitempty"`
}

// jobFile returns the path of the file that records how the job of a command was begun.
func (p place) jobFile(c loop.Command) string {
	if c.Kind == loop.RunReview {
		return p.reviewBegun(c.Review)
	}
	return p.begun()
}

// write keeps how an attempt, or a try of its review, was begun; read reads it,
// false when this attempt was not.
func (b begun) write(path string) error { return writeFile(path, encode(b)) }

func (p place) read(path string) (begun, bool) {
	b, ok := readBegun(path)
	return b, ok && b.Attempt == p.attempt
}

// Begun is true when the attempt of a command was begun in the folder of its run here.
func Begun(runDir string, c loop.Command) bool {
	p := place{dir: filepath.Join(runDir, strconv.Itoa(c.Iteration)), attempt: c.Attempt}
	_, ok := p.read(p.begun())
	return ok
}

// ReadBegun reads from the folder of an iteration which attempt was begun there, and when.
func ReadBegun(dir *os.Root) (attempt int, at time.Time, ok bool) {
	var b begun
	data, err := dir.ReadFile("begun.json")
	ok = err == nil && json.Unmarshal(data, &b) == nil
	return b.Attempt, b.At, ok
}

func readBegun(path string) (b begun, ok bool) {
	ok = files.ReadJSON(path, &b) == nil
	return b, ok
}

// open makes the folder. The files of an attempt before this one that a crash
// left in the way are kept aside.
func (p place) open() error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the folder of the iteration: %w", err)
	}
	if b, ok := readBegun(p.begun()); ok && b.Attempt > 0 && b.Attempt != p.attempt {
		return place{p.dir, b.Attempt}.keepAside()
	}
	return nil
}

// keepAside moves the attempt's files into a folder of its own.
func (p place) keepAside() error {
	to := filepath.Join(p.dir, strconv.Itoa(p.attempt))
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return fmt.Errorf("cannot keep the files of an attempt: %v", err)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return fmt.Errorf("cannot keep the files of an attempt: %v", err)
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		if err := os.Rename(filepath.Join(p.dir, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return fmt.Errorf("cannot keep the files of an attempt: %v", err)
		}
	}
	return nil
}

// newest is the latest change of any of the attempt's files.
func (p place) newest() time.Time {
	var last time.Time
	_ = filepath.WalkDir(p.dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // what cannot be read tells nothing
		}
		if info, err := e.Info(); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
		return nil
	})
	return last
}

func writeFile(path string, data []byte) error {
	if err := files.Replace(path, data, 0o600, false); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// maxSettings is the size in bytes over which a program's settings are not read.
const maxSettings = 1 << 20

// writeSettings writes the files that a program needs before its start, where they
// are not there as they should be. They lie below stateDir in a folder of the agent's,
// which may have put links there. later are those that only the supervisor can
// write, who knows the gateway's address.
func writeSettings(stateDir string, settings []agent.File) (later []agent.File, err error) {
	for _, f := range settings {
		if strings.Contains(f.Content, agent.GatewayAddress) {
			later = append(later, f)
			continue
		}
		name, err := filepath.Rel(stateDir, f.Path)
		if err == nil {
			if old, rerr := files.ReadBelow(stateDir, name, maxSettings); rerr == nil && string(old) == f.Content {
				continue
			}
			err = files.ReplaceBelow(stateDir, name, []byte(f.Content), 0o600, false)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot write the agent's settings: %w", err)
		}
	}
	return later, nil
}
