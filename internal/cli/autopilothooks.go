package cli

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/hook"
	"github.com/pawl-dev/pawl/internal/queue"
)

// pilotHooks makes events for hooks and notifications of what the autopilot
// tells. Its notices come one at a time.
type pilotHooks struct {
	runner *hook.Runner
	sprint bool
	watch  map[string]func(engine.Notice) // by task
}

// hooksOfPilot starts the configured hooks; say tells of one that failed.
func (s *session) hooksOfPilot(say func(string)) (*pilotHooks, func()) {
	o, left := hookOptions(s.c, s.a.getenv)
	for _, l := range left {
		s.a.say("Warning: %s.", l)
	}
	o.Dir, o.Exe, o.Args = filepath.Join(s.stateDir, "hooks"), s.plan.Exe, s.plan.Args
	o.Environ, o.Whole, o.Say = s.plan.Environ, s.a.env, say
	if b := s.plan.Box; b != nil {
		o.Box, o.Environ = &b.Gates, slices.Concat(o.Environ, b.Caches)
	}
	logger, closeLog := openLog(s.c.Root)
	o.Log = logger
	h := &pilotHooks{runner: hook.New(o), watch: map[string]func(engine.Notice){}}
	return h, func() {
		h.runner.Close(context.Background())
		closeLog()
	}
}

func (h *pilotHooks) notice(n autopilot.Notice) {
	if h.runner == nil {
		return
	}
	ctx := context.Background()
	e := hook.Event{At: n.At, Case: n.Case, Title: n.Title, Run: n.Run, Why: n.Text}
	switch n.Kind {
	case autopilot.RunNotice:
		h.run(ctx, n)
		return
	case autopilot.TaskEnded:
		delete(h.watch, n.Case)
		if !n.Settlement.Review {
			return
		}
		e.Name, e.Status, e.Why = hook.Escalation, "review", n.Settlement.Why
		e.Question = &hook.Question{Text: n.Case + " is verified and waits for your review", Answer: "pawl case approve|redo|reject " + n.Case}
	case autopilot.Paused:
		e.Name, e.Subject, e.Status = hook.Pause, "autopilot", "paused"
	case autopilot.Landed:
		e.Name, e.Status = hook.PostMerge, "done"
	case autopilot.QueueNote:
		switch n.Note.Kind {
		case queue.NoteConflict:
			e.Name, e.Conflict = hook.Conflict, &hook.Clash{Files: n.Note.Paths}
		case queue.NoteEscalated, queue.NoteStopped:
			e.Name, e.Subject = hook.Escalation, "merge queue"
		default:
			return
		}
	case autopilot.Over:
		if !h.sprint {
			return
		}
		e.Name, e.Subject, e.Status = hook.SprintEnd, "sprint", "ended"
	default:
		return
	}
	h.runner.Fire(ctx, e)
}

func (h *pilotHooks) run(ctx context.Context, n autopilot.Notice) {
	w, ok := h.watch[n.Case]
	if !ok {
		w = h.runner.Watch(ctx, hook.About{Name: n.Case, Case: n.Case, Title: n.Title, Workspace: n.Workspace.Dir, Branch: n.Workspace.Branch})
		h.watch[n.Case] = w
	}
	w(n.Engine)
}
