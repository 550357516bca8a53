package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/jsonline"
)

const (
	// maxLine is the longest line of the program that is read; of a longer one
	// the rest is dropped.
	maxLine = 16 << 20
	// maxQueue is how many messages wait for a program that does not read.
	maxQueue = 1024
	// maxGarbage is how many lines that are no messages a program may print.
	maxGarbage = 10_000

	codeNoMethod = -32601
)

// answer is the response to a request of the bridge.
type answer struct {
	id     int64
	result []byte
	failed *rpcError
}

// rpcError is an error of JSON-RPC.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// conn is the bridge's end of the protocol: the program's output is written to
// it. Another goroutine writes to the program, so that a program that does not
// read at times cannot stop its own output.
type conn struct {
	session *session
	answers chan answer // to requests of the bridge
	broken  chan error  // of size 1: the error that broke the connection; nil is the end

	lines   *agent.Lines
	wrong   error // what is wrong with the program's output
	queue   chan []byte
	over    chan struct{} // closed when nothing more is to be said
	next    int64
	garbage atomic.Int64
	first   atomic.Pointer[string] // of the garbage
	works   sync.WaitGroup
	closing sync.Once
}

func newConnection(s *session) *conn {
	c := &conn{
		session: s, answers: make(chan answer, 64), broken: make(chan error, 1),
		queue: make(chan []byte, maxQueue), over: make(chan struct{}),
	}
	c.lines = agent.NewLines(maxLine, func(b []byte, cut bool) {
		if c.wrong == nil {
			c.wrong = c.handleLine(b, cut)
		}
	})
	return c
}

// Write takes what the program prints.
func (c *conn) Write(p []byte) (int, error) {
	_, _ = c.lines.Write(p)
	if c.wrong != nil {
		c.reportBroken()
	}
	return len(p), c.wrong
}

// endOutput handles the end of the program's output.
func (c *conn) endOutput() {
	c.lines.Flush()
	c.reportBroken()
}

func (c *conn) reportBroken() {
	select {
	case c.broken <- c.wrong:
	default:
	}
}

// writeQueue sends what is queued until close, and what waits then. If the program does not read
// any more, its end is noticed elsewhere.
func (c *conn) writeQueue(w io.WriteCloser) {
	defer func() { _ = w.Close() }()
	for {
		var b []byte
		select {
		case b = <-c.queue:
		case <-c.over:
			select {
			case b = <-c.queue:
			default:
				return
			}
		}
		if _, err := w.Write(b); err != nil {
			return
		}
	}
}

// closeQueue ends the writing when what waits has been written.
func (c *conn) closeQueue() { c.closing.Do(func() { close(c.over) }) }

func (c *conn) queueMessage(message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("cannot write a message: %v", err)
	}
	select {
	case c.queue <- append(b, '\n'):
		return nil
	default:
		return errors.New("the program keeps asking without reading the answers")
	}
}

