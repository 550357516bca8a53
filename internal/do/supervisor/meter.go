package supervisor

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/spool"
)

// What is kept of an agent's output, its errors and its events: with what the files
// may have beyond that, a runaway agent takes at most 150 MB.
const (
	outputLimit = 100 << 20
	errorLimit  = 8 << 20
	eventLimit  = 24 << 20
)

const (
	flushAt     = 8 << 10  // bytes of events that are passed on together
	liveText    = 16 << 10 // of one event's text; the file has all of it
	liveCommand = 2000     // of one event's command, also in the file
)

// meter reads an agent's stream while it comes: events go to the file and to
// the client, and a limit that is passed ends the agent at once.
type meter struct {
	mu      sync.Mutex // the stream and the gateway call it
	metered bool       // the gateway counts: what the program says of its use is not needed
	limits  Limits
	parser  agent.Parser
	lines   *agent.Lines
	totals  *agent.Collector
	file    *spool.Writer
	emit    func([]json.RawMessage)
	pass    func(loop.Ended, string) // a limit was passed
	ended   func()                   // the program said that it is done; nil asks for nothing
	dog     *watchdog
	bytes   int64        // of stdout
	silent  int64        // of them, since the last event that is known
	noise   atomic.Int64 // bytes of stderr
	result  lastWord
	passed  bool
	problem string // the parser failed on the stream
	usage   *usage // the program's own count; nil is none
	rules   safety.Rules
	refused *safety.Finding

	out   *bufio.Writer     // to the file, a write for each chunk and not for each event
	live  []json.RawMessage // events of the chunk at hand, for the client
	bulk  int               // bytes of them
	wrote bool              // an event goes to the file
}

func newMeter(job Job, parser agent.Parser, emit func([]json.RawMessage), pass func(loop.Ended, string)) *meter {
	m := &meter{
		rules: job.Safety, limits: job.Limits, parser: parser, emit: emit, pass: pass,
		totals: agent.NewCollector(), dog: newWatchdog(job, pass), result: lastWord{came: make(chan struct{}, 1)},
	}
	m.totals.SetPrices(job.Prices)
	m.totals.SetModel(job.Model)
	m.file = spool.NewWriter(job.Files+".events.jsonl", eventLimit)
	m.out = bufio.NewWriterSize(m.file, flushAt)
	m.lines = agent.NewLines(agent.LineCap, func(b []byte, cut bool) { m.parser.Line(b, cut, m.onProgramEvent) })
	m.metered = job.Gateway != nil
	if !m.metered {
		m.usage = newUsage(job, time.Now(), parser, m.onProgramEvent)
	}
	return m
}

// feedStream feeds the next bytes of the stream.
func (m *meter) feedStream(p []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes += int64(len(p))
	m.silent += int64(len(p))
	m.withoutPanic(func() {
		_, _ = m.lines.Write(p)
		m.usage.readNewUsage(m.totals.Session())
	})
	m.flushEvents()
	m.checkPrinted()
}

// flushEvents passes on the events of one chunk together.
func (m *meter) flushEvents() {
	_ = m.out.Flush()
	if len(m.live) > 0 {
		m.emit(m.live)
		m.live, m.bulk = nil, 0
	}
}

// finishStream takes the end of the stream and returns the outcome.
func (m *meter) finishStream() agent.Outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.withoutPanic(func() {
		m.usage.readFinalUsage(m.totals.Session())
		m.usage.closeFile()
		m.lines.Flush()
		m.parser.Close(m.onProgramEvent)
	})
	m.flushEvents()
	_ = m.file.Close()
	return m.totals.Outcome()
}

