package lanes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// warmWithin bounds a warm-up and the wait for that of another pawl.
const warmWithin = 2 * time.Minute

// WarmUp runs an agent's warm-up before its first start in this repository, one
// at a time on this machine. It is worth a warning when it fails, and no more:
// the agent itself says better what is wrong with it.
//
// It takes from the time that the job may take.
func (l *Supervisors) WarmUp(ctx context.Context, stateDir, name string, job *supervisor.Job, args []string,
	warn func(string),
) {
	done := filepath.Join("agents", name, "warm") // in the agent's own folder, which may have links
	if _, err := os.Lstat(filepath.Join(stateDir, done)); err == nil || len(args) == 0 {
		return
	}
	from := time.Now()
	if job.Limits.Wall > 0 {
		defer func() { job.Limits.Wall = max(job.Limits.Wall-time.Since(from), time.Second) }()
	}
	ctx, cancel := context.WithTimeout(ctx, warmUpLimit(*job))
	defer cancel()
	lock, err := files.Lock(ctx, filepath.Join(filepath.Dir(stateDir), "warm-"+name+".lock"))
	if err == nil {
		err = errors.Join(l.warmAlone(ctx, *job, args), lock.Close())
	}
	if err == nil {
		err = files.ReplaceBelow(stateDir, done, nil, 0o600, false)
	}
	if err != nil && ctx.Err() == nil {
		warn(fmt.Sprintf("could not warm up %s: %v", name, err))
	}
}

// warmUpLimit is how long a warm-up of the job may take.
func warmUpLimit(job supervisor.Job) time.Duration {
	if wall := job.Limits.Wall; wall > 0 {
		return min(wall, warmWithin)
	}
	return warmWithin
}

func (l *Supervisors) warmAlone(ctx context.Context, job supervisor.Job, args []string) error {
	job.ID, job.Files, job.Args = job.ID+"/warm", job.Files+"-warm", args
	job.Stdin, job.Parser, job.Merge = "", "", true
	job.Limits = supervisor.Limits{Wall: warmUpLimit(job), Grace: job.Limits.Grace}
	res, err := l.Do(ctx, job, nil)
	switch {
	case err != nil:
		return err
	case res.Error != "":
		return errors.New(res.Error)
	case res.Exit.Code != 0 && res.Exit.Ended == loop.NotEnded:
		return fmt.Errorf("%s ended with status %d: %s", strings.Join(args, " "), res.Exit.Code,
			strings.TrimSpace(res.Stdout.Text()))
	}
	return nil
}
