package ending

import (
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// What the gateway saw of each model is in the record, by name.
func TestModelsAreRecorded(t *testing.T) {
	t.Parallel()
	r := NewRecord(&runplan.Plan{}, loop.Command{}, supervisor.Result{Agent: agent.Outcome{Models: map[string]agent.ModelUse{
		"small": {Usage: agent.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}, Calls: 5, Cost: 6},
		"big":   {Calls: 7, Unpriced: true},
	}}})
	want := []loop.ModelUse{
		{Model: "big", Calls: 7, Unpriced: true},
		{Model: "small", Calls: 5, Input: 1, CacheRead: 3, CacheWrite: 4, Output: 2, Cost: 6},
	}
	if !slices.Equal(r.Models, want) {
		t.Errorf("the record has %+v", r.Models)
	}
}
