package supervisor

import (
	"context"
	"path/filepath"
	"time"

	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/process"
)

// Program is the program of a job, and when it was changed; the zero time is that it is
// not there.
func (j Job) Program() (path string, changed time.Time) {
	path, err := process.Command{Args: j.Args, Dir: j.Dir, Env: j.Env}.Resolve()
	if err != nil {
		return j.Args[0], time.Time{}
	}
	whole, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path, time.Time{}
	}
	changed, _ = files.Changed(whole)
	return path, changed
}

// lookForProgram is how soon a program is seen that was away.
const lookForProgram = time.Second

// AwaitProgram waits until the job's program is there, and was left alone for still;
// false when it is not by then, or ctx ended.
func (j Job) AwaitProgram(ctx context.Context, still time.Duration, by time.Time) bool {
	for time.Now().Before(by) {
		if !process.Sleep(ctx, lookForProgram) {
			return false
		}
		if _, changed := j.Program(); !changed.IsZero() && time.Since(changed) > still {
			return true
		}
	}
	return false
}
