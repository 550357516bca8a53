// Package lanes runs the jobs of one run, each by a supervisor of its own: one job
// at a time in the run's folder, or several side by side in lanes. It adopts the jobs
// that an earlier pawl began, and finds what became of those that have ended.
package lanes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// Most is how many jobs of one run may go on at once.
const Most = 64

const (
	// SweepGrace is how long what is swept may take to end by itself.
	SweepGrace = 5 * time.Second
	// leaveBound is how long a supervisor that was told to kill its job may
	// take to leave by itself; the sweep ends it after that.
	leaveBound = 10 * time.Second
)

// Supervisors are those of a run. One runs one job at a time, so that it alone
// owns all that the job starts; it is kept for the next job. A run whose jobs
// go on side by side has several, in lanes numbered from 1; any other has one,
// number 0, in the run's own folder.
type Supervisors struct {
	runDir, run string
	many        bool
	options     supervisor.Options

	mu      sync.Mutex
	idle    []*supervisor.Client // the one used last is the last
	busy    map[*supervisor.Client]bool
	adopted map[string]*supervisor.Client // by the job that an earlier pawl began in it
	made    int                           // highest number
	closed  bool
}

// Dir is the folder of one of a run's lanes, numbered from 1 without gaps.
func Dir(runDir string, number int) string {
	return filepath.Join(runDir, "lanes", strconv.Itoa(number))
}

// New makes those of a run; with many its jobs go on side by side.
func New(runDir, run string, many bool, o supervisor.Options) *Supervisors {
	return &Supervisors{runDir: runDir, run: run, many: many, options: o, busy: map[*supervisor.Client]bool{},
		adopted: map[string]*supervisor.Client{}}
}

// TempDir returns the folder in which a run has its own temporary files.
func TempDir(runDir string) string { return filepath.Join(runDir, "tmp") }

// folderAndMark returns the folder and the mark of a supervisor.
func (l *Supervisors) folderAndMark(number int) (dir, mark string) {
	if number == 0 {
		return l.runDir, supervisor.Mark(l.run)
	}
	return Dir(l.runDir, number), supervisor.LaneMark(l.run, number)
}

// Do runs a job. With a done ctx nothing is started.
func (l *Supervisors) Do(ctx context.Context, job supervisor.Job, onEvent func(agent.Event),
) (supervisor.Result, error) {
	if ctx.Err() != nil {
		stopped := supervisor.Result{ID: job.ID, StartedAt: time.Now(),
			Exit: loop.Exit{Code: -1, Ended: loop.EndedStop}}
		return stopped, nil //nolint:nilerr // a stop is how the job ended, and no error
	}
	one, err := l.takeIdleSupervisor(ctx)
	if err != nil {
		return supervisor.Result{}, err
	}
	job.Box = job.Box.TempIn(TempDir(l.runDir))
	res, err := one.Run(ctx, job, onEvent)
	l.giveBackSupervisor(one, err != nil || WasLost(res))
	return res, err
}

// takeIdleSupervisor is a supervisor that does nothing, a new one if there is none.
func (l *Supervisors) takeIdleSupervisor(ctx context.Context) (*supervisor.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errors.New("the run was ended")
	}
	if n := len(l.idle); n > 0 {
		one := l.idle[n-1]
		l.idle = l.idle[:n-1]
		l.busy[one] = true
		return one, nil
	}
	if len(l.busy) >= Most {
		return nil, fmt.Errorf("more than %d jobs at once", Most)
	}
	if l.many {
		l.made++
	}
	o := l.options
	o.RunDir, o.Mark = l.folderAndMark(l.made)
	client, err := supervisor.Start(context.WithoutCancel(ctx), o)
	if err != nil {
		return nil, err
	}
	l.busy[client] = true
	return client, nil
}

// giveBackSupervisor gives a supervisor back; one that has gone is left.
func (l *Supervisors) giveBackSupervisor(one *supervisor.Client, broken bool) {
	l.mu.Lock()
	delete(l.busy, one)
	if !broken {
		l.idle = append(l.idle, one)
	}
	l.mu.Unlock()
	if broken {
		_ = one.Close() // what it left is ended already
	}
}

// adoptJob goes on with a job that an earlier pawl began; false when no supervisor runs it.
func (l *Supervisors) adoptJob(ctx context.Context, job supervisor.Job, onEvent func(agent.Event),
) (res supervisor.Result, ok bool, err error) {
	l.mu.Lock()
	one := l.adopted[job.ID]
	delete(l.adopted, job.ID)
	if one != nil {
		l.busy[one] = true
	}
	l.mu.Unlock()
	if one == nil {
		return res, false, nil
	}
	res, err = one.Run(ctx, job, onEvent)
	l.giveBackSupervisor(one, true) // an attached client cannot start another supervisor
	return res, true, err
}

// Abandon ends a job that an earlier pawl began, and waits for its end.
func (l *Supervisors) Abandon(ctx context.Context, job supervisor.Job) {
	ctx, cancel := context.WithCancel(ctx)
	cancel() // a job that is asked for with a done context is ended
	_, _, _ = l.adoptJob(ctx, job, nil)
}

