package web

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/merge"
)

// queueHandlers answer what waits to land, and ask it of the merge queue.
type queueHandlers struct{ *core }

func (s queueHandlers) queueRoutes(api huma.API) {
	at := rest.Tagged(api, "queue")
	rest.Get(at, "/queue", "get-queue", "What waits to land, in the order of landing, and why", s.getQueues)
	rest.Post(at, "/queue/entries/{id}/actions", "ask-entry", "Hold an entry, release it, try it again, or take it out",
		s.askEntry)
	rest.Get(at, "/queue/entries/{id}/conflict", "get-conflict",
		"Both sides of a conflict that waits for a person, place by place", s.getConflict)
	rest.Post(at, "/queue/entries/{id}/conflict", "settle-conflict",
		"Settle a conflict: the result is queued again and verified like any other; no checkout is touched",
		s.resolveConflict)
	rest.Post(at, "/queue/actions", "ask-queue", "Pause the queue, resume it, or land what waits now", s.askQueue)
}

func (s queueHandlers) getQueues(ctx context.Context, _ *rest.Nothing) (*rest.Body[view.Queues], error) {
	targets, err := s.o.Store.QueueTargets(ctx)
	if err != nil {
		return nil, err
	}
	out := view.Queues{Queues: []action.QueueView{}}
	for _, target := range targets {
		v, err := s.o.Queue(ctx, target)
		if err != nil {
			return nil, err
		}
		out.Queues = append(out.Queues, v)
	}
	return rest.Answer(out), nil
}

// queueEntries returns the entries of all queues, by their tasks.
func (s *core) queueEntries(ctx context.Context) (map[string]action.QueueEntry, error) {
	targets, err := s.o.Store.QueueTargets(ctx)
	if err != nil {
		return nil, err
	}
	entries := map[string]action.QueueEntry{}
	for _, target := range targets {
		row, _, err := s.o.Store.Queue(ctx, target)
		if err != nil {
			return nil, err
		}
		for _, e := range row.State.Entries {
			entries[e.ID] = action.Queued(&row.State, &e, false)
		}
	}
	return entries, nil
}

func (s queueHandlers) askEntry(ctx context.Context, in *struct {
	rest.CasePath
	Body struct {
		Action string `json:"action" enum:"hold,release,retry,drop"`
		Why    string `json:"why,omitempty" maxLength:"2000" doc:"Shown in the list."`
	}
}) (*done, error) {
	entries, err := s.queueEntries(ctx)
	if err != nil {
		return nil, err
	}
	if e, ok := entries[in.ID]; ok && !slices.Contains(e.Actions, in.Body.Action) {
		return nil, fault.Refuse("cannot %s %s: it is %s", in.Body.Action, in.ID, e.Status)
	}
	return s.tellQueue(ctx, in.Body.Action, in.ID, in.Body.Why)
}

func (s queueHandlers) askQueue(ctx context.Context, in *struct {
	Body struct {
		Action string `json:"action" enum:"pause,resume,land" doc:"land lands what can be landed now, in the background, when no autopilot does."`
		Why    string `json:"why,omitempty" maxLength:"2000" doc:"Shown in the list."`
	}
}) (*done, error) {
	all, err := s.getQueues(ctx, nil)
	if err != nil {
		return nil, err
	}
	for i, q := range all.Body.Queues {
		if slices.Contains(q.Actions, in.Body.Action) {
			break
		}
		if i == len(all.Body.Queues)-1 {
			return nil, fault.Refuse("cannot %s the queue: %s", in.Body.Action, q.Hindrance())
		}
	}
	if in.Body.Action == "land" {
		return s.startLanding(ctx)
	}
	return s.tellQueue(ctx, in.Body.Action, "", in.Body.Why)
}

// queueSaid is what is answered to a request about the merge queue.
var queueSaid = map[string]string{
	"hold": "%s is held back.", "release": "%s is released.",
	"retry": "%s is tried again, with all attempts of an agent, which cost anew.",
	"drop":  "%s is out of the queue; its work is kept.",
	"pause": "Nothing lands until the queue is resumed.", "resume": "The queue is resumed.",
}

func (s queueHandlers) tellQueue(ctx context.Context, wish, id, why string) (*done, error) {
	return s.doAction(ctx, func(p *action.Operator) (string, error) {
		p.Say("%s", strings.ReplaceAll(queueSaid[wish], "%s", id))
		return "", s.o.AskQueue(ctx, queue.Ask{Wish: queue.Wish(wish), ID: id, Why: why})
	})
}

func (s queueHandlers) getConflict(ctx context.Context, in *rest.CasePath) (*rest.Body[merge.Sides], error) {
	var out merge.Sides
	err := s.o.OpenQueue(ctx, func(q *merge.Queue) (err error) {
		out, err = q.Sides(ctx, in.ID)
		return err
	})
	return rest.Answer(out), err
}

func (s queueHandlers) resolveConflict(ctx context.Context, in *struct {
	rest.CasePath
	Body struct {
		Commit string         `json:"commit" pattern:"^[0-9a-f]{40,64}$" doc:"The task's, as it was shown."`
		Tip    string         `json:"tip" pattern:"^[0-9a-f]{40,64}$" doc:"The target's, as it was shown."`
		Files  []merge.Choice `json:"files" maxItems:"100" nullable:"false" doc:"One for each file, in the order in which they were shown."`
	}
}) (*done, error) {
	return s.doAction(ctx, func(p *action.Operator) (string, error) {
		p.Say("%s is settled. It is verified once more, and then it lands.", in.ID)
		return "", s.o.OpenQueue(ctx, func(q *merge.Queue) error {
			if err := q.Settle(ctx, in.ID, in.Body.Commit, in.Body.Tip, in.Body.Files); err != nil {
				return err
			}
			_, err := q.Absorb(ctx)
			return err
		})
	})
}

// startLanding starts a process that lands the queue, since that runs gates. It returns when the
// process works on the queue or has ended.
func (s queueHandlers) startLanding(ctx context.Context) (*done, error) {
	return s.doAction(ctx, func(p *action.Operator) (string, error) {
		_, err := s.o.Launch(ctx, []string{"queue", "land"}, func(pid int) (string, bool, error) {
			targets, err := s.o.Store.QueueTargets(ctx)
			for _, t := range targets {
				if q, ok, err := s.o.Store.Queue(ctx, t); err == nil && ok && q.Owner.PID == pid {
					return t, true, nil
				}
			}
			return "", false, err
		})
		if errors.Is(err, ErrEnded) {
			p.Say("What could land has landed.")
			return "", nil
		}
		p.Say("Landing has begun.")
		return "", err
	})
}
