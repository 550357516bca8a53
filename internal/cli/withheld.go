package cli

import (
	"fmt"
	"sort"
	"strings"

	"github.com/pawl-dev/pawl/internal/agent/agents"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/planner"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/safety"
)

// sayWithheld tells which variables the agent does not get.
func (s *session) sayWithheld(plan engine.Plan) {
	if held := plan.Agents[plan.Policy.Agent].Withheld; len(held) > 0 {
		s.a.say("Note: %s.", withheldWords(held, "agent "+plan.Policy.Agent))
	}
}

const maxNames = 8

// withheldWords counts and names variables, never their values.
func withheldWords(names []string, from string) string {
	shown := make([]string, 0, maxNames+1)
	for i, n := range names {
		if i == maxNames {
			shown = append(shown, fmt.Sprintf("%d more", len(names)-i))
			break
		}
		shown = append(shown, report.Line(n, 60))
	}
	what := "1 variable is"
	if len(names) != 1 {
		what = fmt.Sprintf("%d variables are", len(names))
	}
	return fmt.Sprintf("%s withheld from %s: %s (safety.env.allow lets one through)", what, from, strings.Join(shown, ", "))
}

// environmentFound says what the configured level withholds here.
func (a *app) environmentFound(c *config.Config) string {
	level := safety.Level(c.Loop.Safety)
	if level == safety.Permissive {
		return "permissive: inherited whole"
	}
	_, held := level.Environ(a.env, agents.Variables(c.Agent, c.Agents.Named[c.Agent].Output, a.getenv), planner.Variables(c))
	if len(held) == 0 {
		return string(level) + ": nothing to withhold"
	}
	return string(level) + ": " + withheldWords(held, "agent "+c.Agent)
}

// showHarm lists what was refused, what looks like a secret, and what was
// withheld, below the iterations.
func (a *app) showHarm(records []loop.Record) {
	var lines []string
	held := map[string]bool{}
	for _, r := range records {
		if f := r.Refused; f != nil {
			lines = append(lines, fmt.Sprintf("Iteration %d was ended at: %s\n  %s: it %s (%s)", r.Number, report.Line(f.Command, 200), f.Operation.Message(), f.Why, f.Pattern))
		}
		for _, s := range r.Secrets {
			lines = append(lines, fmt.Sprintf("Iteration %d added what looks like a secret: %s:%d (%s)", r.Number, report.Line(s.File, 200), s.Line, s.Kind))
		}
		for _, n := range r.Withheld {
			held[n] = true
		}
	}
	if len(held) > 0 {
		names := make([]string, 0, len(held))
		for n := range held {
			names = append(names, n)
		}
		sort.Strings(names)
		lines = append(lines, "Environment: "+withheldWords(names, "the agent"))
	}
	if len(lines) > 0 {
		a.result("\n%s\n", strings.Join(lines, "\n"))
	}
}
