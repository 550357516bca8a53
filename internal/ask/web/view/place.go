package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/stats"
	"github.com/pawl-dev/pawl/internal/decide/trial"
	"github.com/pawl-dev/pawl/internal/do/autopilot/overview"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Overview is what a person wants to know first.
type Overview struct {
	Name     string         `json:"name" doc:"The folder's."`
	Root     string         `json:"root"`
	Version  string         `json:"version"`
	Now      time.Time      `json:"now" doc:"The server's clock."`
	Git      bool           `json:"git" doc:"There are snapshots, diffs and rollbacks."`
	Active   []Run          `json:"active" nullable:"false" doc:"Runs that work now."`
	NeedsYou int            `json:"needs_you" doc:"Entries of the inbox."`
	Cases    map[string]int `json:"cases" doc:"How many tasks have each status."`
	Ready    int            `json:"ready" doc:"Tasks that can be started."`
	Today    Today          `json:"today"`
	Gates    []GateSpec     `json:"gates" nullable:"false" doc:"The verification commands; without any, work counts unverified."`
	Agents   []string       `json:"agents" nullable:"false" doc:"Those that the configuration names. A task has another than the first with a tag: agent:NAME."`
	Problem  string         `json:"problem" doc:"What is wrong with the configuration; empty when nothing is."`
	Warnings []string       `json:"warnings" nullable:"false" doc:"Remarks about the configuration."`

	Lacks []action.Lack `json:"lacks" nullable:"false" doc:"What is missing before work can start, or be verified."`
}

// Today is what was used since midnight.
type Today struct {
	Iterations int      `json:"iterations"`
	CostUSD    *float64 `json:"cost_usd" nullable:"true"`
	TokensIn   int64    `json:"tokens_in"`
	TokensOut  int64    `json:"tokens_out"`
	Landed     int      `json:"landed"`
	Completed  int      `json:"completed" doc:"Runs."`
}

// GateSpec is a verification command.
type GateSpec struct {
	Name     string  `json:"name"`
	Command  string  `json:"command"`
	Required bool    `json:"required"`
	Timeout  float64 `json:"timeout" doc:"Seconds."`
	Origin   string  `json:"origin,omitempty" enum:"task,sealed" doc:"Of a check of one task."`
}

// Inbox is what waits for a person, the most urgent first.
type Inbox struct {
	Entries []Need `json:"entries" nullable:"false"`
}

// Need is one thing that waits.
type Need struct {
	Kind     string    `json:"kind" enum:"question,review,conflict,blocked,failed,timeout,paused,case,away" doc:"What is needed: an answer, a review, a decision; away: a worker that is silent or lacks something."`
	Title    string    `json:"title"`
	Why      string    `json:"why"`
	Since    time.Time `json:"since"`
	Run      *Run      `json:"run,omitempty"`
	Question *Question `json:"question,omitempty"`
	Step     string    `json:"step,omitempty" doc:"The step of a workflow that asks."`
	Case     *Case     `json:"case,omitempty"`
	// Entry is the work of a task that does not land as it is.
	Entry *action.QueueEntry `json:"entry,omitempty" doc:"Of a conflict: its place in the merge queue, with the files."`
}

// urgency is the order of the inbox: first what holds an agent up.
var urgency = []string{"question", "review", "conflict", "blocked", "failed", "timeout", "case", "away", "paused"}

// SortByUrgency sorts the inbox, within a kind by age.
func SortByUrgency(needs []Need) {
	slices.SortStableFunc(needs, func(a, b Need) int {
		return cmp.Or(slices.Index(urgency, a.Kind)-slices.Index(urgency, b.Kind), a.Since.Compare(b.Since))
	})
}

// Settings are the configuration in force.
type Settings struct {
	File     string    `json:"file" doc:"The project's file; empty if there is none."`
	Settings []Setting `json:"settings" nullable:"false"`
	Problem  string    `json:"problem"`
	Warnings []string  `json:"warnings" nullable:"false"`
}

