// Package drive runs a kernel: it asks what is to be done now, has it carried
// out, hands the event that answers it to the kernel, and asks again.
//
//	command ─▶ carried out ─▶ event ─▶ Step ─▶ stored ─▶ command …
//
// One goroutine, that of [Run], owns the kernel's state. A command is carried
// out on a second one, so that a person can ask meanwhile; at most one command
// is under way, and its end is always waited for.
//
// The package decides nothing and stores nothing: which command follows, and
// what is kept of it, is up to the [Home].
package drive

import (
	"context"
	"time"
)

// Command is what a kernel wants done now.
type Command[E any] struct {
	// Seq numbers commands. While it stays the same, the command that is under way
	// continues.
	Seq int
	// Do carries the command out and returns the event that answers it. A done
	// context ends it early.
	Do func(ctx context.Context) E
	// Alone has the owner itself carry the command out: no other event is
	// taken meanwhile.
	Alone bool
	// Stop ends the command early. Its event counts all the same.
	Stop bool
}

// Home is where a kernel lives: it keeps the state and knows how commands are
// carried out. Only the goroutine of [Run] calls it.
type Home[E any] interface {
	// Command is what the state asks for; false when nothing is left to do.
	Command() (Command[E], bool)
	// Take hands an event to the kernel and stores what follows from it, before
	// anything is done about it.
	Take(ctx context.Context, e E) error
	// Look returns what others asked or did since the last look.
	Look(ctx context.Context) ([]E, error)
}

// Sources are the events from outside.
type Sources[E any] struct {
	Every  time.Duration   // between two looks; positive
	Idle   time.Duration   // between two looks when many found nothing; 0 is Every
	Events <-chan E        // taken at once; may be nil
	Wake   <-chan struct{} // looked at once; may be nil
}

// idleAfter is how many looks in a row that find nothing are many.
const idleAfter = 20

// Run drives the kernel until nothing is left to do, or its home fails. A done
// context ends nothing by itself: the home is asked to look once more, and
// says what follows.
func Run[E any](ctx context.Context, home Home[E], from Sources[E]) error {
	d := driver[E]{home: home, from: from}
	for {
		c, more := home.Command()
		if !more {
			return nil
		}
		var err error
		if c.Alone {
			err = home.Take(ctx, c.Do(ctx))
		} else {
			err = d.carryOutCommand(ctx, c)
		}
		if err != nil {
			return err
		}
	}
}

type driver[E any] struct {
	home    Home[E]
	from    Sources[E]
	waiting []E // seen by a look, and not yet taken
}

// carryOutCommand carries out one command and takes the events that come meanwhile. As
// soon as the kernel wants another one, this one is ended and its event dropped.
func (d *driver[E]) carryOutCommand(ctx context.Context, c Command[E]) error {
	work, stop := context.WithCancel(ctx)
	defer stop()
	answer := make(chan E, 1)
	go func() { answer <- c.Do(work) }()
	tick := time.NewTicker(d.from.Every)
	defer tick.Stop()
	ended, quiet := ctx.Done(), 0
	for {
		wanted, err := d.takeWaiting(ctx, c, stop)
		if err != nil || !wanted {
			stop()
			<-answer
			return err
		}
		select {
		case e := <-answer:
			return d.takeAnswer(ctx, c, e)
		case e := <-d.from.Events:
			d.waiting = append(d.waiting, e)
		case <-tick.C:
			err = d.takeEvents(ctx)
			if quiet++; quiet == idleAfter && d.from.Idle > 0 {
				tick.Reset(d.from.Idle)
			}
		case <-d.from.Wake:
			err = d.takeEvents(ctx)
		case <-ended:
			ended = nil
			err = d.takeEvents(ctx)
		}
		if err != nil {
			stop()
			<-answer
			return err
		}
		if len(d.waiting) > 0 {
			quiet = 0
			tick.Reset(d.from.Every)
		}
	}
}

// takeAnswer takes the event of a command. What was asked before it came counts
// first.
func (d *driver[E]) takeAnswer(ctx context.Context, c Command[E], e E) error {
	if err := d.takeEvents(ctx); err != nil {
		return err
	}
	wanted, err := d.takeWaiting(ctx, c, func() {})
	if err != nil || !wanted {
		return err
	}
	return d.home.Take(ctx, e)
}

func (d *driver[E]) takeEvents(ctx context.Context) error {
	events, err := d.home.Look(ctx)
	d.waiting = append(d.waiting, events...)
	return err
}

// takeWaiting takes what waits, as long as c is the command that the kernel
// wants, and says whether it still is. A command that is to end early is stopped.
func (d *driver[E]) takeWaiting(ctx context.Context, c Command[E], stop func()) (wanted bool, err error) {
	for {
		now, more := d.home.Command()
		if !more || now.Seq != c.Seq {
			return false, nil
		}
		if now.Stop {
			stop()
		}
		if len(d.waiting) == 0 {
			return true, nil
		}
		e := d.waiting[0]
		d.waiting = d.waiting[1:]
		if err := d.home.Take(ctx, e); err != nil {
			return false, err
		}
	}
}

// Sleep returns true when it is that time of day, also by a clock that is set
// meanwhile, and false when ctx is done first. A zero time never comes.
func Sleep(ctx context.Context, until time.Time) bool {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var over <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		over = timer.C
	}
	for {
		select {
		case <-over:
			return true
		case <-ctx.Done():
			return false
		case now := <-tick.C:
			if !until.IsZero() && !now.Before(until) {
				return true
			}
		}
	}
}
