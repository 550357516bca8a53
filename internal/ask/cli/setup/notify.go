package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/hook"
	"github.com/pawl-dev/pawl/internal/do/reexec"
	"github.com/pawl-dev/pawl/internal/do/workspace"
)

func notifyCommand(a *command.App) *cobra.Command {
	test := command.Leaf("test [EVENT]", "Send a test event to every receiver under 'notify'",
		command.AtMost(1),
		func(ctx context.Context, args []string) error {
			return tryReceivers(ctx, a, cmp.Or(strings.Join(args, ""), string(hook.Escalation)))
		})
	test.ValidArgs = eventNames()
	return command.Group("notify", "Try the notifications of the configuration", nil, test)
}

// receiver is a hook or a notification, as doctor names it.
type receiver struct{ key, kind string }

// listReceivers lists who hears of events.
func listReceivers(c *config.Config) []receiver {
	var list []receiver
	own, general := planner.HooksOf(c)
	for _, n := range hook.Names() {
		if own[n] != nil {
			list = append(list, receiver{hook.Key(n), "command"})
		}
	}
	if general != nil {
		list = append(list, receiver{hook.GeneralKey, "command"})
	}
	for i, n := range c.Notify {
		kind := "command"
		switch {
		case n.Webhook != "":
			kind = "webhook"
		case n.Desktop:
			kind = "desktop"
		}
		list = append(list, receiver{fmt.Sprintf("notify[%d]", i), kind})
	}
	return list
}

// tryReceivers sends a made-up event and prints the result of each delivery.
func tryReceivers(ctx context.Context, a *command.App, event string) error {
	name := hook.Name(event)
	if !slices.Contains(hook.Names(), name) {
		return command.Usage("unknown event %q", event).Hint("Events: %s", strings.Join(eventNames(), ", "))
	}
	s, err := hookSession(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	s.StartHooks()
	results := s.Hooks.Try(ctx, sampleEvent(name, s))
	if len(results) == 0 {
		return command.Usage("nothing can be sent: there is no notify in %s that works here", s.Config.Name()).
			Hint("See docs/hooks.md")
	}
	failed := false
	for _, d := range results {
		failed = failed || d.Problem != ""
		switch {
		case a.JSON:
			_ = a.JSONLine(d) // it always encodes
		case d.Problem != "":
			a.Result("✗ %s (%s): %s\n", d.To, d.Kind, d.Problem)
		default:
			a.Result("✓ %s (%s) in %s\n", d.To, d.Kind, d.Elapsed.Round(time.Millisecond))
		}
	}
	if failed {
		return command.StatusError(command.ExitFailed)
	}
	return nil
}

func eventNames() []string {
	return lists.Each(hook.Names(), func(n hook.Name) string { return string(n) })
}

// hookSession is a session that runs hooks and nothing else, at the level of
// the configuration.
func hookSession(ctx context.Context, a *command.App) (*session.Session, error) {
	c, err := a.Load(nil)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find pawl's own program: %v", err)
	}
	plan := runplan.Plan{Name: "notify", Root: c.Root, Safety: c.Loop.Safety, Exe: exe, Args: []string{reexec.Supervise}}
	plan.Environ, _ = safety.Level(c.Loop.Safety).Environ(a.Env, nil, planner.Variables(c))
	s := &session.Session{App: a, Config: c, Plan: plan, StateDir: statedir.Of(c.Root, a.Env)}
	s.Screen = console.New(a.Terminal(), plan.Name)
	tree, err := workspace.Open(ctx, c.Root, workspace.Options{StateDir: s.StateDir})
	if err == nil {
		s.Tree, s.Repo, s.Top = tree, tree.Repo, tree.Repo.Top
	} else if !errors.Is(err, git.ErrNotRepository) && !errors.Is(err, git.ErrNoGit) {
		a.Say("Warning: %v", err)
	}
	err = s.Box(ctx, false)
	return s, err
}

// sampleEvent returns an event for a test; its text says so.
func sampleEvent(n hook.Name, s *session.Session) hook.Event {
	cost := 0.42
	e := hook.Event{
		Name: n, At: time.Now(), Run: "00000000", Subject: "example", Workspace: s.Config.Root, Agent: s.Config.Agent,
		Status: "running", Iterations: 3,
		Duration: 90 * time.Second, CostUSD: &cost, Why: "this is a test of pawl notify; nothing happened",
	}
	switch n {
	case hook.Escalation:
		e.Question = &hook.Question{Text: "This is a test of pawl notify; nothing happened. Does it reach you?",
			Options: []string{"yes", "no"}}
	case hook.Conflict:
		e.Conflict = &hook.Clash{Level: "medium", Files: []string{"example.txt"}}
	case hook.Error:
		e.Status, e.Error = "failed", &hook.Trouble{Code: "unknown", Message: e.Why, Severity: "low"}
	}
	return e
}

// notificationsFound is the doctor's line about hooks and notifications.
func notificationsFound(a *command.App, c *config.Config) string {
	list := listReceivers(c)
	if len(list) == 0 {
		return "none: neither hooks nor notify are configured"
	}
	parts := lists.Each(list, func(t receiver) string { return fmt.Sprintf("%s (%s)", t.key, t.kind) })
	_, left := planner.Hooks(c, a.Getenv)
	if slices.ContainsFunc(list, func(t receiver) bool { return t.kind == "desktop" }) &&
		hook.DesktopProgram(a.Env) == "" {
		left = append(left, hook.NoDesktop)
	}
	return strings.Join(append([]string{strings.Join(parts, ", ")}, left...), "; ")
}
