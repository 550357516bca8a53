package cli

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/hook"
	"github.com/pawl-dev/pawl/internal/planner"
)

// startHooks makes the runner of hooks and notifications, which lives until
// the session is closed. Hooks run in the box of the run's gates.
func (s *session) startHooks() { s.startHooksIn(s.plan.Box, s.plan.Copy, s.warn) }

// startHooksIn is startHooks with a box for hooks, in which the root may be
// kept, and who hears of problems.
func (s *session) startHooksIn(box *engine.Box, keep bool, say func(string)) {
	if s.hooks != nil {
		return
	}
	o, left := planner.Hooks(s.c, s.a.getenv)
	for _, l := range left {
		s.a.say("Warning: %s.", l)
	}
	o.Dir, o.Exe, o.Args = filepath.Join(s.stateDir, "hooks"), s.plan.Exe, s.plan.Args
	o.Environ, o.Whole = s.plan.Environ, s.a.env
	if box != nil {
		policy := box.Gates
		if keep { // the agent works elsewhere, and nothing else may change the user's files
			policy.Write = slices.DeleteFunc(slices.Clone(policy.Write), func(path string) bool { return path == s.plan.Root })
			policy.Keep = append(slices.Clone(policy.Keep), s.plan.Root)
		}
		o.Box, o.Environ = &policy, slices.Concat(o.Environ, box.Caches)
	}
	o.Log, o.Say = openLog(s.plan.Root), say
	s.hooks = hook.New(o)
}

// warn says what a hook or the database has to say, without breaking the live line.
func (s *session) warn(text string) {
	s.showing.Lock()
	defer s.showing.Unlock()
	s.screen.Notice(engine.Notice{Kind: engine.Warning, At: time.Now(), Text: text, Run: s.running})
}

// heard hands a notice to the screen.
func (s *session) heard(n engine.Notice) {
	s.showing.Lock()
	defer s.showing.Unlock()
	s.running = n.Run
	s.screen.Notice(n)
}
