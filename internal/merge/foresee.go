package merge

import (
	"context"
	"slices"

	"github.com/pawl-dev/pawl/internal/queue"
)

// maxTouched is how many commits' paths are kept in memory.
const maxTouched = 2000

// foresee merges entries with the target, to see which will conflict. Those
// that touch nothing of what has landed since they began cannot.
func (q *Queue) foresee(ctx context.Context, s *queue.State, c queue.Command) (queue.Event, error) {
	ev := queue.Event{Kind: queue.Foreseen}
	for _, id := range c.IDs {
		e, ok := s.Find(id)
		if !ok {
			continue
		}
		paths, err := q.conflicts(ctx, c.To, &e)
		if err != nil {
			return ev, err
		}
		ev.Ahead = append(ev.Ahead, queue.Ahead{ID: id, Paths: paths})
	}
	return ev, nil
}

// conflicts are the paths in which an entry conflicts with a commit, unless a
// rule settles that.
func (q *Queue) conflicts(ctx context.Context, tip string, e *queue.Entry) ([]string, error) {
	base, err := q.base(ctx, tip, e.Commit)
	if err != nil || base == "" {
		return nil, err
	}
	own, err := q.paths(ctx, base, e.Commit)
	if err != nil {
		return nil, err
	}
	theirs, err := q.paths(ctx, base, tip)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(own, func(p string) bool { _, found := slices.BinarySearch(theirs, p); return found }) {
		return nil, nil
	}
	m, err := q.tryMerge(ctx, tip, e)
	if err != nil || m.conflict == nil {
		return nil, err
	}
	var paths []string
	for _, f := range m.conflict.Files {
		paths = append(paths, f.Path)
	}
	return paths, nil
}

// base is a commit that both come from; not the last such one, when the target
// has moved since it was looked for first.
func (q *Queue) base(ctx context.Context, tip, commit string) (string, error) {
	q.mu.Lock()
	known, ok := q.bases[commit]
	q.mu.Unlock()
	if ok {
		return known, nil
	}
	base, err := q.o.Repo.Base(ctx, tip, commit)
	if err != nil || base == "" {
		return "", err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.bases) >= maxTouched {
		clear(q.bases)
	}
	q.bases[commit] = base
	return base, nil
}

// paths are what differs between two commits, sorted.
func (q *Queue) paths(ctx context.Context, from, to string) ([]string, error) {
	key := from + to
	q.mu.Lock()
	known, ok := q.touched[key]
	q.mu.Unlock()
	if ok {
		return known, nil
	}
	changes, err := q.o.Repo.Changes(ctx, from, to)
	if err != nil {
		return nil, err
	}
	list := make([]string, len(changes))
	for i, c := range changes {
		list[i] = c.Path
	}
	slices.Sort(list)
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.touched) >= maxTouched {
		clear(q.touched)
	}
	q.touched[key] = list
	return list, nil
}
