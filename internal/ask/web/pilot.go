package web

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Autopilot is what works the board by itself.
type Autopilot struct {
	Running     bool       `json:"running" doc:"A process drives it now; else this is how the last one ended."`
	PID         int        `json:"pid"`
	Host        string     `json:"host" doc:"The machine that drives it, on a board that several share; else empty."`
	Phase       string     `json:"phase" doc:"running, paused, stopping or ended; empty when there never was one"`
	Mode        string     `json:"mode" doc:"auto or semi-auto"`
	Why         string     `json:"why"`
	Sprint      string     `json:"sprint" doc:"The id of the sprint that it works for; empty without one."`
	StartedAt   *time.Time `json:"started_at" nullable:"true"`
	EndedAt     *time.Time `json:"ended_at" nullable:"true"`
	MaxParallel int        `json:"max_parallel"`
	Tally       Tally      `json:"tally"`
	Slots       []SlotView `json:"slots" nullable:"false" doc:"Those that are taken."`
	Queued      int        `json:"queued" doc:"Verified tasks on their way to the target."`
	QueueHeld   string     `json:"queue_held" doc:"Why they do not go on without a person; empty when they do."`
	Plans       []string   `json:"plans,omitempty" doc:"What is used of the agents' subscriptions, in words."`
	Events      []PilotDid `json:"events" nullable:"false" doc:"What it did last, the latest first."`
	Actions     []string   `json:"actions" nullable:"false" doc:"What can be asked of it now: start, pause, resume, stop, mode."`
	Next        *Planned   `json:"next,omitempty" doc:"The sprint that begins when this one has come to its end."`
}

// Tally is what the autopilot has come to so far.
type Tally struct {
	Completed int `json:"completed"`
	Landed    int `json:"landed"`
	Failed    int `json:"failed"`
	TimedOut  int `json:"timed_out"`
	Blocked   int `json:"blocked"`
}

// SlotView is one agent at work: what a card shows, together with the run's
// activity in the events.
type SlotView struct {
	autopilot.Taken
	CostUSD *float64 `json:"cost_usd" nullable:"true"`
}

// PilotDid is one thing that the autopilot did.
type PilotDid autopilot.Event

// Sprints are runs of the autopilot up to a target, the latest first.
type Sprints struct {
	Sprints []SprintView `json:"sprints" nullable:"false"`
}

// SprintView is one of them, with the statistics that .pawl/sprints.jsonl has.
type SprintView struct {
	ID        string     `json:"id"`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at" nullable:"true"`
	Stats     any        `json:"stats" doc:"The line of .pawl/sprints.jsonl."`
}

// pilotHandlers answer what is asked of the autopilot and its sprints.
type pilotHandlers struct {
	*core
	planning sync.Mutex // held while the planned sprint changes
}

func (s *pilotHandlers) pilotRoutes(api huma.API) {
	get(api, "/autopilot", "get-autopilot", "autopilot", "What the autopilot does: slots, tally, what it did last",
		s.getAutopilot)
	get(api, "/sprints", "list-sprints", "autopilot", "Sprints with their statistics, the latest first", s.getSprints)
	post(api, "/sprints", "start-sprint", "autopilot", "Start a sprint in the background; it ends with the server",
		s.startSprint)
	post(api, "/sprints/next", "plan-sprint", "autopilot",
		"Plan the sprint that begins when the one at work has come to its end; it takes the place of one that was planned", s.planSprint)
	addRoute(api, huma.Operation{OperationID: "drop-sprint", Method: http.MethodDelete, Path: base + "/sprints/next",
		Summary: "Drop the planned sprint", Tags: []string{"autopilot"}, DefaultStatus: http.StatusOK}, s.dropSprint)
	post(api, "/autopilot/start", "start-autopilot", "autopilot",
		"Start the autopilot in the background; it ends with the server", s.startAutopilot)
	post(api, "/autopilot/pause", "pause-autopilot", "autopilot",
		"Start nothing new; runs rest at the end of their iteration", s.askAutopilot("pause", ""))
	post(api, "/autopilot/resume", "resume-autopilot", "autopilot", "Go on after a pause", s.askAutopilot("resume", ""))
	post(api, "/autopilot/stop", "stop-autopilot", "autopilot",
		"End the runs and the autopilot; the tasks go back to pending", s.askAutopilot("stop", ""))
	post(api, "/autopilot/mode", "switch-autopilot", "autopilot", "Who chooses tasks: the autopilot, or a person",
		s.switchAutopilot)
}

