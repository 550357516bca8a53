package engine

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

// leastRoom must stay free on the disk of the workspace, in bytes.
const leastRoom = 100 << 20

// guarded is the failure of an agent that a guard on its stream ended; nil for
// any other end. What the provider said decides what is to be done about
// calls that lead nowhere; the rest is for the agent to do otherwise.
func guarded(x loop.Exit, errs []failure.APIError, name string, now time.Time) *failure.Analysis {
	seen, advice := x.Why, ""
	if i := strings.LastIndex(x.Why, "; "); i >= 0 {
		seen, advice = x.Why[:i], x.Why[i+2:]
	}
	a := failure.Analysis{
		Class: failure.NoProgress, Kind: failure.Work, Severity: failure.Medium,
		Fingerprint: "guard-" + string(x.Ended), Summary: line(seen), Actions: []string{advice},
	}
	switch x.Ended {
	case loop.EndedRepeats, loop.EndedOutput:
		return &a
	case loop.EndedDisk: // the next agent would begin with no room
		a.Class, a.Kind, a.Severity = failure.ResourceExhausted, failure.Permanent, failure.Critical
		return &a
	case loop.EndedRequests, loop.EndedRetries:
	default:
		return nil
	}
	said := failure.Analyse(failure.Evidence{Source: "agent", Name: name, ExitCode: 1, Errors: errs, Now: now, Zone: zone})
	switch {
	case len(errs) > 0 && said.Class != failure.Unknown:
		said.Summary, said.Fingerprint = a.Summary, a.Fingerprint+"-"+string(said.Class)
		said.Actions = append(a.Actions, said.Actions...)
		return &said
	case x.Ended == loop.EndedRetries:
		a.Class, a.Kind, a.Transient = failure.ServiceUnavailable, failure.Transient, true
	}
	return &a
}

// TimeUp is the failure of an iteration that ended at a limit of time which no
// strategy can raise: the safety level's, or what was left of the run's own.
// Nil when the limit was the iteration's own.
func (p Plan) TimeUp(wall time.Duration) *failure.Analysis {
	pol := &p.Policy
	var why, advice string
	switch {
	case pol.IterationCeiling > 0 && wall == pol.IterationCeiling:
		why = fmt.Sprintf("the safety level %s allows an iteration %s", p.Safety, wall)
		advice = "Raise safety.limits." + p.Safety + ".max_duration_per_iteration, or do less in one iteration."
	case pol.IterationTimeout > 0 && wall < pol.IterationTimeout:
		why = "it had only what was left of the run's time, " + wall.Round(time.Millisecond).String()
		advice = "Give the run more time."
	default:
		return nil
	}
	return &failure.Analysis{
		Class: failure.LimitExceeded, Kind: failure.Work, Severity: failure.Medium, Fingerprint: "limit-time",
		Summary: "ended by pawl: " + why, Actions: []string{advice},
	}
}

// line cuts a message to the bytes that a summary holds.
func line(s string) string { return agent.Clip(s, 200) }

// zone looks a time zone up that a message names; nil is not known.
func zone(name string) *time.Location {
	at, err := time.LoadLocation(name)
	if err != nil || name == "" {
		return nil
	}
	return at
}
