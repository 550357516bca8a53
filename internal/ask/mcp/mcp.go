// Package mcp serves the tools by which programs call pawl over the Model Context
// Protocol: Claude Code, an editor, any client. A session reads like this:
//
//	client  add_case {"title": "Parse the long header", "acceptance": ["go test ./header passes"]}
//	pawl    {"id": "task-007", "status": "pending", "ready": true, …}
//	client  start_autopilot {"max_parallel": 2}
//	pawl    {"message": "The autopilot has started.", …}
//	client  get_inbox {}
//	pawl    {"entries": [{"kind": "question", "run": {"id": "k2m9x1qa"}, …}]}
//	client  answer_run {"run": "k2m9x1qa", "text": "Keep the old name."}
//	pawl    {"message": "Run k2m9x1qa of task-007 goes on.", …}
//
// The tools of the board are operations of the API that browsers use: their names,
// arguments, limits and answers are those of its description, so that a tool does what
// the button does. The iteration tools give pawl's limits to an agent that loops by
// itself. Nothing here asks a person: clients do, by what a tool says about itself.
package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine/ending"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// maxMessage is the most bytes of one message of a client.
const maxMessage = 4 << 20

// Options are what a server works with.
type Options struct {
	API         http.Handler // answers requests of the API without a token
	Description []byte       // of the API: OpenAPI, as JSON
	Version     string
	StateDir    string // of the repository
	// Next is the task that the autopilot would start now; without one, false.
	Next func(context.Context) (board.Choice, bool, error)
}

const instructions = `Pawl runs coding agents in bounded, verified loops and keeps a board of tasks.
Start with get_overview. get_inbox lists what waits for a person: ask the person, and do not answer for them.
add_case adds a task; start_autopilot works on the tasks; a task is done when its verified work has landed.`

// Server has the tools. It may talk to many clients.
type Server struct{ s *mcp.Server }

// New makes a server with all tools.
func New(o Options) (*Server, error) {
	s := mcp.NewServer(&mcp.Implementation{Name: "pawl", Version: o.Version},
		&mcp.ServerOptions{Instructions: instructions, Capabilities: &mcp.ServerCapabilities{}})
	s.AddReceivingMiddleware(recoverFaults)
	if err := addOperations(s, o); err != nil {
		return nil, err
	}
	mcp.AddTool(s, &mcp.Tool{Name: "next_case", Annotations: readOnlyHints(),
		Description: "Which task the autopilot would start next, and why it comes before the others."}, o.nextCase)
	mcp.AddTool(s, &mcp.Tool{Name: "explain_output", Annotations: readOnlyHints(),
		Description: "Say what a failed build, test run or agent shows: class, cause, whether trying again may help, " +
			"what to do. The end of a long output is enough."}, explainOutput)
	addIterations(s, o.StateDir)
	return &Server{s}, nil
}

// recoverFaults keeps a fault in one call from ending the process, as a web server does.
func recoverFaults(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				result, err = nil, fmt.Errorf("a fault in pawl: %v", p)
			}
		}()
		return next(ctx, method, r)
	}
}

// Serve talks to one client until it hangs up or ctx is done. A client that does not read
// its last answers is left without them.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	over, end := context.WithCancel(ctx)
	defer end()
	to := &client{Writer: out}
	from := io.NopCloser(&lines{in: bufio.NewReader(in), out: to, over: end})
	ended := make(chan error, 1)
	go func() { ended <- s.s.Run(ctx, &mcp.IOTransport{Reader: from, Writer: to, MaxLineLength: maxMessage}) }()
	var err error
	select {
	case err = <-ended:
	case <-over.Done():
		select {
		case err = <-ended:
		case <-time.After(lastAnswers + time.Second):
		}
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("cannot continue with the calling program: %v", err)
	}
	return nil // it hung up, or a person ended it
}

// Handler answers clients over HTTP. Each request stands alone: a client that goes
// away leaves nothing behind.
func (s *Server) Handler() http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.s },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxMessage,
			DisableLocalhostProtection: true}) // the server's guard has looked at the host, and knows its names
}

