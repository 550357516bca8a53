package supervisor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/safety"
	"github.com/pawl-dev/pawl/internal/spool"
)

// agentLimit is what is kept of an agent's output, and of its events.
const agentLimit = 128 << 20

// Bounds of what is collected of one chunk: fifty supervisors run side by side.
const (
	flushAt    = 8 << 10 // bytes for the file
	flushNotes = 128
)

// meter reads an agent's stream while it comes: events go to the file and to
// the client, and a limit that is passed is told at once.
type meter struct {
	limits  Limits
	parser  agent.Parser
	lines   *agent.Lines
	totals  *agent.Collector
	file    *spool.Writer
	emit    func([]note)
	pass    func(loop.Ended, string) // a limit was passed
	dog     *watchdog
	bytes   int64        // of stdout
	silent  int64        // of them, since the last event that is known
	noise   atomic.Int64 // bytes of stderr
	passed  bool
	problem string // the parser failed on the stream
	rules   safety.Rules
	refused *safety.Finding

	lot    bytes.Buffer // events of the chunk at hand, as they go to the file
	encode *json.Encoder
	one    agent.Event // what is encoded
	notes  []note      // to the client
	kept   bool        // an event goes to the file
}

func newMeter(job Job, parser agent.Parser, emit func([]note), pass func(loop.Ended, string)) *meter {
	m := &meter{rules: job.Safety, limits: job.Limits, parser: parser, emit: emit, pass: pass, totals: agent.NewCollector(), dog: newWatchdog(job, pass)}
	m.encode = json.NewEncoder(&m.lot)
	m.totals.SetPrices(job.Prices)
	m.totals.SetModel(job.Model)
	m.file = spool.NewWriter(job.Files+".events.jsonl", agentLimit)
	m.lines = agent.NewLines(agent.LineCap, func(b []byte, cut bool) { m.parser.Line(b, cut, m.event) })
	return m
}

// take feeds the next bytes of the stream.
func (m *meter) take(p []byte) {
	m.bytes += int64(len(p))
	m.silent += int64(len(p))
	m.guard(func() { _, _ = m.lines.Write(p) })
	m.flush()
	m.printed()
}

// flush passes on the events of one chunk together: an agent that prints a
// million lines costs a write for each chunk and not for each line.
func (m *meter) flush() {
	if len(m.notes) == 0 {
		return
	}
	_, _ = m.file.Write(m.lot.Bytes())
	m.emit(m.notes)
	runtime.Gosched() // who writes to the client goes first, or all of a chunk waits there
	if m.lot.Reset(); m.lot.Cap() > 4*flushAt {
		m.lot = bytes.Buffer{} // of a long event
	}
	clear(m.notes)
	m.notes = m.notes[:0]
}

// finish takes the end of the stream and returns what it came to.
func (m *meter) finish() agent.Outcome {
	m.guard(func() {
		m.lines.Flush()
		m.parser.Close(m.event)
	})
	m.flush()
	_ = m.file.Close()
	return m.totals.Outcome()
}

// guard keeps a parser that panics on a hostile stream from taking the
// supervisor, and with it the agent, down. The rest is not parsed.
func (m *meter) guard(feed func()) {
	if m.problem != "" {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			m.problem = fmt.Sprintf("cannot parse the agent's output: %v", r)
		}
	}()
	feed()
}

func (m *meter) event(e agent.Event) {
	m.totals.Add(e)
	m.judge(e)
	if len(e.Command) > liveCommand {
		e.Command = strings.ToValidUTF8(e.Command[:liveCommand], "") + "…"
	}
	m.publish(e)
	if e.Kind != agent.Unknown {
		m.silent = 0
	}
	if m.passed {
		return
	}
	if why := m.over(); why != loop.NotEnded {
		m.passed = true
		m.pass(why, "")
		return
	}
	m.dog.see(e)
}

// judge ends the agent at a tool call that is forbidden: it runs already, so
// there is no grace.
func (m *meter) judge(e agent.Event) {
	if e.Kind != agent.ToolStart || m.passed {
		return
	}
	if f, found := m.rules.Tool(e.Tool, e.Command, e.Files); found {
		m.passed, m.refused = true, &f
		m.pass(loop.EndedDestructive, f.Reason())
	}
}

func (m *meter) publish(e agent.Event) {
	if m.notes == nil { // what grows leaves what it was behind
		m.notes = make([]note, 0, flushNotes)
		m.lot.Grow(flushAt + flushAt/2)
	}
	at := m.lot.Len()
	data := m.line(e)
	if data == nil {
		return
	}
	if e.Kind == agent.End && !m.kept { // the result has the end, so a silent program leaves no file
		m.lot.Truncate(at)
	} else {
		m.kept = true
	}
	if len(e.Text) > liveText {
		e.Text = strings.ToValidUTF8(e.Text[:liveText], "") + "…"
		at = m.lot.Len()
		data = m.line(e)
		m.lot.Truncate(at)
	}
	m.notes = append(m.notes, note{kind: e.Kind, data: bytes.Clone(data)})
	if m.lot.Len() > flushAt || len(m.notes) >= flushNotes {
		m.flush()
	}
}

// line adds the line of an event to the lot and returns it without its end, valid
// until the next one.
func (m *meter) line(e agent.Event) []byte {
	at := m.lot.Len()
	m.one = e
	if err := m.encode.Encode(&m.one); err != nil {
		m.lot.Truncate(at)
		return nil
	}
	return m.lot.Bytes()[at : m.lot.Len()-1]
}

// over names the limit that is passed: to reach it is allowed.
func (m *meter) over() loop.Ended {
	l := m.limits
	cost, _ := m.totals.Cost()
	switch {
	case l.Cost > 0 && cost > l.Cost:
		return loop.EndedCost
	case l.Tokens > 0 && m.totals.Tokens() > l.Tokens:
		return loop.EndedTokens
	case l.Calls > 0 && m.totals.Calls() > l.Calls:
		return loop.EndedCalls
	case l.Turns > 0 && m.totals.Turns() > l.Turns:
		return loop.EndedTurns
	}
	return loop.NotEnded
}
