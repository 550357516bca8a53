// Package codex runs OpenAI's Codex headless and reads its stream of JSON
// lines (`codex exec --json`).
//
// What the program does, as pawl relies on it:
//   - The prompt comes on stdin, at most 1,048,576 characters; more is exit 1
//     and no request.
//   - `turn.completed` and `turn.failed` end the stream. Only they and a
//     top-level `error` report failures; an item of type `error` is a notice.
//   - `turn.completed` has the usage of the whole thread, cached tokens within
//     the input. The stream has no usage before it, and never a cost.
//   - The session's file, sessions/2026/11/23/rollout-…-ID.jsonl in its folder,
//     has a `token_count` after each model call, with the sum so far.
//   - Errors are prose: the HTTP status and the time of a reset are in the words.
//   - A failed call is tried again five times, a bad key too, in 8 to 26 s. A
//     connection that is refused is waited for without end.
//   - TERM ends it and the shells of its tools.
//
// The program's own sandbox and its questions are off at every safety level:
// what it may touch is enforced by pawl's sandbox, in which another one does
// not work. The package starts nothing itself.
package codex

import (
	_ "embed" // of the program's file
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/subscription"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

//go:embed program.json
var file string

// Program is Codex. A login and the providers are in the user's own folder; the
// one key that it takes from the environment needs nothing of it. Plugins and apps
// ask servers outside at every start, so both are off.
//
// The native binary may be in the platform's package beside or inside of the npm package's
// wrapper, or in the package itself. The gateway is a provider of the program's configuration,
// which tries nothing again there: the gateway does.
func Program() program.Program { return program.Read(file, program.Lines(NewParser)) }

// Parser is the [agent.Parser] of the program's stream.
type Parser struct {
	// A call of the model is due at the start of a turn, and after a tool. Tools of
	// one answer run one after the other, so that calls are counted too high rather
	// than too low. A top-level error is pending, since the end of the turn repeats it.
	jsonline.Stream

	begun jsonline.IDs // of the tool calls whose start was reported
}

// NewParser returns a parser for one run.
func NewParser() *Parser { return &Parser{Stream: jsonline.Stream{Due: true}} }

// line is one line of any type. Fields without a tag have the name of the key.
type line struct {
	Type, Message string

	Thread string `json:"thread_id"`
	Item   item
	Error  struct{ Message string }
	Usage  usage
}

// usage is what the whole thread used, as in the stream and the session's file.
type usage struct {
	Input      int64 `json:"input_tokens"` // with what is cached
	CacheRead  int64 `json:"cached_input_tokens"`
	CacheWrite int64 `json:"cache_write_input_tokens"`
	Output     int64 `json:"output_tokens"` // with the tokens of reasoning
}

func (u usage) toUsageEvent() agent.Event {
	return agent.Event{Kind: agent.UsageSeen, Cumulative: true, Usage: agent.Usage{
		Input: max(u.Input-u.CacheRead-u.CacheWrite, 0), Output: u.Output, CacheRead: u.CacheRead,
		CacheWrite: u.CacheWrite,
	}}
}

// Record takes one line of the session's file.
func (p *Parser) Record(line []byte, emit func(agent.Event)) {
	var l struct {
		Type    string
		Payload struct {
			Type string
			Info struct {
				Total usage `json:"total_token_usage"`
			}
			Limits struct{ Primary, Secondary window } `json:"rate_limits"`
		}
	}
	if json.Unmarshal(line, &l) == nil && l.Type == "event_msg" && l.Payload.Type == "token_count" {
		emit(l.Payload.Info.Total.toUsageEvent())
		limits := l.Payload.Limits
		if plan := append(limits.Primary.toPlanWindows(), limits.Secondary.toPlanWindows()...); len(plan) > 0 {
			emit(agent.Event{Kind: agent.PlanSeen, Plan: plan})
		}
	}
}

// window is one of a subscription's plan.
type window struct {
	Used    float64 `json:"used_percent"`
	Minutes int     `json:"window_minutes"`
	Resets  int64   `json:"resets_at"`
}

func (w window) toPlanWindows() []subscription.Window {
	if w.Minutes <= 0 || w.Used < 0 || w.Used > 10_000 {
		return nil
	}
	name := strconv.Itoa(w.Minutes/60) + "_hours"
	return []subscription.Window{{Name: name, Used: int(w.Used), Resets: time.Unix(w.Resets, 0).UTC()}}
}

// Line takes one line. What is no JSON object, is cut or is of an unknown
// type is kept as an unknown event.
func (p *Parser) Line(b []byte, cut bool, emit func(agent.Event)) {
	var l line
	if !p.Decode(b, cut, &l, emit) {
		return
	}
	if l.Type != "turn.failed" {
		p.Flush()
	}
	switch l.Type {
	case "thread.started":
		p.Emit(agent.Event{Kind: agent.Session, Session: l.Thread})
	case "turn.started":
		p.Due, p.Ended = true, false
	case "item.started":
		p.readStarted(&l.Item)
	case "item.completed":
		p.readCompleted(&l.Item)
	case "turn.completed":
		p.emitTurnEnd(&l)
	case "turn.failed":
		p.endFailed(l.Error.Message)
	case "error":
		p.readError(l.Message)
	case "item.updated", "item.plan.delta", "request_user_input":
	default:
		p.Unknown(l.Type)
	}
}

// emitAnswer emits a text of the model.
func (p *Parser) emitAnswer(e agent.Event) {
	p.Ended = false
	p.Answer(e)
}

// item is a message, a thought or a tool call.
type item struct {
	ID, Type, Status, Text string
	Command, Server, Tool  string
	Arguments, Query       json.RawMessage
	Changes                []struct{ Path string }
	Output                 json.RawMessage `json:"aggregated_output"`
	Result                 json.RawMessage
}

// toolName returns the tool's name, "" for an item that is no tool call.
func (it *item) toolName() string {
	switch it.Type {
	case "command_execution":
		return "shell"
	case "file_change", "web_search":
		return it.Type
	case "mcp_tool_call":
		return it.Server + "." + it.Tool
	case "collab_tool_call":
		return it.Tool
	}
	return ""
}

func (p *Parser) readStarted(it *item) {
	name := it.toolName()
	if name == "" {
		return
	}
	p.begun.Add(it.ID, "")
	p.emitStart(it, name)
}

func (p *Parser) emitStart(it *item, name string) {
	// A change of files comes without its content, so that it is like no other.
	digest := agent.Digest(slices.Concat(it.Arguments, it.Query, []byte(it.Command)))
	e := agent.Event{Kind: agent.ToolStart, Tool: name, Command: it.Command, Digest: digest, Call: it.ID}
	for _, change := range it.Changes {
		if change.Path != "" {
			e.Files = append(e.Files, change.Path)
		}
	}
	p.emitAnswer(e)
}

func (p *Parser) readCompleted(it *item) {
	if name := it.toolName(); name != "" {
		if p.begun.Add(it.ID, "") { // a change of files may be reported only once it is done
			p.emitStart(it, name)
		}
		p.Due = true
		result := it.Output
		if result == nil {
			result = it.Result
		}
		p.Emit(jsonline.ToolEnd(name, it.ID, false, it.Status == "failed" || it.Status == "declined", result))
		return
	}
	switch it.Type {
	case "agent_message":
		p.emitAnswer(agent.Event{Kind: agent.Text, Text: it.Text})
	case "reasoning", "plan":
		p.emitAnswer(agent.Event{Kind: agent.Thinking, Text: it.Text})
	case "todo_list", "error": // an error item is a notice
	default:
		p.Unknown("item/" + it.Type)
	}
}

// emitTurnEnd takes the end of a turn that worked. Its usage is the thread's, and a thread is a run.
func (p *Parser) emitTurnEnd(l *line) {
	p.Emit(l.Usage.toUsageEvent())
	p.End(agent.Event{Terminal: loop.TerminalOK})
}

func (p *Parser) endFailed(message string) {
	err := readError(message)
	if message == "" && p.Pending != nil {
		err = p.Pending
	}
	p.Pending = nil
	calls := 0
	if err.Type != missingKey {
		calls = 1 // the call that was given up
	}
	p.Emit(agent.Event{Kind: agent.Error, Error: err, Calls: calls})
	p.End(agent.Event{Terminal: loop.TerminalFailed})
}

// readError takes a top-level error: the program's own retry, or what ends the turn.
func (p *Parser) readError(message string) {
	rest, again := strings.CutPrefix(message, "Reconnecting... ")
	if !again {
		p.Pending = readError(message)
		return
	}
	head, why, _ := strings.Cut(rest, " (")
	attempt, _, _ := strings.Cut(head, "/")
	n, err := strconv.Atoi(attempt)
	if err != nil {
		n = 0 // "waiting for network"
	}
	p.Ended = false
	p.Emit(agent.Event{Kind: agent.Retry, Calls: 1, Attempt: max(n, 0), Error: readError(strings.TrimSuffix(why, ")"))})
}

// maxError is how much of an error is read, in bytes.
const maxError = 2000

// missingKey is the type of the one failure that is no model call.
const missingKey = "authentication_missing"

// readError reads the prose of an error.
func readError(message string) *failure.APIError {
	e := &failure.APIError{
		Message: agent.Clip(message, maxError), Status: agent.StatusIn(message), Type: agent.TypeIn(message),
	}
	low := strings.ToLower(e.Message)
	gone := strings.Contains(low, "not found") || strings.Contains(low, "does not exist")
	late := strings.Contains(low, "timed out") || strings.Contains(low, "timeout")
	switch {
	case strings.Contains(low, "missing environment variable"):
		e.Type = missingKey
	case e.Type == "" && gone && strings.Contains(low, "model"):
		e.Type = "model_not_found"
	case e.Type == "" && e.Status == 0 && late:
		e.Type = "timeout"
	}
	return e
}
