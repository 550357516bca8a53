package acp

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/jsonline"
)

const (
	updateMethod     = "session/update"
	permissionMethod = "session/request_permission"

	// maxCalls is how many tool calls are remembered at a time.
	maxCalls = 1000
	// maxAsked is how often a program may ask for the same tool call.
	maxAsked = 20
)

// session follows what the program does. Its methods are called by the
// connection's reader, one at a time.
type session struct {
	out      *printer
	readOnly bool
	rules    safety.Rules
	loop     chan struct{} // closed when the program asks for the same again and again

	mu        sync.Mutex
	cancelled bool
	calls     map[string]*call
	stuck     bool
}

// call is a tool call on its way.
type call struct {
	kind    string
	refused safety.Finding // why it is too dangerous to be permitted; none without a pattern
	begun   bool           // its start is printed
	ended   bool
	asked   int
}

func newSession(out *printer, readOnly bool, rules safety.Rules) *session {
	return &session{out: out, readOnly: readOnly, rules: rules, loop: make(chan struct{}), calls: map[string]*call{}}
}

// setCancelled has every further question answered as the protocol wants it after session/cancel.
func (s *session) setCancelled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancelled = true
}

// sessionUpdate is a program's report about a message or a tool call.
type sessionUpdate struct {
	SessionUpdate, MessageID, ToolCallID, Kind, Status, Title string

	Content             json.RawMessage // a text, or for a tool call a list
	Locations           []struct{ Path string }
	RawInput, RawOutput json.RawMessage
	Cost                struct {
		Currency string
		Amount   float64
	}
}

// textOfUpdate returns the text of a piece of a message.
func (u *sessionUpdate) textOfUpdate() string {
	var content struct{ Text string }
	jsonline.Read(u.Content, &content)
	return content.Text
}

// toolCallOf returns the tool call that u is about, which is remembered from now on.
func (s *session) toolCallOf(u *sessionUpdate) *call {
	id := strings.Clone(agent.Clip(u.ToolCallID, maxName))
	c := s.calls[id]
	if c == nil {
		if len(s.calls) >= maxCalls {
			maps.DeleteFunc(s.calls, func(_ string, c *call) bool { return c.ended })
		}
		if len(s.calls) >= maxCalls {
			clear(s.calls)
		}
		c = new(call)
		s.calls[id] = c
	}
	if u.Kind != "" {
		c.kind = strings.Clone(agent.Clip(u.Kind, maxName))
	}
	s.judgeCall(u, c)
	return c
}

// judgeCall keeps why a tool call must not be permitted: at once, since a request for permission
// may name no more than the call.
func (s *session) judgeCall(u *sessionUpdate, c *call) {
	command, files := u.commandAndFiles(c.kind)
	f, isDangerous := s.rules.Command(command)
	if !isDangerous {
		f, isDangerous = s.rules.Tool(c.kind, "", files)
	}
	if isDangerous {
		c.refused = f
	}
}

// commandAndFiles returns the command and the files of a tool call. Some programs show a command in
// its title only, in backticks or with the folder behind it.
func (u *sessionUpdate) commandAndFiles(kind string) (command string, files []string) {
	command, files = u.readDetails()
	if command == "" && kind == "execute" {
		command = u.Title
		for _, folder := range []string{" [current working directory ", " [in "} {
			command, _, _ = strings.Cut(command, folder)
		}
	}
	return strings.Trim(command, "` "), files
}

// handleNotification counts an unknown notification, which is no error.
func (s *session) handleNotification(method string, params json.RawMessage) {
	if method != updateMethod {
		s.out.putEvent(agent.Event{Kind: agent.Unknown, Text: method})
		return
	}
	var p struct{ Update sessionUpdate }
	jsonline.Read(params, &p)
	u := &p.Update
	switch u.SessionUpdate {
	case "agent_message_chunk":
		s.out.printTextInPieces(agent.Text, u.MessageID, u.textOfUpdate())
	case "agent_thought_chunk":
		s.out.printTextInPieces(agent.Thinking, "", u.textOfUpdate())
	case "tool_call", "tool_call_update":
		s.handleTool(u)
	case "usage_update":
		if u.Cost.Currency == "USD" && u.Cost.Amount > 0 {
			s.out.putEvent(agent.Event{Kind: agent.CostSeen, Cost: agent.Dollars(u.Cost.Amount)})
		}
	case "user_message_chunk", "plan", "available_commands_update", "current_mode_update", "config_option_update",
		"session_info_update":
	default:
		s.out.putEvent(agent.Event{Kind: agent.Unknown, Text: updateMethod + "/" + u.SessionUpdate})
	}
}

