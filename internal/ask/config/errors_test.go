package config_test

import (
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/config"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	words := []string{"max_iterations", "lease", "pull-request", "no", "cline"}
	for word, want := range map[string]string{
		"maxIterations": "max_iterations", "max-iterations": "max_iterations", "leese": "lease", "laese": "lease", "leases": "lease",
		"pull_request": "pull-request", "pull-requset": "pull-request", "x": "", "on": "", "release": "lease", "increase": "",
		"mine": "", "clin": "cline",
	} {
		if got := config.Nearest(word, words); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
