package cli

import (
	"os"

	"github.com/pawl-dev/pawl/internal/agent/agents"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/planner"
	"github.com/pawl-dev/pawl/internal/prompt"
	"github.com/pawl-dev/pawl/internal/strategy"
)

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

// planner makes plans, and warns of what is left out of them.
func (a *app) planner(c *config.Config, f planner.Flags) *planner.Planner {
	return &planner.Planner{
		Config: c, Flags: f, Env: a.env, Dir: a.dir, LookPath: a.lookPath,
		Warn: func(text string) { a.say("Warning: %s", text) },
	}
}

// fileExists is false for folders too.
func fileExists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// warnFixedStrategy says that a strategy that was fixed for the run changes
// nothing, before money is spent.
func (s *session) warnFixedStrategy(pol *loop.Policy) {
	if pol.Strategy == "" {
		return
	}
	at := strategy.Situation{
		Own: pol.Strategies, CanFallback: len(pol.Fallback) > 0, CanStronger: pol.Stronger != "", CanRewind: s.tree != nil,
		HasOptional: pol.HasOptional, IterationTimeout: pol.IterationTimeout, Ceiling: pol.IterationCeiling,
	}
	if why := at.Ineffective(pol.Strategy); why != "" {
		s.a.say("Warning: strategy %s has no effect: %s.", pol.Strategy, why)
	}
}
