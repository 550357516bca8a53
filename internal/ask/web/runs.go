package web

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Run is one run as it is now.
type Run struct {
	ID     string `json:"run"`
	Kind   string `json:"kind" doc:"procedure, task, workflow or demo"`
	Name   string `json:"name"`
	Work   string `json:"work,omitempty" doc:"What it is to do: its task's title, or the beginning of what a person said."`
	Status string `json:"status" enum:"running,waiting,paused,pending,blocked,completed,failed,aborted,timeout,exhausted,interrupted,stopped"`
	Why    string `json:"why" doc:"Of the status, in words."`
	// Live: a process drives the run.
	Live          bool       `json:"live" doc:"A process drives the run now."`
	PID           int        `json:"pid"`
	Iteration     int        `json:"iteration" doc:"The last that started; 0 for none."`
	MaxIterations int        `json:"max_iterations" doc:"0 is unlimited."`
	Agent         string     `json:"agent"`
	CostUSD       *float64   `json:"cost_usd" nullable:"true" doc:"null while no cost is known."`
	TokensIn      int64      `json:"tokens_in"`
	TokensOut     int64      `json:"tokens_out"`
	StartedAt     time.Time  `json:"started_at"`
	UpdatedAt     time.Time  `json:"updated_at"`
	EndedAt       *time.Time `json:"ended_at" nullable:"true"`
	Elapsed       float64    `json:"elapsed" doc:"Seconds, waits included, as of updated_at."`
	// Actions are what may be asked of the run as it is.
	Actions []string `json:"actions" nullable:"false" doc:"What can be asked of the run now: pause, stop, resume, raise, answer, message, rollback, apply. raise is resume with limits; a run that works takes them as it goes on."`
	Coming  []string `json:"coming" nullable:"false" doc:"What was asked of it and is not taken yet: stop, pause, answer, message or limits."`
}

// RunDetail is a run with what only its own page shows.
type RunDetail struct {
	Run
	Root     string    `json:"root"`
	Strategy string    `json:"strategy" doc:"In force now."`
	Limits   Limits    `json:"limits"`
	Spent    Spent     `json:"spent"`
	Question *Question `json:"question,omitempty" doc:"What a person is asked."`
	Sandbox  string    `json:"sandbox" doc:"The safety level, and what the operating system enforces of it."`
	Copy     bool      `json:"copy" doc:"Work of it is not in the files; apply brings it there."`
	Asked    []Asked   `json:"asked" nullable:"false" doc:"What was asked of the run and not taken yet."`
	Doing    string    `json:"doing" doc:"What the loop does now, e.g. run, review or wait; empty when it rests."`
	DoingWhy string    `json:"doing_why"`
	Until    time.Time `json:"until,omitzero" doc:"While waiting: until when."`
	Best     int       `json:"best_iteration" doc:"The one with the best score; 0 for none."`
	// Gates are those that the run's work goes through: of the plan that it works
	// by, which a later change of the configuration does not touch.
	Gates     []GateSpec `json:"gates" nullable:"false" doc:"The verification commands that its work goes through."`
	GatesSeen bool       `json:"gates_configured" doc:"There are some."`
}

// Limits are those of a run; 0 and null are none.
type Limits struct {
	Iterations int      `json:"iterations"`
	CostUSD    *float64 `json:"cost_usd" nullable:"true"`
	Timeout    float64  `json:"timeout" doc:"Seconds of wall clock, waits included."`
	TaskTime   float64  `json:"task_timeout" doc:"Seconds of iterations, waits excluded."`
	Iteration  float64  `json:"iteration_timeout" doc:"Seconds of one iteration."`
}

// Spent is what a run has used up.
type Spent struct {
	CostUSD *float64 `json:"cost_usd" nullable:"true"`
	Calls   int      `json:"api_calls"`
	Active  float64  `json:"active" doc:"Seconds in iterations."`
	Wall    float64  `json:"wall" doc:"Seconds from start to end, waits included."`
}