func readOnlyHints() *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(bool)}
}

// following is what next_case answers.
type following struct {
	ID    string       `json:"id,omitempty" jsonschema:"the task; empty when none is ready"`
	Title string       `json:"title,omitempty"`
	Score int          `json:"score,omitempty"`
	Parts []board.Part `json:"parts,omitempty"`
	Why   string       `json:"why"`
}

func (o Options) nextCase(ctx context.Context, _ *mcp.CallToolRequest, _ struct{},
) (*mcp.CallToolResult, following, error) {
	c, _, err := o.Next(ctx)
	return nil, following{c.Case.ID, c.Case.Title, c.Score, c.Parts, c.Why}, err
}

// output is what explain_output reads.
type output struct {
	Output string `json:"output" jsonschema:"what the program printed"`
	Exit   *int   `json:"exit,omitempty" jsonschema:"its exit status"`
}

func explainOutput(_ context.Context, _ *mcp.CallToolRequest, in output) (*mcp.CallToolResult, any, error) {
	e := failure.Evidence{Source: "log", Output: in.Output, ExitCode: -1, Now: time.Now(), Zone: ending.Zone}
	if n, ok := failure.ExitStatus(in.Output); ok {
		e.ExitCode = n
	}
	if in.Exit != nil {
		e.ExitCode = *in.Exit
	}
	a := failure.Analyse(e)
	tests, known := failure.ParseTests(in.Output)
	green := e.ExitCode == 0
	if e.ExitCode < 0 {
		green = known && tests.Failed == 0
	}
	if green && a.Class == failure.Unknown {
		return textResult("No failure was found.", false), nil, nil
	}
	data, err := json.Marshal(a)
	return textResult(string(data), false), nil, err
}

// textResult is a result that is a text.
func textResult(text string, failed bool) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: failed}
}

const instructionsInside = `Pawl works with you on one task. get_task says what it is and which checks judge it.
Report your result with complete, ask or blocked, once, as your last step. Complete is a claim: checks decide.`

// NewInside makes a server for the agent of a run: it shows the agent's own task, and
// notes in a folder what the agent says. It reaches nothing else.
func NewInside(dir, version string) *Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "pawl", Version: version},
		&mcp.ServerOptions{Instructions: instructionsInside, Capabilities: &mcp.ServerCapabilities{}})
	s.AddReceivingMiddleware(recoverFaults)
	mcp.AddTool(s, &mcp.Tool{Name: "get_task", Annotations: readOnlyHints(),
		Description: "Your task: title, description, acceptance criteria, and the checks that judge your work."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, agent.Brief, error) {
			var b agent.Brief
			text, err := files.ReadBelow(dir, agent.BriefFile, 1<<20)
			if err == nil {
				err = json.Unmarshal(text, &b)
			}
			return nil, b, err
		})
	type words struct {
		Text string `json:"text" jsonschema:"in a few sentences"`
	}
	for _, t := range []struct{ name, kind, about string }{
		{"ask", agent.SaysAsk, "Ask a person a question that you cannot continue without. Then end."},
		{"blocked", agent.SaysBlocked, "Say that you cannot do the task, and why. Then end."},
		{"complete", agent.SaysComplete, "Say that the task is done. The checks run then, and decide."},
	} {
		mcp.AddTool(s, &mcp.Tool{Name: t.name, Description: t.about},
			func(_ context.Context, _ *mcp.CallToolRequest, in words) (*mcp.CallToolResult, any, error) {
				return storeAgentNote(dir, agent.Said{Kind: t.kind, Text: in.Text})
			})
	}
	type progress struct {
		Percent int `json:"percent" jsonschema:"how much of the task is done, 0 to 100"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "report_progress", Description: "Report your progress."},
		func(_ context.Context, _ *mcp.CallToolRequest, in progress) (*mcp.CallToolResult, any, error) {
			return storeAgentNote(dir, agent.Said{Kind: agent.SaysProgress, Percent: in.Percent})
		})
	type followUp struct {
		Title       string `json:"title" jsonschema:"one line"`
		Description string `json:"description,omitempty"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "add_follow_up_task",
		Description: "Propose a task for later that is not part of yours. A person decides whether it is done."},
		func(_ context.Context, _ *mcp.CallToolRequest, in followUp) (*mcp.CallToolResult, any, error) {
			return storeAgentNote(dir, agent.Said{Kind: agent.SaysFollowUp, Title: in.Title, Text: in.Description})
		})
	return &Server{s}
}

