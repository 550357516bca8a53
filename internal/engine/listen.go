package engine

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

// ask is something that came from outside.
type ask struct {
	event   loop.Event
	control int64 // the row that it came in
	raise   *raise
	kill    bool // without grace
}

// listen turns signals and control rows into asks until stop is called.
func (d *Driver) listen(ctx context.Context) (asks <-chan ask, stop func()) {
	out := make(chan ask, 16)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	store := d.o.Store // the owner may give the field up
	go func() {
		defer close(ended)
		d.listenTo(ctx, store, out)
	}()
	return out, func() { cancel(); <-ended }
}

// pollEvery is how soon a running run notices pawl stop and pawl pause.
const pollEvery = 150 * time.Millisecond

func (d *Driver) listenTo(ctx context.Context, store *sqlite.Store, asks chan<- ask) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	kill, stops, pauses := d.o.Kill, d.o.Stops, d.o.Pauses
	for {
		select {
		case <-ctx.Done():
			return
		case <-kill:
			kill = nil
			d.killNow()
			send(ctx, asks, ask{event: loop.Event{Kind: loop.StopAsked, Cause: loop.CauseInterrupt}, kill: true})
		case cause, open := <-stops:
			if !open {
				stops = nil
				continue
			}
			send(ctx, asks, ask{event: loop.Event{Kind: loop.StopAsked, Cause: cause}})
		case _, open := <-pauses:
			if !open {
				pauses = nil
				continue
			}
			send(ctx, asks, ask{event: loop.Event{Kind: loop.PauseAsked}})
		case checked := <-d.checks:
			for _, a := range d.controls(ctx, store) {
				send(ctx, asks, a)
			}
			close(checked)
		case <-tick.C:
			for _, a := range d.controls(ctx, store) {
				send(ctx, asks, a)
			}
		}
	}
}

func send(ctx context.Context, asks chan<- ask, a ask) {
	select {
	case asks <- a:
	case <-ctx.Done():
	}
}

// controls reads what other processes ask of this run.
func (d *Driver) controls(ctx context.Context, store *sqlite.Store) []ask {
	if store == nil {
		return nil
	}
	rows, err := store.Controls(ctx, d.id)
	if err != nil {
		return nil // the next tick tries again; a database that stays away was warned of
	}
	var asks []ask
	for _, row := range rows {
		if d.seen[row.ID] {
			continue
		}
		d.seen[row.ID] = true
		switch row.Kind {
		case sqlite.ControlStop:
			asks = append(asks, ask{event: loop.Event{Kind: loop.StopAsked, Cause: loop.CauseStop}, control: row.ID})
		case sqlite.ControlPause:
			asks = append(asks, ask{event: loop.Event{Kind: loop.PauseAsked}, control: row.ID})
		case sqlite.ControlLimits:
			if r, ok := readRaise(row); ok {
				asks = append(asks, ask{event: loop.Event{Kind: loop.Raised}, raise: r, control: row.ID})
			}
		}
	}
	return asks
}