// Find attaches to what an earlier pawl left running. A job that is not wanted
// is ended, and so is what runs nothing. It returns how many jobs go on.
func (l *Supervisors) Find(ctx context.Context, wanted func(job string) bool, warn func(string)) (int, error) {
	numbers := []int{0}
	if l.many {
		numbers = nil
	}
	entries, err := os.ReadDir(filepath.Join(l.runDir, "lanes"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("cannot look for what is still running: %v", err)
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n >= 1 {
			numbers = append(numbers, n)
			l.made = max(l.made, n)
		}
	}
	for _, n := range numbers {
		if err := l.findLane(ctx, n, wanted, warn); err != nil {
			return 0, err
		}
	}
	return len(l.adopted), nil
}

func (l *Supervisors) findLane(ctx context.Context, number int, wanted func(job string) bool, warn func(string)) error {
	dir, mark := l.folderAndMark(number)
	client, status, err := supervisor.Attach(ctx, dir)
	switch {
	case err == nil && status.Job != nil && wanted(status.Job.ID):
		l.adopted[status.Job.ID] = client
		return nil
	case err == nil:
		client.Kill()
		if err := client.Close(); err != nil {
			return err
		}
		// The next supervisor must find the run's folder free.
		leaving, cancel := context.WithTimeout(ctx, leaveBound)
		status.Supervisor.AwaitEnd(leaving)
		cancel()
	case !errors.Is(err, supervisor.ErrGone):
		return err
	}
	ended, err := process.Sweep(ctx, mark, SweepGrace)
	if err == nil && ended.Left > 0 {
		warn(fmt.Sprintf("could not end %d process(es) that an earlier pawl left", ended.Left))
	}
	return err
}

// Leave ends what was found and is not gone on with.
func (l *Supervisors) Leave() {
	l.mu.Lock()
	left := l.adopted
	l.adopted = map[string]*supervisor.Client{}
	l.mu.Unlock()
	for _, one := range left {
		one.Kill()
		_ = one.Close()
	}
}

// Kill ends all that runs, without grace.
func (l *Supervisors) Kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for one := range l.busy {
		one.Kill()
	}
}

// Close lets the idle supervisors go.
func (l *Supervisors) Close(warn func(string)) {
	l.Leave()
	l.mu.Lock()
	l.closed = true
	idle := l.idle
	l.idle = nil
	l.mu.Unlock()
	for _, one := range idle {
		if err := one.Close(); err != nil {
			warn(err.Error())
		}
	}
}

// Fate is what became of a job that an earlier pawl began.
type Fate int

// The fates.
const (
	NotBegun Fate = iota // it never started
	Ended                // it has a result, perhaps one that was waited for just now
	Lost                 // it started, and nobody knows how it ended
)

func fateOfResult(res supervisor.Result) Fate {
	if WasLost(res) {
		return Lost
	}
	return Ended
}

// Resume finds what became of a job that an earlier pawl began, and waits for
// its end if it still runs. Of a lost one the result is what its files show of
// output, tokens and cost. The error is that another pawl has the run.
func (l *Supervisors) Resume(ctx context.Context, job supervisor.Job, onEvent func(agent.Event), warn func(string),
) (supervisor.Result, Fate, error) {
	if job.ID == "" { // what it was is settled; a power loss has taken its record
		return supervisor.Result{Exit: loop.Exit{Code: -1, Ended: loop.EndedLost}}, Lost, nil
	}
	res, ok, err := l.adoptJob(ctx, job, onEvent) // it gives the stored result of a job that has just ended
	switch {
	case errors.Is(err, supervisor.ErrTaken):
		return res, Lost, err
	case ok && err == nil:
		return res, fateOfResult(res), nil
	}
	if stored, found, lerr := supervisor.LoadResult(job.Files); lerr == nil && found && stored.ID == job.ID {
		return stored, fateOfResult(stored), nil
	}
	switch {
	case ok:
		warn(fmt.Sprintf("the agent that was still running is lost: %v", err))
	case !supervisor.Begun(job):
		return supervisor.Result{ID: job.ID, Exit: loop.Exit{Code: -1, Ended: loop.EndedLost}}, NotBegun, nil
	}
	res, err = supervisor.Lost(job)
	if err != nil {
		warn(err.Error())
	}
	return res, fateOfResult(res), nil
}

// WasLost is true when the supervisor of a job has gone before pawl.
func WasLost(res supervisor.Result) bool {
	return res.Exit.Ended == loop.EndedLost || res.Exit.Ended == loop.EndedLease
}

// EndUnattended ends what a run whose pawl is gone still has running.
func EndUnattended(ctx context.Context, runDir, id string) error {
	for _, many := range []bool{true, false} { // in lanes first: the run's mark is on all
		l := New(runDir, id, many, supervisor.Options{})
		if _, err := l.Find(ctx, func(string) bool { return false }, func(string) {}); err != nil {
			return err
		}
	}
	return nil
}