// storeAgentNote leaves what an agent says for pawl, which reads it when the agent has ended.
func storeAgentNote(dir string, s agent.Said) (*mcp.CallToolResult, any, error) {
	line, err := json.Marshal(s)
	if err != nil {
		return nil, nil, err
	}
	if len(line) > maxNote {
		return nil, nil, fmt.Errorf("that is too long: at most %d bytes", maxNote)
	}
	if err := files.AppendBelow(dir, agent.SaidFile, append(line, '\n'), agent.SaidLimit-maxNote-1); err != nil {
		return nil, nil, fmt.Errorf("it was not recorded: %v", err)
	}
	return textResult("Noted. Pawl reads it when you have ended.", false), nil, nil
}

// maxNote is the most bytes of one thing that an agent says.
const maxNote = 8 << 10

// lines passes on the messages of a client. A line that is none is answered with an
// error: the library would end the session at it. The end waits for the answers: the
// library would drop them.
type lines struct {
	in   *bufio.Reader
	out  *client
	over func() // all is said
	left []byte
}

func (l *lines) Read(p []byte) (int, error) {
	for len(l.left) == 0 {
		line, long, err := l.nextLine()
		switch {
		case long:
			err = l.refuseLine(-32600, "a message has at most 4 MiB")
		case len(bytes.TrimSpace(line)) == 0: // between two
		case !json.Valid(line):
			err = l.refuseLine(-32700, "this is not JSON")
		case !l.takeMessage(line):
			err = l.refuseLine(-32600, `this is not a JSON-RPC 2.0 message, which is one object with "jsonrpc": "2.0"`)
		default:
			l.left, err = line, nil
		}
		if err != nil {
			l.over()
			l.out.awaitAnswers(lastAnswers)
			return 0, err
		}
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}

// nextLine is the next line. Of one that is too long nothing is kept.
func (l *lines) nextLine() (line []byte, long bool, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxMessage; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// takeMessage is false for what is no message, as a batch, which the protocol has no more.
func (l *lines) takeMessage(line []byte) bool {
	m, err := jsonrpc.DecodeMessage(line)
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		l.out.countOwedAnswer()
	}
	return err == nil && m != nil
}

func (l *lines) refuseLine(code int, why string) error {
	text, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": why}})
	if err == nil {
		_, err = l.out.Write(append(text, '\n'))
	}
	return err
}

// lastAnswers is how long a client that has said all is answered.
const lastAnswers = 5 * time.Second

// client is where answers go, which the session does not close. A message is one write.
type client struct {
	io.Writer
	turn sync.Mutex // to write
	mu   sync.Mutex // is never held while a client reads
	owed int
	paid chan struct{} // made by who waits until nothing is owed, and closed then
}

func (o *client) countOwedAnswer() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.owed++
}

func (o *client) Write(p []byte) (int, error) {
	o.turn.Lock()
	n, err := o.Writer.Write(p)
	o.turn.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	m, _ := jsonrpc.DecodeMessage(p)
	if r, ok := m.(*jsonrpc.Response); ok && r.ID.IsValid() {
		o.owed--
	}
	if o.paid != nil && o.owed <= 0 {
		close(o.paid)
		o.paid = nil
	}
	return n, err
}

// awaitAnswers waits until all that was asked is answered.
func (o *client) awaitAnswers(most time.Duration) {
	o.mu.Lock()
	paid := make(chan struct{})
	if o.owed > 0 {
		o.paid = paid
	} else {
		close(paid)
	}
	o.mu.Unlock()
	select {
	case <-paid:
	case <-time.After(most):
	}
}

func (*client) Close() error { return nil }
