// Package view has the documents that the API answers with and takes, and makes them of
// what is stored: names and words stay as programs know them. It asks nothing and changes
// nothing.
package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
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
	Host          string     `json:"host" doc:"The machine that works on it, or did last."`
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
	By   string    `json:"by" doc:"The person, with the machine on a board that several share."`
}

// Question is what a person is asked, with the options to choose from.
type Question struct {
	Text     string         `json:"text"`
	Options  []Option       `json:"options" nullable:"false" doc:"Numbered from 1; none where the agent asks in its own words."`
	Attempts []string       `json:"attempts" nullable:"false" doc:"What was tried, a line each."`
	Pattern  string         `json:"pattern" doc:"What the attempts have in common."`
	Step     string         `json:"step" doc:"The check that is red."`
	Items    []failure.Item `json:"items" nullable:"false" doc:"What is left to repair."`
	Asks     []Asks         `json:"asks" nullable:"false" doc:"Of a workflow: the questions of its steps, each to be answered by itself; none for other runs."`
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

// ShowRun shows a run without what was asked of it.
func ShowRun(r *store.Run) Run {
	v := Run{
		ID: r.ID, Kind: r.Kind, Name: r.Name, Work: r.Work, Status: r.Status, Why: r.Why,
		Live: storedrun.Alive(r.Owner), Iteration: r.Iteration, MaxIterations: r.MaxIterations, Agent: r.Agent,
		CostUSD: loop.MicroUSD(r.Cost).Dollars(r.CostKnown), TokensIn: r.TokensIn, TokensOut: r.TokensOut,
		Host:      r.Owner.Host,
		StartedAt: r.StartedAt, UpdatedAt: r.UpdatedAt, EndedAt: TimeOrNil(r.EndedAt), Elapsed: Seconds(r.Elapsed),
	}
	if v.Live {
		v.PID = r.Owner.PID
	}
	v.Actions = allowedActions(v)
	return v
}

// ShowDetail shows a run by its state. rows are what was asked of it.
func ShowDetail(r Run, root string, state *loop.State, rows []store.Control) RunDetail {
	p := state.Policy
	out := RunDetail{
		Run: r, Root: root, Strategy: state.Strategy, Best: state.Best.Number,
		Limits: Limits{
			Iterations: state.Limit, CostUSD: p.MaxCost.Dollars(p.MaxCost >= 0), Timeout: Seconds(p.Timeout),
			TaskTime: Seconds(p.TaskTimeout), Iteration: Seconds(p.IterationTimeout),
		},
		Spent: Spent{CostUSD: state.Spent.Cost.Dollars(state.Spent.CostKnown), Calls: state.Spent.Calls,
			Active: Seconds(state.Spent.Active), Wall: Seconds(state.Spent.Wall)},
		Asked: lists.Each(rows, func(row store.Control) Asked {
			return Asked{Kind: row.Kind, Text: row.Text, At: row.At, By: row.Who(true)}
		}),
	}
	if loop.Status(r.Status).Active() {
		out.Doing, out.DoingWhy, out.Until = string(state.Command.Kind), state.Command.Why, state.Command.Until
	} else {
		out.Question = ShowQuestion(state.Question, rows)
	}
	return out
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

// Seconds shows a duration.
func Seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

// ShowQuestion is nil when nothing is asked. rows are what a person has asked of
// the run since.
func ShowQuestion(q *loop.Question, rows []store.Control) *Question {
	if q == nil {
		return nil
	}
	out := &Question{Text: q.Text, Options: []Option{}, Attempts: append([]string{}, q.Attempts...), Pattern: q.Pattern,
		Step: q.Step, Items: NonNil(q.Items), Asks: []Asks{}}
	replies, _ := storedrun.Replies(rows, nil)
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

// Done is the result of an action.
type Done struct {
	Message string   `json:"message" doc:"What was done, in a sentence or two."`
	Lines   []string `json:"lines" nullable:"false" doc:"The same, line by line, as the command line says it."`
	Run     *Run     `json:"run,omitempty" doc:"The run after it."`
}

// StartWish is which procedure or workflow is to be started, and how.
type StartWish struct {
	Procedure string   `json:"procedure,omitempty" maxLength:"200" doc:"Its name, as in GET /procedures."`
	Workflow  string   `json:"workflow,omitempty" maxLength:"500" doc:"Instead: the file of a workflow, as in GET /workflows; context has its inputs, each NAME=VALUE."`
	Goal      string   `json:"goal,omitempty" maxLength:"20000" doc:"Instead: an agent proposes tasks for it, as 'pawl plan GOAL'; see GET /proposal."`
	Fresh     bool     `json:"fresh,omitempty" doc:"Start anew although an earlier run could be resumed."`
	Context   []string `json:"context,omitempty" maxItems:"20" doc:"As --context: each is a text for the prompt, or a file whose text it is."`
	Agent     string   `json:"agent,omitempty" maxLength:"200" doc:"As --agent: one of those that GET /overview names, or another one; as configured when left out."`
	Safety    string   `json:"safety,omitempty" enum:"permissive,normal,paranoid" doc:"As --safety; as configured when left out."`
	Raise
}

// Raise are new limits for a run that resumes or starts; "" leaves them. They
// are written as the flags of the same names are.
type Raise struct {
	MaxIterations string `json:"max_iterations,omitempty" maxLength:"20" doc:"As --max-iterations: the highest number that an iteration may have; 0 is unlimited for procedures."`
	MaxCost       string `json:"max_cost,omitempty" maxLength:"20" doc:"As --max-cost: US dollars of the whole run, e.g. 5 or 2.50."`
	Timeout       string `json:"timeout,omitempty" maxLength:"20" doc:"As --timeout: wall clock with its unit, e.g. 90m."`
	Iterate       bool   `json:"iterate,omitempty" doc:"As --iterate: repeat a workflow until it is done."`
	Strategy      string `json:"strategy,omitempty" maxLength:"100" doc:"As --strategy: NAME for the whole run."`
}

// flagNames are the flags whose names are not those of the API's fields.
var flagNames = map[string]string{"operations": "op", "tags": "tag", "exclude_tags": "exclude-tag"}

// FlagsOf makes flags of a request of the API: each field that is set is the
// flag of its name.
func FlagsOf(wish any) []string {
	var fields map[string]any
	data, err := json.Marshal(wish)
	if err == nil {
		err = json.Unmarshal(data, &fields)
	}
	if err != nil { // requests always encode
		panic(err)
	}
	var args []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		flag := cmp.Or(flagNames[name], strings.ReplaceAll(name, "_", "-"))
		values, isList := fields[name].([]any)
		if !isList {
			values = []any{fields[name]}
		}
		for _, v := range values {
			if v != "" {
				args = append(args, fmt.Sprintf("--%s=%v", flag, v))
			}
		}
	}
	return args
}

// Reply is an answer to a question.
type Reply struct {
	Choice int    `json:"choice,omitempty" minimum:"0" maximum:"100" doc:"The number of an option; 0 for words alone."`
	Text   string `json:"text,omitempty" maxLength:"20000" doc:"Words, for the next prompt."`
	Step   string `json:"step,omitempty" maxLength:"1000" doc:"The step of a workflow that is answered; needed where several ask."`
	Resume *bool  `json:"resume,omitempty" doc:"Continue the run at once; true when left out."`
	Raise
}

// Foreseen is what a rollback would do with the files as they are now.
type Foreseen struct {
	Where    string   `json:"where" doc:"Where it goes to, in words."`
	Restored []string `json:"restored" nullable:"false" doc:"Files that are put back; the first thousand."`
	Removed  []string `json:"removed" nullable:"false" doc:"Files that go; the first thousand."`
	Files    int      `json:"files" doc:"How many files change in all."`
	Notes    []string `json:"notes" nullable:"false" doc:"What is left alone, and why."`
}

// Clashes are the files that a person and an agent both changed.
type Clashes struct {
	Files []Clash `json:"files" nullable:"false"`
}

// Clash is such a file.
type Clash struct {
	Path    string `json:"path"`
	Text    string `json:"text" doc:"Both sides, with markers: mine and agent; empty when it cannot be shown."`
	Why     string `json:"why" doc:"Why there is no text."`
	Settled bool   `json:"settled" doc:"A person has chosen."`
}

// MaxStepOutput is how many bytes of each step are shown, the last ones.
const MaxStepOutput = 8000

// Steps are those of a workflow's run, in the order in which they may begin.
type Steps struct {
	Steps []StepView `json:"steps" nullable:"false"`
}

// StepView is a step as it is after its newest execution.
type StepView struct {
	ID         string     `json:"id" doc:"With those of the steps that it is in before it: release/build."`
	Title      string     `json:"title"`
	Kind       string     `json:"kind" doc:"run, agent, procedure, ask or workflow"`
	Agent      string     `json:"agent"`
	Status     string     `json:"status" enum:"waiting,running,success,failure,cancelled,interrupted,asking,refused" doc:"waiting: it has not begun, or was skipped."`
	Needs      []string   `json:"needs" nullable:"false" doc:"Steps that must be done first; none where the file is gone."`
	Executions int        `json:"executions" doc:"How often it was begun."`
	Iteration  int        `json:"iteration" doc:"The pass in which it was begun last; 0 for none."`
	Optional   bool       `json:"optional"`
	StartedAt  *time.Time `json:"started_at" nullable:"true"`
	Elapsed    float64    `json:"elapsed" doc:"Seconds."`
	Error      string     `json:"error"`
	Output     string     `json:"output" doc:"What it printed, said or asks; of a long one the end."`
}

// Workflows are the workflow files of the project that can be started.
type Workflows struct {
	Workflows []WorkflowFile `json:"workflows" nullable:"false"`
}

// WorkflowFile is one of them.
type WorkflowFile struct {
	File        string   `json:"file" doc:"From the project's folder."`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Inputs      []string `json:"inputs" nullable:"false" doc:"Names of the values that it needs."`
}

// AddPlanned adds the steps of a file, and of those that they run.
func (o *Steps) AddPlanned(w *config.Workflow, prefix string) {
	for i := range w.Plan.Instances {
		in := &w.Plan.Instances[i]
		needs := lists.Each(in.Needs, func(n int) string { return prefix + w.Plan.Instances[n].ID })
		if prefix != "" && len(needs) == 0 {
			needs = []string{prefix[:len(prefix)-1]}
		}
		o.Steps = append(o.Steps, StepView{ID: prefix + in.ID, Kind: string(in.Step.Kind), Status: "waiting",
			Needs: needs, Optional: in.Step.Optional})
		if below := w.Nested[in.Step.ID]; below != nil {
			o.AddPlanned(below, prefix+in.ID+"/")
		}
	}
}

// AddExecution adds an execution to its step.
func (o *Steps) AddExecution(e report.Execution) {
	at := slices.IndexFunc(o.Steps, func(v StepView) bool { return v.ID == e.Step })
	if at < 0 {
		at, o.Steps = len(o.Steps), append(o.Steps, StepView{ID: e.Step, Needs: []string{}})
	}
	v := &o.Steps[at]
	v.Title, v.Agent, v.Status, v.Optional = e.Title, e.Agent, e.Status, e.Optional
	if e.Kind != "" {
		v.Kind = e.Kind
	}
	v.StartedAt, v.Elapsed, v.Error = TimeOrNil(e.StartedAt), Seconds(e.Elapsed), e.Failure
	v.Output = strings.ToValidUTF8(e.Output[max(0, len(e.Output)-MaxStepOutput):], "")
	v.Executions, v.Iteration = v.Executions+1, e.Iteration
}
