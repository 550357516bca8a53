package web

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/stats"
	"github.com/pawl-dev/pawl/internal/decide/trial"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

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

func (p period) startOfPeriod(now time.Time) (time.Time, *time.Location) {
	zone := p.loadLocation()
	return stats.Since(now, p.Days, zone), zone
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
	at := rest.Tagged(api, "statistics")
	rest.Get(at, "/stats/summary", "summary-stats",
		"Totals: tasks, iterations, retries, landings, waits and cost", s.summaryStats)
	rest.Get(at, "/stats/strategies", "strategy-stats",
		"Which strategy helped against which class of failure", s.strategyStats)
	rest.Get(at, "/stats/failures", "failure-stats", "Failed iterations by class", s.failureStats)
	rest.Get(at, "/stats/guards", "guard-stats", "Safety guards that tripped", s.guardStats)
	rest.Get(at, "/stats/refusals", "refusal-stats",
		"Commands that the safety level refused, and how often a person allowed them later", s.refusalStats)
	rest.Get(at, "/stats/usage", "usage-stats", "Cost, tokens and iterations by day and agent", s.usageStats)
	rest.Get(at, "/stats/trial", "trial-stats", "What the last trial shows of agents and settings", s.trialStats)
	rest.Get(at, "/stats/throughput", "throughput-stats", "Ended runs and tasks, by day", s.throughputStats)
}

func (s statHandlers) summaryStats(ctx context.Context, in *summaryQuery) (*rest.Body[view.SummaryStats], error) {
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
	out := view.SummaryStats{Total: stats.Sum(all).Line(), Groups: lists.Each(groups, stats.Tally.Line)}
	learned, err := s.o.Store.Learned(ctx)
	if err != nil {
		return nil, err
	}
	if right, uses := store.Accuracy(learned); uses > 0 {
		out.StrategyAccuracy = new(float64(right) / float64(uses))
	}
	return rest.Answer(out), nil
}

func (s statHandlers) strategyStats(ctx context.Context, _ *rest.Nothing) (*rest.Body[view.StrategyStats], error) {
	learned, err := s.o.Store.Learned(ctx)
	now := time.Now()
	shown := lists.Each(learned, func(l store.Learned) store.StrategyStat { return l.Stat(now) })
	return rest.Answer(view.StrategyStats{Strategies: shown}), err
}

func (s statHandlers) failureStats(ctx context.Context, _ *rest.Nothing) (*rest.Body[view.FailureStats], error) {
	failures, err := s.o.Store.FailureStats(ctx)
	return rest.Answer(view.FailureStats{Failures: view.NonNil(failures)}), err
}

func (s statHandlers) guardStats(ctx context.Context, _ *rest.Nothing) (*rest.Body[view.GuardStats], error) {
	guards, err := s.o.Store.GuardStats(ctx)
	return rest.Answer(view.GuardStats{Guards: view.NonNil(guards)}), err
}

func (s statHandlers) refusalStats(ctx context.Context, _ *rest.Nothing) (*rest.Body[view.RefusalStats], error) {
	refusals, err := s.o.Store.RefusalStats(ctx)
	return rest.Answer(view.RefusalStats{Refusals: view.NonNil(refusals)}), err
}

func (s statHandlers) trialStats(context.Context, *rest.Nothing) (*rest.Body[view.TrialStats], error) {
	var r trial.Report
	err := files.ReadJSON(filepath.Join(s.o.StateDir, trial.ReportFile), &r)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return rest.Answer(view.ShowTrial(r)), err
}

func (s statHandlers) usageStats(ctx context.Context, in *period) (*rest.Body[view.UsageStats], error) {
	now := time.Now()
	since, zone := in.startOfPeriod(now)
	usage, err := s.o.Store.UsageByDay(ctx, since, now, zone)
	return rest.Answer(view.UsageStats{Usage: view.NonNil(usage)}), err
}

func (s statHandlers) throughputStats(ctx context.Context, in *period) (*rest.Body[view.ThroughputStats], error) {
	now := time.Now()
	since, zone := in.startOfPeriod(now)
	ended, err := s.o.Store.ThroughputByDay(ctx, since, now, zone)
	return rest.Answer(view.ThroughputStats{Days: view.NonNil(ended)}), err
}
