package web

import (
	"github.com/pawl-dev/pawl/internal/ask/web/view"

	"github.com/pawl-dev/pawl/internal/ask/web/rest"

	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/web/hub"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// nextEvery is how soon a planned sprint begins after the end of the one before.
const nextEvery = time.Second

// stopped is the least exit status of an autopilot that somebody ended: what was
// planned behind it waits for a person.
const stopped = 128

func (s *pilotHandlers) nextFile() string { return filepath.Join(s.o.StateDir, "next-sprint.json") }

// plannedSprint returns the sprint that is planned, or nil.
func (s *pilotHandlers) plannedSprint() (p *view.Planned, err error) {
	if err = files.ReadJSON(s.nextFile(), &p); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return p, err
}

// replacePlanned keeps a sprint for later; nil drops it.
func (s *pilotHandlers) replacePlanned(p *view.Planned) error {
	s.planning.Lock()
	defer s.planning.Unlock()
	return s.storePlanned(p)
}

func (s *pilotHandlers) storePlanned(p *view.Planned) error {
	defer s.hub.Broadcast(hub.NewFrame("", "changed", hub.Changed{What: "autopilot"}))
	if p == nil {
		if err := os.Remove(s.nextFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return files.ReplaceJSON(s.nextFile(), p, false)
}

func (s *pilotHandlers) planSprint(ctx context.Context, in *struct{ Body view.SprintWish }) (*rest.Body[view.Done], error) {
	return s.doAction(ctx, func(p *action.Operator) (string, error) {
		p.Say("The sprint is planned. It begins when the one at work has come to its end.")
		return "", s.replacePlanned(&view.Planned{SprintWish: in.Body})
	})
}

func (s *pilotHandlers) dropSprint(ctx context.Context, _ *rest.Nothing) (*rest.Body[view.Done], error) {
	return s.doAction(ctx, func(p *action.Operator) (string, error) {
		p.Say("The planned sprint is dropped.")
		return "", s.replacePlanned(nil)
	})
}

// beginPlanned begins each planned sprint in its time, until ctx is done.
func (s *pilotHandlers) beginPlanned(ctx context.Context) {
	tick := time.NewTicker(nextEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := s.beginNext(ctx); err != nil && ctx.Err() == nil {
				s.log.Error("cannot begin the planned sprint", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// beginNext begins the planned sprint, if there is one and its time has come.
func (s *pilotHandlers) beginNext(ctx context.Context) error {
	s.planning.Lock()
	defer s.planning.Unlock()
	next, err := s.plannedSprint()
	if err != nil || next == nil || next.Held != "" {
		return err
	}
	pilot, ok, err := s.o.Store.Autopilot(ctx)
	if err != nil || ok && (engine.Alive(pilot.Owner) || pilot.On()) {
		return err
	}
	cutOff := pilot.EndedAt.IsZero() || pilot.Exit >= stopped
	if ok && cutOff {
		next.Held = "The sprint before it was stopped, or broke off."
		return s.storePlanned(next)
	}
	if _, err := s.launchAutopilot(ctx, append([]string{"sprint"}, view.FlagsOf(next.SprintWish)...),
		"The planned sprint has started."); err != nil {
		next.Held = err.Error()
		return s.storePlanned(next)
	}
	return s.storePlanned(nil)
}
