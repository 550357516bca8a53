package dashboard

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/console"
)

// Options is what a dashboard shows.
type Options struct {
	Look func(context.Context) (autopilot.View, error)
	// Next is the command that helps with what needs a person.
	Next func(autopilot.Need) string
	// Leave is asked twice a second whether the person has seen enough; nil never is.
	Leave func() bool
	Out   io.Writer // a terminal
	Color bool
	Hint  string // the last line: how to leave, or to end the autopilot
}

// Every is how often the dashboard looks by itself.
const Every = 500 * time.Millisecond

const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[2J" // the other screen, without a cursor
	leave = "\x1b[?25h\x1b[?1049l"
)

// Watch shows the dashboard until the person leaves or ctx ends.
func Watch(ctx context.Context, o Options) { watch(ctx, o, nil) }

// Own shows the dashboard while work runs, which is given a function that makes
// the dashboard look at once.
func Own(ctx context.Context, o Options, work func(wake func()) error) error {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // the end of the runs is to be seen, too
	woken := make(chan struct{}, 1)
	var drawing sync.WaitGroup
	drawing.Go(func() { watch(ctx, o, woken) })
	err := work(func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	stop()
	drawing.Wait()
	return err
}

func watch(ctx context.Context, o Options, woken <-chan struct{}) {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	_, _ = io.WriteString(o.Out, enter)
	defer func() { _, _ = io.WriteString(o.Out, leave) }()
	s := screen{o: o}
	for {
		if s.look(ctx); ctx.Err() != nil {
			return
		}
		s.width, s.height = console.Size(o.Out)
		_, _ = io.WriteString(o.Out, "\x1b[H"+strings.Join(s.lines(), "\x1b[K\n")+"\x1b[K\x1b[J")
		if o.Leave != nil && o.Leave() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-woken:
		}
	}
}

// screen is what is shown of the last look.
type screen struct {
	o             Options
	view          autopilot.View
	seen          bool  // view has been read
	trouble       error // of the last look
	now           time.Time
	width, height int
}

func (s *screen) look(ctx context.Context) {
	v, err := s.o.Look(ctx)
	if s.trouble = err; err == nil {
		s.view, s.seen = v, true
	}
	s.now = time.Now()
}
