package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/store"
)

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
		d.jobs.kill()
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
	if d.o.Store == nil {
		return nil
	}
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
			d.worker.hearing.pass(row, d.warn)
			continue
		}
		d.seen[row.ID] = true
		in := input{ask: true, control: row.ID}
		switch row.Kind {
		case store.ControlStop:
			in.event = loop.Event{Kind: loop.StopAsked, Cause: loop.CauseStop}
		case store.ControlPause:
			in.event = loop.Event{Kind: loop.PauseAsked}
		case store.ControlLimits:
			in.event, in.raise = loop.Event{Kind: loop.Raised}, &raise{}
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