// handleTool takes the start or an update of a tool call. Some programs send updates only.
func (s *session) handleTool(u *sessionUpdate) {
	c := s.toolCallOf(u)
	over := u.Status == "completed" || u.Status == "failed"
	command, files := u.readDetails()
	known := command != "" || len(files) > 0
	begins := known || over || u.Status == "in_progress"
	if begins && !c.begun {
		c.begun = true
		s.out.putEvent(agent.Event{Kind: agent.ToolStart, Call: u.ToolCallID, Tool: u.toolName(c.kind),
			Command: command, Files: files})
	}
	if over && !c.ended {
		c.ended = true
		s.out.putEvent(agent.Event{Kind: agent.ToolEnd, Call: u.ToolCallID, Tool: c.kind, Failed: u.Status == "failed",
			Result: u.resultText()})
	}
}

// resultText returns the beginning of a tool call's result: its content for people, else what it
// returned.
func (u *sessionUpdate) resultText() string {
	if text := jsonline.Result(u.Content, agent.ResultCap); text != "" && text[0] != '[' {
		return text
	}
	return jsonline.Result(u.RawOutput, agent.ResultCap)
}

// toolName returns the kind of tool, else its title.
func (u *sessionUpdate) toolName(kind string) string {
	if kind != "" && kind != "other" {
		return kind
	}
	return cmp.Or(u.Title, "other")
}

// readDetails returns the command that a tool call runs and the files that it is about.
func (u *sessionUpdate) readDetails() (command string, files []string) {
	add := func(path string) {
		if path != "" && len(files) < maxFiles && !slices.Contains(files, path) {
			files = append(files, agent.Clip(path, maxPath))
		}
	}
	for _, one := range u.Locations {
		add(one.Path)
	}
	var content []struct{ Type, Path string }
	jsonline.Read(u.Content, &content)
	for _, one := range content {
		if one.Type == "diff" {
			add(one.Path)
		}
	}
	var input struct{ Command, Cmd json.RawMessage }
	var e agent.Event
	jsonline.Read(u.RawInput, &input)
	jsonline.Input(&e, u.RawInput)
	for _, path := range e.Files {
		add(path)
	}
	return cmp.Or(joinWords(input.Command), joinWords(input.Cmd)), files
}

// joinWords returns a command line that is a text or a list.
func joinWords(v json.RawMessage) string {
	var text string
	var list []string
	jsonline.Read(v, &text)
	jsonline.Read(v, &list)
	return cmp.Or(text, strings.Join(list, " "))
}

// handleRequest answers a request of the program.
func (s *session) handleRequest(method string, params json.RawMessage) (any, *rpcError) {
	if method != permissionMethod {
		return nil, &rpcError{Code: codeNoMethod, Message: "pawl does not offer " + method}
	}
	return s.decidePermission(params), nil
}

// outcome answers a request for permission.
type outcome struct {
	Outcome struct {
		Outcome  string `json:"outcome"`
		OptionID string `json:"optionId,omitempty"`
	} `json:"outcome"`
	Meta struct {
		Reason string `json:"reason,omitempty"`
	} `json:"_meta,omitzero"`
}

func (s *session) decidePermission(params json.RawMessage) outcome {
	var p struct {
		ToolCall sessionUpdate
		Options  []option
	}
	jsonline.Read(params, &p)
	u := &p.ToolCall
	c := s.toolCallOf(u)
	c.asked++
	isDangerous := c.refused.Pattern != ""
	granted := !isDangerous
	if s.readOnly && !slices.Contains([]string{"read", "search", "think"}, c.kind) {
		granted = false
	}
	var o outcome
	o.Outcome.Outcome = "cancelled"
	if !s.isClosed(u.ToolCallID, c) {
		if id := chooseOption(p.Options, granted); id != "" {
			o.Outcome.Outcome, o.Outcome.OptionID = "selected", id
		}
	}
	command, files := u.commandAndFiles(c.kind)
	granted = granted && o.Outcome.OptionID != ""
	e := agent.Event{
		Kind: asked, Call: u.ToolCallID, Tool: u.toolName(c.kind), Command: command, Files: files, Failed: !granted,
	}
	if isDangerous { // the supervisor sees a call that begins, and ends the program
		o.Meta.Reason = c.refused.Reason()
		e.Kind, e.Tool = agent.ToolStart, cmp.Or(c.refused.Tool, "execute")
	}
	s.out.putEvent(e)
	return o
}

// isClosed reports whether no permission is given any more. It also stops a program that asks for
// the same one for ever.
func (s *session) isClosed(id string, c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.asked > maxAsked && id != "" && !s.stuck && !s.cancelled {
		s.stuck = true
		close(s.loop)
	}
	return s.cancelled || s.stuck
}

// option is an answer that a request for permission offers.
type option struct{ OptionID, Kind string }

// chooseOption returns the option that grants or refuses once, rather than for always: what is
// decided here must not outlive the session. "" is none.
func chooseOption(options []option, granted bool) string {
	want := "reject"
	if granted {
		want = "allow"
	}
	for _, kind := range []string{want + "_once", want + "_always"} {
		for _, o := range options {
			if o.Kind == kind {
				return o.OptionID
			}
		}
	}
	return ""
}
