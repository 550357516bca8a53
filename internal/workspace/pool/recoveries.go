package pool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/git"
)

// Mend removes refs of pawl's own that lead to nothing, and says so; "" when none does.
func (p *Pool) Mend(ctx context.Context) (note string, err error) {
	gone, err := p.repo.MendRefs(ctx)
	if len(gone) > 0 {
		note = fmt.Sprintf("%d of pawl's own refs led to commits that are gone, and were removed: %s",
			len(gone), strings.Join(gone[:min(len(gone), 3)], ", "))
	}
	return note, err
}

// MergeSuffix is what the id of a workspace has after that of a task whose work
// is brought together with the target there.
const MergeSuffix = "-merge"

// Recovery is a ref that keeps what was in a workspace before it was changed or
// removed.
type Recovery struct {
	Task   string // whose work it is
	N      int    // of the workspace's, 1-based
	Ref    string
	Commit string
	When   time.Time
}

// Recoveries lists what was kept of the workspace with an id, oldest first; of
// all workspaces with an empty one, by task. A task can have several: its own,
// those of agents that race for it, and the one where its work is brought together with the target.
func (p *Pool) Recoveries(ctx context.Context, id string) ([]Recovery, error) {
	prefix := recoveryPrefix
	if id != "" {
		prefix += id + "/"
	}
	refs, err := p.repo.Refs(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var all []Recovery
	for _, r := range refs {
		owner, number, _ := strings.Cut(strings.TrimPrefix(r.Name, recoveryPrefix), "/")
		n, err := strconv.Atoi(number)
		task := board.TaskOf(owner)
		if _, _, isCase := board.ParseID(task); isCase && err == nil { // runs have theirs beside them
			all = append(all, Recovery{task, n, r.Name, r.Commit, r.When})
		}
	}
	slices.SortFunc(all, func(a, b Recovery) int {
		return cmp.Or(strings.Compare(a.Task, b.Task), cmp.Compare(a.N, b.N), strings.Compare(a.Ref, b.Ref))
	})
	return all, nil
}

// Outdated is true for what was kept longer ago than the retention.
func (p *Pool) Outdated(r Recovery, now time.Time) bool {
	return p.o.Retention > 0 && r.When.Before(now.Add(-p.o.Retention))
}

// DropRecoveries deletes recovery refs. One that was moved meanwhile stays, and
// is an error. The objects stay in the repository until git collects them.
func (p *Pool) DropRecoveries(ctx context.Context, list []Recovery) error {
	refs := make([]git.Ref, len(list))
	for i, r := range list {
		refs[i] = git.Ref{Name: r.Ref, Commit: r.Commit}
	}
	if err := p.repo.DeleteRefs(ctx, refs); err != nil {
		return fmt.Errorf("cannot delete recovery refs: %w", err)
	}
	return nil
}
