package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/autopilot/overview"
	"github.com/pawl-dev/pawl/internal/keep/journal"
)

// Options is what a dashboard shows.
type Options struct {
	Look func(context.Context) (overview.View, error)
	// Next is the command that helps with what needs a person.
	Next func(overview.Need) string
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
func Watch(ctx context.Context, o Options) { watchBoard(ctx, o, nil) }

// Own shows the dashboard while work runs, which is given a function that makes
// the dashboard look at once.
func Own(ctx context.Context, o Options, work func(wake func()) error) error {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // the end of the runs is to be seen, too
	woken := make(chan struct{}, 1)
	var drawing sync.WaitGroup
	drawing.Go(func() { watchBoard(ctx, o, woken) })
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

func watchBoard(ctx context.Context, o Options, woken <-chan struct{}) {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	_, _ = io.WriteString(o.Out, enter)
	defer func() { _, _ = io.WriteString(o.Out, leave) }()
	s := screen{o: o}
	for {
		if s.readView(ctx); ctx.Err() != nil {
			return
		}
		s.width, s.height = console.Size(o.Out)
		_, _ = io.WriteString(o.Out, "\x1b[H"+strings.Join(s.allLines(), "\x1b[K\n")+"\x1b[K\x1b[J")
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
	view          overview.View
	seen          bool  // view has been read
	trouble       error // of the last look
	now           time.Time
	width, height int
}

func (s *screen) readView(ctx context.Context) {
	v, err := s.o.Look(ctx)
	if s.trouble = err; err == nil {
		s.view, s.seen = v, true
	}
	s.now = time.Now()
}

// style is a look with one meaning, as a terminal's code.
type style string

const (
	strong style = "1"
	faint  style = "2"
	bad    style = "31"
	good   style = "32"
	warn   style = "33"
)

func (s *screen) styleText(st style, text string) string {
	if !s.o.Color || text == "" {
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[0m"
}

// allLines are every line of the screen: never more than its height, none wider
// than its width. Events give way first, then what needs a person.
func (s *screen) allLines() []string {
	head, foot := s.headLines(), s.styleText(faint, s.o.Hint)
	room := s.height - len(head) - 2 // an empty line, and the foot
	var body []string
	if s.seen {
		slots, counts := s.slotLines(), []string{"", s.boardLine(), s.queueLine()}
		needs := s.needLines(room - len(slots) - len(counts))
		body = slices.Concat(slots, needs, counts)
		if left := room - len(body) - 2; left > 0 && len(s.view.Events) > 0 {
			body = append(append(body, "", s.styleText(strong, "Last")), s.eventLines(left)...)
		}
	}
	all := slices.Concat(head, body[:max(0, min(len(body), room))], []string{"", foot})
	all = all[:min(len(all), max(s.height, 1))]
	return lists.Each(all, func(line string) string { return ansi.Truncate(line, s.width, "…") })
}

// headLines says how the autopilot is and what is away, with an empty line at the end.
func (s *screen) headLines() []string {
	v := s.view
	trouble := ""
	if s.trouble != nil {
		trouble = "  " + s.styleText(bad, "Cannot read the board: "+report.Line(s.trouble.Error(), 300))
	}
	if !s.seen {
		return []string{s.styleText(strong, "pawl autopilot") + trouble, ""}
	}
	state := []string{s.phaseText()}
	if v.Sprint != "" {
		state = append(state, "sprint "+v.Sprint)
	}
	if host, err := os.Hostname(); err == nil && v.Running && v.Host != "" && v.Host != host {
		state = append(state, "driven on "+report.Line(v.Host, 40))
	}
	if v.Running {
		slots := fmt.Sprintf("%d of %d slots", len(v.Slots), v.MaxParallel)
		state = append(state, slots, shortTime(s.now.Sub(v.StartedAt)))
	}
	state = append(state, fmt.Sprintf("%d landed", v.Tally.Landed))
	var cost loop.MicroUSD
	for i := range v.Slots {
		cost += v.Slots[i].Cost
	}
	if cost > 0 {
		state = append(state, cost.String()+" in these runs")
	}
	lines := []string{s.styleText(strong, "pawl autopilot") + "  " + strings.Join(state, " · ") + trouble}
	for _, line := range v.Away {
		lines = append(lines, s.styleText(warn, report.Line(line, 400)))
	}
	return append(lines, "")
}

func (s *screen) phaseText() string {
	v, why := s.view, ""
	if v.PhaseReason() != "" {
		why = ": " + report.Line(v.PhaseReason(), 180)
	}
	switch {
	case v.Session == "":
		return s.styleText(warn, "none has run here; start it with: pawl autopilot")
	case v.Waits:
		return s.styleText(warn, "waits for a worker to drive it")
	case !v.Running && v.Phase != string(schedule.Finished):
		return s.styleText(bad, "killed; start it again with: pawl autopilot")
	case v.Phase == string(schedule.Running):
		return s.styleText(good, "running") + " (" + v.Mode + ")" + why
	case v.Phase == string(schedule.Finished):
		return "ended" + why
	}
	return s.styleText(warn, v.Phase) + why
}

func (s *screen) slotLines() []string {
	lines := []string{s.styleText(strong, "Slots")}
	for i := range s.view.Slots {
		lines = append(lines, s.slotLine(&s.view.Slots[i]))
	}
	if len(lines) == 1 {
		lines = append(lines, s.styleText(faint, "  nothing runs"))
	}
	return lines
}

func (s *screen) slotLine(l *overview.SlotView) string {
	cost := cmp.Or(loop.Money(l.Cost, l.CostKnown, l.CostPartial), "cost ?")
	waits := l.Phase == string(schedule.Working) && l.Status == string(loop.Waiting)
	does := report.Line(l.Activity, 200)
	if waits {
		does = strings.TrimPrefix(does, "waits: ")
	}
	if l.Host != "" {
		does = report.Line(l.Host, 20) + ": " + does
	}
	switch {
	case waits:
		does = s.styleText(warn, "waits") + " " + does
	case l.Phase != string(schedule.Working):
		does = s.styleText(warn, l.Phase) + " " + does
	}
	iteration, runs := console.Of(l.Iteration, l.MaxIterations), shortTime(s.now.Sub(l.Since))
	return "  " + padTo(l.Case, 10) + padTo(iteration, 6) + padTo(runs, 7) + padTo(cost, 8) +
		padTo(report.Line(l.Title, 80), min(40, s.width/3)) + does
}

// needLines show what waits for a person, in at most room lines, each with the
// command that helps.
func (s *screen) needLines(room int) []string {
	all := s.view.NeedsYou
	if len(all) == 0 {
		return nil
	}
	lines := []string{"", s.styleText(warn, fmt.Sprintf("Needs you (%d)", len(all)))}
	for i := range all {
		n := &all[i]
		if len(lines)+2 > room {
			return append(lines, fmt.Sprintf("  and %d more: pawl autopilot status", len(all)-i))
		}
		text := report.Line(n.Title, 80)
		if n.Why != "" {
			text += s.styleText(faint, " — "+report.Line(n.Why, 200))
		}
		lines = append(lines, "  "+padTo(n.Case, 10)+s.styleText(warn, padTo(string(n.What), 8))+text,
			s.styleText(faint, "             "+s.o.Next(*n)))
	}
	return lines
}

func (s *screen) boardLine() string {
	styles := map[board.Status]style{
		board.Failed: bad, board.Timeout: bad, board.Blocked: warn, board.Review: warn, board.Done: good,
	}
	var parts []string
	for _, status := range board.Statuses {
		n := s.view.Board[status]
		if n == 0 {
			continue
		}
		text := fmt.Sprintf("%d %s", n, status)
		if st, ok := styles[status]; ok {
			text = s.styleText(st, text)
		}
		if status == board.Pending {
			text += fmt.Sprintf(" (%d ready)", s.view.Ready)
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		parts = append(parts, s.styleText(faint, "empty; add a task with: pawl case add TITLE"))
	}
	return s.styleText(strong, "Board") + "  " + strings.Join(parts, " · ")
}

func (s *screen) queueLine() string {
	text := s.styleText(faint, "nothing to land")
	if s.view.Queued > 0 {
		text = fmt.Sprintf("%d on their way", s.view.Queued)
	}
	if s.view.QueueHeld != "" {
		text += "  " + s.styleText(warn, report.Line(s.view.QueueHeld, 200))
	}
	for _, plan := range s.view.Plans {
		text += "  " + report.Line(plan, 200)
	}
	return s.styleText(strong, "Queue") + "  " + text
}

func (s *screen) eventLines(n int) []string {
	var lines []string
	for _, e := range s.view.Events[:min(n, len(s.view.Events))] {
		text := strings.TrimSpace(e.Task.Case + " " + e.Kind)
		switch e.Kind {
		case journal.TaskStarted:
			text = e.Task.Case + " started"
		case journal.TaskLanded:
			text = e.Task.Case + " " + s.styleText(good, "landed")
		case journal.TaskSettled:
			text = e.Task.Case + " " + board.Action(e.Task.Action).Outcome()
		case journal.Alerted:
			text = s.styleText(warn, "attention")
		}
		for _, more := range []string{e.Text, e.Task.Why} {
			if more != "" {
				text += ": " + report.Line(more, 200)
			}
		}
		lines = append(lines, s.styleText(faint, e.At.Local().Format("  15:04:05 "))+text)
	}
	return lines
}

// padTo returns a text of exactly n columns and one between.
func padTo(text string, n int) string {
	text = ansi.Truncate(text, n, "…")
	return text + strings.Repeat(" ", max(0, n-ansi.StringWidth(text))+1)
}

// shortTime shows a time in whole seconds.
func shortTime(d time.Duration) string {
	d = max(0, d).Truncate(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}
