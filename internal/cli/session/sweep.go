package session

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/internal/cli/command"
	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/retention"
)

// sweepWithin bounds what a run that ended does about others.
const sweepWithin = 10 * time.Second

// Sweep removes what is over, unless somebody did so within the hour.
func (s *Session) Sweep(ctx context.Context, repo *git.Repo) error {
	if s.Store == nil || !retention.Due(s.StateDir, time.Now()) {
		return nil
	}
	o := command.Retention(s.Config, s.StateDir, s.Store, repo)
	o.Now = process.Cautious()
	_, err := retention.Sweep(ctx, o)
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
	repo, err := git.Open(ctx, s.Plan.Root)
	if err != nil {
		repo = nil // there are no refs outside of git
	}
	if err := s.Sweep(ctx, repo); err != nil && ctx.Err() == nil {
		s.App.Say("Warning: what is over could not be removed: %v", err)
	}
}
