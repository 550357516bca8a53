package planner

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/hook"
)

// HooksOf are the configured hooks: by event, and the general one.
func HooksOf(c *config.Config) (own map[hook.Name]*config.Hook, general *config.Hook) {
	h := c.Hooks
	return map[hook.Name]*config.Hook{
		hook.Start: h.OnStart, hook.Complete: h.OnComplete, hook.PreMerge: h.PreMerge, hook.PostMerge: h.PostMerge,
		hook.Conflict: h.OnConflict, hook.Pause: h.OnPause, hook.Error: h.OnError, hook.Escalation: h.OnEscalation,
		hook.Budget: h.OnBudget, hook.SprintEnd: h.OnSprintEnd,
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

// variable is ${NAME}. A $ alone stays as it is.
var variable = regexp.MustCompile(`\$\{[^}]*\}`)

// webhook puts the values of variables in.
func webhook(n config.Notification, getenv func(string) string) (hook.Webhook, error) {
	var missing []string
	fill := func(text string) string {
		return variable.ReplaceAllStringFunc(text, func(v string) string {
			name := v[2 : len(v)-1]
			value := getenv(name)
			if value == "" {
				missing = append(missing, name)
			}
			return value
		})
	}
	w := hook.Webhook{
		Address: fill(n.Webhook), Plain: n.Format == "text", Timeout: n.Timeout.Std(), Headers: map[string]string{},
	}
	for name, value := range n.Headers {
		w.Headers[name] = strings.TrimSpace(fill(value))
	}
	slices.Sort(missing)
	switch missing = slices.Compact(missing); len(missing) {
	case 0:
		return w, w.Check()
	case 1:
		return w, fmt.Errorf("the variable %s is not set", missing[0])
	}
	return w, fmt.Errorf("the variables %s are not set", strings.Join(missing, ", "))
}
