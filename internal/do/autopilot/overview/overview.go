// Package overview reads what the autopilot of a repository does, as commands, the dashboard
// and the API show it: slots, what needs a person, why nothing starts, the merge queue.
package overview

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// View is what the autopilot of a repository does, as anybody can read it from
// the database. Fields are added, never renamed.
type View struct {
	// Running: a live process drives it. Without one the rest is how the last
	// autopilot ended, or what a crash left.
	Running bool `json:"running"`
	// Waits: it is on, and the next worker that is there continues it.
	Waits       bool      `json:"waits,omitempty"`
	Session     string    `json:"session,omitempty"`
	PID         int       `json:"pid,omitempty"`
	Host        string    `json:"host,omitempty"`
	Phase       string    `json:"phase,omitempty"` // running, paused, stopping or ended
	Mode        string    `json:"mode,omitempty"`  // auto or semi-auto
	Why         string    `json:"why,omitempty"`
	Exit        int       `json:"exit"` // of one that has ended
	Sprint      string    `json:"sprint,omitempty"`
	StartedAt   time.Time `json:"started_at,omitzero"`
	EndedAt     time.Time `json:"ended_at,omitzero"`
	MaxParallel int       `json:"max_parallel"`
	// PauseEnds is when a pause after errors ends the autopilot.
	PauseEnds time.Time `json:"pause_ends_at,omitzero"`

	Tally schedule.Tally `json:"tally"`
	Slots []SlotView     `json:"slots"`
	// Board counts cases by status, Ready the tasks that could start.
	Board map[board.Status]int `json:"board"`
	Ready int                  `json:"ready"`
	Idle
	// Queued is how many verified tasks are on their way, QueueHeld why they do
	// not go on without a person.
	Queued int `json:"queued"`
	// Plans are the agents' subscriptions, as they were seen last.
	Plans     []string `json:"plans,omitempty"`
	QueueHeld string   `json:"queue_held,omitempty"`
	NeedsYou  []Need   `json:"needs_you"` // at most 50
	Events    []Event  `json:"events"`    // the last ones, the latest first
}

// PhaseReason is the reason of the phase, with how to end a pause and when it ends by itself.
func (v View) PhaseReason() string {
	why := v.Why
	if v.Running && v.Phase == string(schedule.Paused) {
		why = report.Line(why, 100) // else lines end before it is said how to continue
		why = strings.TrimPrefix(why+"; continue with: pawl autopilot resume", "; ")
		if !v.PauseEnds.IsZero() {
			why += ", else it ends at " + v.PauseEnds.Local().Format(time.TimeOnly)
		}
	}
	return why
}

// Taken is what a slot that is taken works on, as commands and the API show it.
type Taken struct {
	Case          string    `json:"case"`
	Title         string    `json:"title"`
	Run           string    `json:"run" doc:"Empty until there is one."`
	Phase         string    `json:"phase" doc:"working, waiting for a worker, pausing, resting or ending"`
	Status        string    `json:"status" doc:"The run's."`
	Agent         string    `json:"agent"`
	Iteration     int       `json:"iteration"`
	MaxIterations int       `json:"max_iterations"` // 0 is unlimited
	Since         time.Time `json:"since"`
	TokensIn      int64     `json:"tokens_in"`
	TokensOut     int64     `json:"tokens_out"`
	Activity      string    `json:"activity"`
	Host          string    `json:"host" doc:"The machine that works it, on a board that several share; else empty."`
}

// SlotView is one slot that is taken.
type SlotView struct {
	Taken
	Elapsed     time.Duration `json:"-"` // since then
	Cost        loop.MicroUSD `json:"cost_micro_usd"`
	CostKnown   bool          `json:"cost_known"`
	CostPartial bool          `json:"cost_partial,omitempty"` // it is at least that
	ActivityAt  time.Time     `json:"activity_at,omitzero"`
	// Racers are those that race for the task, in order; what is above of cost and
	// tokens is theirs together.
	Racers []RacerView `json:"racers,omitempty"`
	driven bool        // a worker that lives drives its run
}

// RacerView is the run of an agent that races with others.
type RacerView struct {
	Agent         string        `json:"agent"`
	Run           string        `json:"run"`
	Status        string        `json:"status"`
	Iteration     int           `json:"iteration"`
	MaxIterations int           `json:"max_iterations"` // 0 is unlimited
	Cost          loop.MicroUSD `json:"cost_micro_usd"`
	CostKnown     bool          `json:"cost_known"`
	CostPartial   bool          `json:"cost_partial,omitempty"` // it is at least that
}

func racerView(r store.Run) RacerView {
	return RacerView{
		Agent: r.Agent, Run: r.ID, Status: r.Status, Iteration: r.Iteration, MaxIterations: r.MaxIterations,
		Cost: loop.MicroUSD(r.Cost), CostKnown: r.CostKnown, CostPartial: r.CostPartial,
	}
}

