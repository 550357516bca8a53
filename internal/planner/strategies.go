package planner

import (
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/strategy"
)

// strategies sets how the run chooses its strategies, or the one that is fixed.
func (d draft) strategies(pol *loop.Policy) {
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
func (d draft) strategyAgents(all map[string]engine.Agent, pol *loop.Policy) error {
	kept := pol.Strategies[:0:0]
	for _, s := range pol.Strategies {
		if s.Agent != "" {
			fixed := s.Name == pol.Strategy
			err := d.add(all, s.Agent, fixed)
			if fixed && err != nil {
				return err
			}
			if err != nil {
				d.warn("strategy %s left out: %v", s.Name, err)
				continue
			}
		}
		kept = append(kept, s)
	}
	pol.Strategies = kept
	return nil
}
