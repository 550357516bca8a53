package cli

import (
	"context"
	"strings"

	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/hook"
	"github.com/pawl-dev/pawl/internal/merge"
	"github.com/pawl-dev/pawl/internal/queue"
	"github.com/pawl-dev/pawl/internal/sandbox"
	"github.com/pawl-dev/pawl/internal/workspace"
)

// pilotTold makes events for hooks and notifications of what the autopilot
// tells. Its notices come one at a time.
type pilotTold struct {
	hooks  *hook.Runner
	target string // the branch of landings
	sprint bool

	titles map[string]string
	runs   map[string]func(engine.Notice) // by task
}

func newPilotTold(r *hook.Runner, target string, sprint bool) *pilotTold {
	return &pilotTold{hooks: r, target: target, sprint: sprint, titles: map[string]string{}, runs: map[string]func(engine.Notice){}}
}

func (t *pilotTold) notice(ctx context.Context, n autopilot.Notice) {
	switch n.Kind {
	case autopilot.TaskBegan:
		t.titles[n.Case] = n.Title
	case autopilot.RunNotice:
		t.run(ctx, n)
	case autopilot.TaskEnded:
		t.settled(ctx, n)
		delete(t.runs, n.Case)
	case autopilot.QueueNote:
		if e, ok := hook.OfNote(n.Note, t.target); ok {
			e.Title = t.titles[n.Case]
			t.hooks.Fire(ctx, e)
		}
	case autopilot.Landed:
		delete(t.titles, n.Case)
	case autopilot.Paused:
		t.hooks.Fire(ctx, hook.Event{Name: hook.Pause, At: n.At, Subject: "the autopilot", Status: "paused", Why: n.Text})
	case autopilot.Over:
		if t.sprint {
			t.hooks.Fire(ctx, hook.Event{Name: hook.SprintEnd, At: n.At, Subject: "the sprint", Status: "ended", Why: n.Text})
		}
	}
}

// run hands a notice of a task's run to who makes its events.
func (t *pilotTold) run(ctx context.Context, n autopilot.Notice) {
	watch, ok := t.runs[n.Case]
	if !ok {
		watch = t.hooks.Watch(ctx, hook.About{
			Case: n.Case, Title: n.Title, Workspace: n.Workspace.Dir, Branch: n.Workspace.Branch, Name: n.Case,
		})
		t.runs[n.Case] = watch
	}
	watch(n.Engine)
}

// settled tells what no run tells: a task that could not be started, and
// verified work that needs a person.
func (t *pilotTold) settled(ctx context.Context, n autopilot.Notice) {
	v := n.Settlement
	e := hook.Event{At: n.At, Case: n.Case, Title: n.Title, Run: n.Run, Workspace: n.Workspace.Dir, Branch: n.Workspace.Branch, Why: v.Why}
	switch {
	case v.Review:
		e.Name, e.Status = hook.Escalation, string(board.Review)
		e.Question = &hook.Question{Text: "it waits for your review: " + v.Why, Answer: "pawl case approve|redo|reject " + n.Case}
	case v.Action == board.Block && v.Worked:
		e.Name, e.Status = hook.Escalation, string(board.Blocked)
		e.Question = &hook.Question{Text: v.Why, Answer: "pawl case unblock " + n.Case}
	case v.Action == board.Fail && n.Run == "":
		e.Name, e.Status = hook.Error, string(board.Failed)
		e.Error = &hook.Trouble{Code: "not_started", Message: v.Why, Severity: "high"}
	default:
		return
	}
	t.hooks.Fire(ctx, e)
}

// beforeLanding runs the hooks of what is about to land.
func (s *session) beforeLanding(target string) func(context.Context, []queue.Entry, string) {
	return func(ctx context.Context, entries []queue.Entry, commit string) {
		events := make([]hook.Event, len(entries))
		for i := range entries {
			events[i] = hook.BeforeLanding(entries[i], target, commit)
		}
		s.hooks.Await(ctx, events...)
	}
}

// noteHeard prints what a queue tells, and hands it to hooks.
func (s *session) noteHeard(ctx context.Context) func(queue.Note) {
	return func(n queue.Note) {
		s.a.sayNote(n)
		if e, ok := hook.OfNote(n, branchName(s.target)); ok {
			s.hooks.Fire(ctx, e)
		}
	}
}

// tellOfLanding has hooks and notifications hear of a queue at work.
func (s *session) tellOfLanding(ctx context.Context, l *landing, o *merge.Options) {
	s.plan.Exe, s.plan.Args, s.target = o.Exe, o.Args, o.Target
	s.startHooksIn(s.hookBox(ctx, l.verdict), s.c.Loop.Safety == sandbox.Paranoid, func(text string) { s.a.say("Warning: %s", text) })
	if s.hooks != nil {
		o.Before = s.beforeLanding(branchName(o.Target))
	}
}

// hookBox is the box of hooks whose tasks are worked on elsewhere: that of a
// gate in the root.
func (s *session) hookBox(ctx context.Context, v sandbox.Verdict) *engine.Box {
	if !v.Boxed {
		return nil
	}
	shadow := &session{a: s.a, c: s.c, plan: s.plan, stateDir: s.stateDir}
	shadow.plan.Agents = nil
	if tree, err := workspace.Open(ctx, s.c.Root, workspace.Options{StateDir: s.stateDir}); err == nil {
		shadow.tree = tree
	}
	return shadow.policies(ctx, v)
}

// branchName is a branch as people name it.
func branchName(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }
