package web

import (
	"github.com/pawl-dev/pawl/internal/ask/web/view"

	"github.com/pawl-dev/pawl/internal/ask/web/rest"

	"context"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// undelivered is the work of runs that is not in the person's files.
type undelivered struct {
	core *core
	mu   sync.Mutex // held while this process has the workspace of a run
}

func undeliveredRoutes(api huma.API, u *undelivered) {
	at := rest.Tagged(api, "actions")
	rest.Get(at, "/runs/{run}/apply", "foresee-apply", "What applying the work of a run would do now", u.foreseeApply)
	rest.Post(at, "/runs/{run}/apply", "apply-run", "Bring the work of a run that is not in the files there",
		u.applyRun)
	rest.Get(at, "/runs/{run}/conflicts", "list-conflicts",
		"The files that a person and the agent both changed, and for which a run rests", u.listConflicts)
	rest.Post(at, "/runs/{run}/conflicts", "settle-file", "Choose what becomes of such a file; resume goes on then",
		u.settleFile)
	rest.Post(at, "/runs/{run}/discard", "discard-run",
		"Give up a run that waits, and what of its work is not in the files", u.discardRun)
}

// lookAt looks at the work of a run.
func (u *undelivered) lookAt(ctx context.Context, in *rest.RunPath, do func(*action.Operator, store.Run) error) error {
	r, err := u.core.o.Store.Run(ctx, in.Run)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	_, err = u.core.o.CollectLines(func(p *action.Operator) error { return do(p, r) })
	return err
}

func (u *undelivered) foreseeApply(ctx context.Context, in *rest.RunPath) (*rest.Body[action.Application], error) {
	var out action.Application
	err := u.lookAt(ctx, in, func(p *action.Operator, r store.Run) (err error) {
		out, err = p.Apply(ctx, r, action.ApplyOptions{Check: true})
		return err
	})
	out.Written = out.Written[:min(len(out.Written), maxForeseen)]
	out.Removed = out.Removed[:min(len(out.Removed), maxForeseen)]
	out.Conflicts = out.Conflicts[:min(len(out.Conflicts), maxForeseen)]
	return rest.Answer(out), err
}

// applyRun refuses a result that does not fit.
func (u *undelivered) applyRun(ctx context.Context, in *struct {
	rest.RunPath
	Confirmed bool `query:"confirmed" doc:"A person has seen by name what programs run by themselves, and says yes."`
}) (*rest.Body[view.Done], error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.core.onRun(ctx, &in.RunPath, func(p *action.Operator, ctx context.Context, r store.Run) error {
		out, err := p.Apply(ctx, r, action.ApplyOptions{Confirmed: in.Confirmed})
		if err != nil {
			return err
		}
		if out.Status == "conflict" || out.Status == "confirm" {
			said, _ := p.CollectLines(func(p *action.Operator) error { p.PrintApplied(out, false); return nil })
			return fault.Refuse("%s", strings.Join(said, " "))
		}
		p.PrintApplied(out, false)
		return nil
	})
}

func (u *undelivered) listConflicts(ctx context.Context, in *rest.RunPath) (*rest.Body[view.Clashes], error) {
	var all []action.Clash
	err := u.lookAt(ctx, in, func(p *action.Operator, r store.Run) (err error) {
		all, err = p.ListConflicts(ctx, r)
		return err
	})
	return rest.Answer(view.Clashes{Files: lists.Each(all, func(c action.Clash) view.Clash {
		out := view.Clash{Path: c.Path, Text: c.Text, Why: c.Why, Settled: c.Settled != nil}
		if len(out.Text) > maxBody/2 || !utf8.ValidString(out.Text) {
			out.Text, out.Why = "", "it is no UTF-8, or too large to be shown here: choose mine or agent"
		}
		return out
	})}), err
}

func (u *undelivered) settleFile(ctx context.Context, in *struct {
	rest.RunPath
	Body struct {
		Path   string          `json:"path" minLength:"1" maxLength:"4096"`
		Choice delivery.Choice `json:"choice" enum:"mine,agent,both,edit" doc:"Whose lines stay where both changed them; both: the person's first."`
		Text   string          `json:"text,omitempty" doc:"What the file becomes, with the choice edit."`
	}
}) (*rest.Body[view.Done], error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.core.onRun(ctx, &in.RunPath, func(p *action.Operator, ctx context.Context, r store.Run) error {
		left, err := p.SettleConflict(ctx, r, in.Body.Path, in.Body.Choice,
			func([]byte) ([]byte, error) { return []byte(in.Body.Text), nil })
		if err != nil {
			return err
		}
		next := "resume the run, or apply its work"
		if left > 0 {
			next = fault.Numbered(left, "file") + " left"
		}
		p.Say("%s is settled: %s.", in.Body.Path, next)
		return nil
	})
}

func (u *undelivered) discardRun(ctx context.Context, in *rest.RunPath) (*rest.Body[view.Done], error) {
	return u.core.onRun(ctx, in, (*action.Operator).DiscardRun)
}
