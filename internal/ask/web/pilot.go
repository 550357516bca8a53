package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/web/begun"
	"github.com/pawl-dev/pawl/internal/ask/web/hub"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/autopilot/overview"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// pilotHandlers answer what is asked of the autopilot and its sprints.
type pilotHandlers struct {
	*core
	begun *begun.Autopilots
}

func newPilotHandlers(c *core) pilotHandlers {
	s := pilotHandlers{core: c}
	s.begun = &begun.Autopilots{Store: c.o.Store, Dir: c.o.StateDir, Start: s.launchAutopilot, Resumed: c.o.Resumed,
		Changed: func() { c.hub.Broadcast(hub.NewFrame("", "changed", hub.Changed{What: "autopilot"})) }}
	return s
}

func (s *pilotHandlers) pilotRoutes(api huma.API) {
	at := rest.Tagged(api, "autopilot")
	rest.Get(at, "/autopilot", "get-autopilot", "What the autopilot does: slots, totals, its last actions",
		s.getAutopilot)
	rest.Get(at, "/sprints", "list-sprints", "Sprints with their statistics, the latest first", s.getSprints)
	rest.Post(at, "/sprints", "start-sprint", "Start a sprint in the background; it ends with the server",
		s.startSprint)
	rest.Post(at, "/sprints/next", "plan-sprint",
		"Plan the sprint that starts when the current one has ended; it replaces one that was planned before",
		s.planSprint)
	rest.Delete(at, "/sprints/next", "drop-sprint", "Drop the planned sprint", s.dropSprint)
	rest.Post(at, "/autopilot/start", "start-autopilot",
		"Start the autopilot in the background; it ends with the server, and works again with the next one",
		s.startAutopilot)
	rest.Post(at, "/autopilot/pause", "pause-autopilot", "Start nothing new; runs pause at the end of their iteration",
		s.askAutopilot("pause", ""))
	rest.Post(at, "/autopilot/resume", "resume-autopilot", "Continue after a pause", s.askAutopilot("resume", ""))
	rest.Post(at, "/autopilot/stop", "stop-autopilot", "End the runs and the autopilot; the tasks go back to pending",
		s.askAutopilot("stop", ""))
	rest.Post(at, "/autopilot/mode", "switch-autopilot", "Who chooses tasks: the autopilot, or a person",
		s.switchAutopilot)
	rest.Post(at, "/autopilot/slots", "set-slots",
		"How many tasks are worked on at once while it runs; running tasks continue", s.setSlots)
}

func (s *pilotHandlers) getAutopilot(ctx context.Context, _ *rest.Nothing) (*rest.Body[view.Autopilot], error) {
	v, err := overview.Read(ctx, s.o.Store, s.o.Root)
	if err != nil {
		return nil, err
	}
	out := view.ShowAutopilot(v)
	if c, err := s.loadConfig(); err == nil && !v.Running {
		out.MaxParallel = c.Autopilot.MaxParallel // that a start would have
	}
	if out.Next, err = s.begun.Planned(); err == nil {
		out.Restart, err = s.begun.Restart(v.Session)
	}
	if err != nil {
		return nil, err
	}
	if s.o.Store.BoardName() != "" {
		out.Host = v.Host
	}
	return rest.Answer(out), nil
}

func (s *pilotHandlers) getSprints(ctx context.Context, in *struct {
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"50"`
}) (*rest.Body[view.Sprints], error) {
	list, err := s.o.Store.Sprints(ctx, in.Limit)
	if err != nil {
		return nil, err
	}
	return rest.Answer(view.Sprints{Sprints: lists.Each(list, func(p store.Sprint) view.SprintView {
		one := view.SprintView{ID: p.ID, StartedAt: p.StartedAt, EndedAt: view.TimeOrNil(p.EndedAt)}
		if json.Valid(p.Stats) {
			one.Stats = p.Stats
		}
		return one
	})}), nil
}

func (s *pilotHandlers) startAutopilot(ctx context.Context, in *struct{ Body view.PilotWish }) (*done, error) {
	return s.doAction(ctx, func(p *action.Operator) (string, error) {
		p.Say("The autopilot has started.")
		return "", s.begun.StartWithoutSprint(ctx, in.Body)
	})
}

func (s *pilotHandlers) launchAutopilot(ctx context.Context, args []string) (session string, err error) {
	if pilot, err := s.o.Autopilot(ctx); err == nil {
		return "", fault.Refuse("the autopilot is already running: %v", pilot.Owner)
	}
	return s.o.Launch(ctx, args, func(pid int) (string, bool, error) {
		pilot, ok, err := s.o.Store.Autopilot(ctx)
		return pilot.Session, ok && pilot.Owner.PID == pid, err
	})
}

func (s *pilotHandlers) startSprint(ctx context.Context, in *struct{ Body view.SprintWish }) (*done, error) {
	return s.doAction(ctx, func(p *action.Operator) (string, error) {
		p.Say("The sprint has started.")
		return "", s.begun.StartSprint(ctx, in.Body)
	})
}

// askAutopilot does not wait for the end after a stop; mode is for switching.
func (s *pilotHandlers) askAutopilot(wish, mode string) func(context.Context, *rest.Nothing) (*done, error) {
	return func(ctx context.Context, _ *rest.Nothing) (*done, error) {
		if wish == "stop" {
			s.begun.Forget()
		}
		return s.doAction(ctx, func(p *action.Operator) (string, error) { return "", p.AskAutopilot(ctx, wish, mode, false) })
	}
}

func (s *pilotHandlers) switchAutopilot(ctx context.Context, in *struct {
	Body struct {
		Mode string `json:"mode" enum:"auto,semi-auto"`
	}
}) (*done, error) {
	if in.Body.Mode == "" {
		return nil, rest.Problem(http.StatusUnprocessableEntity, "INVALID_REQUEST",
			"The mode is missing").Suggest("Send mode: auto or semi-auto")
	}
	return s.askAutopilot("mode", in.Body.Mode)(ctx, nil)
}

func (s *pilotHandlers) setSlots(ctx context.Context, in *struct {
	Body struct {
		MaxParallel int `json:"max_parallel" minimum:"1" maximum:"100" doc:"Tasks at once."`
	}
}) (*done, error) {
	return s.askAutopilot("slots", strconv.Itoa(in.Body.MaxParallel))(ctx, nil)
}

// nextEvery is how soon a planned sprint begins after the end of the one before.
const nextEvery = time.Second

func (s *pilotHandlers) planSprint(ctx context.Context, in *struct{ Body view.SprintWish }) (*done, error) {
	return s.doAction(ctx, func(p *action.Operator) (string, error) {
		p.Say("The sprint is planned. It starts when the current one has ended.")
		return "", s.begun.Plan(&view.Planned{SprintWish: in.Body})
	})
}

func (s *pilotHandlers) dropSprint(ctx context.Context, _ *rest.Nothing) (*done, error) {
	return s.doAction(ctx, func(p *action.Operator) (string, error) {
		p.Say("The planned sprint is removed.")
		return "", s.begun.Plan(nil)
	})
}

// beginPlanned starts each autopilot in its time, until ctx is done.
func (s *pilotHandlers) beginPlanned(ctx context.Context) {
	hub.Every(ctx, nextEvery, func() {
		if err := s.begun.StartNext(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("cannot start the autopilot or its sprint", "error", err)
		}
	})
}
