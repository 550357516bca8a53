package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// QueueView is one merge queue.
type QueueView struct {
	Target  string       `json:"target" doc:"The branch."`
	Working int          `json:"working" doc:"The process that lands; 0 for none."`
	Host    string       `json:"host,omitempty" doc:"The machine of that process."`
	Doing   string       `json:"doing" doc:"What it does now; empty for nothing."`
	Stopped string       `json:"stopped" doc:"Why it stands still; empty when it does not."`
	Cause   string       `json:"cause" doc:"person, red target, rewritten, missing, diverged or broken"`
	Window  int          `json:"window" doc:"How many entries the next batch may have."`
	Entries []QueueEntry `json:"entries" nullable:"false" doc:"In the order of landing."`
	Landed  []Landed     `json:"landed" nullable:"false" doc:"What landed last, the latest first."`
	Actions []string     `json:"actions" nullable:"false" doc:"What can be asked of it now: pause, resume, land."`
}

// Hindrance returns the reason for which the queue does not offer something.
func (v *QueueView) Hindrance() string {
	switch {
	case v.Stopped != "":
		return "it is stopped: " + v.Stopped
	case v.Working != 0:
		return fmt.Sprintf("process %d works on it", v.Working)
	case len(v.Entries) == 0:
		return "nothing waits to land"
	}
	return "it is not stopped"
}

// QueueEntry is one verified change that waits to land.
type QueueEntry struct {
	ID       string     `json:"id" doc:"The task's."`
	Title    string     `json:"title"`
	Status   string     `json:"status" doc:"waiting, held, resolving, parked, proposed, arriving, checking while the forge checks it, or landing for those in the batch"`
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
	Then     string     `json:"then" doc:"What happens at that time, if nobody acts."`
	Actions  []string   `json:"actions" nullable:"false" doc:"hold, release, retry, drop, settle"`
}

