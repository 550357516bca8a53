package supervisor

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/spool"
)

// LoadResult reads the result that a job left at its Files prefix; false when
// there is none, because the job did not run, runs, or was lost.
func LoadResult(files string) (Result, bool, error) {
	data, err := os.ReadFile(files + ".result.json")
	if errors.Is(err, fs.ErrNotExist) {
		return Result{}, false, nil
	}
	if err != nil {
		return Result{}, false, fmt.Errorf("cannot read a job's result: %v", err)
	}
	var r Result
	if err := json.Unmarshal(data, &r); err != nil {
		return Result{}, false, fmt.Errorf("cannot read a job's result from %s.result.json: %v", files, err)
	}
	return r, true, nil
}

// knownResult is the stored result of just this job. One from before the machine was
// started last is none: it may speak of files that a power loss took.
func knownResult(job Job) (Result, bool) {
	info, err := os.Stat(job.Files + ".result.json")
	if err != nil || info.ModTime().Before(process.Booted()) {
		return Result{}, false
	}
	r, ok, err := LoadResult(job.Files)
	return r, ok && err == nil && r.ID == job.ID
}

// claimJob notes, before a job is started, that it is: the file that becomes the
// result is made. False means that it was claimed before, by a supervisor that
// died over it.
func claimJob(files string) (bool, error) {
	f, err := os.OpenFile(files+pending, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("cannot note the start of a job: %v", err)
	}
	return true, f.Close()
}

// wasClaimed reports whether the job was started at all, so far as files say.
func wasClaimed(job Job) bool {
	_, err := os.Stat(job.Files + pending)
	return err == nil
}

// Begun reports whether a supervisor ever took the job on, so far as files say.
func Begun(job Job) bool { return wasClaimed(job) }

// pending is the suffix of a result that is not there yet.
const pending = ".result.json.tmp"

// storeResult makes the result appear whole or not at all. It is not synced:
// it survives kill -9, and after a power cut the job counts as lost.
func storeResult(files string, r Result) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("cannot store the result of %s: %v", r.ID, err)
	}
	path := files + ".result.json"
	err = os.WriteFile(files+pending, data, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		// The job took the folder away.
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			err = os.WriteFile(files+pending, data, 0o600)
		}
	}
	if err == nil {
		err = os.Rename(files+pending, path)
	}
	if err != nil {
		return fmt.Errorf("cannot store the result of %s: %v", r.ID, err)
	}
	return nil
}

// Lost is the result of a job whose supervisor died: Ended "lost", with what
// the job's files show of output, tokens and cost. If a result is there after
// all, that one is returned. The result is stored, so that asking for the job
// again does not run it again; an error says that this failed, and the Result
// is good nevertheless. The caller has ended what the job left running.
func Lost(job Job) (Result, error) { return lostResult(job, time.Time{}, 0) }

func lostResult(job Job, started time.Time, elapsed time.Duration) (Result, error) {
	if r, ok := knownResult(job); ok {
		return r, nil
	}
	r := Result{ID: job.ID, StartedAt: started, Elapsed: elapsed, Exit: loop.Exit{Code: -1, Ended: loop.EndedLost}}
	r.Stdout = unfinishedStream(job.Files + ".out")
	r.Stderr = unfinishedStream(job.Files + ".err")
	r.Agent = replayEvents(job)
	r.Exit.Terminal = r.Agent.Terminal
	return r, storeResult(job.Files, r)
}

// unfinishedStream reads head and tail of an output file that was not finished.
func unfinishedStream(path string) Stream {
	s, err := remainsOf(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Note = err.Error()
	}
	return s
}

func remainsOf(path string) (s Stream, err error) {
	f, err := spool.OpenFile(path)
	if err != nil {
		return s, err
	}
	defer func() { _ = f.Close() }()
	spans, err := f.Spans()
	if err != nil {
		return s, err
	}
	s.Bytes, s.Truncated = spans[len(spans)-1].To, len(spans) > 1
	head := make([]byte, min(s.Bytes, headSize))
	n, _, err := f.ReadAt(head, 0)
	if err != nil {
		return s, err
	}
	s.Head = validUTF8(head[:n])
	if s.Bytes > headSize {
		tail := make([]byte, min(s.Bytes, tailSize))
		n, _, err = f.ReadAt(tail, s.Bytes-int64(len(tail)))
		s.Tail = validUTF8(tail[:n])
	}
	return s, err
}

// replayEvents folds the events in the job's file again.
func replayEvents(job Job) agent.Outcome {
	c := agent.NewCollector()
	c.SetPrices(job.Prices)
	c.SetModel(job.Model)
	f, err := spool.OpenFile(job.Files + ".events.jsonl")
	if err != nil {
		return c.Outcome()
	}
	defer func() { _ = f.Close() }()
	for r := bufio.NewReader(f); ; {
		line, err := readLine(r)
		if err != nil {
			return c.Outcome()
		}
		var e agent.Event
		// The last line may be half a line.
		if json.Unmarshal(line, &e) == nil {
			c.Add(e)
		}
	}
}
