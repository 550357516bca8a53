package storedrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// ErrNoReader is that no prompt of a run follows that a message could be in.
var ErrNoReader = errors.New("no agent would read it")

// LeaveMessage keeps what a person says to the agent of a run, whether it runs
// or rests, for the next prompt. by is where it comes from, e.g. "cli".
func LeaveMessage(ctx context.Context, db *store.Store, r store.Run, text, by string) error {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return errors.New("the message is empty")
	case r.Status == string(loop.Completed):
		return fmt.Errorf("%w: run %s is completed", ErrNoReader, r.ID)
	}
	now := time.Now()
	c := store.Control{Run: r.ID, Kind: store.ControlMessage, Text: text, At: now}
	if _, err := db.AddControl(ctx, c); err != nil {
		return err
	}
	_, err := journal.Append(ctx, db, r.ID, now, journal.MessageLeft, journal.Asked{Text: text, By: by})
	return err
}

// Reply is a person's answer, as it waits in the database, as an event; false
// for a row that is none.
func Reply(c store.Control, p *loop.Policy) (loop.Event, bool) {
	e := loop.Event{Kind: loop.Answered, Policy: p, Text: c.Text}
	switch c.Kind {
	case store.ControlAnswer:
		return e, true
	case store.ControlChoice:
		number, text, _ := strings.Cut(c.Text, " ")
		e.Choice, _ = strconv.Atoi(number)
		e.Text = text
		return e, true
	case store.ControlReply:
		var to loop.Asks
		if json.Unmarshal([]byte(c.Text), &to) != nil || to.Step == "" {
			return loop.Event{}, false
		}
		e.Text, e.Replies = "", []loop.Asks{to}
		return e, true
	}
	return loop.Event{}, false
}

// Replies are all answers that wait for a run, oldest first, as one event: the
// newest, and of those to steps the newest to each. False is none.
func Replies(rows []store.Control, p *loop.Policy) (all loop.Event, ok bool) {
	for _, row := range rows {
		e, is := Reply(row, p)
		if !is {
			continue
		}
		if len(e.Replies) > 0 && len(all.Replies) > 0 {
			e.Replies = append(e.Replies, all.Replies...) // the first to a step counts
		}
		all, ok = e, true
	}
	return all, ok
}

// Raise is the text of a control row by which a person raises the limits of a run while
// it works. The process that drives the run takes it at its next look: from then on the
// kernel decides by the new limits, and the flags that are stored with the run change, so
// that a later resume keeps them. The iteration under way keeps the limits that it began with.
type Raise struct {
	journal.Limits
	// Flags are those that the limits came from, to be merged by name into the
	// run's own; empty for a task, whose limits are stored with the case.
	Flags map[string]json.RawMessage `json:"flags,omitempty"`
}

// AskRaise asks the process that drives a run for higher limits, and returns
// the id of the row. flags is a JSON object, or nil.
func AskRaise(ctx context.Context, db *store.Store, run string, to journal.Limits, flags json.RawMessage,
) (int64, error) {
	r := Raise{Limits: to}
	if len(flags) > 0 {
		if err := json.Unmarshal(flags, &r.Flags); err != nil {
			return 0, fmt.Errorf("cannot read the flags of run %s: %v", run, err)
		}
	}
	return db.AddControl(ctx, store.Control{Run: run, Kind: store.ControlLimits, Text: string(Encode(r)),
		At: time.Now()})
}

// RaisedPolicy is the policy with the limits that were named.
func RaisedPolicy(p loop.Policy, l journal.Limits) *loop.Policy {
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

// RaisedText says what a run may from now on.
func RaisedText(l journal.Limits) string {
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

// TakenBack returns the last rollback of a run since its last iteration; nil where there is none.
func TakenBack(ctx context.Context, db *store.Store, run string) (back *journal.Rollback, err error) {
	for e, err := range journal.Read(ctx, db, run, 0) {
		if err != nil {
			return nil, err
		}
		switch e.Kind {
		case journal.IterationEnded:
			back = nil
		case journal.RolledBack:
			back = &journal.Rollback{}
			if err := json.Unmarshal(e.Data, back); err != nil {
				return nil, fmt.Errorf("cannot read a rollback of run %s: %v", run, err)
			}
		}
	}
	return back, nil
}