// Landed is one task on the target.
type Landed struct {
	Task   string    `json:"task"`
	Title  string    `json:"title" doc:"Empty when the task is gone."`
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

// Queue is the merge queue of a target, with what is on its way to it.
func (p *Operator) Queue(ctx context.Context, target string) (QueueView, error) {
	v := QueueView{Target: strings.TrimPrefix(target, "refs/heads/"), Entries: []QueueEntry{}, Landed: []Landed{},
		Actions: []string{"pause"}}
	row, _, err := p.Store.Queue(ctx, target)
	if err != nil {
		return v, err
	}
	v.Window = row.State.Window
	if storedrun.Alive(row.Owner) {
		doing := string(row.State.Command.Kind) + ": " + row.State.Command.Why
		v.Working, v.Host, v.Doing = row.Owner.PID, row.Owner.Host, strings.TrimSuffix(doing, ": ")
	}
	if stop := row.State.Stop; stop != nil {
		v.Stopped, v.Cause, v.Actions[0] = stop.Why, string(stop.Cause), "resume"
	}
	for _, e := range row.State.InOrder(time.Now()) {
		v.Entries = append(v.Entries, Queued(&row.State, &e, v.Working != 0))
	}
	asks, err := p.Store.QueueAsks(ctx, target, maxArriving)
	if err != nil {
		return v, err
	}
	for _, ask := range asks { // the process that lands has not taken these over yet
		if a := ask.Event.Ask; a != nil && a.Wish == queue.WishDrop {
			v.Entries = slices.DeleteFunc(v.Entries, func(e QueueEntry) bool { return e.ID == a.ID })
		}
		if e := ask.Event.Entry; e != nil {
			v.Entries = append(v.Entries, QueueEntry{
				ID: e.ID, Title: e.Title, Status: "arriving", Commit: e.Commit, Run: e.Run, Priority: e.Priority,
				Needs: append([]string{}, e.Needs...), Files: []string{}, Ahead: []string{}, AddedAt: ask.At,
				Actions: []string{"drop"},
			})
		}
	}
	if v.Working == 0 && v.Cause != string(queue.ByPerson) && len(v.Entries) > 0 {
		v.Actions = append(v.Actions, "land")
	}
	landed, err := p.Store.Landings(ctx, target, "", maxLanded)
	for _, l := range landed {
		c, err := p.Store.Case(ctx, l.Task)
		if err != nil && !errors.Is(err, store.ErrNoCase) {
			return v, err
		}
		v.Landed = append(v.Landed,
			Landed{Task: l.Task, Title: c.Title, Run: l.Run, Commit: l.Commit, Batch: l.Batch,
				Empty: l.Empty, At: l.At})
	}
	return v, err
}

// Queued is an entry as people see it; working is whether somebody works on the queue.
func Queued(s *queue.State, e *queue.Entry, working bool) QueueEntry {
	q := QueueEntry{
		ID: e.ID, Title: e.Title, Status: string(e.Status), Why: e.Why, Commit: e.Commit,
		Run: e.Run, Priority: e.Priority, Needs: append([]string{}, e.Needs...), Attempts: e.Attempts,
		Files: []string{}, Ahead: append([]string{}, e.Ahead...), Request: e.Request,
		AddedAt: e.AddedAt, Actions: []string{"drop"},
	}
	if !e.Until.IsZero() {
		q.Until = &e.Until
		if e.Status == queue.Parked {
			q.Then = map[queue.Action]string{queue.Skip: "it leaves the queue", queue.Retry: "it is tried again",
				queue.Notify: "you are reminded of it"}[s.Policy.Action]
			q.Then = cmp.Or(q.Then, "it stays parked")
		}
	}
	switch e.Status {
	case queue.Waiting:
		q.Actions = append(q.Actions, "hold")
	case queue.OnHold:
		q.Actions = append(q.Actions, "release")
	case queue.Parked:
		q.Actions = append(q.Actions, "retry")
	}
	if p := e.Problem; p != nil {
		q.Problem, q.Red = string(p.Class), p.Red
		if p.Conflict != nil {
			if e.Status == queue.Parked {
				q.Actions = append(q.Actions, "settle")
			}
			q.Files = append(q.Files, lists.Each(p.Conflict.Files, func(f queue.File) string { return f.Path })...)
		}
	}
	if s.InCheck(e.ID) {
		q.Status = "checking"
	}
	if b := s.Batch; b != nil && working && slices.Contains(b.IDs, e.ID) {
		q.Status = "landing"
	}
	return q
}

// leaveQueues has the merge queues drop the work of a task that a person stops, so that it does not land.
func (p *Operator) leaveQueues(ctx context.Context, id, why string) error {
	targets, err := p.Store.QueueTargets(ctx)
	for _, t := range targets {
		row, _, rerr := p.Store.Queue(ctx, t)
		asks, aerr := p.Store.QueueAsks(ctx, t, maxArriving)
		if err = errors.Join(err, rerr, aerr); err != nil {
			break
		}
		e, isIn := row.State.Find(id)
		isComing := slices.ContainsFunc(asks, func(a store.QueueAsk) bool {
			return a.Event.Entry != nil && a.Event.Entry.ID == id && a.Event.Entry.Revert == ""
		})
		if isLanding := isIn && e.Revert == ""; !isLanding && !isComing {
			continue
		}
		drop := queue.Event{Kind: queue.Asked, Ask: &queue.Ask{Wish: queue.WishDrop, ID: id, Why: why}}
		if _, err = p.Store.AskQueue(ctx, store.QueueAsk{Target: t, Event: drop, At: time.Now()}); err == nil {
			p.Say("Its work is taken out of the merge queue, and is kept.")
		}
	}
	return err
}

// RemoveTask takes a case off the board, and its work out of the merge queue.
func (p *Operator) RemoveTask(ctx context.Context, id string) error {
	if err := p.Store.RemoveCase(ctx, id, board.Person, time.Now()); err != nil {
		return err
	}
	return p.leaveQueues(ctx, id, "removed from the board")
}

// stopAutopilotWait is how long stop waits for the autopilot to have ended:
// agents have their grace, one after the other's end.
const stopAutopilotWait = 60 * time.Second

// AskAutopilot asks the one that runs to pause, resume, stop or change its mode,
// which is text. With wait a stop is over when the autopilot has ended.
func (p *Operator) AskAutopilot(ctx context.Context, kind, text string, wait bool) error {
	pilot, err := p.Autopilot(ctx)
	if err != nil {
		return err
	}
	if pilot.Phase != string(schedule.Paused) && kind == store.AutopilotResume {
		if pauses, err := p.Store.AutopilotAsked(ctx, store.AutopilotPause); err != nil {
			return err
		} else if !pauses {
			return fault.Refuse("the autopilot is not paused: it is %s", pilot.Phase)
		}
	}
	if _, err := p.Store.AskAutopilot(ctx, store.AutopilotControl{Kind: kind, Text: text, At: time.Now()}); err != nil {
		return err
	}
	switch kind {
	case store.AutopilotPause:
		p.Say("The autopilot starts nothing new; runs pause after their iteration. Resume with: pawl autopilot resume")
	case store.AutopilotResume:
		p.Say("The autopilot is resumed.")
	case store.AutopilotMode:
		p.Say("The autopilot's mode is %s.", text)
	case store.AutopilotSlots:
		p.Say("The autopilot has %s slots; running tasks continue.", text)
	case store.AutopilotStop:
		if wait {
			return p.awaitAutopilot(ctx, pilot)
		}
		p.Say("The autopilot is stopping: its runs are ended, their tasks go back to pending.")
	}
	return nil
}

// Autopilot is the one that a live process drives, or that is on without one.
func (p *Operator) Autopilot(ctx context.Context) (store.Autopilot, error) {
	pilot, ok, err := p.Store.Autopilot(ctx)
	if err != nil {
		return pilot, err
	}
	if on := storedrun.Alive(pilot.Owner) || pilot.On(); !ok || !on {
		return pilot, fault.Refuse("no autopilot is running here").Hint("Start it: pawl autopilot")
	}
	return pilot, nil
}

func (p *Operator) awaitAutopilot(ctx context.Context, pilot store.Autopilot) error {
	err := pollUntil(ctx, stopAutopilotWait, func() (bool, error) {
		now, _, err := p.Store.Autopilot(ctx)
		on := storedrun.Alive(now.Owner) || now.On()
		return now.Session != pilot.Session || !on, err
	})
	switch {
	case errors.Is(err, errLate) && pilot.Owner.PID == 0:
		return fault.Refuse("the autopilot was asked to stop %s ago; no process drives it, so the next worker ends it",
			stopAutopilotWait).Hint("Start one: pawl-cluster worker")
	case errors.Is(err, errLate):
		return fault.Refuse("the autopilot was asked to stop %s ago and has not ended; it runs in %v",
			stopAutopilotWait, pilot.Owner).
			Hint("See what it does: pawl autopilot status")
	case err == nil:
		p.Say("The autopilot has ended.")
	}
	return err
}
