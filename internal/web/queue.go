package web

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/queue"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

// Queues are the merge queues, one a target.
type Queues struct {
	Queues []QueueView `json:"queues" nullable:"false"`
}

// QueueView is one merge queue.
type QueueView struct {
	Target  string       `json:"target" doc:"The branch."`
	Working int          `json:"working" doc:"The process that lands; 0 for none."`
	Doing   string       `json:"doing" doc:"What it does now; empty for nothing."`
	Stopped string       `json:"stopped" doc:"Why it stands still; empty when it does not."`
	Cause   string       `json:"cause" doc:"person, red target, rewritten, missing or diverged"`
	Window  int          `json:"window" doc:"How many entries the next batch may have."`
	Entries []QueueEntry `json:"entries" nullable:"false" doc:"In the order of landing."`
	Landed  []Landed     `json:"landed" nullable:"false" doc:"What landed last, the latest first."`
	Actions []string     `json:"actions" nullable:"false" doc:"What can be asked of it now: pause, resume, land."`
}

// QueueEntry is one verified change that waits to land.
type QueueEntry struct {
	ID       string     `json:"id" doc:"The task's."`
	Title    string     `json:"title"`
	Status   string     `json:"status" doc:"waiting, held, resolving, parked, proposed, arriving, or landing for those in the batch"`
	Why      string     `json:"why"`
	Commit   string     `json:"commit"`
	Run      string     `json:"run"`
	Priority int        `json:"priority"`
	Needs    []string   `json:"needs" nullable:"false" doc:"Tasks that must land first."`
	Attempts int        `json:"attempts" doc:"Runs of an agent at its conflict."`
	Problem  string     `json:"problem" doc:"simple, medium or complex, when it conflicts; else empty"`
	Files    []string   `json:"files" nullable:"false" doc:"In conflict."`
	Red      string     `json:"red" doc:"The gates' summary, when it merges but is red on the target."`
	Ahead    []string   `json:"conflict_ahead" nullable:"false" doc:"Paths in which it will conflict once it is its turn."`
	Request  string     `json:"pull_request"`
	AddedAt  time.Time  `json:"added_at"`
	Until    *time.Time `json:"until" nullable:"true"`
	Actions  []string   `json:"actions" nullable:"false" doc:"hold, release, retry, drop"`
}

// Landed is one task on the target.
type Landed struct {
	Task   string    `json:"task"`
	Run    string    `json:"run"`
	Commit string    `json:"commit"`
	Batch  int64     `json:"batch"`
	Empty  bool      `json:"empty" doc:"Its change was on the target already."`
	At     time.Time `json:"at"`
}

// Limits of what is shown of a queue.
const (
	maxArriving = 1000
	maxLanded   = 50
)

func (s *Server) queueRoutes(api huma.API) {
	get(api, "/queue", "get-queue", "queue", "What waits to land, in the order of landing, and why", s.queues)
	post(api, "/queue/entries/{id}/actions", "ask-entry", "queue",
		"Hold an entry, release it, try it again, or take it out", s.askEntry)
	post(api, "/queue/actions", "ask-queue", "queue", "Pause the queue, resume it, or land what waits now", s.askQueue)
}

func (s *Server) queues(ctx context.Context, _ *nothing) (*body[Queues], error) {
	targets, err := s.o.Store.QueueTargets(ctx)
	if err != nil {
		return nil, err
	}
	out := Queues{Queues: []QueueView{}}
	for _, target := range targets {
		v, err := s.queue(ctx, target)
		if err != nil {
			return nil, err
		}
		out.Queues = append(out.Queues, v)
	}
	return answer(out), nil
}

func (s *Server) queue(ctx context.Context, target string) (QueueView, error) {
	v := QueueView{Target: strings.TrimPrefix(target, "refs/heads/"), Entries: []QueueEntry{}, Landed: []Landed{},
		Actions: []string{"pause"}}
	row, _, err := s.o.Store.Queue(ctx, target)
	if err != nil {
		return v, err
	}
	v.Window = row.State.Window
	if engine.Alive(row.Owner) {
		v.Working, v.Doing = row.Owner.PID, strings.TrimSuffix(string(row.State.Command.Kind)+": "+row.State.Command.Why,
			": ")
	} else {
		v.Actions = append(v.Actions, "land")
	}
	if stop := row.State.Stop; stop != nil {
		v.Stopped, v.Cause, v.Actions[0] = stop.Why, string(stop.Cause), "resume"
	}
	for _, e := range row.State.InOrder(time.Now()) {
		v.Entries = append(v.Entries, showQueued(&row.State, &e, v.Working != 0))
	}
	asks, err := s.o.Store.QueueAsks(ctx, target, maxArriving)
	if err != nil {
		return v, err
	}
	v.arriving(asks)
	landed, err := s.o.Store.Landings(ctx, target, "", maxLanded)
	v.Landed = each(landed, func(l queue.Landing) Landed {
		return Landed{Task: l.Task, Run: l.Run, Commit: l.Commit, Batch: l.Batch, Empty: l.Empty, At: l.At}
	})
	return v, err
}

// queued are the entries of all queues, by their tasks.
func (s *Server) queued(ctx context.Context) (map[string]QueueEntry, error) {
	targets, err := s.o.Store.QueueTargets(ctx)
	if err != nil {
		return nil, err
	}
	entries := map[string]QueueEntry{}
	for _, target := range targets {
		row, _, err := s.o.Store.Queue(ctx, target)
		if err != nil {
			return nil, err
		}
		for _, e := range row.State.Entries {
			entries[e.ID] = showQueued(&row.State, &e, false)
		}
	}
	return entries, nil
}

// arriving are entries that nobody who works on the queue has taken in yet.
func (v *QueueView) arriving(asks []sqlite.QueueAsk) {
	for _, ask := range asks {
		if e := ask.Event.Entry; e != nil {
			v.Entries = append(v.Entries, QueueEntry{
				ID: e.ID, Title: e.Title, Status: "arriving", Commit: e.Commit, Run: e.Run, Priority: e.Priority,
				Needs: list(e.Needs), Files: []string{}, Ahead: []string{}, AddedAt: ask.At, Actions: []string{"drop"},
			})
		}
	}
}

func showQueued(s *queue.State, e *queue.Entry, working bool) QueueEntry {
	q := QueueEntry{
		ID: e.ID, Title: e.Title, Status: string(e.Status), Why: e.Why, Commit: e.Commit,
		Run: e.Run, Priority: e.Priority, Needs: list(e.Needs),
		Attempts: e.Attempts, Files: []string{}, Ahead: list(e.Ahead), Request: e.Request,
		AddedAt: e.AddedAt, Until: when(e.Until), Actions: []string{"hold", "drop"},
	}
	switch e.Status {
	case queue.OnHold:
		q.Actions[0] = "release"
	case queue.Parked:
		q.Actions = append(q.Actions, "retry")
	case queue.Waiting, queue.Resolving, queue.Proposed:
	}
	if p := e.Problem; p != nil {
		q.Problem, q.Red = string(p.Class), p.Red
		if p.Conflict != nil {
			for _, f := range p.Conflict.Files {
				q.Files = append(q.Files, f.Path)
			}
		}
	}
	if b := s.Batch; b != nil && working {
		if slices.Contains(b.IDs, e.ID) {
			q.Status = "landing"
		}
	}
	return q
}

func (s *Server) askEntry(ctx context.Context, in *struct {
	CasePath
	Body struct {
		Action string `json:"action" enum:"hold,release,retry,drop"`
		Why    string `json:"why,omitempty" maxLength:"2000" doc:"Shown in the list."`
	}
}) (*body[Done], error) {
	return s.tellQueue(ctx, in.Body.Action, in.ID, in.Body.Why)
}

func (s *Server) askQueue(ctx context.Context, in *struct {
	Body struct {
		Action string `json:"action" enum:"pause,resume,land" doc:"land lands what can be landed now, in the background, when no autopilot does."`
		Why    string `json:"why,omitempty" maxLength:"2000" doc:"Shown in the list."`
	}
}) (*body[Done], error) {
	if in.Body.Action == "land" {
		return s.land(ctx)
	}
	return s.tellQueue(ctx, in.Body.Action, "", in.Body.Why)
}

// queueSaid is what is answered to a request about the merge queue.
var queueSaid = map[string]string{
	"hold": "%s is held back.", "release": "%s goes on.", "retry": "%s is tried again.",
	"drop":  "%s is out of the queue; its work is kept.",
	"pause": "Nothing lands until the queue is resumed.", "resume": "The queue goes on.",
}

func (s *Server) tellQueue(ctx context.Context, wish, id, why string) (*body[Done], error) {
	return s.act(ctx, func(p *action.Operator) (string, error) {
		p.Say("%s", strings.ReplaceAll(queueSaid[wish], "%s", id))
		return "", s.o.AskQueue(ctx, queue.Ask{Wish: queue.Wish(wish), ID: id, Why: why})
	})
}

// land lands what waits in the background, since that runs gates. It waits until
// that works on the queue or has ended.
func (s *Server) land(ctx context.Context) (*body[Done], error) {
	return s.act(ctx, func(p *action.Operator) (string, error) {
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
