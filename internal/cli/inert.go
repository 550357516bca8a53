package cli

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/config"
)

// inert are settings that are read and checked but not acted on by this
// version. Who sets one is told at the start of a run: a setting that silently
// does nothing is worse than none.
var inert = []string{"hooks", "notify"}

func inertSettings(c *config.Config) []string {
	var set []string
	for _, path := range inert {
		if c.IsSet(path) {
			set = append(set, path)
		}
	}
	return set
}

func (s *session) warnInert() {
	if set := inertSettings(s.c); len(set) > 0 {
		s.a.say("Warning: this version does not act on %s (docs/limits.md).", strings.Join(set, ", "))
	}
}