// withoutPanic keeps a parser that panics on a hostile stream from taking the
// supervisor, and with it the agent, down. The rest is not parsed.
func (m *meter) withoutPanic(feed func()) {
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

// onProgramEvent takes an event of the program's stream. Where the gateway sees the calls
// themselves, the program's word for them would count them twice.
func (m *meter) onProgramEvent(e agent.Event) {
	if m.metered {
		switch e.Kind {
		case agent.UsageSeen, agent.CostSeen, agent.Retry:
			e = agent.Event{Kind: e.Kind, Model: e.Model, Turns: e.Turns, Sub: e.Sub}
			if e.Turns == 0 {
				return
			}
			e.Kind = agent.UsageSeen
		}
		e.Calls = 0
	}
	m.onAgentEvent(e)
}

// modelCall takes an event of the gateway.
func (m *meter) modelCall(e agent.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onAgentEvent(e)
	m.flushEvents()
}

func (m *meter) onAgentEvent(e agent.Event) {
	m.totals.Add(e)
	if e.Kind == agent.End && m.ended != nil {
		m.ended()
	}
	m.result.noteEvent(e)
	m.judgeTool(e)
	e.Command = fault.Cut(e.Command, liveCommand)
	m.publishEvent(e)
	if e.Kind != agent.Unknown {
		m.silent = 0
	}
	if m.passed {
		return
	}
	if ended := m.passedLimit(); ended != loop.NotEnded {
		why := ""
		if ended == loop.EndedPrice {
			why = agent.NoPrice(m.totals.Model(), "")
		}
		m.passed = true
		m.pass(ended, why)
		return
	}
	m.dog.countTools(e)
	m.warnNearLimit()
}

// warnNearLimit says once that the cost, or the calls, come near a limit.
func (m *meter) warnNearLimit() {
	l := &m.limits
	cost, _ := m.totals.Cost()
	ofCost := l.NearCost > 0 && cost >= l.NearCost
	ofCalls := l.NearCalls > 0 && m.totals.Calls() >= l.NearCalls
	if ofCost {
		l.NearCost = 0
	}
	if ofCalls {
		l.NearCalls = 0
	}
	if ofCost || ofCalls {
		m.publishEvent(agent.Event{Kind: agent.NearLimit, Cost: cost, Calls: m.totals.Calls()})
	}
}

// lastWord is the result that the program has printed, after which it may yet begin anew with a message.
type lastWord struct {
	at   atomic.Int64  // in Unix nanoseconds; 0 for none
	came chan struct{} // gets one when a result comes
}

func (l *lastWord) noteEvent(e agent.Event) {
	switch e.Kind {
	case agent.End:
		if e.Terminal == loop.TerminalMissing || e.Terminal == loop.TerminalNone {
			return // plain text has no last line that is known as such before its end
		}
		l.at.Store(time.Now().UnixNano())
		select {
		case l.came <- struct{}{}:
		default:
		}
	case agent.Text, agent.Thinking, agent.ToolStart:
		l.at.Store(0)
	}
}

// resultSince returns false while there is no result.
func (l *lastWord) resultSince() (time.Time, bool) {
	return time.Unix(0, l.at.Load()), l.at.Load() != 0
}

// judgeTool ends the agent at a tool call that is forbidden: it runs already, so
// there is no grace.
func (m *meter) judgeTool(e agent.Event) {
	if e.Kind != agent.ToolStart || m.passed {
		return
	}
	if f, found := m.rules.Tool(e.Tool, e.Command, e.Files); found {
		m.passed, m.refused = true, &f
		m.pass(loop.EndedDestructive, f.Reason())
	}
}

// publishEvent writes an event to the file and passes it on. The end is in the result
// too, so a silent program leaves no file.
func (m *meter) publishEvent(e agent.Event) {
	data, err := json.Marshal(e)
	if err != nil {
		return
	}
	if e.Kind != agent.End || m.wrote {
		m.wrote = true
		_, _ = m.out.Write(append(data, '\n'))
	}
	if len(e.Text) > liveText {
		e.Text = fault.Cut(e.Text, liveText)
		if data, err = json.Marshal(e); err != nil {
			return
		}
	}
	m.live = append(m.live, data)
	if m.bulk += len(data); m.bulk > flushAt {
		m.flushEvents()
	}
}

// passedLimit names the limit that is passed: to reach it is allowed.
func (m *meter) passedLimit() loop.Ended {
	l := m.limits
	cost, known := m.totals.Cost()
	switch {
	case l.Priced && !m.metered && !known && m.totals.Reports() > 1: // with the first one the price may come
		return loop.EndedPrice
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

const (
	// usageBytes is how much of it is read at once.
	usageBytes = 16 << 20
	// usageWhole is how large a file may be that is read as a whole.
	usageWhole = 1 << 20
	// usageNames is how many files of a day are looked at.
	usageNames = 50_000
)

// usage follows the file in which a program notes what it uses. The agent can
// write there: no link is followed, and what is read can only raise the count.
type usage struct {
	root, days, suffix string
	from               time.Time // the job's start
	file               *os.File  // nil until it is there
	lines              *agent.Lines
	whole              string       // the file that is written at the end; "" is none
	record             func([]byte) // takes it
}

// newUsage returns nil for a program that has no such file.
func newUsage(job Job, from time.Time, parser agent.Parser, emit func(agent.Event)) *usage {
	r, ok := parser.(agent.Recorder)
	if job.Usage == nil || !ok {
		return nil
	}
	if job.Usage.Path != "" {
		return &usage{whole: job.Usage.Path, record: func(file []byte) { r.Record(file, emit) }}
	}
	value := map[string]string{}
	for _, kv := range job.Env {
		name, v, _ := strings.Cut(kv, "=")
		value[name] = v
	}
	u := &usage{root: value[job.Usage.Variable], days: job.Usage.Days, suffix: job.Usage.Suffix, from: from}
	u.root = cmp.Or(u.root, filepath.Join(value["HOME"], job.Usage.Home))
	u.lines = agent.NewLines(agent.LineCap, func(line []byte, _ bool) { r.Record(line, emit) })
	return u
}

// readNewUsage takes what is new in the file of a session. It is called whenever the stream
// says something: what a call has used is noted before its tools run.
func (u *usage) readNewUsage(session string) {
	if u == nil || u.whole != "" {
		return
	}
	if u.file == nil {
		u.file = u.openSession(session)
	}
	if u.file != nil {
		_, _ = io.Copy(u.lines, io.LimitReader(u.file, usageBytes))
	}
}

// openSession opens the file of a session: it is that of a day that the job has seen, here
// or by the sun.
func (u *usage) openSession(session string) *os.File {
	if session == "" {
		return nil
	}
	seen := map[string]bool{}
	for _, at := range []time.Time{u.from, time.Now(), u.from.UTC(), time.Now().UTC()} {
		day := filepath.Join(u.days, at.Format("2006/01/02"))
		if seen[day] {
			continue
		}
		seen[day] = true
		for _, name := range u.sessionNames(day) {
			if !strings.HasSuffix(name, "-"+session+u.suffix) {
				continue
			}
			if f, err := files.OpenBelow(u.root, filepath.Join(day, name)); err == nil {
				return f
			}
		}
	}
	return nil
}

func (u *usage) sessionNames(day string) []string {
	root, err := os.OpenRoot(u.root)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	// No other open ends at once where an agent put a pipe.
	dir, err := root.OpenFile(day, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(usageNames)
	return names
}

// readFinalUsage takes what the program has noted at its end.
func (u *usage) readFinalUsage(session string) {
	if u.readNewUsage(session); u == nil || u.whole == "" {
		return
	}
	dir, name := filepath.Split(u.whole)
	if file, err := files.ReadBelow(dir, name, usageWhole); err == nil {
		u.record(file)
	}
	_ = os.Remove(u.whole) // it is not needed any more, and may never have been there
}

func (u *usage) closeFile() {
	if u != nil && u.file != nil {
		_ = u.file.Close()
	}
}
