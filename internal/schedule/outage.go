package schedule

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/loop"
)

// Outage is a limit of an agent's provider that runs wait for.
type Outage struct {
	Agent string    `json:"agent"`
	Since time.Time `json:"since"`
}

// limited notes where an outage begins and where it is over, once for all runs.
func (s *State) limited(e *Event) {
	i := slices.IndexFunc(s.Outages, func(o Outage) bool { return o.Agent == e.Named })
	switch {
	case e.Why != "" && i < 0:
		s.Outages = append(s.Outages, Outage{Agent: e.Named, Since: s.At})
		s.Tells = append(s.Tells, e.Why+": tasks wait for it, and go on by themselves")
	case e.Why == "" && i >= 0:
		took := s.At.Sub(s.Outages[i].Since)
		s.Tells = append(s.Tells, fmt.Sprintf("the provider of %s answers again, after %s", e.Named, loop.Duration(took)))
		s.Outages = slices.Delete(s.Outages, i, i+1)
	}
}
