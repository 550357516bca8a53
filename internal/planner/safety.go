package planner

import (
	"github.com/pawl-dev/pawl/internal/agent/agents"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/safety"
)

// safe takes out of the environment what the level withholds, and refuses a
// gate that the level forbids.
func (d draft) safe(plan *engine.Plan) error {
	level := safety.Level(plan.Safety)
	own := Variables(d.Config)
	plan.Home = d.getenv("HOME")
	plan.Environ, plan.Withheld = level.Environ(d.Env, nil, own)
	for name, ag := range plan.Agents {
		ag.Environ, ag.Withheld = level.Environ(d.Env, d.needs(name), own)
		plan.Agents[name] = ag
	}
	gate, f, refused := plan.RefusedGate()
	if !refused {
		return nil
	}
	return fault.Refuse("gate %q is refused at safety level %s: %s: it %s (%s)", gate, plan.Safety,
		f.Operation.Message(), f.Why, f.Pattern).
		Hint("What was found: %s", f.Command).
		Hint("Take it out of verification.commands, or allow it: --safety permissive")
}

// Variables are what the user hides from agents and gates, and lets through.
func Variables(c *config.Config) safety.Variables {
	return safety.Variables{Hide: c.Safety.Env.Hide, Allow: c.Safety.Env.Allow}
}

// needs are the variables that an agent's program reads its credentials from.
func (d draft) needs(name string) []string {
	format := d.Config.Agents.Named[name].Output
	return agents.Variables(name, format, d.getenv)
}
