package web

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/stats"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

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

// Clock says where a person's days begin.
type Clock struct {
	Zone   string `query:"zone" maxLength:"64" doc:"The person's, e.g. Europe/Berlin: its days are right also around a change of the clocks."`
	Offset int    `query:"offset" minimum:"-840" maximum:"840" default:"0" doc:"Minutes that the person's clock is ahead of UTC, where there is no zone, or it is not known here."`
}

func (c Clock) loadLocation() *time.Location {
	if c.Zone != "" {
		if zone, err := time.LoadLocation(c.Zone); err == nil {
			return zone
		}
	}
	return time.FixedZone("", c.Offset*60)
}

// period says how far back statistics go, and where a day ends.
type period struct {
	Days int `query:"days" minimum:"1" maximum:"3650" default:"30"`
	Clock
}

func (p period) startOf(now time.Time) (time.Time, *time.Location) {
	zone := p.loadLocation()
	return stats.Since(now, p.Days, zone), zone
}

// SummaryStats are what the work came to.
type SummaryStats struct {
	Total  stats.Line   `json:"total"`
	Groups []stats.Line `json:"groups" nullable:"false" doc:"Days oldest first, agents by name, sprints and tasks the latest first; empty without \"by\"."`
	// StrategyAccuracy is of all time.
	StrategyAccuracy *float64 `json:"strategy_accuracy" nullable:"true" doc:"How often a chosen strategy helped, of all that was learned: 0 to 1; null when nothing was."`
}

type summaryQuery struct {
	By    string `query:"by" enum:"day,agent,sprint,task" doc:"What is told apart."`
	Days  int    `query:"days" minimum:"0" maximum:"36500" default:"0" doc:"How far back it goes, today included; 0 is ever since."`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"Of sprints and tasks."`
	Clock
}

// statHandlers answer what the work came to.
type statHandlers struct{ *core }

func (s statHandlers) statRoutes(api huma.API) {
	get(api, "/stats/summary", "summary-stats", "statistics",
		"What the work came to: tasks, iterations, retries, landings, waits and cost", s.summaryStats)
	get(api, "/stats/strategies", "strategy-stats", "statistics",
		"What was learned: which strategy helped against which class of failure", s.strategyStats)
	get(api, "/stats/failures", "failure-stats", "statistics", "Failed iterations by class", s.failureStats)
	get(api, "/stats/guards", "guard-stats", "statistics", "Safety guards that tripped", s.guardStats)
	get(api, "/stats/refusals", "refusal-stats", "statistics",
		"Commands that the safety level refused, and how often a person let them be run after all", s.refusalStats)
	get(api, "/stats/usage", "usage-stats", "statistics", "Cost, tokens and iterations by day and agent", s.usageStats)
	get(api, "/stats/throughput", "throughput-stats", "statistics", "What ended, by day", s.throughputStats)
}

type nothing struct{}

func (s statHandlers) summaryStats(ctx context.Context, in *summaryQuery) (*body[SummaryStats], error) {
	now, since, zone := time.Now(), time.Time{}, in.loadLocation()
	if in.Days > 0 {
		since = stats.Since(now, in.Days, zone)
	}
	all, err := s.o.Store.Tallies(ctx, stats.All, since, now, zone, 1)
	if err != nil {
		return nil, err
	}
	var groups []stats.Tally
	if in.By != "" {
		if groups, err = s.o.Store.Tallies(ctx, stats.By(in.By), since, now, zone, in.Limit); err != nil {
			return nil, err
		}
	}
	out := SummaryStats{Total: stats.Sum(all).Line(), Groups: lists.Each(groups, stats.Tally.Line)}
	learned, err := s.o.Store.Learned(ctx)
	if err != nil {
		return nil, err
	}
	if right, uses := store.Accuracy(learned); uses > 0 {
		out.StrategyAccuracy = new(float64(right) / float64(uses))
	}
	return answer(out), nil
}

func (s statHandlers) strategyStats(ctx context.Context, _ *nothing) (*body[StrategyStats], error) {
	learned, err := s.o.Store.Learned(ctx)
	now := time.Now()
	return answer(StrategyStats{lists.Each(learned, func(l store.Learned) store.StrategyStat { return l.Stat(now) })}), err
}

func (s statHandlers) failureStats(ctx context.Context, _ *nothing) (*body[FailureStats], error) {
	failures, err := s.o.Store.FailureStats(ctx)
	return answer(FailureStats{nonNil(failures)}), err
}

func (s statHandlers) guardStats(ctx context.Context, _ *nothing) (*body[GuardStats], error) {
	guards, err := s.o.Store.GuardStats(ctx)
	return answer(GuardStats{nonNil(guards)}), err
}

func (s statHandlers) refusalStats(ctx context.Context, _ *nothing) (*body[RefusalStats], error) {
	refusals, err := s.o.Store.RefusalStats(ctx)
	return answer(RefusalStats{nonNil(refusals)}), err
}

func (s statHandlers) usageStats(ctx context.Context, in *period) (*body[UsageStats], error) {
	now := time.Now()
	since, zone := in.startOf(now)
	usage, err := s.o.Store.UsageByDay(ctx, since, now, zone)
	return answer(UsageStats{nonNil(usage)}), err
}

func (s statHandlers) throughputStats(ctx context.Context, in *period) (*body[ThroughputStats], error) {
	now := time.Now()
	since, zone := in.startOf(now)
	ended, err := s.o.Store.ThroughputByDay(ctx, since, now, zone)
	return answer(ThroughputStats{nonNil(ended)}), err
}