// outgoing is a request or, without an id, a notification.
type outgoing struct {
	Version string `json:"jsonrpc"`
	ID      *int64 `json:"id,omitempty"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

// sendRequest asks the program; the answer with the id comes in c.answers.
func (c *conn) sendRequest(method string, params any) (id int64, err error) {
	c.next++
	id = c.next
	err = c.queueMessage(outgoing{Version: "2.0", ID: &id, Method: method, Params: params})
	return id, err
}

// sendReply answers a request of the program, whose id may be of any type.
func (c *conn) sendReply(id []byte, result any, failed *rpcError) error {
	if failed != nil {
		return c.queueMessage(struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Error   *rpcError       `json:"error"`
		}{"2.0", id, failed})
	}
	return c.queueMessage(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}{"2.0", id, result})
}

// incoming is any message of the program.
type incoming struct {
	Method     string
	ID, Params json.RawMessage
	Result     json.RawMessage
	Error      *rpcError
}

func (c *conn) handleLine(b []byte, cut bool) error {
	if cut {
		if bytes.Contains(b[:min(len(b), 1000)], []byte(updateMethod)) {
			return nil // the content of a tool, most likely: it is not needed
		}
		return fmt.Errorf("the program wrote a message of more than %d bytes", maxLine)
	}
	var m incoming
	whole := jsonline.Decode(b, false, &m, func(agent.Event) {})
	empty := m.Method == "" && m.ID == nil
	switch asks := m.ID != nil && string(m.ID) != "null"; {
	case !whole, empty:
		return c.countNoise(b)
	case m.Method == "":
		return c.passAnswer(&m)
	case asks:
		out, refused := c.session.handleRequest(m.Method, m.Params)
		return c.sendReply(m.ID, out, refused)
	}
	c.session.handleNotification(m.Method, m.Params)
	return nil
}

// countNoise handles a line that is no message: programs print banners.
func (c *conn) countNoise(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if c.garbage.Add(1) == 1 {
		s := fmt.Sprintf("%.80q", b[:min(len(b), 80)])
		c.first.Store(&s)
	}
	if c.garbage.Load() > maxGarbage {
		return errors.New("the program prints lines that are not messages")
	}
	return nil
}

// noiseText describes what a silent program printed instead of messages; "" is nothing.
func (c *conn) noiseText() string {
	first := c.first.Load()
	if first == nil {
		return ""
	}
	return fmt.Sprintf("; it printed %d lines that are not of the protocol, the first %s", c.garbage.Load(), *first)
}

// passAnswer passes a response on. Only one is waited for at a time: those that find no room were
// not asked for, and are dropped.
func (c *conn) passAnswer(m *incoming) error {
	a := answer{result: m.Result, failed: m.Error}
	jsonline.Read(m.ID, &a.id)
	select {
	case c.answers <- a:
	default:
	}
	return nil
}

// Reasons to stop: the protocol's that matter here, and ours.
const (
	stopDone      = "end_turn"
	stopCancelled = "cancelled"
	stopError     = "error" // printed before
)

// kindLogin is the type of an error that a login cures.
const kindLogin = "authentication_error"

// codeLogin is the protocol's code for it.
const codeLogin = -32000

// kinds are words of programs for what others call otherwise.
var kinds = map[string]string{
	"usageLimitExceeded": "usage_limit_reached", "ContextOverflowError": "context_length_exceeded",
	"authentication_failed": kindLogin, "unauthorized": kindLogin,
}

// errorData is where programs put what their provider said, each somewhere else.
type errorData struct {
	Details, Message               string
	Status, StatusCode, HTTPStatus int
	Error                          struct{ Message string }
	Data                           struct {
		Message    string
		StatusCode int
	}
	ErrorKind, CodexErrorInfo, ErrorName, Type string
}

// readError reads an error of the program.
func readError(e *rpcError) *problem {
	var d errorData
	var text string
	jsonline.Read(e.Data, &d)
	jsonline.Read(e.Data, &text)
	p := newProblem("", "%s", e.Message)
	details := cmp.Or(d.Details, d.Message, d.Error.Message, d.Data.Message, text)
	switch {
	case details == "" || strings.Contains(e.Message, details):
	case e.Message == "" || strings.EqualFold(e.Message, "internal error"):
		p.err.Message = details
	default:
		p.err.Message += ": " + details
	}
	p.err.Message = cmp.Or(p.err.Message, "the program reports an error without a message")
	p.err.Status = cmp.Or(d.Status, d.StatusCode, d.HTTPStatus, d.Data.StatusCode, agent.StatusIn(p.err.Message))
	if e.Code >= 400 && e.Code <= 599 {
		p.err.Status = e.Code // some pass the provider's on
	}
	p.err.Type = d.kindOfError(e.Code, p.err.Message)
	return p
}

func (d *errorData) kindOfError(code int, text string) string {
	for _, word := range []string{d.ErrorKind, d.CodexErrorInfo, d.ErrorName, d.Type} {
		if known := kinds[word]; known != "" {
			return known
		}
		if word != "" && !strings.HasSuffix(word, "Error") {
			return word
		}
	}
	if code == codeLogin {
		return kindLogin
	}
	return agent.TypeIn(text)
}

// promptResult is the answer to a prompt. Its tokens come in two shapes, both older than the one of
// the protocol.
type promptResult struct {
	StopReason string
	Usage      *struct {
		InputTokens, OutputTokens, CachedReadTokens, CachedWriteTokens, ThoughtTokens, TotalTokens int64
	}
	Meta struct {
		Quota struct {
			Count struct {
				Input  int64 `json:"input_tokens"`
				Output int64 `json:"output_tokens"`
			} `json:"token_count"`
		}
	} `json:"_meta"`
}

// usageOfPrompt returns the tokens of a prompt.
func (r *promptResult) usageOfPrompt() agent.Usage {
	u := r.Usage
	if u == nil {
		return agent.Usage{Input: r.Meta.Quota.Count.Input, Output: r.Meta.Quota.Count.Output}
	}
	sum := agent.Usage{Input: u.InputTokens, Output: u.OutputTokens,
		CacheRead: u.CachedReadTokens, CacheWrite: u.CachedWriteTokens}
	cached := sum.CacheRead + sum.CacheWrite
	// Programs differ in whether cached and thought tokens are within the others; the total shows
	// it.
	switch u.TotalTokens - sum.Input - sum.Output {
	case 0:
		sum.Input = max(0, sum.Input-cached)
	case u.ThoughtTokens:
		sum.Input, sum.Output = max(0, sum.Input-cached), sum.Output+u.ThoughtTokens
	case u.ThoughtTokens + cached:
		sum.Output += u.ThoughtTokens
	}
	return sum
}
