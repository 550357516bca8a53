package web

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/autopilot/overview"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// placeHandlers answer what a person wants to know first: what runs here, what waits, what is in force.
type placeHandlers struct{ *core }

func (s placeHandlers) placeRoutes(api huma.API) {
	at := rest.Tagged(api, "overview")
	rest.Get(at, "/overview", "get-overview", "What runs, what needs a person, what was used today", s.showOverview)
	rest.Get(at, "/inbox", "get-inbox", "What waits for a person, most urgent first", s.getInbox)
	rest.Get(at, "/config", "get-config", "Every setting in force and where it comes from", s.getSettings)
	rest.Get(at, "/procedures", "list-procedures", "What can be started", s.getProcedures)
}

func (s placeHandlers) showOverview(ctx context.Context, in *Clock) (*rest.Body[view.Overview], error) {
	now := time.Now().UTC()
	out := view.Overview{Name: filepath.Base(s.o.Root), Root: s.o.Root, Version: s.o.Version, Now: now,
		Git: s.o.Tree != nil, Active: []view.Run{}, Gates: []view.GateSpec{}, Agents: []string{}, Warnings: []string{},
		Cases: map[string]int{}, Lacks: s.o.Lacks()}
	runs, err := s.activeRuns(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		if v := s.viewOfRun(ctx, r); loop.Status(v.Status).Active() {
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
	since, zone := period{Days: 1, Clock: at}.startOfPeriod(now)
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
			Suggest("Repair pawl.yaml; 'pawl config' shows what is in effect")
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

func (s placeHandlers) getInbox(ctx context.Context, _ *rest.Nothing) (*rest.Body[view.Inbox], error) {
	needs, err := s.listNeeds(ctx)
	return rest.Answer(view.Inbox{Entries: needs}), err
}

// waiting are the statuses of runs that wait for a person.
var waiting = []string{string(loop.Pending), string(loop.Blocked), string(loop.Aborted), string(loop.Paused),
	string(loop.FailedRun)}

// maxNeeds bounds the inbox.
const maxNeeds = 500

// listNeeds returns everything that waits for a person, the most urgent first. A task and
// its run are one need.
func (s placeHandlers) listNeeds(ctx context.Context) ([]view.Need, error) {
	of, err := s.runNeeds(ctx)
	if err != nil {
		return nil, err
	}
	cases, _, err := s.o.Store.CasePage(ctx,
		store.CaseFilter{Status: []board.Status{board.Review, board.Blocked, board.Failed, board.Timeout}}, "", 0, maxNeeds)
	if err != nil {
		return nil, err
	}
	queued, err := s.queueEntries(ctx)
	if err != nil {
		return nil, err
	}
	known, err := s.caseFacts(ctx)
	if err != nil {
		return nil, err
	}
	for i := range cases {
		c := &cases[i]
		if of.given[c.ID] && c.Status == board.Blocked {
			continue
		}
		if at, ok := of.at[c.ID]; ok { // its run says what is needed
			shown := known.showCase(c)
			of.needs[at].Case, of.needs[at].Title = &shown, c.ID+": "+c.Title
			continue
		}
		n, ok, err := s.caseNeed(ctx, c, known, queued)
		if err != nil {
			return nil, err
		}
		if ok {
			of.needs = append(of.needs, n)
		}
	}
	if err := s.addKeptOutTasks(ctx, &of, known); err != nil {
		return nil, err
	}
	view.SortByUrgency(of.needs)
	return of.needs, nil
}

// addKeptOutTasks adds the tasks that the autopilot does not start until a person says so,
// those that show why it starts nothing, and the workers that are silent or lack something.
func (s placeHandlers) addKeptOutTasks(ctx context.Context, of *runNeeds, known caseFacts) error {
	idle, err := overview.IdleOf(ctx, s.o.Store)
	for _, k := range idle.KeptOut[:min(len(idle.KeptOut), maxNeeds)] {
		if !k.Until.IsZero() && k.Why != idle.Held && !k.Lacks {
			continue
		}
		one, cerr := s.o.Store.Case(ctx, k.Case)
		if cerr != nil {
			return errors.Join(err, cerr)
		}
		c := known.showCase(&one)
		n := view.Need{Kind: "case", Title: c.ID + ": " + c.Title, Since: c.UpdatedAt, Case: &c,
			Why: "it is not started: " + k.Why}
		switch {
		case k.Lacks:
			n.Why = k.Why
		case k.Why == idle.Held:
			n.Why = "nothing is started for now: " + k.Why
		}
		of.needs = append(of.needs, n)
	}
	for _, w := range idle.Lacking {
		of.needs = append(of.needs, view.Need{Kind: "away", Title: "Worker " + w.Name,
			Why: strings.Join(overview.LinesAway(w), "; ")})
	}
	return err
}

// runNeeds are what runs wait for.
type runNeeds struct {
	needs []view.Need
	at    map[string]int  // the first need of a name
	given map[string]bool // names that a person has given up
}

// runNeeds finds the runs that wait for a person. Of several runs of one name only the
// last counts, since a new start replaces the others. A run that was given up does not
// wait.
func (s placeHandlers) runNeeds(ctx context.Context) (runNeeds, error) {
	out := runNeeds{needs: []view.Need{}, at: map[string]int{}, given: map[string]bool{}}
	runs, _, _, err := s.o.Store.RunPage(ctx, store.RunQuery{Root: s.o.Root, Status: waiting}, store.RunMark{}, maxNeeds)
	if err != nil {
		return out, err
	}
	over := map[string]bool{}
	for _, r := range runs {
		if over[r.Name] { // the last started comes first
			continue
		}
		over[r.Name] = true
		last, err := s.o.Store.Latest(ctx, r.Root, r.Name)
		switch {
		case err != nil:
			return out, err
		case last.ID != r.ID, s.isAnswered(ctx, last):
		case last.Why == loop.GivenUp:
			out.given[r.Name] = true
		default:
			out.at[r.Name] = len(out.needs)
			out.needs = append(out.needs, view.SplitByStep(s.needOfRun(ctx, last))...)
		}
	}
	return out, nil
}

// isAnswered reports whether a person has already dealt with the run: its task is
// removed, put aside, or waits for a slot.
func (s placeHandlers) isAnswered(ctx context.Context, r store.Run) bool {
	if r.Kind != string(loop.Task) {
		return false
	}
	c, err := s.o.Store.Case(ctx, board.TaskOf(r.Name))
	if errors.Is(err, store.ErrNoCase) {
		return true
	}
	return err == nil && slices.Contains([]board.Status{board.Pending, board.Deferred, board.Done}, c.Status)
}

// caseNeed returns the need of a task that has no waiting run. ok is false while the
// task's work waits for its turn to land.
func (s placeHandlers) caseNeed(ctx context.Context, c *board.Case, known caseFacts,
	queued map[string]action.QueueEntry) (n view.Need, ok bool, err error) {
	entry, waits := queued[c.ID]
	if waits && c.Status == board.Review {
		return n, false, nil
	}
	if approved, err := s.isApproved(ctx, c); err != nil || approved {
		return n, false, err // its place in the queue is to come
	}
	kind := map[board.Status]string{board.Review: "review", board.Failed: "failed", board.Timeout: "timeout"}[c.Status]
	kind = cmp.Or(kind, "case")
	shown := known.showCase(c)
	n = view.Need{Kind: kind, Title: c.ID + ": " + c.Title, Why: c.Why, Since: shown.UpdatedAt, Case: &shown}
	if entry.Status == string(queue.Parked) {
		n.Kind, n.Why, n.Entry = "conflict", entry.Why, &entry
	}
	return n, true, nil
}

// isApproved reports whether the task is in review, and a person's last action on it was
// to approve.
func (s placeHandlers) isApproved(ctx context.Context, c *board.Case) (bool, error) {
	if c.Status != board.Review {
		return false, nil
	}
	history, err := s.o.Store.CaseHistory(ctx, c.ID)
	if err != nil || len(history) == 0 {
		return false, err
	}
	return history[len(history)-1].Action == board.Approve, nil
}

func (s placeHandlers) needOfRun(ctx context.Context, r store.Run) view.Need {
	n := view.Need{Kind: "question", Title: r.Title(), Why: r.Why, Since: r.UpdatedAt, Run: new(s.viewOfRun(ctx, r))}
	state, err := storedrun.StateOf(r)
	if err == nil {
		rows, _ := s.o.Store.Controls(ctx, r.ID) // without them nothing counts as answered
		n.Question = view.ShowQuestion(state.Question, rows)
	}
	switch {
	case state.PendingReview != nil:
		n.Kind = "review"
	case loop.Status(r.Status) == loop.Paused && n.Question == nil:
		n.Kind = "paused"
	case loop.Status(r.Status) == loop.Blocked || loop.Status(r.Status) == loop.Aborted:
		n.Kind = "blocked"
	case loop.Status(r.Status) == loop.FailedRun:
		n.Kind = "failed"
	}
	return n
}
