package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/store"
)

// This file raises the limits of a run while it works. What a person allows is
// a control row, which the process that drives the run takes at its next look:
// the kernel decides by the new limits from then on, and the flags that are
// stored with the run change with them, so that a later resume keeps them. The
// iteration under way keeps the limits that it began with.

// raise is such a row.
type raise struct {
	journal.Limits
	// Flags are those that the limits came from, to be merged by name into the
	// run's own; empty for a task, whose limits are stored with the case.
	Flags map[string]json.RawMessage `json:"flags,omitempty"`
}

// AskRaise asks the process that drives a run for higher limits, and returns
// the id of the row. flags is a JSON object, or nil.
func AskRaise(ctx context.Context, db *store.Store, run string, to journal.Limits, flags json.RawMessage,
) (int64, error) {
	r := raise{Limits: to}
	if len(flags) > 0 {
		if err := json.Unmarshal(flags, &r.Flags); err != nil {
			return 0, fmt.Errorf("cannot read the flags of run %s: %v", run, err)
		}
	}
	return db.AddControl(ctx, store.Control{Run: run, Kind: store.ControlLimits, Text: string(encode(r)),
		At: time.Now()})
}

// over is the policy with the limits that were named.
func over(p loop.Policy, l journal.Limits) *loop.Policy {
	if l.MaxIterations != nil {
		p.MaxIterations = *l.MaxIterations
	}
	if l.MaxCost != nil {
		p.MaxCost = *l.MaxCost
	}
	if l.Timeout > 0 {
		p.Timeout = l.Timeout
	}
	if l.TaskTimeout > 0 {
		p.TaskTimeout = l.TaskTimeout
	}
	return &p
}

// allow completes what was asked with the policy, and keeps its flags with the
// run's.
func (d *Driver) allow(a *input) {
	a.event.Policy = over(d.state.Policy, a.raise.Limits)
	if len(a.raise.Flags) == 0 {
		return
	}
	flags := map[string]json.RawMessage{}
	if len(d.setup.Flags) > 0 && json.Unmarshal(d.setup.Flags, &flags) != nil {
		return // of a version that stores them otherwise
	}
	maps.Copy(flags, a.raise.Flags)
	d.setup.Flags, d.fresh = encode(flags), true
}

// raisedText says what a run may from now on.
func raisedText(l journal.Limits) string {
	var parts []string
	if n := l.MaxIterations; n != nil && *n > 0 {
		parts = append(parts, fmt.Sprintf("%d iterations", *n))
	} else if n != nil {
		parts = append(parts, "any number of iterations")
	}
	if l.MaxCost != nil {
		parts = append(parts, l.MaxCost.String())
	}
	for _, t := range []time.Duration{l.Timeout, l.TaskTimeout} {
		if t > 0 {
			parts = append(parts, loop.Duration(t))
		}
	}
	return strings.Join(parts, ", ")
}
