package autopilot

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/autopilot/overview"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// This file shows in a terminal what 'pawl autopilot status' prints, drawn again and
// again over itself. It is looked at only: whatever a person wants done is a command in
// another terminal, or a button in the browser.

// dashboard is a screen that is looked at.
type dashboard struct {
	out      io.Writer // a terminal
	readText func(context.Context) (string, error)
	mayLeave func() bool // whether the person has seen enough; nil never is
	hint     string      // the last line: how to leave, or to end the autopilot
}

// drawEvery is how often the dashboard is drawn by itself.
const drawEvery = 500 * time.Millisecond

const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[2J" // the other screen, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
)

// drawUntilLeft draws until the person leaves or ctx ends, at once when woken.
func (d *dashboard) drawUntilLeft(ctx context.Context, woken <-chan struct{}) {
	tick := time.NewTicker(drawEvery)
	defer tick.Stop()
	_, _ = io.WriteString(d.out, enterScreen)
	defer func() { _, _ = io.WriteString(d.out, leaveScreen) }()
	text := ""
	for {
		now, err := d.readText(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil { // what was seen last stays
			now = "Cannot read the board: " + report.Line(err.Error(), 300) + "\n" + text
		} else {
			text = now
		}
		width, height := console.Size(d.out)
		lines := fitScreen(now, d.hint, width, height)
		_, _ = io.WriteString(d.out, "\x1b[H"+strings.Join(lines, "\x1b[K\n")+"\x1b[K\x1b[J")
		if d.mayLeave != nil && d.mayLeave() {
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

// drawDuring draws while work runs, which is given a function that has the dashboard drawn
// at once.
func (d *dashboard) drawDuring(ctx context.Context, work func(wake func()) error) error {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // the end of the runs is to be seen, too
	woken := make(chan struct{}, 1)
	var drawing sync.WaitGroup
	drawing.Go(func() { d.drawUntilLeft(ctx, woken) })
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

// fitScreen returns the lines of a text with the hint below, never more than the height of
// the screen and none wider than its width.
func fitScreen(text, hint string, width, height int) []string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if room := max(height-2, 0); len(lines) > room {
		lines = append(lines[:max(room-1, 0)], "… for the rest: pawl autopilot status")
	}
	lines = append(lines, "", hint)
	return lists.Each(lines[:min(len(lines), max(height, 1))], func(line string) string {
		return ansi.Truncate(console.Visible(line), width, "…")
	})
}

// newDashboard looks at the autopilot of root.
func newDashboard(a *command.App, db *store.Store, root, hint string) *dashboard {
	return &dashboard{out: console.Raw(a.Stderr), hint: hint, readText: func(ctx context.Context) (string, error) {
		v, err := overview.Read(ctx, db, root)
		return dashboardText(a, v), err
	}}
}

// dashboardText returns what the status prints, and the latest events.
func dashboardText(a *command.App, v overview.View) string {
	var text strings.Builder
	shown := *a
	shown.Stdout, shown.Color = &text, "never"
	if a.Terminal().Color {
		shown.Color = "always"
	}
	printAutopilot(&shown, v)
	printEvents(&shown, v.Events)
	return text.String()
}

func topCommand(a *command.App) *cobra.Command {
	return command.Plain("top", "Watch the autopilot in this terminal", func(ctx context.Context) error {
		if !a.Interactive() {
			return command.Usage("'pawl top' needs a terminal").Hint("Print it once: pawl autopilot status")
		}
		return a.WithOperator(ctx, func(p *action.Operator) error {
			p.Store.OnWait(nil) // the dashboard has the screen
			d := newDashboard(a, p.Store, p.Root, "Enter quits; to follow an agent: pawl logs TASK -f")
			if f, ok := a.Stdin.(*os.File); ok {
				d.mayLeave = func() bool {
					typed := console.Waits(f)
					if typed {
						_, _ = f.Read(make([]byte, 4096)) // the shell would take it for its own
					}
					return typed
				}
			}
			d.drawUntilLeft(ctx, nil)
			return nil
		})
	})
}
