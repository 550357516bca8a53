package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/schedule"
)

// Few styles, each with one meaning.
var (
	strong = lipgloss.NewStyle().Bold(true)
	faint  = lipgloss.NewStyle().Faint(true)
	good   = lipgloss.NewStyle().Foreground(lipgloss.Green)
	warn   = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	bad    = lipgloss.NewStyle().Foreground(lipgloss.Red)
)

// View draws the screen.
func (m *model) View() tea.View {
	var v tea.View
	v.AltScreen = true
	v.WindowTitle = "pawl autopilot"
	if !m.leave {
		v.SetContent(strings.Join(m.screen(), "\n"))
	}
	return v
}

// screen is every line of it: never more than the height, none wider than the
// width.
func (m *model) screen() []string {
	head, foot := m.head(), m.foot()
	room := max(0, m.height-len(head)-len(foot))
	var body []string
	switch m.panel {
	case helpPanel:
		body = m.helpBody()
	case logPanel:
		body = m.logBody(room)
	case answerPanel:
		body = m.answerBody(room)
	default:
		body = m.body(room)
	}
	lines := slices.Concat(head, body[:min(len(body), room)])
	for len(lines) < m.height-len(foot) {
		lines = append(lines, "")
	}
	lines = append(lines, foot...)
	lines = lines[:min(len(lines), max(m.height, 1))]
	for i, l := range lines {
		lines[i] = ansi.Truncate(l, m.width, "…")
	}
	return lines
}

// head says how the autopilot is, in one line and an empty one.
func (m *model) head() []string {
	v := m.view
	if !m.seen {
		text := "Reading the board…"
		if m.trouble != nil {
			text = bad.Render("Cannot read the board: " + report.Line(m.trouble.Error(), 300))
		}
		return []string{strong.Render("pawl autopilot") + "  " + text, ""}
	}
	state := []string{m.phase()}
	if v.Sprint != "" {
		state = append(state, "sprint "+v.Sprint)
	}
	if v.Running {
		state = append(state, fmt.Sprintf("%d of %d slots", len(v.Slots), v.MaxParallel), short(m.now.Sub(v.StartedAt)))
	}
	state = append(state, fmt.Sprintf("%d landed", v.Tally.Landed))
	if cost, known := m.cost(); cost > 0 || known {
		state = append(state, cost.String()+" in these runs")
	}
	line := strong.Render("pawl autopilot") + "  " + strings.Join(state, faint.Render(" · "))
	if m.trouble != nil {
		line += "  " + bad.Render("Cannot read the board: "+report.Line(m.trouble.Error(), 300))
	}
	return []string{line, ""}
}

func (m *model) phase() string {
	v := m.view
	why := ""
	if v.Why != "" {
		why = ": " + report.Line(v.Why, 120)
	}
	switch {
	case v.Session == "":
		return warn.Render("none has run here; start it with: pawl autopilot")
	case !v.Running && v.Phase != string(schedule.Finished):
		return bad.Render("gone; start it again with: pawl autopilot")
	case v.Phase == string(schedule.Running):
		return good.Render("running") + " (" + v.Mode + ")" + why
	case v.Phase == string(schedule.Finished):
		return "ended" + why
	}
	return warn.Render(v.Phase) + why
}

// cost is what the runs in the slots have cost so far; known says that all of
// them say so.
func (m *model) cost() (sum loop.MicroUSD, known bool) {
	known = len(m.view.Slots) > 0
	for _, s := range m.view.Slots {
		sum += s.Cost
		known = known && s.CostKnown
	}
	return sum, known
}

// foot is the result of the last action, and the keys.
func (m *model) foot() []string {
	said := ""
	if m.said != "" {
		said = report.Line(m.said, 500)
		if m.bad {
			said = warn.Render(said)
		}
	}
	switch m.panel {
	case confirmPanel:
		return []string{warn.Render(m.ask), strong.Render("y yes · n no")}
	case helpPanel:
		return []string{said, faint.Render("any key: back")}
	case logPanel:
		return []string{said, faint.Render("j k another task · Esc back")}
	case answerPanel:
		if m.input.on {
			return []string{said, faint.Render("Enter send · Esc back")}
		}
		return []string{said, faint.Render("1-9 choose · w in your words · Esc back")}
	}
	leave := "q leave"
	if m.o.Own {
		leave = "q end"
	}
	pause := "p pause"
	if m.view.Phase == string(schedule.Paused) {
		pause = "p go on"
	}
	return []string{said, faint.Render("j k choose · l log · a answer · s stop · " + pause + " · m mode · ? keys · " +
		leave)}
}

