package merge

import (
	"context"
	"slices"

	"github.com/pawl-dev/pawl/internal/queue"
)

// foresee merges entries with the target, to see which will conflict, unless a
// rule settles that.
func (q *Queue) foresee(ctx context.Context, s *queue.State, c queue.Command) (queue.Event, error) {
	ev := queue.Event{Kind: queue.Foreseen}
	for _, id := range c.IDs {
		e, ok := s.Find(id)
		if !ok {
			continue
		}
		m, err := q.tryMerge(ctx, c.To, &e)
		if err != nil { // one that can never be merged is reported when its turn comes
			_, err = q.never(ctx, &e, err)
		}
		if err != nil {
			return ev, err
		}
		ahead := queue.Ahead{ID: id}
		if m.conflict != nil {
			for _, f := range m.conflict.Files {
				ahead.Paths = append(ahead.Paths, f.Path)
			}
		}
		ev.Ahead = append(ev.Ahead, ahead)
	}
	return ev, nil
}

// paths are what differs between two commits, sorted.
func (q *Queue) paths(ctx context.Context, from, to string) ([]string, error) {
	changes, err := q.o.Repo.Changes(ctx, from, to)
	list := make([]string, len(changes))
	for i, c := range changes {
		list[i] = c.Path
	}
	slices.Sort(list)
	return list, err
}
