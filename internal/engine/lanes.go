package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/supervisor"
)

// MaxLanes is how many jobs of one run may go on at once.
const MaxLanes = 64

// lanes are the supervisors of a run whose jobs go on side by side. One runs
// one job at a time, so that it alone owns all that the job starts; it is kept
// for the next job.
type lanes struct {
	dir, run string
	options  supervisor.Options

	mu     sync.Mutex
	free   []*lane // the one used last is the last
	busy   map[*lane]bool
	adopts map[string]*lane // by the job that an earlier pawl began in it
	made   int              // highest number
	killed bool
}

type lane struct {
	number int
	client *supervisor.Client
}

// LaneDir is the folder of one of a run's lanes, numbered from 1 without gaps.
func LaneDir(runDir string, number int) string {
	return filepath.Join(runDir, "lanes", strconv.Itoa(number))
}

func newLanes(runDir, run string, o supervisor.Options) *lanes {
	return &lanes{dir: filepath.Join(runDir, "lanes"), run: run, options: o, busy: map[*lane]bool{}, adopts: map[string]*lane{}}
}

func (l *lanes) folder(number int) string { return filepath.Join(l.dir, strconv.Itoa(number)) }

// do runs a job in a lane of its own.
func (l *lanes) do(ctx context.Context, job supervisor.Job, onEvent func(agent.Event)) (supervisor.Result, error) {
	one, err := l.take(ctx)
	if err != nil {
		return supervisor.Result{}, err
	}
	res, err := one.client.Run(ctx, job, onEvent)
	l.put(one, err != nil || gone(res))
	return res, err
}

// take is a lane that does nothing, a new one if there is none.
func (l *lanes) take(ctx context.Context) (*lane, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.killed {
		return nil, errors.New("the run was ended")
	}
	if n := len(l.free); n > 0 {
		one := l.free[n-1]
		l.free = l.free[:n-1]
		l.busy[one] = true
		return one, nil
	}
	if len(l.busy) >= MaxLanes {
		return nil, fmt.Errorf("more than %d jobs at once", MaxLanes)
	}
	l.made++
	o := l.options
	o.RunDir, o.Mark = l.folder(l.made), supervisor.LaneMark(l.run, l.made)
	client, err := supervisor.Start(context.WithoutCancel(ctx), o)
	if err != nil {
		return nil, fmt.Errorf("cannot start a supervisor: %v", err)
	}
	one := &lane{l.made, client}
	l.busy[one] = true
	return one, nil
}

// put gives a lane back; one whose supervisor has gone is left.
func (l *lanes) put(one *lane, broken bool) {
	l.mu.Lock()
	delete(l.busy, one)
	if !broken {
		l.free = append(l.free, one)
	}
	l.mu.Unlock()
	if broken {
		_ = one.client.Close() // what it left is ended already
	}
}

// adopt goes on with a job that an earlier pawl began; false when no lane runs it.
func (l *lanes) adopt(ctx context.Context, job supervisor.Job, onEvent func(agent.Event)) (res supervisor.Result, ok bool, err error) {
	l.mu.Lock()
	one := l.adopts[job.ID]
	delete(l.adopts, job.ID)
	if one != nil {
		l.busy[one] = true
	}
	l.mu.Unlock()
	if one == nil {
		return res, false, nil
	}
	res, err = one.client.Run(ctx, job, onEvent)
	l.put(one, true) // an attached client cannot start another supervisor
	return res, true, err
}

// abandon ends a job that an earlier pawl began, and waits for its end.
func (l *lanes) abandon(ctx context.Context, job supervisor.Job) {
	ctx, cancel := context.WithCancel(ctx)
	cancel() // a job that is asked for with a done context is ended
	_, _, _ = l.adopt(ctx, job, nil)
}

// find attaches to the lanes that an earlier pawl left. What of them runs
// nothing, or nothing that is known, is ended. It returns how many jobs go on.
func (l *lanes) find(ctx context.Context, warn func(string)) (int, error) {
	entries, err := os.ReadDir(l.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("cannot look for what is still running: %v", err)
	}
	for _, e := range entries {
		number, err := strconv.Atoi(e.Name())
		if err != nil || number < 1 {
			continue
		}
		l.made = max(l.made, number)
		client, status, err := supervisor.Attach(ctx, l.folder(number))
		switch {
		case err == nil && status.Job != nil:
			l.adopts[status.Job.ID] = &lane{number, client}
			continue
		case err == nil:
			if err := client.Close(); err != nil {
				return 0, err
			}
			awaitEnd(ctx, status.Supervisor)
		case !errors.Is(err, supervisor.ErrGone):
			return 0, err
		}
		ended, err := process.Sweep(ctx, supervisor.LaneMark(l.run, number), sweepGrace)
		if err != nil {
			return 0, err
		}
		if ended.Left > 0 {
			warn(fmt.Sprintf("%d process(es) that an earlier pawl left could not be ended", ended.Left))
		}
	}
	return len(l.adopts), nil
}

// leave ends what was found and is not gone on with.
func (l *lanes) leave() {
	l.mu.Lock()
	left := l.adopts
	l.adopts = map[string]*lane{}
	l.mu.Unlock()
	for _, one := range left {
		one.client.Kill()
		_ = one.client.Close()
	}
}

// kill ends all that runs, without grace.
func (l *lanes) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for one := range l.busy {
		one.client.Kill()
	}
}

// close lets the idle supervisors go.
func (l *lanes) close(warn func(string)) {
	l.leave()
	l.mu.Lock()
	l.killed = true
	free := l.free
	l.free = nil
	l.mu.Unlock()
	for _, one := range free {
		if err := one.client.Close(); err != nil {
			warn(err.Error())
		}
	}
}

// endLanes ends what the lanes of a run whose pawl is gone still have running.
func endLanes(ctx context.Context, runDir, run string) error {
	l := newLanes(runDir, run, supervisor.Options{})
	_, err := l.find(ctx, func(string) {})
	l.leave()
	return err
}
