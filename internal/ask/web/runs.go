package web

import (
	"github.com/pawl-dev/pawl/internal/ask/web/view"

	"github.com/pawl-dev/pawl/internal/ask/web/rest"

	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// runHandlers answer which runs there are, how one is, and which steps it has.
type runHandlers struct{ *core }

func (s runHandlers) runRoutes(api huma.API) {
	at := rest.Tagged(api, "runs")
	rest.Get(at, "/runs", "list-runs", "Runs, the last started first", s.listRuns)
	rest.Get(at, "/runs/{run}", "get-run", "One run with its question, limits and what was asked of it", s.getRun)
}

type runQuery struct {
	rest.Paging
	Status []string `query:"status" maxItems:"12" enum:"running,waiting,paused,pending,blocked,completed,failed,aborted,timeout,exhausted,interrupted,stopped" doc:"One of these, as they are stored."`
	Active bool     `query:"active" doc:"Only runs that have not ended: those that run or wait for a person."`
	Kind   string   `query:"kind" maxLength:"20"`
	Name   string   `query:"name" maxLength:"500"`
	Text   string   `query:"q" maxLength:"200" doc:"In the id, the name, what it is to do or the reason."`
}

func (s runHandlers) listRuns(ctx context.Context, in *runQuery) (*rest.Body[view.RunPage], error) {
	q := store.RunQuery{Root: s.o.Root, Status: in.Status, Active: in.Active, Kind: in.Kind, Name: in.Name, Text: in.Text,
		Kept: true}
	runs, next, more, err := s.o.Store.RunPage(ctx, q, runMark(in.Cursor), in.Limit)
	if err != nil {
		return nil, err
	}
	out := view.RunPage{Runs: lists.Each(runs, func(r store.Run) view.Run { return s.viewOf(ctx, r) })}
	if more {
		out.NextCursor = fmt.Sprintf("%d.%d", next.Started, next.Row)
	}
	return rest.Answer(out), nil
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
func (s *core) viewOf(ctx context.Context, r store.Run) view.Run {
	r = s.o.AsIs(ctx, r)
	v := view.ShowRun(&r)
	v.Coming = s.pendingControls(ctx, r)
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

func (s runHandlers) getRun(ctx context.Context, in *rest.RunPath) (*rest.Body[view.RunDetail], error) {
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
	out := view.ShowDetail(s.viewOf(ctx, r), r.Root, &state, rows)
	out.Sandbox, out.Copy, out.Gates = setup.Sandbox, setup.Undelivered != "", s.checksOfRun(r)
	out.GatesSeen = len(out.Gates) > 0
	if out.Live {
		return rest.Answer(out), nil
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
	return rest.Answer(out), nil
}

// checksOfRun returns the checks stored with the run. If there are none, it returns those
// of the configuration.
func (s *core) checksOfRun(r store.Run) []view.GateSpec {
	stored := action.SetupOf(r).Checks
	if stored == nil {
		c, err := s.loadConfig()
		if err != nil {
			return []view.GateSpec{} // the overview says what is wrong
		}
		return view.ConfiguredChecks(c)
	}
	return view.StoredChecks(stored)
}

// checksOf are the checks of a run by its id.
func (s *core) checksOf(ctx context.Context, id string) []view.GateSpec {
	r, err := s.o.Store.Run(ctx, id)
	if err != nil {
		return []view.GateSpec{} // the hub says so
	}
	return s.checksOfRun(r)
}
