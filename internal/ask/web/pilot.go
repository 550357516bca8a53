package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/web/hub"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/autopilot/overview"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// pilotHandlers answer what is asked of the autopilot and its sprints.
type pilotHandlers struct {
	*core
	planning sync.Mutex // held while the planned sprint changes
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
		"Start the autopilot in the background; it ends with the server", s.startAutopilot)
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
	if out.Next, err = s.plannedSprint(); err != nil {
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
	args, wish := []string{"autopilot"}, in.Body
	if wish.Mode == string(schedule.SemiAuto) {
		args = append(args, "--semi-auto")
	}
	wish.Mode = ""
	return s.launchAutopilot(ctx, append(args, view.FlagsOf(wish)...), "The autopilot has started.")
}

func (s *pilotHandlers) launchAutopilot(ctx context.Context, args []string, said string) (*done, error) {
	return s.doAction(ctx, func(p *action.Operator) (string, error) {
		if pilot, err := p.Autopilot(ctx); err == nil {
			return "", fault.Refuse("the autopilot is already running: %v", pilot.Owner)
		}
		p.Say("%s", said)
		_, err := s.o.Launch(ctx, args, func(pid int) (string, bool, error) {
			pilot, ok, err := s.o.Store.Autopilot(ctx)
			return pilot.Session, ok && pilot.Owner.PID == pid, err
		})
		return "", err
	})
}

func (s *pilotHandlers) startSprint(ctx context.Context, in *struct{ Body view.SprintWish }) (*done, error) {
	s.planning.Lock()
	defer s.planning.Unlock()
	said, err := s.launchSprint(ctx, in.Body, "The sprint has started.")
	if next, perr := s.plannedSprint(); err == nil && perr == nil && next != nil && next.Held != "" {
		err = s.storePlanned(nil) // what was held is this one, or is not wanted any more
	}
	return said, err
}

// launchSprint keeps what the sprint is to come to: when its process is ended before, the rest is planned.
func (s *pilotHandlers) launchSprint(ctx context.Context, wish view.SprintWish, said string) (*done, error) {
	out, err := s.launchAutopilot(ctx, append([]string{"sprint"}, view.FlagsOf(wish)...), said)
	if err == nil {
		err = files.ReplaceJSON(s.begunFile(), view.Planned{SprintWish: wish}, false)
	}
	return out, err
}

// askAutopilot does not wait for the end after a stop; mode is for switching.
func (s *pilotHandlers) askAutopilot(wish, mode string) func(context.Context, *rest.Nothing) (*done, error) {
	return func(ctx context.Context, _ *rest.Nothing) (*done, error) {
		if wish == "stop" {
			_ = os.Remove(s.begunFile()) // who stops a sprint does not want the rest
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

// stopped is the least exit status of an autopilot that somebody ended: what was
// planned behind it waits for a person.
const stopped = 128

func (s *pilotHandlers) nextFile() string { return filepath.Join(s.o.StateDir, "next-sprint.json") }

func (s *pilotHandlers) begunFile() string { return filepath.Join(s.o.StateDir, "this-sprint.json") }

// restOf returns what is left of the sprint that was begun here and cut off; nil where nothing is.
func (s *pilotHandlers) restOf(ctx context.Context, pilot store.Autopilot) (rest *view.Planned, err error) {
	if err = files.ReadJSON(s.begunFile(), &rest); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	list, lerr := s.o.Store.Sprints(ctx, 1)
	if err = errors.Join(err, lerr, os.Remove(s.begunFile())); err != nil || len(list) == 0 {
		return nil, err
	}
	var did struct {
		Completed int `json:"completedTasks"`
	}
	_ = json.Unmarshal(list[0].Stats, &did) // of what cannot be read nothing counts as done
	rest.Held = "The sprint was cut off: " + cmp.Or(pilot.Why, "its process ended") + "."
	if n, err := strconv.Atoi(rest.Count); err == nil {
		rest.Count = strconv.Itoa(n - did.Completed)
		if n <= did.Completed {
			return nil, nil
		}
	}
	hours, err := strconv.ParseFloat(rest.Hours, 64)
	all := time.Duration(hours * float64(time.Hour))
	if err != nil {
		all, _ = time.ParseDuration(rest.Hours) // none is set
	}
	if all > 0 {
		end := pilot.EndedAt
		if end.IsZero() {
			end = pilot.UpdatedAt // it was killed
		}
		left := all - end.Sub(list[0].StartedAt)
		rest.Hours = fmt.Sprintf("%dm", max(1, int(left.Minutes())))
	}
	return rest, nil
}

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

func (s *pilotHandlers) planSprint(ctx context.Context, in *struct{ Body view.SprintWish }) (*done, error) {
	return s.doAction(ctx, func(p *action.Operator) (string, error) {
		p.Say("The sprint is planned. It starts when the current one has ended.")
		return "", s.replacePlanned(&view.Planned{SprintWish: in.Body})
	})
}

func (s *pilotHandlers) dropSprint(ctx context.Context, _ *rest.Nothing) (*done, error) {
	return s.doAction(ctx, func(p *action.Operator) (string, error) {
		p.Say("The planned sprint is removed.")
		return "", s.replacePlanned(nil)
	})
}

// beginPlanned begins each planned sprint in its time, until ctx is done.
func (s *pilotHandlers) beginPlanned(ctx context.Context) {
	hub.Every(ctx, nextEvery, func() {
		if err := s.beginNext(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("cannot start the planned sprint", "error", err)
		}
	})
}

// beginNext begins the planned sprint, if there is one and its time has come.
func (s *pilotHandlers) beginNext(ctx context.Context) error {
	s.planning.Lock()
	defer s.planning.Unlock()
	next, err := s.plannedSprint()
	isHeld := next != nil && next.Held != ""
	if err != nil || isHeld {
		return err
	}
	pilot, ok, err := s.o.Store.Autopilot(ctx)
	if err != nil || ok && (storedrun.Alive(pilot.Owner) || pilot.On()) {
		return err
	}
	cutOff := pilot.EndedAt.IsZero() || pilot.Exit >= stopped
	if next == nil {
		rest, err := s.restOf(ctx, pilot)
		if err == nil && rest != nil && cutOff {
			err = s.storePlanned(rest)
		}
		return err
	}
	if ok && cutOff {
		next.Held = "The sprint before it was stopped, or failed."
		return s.storePlanned(next)
	}
	if _, err := s.launchSprint(ctx, next.SprintWish, "The planned sprint has started."); err != nil {
		next.Held = err.Error()
		return s.storePlanned(next)
	}
	return s.storePlanned(nil)
}
