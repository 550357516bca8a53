package merge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/queue"
)

// maxIntents is how many landings the prompt of an agent lists.
const maxIntents = 10

// resolve keeps an agent's run going for each entry that needs one, as many at
// once as allowed. How one ended is a row of the database, so that it is not
// lost when pawl is killed before the queue has taken it in. Where no agent can
// run, a person is asked.
func (w *worker) resolve(ctx context.Context) error {
	for _, e := range w.state.Entries {
		if e.Status != queue.Resolving || w.resolving[e.ID] != nil {
			continue
		}
		if w.q.o.Resolve == nil {
			r := queue.Resolution{ID: e.ID, Attempt: e.Attempts, Why: e.Why}
			if err := w.step(ctx, queue.Event{Kind: queue.Resolved, Resolution: &r}); err != nil {
				return err
			}
			continue
		}
		if len(w.resolving) >= w.q.o.Resolvers {
			continue
		}
		own, cancel := context.WithCancel(ctx)
		w.resolving[e.ID] = cancel
		go func() {
			defer w.q.wake()
			defer func() { w.resolved <- e.ID }()
			w.q.solve(own, e)
		}()
	}
	for id, cancel := range w.resolving {
		if e, ok := w.state.Find(id); !ok || e.Status != queue.Resolving {
			cancel() // it was dropped or replaced
		}
	}
	return nil
}

// LaterError is that no agent can work now: its provider or the machine is at fault.
// The attempt is not used up.
type LaterError struct {
	Until time.Time // when it may be tried again, where that is known
	Why   string
}

func (e *LaterError) Error() string { return e.Why }

// The waits before an agent that could not work is started again: they double.
const (
	firstLater = 100 * time.Millisecond
	lastLater  = time.Minute
)

// attempt runs the agent at one entry, as soon as one can work.
func (q *Queue) attempt(ctx context.Context, e queue.Entry) (commit string, err error) {
	for try := 0; ; try++ {
		p, err := q.problem(ctx, e)
		if err == nil {
			commit, err = q.o.Resolve(ctx, p)
		}
		if err == nil && commit != "" && commit != e.Commit {
			err = q.keepSolved(ctx, p, commit)
		}
		var later *LaterError
		if !errors.As(err, &later) || ctx.Err() != nil {
			return commit, err
		}
		if try == 0 {
			q.notify(queue.Note{Kind: queue.NoteWaiting, ID: e.ID, Text: "its agent cannot work now, and is tried again: " + later.Why})
		}
		wait := min(firstLater<<min(try, 20), lastLater)
		process.Sleep(ctx, max(wait, time.Until(later.Until)))
	}
}

// solve runs the agent at one entry and stores what came of it.
func (q *Queue) solve(ctx context.Context, e queue.Entry) {
	why := ""
	commit, err := q.attempt(ctx, e)
	if ctx.Err() != nil {
		return // it is taken up by who works on the queue next
	}
	switch {
	case err != nil:
		commit, why = "", err.Error()
	case commit == "":
		why = "the agent made no commit"
	case commit == e.Commit:
		commit, why = "", "the agent changed nothing"
	}
	r := queue.Resolution{ID: e.ID, Attempt: e.Attempts, Commit: commit, Why: why}
	for try := 0; try < 10 && ctx.Err() == nil; try++ {
		_, err := q.o.Store.AskQueue(ctx, q.asking(queue.Event{Kind: queue.Resolved, Resolution: &r}))
		if err == nil {
			return
		}
		q.notify(queue.Note{Kind: queue.NoteTrouble, ID: e.ID, Text: err.Error()})
		process.Sleep(ctx, time.Second<<min(try, 5))
	}
}

// keepSolved makes sure that an agent's commit stays, and that something of the
// change is in it: one that was left out would count as done.
func (q *Queue) keepSolved(ctx context.Context, p Problem, commit string) error {
	m, err := q.o.Repo.MergeTree(ctx, p.Tip, p.Entry.Commit)
	if err != nil {
		return err
	}
	wanted, err := q.paths(ctx, p.Tip, m.Tree)
	if err != nil {
		return err
	}
	made, err := q.paths(ctx, p.Tip, commit)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(wanted, func(path string) bool { _, ok := slices.BinarySearch(made, path); return ok }) {
		return fmt.Errorf("the agent left nothing of the change: in its commit %.10s all that the change touches is the "+
			"target's", commit)
	}
	return q.o.Repo.UpdateRef(ctx, taskRef(p.Entry.ID), commit, "", "pawl: brought together with the target")
}

// problem is what the agent gets: the entry, what is wrong, and the landings that
// changed the same paths.
func (q *Queue) problem(ctx context.Context, e queue.Entry) (Problem, error) {
	p := Problem{Entry: e}
	if e.Problem == nil {
		return p, fmt.Errorf("cannot solve %s: nothing is said to be wrong", e.ID)
	}
	p.Problem = *e.Problem
	var err error
	if p.Tip, err = q.o.Repo.Find(ctx, q.target); err != nil {
		return p, err
	}
	base, err := q.o.Repo.Base(ctx, p.Tip, e.Commit)
	if err != nil {
		return p, err
	}
	var paths []string
	if c := p.Problem.Conflict; c != nil {
		for _, f := range c.Files {
			paths = append(paths, f.Path)
		}
	} else if paths, err = q.paths(ctx, base, e.Commit); err != nil {
		return p, err
	}
	p.Landed, err = q.o.Repo.Landings(ctx, base, p.Tip, paths[:min(len(paths), 100)], maxIntents)
	return p, err
}
