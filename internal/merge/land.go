package merge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/queue"
)

const (
	landLimit = 5 * time.Minute // for one landing, files of work trees included
	lockWaits = 20              // tries for an index that another git has, 100 ms apart
)

// land moves the target, and the files of work trees that have it checked out.
// The command is in the database by now. It is safe to repeat.
func (q *Queue) land(ctx context.Context, s *queue.State, c queue.Command) (queue.Event, error) {
	if c.From == c.To {
		return queue.Event{Kind: queue.Landed}, nil
	}
	if q.o.Before != nil && len(c.IDs) > 0 {
		var entries []queue.Entry
		for _, id := range c.IDs {
			if e, ok := s.Find(id); ok {
				entries = append(entries, e)
			}
		}
		q.o.Before(ctx, entries, c.To)
	}
	hold, err := files.Lock(ctx, filepath.Join(q.o.Dir, "checkout.lock"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return queue.Event{}, err
	}
	defer func() { _ = hold.Close() }()
	trees, err := q.o.Repo.Checkouts(ctx, q.target)
	if err != nil {
		return queue.Event{}, err
	}
	tip, err := q.o.Repo.Find(ctx, q.target)
	if err != nil {
		return queue.Event{}, err
	}
	switch {
	case tip == c.To:
		return q.finish(ctx, trees, c, hold)
	case tip != c.From:
		there, err := q.o.Repo.IsAncestor(ctx, c.To, tip)
		if err != nil || there {
			return queue.Event{Kind: queue.Landed}, err
		}
		return refused(queue.Refusal{Moved: true}), nil
	}
	if !q.o.Repo.Whole(ctx, c.From, c.To) && ctx.Err() == nil { // it is made again
		return refused(queue.Refusal{Moved: true}), nil
	}
	return q.move(ctx, s, c, trees, hold)
}

func refused(r queue.Refusal) queue.Event { return queue.Event{Kind: queue.Refused, Refusal: &r} }

// move locks and compares all work trees, moves the target, then the files.
func (q *Queue) move(ctx context.Context, s *queue.State, c queue.Command, trees []*git.Repo, hold *os.File,
) (queue.Event, error) {
	var moves []*git.FastForward
	defer func() {
		for _, m := range moves {
			m.End()
		}
	}()
	for _, tree := range trees {
		if busy := tree.Busy(); busy != "" {
			why := fmt.Sprintf("a %s is going on in %s, where %s is checked out", busy, tree.Top, short(q.target))
			return refused(queue.Refusal{Why: why}), nil
		}
		m, err := begin(ctx, tree, c, hold)
		if errors.Is(err, git.ErrIndexLocked) {
			return refused(queue.Refusal{Why: err.Error()}), nil
		}
		if err != nil {
			return queue.Event{}, err
		}
		moves = append(moves, m)
		paths, err := m.Overlap(ctx)
		if err != nil {
			return queue.Event{}, err
		}
		if len(paths) > 0 {
			why := fmt.Sprintf("%s has changes of yours, or is not known to git; commit it or move it away, in %s",
				strings.Join(paths[:min(len(paths), 5)], ", "), tree.Top)
			ids, err := q.touching(ctx, s, c, paths)
			return refused(queue.Refusal{Why: why, IDs: ids}), err
		}
	}
	if err := note(hold, c.To); err != nil {
		return queue.Event{}, err
	}
	q.o.point("before ref")
	reason := "pawl: land " + strings.Join(c.IDs[:min(len(c.IDs), 5)], ", ")
	changed, err := q.o.Repo.SetRef(ctx, q.target, c.To, c.From, reason)
	if err != nil {
		return queue.Event{}, err
	}
	if changed {
		return refused(queue.Refusal{Moved: true}), nil
	}
	q.o.point("after ref")
	return q.moveFiles(ctx, trees, moves, hold)
}

// begin waits a little for a git command that has the index.
func begin(ctx context.Context, tree *git.Repo, c queue.Command, hold *os.File) (*git.FastForward, error) {
	for try := 0; ; try++ {
		m, err := tree.BeginFastForward(ctx, c.From, c.To, hold)
		if !errors.Is(err, git.ErrIndexLocked) || try == lockWaits || ctx.Err() != nil {
			return m, err
		}
		rest(ctx, 100*time.Millisecond)
	}
}

func (q *Queue) moveFiles(ctx context.Context, trees []*git.Repo, moves []*git.FastForward, hold *os.File,
) (queue.Event, error) {
	e := queue.Event{Kind: queue.Landed}
	for i, m := range moves {
		left, err := m.Move(ctx)
		if err != nil {
			// What it was at may be half written: the next try takes nothing of
			// that for the user's.
			return e, errors.Join(err, hold.Truncate(0))
		}
		q.o.point("after files")
		if len(left) > 0 {
			e.Warnings = append(e.Warnings, fmt.Sprintf("in %s these files are yours and were left as they are: %s",
				trees[i].Top, strings.Join(left, ", ")))
		}
	}
	return e, nil
}

// finish moves files to where the target is already.
func (q *Queue) finish(ctx context.Context, trees []*git.Repo, c queue.Command, hold *os.File) (queue.Event, error) {
	var moves []*git.FastForward
	defer func() {
		for _, m := range moves {
			m.End()
		}
	}()
	for _, tree := range trees {
		m, err := begin(ctx, tree, c, hold)
		if err != nil {
			return queue.Event{}, err
		}
		m.Interrupted = !noted(hold, c.To)
		moves = append(moves, m)
	}
	return q.moveFiles(ctx, trees, moves, hold)
}

// note says in the file that is held where the target is moved to, and under
// which boot of the machine. It is not synced: when it is not there later, a power
// loss took it.
func note(hold *os.File, to string) error {
	text := to + " " + process.Boot() + "\n"
	_, err := hold.WriteAt([]byte(text), 0)
	if err = errors.Join(err, hold.Truncate(int64(len(text)))); err != nil {
		return fmt.Errorf("cannot note a landing: %v", err)
	}
	return nil
}

// noted reports whether the machine has run since the move to a commit began, and
// no file of it failed.
func noted(hold *os.File, to string) bool {
	data, err := io.ReadAll(io.NewSectionReader(hold, 0, 4096))
	return err == nil && string(data) == to+" "+process.Boot()+"\n"
}

// touching are the entries of a batch that change one of some paths.
func (q *Queue) touching(ctx context.Context, s *queue.State, c queue.Command, paths []string) ([]string, error) {
	if s.Batch == nil {
		return nil, nil
	}
	var ids []string
	before := c.From
	for _, m := range s.Batch.Steps {
		if m.Empty {
			continue
		}
		changes, err := q.o.Repo.Changes(ctx, before, m.Commit)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(changes, func(ch git.Change) bool {
			return slices.ContainsFunc(paths, func(p string) bool {
				return ch.Path == p || strings.HasPrefix(ch.Path, p+"/") || strings.HasPrefix(p, ch.Path+"/")
			})
		}) {
			ids = append(ids, m.ID)
		}
		before = m.Commit
	}
	return ids, nil
}

func short(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }
