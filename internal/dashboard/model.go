package dashboard

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/loop"
)

// panel is what covers the lower part of the screen.
type panel int

const (
	noPanel panel = iota
	helpPanel
	logPanel
	answerPanel
	confirmPanel
)

// row is something that the cursor can be on: a slot, or a task that needs a
// person.
type row struct {
	slot *autopilot.SlotView
	need *autopilot.Need
}

// id names a row, so that the cursor stays on it when rows
// above it come and go.
func (r row) id() string {
	if r.slot != nil {
		return "slot " + r.slot.Case
	}
	return "need " + r.need.Case
}

type model struct {
	ctx context.Context
	o   Options

	view    autopilot.View
	seen    bool // view has been read
	looking bool // a look is under way
	again   bool // and another was asked for
	trouble error
	now     time.Time

	width, height int
	selected      string // id of the row with the cursor
	at            int    // its index, for when it is gone

	panel    panel
	log      []string
	logRun   string
	need     autopilot.Need // that is being answered
	question loop.Question
	choice   int // chosen, its words are being typed
	input    input
	pending  Action // that is being confirmed
	ask      string

	said  string // the result of the last action
	bad   bool
	leave bool
}

// Messages.
type (
	tickMsg   time.Time
	wakeMsg   struct{}
	overMsg   struct{}
	lookedMsg struct {
		view autopilot.View
		err  error
		at   time.Time
	}
	logMsg struct {
		run   string
		lines []string
		err   error
	}
	questionMsg struct {
		need autopilot.Need
		q    loop.Question
		err  error
	}
	doneMsg struct {
		said string
		err  error
	}
)

func newModel(ctx context.Context, o Options) *model {
	return &model{ctx: ctx, o: o, width: 80, height: 24}
}

// Init looks for the first time.
func (m *model) Init() tea.Cmd { return tea.Batch(m.look(), tick()) }

func tick() tea.Cmd { return tea.Tick(Every, func(t time.Time) tea.Msg { return tickMsg(t) }) }

// look reads what there is to show; one at a time.
func (m *model) look() tea.Cmd {
	if m.looking {
		m.again = true
		return nil
	}
	m.looking = true
	return func() tea.Msg {
		v, err := m.o.Look(m.ctx)
		return lookedMsg{view: v, err: err, at: time.Now()}
	}
}

func (m *model) readLog() tea.Cmd {
	run := m.logRun
	return func() tea.Msg {
		lines, err := m.o.Log(m.ctx, run)
		return logMsg{run: run, lines: lines, err: err}
	}
}

func (m *model) do(d Action) tea.Cmd {
	return func() tea.Msg {
		said, err := m.o.Do(m.ctx, d)
		return doneMsg{said: said, err: err}
	}
}

// Update takes a message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		cmd := m.key(msg)
		return m, cmd
	case tea.PasteMsg:
		if m.panel == answerPanel && m.input.on {
			m.input.insert(msg.Content)
		}
	case tickMsg:
		return m, tea.Batch(m.ticked(), tick())
	case wakeMsg:
		cmd := m.look()
		return m, cmd
	case overMsg:
		m.leave = true
		return m, tea.Quit
	case lookedMsg:
		cmd := m.looked(msg)
		return m, cmd
	case logMsg:
		m.logged(msg)
	case questionMsg:
		m.asked(msg)
	case doneMsg:
		m.said, m.bad = msg.said, msg.err != nil
		if msg.err != nil {
			m.said = msg.err.Error()
		}
		cmd := m.look()
		return m, cmd
	}
	return m, nil
}

func (m *model) ticked() tea.Cmd {
	if m.panel == logPanel {
		return tea.Batch(m.look(), m.readLog())
	}
	return m.look()
}

func (m *model) looked(msg lookedMsg) tea.Cmd {
	m.looking = false
	if m.trouble = msg.err; msg.err == nil {
		m.view, m.seen = msg.view, true
	}
	m.now = msg.at
	m.keepCursor()
	if m.again {
		m.again = false
		return m.look()
	}
	return nil
}

func (m *model) logged(msg logMsg) {
	if m.panel != logPanel || msg.run != m.logRun {
		return
	}
	m.log = msg.lines
	if msg.err != nil {
		m.log = []string{"Cannot read it: " + msg.err.Error()}
	}
}

func (m *model) asked(msg questionMsg) {
	if msg.err != nil {
		m.said, m.bad = msg.err.Error(), true
		return
	}
	m.panel, m.need, m.question, m.choice = answerPanel, msg.need, msg.q, 0
	m.input.reset()
	m.input.on = len(msg.q.Choices) == 0
}

// rows are what the cursor can be on, from the top.
func (m *model) rows() []row {
	rows := make([]row, 0, len(m.view.Slots)+len(m.view.NeedsYou))
	for i := range m.view.Slots {
		rows = append(rows, row{slot: &m.view.Slots[i]})
	}
	for i := range m.view.NeedsYou {
		rows = append(rows, row{need: &m.view.NeedsYou[i]})
	}
	return rows
}

// keepCursor leaves the cursor on its row; when that is gone, on the one that
// took its place.
func (m *model) keepCursor() {
	rows := m.rows()
	for i, r := range rows {
		if r.id() == m.selected {
			m.at = i
			return
		}
	}
	m.at = max(0, min(m.at, len(rows)-1))
	m.selected = ""
	if len(rows) > 0 {
		m.selected = rows[m.at].id()
	}
}

func (m *model) current() (row, bool) {
	for _, r := range m.rows() {
		if r.id() == m.selected {
			return r, true
		}
	}
	return row{}, false
}

func (m *model) move(by int) {
	rows := m.rows()
	if len(rows) == 0 {
		return
	}
	m.at = max(0, min(m.at+by, len(rows)-1))
	m.selected = rows[m.at].id()
}
