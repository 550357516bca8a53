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

// Recovery is a ref that keeps what was in the workspace of a task before it was
// changed or removed.
type Recovery struct {
	Task   string
	N      int // of the task's, 1-based
	Ref    string
	Commit string
	When   time.Time
}

// Recoveries lists what was kept of the workspace of a task, oldest first; of all
// tasks with an empty id, by task.
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
		task, number, _ := strings.Cut(strings.TrimPrefix(r.Name, recoveryPrefix), "/")
		n, err := strconv.Atoi(number)
		if _, _, isCase := board.ParseID(task); isCase && err == nil { // runs have theirs beside them
			all = append(all, Recovery{task, n, r.Name, r.Commit, r.When})
		}
	}
	slices.SortFunc(all, func(a, b Recovery) int { return cmp.Or(strings.Compare(a.Task, b.Task), cmp.Compare(a.N, b.N)) })
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