func (s *pilotHandlers) getAutopilot(ctx context.Context, _ *nothing) (*body[Autopilot], error) {
	v, err := autopilot.Status(ctx, s.o.Store, s.o.Root)
	if err != nil {
		return nil, err
	}
	t := v.Tally
	out := Autopilot{
		Running: v.Running, PID: v.PID, Phase: v.Phase, Mode: v.Mode, Why: v.Why,
		Sprint: v.Sprint, StartedAt: timeOrNil(v.StartedAt), EndedAt: timeOrNil(v.EndedAt), MaxParallel: v.MaxParallel,
		Tally:  Tally{t.Completed, t.Landed, t.Failed, t.TimedOut, t.Blocked},
		Queued: v.Queued, QueueHeld: v.QueueHeld, Plans: v.Plans, Actions: []string{"start"},
		Events: lists.Each(v.Events, func(e autopilot.Event) PilotDid { return PilotDid(e) }),
	}
	if out.Next, err = s.plannedSprint(); err != nil {
		return nil, err
	}
	if s.o.Store.BoardName() != "" {
		out.Host = v.Host
	}
	if v.Running {
		out.Actions = []string{"pause", "stop", "mode"}
		if v.Phase == "paused" {
			out.Actions[0] = "resume"
		}
	}
	out.Slots = lists.Each(v.Slots, func(l autopilot.SlotView) SlotView {
		return SlotView{l.Taken, l.Cost.Dollars(l.CostKnown)}
	})
	return answer(out), nil
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (s *pilotHandlers) getSprints(ctx context.Context, in *struct {
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"50"`
}) (*body[Sprints], error) {
	list, err := s.o.Store.Sprints(ctx, in.Limit)
	if err != nil {
		return nil, err
	}
	return answer(Sprints{lists.Each(list, func(p store.Sprint) SprintView {
		one := SprintView{ID: p.ID, StartedAt: p.StartedAt, EndedAt: timeOrNil(p.EndedAt)}
		if json.Valid(p.Stats) {
			one.Stats = p.Stats
		}
		return one
	})}), nil
}

// PilotWish is how an autopilot is to work; what is left out is as configured.
type PilotWish struct {
	MaxParallel int    `json:"max_parallel,omitempty" minimum:"1" maximum:"100" doc:"Tasks at once."`
	Mode        string `json:"mode,omitempty" enum:"auto,semi-auto"`
	Keep        bool   `json:"keep,omitempty" doc:"Stay when nothing is left to do."`
}

func (s *pilotHandlers) startAutopilot(ctx context.Context, in *struct{ Body PilotWish }) (*body[Done], error) {
	args, wish := []string{"autopilot"}, in.Body
	if wish.Mode == string(schedule.SemiAuto) {
		args = append(args, "--semi-auto")
	}
	wish.Mode = ""
	return s.launchAutopilot(ctx, append(args, flagsOf(wish)...), "The autopilot has started.")
}

func (s *pilotHandlers) launchAutopilot(ctx context.Context, args []string, said string) (*body[Done], error) {
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

// SprintWish is what a sprint is to come to; what is left out is as configured.
type SprintWish struct {
	Count        string   `json:"count,omitempty" maxLength:"10" doc:"Until so many tasks are complete."`
	Hours        string   `json:"hours,omitempty" maxLength:"10" doc:"For so long: 4, 1.5 or 90m."`
	Until        string   `json:"until,omitempty" maxLength:"10" doc:"Until HH:MM, local time of the server; one that is past is tomorrow's."`
	NoReady      bool     `json:"no_ready,omitempty" doc:"Until no task is ready."`
	Operations   []string `json:"operations,omitempty" maxItems:"100" doc:"Only what is in these."`
	Tags         []string `json:"tags,omitempty" maxItems:"100" doc:"Only tasks with one of these."`
	ExcludeTags  []string `json:"exclude_tags,omitempty" maxItems:"100"`
	Checkpoint   *bool    `json:"checkpoint,omitempty" doc:"Keep the target as it is before the sprint."`
	PauseOnError bool     `json:"pause_on_error,omitempty"`
	BatchReview  bool     `json:"batch_review,omitempty" doc:"Verified work waits for a review, all of it when the sprint has ended."`
	MaxParallel  int      `json:"max_parallel,omitempty" minimum:"1" maximum:"100"`
}

func (s *pilotHandlers) startSprint(ctx context.Context, in *struct{ Body SprintWish }) (*body[Done], error) {
	return s.launchAutopilot(ctx, append([]string{"sprint"}, flagsOf(in.Body)...), "The sprint has started.")
}

// askAutopilot does not wait for the end after a stop; mode is for switching.
func (s *pilotHandlers) askAutopilot(wish, mode string) func(context.Context, *nothing) (*body[Done], error) {
	return func(ctx context.Context, _ *nothing) (*body[Done], error) {
		return s.doAction(ctx, func(p *action.Operator) (string, error) { return "", p.AskAutopilot(ctx, wish, mode, false) })
	}
}

func (s *pilotHandlers) switchAutopilot(ctx context.Context, in *struct {
	Body struct {
		Mode string `json:"mode" enum:"auto,semi-auto"`
	}
}) (*body[Done], error) {
	if in.Body.Mode == "" {
		return nil, problem(http.StatusUnprocessableEntity, "INVALID_REQUEST",
			"The mode is missing").suggest("Send mode: auto or semi-auto")
	}
	return s.askAutopilot("mode", in.Body.Mode)(ctx, nil)
}
