package engine

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/gate"
	"github.com/pawl-dev/pawl/internal/workspace"
)

// Watched is what protected files are compared with: the tree before a step, and
// git's hooks and configuration. What is stored outlives the code: names must
// not change.
type Watched struct {
	Tree    string                 `json:"tree"`
	Guarded *workspace.Fingerprint `json:"guarded,omitempty"`
}

// Watch notes what protected files are now; nil where they are not watched, as
// outside of git.
func (h *StepContext) Watch(ctx context.Context) *Watched {
	w := h.w
	if w.o.Tree == nil || w.trees.base == "" {
		return nil
	}
	tree, _, err := w.o.Tree.Look(ctx, w.id)
	if err != nil {
		if ctx.Err() == nil {
			h.Warn(fmt.Sprintf("cannot see the files before a step, so protected ones are not watched in it: %v", err))
		}
		return nil
	}
	now := &Watched{Tree: tree}
	if guarded, err := w.o.Tree.ConfigFingerprint(ctx); err == nil {
		now.Guarded = &guarded
	}
	return now
}

// Tampered are the protected files that are not what they were, and the failure
// that this is; nil for none.
func (h *StepContext) Tampered(ctx context.Context, before *Watched) (paths []string, f *failure.Analysis) {
	w := h.w
	if before == nil || w.o.Tree == nil {
		return nil, nil
	}
	ctx, cancel := aftermath(context.WithoutCancel(ctx))
	defer cancel()
	tree, _, err := w.o.Tree.Look(ctx, w.id)
	if err != nil {
		tree = "" // cannot be read
	}
	w.findHidden(ctx)
	found := w.differs(ctx, before.Tree, before.Guarded, tree, nil)
	if len(found) == 0 {
		return nil, nil
	}
	for _, v := range found {
		paths = append(paths, v.Path)
	}
	a := gate.TamperingFailure(found)
	return paths, &a
}
