package pool

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/pawl-dev/pawl/internal/store"
)

// Swap gives a task the workspace of an agent that raced for it, and that agent the
// task's, where there is one: with their runs, in one transaction. The folders stay
// where they are. It is [ErrTaken] while another process works in one of them.
func (p *Pool) Swap(ctx context.Context, task string, racer Workspace) (Workspace, error) {
	var won store.Workspace
	err := p.keepBoth(ctx, task, racer.ID)
	if err == nil {
		err = p.o.Store.SwapRacer(ctx, task, racer.ID, func(all []store.Workspace) (store.WorkspaceChange, error) {
			var ch store.WorkspaceChange
			for _, r := range all {
				if r.ID != task && r.ID != racer.ID {
					continue
				}
				if p.busy(r) && r.Owner != p.me {
					return ch, fmt.Errorf("%w by process %d", ErrTaken, r.Owner.PID)
				}
				ch.Drop = append(ch.Drop, r.ID)
				if r.ID == task {
					r.ID = racer.ID
				} else {
					r.ID, won = task, r
					won.ID = task
				}
				r.Branch = branchPrefix + r.ID
				ch.Put = append(ch.Put, r)
			}
			if won.ID == "" {
				return ch, errors.New("it has no workspace")
			}
			return ch, nil
		})
	}
	if err != nil {
		return racer, fmt.Errorf("cannot give %s the workspace of %s: %w", task, racer.ID, err)
	}
	won.Branch = branchPrefix + task
	w := p.workspace(won)
	w.Kept = racer.Kept
	return w, nil
}

// keepBoth has what each of two clones borrows kept for the other too.
func (p *Pool) keepBoth(ctx context.Context, a, b string) error {
	var pairs []string
	for from, to := range map[string]string{a: b, b: a} {
		refs, err := p.repo.Refs(ctx, basePrefix+from+"/")
		if err != nil {
			return err
		}
		for _, r := range refs {
			pairs = append(pairs, basePrefix+to+"/of-"+path.Base(r.Name), r.Commit)
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	return p.repo.KeepRefs(ctx, pairs...)
}
