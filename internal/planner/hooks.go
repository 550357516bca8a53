package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/hook"
)

// HooksOf are the configured hooks: by event, and the general one.
func HooksOf(c *config.Config) (own map[hook.Name]*config.Hook, general *config.Hook) {
	h := c.Hooks
	return map[hook.Name]*config.Hook{
		hook.Start: h.OnStart, hook.Complete: h.OnComplete, hook.PreMerge: h.PreMerge, hook.PostMerge: h.PostMerge, hook.Conflict: h.OnConflict,
		hook.Pause: h.OnPause, hook.Error: h.OnError, hook.Escalation: h.OnEscalation, hook.Budget: h.OnBudget, hook.SprintEnd: h.OnSprintEnd,
	}, h.OnEvent
}

// Hooks are the configured hooks and receivers. A receiver that needs a
// variable which is not set is left out, and named.
func Hooks(c *config.Config, getenv func(string) string) (o hook.Options, left []string) {
	o = hook.Options{Hooks: map[hook.Name]hook.Command{}, Root: c.Root}
	command := func(h *config.Hook) hook.Command {
		return hook.Command{Line: h.Command, Timeout: h.Timeout.Std(), Boxed: h.Sandbox}
	}
	own, general := HooksOf(c)
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
		if missing = slices.Compact(missing); len(missing) == 1 {
			return w, fmt.Errorf("the variable %s is not set", missing[0])
		}
		return w, fmt.Errorf("the variables %s are not set", strings.Join(missing, ", "))
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
