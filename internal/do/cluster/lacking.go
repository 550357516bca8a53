package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// lacking is what a worker lacks now, each with its cause. What changes is said once.
type lacking struct {
	mu   sync.Mutex
	of   map[string]string // by what is said when it is over
	last string            // what was said last of it
	warn func(text string)
}

// noteCause keeps why something does not work; with an error of nil it works again, and over is said.
func (l *lacking) noteCause(what, over string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, was := l.of[over]
	switch {
	case err == nil && was:
		delete(l.of, over)
		l.warn(over)
	case err != nil && !was:
		text := fmt.Sprintf("%s since %s: %s", what, time.Now().Format(time.TimeOnly), report.Line(err.Error(), 300))
		l.of[over] = text
		l.warn(text)
	}
}

// What is said of a board that cannot be written, and of one that can be again.
const (
	unwritable = "the board cannot be written"
	writable   = "the board can be written again"
)

// sameBoard looks whether the board is the same, and notes where that is not known.
func (l *lacking) sameBoard(db *store.Store) func(context.Context) error {
	return func(ctx context.Context) error {
		err := db.Same(ctx)
		if err != nil && !errors.Is(err, store.ErrGone) {
			l.noteCause(unwritable, writable, err)
		}
		return err
	}
}

// noteRefused notes whether the work of a task can be pushed.
func (l *lacking) noteRefused(task string, err error) {
	l.noteCause(task+" waits, as its work cannot be pushed,", "the work of "+task+" can be pushed again", err)
}

// joinCauses joins all that is lacking, one a line.
func (l *lacking) joinCauses() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Values(l.of)), "\n")
}

// askBound is how long an answer is waited for that shows that something works.
const askBound = 5 * time.Second

// lookAround finds out what the worker lacks that work may not show. It returns true where anything has changed.
func (l *lacking) lookAround(ctx context.Context, engine client.Client, at autopilot.EngineAt, o *autopilot.Options,
) bool {
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	a, err := ParseAddress(at.Address)
	if err == nil {
		_, err = engine.WorkflowService().DescribeNamespace(ctx,
			&workflowservice.DescribeNamespaceRequest{Namespace: a.Namespace})
	}
	if err != nil && !isUnanswered(err) {
		err = nil // it is an answer
	}
	l.noteCause("the engine does not answer", "the engine answers again", err)
	level, why := o.Pool.Room()
	if err = nil; level >= pool.RoomClean {
		err = fmt.Errorf("%s", why)
	}
	l.noteCause("it is short of disk, and starts nothing,", "there is room on the disk again", err)
	if f := o.Store.OutputsFolder(); f != nil {
		l.noteCause("cluster.files cannot be reached", "cluster.files can be reached again", statInTime(ctx, f.Path))
	}
	lines := l.joinCauses()
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := lines != l.last || l.of[writable] != "" // then it is tried again
	l.last = lines
	return changed
}

// statInTime looks whether a folder is there: one of a network may not answer.
func statInTime(ctx context.Context, dir string) error {
	found := make(chan error, 1)
	go func() {
		_, err := os.Stat(dir)
		found <- err
	}()
	select {
	case err := <-found:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s does not answer", dir)
	}
}
