package cli

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

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/hook"
	"github.com/pawl-dev/pawl/internal/planner"
	"github.com/pawl-dev/pawl/internal/reexec"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/safety"
	"github.com/pawl-dev/pawl/internal/workspace"
)

func (a *app) notifyCommand() *cobra.Command {
	complete := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return eventNames(), cobra.ShellCompDirectiveNoFileComp
	}
	test := leaf("test [EVENT]", "Send a made-up event to every receiver of 'notify', whatever events it wants", atMost(1),
		func(ctx context.Context, args []string) error {
			return a.try(ctx, cmp.Or(strings.Join(args, ""), string(hook.Escalation)), false)
		})
	test.Example, test.ValidArgsFunction = "  pawl notify test\n  pawl notify test budget", complete
	run := leaf("hook EVENT", "Run the hooks of an event, with a made-up one", exactlyOne("an event"),
		func(ctx context.Context, args []string) error { return a.try(ctx, args[0], true) })
	run.Example, run.ValidArgsFunction = "  pawl notify hook complete", complete
	cmd := group("notify", "Show who is told what: hooks and notifications; try them", a.listTold, test, run)
	cmd.Long = "Show the hooks and notifications of the configuration. 'pawl notify test' tells every receiver of a made-up event,\n" +
		"'pawl notify hook EVENT' runs the hooks of one."
	return cmd
}

// told is one line of `pawl notify`.
type told struct {
	Key    string   `json:"key"`
	Kind   string   `json:"kind"` // command, webhook, desktop
	What   string   `json:"what"`
	Events []string `json:"events"`
}

func (a *app) listTold(_ context.Context) error {
	c, err := a.load(nil)
	if err != nil {
		return err
	}
	none := fmt.Sprintf("Nobody is told: there are no hooks and no notify in %s. See docs/hooks.md.", c.Name())
	return listing(a, toldBy(c), none, "KEY\tKIND\tEVENTS\tWHAT", func(t told) row {
		return row{t, []any{t.Key, t.Kind, strings.Join(t.Events, ","), report.Line(t.What, 100)}}
	})
}

// toldBy lists who is told what. The paths of webhooks are left out.
func toldBy(c *config.Config) []told {
	var list []told
	own, general := planner.HooksOf(c)
	for _, n := range hook.Names() {
		if h := own[n]; h != nil {
			list = append(list, told{hook.Key(n), "command", h.Command, []string{string(n)}})
		}
	}
	if general != nil {
		list = append(list, told{hook.GeneralKey, "command", general.Command, []string{"all"}})
	}
	for i, n := range c.Notify {
		t := told{fmt.Sprintf("notify[%d]", i), "command", n.Command, n.Events}
		switch {
		case n.Webhook != "":
			t.Kind, t.What = "webhook", config.HideAddress(n.Webhook)
		case n.Desktop:
			t.Kind, t.What = "desktop", ""
		}
		list = append(list, t)
	}
	return list
}

// try tells of a made-up event and says how it went.
func (a *app) try(ctx context.Context, event string, hooks bool) error {
	name := hook.Name(event)
	if !slices.Contains(hook.Names(), name) {
		return usage("unknown event %q", event).Hint("Events: %s", strings.Join(eventNames(), ", "))
	}
	s, err := a.hookSession(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	s.startHooks()
	results := s.hooks.Try(ctx, sample(name, s), hooks)
	if len(results) == 0 && hooks {
		return usage("nothing is run at %s: there is neither %s nor %s in %s", name, hook.Key(name), hook.GeneralKey, s.c.Name())
	}
	if len(results) == 0 {
		return usage("nobody can be told: there is no notify in %s that works here", s.c.Name()).Hint("See docs/hooks.md")
	}
	failed := false
	for _, d := range results {
		failed = failed || d.Problem != ""
		a.printTried(d, hooks)
	}
	if failed {
		return status(exitFailed)
	}
	return nil
}

func (a *app) printTried(d hook.Delivery, output bool) {
	if a.json {
		_ = a.jsonLine(d) // it always encodes
		return
	}
	if output && d.Output != "" {
		a.result("%s\n", strings.TrimRight(d.Output, "\n"))
	}
	if d.Problem != "" {
		a.result("✗ %s (%s): %s\n", d.To, d.Kind, d.Problem)
		return
	}
	a.result("✓ %s (%s) in %s\n", d.To, d.Kind, d.Elapsed.Round(time.Millisecond))
}

func eventNames() []string {
	var names []string
	for _, n := range hook.Names() {
		names = append(names, string(n))
	}
	return names
}

// hookSession is a session that runs hooks and nothing else, at the level of
// the configuration.
func (a *app) hookSession(ctx context.Context) (*session, error) {
	c, err := a.load(nil)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find pawl's own program: %v", err)
	}
	plan := engine.Plan{Name: "notify", Root: c.Root, Safety: c.Loop.Safety, Exe: exe, Args: []string{reexec.Supervise}}
	plan.Environ, _ = safety.Level(c.Loop.Safety).Environ(a.env, nil, planner.Variables(c))
	s := &session{a: a, c: c, plan: plan, stateDir: config.StateDir(c.Root, a.env)}
	s.screen = console.New(a.terminal(), plan.Name)
	tree, err := workspace.Open(ctx, c.Root, workspace.Options{StateDir: s.stateDir})
	if err == nil {
		s.tree = tree
	} else if !errors.Is(err, git.ErrNotRepository) && !errors.Is(err, git.ErrNoGit) {
		a.say("Warning: %v", err)
	}
	err = s.box(ctx, false)
	return s, err
}

// sample is an event that says that it is made up.
func sample(n hook.Name, s *session) hook.Event {
	cost := 0.42
	e := hook.Event{
		Name: n, At: time.Now(), Run: "00000000", Subject: "example", Workspace: s.c.Root, Agent: s.c.Agent, Status: "running", Iterations: 3,
		Duration: 90 * time.Second, CostUSD: &cost, Why: "this is a test of pawl notify; nothing happened",
	}
	switch n {
	case hook.Escalation:
		e.Question = &hook.Question{Text: "This is a test of pawl notify; nothing happened. Does it reach you?", Options: []string{"yes", "no"}}
	case hook.Conflict:
		e.Conflict = &hook.Clash{Level: "medium", Files: []string{"example.txt"}}
	case hook.Error:
		e.Status, e.Error = "failed", &hook.Trouble{Code: "unknown", Message: e.Why, Severity: "low"}
	}
	return e
}

// toldFound is the doctor's line about hooks and notifications.
func (a *app) toldFound(c *config.Config) string {
	list := toldBy(c)
	if len(list) == 0 {
		return "nobody is told: no hooks, no notify"
	}
	var parts []string
	for _, t := range list {
		parts = append(parts, fmt.Sprintf("%s (%s)", t.Key, t.Kind))
	}
	_, left := planner.Hooks(c, a.getenv)
	if slices.ContainsFunc(list, func(t told) bool { return t.Kind == "desktop" }) && hook.DesktopProgram(a.env) == "" {
		left = append(left, hook.NoDesktop)
	}
	return strings.Join(append([]string{strings.Join(parts, ", ")}, left...), "; ")
}
