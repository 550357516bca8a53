package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/web/patch"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// maxReviews is how many are listed.
const maxReviews = 200

// reviewHandlers answer which verified work waits for a decision.
type reviewHandlers struct{ *core }

func (s reviewHandlers) reviewRoutes(api huma.API) {
	at := rest.Tagged(api, "reviews")
	rest.Get(at, "/reviews", "list-reviews", "Verified work that waits for a person's decision, oldest first",
		s.getReviews)
	rest.Get(at, "/cases/{id}/diff", "diff-case", "Which files the work of a task changes", s.diffCase)
	rest.Get(at, "/cases/{id}/diff/file", "diff-case-file", "What the work of a task changes in one file",
		s.diffCaseFile)
}

func (s reviewHandlers) getReviews(ctx context.Context, _ *rest.Nothing) (*rest.Body[view.Reviews], error) {
	open, err := s.o.Store.OpenReviews(ctx, maxReviews)
	if err != nil {
		return nil, err
	}
	out := view.Reviews{Reviews: []view.ReviewAsked{}}
	for _, r := range open {
		one, err := s.reviewAsked(ctx, r)
		if err != nil {
			return nil, err
		}
		out.Reviews = append(out.Reviews, one)
	}
	return rest.Answer(out), nil
}

func (s reviewHandlers) reviewAsked(ctx context.Context, r store.CaseReview) (view.ReviewAsked, error) {
	out := view.ReviewAsked{Case: r.Case, Run: r.Run, Why: r.Why, AskedAt: r.AskedAt}
	var work queue.Entry
	if json.Unmarshal(r.Work, &work) == nil {
		out.Title, out.Commit, out.Base = work.Title, work.Commit, work.Base
	}
	c, err := s.o.Store.Case(ctx, r.Case)
	if err != nil {
		return out, err
	}
	out.Title, out.Proof = c.Title, view.NonNil(report.ProofsOf(&c, nil))
	run, err := s.o.Store.Run(ctx, r.Run)
	if err != nil {
		return out, nil //nolint:nilerr // without its run the work can still be judged by its diff
	}
	out.Used = &view.RunUse{Iterations: run.Iteration, Elapsed: view.Seconds(run.Elapsed), Agent: run.Agent,
		CostUSD: loop.MicroUSD(run.Cost).Dollars(run.CostKnown)}
	all, err := s.o.Store.Iterations(ctx, run.ID)
	if out.Proof = view.NonNil(report.ProofsOf(&c, all)); err != nil || len(all) == 0 {
		return out, err
	}
	last := &all[len(all)-1]
	out.Used.Agent = cmp.Or(out.Used.Agent, last.Agent)
	t, err := s.historyOf(ctx, run, last.Number)
	if err != nil {
		return out, err
	}
	it := t.ShowIteration(last)
	out.Last = &it
	return out, nil
}

// lastLanding is the last one of a task, on any branch; the zero one where there is none.
func (s *core) lastLanding(ctx context.Context, id string) (last queue.Landing, err error) {
	targets, err := s.o.Store.QueueTargets(ctx)
	for _, t := range targets {
		landed, lerr := s.o.Store.Landings(ctx, t, id, 1)
		if err = errors.Join(err, lerr); len(landed) > 0 && landed[0].At.After(last.At) {
			last = landed[0]
		}
	}
	return last, err
}

// findWork returns the work of a task as two commits in the repository.
func (s reviewHandlers) findWork(ctx context.Context, in *rest.CasePath) (compared, error) {
	if s.o.Tree == nil {
		return compared{}, s.lacksRepository("diffs")
	}
	if _, err := s.o.Store.Case(ctx, in.ID); err != nil {
		return compared{}, err
	}
	var work queue.Entry
	list, err := s.o.Store.CaseReviews(ctx, in.ID)
	if err != nil {
		return compared{}, err
	}
	if len(list) > 0 {
		_ = json.Unmarshal(list[len(list)-1].Work, &work) // then nothing is known of it
	}
	targets, err := s.o.Store.QueueTargets(ctx)
	if err != nil {
		return compared{}, err
	}
	for _, t := range targets {
		row, _, err := s.o.Store.Queue(ctx, t)
		if err != nil {
			return compared{}, err
		}
		if e, ok := row.State.Find(in.ID); ok {
			work = e
		}
	}
	landed, err := s.lastLanding(ctx, in.ID)
	if err != nil {
		return compared{}, err
	}
	if landed.Commit != "" && work.Commit == "" {
		work.Commit, work.Base = landed.Commit, landed.Before()
	}
	if work.Commit == "" { // what its last run changed so far
		last, err := s.o.Store.Latest(ctx, s.o.Root, in.ID)
		if err != nil {
			return compared{}, nil //nolint:nilerr // nobody has worked on it
		}
		return diffHandlers(s).findStates(ctx, last.ID, Span{To: -1})
	}
	if work.Base == "" {
		work.Base = work.Commit + "^1"
	}
	return compared{s.o.Tree, work.Base, work.Commit}, nil
}

func (s reviewHandlers) diffCase(ctx context.Context, in *rest.CasePath) (*rest.Body[view.Diff], error) {
	return answerDiff(ctx)(s.findWork(ctx, in))
}

func (s reviewHandlers) diffCaseFile(ctx context.Context, in *struct {
	rest.CasePath
	FilePath
}) (*rest.Body[patch.FileDiff], error) {
	return answerFileDiff(ctx, in.FilePath)(s.findWork(ctx, &in.CasePath))
}
