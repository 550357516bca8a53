package planner

import (
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/gate"
)

// gates are the configuration's.
func (d draft) gates() []gate.Spec {
	var specs []gate.Spec
	for _, g := range d.Config.Verification.Gates() {
		specs = append(specs, gate.Spec{
			Name: g.Name, Command: g.Command, Timeout: g.Timeout.Std(), Required: g.Required, AllowEmpty: g.AllowEmpty,
			Retries: d.Config.Verification.Retries, Kind: g.Kind, Fixed: g.Timeout != d.Config.Verification.DefaultTimeout,
		})
	}
	return specs
}

// runnable looks up the programs of the gates, before anything is paid for. One that a
// set-up may install is not looked for, nor is one of an optional gate missed.
func (d draft) runnable() error {
	for _, m := range d.MissingPrograms() {
		if m.Required {
			return fault.Refuse("gate %q cannot run: %q is not a program of this machine", m.Gate, m.Program).
				Hint("Install it, or correct the gate's command in %s", d.Config.Name()).
				Hint("See what else is missing: pawl doctor")
		}
		d.warn("the optional gate %q cannot run: %q is not a program of this machine", m.Gate, m.Program)
	}
	return nil
}

// Missing is a program that a gate needs and that is not there.
type Missing struct {
	Gate, Program string
	Required      bool
}

// MissingPrograms are those of the gates that this machine does not have.
func (pl *Planner) MissingPrograms() []Missing {
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
	for _, g := range pl.Config.Verification.Gates() {
		for _, program := range gate.Programs(g.Command) {
			if !made[program] && !pl.findProgram(program, "") {
				missing = append(missing, Missing{g.Name, program, g.Required})
			}
		}
	}
	return missing
}

// protect is what no agent may change unseen.
func (d draft) protect() gate.Protect {
	return gate.Protect{Patterns: d.Config.Verification.Protect, Allow: d.p.Allow, New: d.Config.Verification.ProtectNew}
}

// checkPatterns refuses a pattern that could match nothing: a file that is
// thought to be protected would not be.
func (d draft) checkPatterns() error {
	type patterns struct {
		path     string
		patterns []string
	}
	lists := []patterns{{"verification.protect", d.Config.Verification.Protect},
		{"procedures." + d.name + ".allow", d.p.Allow}}
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