// Need is a task that waits for a person.
type Need struct {
	Case  string       `json:"case"`
	Title string       `json:"title"`
	What  board.Status `json:"what"` // blocked, review, failed or timeout
	Why   string       `json:"why,omitempty"`
	Run   string       `json:"run,omitempty"`
	// Asks: its run takes an answer. Parked: its change waits in the merge queue, and Conflict: for a merge.
	Asks     bool `json:"asks,omitempty"`
	Parked   bool `json:"parked,omitempty"`
	Conflict bool `json:"conflict,omitempty"`
	// Extend are flags of case extend that give twice of the limit that it reached.
	Extend string `json:"extend,omitempty"`
}

// NextCommand returns the command that most often ends the wait, or "" where nothing waits.
func (n Need) NextCommand() string {
	switch {
	case n.Case == "":
		return ""
	case n.What == board.Review:
		return "pawl case approve " + n.Case
	case n.Parked:
		return "pawl queue retry " + n.Case
	case n.What == board.Timeout && n.Extend != "":
		return "pawl case extend " + n.Case + " " + n.Extend
	case n.What == board.Blocked && n.Asks:
		return "pawl answer " + n.Case + " TEXT"
	case n.What == board.Blocked:
		return "pawl case unblock " + n.Case
	}
	return "pawl case retry " + n.Case
}

// Event is something that the autopilot did.
type Event struct {
	At   time.Time    `json:"at"`
	Kind string       `json:"kind"`
	Task journal.Task `json:"task,omitzero"`
	Text string       `json:"text"`
}

// Limits of a view.
const (
	mostNeeds  = 50
	mostEvents = 20
)

// Read reads what the autopilot of the repository at root does.
func Read(ctx context.Context, db *store.Store, root string) (View, error) {
	v := View{Slots: []SlotView{}, NeedsYou: []Need{}, Events: []Event{}}
	a, ok, err := db.Autopilot(ctx)
	if err != nil {
		return v, err
	}
	var state schedule.State
	if ok {
		if err := json.Unmarshal(a.State, &state); err != nil {
			return v, err
		}
		v.Session, v.PID, v.Host, v.Running = a.Session, a.Owner.PID, a.Owner.Host, storedrun.Alive(a.Owner)
		v.Waits = a.On() && !v.Running
		v.Phase, v.Mode, v.Why, v.Exit, v.PauseEnds = a.Phase, a.Mode, a.Why, a.Exit, state.Ends
		v.Sprint, v.StartedAt, v.EndedAt = a.Sprint, a.StartedAt, a.EndedAt
		v.MaxParallel, v.Tally, v.Plans = a.MaxParallel, state.Tally, state.Counts.Plans
	}
	targets, err := db.QueueTargets(ctx)
	if err != nil {
		return v, err
	}
	stopped := "" // why nothing lands on a target, where that is not for a person who asked for it
	for _, target := range targets {
		left, err := ReadQueue(ctx, db, target, time.Now())
		if err != nil {
			return v, err
		}
		stopped = cmp.Or(stopped, left.Target.Why)
		v.Queued, v.QueueHeld = v.Queued+left.Queued, cmp.Or(v.QueueHeld, left.Held)
	}
	if v.Board, v.Ready, err = db.CaseCounts(ctx); err != nil {
		return v, err
	}
	if v.Idle, err = IdleOf(ctx, db); err != nil {
		return v, err
	}
	if v.Ready > 0 && v.QueueHeld == "" {
		v.Held = cmp.Or(v.Held, stopped)
	}
	return v, errors.Join(v.readSlots(ctx, db, root, state), v.readNeeds(ctx, db, root), v.readEvents(ctx, db))
}

func (v *View) readSlots(ctx context.Context, db *store.Store, root string, state schedule.State) error {
	rows, err := db.Slots(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		l := SlotView{Elapsed: time.Since(row.Since), ActivityAt: row.ActivityAt}
		l.Taken = Taken{Case: row.Case, Run: row.Run, Since: row.Since, Activity: row.Activity}
		l.Phase = string(schedule.Working)
		for _, s := range state.Slots {
			if s.Case == row.Case && s.Phase != "" {
				l.Phase = string(s.Phase)
			}
		}
		c, err := db.Case(ctx, row.Case)
		if err != nil {
			return err
		}
		l.Title = c.Title
		if row.Run != "" {
			r, err := db.Run(ctx, row.Run)
			if err != nil {
				return err
			}
			l.Status, l.Agent, l.Iteration, l.MaxIterations = r.Status, r.Agent, r.Iteration, r.MaxIterations
			l.Cost, l.CostKnown, l.CostPartial = loop.MicroUSD(r.Cost), r.CostKnown, r.CostPartial
			l.TokensIn, l.TokensOut = r.TokensIn, r.TokensOut
			if db.BoardName() != "" {
				l.Host, l.driven = r.Owner.Host, storedrun.Alive(r.Owner)
			}
			if err := l.addRacers(ctx, db, root, r); err != nil {
				return err
			}
		}
		if err := l.markWaiting(ctx, db); err != nil {
			return err
		}
		v.Slots = append(v.Slots, l)
	}
	return nil
}

// markWaiting says of a slot whose task was ordered, and that no worker has, that it waits.
func (l *SlotView) markWaiting(ctx context.Context, db *store.Store) error {
	if l.Phase != string(schedule.Working) || l.driven {
		return nil
	}
	_, err := db.Order(ctx, l.Case)
	if err == nil {
		l.Phase, l.Activity, l.Host = "waiting", "waits for a worker with a free slot", ""
	}
	if errors.Is(err, store.ErrNoOrder) {
		err = nil
	}
	return err
}

// addRacers counts in the other agents that race for the task of a run.
func (l *SlotView) addRacers(ctx context.Context, db *store.Store, root string, first store.Run) error {
	for n := 2; n <= board.MaxRacers; n++ {
		r, err := db.Latest(ctx, root, board.RacerName(l.Case, n))
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if r.UpdatedAt.Before(l.Since) {
			continue
		}
		if l.Racers == nil {
			l.Racers = []RacerView{racerView(first)}
		}
		l.Racers = append(l.Racers, racerView(r))
		l.Agent += ", " + r.Agent
		l.Cost, l.CostKnown = l.Cost+loop.MicroUSD(r.Cost), l.CostKnown || r.CostKnown
		l.CostPartial = l.CostPartial || r.CostPartial
		l.TokensIn, l.TokensOut = l.TokensIn+r.TokensIn, l.TokensOut+r.TokensOut
	}
	return nil
}

func (v *View) readNeeds(ctx context.Context, db *store.Store, root string) error {
	open, err := db.OpenReviews(ctx, mostNeeds)
	if err != nil {
		return err
	}
	for _, r := range open {
		c, err := db.Case(ctx, r.Case)
		if err != nil {
			return err
		}
		v.NeedsYou = append(v.NeedsYou, Need{Case: c.ID, Title: c.Title, What: c.Status, Why: r.Why, Run: r.Run})
	}
	waiting := []board.Status{board.Blocked, board.Failed, board.Timeout}
	list, err := db.Cases(ctx, store.CaseFilter{Status: waiting, Type: board.Task, Limit: mostNeeds})
	if err != nil {
		return err
	}
	parked, err := parkedTasks(ctx, db)
	if err != nil {
		return err
	}
	for _, c := range list[:min(len(list), mostNeeds-len(v.NeedsYou))] {
		n := Need{Case: c.ID, Title: c.Title, What: c.Status, Why: c.Why}
		if e, is := parked[c.ID]; is && c.Status == board.Blocked {
			n.Parked, n.Conflict = true, e.Problem != nil && e.Problem.Conflict != nil
		}
		if r, err := db.Latest(ctx, root, c.ID); err == nil {
			n.addRunResult(r)
		}
		v.NeedsYou = append(v.NeedsYou, n)
	}
	return nil
}

// addRunResult adds what the last run of the task came to.
func (n *Need) addRunResult(r store.Run) {
	n.Run = r.ID
	s, err := storedrun.StateOf(r)
	if err != nil {
		return // the rest is shown without it
	}
	switch s.Status {
	case loop.Pending, loop.Blocked, loop.Aborted, loop.FailedRun:
		n.Asks = true
	case loop.Paused:
		n.Asks = s.Question != nil
	case loop.TimedOut, loop.Exhausted:
		n.Extend = extendFlags(&s)
	}
}

// extendFlags are the flags that give a task twice of the limit that it reached.
func extendFlags(s *loop.State) string {
	if s.Limit > 0 && s.Iteration >= s.Limit {
		return fmt.Sprintf("--max-iterations %d", 2*s.Limit)
	}
	if t := cmp.Or(s.Policy.TaskTimeout, s.Policy.Timeout); t > 0 {
		return "--timeout " + loop.Duration(2*t)
	}
	return ""
}

// parkedTasks have changes that wait in the queue for a person.
func parkedTasks(ctx context.Context, db *store.Store) (map[string]queue.Entry, error) {
	parked := map[string]queue.Entry{}
	targets, err := db.QueueTargets(ctx)
	for _, target := range targets {
		row, _, qerr := db.Queue(ctx, target)
		err = errors.Join(err, qerr) // without a row there are no entries
		for _, e := range row.State.Entries {
			if e.Status == queue.Parked {
				parked[e.ID] = e
			}
		}
	}
	return parked, err
}

func (v *View) readEvents(ctx context.Context, db *store.Store) error {
	list, err := db.LastEvents(ctx, journal.Autopilot, mostEvents)
	if err != nil {
		return err
	}
	for _, e := range list {
		out := Event{At: e.At, Kind: e.Kind}
		if e.Kind == journal.Alerted {
			var n journal.Notice
			err = json.Unmarshal(e.Data, &n)
			out.Text = n.Text
		} else {
			err = json.Unmarshal(e.Data, &out.Task)
		}
		if err != nil {
			return err
		}
		v.Events = append(v.Events, out)
	}
	return nil
}
