package cli

import (
	"context"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/supervisor"
)

// exitCode is pawl's exit status for how a run came to rest.
func exitCode(s loop.State, cause loop.Cause) int {
	switch s.Status {
	case loop.FailedRun:
		if s.Question != nil { // a guard ended a workflow
			return exitPerson
		}
	case loop.Completed:
		return exitOK
	case loop.TimedOut:
		return exitLimit
	case loop.Paused, loop.Blocked, loop.Pending:
		return exitPerson
	case loop.Interrupted, loop.Stopped:
		switch cause {
		case loop.CauseTerminate:
			return exitTerminated
		case loop.CauseHangup:
			return exitHangup
		}
		return exitInterrupted
	}
	return exitFailed
}

// unattended says how long the supervisor of a run without a pawl goes on.
func unattended(ctx context.Context, stateDir, run string) (string, bool) {
	dir := filepath.Join(stateDir, "runs", run)
	st, err := supervisor.Probe(ctx, dir)
	for i := 1; (err != nil || st.Job == nil) && i <= engine.MaxLanes; i++ {
		lane := engine.LaneDir(dir, i)
		if _, serr := os.Stat(lane); serr != nil {
			break
		}
		st, err = supervisor.Probe(ctx, lane)
	}
	if err != nil || st.Job == nil {
		return "", false
	}
	// Who asks knows that the owner is dead. The supervisor may see that a
	// moment later, so whether it calls itself attended says nothing here.
	return st.Left.Round(1e9).String(), true
}

// interactive is true when a person can answer.
func (a *app) interactive() bool {
	in, ok := a.stdin.(*os.File)
	if !ok || a.json {
		return false
	}
	return console.IsTerminal(in) && a.onTerminal()
}

// terminal is where runs are shown.
func (a *app) terminal() console.Terminal {
	return console.Terminal{
		Results: a.stdout, Progress: a.stderr, Drawn: a.onTerminal(), Color: a.colored(), Verbose: a.verbose, Quiet: a.quiet, JSON: a.json,
	}
}

// onTerminal is true when progress is drawn on a terminal.
func (a *app) onTerminal() bool {
	f, ok := a.stderr.(*os.File)
	return ok && console.IsTerminal(f) && a.getenv("TERM") != "dumb"
}

// wantsColor is false where the environment speaks against color.
func (a *app) wantsColor() bool { return a.getenv("TERM") != "dumb" && a.getenv("NO_COLOR") == "" }

// colored says whether to use color on stderr.
func (a *app) colored() bool {
	return a.color == "always" || a.color == "auto" && a.onTerminal() && a.wantsColor()
}

// sayCopy says where the result of a run that worked on a copy is.
func (s *session) sayCopy(ctx context.Context, run string) {
	if !s.plan.Copy || s.tree == nil {
		return
	}
	snaps, err := s.tree.Snapshots(ctx, run)
	if err != nil || len(snaps) == 0 || snaps[0].Tree == snaps[len(snaps)-1].Tree {
		return
	}
	s.a.say("Your files were not touched: the result is in a copy.")
	s.a.say("  See it:   pawl show %s --diff", run)
	s.a.say("  Apply it: pawl apply %s", run)
}
