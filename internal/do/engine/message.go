package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/signal"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine/attemptdir"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// This file brings what people say to a run to its agent: at once where its program
// takes messages while it works, else in the next prompt. A message is a control row;
// which ones an attempt has told is noted with it before it does, and they count as
// taken when its iteration is recorded. So a crash loses none, and an attempt that a
// limit of the provider cut off leaves them for the next one. Of a workflow, the agent
// step that starts next is told.

// waitingMessages returns the messages that wait, oldest first, and their rows. When the
// database cannot be read there are none, and they come later.
func (s *session) waitingMessages(ctx context.Context) (texts []string, rows []int64) {
	open, err := s.o.Store.Controls(ctx, s.id)
	if err != nil {
		s.warn(err.Error())
		return nil, nil
	}
	for _, r := range open {
		if r.Kind == store.ControlMessage {
			texts, rows = append(texts, r.Text), append(rows, r.ID)
		}
	}
	return texts, rows
}

// warnOfUnread warns of messages that no agent was told.
func (d *Driver) warnOfUnread(ctx context.Context) {
	if d.state.Status != loop.Completed {
		return // it can go on
	}
	if texts, _ := d.waitingMessages(ctx); len(texts) > 0 {
		d.warn(fault.Numbered(len(texts), "message") + " reached no agent: none started after it")
	}
}

const (
	lookEvery = 100 * time.Millisecond // how soon a stop, a pause or a new limit is noticed
	tickEvery = time.Second            // between two ticks
)

// Look returns what was asked of the run since the last look: by signals, by
// the context's end and by control rows.
func (d home) Look(ctx context.Context) ([]input, error) {
	if now := time.Now(); now.Sub(d.ticked) >= tickEvery {
		d.ticked = now
		d.notify(Notice{Kind: Tick})
	}
	var asks []input
	ask := func(e loop.Event) { asks = append(asks, input{ask: true, event: e}) }
	if ctx.Err() != nil && !d.ended {
		d.ended = true
		ask(loop.Event{Kind: loop.StopAsked, Cause: loop.CauseInterrupt})
	}
	select {
	case <-d.kill:
		d.kill = nil
		d.jobs.Kill()
		d.cut()
		ask(loop.Event{Kind: loop.StopAsked, Cause: loop.CauseInterrupt})
	default:
	}
	select {
	case cause, open := <-d.stops:
		if open {
			ask(loop.Event{Kind: loop.StopAsked, Cause: cause})
		} else {
			d.stops = nil
		}
	default:
	}
	select {
	case _, open := <-d.pauses:
		if open {
			ask(loop.Event{Kind: loop.PauseAsked})
		} else {
			d.pauses = nil
		}
	default:
	}
	return append(asks, d.controls(context.WithoutCancel(ctx))...), nil
}

// controls reads what other processes ask of this run.
func (d *Driver) controls(ctx context.Context) []input {
	rows, err := d.o.Store.Controls(ctx, d.id)
	if err != nil {
		return nil // the next look tries again; a database that stays away was warned of
	}
	var asks []input
	for _, row := range rows {
		if d.seen[row.ID] {
			continue
		}
		if row.Kind == store.ControlMessage {
			d.worker.hearing.Pass(row.ID, row.Text, d.warn)
			continue
		}
		d.seen[row.ID] = true
		in := input{ask: true, control: row.ID}
		switch row.Kind {
		case store.ControlStop:
			in.event = loop.Event{Kind: loop.StopAsked, Cause: cmp.Or(loop.Cause(row.Text), loop.CauseStop)}
		case store.ControlPause:
			in.event = loop.Event{Kind: loop.PauseAsked}
		case store.ControlLimits:
			in.event, in.raise = loop.Event{Kind: loop.Raised}, &storedrun.Raise{}
			if json.Unmarshal([]byte(row.Text), in.raise) != nil {
				continue // of another version
			}
		default:
			continue
		}
		asks = append(asks, in)
	}
	return asks
}

// completeRaise completes what was asked with the policy, and keeps its flags with the
// run's.
func (d *Driver) completeRaise(a *input) {
	a.event.Policy = storedrun.RaisedPolicy(d.state.Policy, a.raise.Limits)
	if len(a.raise.Flags) == 0 {
		return
	}
	flags := map[string]json.RawMessage{}
	if len(d.setup.Flags) > 0 && json.Unmarshal(d.setup.Flags, &flags) != nil {
		return // of a version that stores them otherwise
	}
	maps.Copy(flags, a.raise.Flags)
	d.setup.Flags, d.fresh = storedrun.Encode(flags), true
}

// readTools takes in what an agent said by pawl's tools. It is a claim like what a
// message says, which counts before it.
func (w *worker) readTools(ctx context.Context, r *loop.Record, p attemptdir.Folder) {
	if !w.plan.Agents[r.Agent].Tools || !r.Valid() {
		return
	}
	claim, progress, proposed := p.ReadTools()
	if r.Progress < 0 {
		r.Progress = progress
	}
	if r.Signal.Kind == signal.None {
		r.Signal = claim
	}
	w.proposeTasks(ctx, r, proposed)
}

// proposeTasks puts tasks on the board that a person has to allow. One that is there
// already, since before a crash, stays.
func (w *worker) proposeTasks(ctx context.Context, r *loop.Record, proposed []agent.Said) {
	if len(proposed) == 0 {
		return
	}
	own, _ := w.o.Store.Case(ctx, board.TaskOf(w.plan.Name)) // of another kind of run there is none
	for i, s := range proposed {
		c := board.FollowUp(own.Ref, fmt.Sprintf("%s.%d.%d.%d", w.id, r.Number, r.Attempt, i+1), s.Title, s.Text)
		_, err := w.o.Store.AddCases(ctx, []board.Draft{{Case: c}}, board.Pawl, time.Now())
		var wrong *board.ProblemsError
		isThere := errors.As(err, &wrong) && wrong.AllKnown()
		if err != nil && !isThere {
			w.warn(fmt.Sprintf("cannot add a task that the agent proposed: %v", err))
		}
	}
}
