package web

import (
	"cmp"
	"context"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
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
	Cases    map[string]int `json:"cases" doc:"How many have each status."`
	Ready    int            `json:"ready" doc:"Tasks that can be started."`
	Today    Today          `json:"today"`
	Gates    []GateSpec     `json:"gates" nullable:"false" doc:"The verification commands; without any, work counts unverified."`
	Agents   []string       `json:"agents" nullable:"false" doc:"Those that the configuration names. A task has another than the first with a tag: agent:NAME."`
	Problem  string         `json:"problem" doc:"What is wrong with the configuration; empty when nothing is."`
	Warnings []string       `json:"warnings" nullable:"false" doc:"Remarks about the configuration."`
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
	Kind     string    `json:"kind" enum:"question,review,conflict,blocked,failed,timeout,paused,case" doc:"What is needed: an answer, a review, a decision."`
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

// placeHandlers answer what a person wants to know first: what runs here, what waits, what is in force.
type placeHandlers struct{ *core }

func (s placeHandlers) placeRoutes(api huma.API) {
	get(api, "/overview", "get-overview", "overview", "What runs, what needs a person, what was used today", s.overview)
	get(api, "/inbox", "get-inbox", "overview", "What waits for a person, the most urgent first", s.getInbox)
	get(api, "/config", "get-config", "overview", "Every setting in force and where it comes from", s.getSettings)
	get(api, "/procedures", "list-procedures", "overview", "What can be started", s.getProcedures)
}

func (s placeHandlers) overview(ctx context.Context, in *Clock) (*body[Overview], error) {
	now := time.Now().UTC()
	out := Overview{Name: filepath.Base(s.o.Root), Root: s.o.Root, Version: s.o.Version, Now: now, Git: s.o.Tree != nil,
		Active: []Run{}, Gates: []GateSpec{}, Agents: []string{}, Warnings: []string{}, Cases: map[string]int{}}
	runs, err := s.activeRuns(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		if v := s.viewOf(ctx, r); loop.Status(v.Status).Active() {
			out.Active = append(out.Active, v)
		}
	}
	needs, err := s.listNeeds(ctx)
	if err != nil {
		return nil, err
	}
	out.NeedsYou = len(needs)
	counts, ready, err := s.o.Store.CaseCounts(ctx)
	if err != nil {
		return nil, err
	}
	for _, st := range board.Statuses {
		out.Cases[string(st)] = counts[st]
	}
	out.Ready = ready
	if out.Today, err = s.countToday(ctx, now, *in); err != nil {
		return nil, err
	}
	s.addVerification(&out)
	return answer(out), nil
}

// activeRuns returns the runs that are stored as working.
func (s *core) activeRuns(ctx context.Context) ([]store.Run, error) {
	q := store.RunQuery{Root: s.o.Root, Active: true, Status: []string{string(loop.Running), string(loop.Waiting)}}
	runs, _, _, err := s.o.Store.RunPage(ctx, q, store.RunMark{}, store.MaxPage)
	return runs, err
}

func (s placeHandlers) countToday(ctx context.Context, now time.Time, at Clock) (Today, error) {
	since, zone := period{Days: 1, Clock: at}.startOf(now)
	var t Today
	usage, err := s.o.Store.UsageByDay(ctx, since, now, zone)
	if err != nil {
		return t, err
	}
	var cost loop.MicroUSD
	known := false
	for _, u := range usage {
		t.Iterations += u.Iterations
		t.TokensIn += u.TokensIn
		t.TokensOut += u.TokensOut
		if u.CostUSD != nil {
			cost, known = cost+loop.MicroUSD(math.Round(*u.CostUSD*1e6)), true
		}
	}
	t.CostUSD = cost.Dollars(known)
	ended, err := s.o.Store.ThroughputByDay(ctx, since, now, zone)
	for _, d := range ended {
		t.Landed += d.Landed
		t.Completed += d.Completed
	}
	return t, err
}

func (s placeHandlers) addVerification(out *Overview) {
	c, err := s.loadConfig()
	if err != nil {
		out.Problem = err.Error()
		return
	}
	out.Warnings, out.Gates = nonNil(c.Warnings), configuredChecks(c)
	named := slices.Concat(c.Agents.Fallback, []string{c.Agents.Stronger}, slices.Sorted(maps.Keys(c.Agents.Named)))
	for _, name := range append([]string{c.Agent}, named...) {
		if name != "" && !slices.Contains(out.Agents, name) {
			out.Agents = append(out.Agents, name)
		}
	}
}

func configuredChecks(c *config.Config) []GateSpec {
	return lists.Each(c.Verification.Gates(), func(g config.Gate) GateSpec {
		return GateSpec{Name: g.Name, Command: g.Command, Required: g.Required, Timeout: seconds(g.Timeout.Std())}
	})
}

func (s placeHandlers) getSettings(_ context.Context, in *struct {
	Key string `query:"key" maxLength:"200" doc:"Only this setting and those below it."`
}) (*body[Settings], error) {
	out := Settings{Settings: []Setting{}, Warnings: []string{}}
	c, err := s.loadConfig()
	if err != nil {
		out.Problem = err.Error()
		return answer(out), nil //nolint:nilerr // what is wrong with the configuration is what is shown
	}
	out.File, out.Warnings = c.File, nonNil(c.Warnings)
	for _, e := range c.Entries() {
		if in.Key != "" && e.Path != in.Key && !strings.HasPrefix(e.Path, in.Key+".") {
			continue
		}
		out.Settings = append(out.Settings, Setting{e, c.IsSet(e.Path)})
	}
	return answer(out), nil
}

func (s placeHandlers) getProcedures(context.Context, *nothing) (*body[Procedures], error) {
	out := Procedures{Procedures: []ProcedureSpec{}}
	c, err := s.loadConfig()
	if err != nil {
		return nil, problem(409, "INVALID_CONFIGURATION",
			"The configuration cannot be read").detail(err.Error()).
			suggest("Repair pawl.yaml; 'pawl config' says what is in force")
	}
	for name, p := range c.Procedures {
		one := ProcedureSpec{Name: name, Summary: p.Summary, Agent: p.Agent, Max: c.Loop.MaxIterations}
		one.Agent = cmp.Or(one.Agent, c.Agent)
		if p.MaxIterations != nil {
			one.Max = *p.MaxIterations
		}
		out.Procedures = append(out.Procedures, one)
	}
	slices.SortFunc(out.Procedures, func(a, b ProcedureSpec) int { return strings.Compare(a.Name, b.Name) })
	return answer(out), nil
}
