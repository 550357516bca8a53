package engine

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// What somebody else wrote into the database is an error, and no panic later.
func TestAStateThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, state := range []string{`{"recent":[null]}`, `{"recent":{}}`, `[]`, ``} {
		if _, err := storedrun.StateOf(store.Run{ID: "7k3f", State: []byte(state)}); err == nil || !strings.Contains(err.Error(), "cannot read the state of run 7k3f") {
			t.Errorf("%q: %v", state, err)
		}
	}
}
