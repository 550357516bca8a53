package session

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/hook"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

// StartHooks makes the runner of hooks and notifications, which lives until
// the session is closed. Hooks run in the box of the run's gates.
func (s *Session) StartHooks() {
	s.StartHooksIn(s.Plan.Box, s.Plan.Safety == sandbox.Paranoid, s.printWarning)
}

// StartHooksIn is startHooks with a box for hooks, in which the root may be
// kept; say reports problems.
func (s *Session) StartHooksIn(box *runplan.Box, keep bool, say func(string)) {
	if s.Hooks != nil {
		return
	}
	o, left := planner.Hooks(s.Config, s.App.Getenv)
	for _, l := range left {
		s.App.Say("Warning: %s.", l)
	}
	o.Dir, o.Exe, o.Args = filepath.Join(s.StateDir, "hooks"), s.Plan.Exe, s.Plan.Args
	o.Environ = s.Plan.Environ
	o.Whole, o.LeftOut = s.outsideEnv(box)
	if box != nil {
		policy := box.Setup
		if keep { // the agent works elsewhere, and nothing else may change the user's files
			policy.Write = slices.DeleteFunc(slices.Clone(policy.Write), func(path string) bool { return path == s.Plan.Root })
			policy.Keep = append(slices.Clone(policy.Keep), s.Plan.Root)
		}
		if s.Tree != nil {
			policy.Keep = append(slices.Clone(policy.Keep), s.Tree.Repo.Dir, s.Tree.Repo.Common)
		}
		o.Box, o.Environ = &policy, slices.Concat(o.Environ, box.Caches)
	}
	o.Log, o.Say = command.OpenLog(s.Plan.Root), say
	s.Hooks = hook.New(o)
}

// outsideEnv returns the environment of programs that run outside of a box, and the folders
// that its PATH lacks: what agents may write, who may have run before.
func (s *Session) outsideEnv(box *runplan.Box) (env, left []string) {
	trees := []string{s.Config.Root}
	if s.Tree != nil {
		trees = append(trees, s.Tree.Repo.Trees()...)
	}
	if box != nil {
		trees = append(trees, box.Setup.Write...)
		for _, policy := range box.Agents {
			trees = append(trees, policy.Write...)
		}
	}
	return s.App.Outside(trees...)
}

// printWarning prints a warning of a hook or the database, without breaking the live line.
func (s *Session) printWarning(text string) {
	s.showing.Lock()
	defer s.showing.Unlock()
	s.Screen.Notice(engine.Notice{Kind: engine.Warning, At: time.Now(), Text: text, Run: s.running})
}

// showNotice passes a notice to the screen.
func (s *Session) showNotice(n engine.Notice) {
	s.showing.Lock()
	defer s.showing.Unlock()
	s.running = n.Run
	s.Screen.Notice(n)
}

// AutopilotHooks turns notices of the autopilot into events for hooks and
// notifications. The notices come one at a time.
type AutopilotHooks struct {
	hooks  *hook.Runner
	target string // the branch of landings

	titles map[string]string
	runs   map[string]func(engine.Notice) // by task
}

// NewAutopilotHooks fires the events of an autopilot that lands on target.
func NewAutopilotHooks(r *hook.Runner, target string) *AutopilotHooks {
	return &AutopilotHooks{hooks: r, target: target, titles: map[string]string{}, runs: map[string]func(engine.Notice){}}
}

// Notice takes one notice of the autopilot.
func (t *AutopilotHooks) Notice(ctx context.Context, n autopilot.Notice) {
	switch n.Kind {
	case autopilot.TaskBegan:
		t.titles[n.Case] = n.Title
	case autopilot.RunNotice:
		t.runEvents(ctx, n)
	case autopilot.TaskEnded:
		t.taskEvents(ctx, n)
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
	case autopilot.SprintBegan:
		t.hooks.Fire(ctx, hook.Event{Name: hook.SprintStart, At: n.At, Subject: "sprint " + n.Text, Status: "started",
			Why: "it has started"})
	case autopilot.Over:
		if n.Sprint {
			t.hooks.Fire(ctx, hook.Event{Name: hook.SprintEnd, At: n.At, Subject: "the sprint", Status: "ended", Why: n.Text})
		}
	}
}