// body is the main screen. What needs a person comes first when there is
// little room; events give way first.
func (m *model) body(room int) []string {
	if !m.seen {
		return nil
	}
	running, needs := m.slotLines(), m.needLines()
	counts := []string{m.boardLine(), m.queueLine()}
	left := room - len(counts) - 1
	if len(running)+len(needs)+2 > left {
		half := max(3, left/2)
		running = m.around(running, max(half, left-len(needs)-2), 0)
		needs = m.around(needs, left-len(running)-1, len(m.view.Slots))
	}
	body := slices.Concat(running, []string{""})
	if len(needs) > 0 {
		body = append(append(body, needs...), "")
	}
	body = append(body, counts...)
	if left := room - len(body) - 2; left > 0 && len(m.view.Events) > 0 {
		body = append(body, "", strong.Render("Last"))
		body = append(body, m.eventLines(left)...)
	}
	return body
}

// around cuts a section to n lines, its title first, so that the row with the
// cursor stays in sight; first is the index of its first row.
func (m *model) around(lines []string, n, first int) []string {
	if len(lines) <= n || n < 2 {
		return lines[:min(len(lines), max(n, 0))]
	}
	title, rows := lines[:1], lines[1:]
	n-- // the title
	from := 0
	if at := m.at - first; at >= n && at < len(rows) {
		from = at - n + 1
	}
	out := append(append([]string{}, title...), rows[from:from+n]...)
	if hidden := len(rows) - n; hidden > 0 {
		out[0] += faint.Render(fmt.Sprintf("  %d more, j k to see", hidden))
	}
	return out
}

func (m *model) slotLines() []string {
	lines := []string{strong.Render("Slots")}
	for i := range m.view.Slots {
		lines = append(lines, m.slotLine(&m.view.Slots[i]))
	}
	for n := len(m.view.Slots); m.view.Running && n < min(m.view.MaxParallel, 4); n++ {
		lines = append(lines, faint.Render("  free"))
	}
	if len(lines) == 1 {
		lines = append(lines, faint.Render("  nothing runs"))
	}
	return lines
}

func (m *model) slotLine(s *autopilot.SlotView) string {
	iteration := fmt.Sprintf("%d", s.Iteration)
	if s.MaxIterations > 0 {
		iteration = fmt.Sprintf("%d/%d", s.Iteration, s.MaxIterations)
	}
	line := m.mark(row{slot: s}) + cell(s.Case, 10) + cell(iteration, 6) + cell(short(m.now.Sub(s.Since)), 7)
	if m.width >= 90 { // the sum is in the first line of the screen
		cost := "cost ?"
		if s.CostKnown {
			cost = s.Cost.String()
		}
		line += cell(cost, 9)
	}
	does := report.Line(s.Activity, 200)
	switch {
	case s.Phase == string(schedule.Working) && s.Status == string(loop.Waiting):
		does = warn.Render("waits") + " " + does
	case s.Phase != string(schedule.Working):
		does = warn.Render(s.Phase) + " " + does
	}
	if m.width >= 64 {
		line += cell(report.Line(s.Title, 80), min(40, m.width/3))
		return line + does
	}
	if does == "" {
		does = report.Line(s.Title, 80)
	}
	return line + does
}

func (m *model) needLines() []string {
	if len(m.view.NeedsYou) == 0 {
		return nil
	}
	lines := []string{warn.Bold(true).Render(fmt.Sprintf("Needs you (%d)", len(m.view.NeedsYou)))}
	for i := range m.view.NeedsYou {
		n := &m.view.NeedsYou[i]
		what := cell(string(n.What), 8)
		if n.What == board.Failed || n.What == board.Timeout {
			what = bad.Render(what)
		}
		text := report.Line(n.Title, 80)
		if n.Why != "" {
			text += faint.Render(" — " + report.Line(n.Why, 200))
		}
		lines = append(lines, m.mark(row{need: n})+cell(n.Case, 10)+what+text)
	}
	return lines
}

