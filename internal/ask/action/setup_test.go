package action

import (
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// A run whose pawl died before it delivered what was verified needs a person, who is told.
func TestSetupOfARunThatDiedUndelivered(t *testing.T) {
	t.Parallel()
	r := store.Run{ID: "abc123", Status: string(loop.Completed), Setup: []byte(`{"private":"run-build"}`)}
	const why = "pawl ended before it delivered the work; continue with: pawl resume abc123"
	if s := SetupOf(r); !s.UndeliveredNeeds || s.Undelivered != why {
		t.Errorf("dead: %+v", s)
	}
	ended, active, inPlace := r, r, r
	ended.EndedAt, active.Status, inPlace.Setup = time.Now(), string(loop.Running), []byte(`{}`)
	for name, r := range map[string]store.Run{"ended": ended, "active": active, "in place": inPlace} {
		if s := SetupOf(r); s.Undelivered != "" || s.UndeliveredNeeds {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
