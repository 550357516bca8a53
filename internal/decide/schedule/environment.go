package schedule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// This file separates faults of the environment from faults of tasks. When the
// first iterations of three tasks in a row fail in the same way, before their
// changes can matter, something that all of them need may be missing: nothing new
// is started. When a later iteration of one fails in that way too, the autopilot
// pauses with that cause. When one gets past it, the work could cure it after all,
// and that failure is no reason to pause any more.

// Iteration is one that ended in a slot.
type Iteration struct {
	Number int `json:"number"` // from 1
	// Failure is what made it fail; nil when it did not, or by a limit.
	Failure *Failure `json:"failure,omitempty"`
}

// Failure is what went wrong in an iteration.
type Failure struct {
	Fingerprint string        `json:"fingerprint"`
	Class       failure.Class `json:"class"`
	Step        string        `json:"step,omitempty"` // the gate that is red; "" for the agent
	Summary     string        `json:"summary"`
}

// Environment is what is known of failures in first iterations.
type Environment struct {
	// Cases are the tasks in a row whose first iteration failed in the same way.
	Cases       []string `json:"cases,omitempty"`
	Fingerprint string   `json:"fingerprint,omitempty"`
	// Again is true when a later iteration of one of them failed so too.
	Again bool `json:"again,omitempty"`
	// Curable are failures that a task got past; the newest last.
	Curable []string `json:"curable,omitempty"`
}

const (
	sameFirst  = 3  // tasks that fail in the same way before it is the environment
	maxCurable = 20 // failures that are remembered
)

// noteIteration takes in an iteration that ended.
func (s *State) noteIteration(e *Event) {
	env, f := &s.Environment, e.Iteration.Failure
	mark := ""
	if f != nil {
		mark = f.Fingerprint
	}
	known := slices.Contains(env.Cases, e.Case)
	switch {
	case e.Iteration.Number > 1 && known && mark == env.Fingerprint:
		env.Again = true
	case e.Iteration.Number > 1 && known:
		env.noteCure()
		s.lookAtBoardAgain()
	case e.Iteration.Number > 1:
		return
	case mark == "":
		env.Cases = nil
	default:
		env.failedFirst(e.Case, mark)
	}
	if env.Again && len(env.Cases) >= sameFirst && s.Phase == Running {
		s.blameEnvironment(f)
	}
}

// failedFirst counts a first iteration that failed.
func (env *Environment) failedFirst(id, mark string) {
	if slices.Contains(env.Curable, mark) {
		return
	}
	if env.Fingerprint != mark {
		env.Cases, env.Fingerprint, env.Again = nil, mark, false
	}
	if !slices.Contains(env.Cases, id) {
		env.Cases = append(slices.Clip(env.Cases), id)
	}
}

// noteCure takes in that a task got past the failure.
func (env *Environment) noteCure() {
	env.Curable = append(slices.Clip(env.Curable), env.Fingerprint)
	env.Curable = env.Curable[max(0, len(env.Curable)-maxCurable):]
	env.Cases, env.Fingerprint, env.Again = nil, "", false
}

// blameEnvironment pauses because of the environment.
func (s *State) blameEnvironment(f *Failure) {
	what := f.Summary
	if f.Step != "" {
		what = f.Step + ": " + what
	}
	tasks := joinWithAnd(s.Environment.Cases)
	s.pauseFor(fmt.Sprintf("the first iterations of %s failed in the same way: %s", tasks, what))
	s.Alerts = append(s.Alerts, fmt.Sprintf("paused: %s. It looks like the environment, not like their work. %s Then: "+
		"pawl autopilot resume%s", s.Why, adviceFor(f.Class), s.limitPause()))
}

// isInDoubt is true while it is not known yet whether the environment is at fault:
// one of the tasks still works.
func (s *State) isInDoubt() bool {
	env := &s.Environment
	return len(env.Cases) >= sameFirst && !env.Again && slices.ContainsFunc(s.Slots, func(l Slot) bool {
		return l.End == nil && slices.Contains(env.Cases, l.Case)
	})
}

// joinWithAnd gives "a, b and c".
func joinWithAnd(ids []string) string {
	last := len(ids) - 1
	return strings.Join(ids[:last], ", ") + " and " + ids[last]
}

// adviceFor names what a person can set or do against a fault of the environment.
func adviceFor(c failure.Class) string {
	const setup = "A workspace has only what is in git: workspace.copy brings ignored files of your checkout, " +
		"workspace.setup runs commands (npm ci); both reach kept workspaces at the next start."
	switch c {
	case failure.Network, failure.ServiceUnavailable:
		return "Start the service that they need, or have workspace.setup start what it needs."
	case failure.MissingCommand:
		return "Install the program on this machine, or with workspace.setup."
	case failure.Auth:
		return "Log in again; 'pawl doctor' shows which agents can work."
	case failure.ResourceExhausted:
		return "Free some disk or memory, or lower autopilot.max_parallel."
	case failure.PortConflict:
		return "Use ports from PAWL_PORT_BASE on; each workspace has its own."
	}
	return setup
}

// agentAdvice is the same against what stops an agent program.
func agentAdvice(c failure.Class) string {
	switch c {
	case failure.QuotaExhausted:
		return "Buy credit, or set another agent."
	case failure.Validation:
		return "Set a model and an address that the provider knows, or another agent."
	}
	return adviceFor(c)
}

// Halt is the last task whose agent was stopped by what only a person can set right. It goes back;
// when the next one is stopped so too, the autopilot pauses, and no task is blamed.
type Halt struct {
	Case string `json:"case,omitempty"`
	Past bool   `json:"past,omitempty"` // another task's agent worked since
}

// noteHaltedAgent takes in that the agent of a task was stopped by what only a person can set right.
func (s *State) noteHaltedAgent(id string, end *Outcome) {
	s.removeBench(id)
	s.Bench = append(s.Bench, Bench{Case: id, Until: s.At.Add(boardPause), Why: end.Why})
	second := s.Halt.Case != "" && !s.Halt.Past
	s.Halt = Halt{Case: id}
	if !second || s.Phase != Running {
		return
	}
	s.pauseFor(end.Why)
	s.Alerts = append(s.Alerts, fmt.Sprintf("paused: %s. No task caused it, and none has failed. %s Then: "+
		"pawl autopilot resume%s", strings.TrimRight(s.Why, "."), agentAdvice(end.Person), s.limitPause()))
}

// Outage is a limit of an agent's provider that runs wait for.
type Outage struct {
	Agent string    `json:"agent"`
	Since time.Time `json:"since"`
}

// noteLimit notes where an outage begins and where it is over, once for all runs.
func (s *State) noteLimit(e *Event) {
	i := slices.IndexFunc(s.Outages, func(o Outage) bool { return o.Agent == e.Named })
	switch {
	case e.Why != "" && i < 0:
		s.Outages = append(s.Outages, Outage{Agent: e.Named, Since: s.At})
		s.Tells = append(s.Tells, e.Why+": tasks wait for it, and continue by themselves")
	case e.Why == "" && i >= 0:
		took := s.At.Sub(s.Outages[i].Since)
		s.Tells = append(s.Tells, "the provider of "+e.Named+" answers again, after "+loop.Duration(took))
		s.Outages = slices.Delete(s.Outages, i, i+1)
	}
}
