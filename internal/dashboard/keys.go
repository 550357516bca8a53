package dashboard

import (
	"fmt"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/schedule"
)

// keyHelp is a key and what it does.
type keyHelp struct{ key, does string }

// help lists the keys of the main screen.
func (m *model) help() []keyHelp {
	leave := "leave; the autopilot goes on"
	if m.o.Own {
		leave = "end the autopilot (asks first)"
	}
	return []keyHelp{
		{"j k ↓ ↑", "choose a task"},
		{"l Enter", "read along: what its agent does"},
		{"a", "answer the task that needs you"},
		{"s", "stop the run of the chosen task (asks first)"},
		{"r", "try a failed task again"},
		{"p Space", "pause the autopilot, or go on"},
		{"m", "switch between auto and semi-auto"},
		{"S", "stop the autopilot and its runs (asks first)"},
		{"q", leave},
		{"?", "these keys"},
	}
}

// key takes one key press.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	if k.String() == "ctrl+c" {
		return m.interrupt()
	}
	switch m.panel {
	case helpPanel:
		m.panel = noPanel
		return nil
	case logPanel:
		return m.keyInLog(k.String())
	case answerPanel:
		return m.keyInAnswer(k)
	case confirmPanel:
		return m.keyInConfirm(k.String())
	}
	m.said = ""
	return m.keyInMain(k.String())
}

// interrupt is Ctrl+C: a request to end, which must never wait for a question.
func (m *model) interrupt() tea.Cmd {
	if !m.o.Own {
		m.leave = true
		return tea.Quit
	}
	m.panel = noPanel
	m.said, m.bad = "Ending the runs; Ctrl+C again ends them at once.", false
	return func() tea.Msg {
		m.o.Interrupt()
		return nil
	}
}

func (m *model) keyInMain(k string) tea.Cmd {
	switch k {
	case "j", "down":
		m.move(1)
	case "k", "up":
		m.move(-1)
	case "?":
		m.panel = helpPanel
	case "q":
		return m.quit()
	case "S":
		m.confirm(Action{Kind: StopAll}, "Stop the autopilot? Its runs end, their work is kept, tasks are pending again.")
	case "p", "space":
		return m.pause()
	case "m":
		to := schedule.SemiAuto
		if m.view.Mode == string(schedule.SemiAuto) {
			to = schedule.Auto
		}
		return m.do(Action{Kind: Mode, Text: string(to)})
	default:
		return m.keyOnRow(k)
	}
	return nil
}

// keyOnRow takes a key that means the row with the cursor.
func (m *model) keyOnRow(k string) tea.Cmd {
	r, ok := m.current()
	if !ok {
		return nil
	}
	switch k {
	case "l", "enter":
		return m.openLog(r)
	case "a":
		return m.answer(r)
	case "s":
		if r.slot == nil || r.slot.Run == "" {
			m.said, m.bad = "There is no run to stop: choose a task in a slot.", true
			return nil
		}
		m.confirm(Action{Kind: StopRun, Run: r.slot.Run},
			fmt.Sprintf("Stop %s? Its agent ends, its work is kept, the task is pending again.", r.slot.Case))
	case "r":
		if r.need == nil || r.need.What == board.Review {
			m.said, m.bad = "Only a task that failed, timed out or is blocked is tried again.", true
			return nil
		}
		return m.do(Action{Kind: Retry, Run: r.need.Run, Need: *r.need})
	}
	return nil
}

func (m *model) quit() tea.Cmd {
	if m.o.Own && m.view.Running {
		m.confirm(Action{Kind: StopAll}, "End the autopilot? Its runs end, their work is kept, tasks are pending again.")
		return nil
	}
	m.leave = true
	return tea.Quit
}

func (m *model) pause() tea.Cmd {
	if m.view.Phase == string(schedule.Paused) {
		return m.do(Action{Kind: Resume})
	}
	return m.do(Action{Kind: Pause})
}

func (m *model) confirm(d Action, ask string) {
	m.panel, m.pending, m.ask = confirmPanel, d, ask
}

func (m *model) keyInConfirm(k string) tea.Cmd {
	switch k {
	case "y", "Y":
		m.panel = noPanel
		return m.do(m.pending)
	case "n", "N", "esc", "q":
		m.panel = noPanel
	}
	return nil
}

func (m *model) openLog(r row) tea.Cmd {
	var run string
	if r.slot != nil {
		run = r.slot.Run
	} else {
		run = r.need.Run
	}
	if run == "" {
		m.said, m.bad = "It has no run yet.", true
		return nil
	}
	m.panel, m.logRun, m.log = logPanel, run, nil
	return m.readLog()
}

func (m *model) keyInLog(k string) tea.Cmd {
	switch k {
	case "esc", "q", "l", "enter":
		m.panel = noPanel
	case "j", "down", "k", "up":
		_ = m.keyInMain(k)
		if r, ok := m.current(); ok {
			return m.openLog(r)
		}
	}
	return nil
}

func (m *model) answer(r row) tea.Cmd {
	if r.need == nil {
		if len(m.view.NeedsYou) == 0 {
			m.said, m.bad = "Nothing needs an answer.", false
			return nil
		}
		r.need = &m.view.NeedsYou[0]
		m.selected = row{need: r.need}.id()
		m.keepCursor()
	}
	need := *r.need
	return func() tea.Msg {
		q, err := m.o.Question(m.ctx, need)
		return questionMsg{need: need, q: q, err: err}
	}
}

// keyInAnswer chooses a number, or types words.
func (m *model) keyInAnswer(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	switch {
	case name == "esc":
		m.panel = noPanel
		return nil
	case m.input.on && name == "enter":
		return m.send()
	case m.input.on:
		m.input.key(k)
		return nil
	case name == "w":
		m.input.on = true
		return nil
	}
	n, err := strconv.Atoi(name)
	if err != nil || n < 1 || n > len(m.question.Choices) {
		return nil
	}
	m.choice = n
	if m.question.Choices[n-1].Advice {
		m.input.on = true
		return nil
	}
	return m.send()
}

func (m *model) send() tea.Cmd {
	text := m.input.value()
	if m.choice == 0 && text == "" {
		return nil
	}
	m.panel = noPanel
	return m.do(Action{Kind: Answer, Run: m.need.Run, Need: m.need, Choice: m.choice, Text: text})
}
