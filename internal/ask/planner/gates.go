package planner

import (
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/hook"
)

// gateSpecs are the configuration's, and those of the task.
func (d draft) gateSpecs() []gate.Spec {
	return append(d.specsOf(d.Config.Verification.Gates()), d.TaskGates(&d.task)...)
}

// LaterGates are the gates for what has landed.
func (pl *Planner) LaterGates() []gate.Spec { return pl.specsOf(pl.Config.Verification.LaterGates()) }

func (pl *Planner) specsOf(list []config.Gate) (specs []gate.Spec) {
	v := &pl.Config.Verification
	for _, g := range list {
		specs = append(specs, gate.Spec{
			Name: g.Name, Command: g.Command, Timeout: g.Timeout.Std(), Required: g.Required, AllowEmpty: g.AllowEmpty,
			Retries: v.Retries, Kind: g.Kind, Fixed: g.Timeout != v.DefaultTimeout,
			Landing: g.When == "landing", Affected: g.Affected,
		})
	}
	return specs
}

// TaskGates are the checks of one task as gates.
func (pl *Planner) TaskGates(task *board.Case) []gate.Spec {
	v := &pl.Config.Verification
	return gate.TaskSpecs(task, gate.Spec{Timeout: v.DefaultTimeout.Std(), Retries: v.Retries})
}

// checkRunnable looks up the programs of the gates, before anything is paid for. One that a
// set-up may install is not looked for, nor is one of an optional gate missed.
func (d draft) checkRunnable() error {
	for _, m := range d.missingOf(d.gateSpecs()) {
		if m.Required {
			return fault.Refuse("gate %q cannot run: %q is not installed on this machine", m.Gate, m.Program).
				Hint("Install it, or correct the command in %s, or that of --verify", d.Config.Name()).
				Hint("See what else is missing: pawl doctor")
		}
		d.warnFormatted("the optional gate %q cannot run: %q is not installed on this machine", m.Gate, m.Program)
	}
	return nil
}

// Missing is a program that a gate needs and that is not there.
type Missing struct {
	Gate, Program string
	Required      bool
}

// MissingPrograms lists those of the gates that this machine does not have.
func (pl *Planner) MissingPrograms() []Missing { return pl.missingOf(draft{Planner: pl}.gateSpecs()) }

func (pl *Planner) missingOf(gates []gate.Spec) []Missing {
	made := map[string]bool{}
	for _, line := range pl.Config.Workspace.Setup {
		for _, word := range strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(" =@'\"", c) }) {
			made[word] = true
		}
	}
	for _, line := range pl.Config.Workspace.Setup {
		for _, program := range gate.Programs(line) {
			delete(made, program) // it is used, not made
		}
	}
	var missing []Missing
	for _, g := range gates {
		for _, program := range gate.Programs(g.Command) {
			if !made[program] && !pl.findProgram(program, "") {
				missing = append(missing, Missing{g.Name, program, g.Required})
			}
		}
	}
	return missing
}

// buildProtection lists the files that no agent may change unseen.
func (d draft) buildProtection() gate.Protect {
	v := &d.Config.Verification
	return gate.Protect{Patterns: v.Protect, Allow: d.p.Allow, New: v.ProtectNew}
}

// checkPatterns refuses a pattern that could match nothing: a file that is
// thought to be protected would not be.
func (d draft) checkPatterns() error {
	type patterns struct {
		path     string
		patterns []string
	}
	lists := []patterns{{"verification.protect", d.Config.Verification.Protect},
		{"procedures." + d.name + ".allow", d.p.Allow}, {"review.when.paths", d.Config.Review.When.Paths}}
	for i, g := range d.Config.Verification.Commands {
		lists = append(lists, patterns{fmt.Sprintf("verification.commands[%d].affected", i), g.Affected})
	}
	for i, r := range d.Config.Merge.Regenerate {
		lists = append(lists, patterns{fmt.Sprintf("merge.regenerate[%d].files", i), r.Files})
	}
	for _, list := range lists {
		for i, pattern := range list.patterns {
			if err := gate.CheckPattern(pattern); err != nil {
				return fault.Of(fault.Refused, d.Config.ErrorAt(fmt.Sprintf("%s[%d]", list.path, i), "", err.Error()))
			}
		}
	}
	return nil
}

// HooksOf are the configured hooks: by event, and the general one.
func HooksOf(c *config.Config) (own map[hook.Name]*config.Hook, general *config.Hook) {
	h := c.Hooks
	return map[hook.Name]*config.Hook{
		hook.Start: h.OnStart, hook.Complete: h.OnComplete, hook.PreMerge: h.PreMerge, hook.PostMerge: h.PostMerge,
		hook.Conflict: h.OnConflict, hook.Pause: h.OnPause, hook.Error: h.OnError, hook.Escalation: h.OnEscalation,
		hook.Budget: h.OnBudget, hook.SprintStart: h.OnSprintStart, hook.SprintEnd: h.OnSprintEnd,
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
		o.Any = new(command(general))
	}
	for i, n := range c.Notify {
		to := hook.Receiver{Label: fmt.Sprintf("notify[%d]", i), Desktop: n.Desktop, Timeout: n.Timeout.Std()}
		to.Events = append(to.Events, lists.Each(n.Events, func(e string) hook.Name { return hook.Name(e) })...)
		if n.Command != "" {
			to.Command = &hook.Command{Line: n.Command, Timeout: n.Timeout.Std(), Boxed: n.Sandbox}
		}
		if n.Webhook != "" {
			web, err := webhookOf(n, getenv)
			if err != nil {
				left = append(left, fmt.Sprintf("%s is not notified: %v", to.Label, err))
				continue
			}
			to.Webhook = &web
		}
		o.Receivers = append(o.Receivers, to)
	}
	return o, left
}

// variable is ${NAME}. A $ alone stays as it is.
var variable = lazy.Regexp(`\$\{[^}]*\}`)

// webhookOf puts the values of variables in.
func webhookOf(n config.Notification, getenv func(string) string) (hook.Webhook, error) {
	var missing []string
	fill := func(text string) string {
		return variable().ReplaceAllStringFunc(text, func(v string) string {
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
	switch missing = lists.Distinct(missing); len(missing) {
	case 0:
		return w, w.Check()
	case 1:
		return w, fmt.Errorf("the variable %s is not set", missing[0])
	}
	return w, fmt.Errorf("the variables %s are not set", strings.Join(missing, ", "))
}

// signoffGates ask whether what an agent committed since base is signed off, where merge.signoff wants that.
func (pl *Planner) signoffGates(base string) []gate.Spec {
	if !pl.Config.Merge.Signoff || base == "" {
		return nil
	}
	command := fmt.Sprintf(
		`bad=$(git log --no-merges --format=%%h --invert-grep --grep='^Signed-off-by: ' %[1]s..HEAD); test -z "$bad" ||`+
			` { echo "error: not signed off:" $bad; echo "Sign them off: git rebase --signoff %[1]s"; exit 1; }`, base)
	return []gate.Spec{{Name: "signoff", Command: command, Timeout: pl.Config.Verification.DefaultTimeout.Std(),
		Required: true}}
}
