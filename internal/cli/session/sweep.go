package session

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/retention"
)

// sweepWithin bounds what a run that ended does about others.
const sweepWithin = 10 * time.Second

// Sweep removes what is over, unless somebody did so within the hour.
func (s *Session) Sweep(ctx context.Context) error {
	if s.Store == nil || !retention.Due(s.StateDir, time.Now()) {
		return nil
	}
	o, err := command.Retention(ctx, s.Config, s.StateDir, s.Store)
	if err != nil {
		return err
	}
	_, err = retention.Sweep(ctx, o)
	return err
}

// sweepAfter sweeps after a run. What cannot be removed is tried again after the
// next.
func (s *Session) sweepAfter(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sweepWithin)
	defer cancel()
	if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
		s.App.Say("Warning: what is over could not be removed: %v", err)
	}
}