// mark shows where the cursor is, also without colors.
func (m *model) mark(r row) string {
	if r.id() == m.selected {
		return strong.Render("▸ ")
	}
	return "  "
}

func (m *model) boardLine() string {
	parts := []string{}
	for _, s := range board.Statuses {
		n := m.view.Board[s]
		if n == 0 {
			continue
		}
		text := fmt.Sprintf("%d %s", n, s)
		switch s {
		case board.Failed, board.Timeout:
			text = bad.Render(text)
		case board.Blocked, board.Review:
			text = warn.Render(text)
		case board.Done:
			text = good.Render(text)
		}
		if s == board.Pending {
			text += fmt.Sprintf(" (%d ready)", m.view.Ready)
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		parts = append(parts, faint.Render("empty; add a task with: pawl case add TITLE"))
	}
	return strong.Render("Board") + "  " + strings.Join(parts, faint.Render(" · "))
}

func (m *model) queueLine() string {
	text := faint.Render("nothing to land")
	if m.view.Queued > 0 {
		text = fmt.Sprintf("%d on their way", m.view.Queued)
	}
	if m.view.QueueHeld != "" {
		text += "  " + warn.Render(report.Line(m.view.QueueHeld, 200))
	}
	return strong.Render("Queue") + "  " + text
}

func (m *model) eventLines(n int) []string {
	lines := []string{}
	for _, e := range m.view.Events[:min(n, len(m.view.Events))] {
		text := eventWord(&e)
		for _, more := range []string{e.Text, e.Task.Why} {
			if more != "" {
				text += ": " + report.Line(more, 200)
			}
		}
		lines = append(lines, faint.Render(e.At.Local().Format("  15:04:05 "))+text)
	}
	return lines
}

// eventWord is an event as words.
func eventWord(e *autopilot.Event) string {
	switch e.Kind {
	case journal.TaskStarted:
		return e.Task.Case + " started"
	case journal.TaskLanded:
		return e.Task.Case + " " + good.Render("landed")
	case journal.TaskSettled:
		return e.Task.Case + " " + e.Task.Action
	case journal.Alerted:
		return warn.Render("attention")
	}
	return strings.TrimSpace(e.Task.Case + " " + e.Kind)
}

func (m *model) helpBody() []string {
	lines := []string{strong.Render("Keys")}
	for _, h := range m.help() {
		lines = append(lines, "  "+cell(h.key, 11)+h.does)
	}
	return lines
}

func (m *model) logBody(room int) []string {
	title := strong.Render("Run " + m.logRun)
	if r, ok := m.current(); ok && r.slot != nil {
		title = strong.Render(r.slot.Case) + " " + report.Line(r.slot.Title, 100) + faint.Render("  run "+m.logRun)
	}
	lines := m.log
	if len(lines) == 0 {
		lines = []string{faint.Render("It has said nothing yet.")}
	}
	n := max(0, room-1)
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	out := []string{title}
	for _, l := range lines {
		out = append(out, report.Line(l, 2000))
	}
	return out
}

func (m *model) answerBody(room int) []string {
	out := []string{strong.Render(m.need.Case) + " " + report.Line(m.need.Title, 100), ""}
	text := []string{}
	for l := range strings.Lines(strings.Join(append([]string{m.question.Text}, m.question.Attempts...), "\n- ")) {
		text = append(text, strings.Split(ansi.Wrap(report.Line(l, 2000), m.width, ""), "\n")...)
	}
	most := max(1, room-len(m.question.Choices)-6)
	if len(text) > most {
		text = append(text[:most-1], faint.Render("… all of it: pawl show "+m.need.Run))
	}
	out = append(append(out, text...), "")
	for i, c := range m.question.Choices {
		line := fmt.Sprintf("  %d. %s", i+1, report.Line(c.Text, 200))
		if i+1 == m.choice {
			line = strong.Render(line)
		}
		out = append(out, line)
	}
	if m.input.on {
		out = append(out, "", m.input.view(m.width))
	}
	return out
}

// cell is a text of exactly n columns and one between.
func cell(text string, n int) string {
	text = ansi.Truncate(text, n, "…")
	return text + strings.Repeat(" ", max(0, n-lipgloss.Width(text))) + " "
}

// short shows a time in whole seconds.
func short(d time.Duration) string {
	d = max(0, d).Truncate(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}
