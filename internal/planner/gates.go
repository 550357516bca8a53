package planner

import (
	"fmt"

	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/gate"
)

// gates are the configuration's.
func (d draft) gates() []gate.Spec {
	var specs []gate.Spec
	for _, g := range d.Config.Verification.Commands {
		specs = append(specs, gate.Spec{
			Name: g.Name, Command: g.Command, Timeout: g.Timeout.Std(), Required: g.Required, AllowEmpty: g.AllowEmpty,
			Retries: d.Config.Verification.Retries, Kind: g.Kind, Fixed: g.Timeout != d.Config.Verification.DefaultTimeout,
		})
	}
	return specs
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
