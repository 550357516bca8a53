package web

import (
	"github.com/pawl-dev/pawl/internal/ask/web/view"

	"github.com/pawl-dev/pawl/internal/ask/web/rest"

	"cmp"
	"context"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// placeHandlers answer what a person wants to know first: what runs here, what waits, what is in force.
type placeHandlers struct{ *core }

func (s placeHandlers) placeRoutes(api huma.API) {
	at := rest.Tagged(api, "overview")
	rest.Get(at, "/overview", "get-overview", "What runs, what needs a person, what was used today", s.overview)
	rest.Get(at, "/inbox", "get-inbox", "What waits for a person, the most urgent first", s.getInbox)
	rest.Get(at, "/config", "get-config", "Every setting in force and where it comes from", s.getSettings)
	rest.Get(at, "/procedures", "list-procedures", "What can be started", s.getProcedures)
}

func (s placeHandlers) overview(ctx context.Context, in *Clock) (*rest.Body[view.Overview], error) {
	now := time.Now().UTC()
	out := view.Overview{Name: filepath.Base(s.o.Root), Root: s.o.Root, Version: s.o.Version, Now: now, Git: s.o.Tree != nil,
		Active: []view.Run{}, Gates: []view.GateSpec{}, Agents: []string{}, Warnings: []string{}, Cases: map[string]int{}}
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
	return rest.Answer(out), nil
}

// activeRuns returns the runs that are stored as working.
func (s *core) activeRuns(ctx context.Context) ([]store.Run, error) {
	q := store.RunQuery{Root: s.o.Root, Active: true, Status: []string{string(loop.Running), string(loop.Waiting)}}
	runs, _, _, err := s.o.Store.RunPage(ctx, q, store.RunMark{}, store.MaxPage)
	return runs, err
}

func (s placeHandlers) countToday(ctx context.Context, now time.Time, at Clock) (view.Today, error) {
	since, zone := period{Days: 1, Clock: at}.startOf(now)
	var t view.Today
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

func (s placeHandlers) addVerification(out *view.Overview) {
	c, err := s.loadConfig()
	if err != nil {
		out.Problem = err.Error()
		return
	}
	out.Warnings, out.Gates = view.NonNil(c.Warnings), view.ConfiguredChecks(c)
	named := slices.Concat(c.Agents.Fallback, []string{c.Agents.Stronger}, slices.Sorted(maps.Keys(c.Agents.Named)))
	for _, name := range append([]string{c.Agent}, named...) {
		if name != "" && !slices.Contains(out.Agents, name) {
			out.Agents = append(out.Agents, name)
		}
	}
}

func (s placeHandlers) getSettings(_ context.Context, in *struct {
	Key string `query:"key" maxLength:"200" doc:"Only this setting and those below it."`
}) (*rest.Body[view.Settings], error) {
	out := view.Settings{Settings: []view.Setting{}, Warnings: []string{}}
	c, err := s.loadConfig()
	if err != nil {
		out.Problem = err.Error()
		return rest.Answer(out), nil //nolint:nilerr // what is wrong with the configuration is what is shown
	}
	out.File, out.Warnings = c.File, view.NonNil(c.Warnings)
	for _, e := range c.Entries() {
		if in.Key != "" && e.Path != in.Key && !strings.HasPrefix(e.Path, in.Key+".") {
			continue
		}
		out.Settings = append(out.Settings, view.Setting{Entry: e, Set: c.IsSet(e.Path)})
	}
	return rest.Answer(out), nil
}

func (s placeHandlers) getProcedures(context.Context, *rest.Nothing) (*rest.Body[view.Procedures], error) {
	out := view.Procedures{Procedures: []view.ProcedureSpec{}}
	c, err := s.loadConfig()
	if err != nil {
		return nil, rest.Problem(409, "INVALID_CONFIGURATION",
			"The configuration cannot be read").Detail(err.Error()).
			Suggest("Repair pawl.yaml; 'pawl config' says what is in force")
	}
	for name, p := range c.Procedures {
		one := view.ProcedureSpec{Name: name, Summary: p.Summary, Agent: p.Agent, Max: c.Loop.MaxIterations}
		one.Agent = cmp.Or(one.Agent, c.Agent)
		if p.MaxIterations != nil {
			one.Max = *p.MaxIterations
		}
		out.Procedures = append(out.Procedures, one)
	}
	slices.SortFunc(out.Procedures, func(a, b view.ProcedureSpec) int { return strings.Compare(a.Name, b.Name) })
	return rest.Answer(out), nil
}
