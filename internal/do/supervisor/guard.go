package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// walkBound is the longest look at a tree that a guard takes.
const walkBound = 10 * time.Second

// watchdog asks the guards of a run, which is read on one goroutine while its
// time passes on another.
type watchdog struct {
	mu    sync.Mutex
	guard *agent.Guard
	// tools is how many of the agent's tools run, as far as its stream says.
	tools atomic.Int32
	// due gets the time at which retries have gone on for too long.
	due   chan time.Time
	doubt chan agent.Trip // trips that count only if no file changed
	end   func(loop.Ended, string)
	root  string
}

func newWatchdog(job Job, end func(loop.Ended, string)) *watchdog {
	return &watchdog{
		guard: agent.NewGuard(job.Guards), end: end, root: job.Watch,
		due: make(chan time.Time, 1), doubt: make(chan agent.Trip, 1),
	}
}

// countTools takes the next event.
func (w *watchdog) countTools(e agent.Event) {
	switch e.Kind {
	case agent.ToolStart:
		w.tools.Add(1)
	case agent.ToolEnd:
		w.tools.Store(max(0, w.tools.Load()-1))
	case agent.Text, agent.End:
		if !e.Sub {
			w.tools.Store(0)
		}
	}
	w.mu.Lock()
	trip, tripped := w.guard.Add(e, time.Now())
	if tripped {
		w.guard.Forgive()
	}
	due := w.guard.Deadline()
	w.mu.Unlock()
	if !due.IsZero() {
		select {
		case w.due <- due:
		default:
		}
	}
	if !tripped {
		return
	}
	if trip.Since.IsZero() || w.root == "" {
		w.end(trip.Ended, trip.Why)
		return
	}
	select {
	case w.doubt <- trip:
	default: // the one before is still looked at
	}
}

// watchDoubts decides doubts, and ends an agent whose own retries last for too long,
// until ctx is done.
func (w *watchdog) watchDoubts(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case trip := <-w.doubt:
			w.decideDoubt(ctx, trip)
		case at := <-w.due:
			timer.Reset(time.Until(at))
		case <-timer.C:
			if again := w.askRetries(); !again.IsZero() {
				timer.Reset(time.Until(again))
			}
		}
	}
}

// askRetries ends the job when its retries have gone on for too long. Else it
// says when that is worth asking again; zero is never.
func (w *watchdog) askRetries() (again time.Time) {
	w.mu.Lock()
	trip, tripped := w.guard.Expired(time.Now())
	again = w.guard.Deadline()
	w.mu.Unlock()
	if tripped {
		w.end(trip.Ended, trip.Why)
		return time.Time{}
	}
	return again
}

// decideDoubt: the trip counts when no file below the root changed since it began.
func (w *watchdog) decideDoubt(ctx context.Context, trip agent.Trip) {
	ctx, cancel := context.WithTimeout(ctx, walkBound)
	defer cancel()
	if _, changed := newerThan(ctx, w.root, trip.Since); !changed && ctx.Err() == nil {
		w.end(trip.Ended, trip.Why)
	}
}

// hasBusyTool reports whether a tool of the agent runs without output. Its stream says so, or a
// process was started after the agent's last output, for programs that print nothing before a
// tool has ended.
func (t *task) hasBusyTool(dog *watchdog) bool {
	if !t.job.Limits.Tools || dog == nil {
		return false
	}
	if dog.tools.Load() > 0 {
		return true
	}
	seen := time.Unix(0, t.seen.Load())
	if !seen.After(t.started) {
		return false // what runs from the start on is part of the program
	}
	youngest, known := t.reaper.Youngest()
	return known && youngest.After(seen.Add(slack))
}

// slack is how exactly the start of a process is known.
const slack = 20 * time.Millisecond

// checkPrinted is the most output of one job, and what its longest message is of
// it; both count bytes.
func (m *meter) checkPrinted() {
	most := m.limits.Printed
	if most <= 0 || m.passed {
		return
	}
	why := ""
	switch {
	case m.bytes+m.noise.Load() > most:
		why = tooMuchOutputText(most)
	case m.silent > most/4:
		why = fmt.Sprintf("one message of the agent is longer than %s and has no end; "+
			"raise loop.max_output if that is expected", formatSize(most/4))
	}
	if why != "" {
		m.passed = true
		m.pass(loop.EndedOutput, why)
	}
}

// countStderr runs on a goroutine of its own.
func (m *meter) countStderr(p []byte) {
	n := m.noise.Add(int64(len(p)))
	if most := m.limits.Printed; most > 0 && n > most && n-int64(len(p)) <= most {
		m.pass(loop.EndedOutput, tooMuchOutputText(most))
	}
}

// countPrinted ends a job without a parser that prints more than most bytes.
func countPrinted(most int64, pass func(loop.Ended, string)) func([]byte) {
	var printed atomic.Int64
	return func(p []byte) {
		if n := printed.Add(int64(len(p))); n > most && n-int64(len(p)) <= most {
			pass(loop.EndedOutput, "the command printed more than "+formatSize(most))
		}
	}
}

func tooMuchOutputText(most int64) string {
	return fmt.Sprintf("the agent printed more than %s; see what it prints, or raise loop.max_output", formatSize(most))
}

