package session

import (
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/report"
)

// sayWithheld names the variables that the agent does not get.
func (s *Session) sayWithheld(plan engine.Plan) {
	if held := plan.Agents[plan.Policy.Agent].Withheld; len(held) > 0 {
		s.App.Say("Note: %s.", WithheldWords(held, "agent "+plan.Policy.Agent))
	}
}

// sayGateway tells which model calls go through the gateway, and of an agent that
// could be pointed there that it is not.
func (s *Session) sayGateway(plan engine.Plan) {
	name := plan.Policy.Agent
	ag := plan.Agents[name]
	var to []string
	for _, r := range ag.Routes {
		to = append(to, r.Name)
	}
	if len(to) > 0 {
		const through = "Note: %s reaches its models (%s) through pawl's gateway: " +
			"limits hold before each call, and the key stays here."
		s.App.Say(through, name, strings.Join(to, ", "))
		return
	}
	if ag.Around {
		const around = "Note: %s calls its models with a login of its own: " +
			"limits on cost hold as far as it says what it spends."
		s.App.Say(around, name)
	}
}

const maxNames = 8

// WithheldWords counts and names variables, never their values.
func WithheldWords(names []string, from string) string {
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
	return fmt.Sprintf("%s withheld from %s: %s (safety.env.allow lets one through)", what, from,
		strings.Join(shown, ", "))
}
