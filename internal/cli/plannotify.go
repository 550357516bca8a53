package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/hook"
)

// hooksOf are the configured hooks: by event, and the general one.
func hooksOf(c *config.Config) (own map[hook.Name]*config.Hook, general *config.Hook) {
	h := c.Hooks
	return map[hook.Name]*config.Hook{
		hook.Start: h.OnStart, hook.Complete: h.OnComplete, hook.PreMerge: h.PreMerge, hook.PostMerge: h.PostMerge, hook.Conflict: h.OnConflict,
		hook.Pause: h.OnPause, hook.Error: h.OnError, hook.Escalation: h.OnEscalation, hook.Budget: h.OnBudget, hook.SprintEnd: h.OnSprintEnd,
	}, h.OnEvent
}

// hookOptions are the configured hooks and receivers. A receiver that needs a
// variable which is not set is left out, and named.
func hookOptions(c *config.Config, getenv func(string) string) (o hook.Options, left []string) {
	o = hook.Options{Hooks: map[hook.Name]hook.Command{}, Root: c.Root}
	command := func(h *config.Hook) hook.Command {
		return hook.Command{Line: h.Command, Timeout: h.Timeout.Std(), Boxed: h.Sandbox}
	}
	own, general := hooksOf(c)
	for n, h := range own {
		if h != nil {
			o.Hooks[n] = command(h)
		}
	}
	if general != nil {
		every := command(general)
		o.Any = &every
	}
	for i, n := range c.Notify {
		to := hook.Receiver{Label: fmt.Sprintf("notify[%d]", i), Desktop: n.Desktop, Timeout: n.Timeout.Std()}
		for _, e := range n.Events {
			to.Events = append(to.Events, hook.Name(e))
		}
		if n.Command != "" {
			to.Command = &hook.Command{Line: n.Command, Timeout: n.Timeout.Std(), Boxed: n.Sandbox}
		}
		if n.Webhook != "" {
			web, err := webhook(n, getenv)
			if err != nil {
				left = append(left, fmt.Sprintf("%s is not told: %v", to.Label, err))
				continue
			}
			to.Webhook = &web
		}
		o.Receivers = append(o.Receivers, to)
	}
	return o, left
}

// webhook puts the values of variables in.
func webhook(n config.Notification, getenv func(string) string) (hook.Webhook, error) {
	w := hook.Webhook{Plain: n.Format == "text", Timeout: n.Timeout.Std(), Headers: map[string]string{}}
	var missing []string
	fill := func(text string) string {
		out, names := fillVariables(text, getenv)
		missing = append(missing, names...)
		return out
	}
	w.Address = fill(n.Webhook)
	for name, value := range n.Headers {
		w.Headers[name] = strings.TrimSpace(fill(value))
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return w, fmt.Errorf("the variable %s is not set", strings.Join(slices.Compact(missing), ", "))
	}
	return w, w.Check()
}

// fillVariables replaces each ${NAME} and names those that are not set. A $
// alone stays as it is.
func fillVariables(text string, getenv func(string) string) (filled string, missing []string) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "${")
		name, after, closed := strings.Cut(rest, "}")
		if !ok || !closed {
			b.WriteString(text)
			return b.String(), missing
		}
		b.WriteString(before)
		value := getenv(name)
		if value == "" {
			missing = append(missing, name)
		}
		b.WriteString(value)
		text = after
	}
}

// startHooks makes the runner of hooks and notifications, which lives until
// the session is closed. Hooks run in the box of the run's gates.
func (s *session) startHooks() { s.startHooksIn(s.plan.Box, s.plan.Copy, s.hookTrouble) }

// startHooksIn is startHooks with a box for hooks, in which the root may be
// kept, and who hears of problems.
func (s *session) startHooksIn(box *engine.Box, keep bool, say func(string)) {
	if s.hooks != nil {
		return
	}
	o, left := hookOptions(s.c, s.a.getenv)
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
	logger, closeLog := openLog(s.plan.Root)
	o.Log, o.Say = logger, say
	if s.hooks = hook.New(o); s.hooks == nil {
		closeLog()
		return
	}
	s.closing = append(s.closing, func() {
		s.hooks.Close(context.Background())
		closeLog()
	})
}

// hookTrouble says that a hook failed, without breaking the live line.
func (s *session) hookTrouble(text string) {
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