func formatSize(n int64) string {
	if n < 10_000_000 {
		return fmt.Sprintf("%d kB", n/1000)
	}
	return fmt.Sprintf("%d MB", n/1_000_000)
}

// watchIdle ends the job when it has been silent for too long. It looks at the
// watched tree only when the output has been silent for the whole limit.
func (t *task) watchIdle(ctx context.Context, dog *watchdog) {
	limit := t.job.Limits.Idle
	if limit <= 0 {
		return
	}
	for left := limit; process.Sleep(ctx, max(left, time.Millisecond)); {
		left = t.untilSilent(t.lastOutput())
		if left <= 0 && t.hasBusyTool(dog) {
			left = limit
		}
		if left <= 0 && t.job.Watch != "" {
			walk, cancel := context.WithTimeout(ctx, walkBound)
			if at, ok := newerThan(walk, t.job.Watch, time.Now().Add(-limit)); ok {
				left = t.untilSilent(at)
			}
			cancel()
			left = max(left, t.untilSilent(t.lastOutput())) // output may have come during the walk
		}
		if left <= 0 {
			t.requestEnd(loop.EndedIdle)
			return
		}
	}
}

// lingerBound is the time in which a program that has printed its result has to end.
const lingerBound = 30 * time.Second

// endedLingering ends a program that printed its result and does not end; it is in no result.
const endedLingering loop.Ended = "lingering"

// watchResult ends a program that has printed its result, and then neither ends nor continues.
func (t *task) watchResult(ctx context.Context, result *lastWord) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-result.came:
		}
		for since, has := result.resultSince(); has; since, has = result.resultSince() {
			left := cmp.Or(t.job.Limits.Linger, lingerBound) - time.Since(since)
			if left <= 0 {
				t.requestEnd(endedLingering)
				return
			}
			if !process.Sleep(ctx, left) {
				return
			}
		}
	}
}

// exitWithResult is the exit of a program that had printed its result when it was ended for taking
// too long, or was killed by somebody else: the result counts.
func exitWithResult(x loop.Exit, terminal loop.Terminal) loop.Exit {
	slow := x.Ended == endedLingering || x.Ended == loop.EndedIdle || x.Ended == loop.EndedTimeout
	ofWrapper := x.Code > 128 && terminal == loop.TerminalOK // a shell's status for a signal
	bySignal := x.Signal != "" || ofWrapper
	killed := x.Ended == loop.NotEnded && bySignal
	switch {
	case slow:
		x.Why = "it had printed its result but did not exit, so pawl stopped it"
	case killed:
		x.Why = "it had printed its result and was killed after that: " +
			cmp.Or(x.Signal, fmt.Sprint("exit status ", x.Code))
	default:
		return x
	}
	x.Ended, x.Signal, x.Code = loop.NotEnded, "", 0
	if terminal != loop.TerminalOK {
		x.Code = 1
	}
	return x
}

func (t *task) lastOutput() time.Time { return time.Unix(0, t.seen.Load()) }

// untilSilent is how long the job may still be silent after its last sign of life.
func (t *task) untilSilent(life time.Time) time.Duration {
	return min(t.job.Limits.Idle-time.Since(life), t.job.Limits.Idle)
}

// watchEntries bounds one look at a tree.
const watchEntries = 500_000

// newerThan reports whether a file or folder below root changed after t, and
// when; the first one found ends the search. Git's objects and pawl's own
// files do not count. A tree over the bound counts as unchanged beyond it.
func newerThan(ctx context.Context, root string, t time.Time) (time.Time, bool) {
	var found time.Time
	seen := 0
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read cannot be seen to change
		}
		if seen++; seen > watchEntries || ctx.Err() != nil {
			return filepath.SkipAll
		}
		if d.IsDir() && isSkipped(path) {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // gone meanwhile: its folder's time says so
		}
		if at := changedAt(info); at.After(t) {
			found = at
			return filepath.SkipAll
		}
		return nil
	})
	return found, !found.IsZero()
}

func isSkipped(dir string) bool {
	name := filepath.Base(dir)
	if name == "objects" {
		return filepath.Base(filepath.Dir(dir)) == ".git"
	}
	return name == ".pawl"
}

// diskEvery is how often the free room is looked at: a fast disk takes a
// gigabyte or two in that time.
const diskEvery = time.Second

// leastFree is how many bytes must stay free on the disk of the job's folder: a
// full disk takes pawl's own records with it, and everything else on the
// machine. 0 is no such limit.
func leastFree(job Job) uint64 {
	free, err := files.Free(job.Dir)
	if job.Limits.Room <= 0 || err != nil {
		return 0
	}
	return min(uint64(job.Limits.Room), free/10)
}

// watchDisk ends the job before it fills the disk.
func (t *task) watchDisk(ctx context.Context, least uint64) {
	for least > 0 && process.Sleep(ctx, diskEvery) {
		if free, err := files.Free(t.job.Dir); err == nil && free < least {
			const why = "only %.1f MB are free on the disk of %s; free some: check first what the agent wrote"
			t.endForReason(loop.EndedDisk, fmt.Sprintf(why, float64(free)/1e6, t.job.Dir))
			return
		}
	}
}