// runEvents turns a notice of a task's run into events.
func (t *AutopilotHooks) runEvents(ctx context.Context, n autopilot.Notice) {
	watch, ok := t.runs[n.Case]
	if !ok {
		watch = t.hooks.Watch(ctx, hook.About{
			Case: n.Case, Title: n.Title, Workspace: n.Workspace.Dir, Branch: n.Workspace.Branch, Name: n.Case,
		})
		t.runs[n.Case] = watch
	}
	watch(n.Engine)
}

// taskEvents makes the events that no run makes: a task that could not be started, and
// verified work that needs a person.
func (t *AutopilotHooks) taskEvents(ctx context.Context, n autopilot.Notice) {
	v := n.Settlement
	e := hook.Event{At: n.At, Case: n.Case, Title: n.Title, Run: n.Run, Workspace: n.Workspace.Dir,
		Branch: n.Workspace.Branch, Why: v.Why}
	switch {
	case v.Review:
		e.Name, e.Status = hook.Escalation, string(board.Review)
		e.Question = &hook.Question{Text: "it waits for your review: " + v.Why, Answer: "pawl case approve " + n.Case}
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

// BeforeLanding runs the hooks of what is about to land.
func (s *Session) BeforeLanding(target string) func(context.Context, []queue.Entry, string) {
	return func(ctx context.Context, entries []queue.Entry, commit string) {
		event := func(e queue.Entry) hook.Event { return hook.BeforeLanding(e, target, commit) }
		s.Hooks.Await(ctx, lists.Each(entries, event)...)
	}
}

// QueueNotes prints the notes of a queue, and passes them to hooks.
func (s *Session) QueueNotes(ctx context.Context) func(queue.Note) {
	return func(n queue.Note) {
		SayNote(s.App, n)
		if e, ok := hook.OfNote(n, command.BranchName(s.Target)); ok {
			s.Hooks.Fire(ctx, e)
		}
	}
}

// WatchLanding has hooks and notifications hear of a queue at work.
func (s *Session) WatchLanding(ctx context.Context, l *Landing, o *merge.Options) {
	s.Plan.Exe, s.Plan.Args, s.Target = o.Exe, o.Args, o.Target
	s.StartHooksIn(s.HookBox(ctx, l.verdict), s.Config.Loop.Safety == sandbox.Paranoid, func(text string) {
		s.App.Say("Warning: %s", text)
	})
	if s.Hooks != nil {
		o.Before = s.BeforeLanding(command.BranchName(o.Target))
	}
}

// HookBox is the box of hooks whose tasks are worked on elsewhere: that of a
// gate in the root. Nil is none: there are no boxes, or no hooks.
func (s *Session) HookBox(ctx context.Context, v sandbox.Verdict) *runplan.Box {
	if !v.Boxed {
		return nil
	}
	if o, _ := planner.Hooks(s.Config, s.App.Getenv); o.None() {
		return nil // it would not be used
	}
	shadow := &Session{App: s.App, Config: s.Config, Plan: s.Plan, StateDir: s.StateDir}
	shadow.Plan.Agents = nil
	if repo, err := git.Open(ctx, s.Config.Root); err == nil {
		shadow.Repo, shadow.Top = repo, repo.Top
	}
	return shadow.buildBox(ctx, v)
}

// SayNote prints a note of a queue.
func SayNote(a *command.App, n queue.Note) {
	if n.Parked {
		return // what a person is asked says it
	}
	who := ""
	if n.ID != "" {
		who = n.ID + ": "
	}
	a.Say("%s %s%s", time.Now().Format("[15:04:05]"), who, report.Line(n.Text, 400))
}