// Setting is one value and where it comes from. Secrets are hidden.
type Setting struct {
	config.Entry
	Set bool `json:"set" doc:"Somebody set it: it is no default."`
}

// Procedures are what can be started.
type Procedures struct {
	Procedures []ProcedureSpec `json:"procedures" nullable:"false"`
}

// ProcedureSpec is one of them.
type ProcedureSpec struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Agent   string `json:"agent"`
	Max     int    `json:"max_iterations" doc:"0 is unlimited."`
}

// StoredChecks are the checks that are stored with a run.
func StoredChecks(checks []runplan.Check) []GateSpec {
	return lists.Each(checks, func(c runplan.Check) GateSpec {
		if c.Origin == loop.Sealed {
			c.Command = "" // a person reads it at the task
		}
		return GateSpec{Name: c.Name, Command: c.Command, Required: c.Required, Timeout: Seconds(c.Timeout),
			Origin: c.Origin}
	})
}

// ConfiguredChecks are the checks of the configuration.
func ConfiguredChecks(c *config.Config) []GateSpec {
	return lists.Each(c.Verification.Gates(), func(g config.Gate) GateSpec {
		return GateSpec{Name: g.Name, Command: g.Command, Required: g.Required, Timeout: Seconds(g.Timeout.Std())}
	})
}

// SplitByStep returns a need for each step with an unanswered question, if several have
// one.
func SplitByStep(n Need) []Need {
	if n.Kind != "question" || n.Question == nil || len(n.Question.Asks) == 0 {
		return []Need{n}
	}
	var needs []Need
	for _, a := range n.Question.Asks {
		if a.Answered && len(n.Question.Asks) > 1 {
			continue
		}
		one, q := n, *n.Question
		q.Text, q.Asks = a.Text, []Asks{a}
		one.Step, one.Question = a.Step, &q
		if len(n.Question.Asks) > 1 {
			one.Title, one.Why = n.Title+": "+a.Step, a.Text
		}
		needs = append(needs, one)
	}
	if len(needs) == 0 { // all are answered, and the run is to go on
		return []Need{n}
	}
	return needs
}

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
	Away        []string   `json:"away,omitempty" doc:"Workers that are silent, and what others lack, in words."`
	Plans       []string   `json:"plans,omitempty" doc:"What is used of the agents' subscriptions, in words."`
	Events      []PilotDid `json:"events" nullable:"false" doc:"What it did last, the latest first."`
	Actions     []string   `json:"actions" nullable:"false" doc:"What can be asked of it now: start, pause, resume, stop, mode."`
	Restart     string     `json:"restart,omitempty" doc:"What became of it after its process or its server was cut off."`
	Next        *Planned   `json:"next,omitempty" doc:"The sprint that begins when this one has come to its end."`
}

// ShowAutopilot shows the autopilot without its host and what is planned.
func ShowAutopilot(v overview.View) Autopilot {
	t := v.Tally
	out := Autopilot{
		Running: v.Running, PID: v.PID, Phase: v.Phase, Mode: v.Mode, Why: v.Why,
		Sprint: v.Sprint, StartedAt: TimeOrNil(v.StartedAt), EndedAt: TimeOrNil(v.EndedAt), MaxParallel: v.MaxParallel,
		Tally:  Tally{t.Completed, t.Landed, t.Failed, t.TimedOut, t.Blocked},
		Queued: v.Queued, QueueHeld: v.QueueHeld, Away: v.Away, Plans: v.Plans, Actions: []string{"start"},
		Events: lists.Each(v.Events, func(e overview.Event) PilotDid { return PilotDid(e) }),
		Slots:  lists.Each(v.Slots, func(l overview.SlotView) SlotView { return SlotView{l.Taken, l.Cost.Dollars(l.CostKnown)} }),
	}
	if v.Running {
		out.Actions = []string{"pause", "stop", "mode"}
		if v.Phase == "paused" {
			out.Actions[0] = "resume"
		}
	}
	return out
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
	overview.Taken
	CostUSD *float64 `json:"cost_usd" nullable:"true"`
}

// PilotDid is one thing that the autopilot did.
type PilotDid overview.Event

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

// TimeOrNil is nil for the zero time.
func TimeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// PilotWish is how an autopilot is to work; what is left out is as configured.
type PilotWish struct {
	MaxParallel int    `json:"max_parallel,omitempty" minimum:"1" maximum:"100" doc:"Tasks at once."`
	Mode        string `json:"mode,omitempty" enum:"auto,semi-auto"`
	Keep        bool   `json:"keep,omitempty" doc:"Stay when nothing is left to do."`
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
	// MaxIterations is of each task.
	MaxIterations int `json:"max_iterations,omitempty" minimum:"1" maximum:"1000000" doc:"Of each task."`
}

// Planned is a sprint that begins when the one at work has come to its end.
type Planned struct {
	SprintWish
	Held string `json:"held,omitempty" doc:"Why it does not begin by itself any more: a person starts it, or drops it."`
}

// StrategyStats are what was learned of strategies.
type StrategyStats struct {
	Strategies []store.StrategyStat `json:"strategies" nullable:"false"`
}

// FailureStats sum up failed iterations by class.
type FailureStats struct {
	Failures []store.FailureStat `json:"failures" nullable:"false"`
}

// GuardStats count the guards that tripped.
type GuardStats struct {
	Guards []store.GuardStat `json:"guards" nullable:"false"`
}

// TrialStats are what the last trial shows of agents and settings; without one there are no results.
type TrialStats struct {
	Tasks   int            `json:"tasks"`
	Made    int            `json:"made" doc:"Attempts that were made."`
	Planned int            `json:"planned"`
	Results []trial.Result `json:"results" nullable:"false"`
	// Compared says of each two what the tasks that both were tried at show.
	Compared []string `json:"compared" nullable:"false"`
}

// ShowTrial leaves out single tasks and attempts.
func ShowTrial(r trial.Report) TrialStats {
	return TrialStats{Tasks: len(r.Tasks), Made: len(r.Attempts), Planned: r.Planned, Results: NonNil(r.Results),
		Compared: NonNil(lists.Each(r.Pairs, trial.Pair.Words))}
}

// RefusalStats count the commands that a safety level refused.
type RefusalStats struct {
	Refusals []store.RefusalStat `json:"refusals" nullable:"false" doc:"The most frequent first."`
}

// UsageStats are cost, tokens and iterations by day and agent.
type UsageStats struct {
	Usage []store.UsageStat `json:"usage" nullable:"false" doc:"Oldest day first; days without iterations are left out."`
}

// ThroughputStats are what ended, by day.
type ThroughputStats struct {
	Days []store.ThroughputStat `json:"days" nullable:"false" doc:"Oldest first; days on which nothing ended are left out."`
}

// SummaryStats are what the work came to.
type SummaryStats struct {
	Total  stats.Line   `json:"total"`
	Groups []stats.Line `json:"groups" nullable:"false" doc:"Days oldest first, agents by name, sprints and tasks the latest first; empty without \"by\"."`
	// StrategyAccuracy is of all time.
	StrategyAccuracy *float64 `json:"strategy_accuracy" nullable:"true" doc:"How often a chosen strategy helped, of all that was learned: 0 to 1; null when nothing was."`
}

// Repository is another repository of the same user.
type Repository struct {
	ID      string `json:"id"`
	Name    string `json:"name" doc:"The folder's."`
	Root    string `json:"root"`
	Served  bool   `json:"served" doc:"A server runs for it. Without one its inbox is not known."`
	Problem string `json:"problem" doc:"Why the inbox of a served one is not known; else empty."`
	Entries []Need `json:"entries" nullable:"false" doc:"What waits there for a person, the most urgent first."`
}

// Repositories are all others.
type Repositories struct {
	Repositories []Repository `json:"repositories" nullable:"false"`
}

// Admission is how a browser that was let in here gets in at another server.
type Admission struct {
	URL string `json:"url" doc:"The other server's, without a path."`
	Key string `json:"key" doc:"Goes into the address as its fragment: key=KEY."`
}
