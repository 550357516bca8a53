package supervisor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/sandbox"
)

// box is the sandbox of a job; zero when it has none.
type box struct {
	entry *sandbox.Entry
	exits *exits
	work  sync.WaitGroup
}

// startIn starts c, in the job's box if it has one, and returns when it runs.
func (t *task) startIn(c process.Command) (*process.Child, error) {
	if t.job.Box == nil {
		return t.reaper.Start(c)
	}
	policy := *t.job.Box.TempIn(filepath.Join(t.runDir, "tmp"))
	t.limit(policy.Limits)
	policy.Spare = append(slices.Clone(policy.Spare), os.Getpid(), os.Getppid())
	if t.models != nil && policy.Closed {
		policy.Doors = append(slices.Clone(policy.Doors), t.models.port)
	}
	c, entry, err := sandbox.Prepare(c, policy)
	if err != nil {
		return nil, err
	}
	t.box.entry = entry
	child, err := t.reaper.Start(c)
	if err != nil {
		return nil, err
	}
	if err := entry.Wait(); err != nil {
		select {
		case <-child.Done():
		case <-time.After(settle): // it hangs
			t.terminate(child, verdict{reason: loop.EndedStop})
		}
		return nil, err
	}
	t.box.work.Go(func() {
		entry.Outcome(func(status syscall.WaitStatus) { t.reaper.Report(child, status) })
	})
	if len(entry.Listeners) > 0 {
		t.box.exits, err = t.openExits(entry.Listeners, policy)
		if err != nil {
			t.terminate(child, verdict{reason: loop.EndedStop})
			return nil, &process.StartError{Code: -1, Message: "cannot start " + t.job.Args[0] + ": " + err.Error()}
		}
	}
	return child, nil
}

// takeObjects takes in what the job added to git's objects, so that it is there also
// when pawl is not. Pawl takes the rest, and says what is wrong with it.
func (t *task) takeObjects() {
	if t.job.Box == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), objectsWithin)
	defer cancel()
	for _, b := range t.job.Box.Binds {
		if !b.Objects || b.ReadOnly {
			continue
		}
		if _, err := (git.Intake{Store: b.To, New: b.From}).AcceptLoose(ctx); err != nil {
			t.logf("cannot take objects in: %v", err)
		}
	}
}

// objectsWithin is how long that may take.
const objectsWithin = time.Minute

// limitGroup puts the supervisor, and so the boxes of all its jobs, under the
// limits of the first box. Jobs of one run have the same.
func (s *server) limitGroup(l sandbox.Limits) {
	s.limited.Do(func() {
		if held, leave := sandbox.LimitGroup(l); held {
			s.unlimit.Store(&leave)
		}
	})
}

// leaveBox gives up what the box took; the job and all that it started have ended.
func (t *task) leaveBox() {
	t.box.exits.close()
	if t.box.entry != nil {
		t.box.entry.Close()
	}
	t.box.work.Wait()
}