// Asked is a request that the run has not taken yet.
type Asked struct {
	Kind string    `json:"kind" doc:"stop, pause, answer, choice or message"`
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

// Question is what a person is asked, with the options to choose from.
type Question struct {
	Text     string   `json:"text"`
	Options  []Option `json:"options" nullable:"false" doc:"Numbered from 1; none where the agent asks in its own words."`
	Attempts []string `json:"attempts" nullable:"false" doc:"What was tried, a line each."`
	Pattern  string   `json:"pattern" doc:"What the attempts have in common."`
	Step     string   `json:"step" doc:"The check that is red."`
	Items    []Item   `json:"items" nullable:"false" doc:"What is left to repair."`
	Asks     []Asks   `json:"asks" nullable:"false" doc:"Of a workflow: the questions of its steps, each to be answered by itself; none for other runs."`
}

// Asks is the question of a workflow's step.
type Asks struct {
	Step     string `json:"step"`
	Text     string `json:"text"`
	Answered bool   `json:"answered" doc:"Its answer is kept until the run goes on."`
}

// Option is one answer.
type Option struct {
	Number int    `json:"number"`
	Text   string `json:"text"`
	Does   string `json:"does" doc:"retry, accept, take over, give up or review again"`
	Words  string `json:"words" enum:"none,welcome,needed" doc:"Whether words may, or must, go with it."`
	Ends   bool   `json:"ends" doc:"It ends the run: nothing is to be resumed."`
}

// RunPage is one page of runs.
type RunPage struct {
	Runs       []Run  `json:"runs" nullable:"false"`
	NextCursor string `json:"next_cursor" doc:"For the next page; empty at the end."`
}

// runHandlers answer which runs there are, how one is, and which steps it has.
type runHandlers struct{ *core }

func (s runHandlers) runRoutes(api huma.API) {
	get(api, "/runs", "list-runs", "runs", "Runs, the last started first", s.listRuns)
	get(api, "/runs/{run}", "get-run", "runs", "One run with its question, limits and what was asked of it", s.getRun)
}

type runQuery struct {
	Paging
	Status []string `query:"status" maxItems:"12" enum:"running,waiting,paused,pending,blocked,completed,failed,aborted,timeout,exhausted,interrupted,stopped" doc:"One of these, as they are stored."`
	Active bool     `query:"active" doc:"Only runs that have not ended: those that run or wait for a person."`
	Kind   string   `query:"kind" maxLength:"20"`
	Name   string   `query:"name" maxLength:"500"`
	Text   string   `query:"q" maxLength:"200" doc:"In the id, the name, what it is to do or the reason."`
}

func (s runHandlers) listRuns(ctx context.Context, in *runQuery) (*body[RunPage], error) {
	q := store.RunQuery{Root: s.o.Root, Status: in.Status, Active: in.Active, Kind: in.Kind, Name: in.Name, Text: in.Text,
		Kept: true}
	runs, next, more, err := s.o.Store.RunPage(ctx, q, runMark(in.Cursor), in.Limit)
	if err != nil {
		return nil, err
	}
	out := RunPage{Runs: lists.Each(runs, func(r store.Run) Run { return s.viewOf(ctx, r) })}
	if more {
		out.NextCursor = fmt.Sprintf("%d.%d", next.Started, next.Row)
	}
	return answer(out), nil
}

// runMark reads a cursor; an odd one is the first page's.
func runMark(cursor string) store.RunMark {
	a, b, _ := strings.Cut(cursor, ".")
	started, err := strconv.ParseInt(a, 10, 64)
	row, err2 := strconv.ParseInt(b, 10, 64)
	if err != nil || err2 != nil {
		return store.RunMark{}
	}
	return store.RunMark{Started: started, Row: row}
}

// viewOf returns a run as the pages show it.
func (s *core) viewOf(ctx context.Context, r store.Run) Run {
	r = s.o.AsIs(ctx, r)
	v := Run{
		ID: r.ID, Kind: r.Kind, Name: r.Name, Work: r.Work, Status: r.Status, Why: r.Why, Live: engine.Alive(r.Owner),
		Iteration: r.Iteration, MaxIterations: r.MaxIterations,
		Agent: r.Agent, CostUSD: loop.MicroUSD(r.Cost).Dollars(r.CostKnown), TokensIn: r.TokensIn, TokensOut: r.TokensOut,
		StartedAt: r.StartedAt, UpdatedAt: r.UpdatedAt, EndedAt: timeOrNil(r.EndedAt), Elapsed: seconds(r.Elapsed),
	}
	if v.Live {
		v.PID = r.Owner.PID
	}
	v.Actions, v.Coming = allowedActions(v), s.pendingControls(ctx, r)
	return v
}

// pendingControls returns the kinds of what a run was asked and has not taken. A run that
// ended takes nothing.
func (s *core) pendingControls(ctx context.Context, r store.Run) []string {
	kinds := []string{}
	if !loop.Status(r.Status).Active() && !slices.Contains(waiting, r.Status) {
		return kinds
	}
	rows, _ := s.o.Store.Controls(ctx, r.ID) // they only show that something is on its way
	for _, row := range rows {
		kind := row.Kind
		if row.IsAnswer() {
			kind = store.ControlAnswer
		}
		kinds = lists.Union(kinds, kind)
	}
	return kinds
}

// allowedActions returns what a person can do with a run of this status.
func allowedActions(v Run) []string {
	list := []string{}
	status := loop.Status(v.Status)
	switch {
	case status.Active() && v.Live:
		return append(list, "pause", "stop", "message", "raise")
	case status.Active():
		list = append(list, "resume", "raise", "stop", "message")
	}
	switch status {
	case loop.Pending, loop.Blocked, loop.Aborted, loop.FailedRun, loop.Paused:
		list = append(list, "answer", "resume", "raise", "message")
	case loop.Interrupted, loop.Stopped, loop.TimedOut, loop.Exhausted:
		list = append(list, "resume", "raise", "message")
	case loop.Completed, loop.Running, loop.Waiting:
	}
	if !status.Active() {
		list = append(list, "rollback")
	}
	return list
}

func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

func (s runHandlers) getRun(ctx context.Context, in *RunPath) (*body[RunDetail], error) {
	r, err := s.o.Store.Run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	state, err := engine.StateOf(r)
	if err != nil {
		return nil, err
	}
	setup := action.SetupOf(r)
	rows, err := s.o.Store.Controls(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	p := state.Policy
	out := RunDetail{
		Run: s.viewOf(ctx, r), Root: r.Root, Strategy: state.Strategy,
		Sandbox: setup.Sandbox, Copy: setup.Undelivered != "", Best: state.Best.Number,
		Limits: Limits{
			Iterations: state.Limit, CostUSD: p.MaxCost.Dollars(p.MaxCost >= 0), Timeout: seconds(p.Timeout),
			TaskTime: seconds(p.TaskTimeout), Iteration: seconds(p.IterationTimeout),
		},
		Spent: Spent{CostUSD: state.Spent.Cost.Dollars(state.Spent.CostKnown), Calls: state.Spent.Calls,
			Active: seconds(state.Spent.Active), Wall: seconds(state.Spent.Wall)},
		Gates: s.checksOfRun(r),
		Asked: lists.Each(rows, func(row store.Control) Asked { return Asked{Kind: row.Kind, Text: row.Text, At: row.At} }),
	}
	out.GatesSeen = len(out.Gates) > 0
	if loop.Status(out.Status).Active() {
		out.Doing, out.DoingWhy, out.Until = string(state.Command.Kind), state.Command.Why, state.Command.Until
	} else {
		out.Question = showQuestion(state.Question, rows)
	}
	if out.Live {
		return answer(out), nil
	}
	conflict, err := s.o.InConflict(ctx, r)
	if err != nil {
		return nil, err
	}
	if conflict {
		out.Actions = append(out.Actions, "settle")
	}
	if setup.Undelivered != "" {
		out.Actions = append(out.Actions, "apply")
	}
	if action.CanDiscard(r) {
		out.Actions = append(out.Actions, "discard")
	}
	return answer(out), nil
}

// checksOfRun returns the checks stored with the run. If there are none, it returns those
// of the configuration.
func (s *core) checksOfRun(r store.Run) []GateSpec {
	stored := action.SetupOf(r).Checks
	if stored == nil {
		c, err := s.loadConfig()
		if err != nil {
			return []GateSpec{} // the overview says what is wrong
		}
		return configuredChecks(c)
	}
	return lists.Each(stored, func(c engine.Check) GateSpec {
		if c.Origin == loop.Sealed {
			c.Command = "" // a person reads it at the task
		}
		return GateSpec{Name: c.Name, Command: c.Command, Required: c.Required, Timeout: seconds(c.Timeout),
			Origin: c.Origin}
	})
}

// checksOf are the checks of a run by its id.
func (s *core) checksOf(ctx context.Context, id string) []GateSpec {
	r, err := s.o.Store.Run(ctx, id)
	if err != nil {
		return []GateSpec{} // the hub says so
	}
	return s.checksOfRun(r)
}

// showQuestion is nil when nothing is asked. rows are what a person has asked of
// the run since.
func showQuestion(q *loop.Question, rows []store.Control) *Question {
	if q == nil {
		return nil
	}
	out := &Question{Text: q.Text, Options: []Option{}, Attempts: append([]string{}, q.Attempts...), Pattern: q.Pattern,
		Step: q.Step, Items: nonNil(q.Items), Asks: []Asks{}}
	replies, _ := engine.Replies(rows, nil)
	for _, a := range q.Asked() {
		done := slices.ContainsFunc(replies.Replies, func(r loop.Asks) bool { return r.Step == a.Step })
		out.Asks = append(out.Asks, Asks{Step: a.Step, Text: a.Text, Answered: done})
	}
	for i, c := range q.Choices {
		o := Option{Number: i + 1, Text: c.Text, Does: string(c.Do), Words: "none", Ends: c.Do.EndsRun()}
		if c.Needs {
			o.Words = "needed"
		} else if c.Advice {
			o.Words = "welcome"
		}
		out.Options = append(out.Options, o)
	}
	return out
}
