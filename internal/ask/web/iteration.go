package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/outputs"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// iterationHandlers answer what the attempts of a run did and left.
type iterationHandlers struct{ *core }

func (s iterationHandlers) iterationRoutes(api huma.API) {
	at := rest.Tagged(api, "iterations")
	rest.Get(at, "/runs/{run}/iterations", "list-iterations",
		"The iterations of a run, in order, with the one in progress", s.listIterations)
	rest.Get(at, "/runs/{run}/iterations/{number}", "get-iteration", "One iteration", s.getIteration)
	rest.Get(at, "/runs/{run}/iterations/{number}/files", "list-iteration-files",
		"The files of an iteration: prompt, output of agent, checks and review", s.listFiles)
	rest.Get(at, "/runs/{run}/iterations/{number}/files/{file}", "read-iteration-file", "A part of a file, as text",
		s.readPart)
	rest.Get(at, "/runs/{run}/iterations/{number}/conversation", "read-conversation",
		"A part of what the agent did: text, tool calls, usage", s.getConversation)
}

// before is how many iterations before a page are looked at for patterns.
const before = 20

func (s iterationHandlers) listIterations(ctx context.Context, in *struct {
	rest.RunPath
	rest.Paging
}) (*rest.Body[view.IterationPage], error) {
	r, err := s.o.Store.Run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	a, b, _ := strings.Cut(in.Cursor, ".")
	var mark store.IterationMark
	mark.Number, _ = strconv.Atoi(a) // an odd cursor is the first page's
	mark.Attempt, _ = strconv.Atoi(b)
	records, err := s.o.Store.IterationPage(ctx, r.ID, mark, in.Limit)
	if err != nil {
		return nil, err
	}
	first := mark.Number
	if len(records) > 0 {
		first = records[0].Number
	}
	t, err := s.historyOf(ctx, r, first)
	if err != nil {
		return nil, err
	}
	out := view.IterationPage{Iterations: make([]view.Iteration, len(records))}
	for i := range records {
		out.Iterations[i] = t.ShowIteration(&records[i])
	}
	if len(records) == in.Limit {
		last := records[len(records)-1]
		out.NextCursor = fmt.Sprintf("%d.%d", last.Number, last.Attempt)
	} else {
		out.Current = view.CurrentOf(r)
	}
	return rest.Answer(out), nil
}

func (s iterationHandlers) getIteration(ctx context.Context, in *rest.IterationPath,
) (*rest.Body[view.Iteration], error) {
	r, rec, err := s.findRecord(ctx, in)
	if err != nil {
		return nil, err
	}
	t, err := s.historyOf(ctx, r, rec.Number)
	if err != nil {
		return nil, err
	}
	return rest.Answer(t.ShowIteration(&rec)), nil
}

// findRecord finds an attempt that has ended.
func (s *core) findRecord(ctx context.Context, in *rest.IterationPath) (store.Run, loop.Record, error) {
	r, err := s.o.Store.Run(ctx, in.Run)
	if err != nil {
		return r, loop.Record{}, err
	}
	records, err := s.o.Store.IterationPage(ctx, r.ID, store.IterationMark{Number: in.Number}, store.MaxPage)
	if err != nil {
		return r, loop.Record{}, err
	}
	found, ok := loop.Record{}, false
	for _, rec := range records {
		wanted := in.Attempt == 0 || rec.Attempt == in.Attempt
		if wanted && rec.Number == in.Number {
			found, ok = rec, true
		}
	}
	if !ok {
		return r, found, noIteration(r.ID, in.Number)
	}
	return r, found, nil
}

func noIteration(run string, n int) *rest.ProblemError {
	return rest.Problem(http.StatusNotFound, "ITERATION_NOT_FOUND", "Run %s has no iteration %d that has ended", run, n).
		Suggest("List them: GET /api/v1/runs/" + run + "/iterations")
}

// reasonEvidenceGone returns why the evidence of an iteration is not here; "" where it is, or there is none.
func (s *core) reasonEvidenceGone(r store.Run, rec *loop.Record) string {
	if len(rec.Evidence) == 0 {
		return ""
	}
	root, err := s.openOutputs(r, rec.Number)
	if err != nil {
		return outputs.ReasonGone(s.o.Store.OutputsFolder(), rec.Pushed)
	}
	_ = root.Close()
	return ""
}

// historyOf reads what records do not have: why strategies were chosen, and the
// failures before the first iteration of a page.
func (s *core) historyOf(ctx context.Context, r store.Run, first int) (*view.History, error) {
	t := &view.History{Asked: map[[2]int]loop.Command{}, Timeouts: map[string]float64{}}
	t.EvidenceGone = func(rec *loop.Record) string { return s.reasonEvidenceGone(r, rec) }
	for _, c := range s.checksOfRun(r) {
		t.Timeouts[c.Name] = c.Timeout
	}
	events, err := s.o.Store.EventsOfKind(ctx, r.ID, journal.IterationEnded, journal.IterationReviewed)
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		var after struct {
			Next loop.Command `json:"next"`
		}
		if json.Unmarshal(e.Data, &after) == nil && after.Next.Kind == loop.Run {
			t.Asked[[2]int{after.Next.Iteration, after.Next.Attempt}] = after.Next
		}
	}
	earlier, err := s.o.Store.IterationPage(ctx, r.ID, store.IterationMark{Number: max(0, first-before)}, before)
	for _, rec := range earlier {
		if rec.Number < first && rec.Failure != nil {
			t.Past = append(t.Past, *rec.Failure)
		}
	}
	return t, err
}
