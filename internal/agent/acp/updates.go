package acp

import (
	"fmt"
	"slices"
	"sync"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
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
	loop     chan struct{} // closed when the program asks for the same again and again

	mu        sync.Mutex
	cancelled bool
	calls     map[string]*call
	order     []string
	stuck     bool
}

// call is a tool call on its way.
type call struct {
	kind  string
	told  bool // printed as begun
	ended bool
	asked int
}

func newSession(out *printer, readOnly bool) *session {
	return &session{out: out, readOnly: readOnly, loop: make(chan struct{}), calls: map[string]*call{}}
}

// cancel answers every further question as the protocol wants it after
// session/cancel.
func (s *session) cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancelled = true
}

// call is the tool call of that id, which is remembered from now on.
func (s *session) call(id string) *call {
	if c := s.calls[id]; c != nil {
		return c
	}
	if len(s.order) >= maxCalls {
		delete(s.calls, s.order[0])
		s.order = slices.Delete(s.order, 0, 1)
	}
	c := new(call)
	s.calls[id] = c
	s.order = append(s.order, id)
	return c
}

// heard takes a notification. What is not known is counted, never fatal.
func (s *session) heard(method string, params []byte) {
	if method != updateMethod {
		s.out.put(line{Type: lineUnknown, Text: method})
		return
	}
	u := jsonline.Get(params, "update")
	switch kind := jsonline.Short(jsonline.Get(u, "sessionUpdate"), maxName); kind {
	case "agent_message_chunk":
		s.out.say(lineText, jsonline.Short(jsonline.Get(u, "messageId"), maxName), jsonline.String(jsonline.Get(u, "content", "text")))
	case "agent_thought_chunk":
		s.out.say(lineThought, "", jsonline.String(jsonline.Get(u, "content", "text")))
	case "tool_call", "tool_call_update":
		s.tool(u)
	case "usage_update":
		s.cost(jsonline.Get(u, "cost"))
	case "user_message_chunk", "plan", "available_commands_update", "current_mode_update", "config_option_update", "session_info_update":
	default:
		s.out.put(line{Type: lineUnknown, Text: updateMethod + "/" + kind})
	}
}

// tool takes the start or an update of a tool call. Some programs send updates
// only.
func (s *session) tool(u []byte) {
	id := jsonline.Short(jsonline.Get(u, "toolCallId"), maxName)
	c := s.call(id)
	if kind := jsonline.Short(jsonline.Get(u, "kind"), maxName); kind != "" {
		c.kind = kind
	}
	status := jsonline.Short(jsonline.Get(u, "status"), maxName)
	over := status == "completed" || status == "failed"
	if command, files := details(u); !c.told && (command != "" || len(files) > 0 || over || status == "in_progress") {
		c.told = true
		s.out.put(line{Type: lineTool, ID: id, Tool: toolName(u, c.kind), Command: command, Files: files})
	}
	if over && !c.ended {
		c.ended = true
		s.out.put(line{Type: lineToolEnd, ID: id, Tool: c.kind, Failed: status == "failed", Result: resultOf(u)})
	}
}

// resultOf is the beginning of what a tool call came to: its content for people,
// else what it returned.
func resultOf(u []byte) string {
	if text := jsonline.Result(jsonline.Get(u, "content"), agent.ResultCap); text != "" && text[0] != '[' {
		return text
	}
	return jsonline.Result(jsonline.Get(u, "rawOutput"), agent.ResultCap)
}

// toolName is the kind of tool, else its title.
func toolName(u []byte, kind string) string {
	if kind != "" && kind != "other" {
		return kind
	}
	if title := jsonline.Short(jsonline.Get(u, "title"), maxName); title != "" {
		return title
	}
	return "other"
}

// details are the command that a tool call runs and the files that it is about.
func details(u []byte) (command string, files []string) {
	add := func(v []byte) {
		if path := jsonline.Short(v, maxPath); path != "" && len(files) < maxFiles && !slices.Contains(files, path) {
			files = append(files, path)
		}
	}
	jsonline.Array(jsonline.Get(u, "locations"), func(one []byte) bool {
		add(jsonline.Get(one, "path"))
		return true
	})
	jsonline.Array(jsonline.Get(u, "content"), func(one []byte) bool {
		if jsonline.String(jsonline.Get(one, "type")) == "diff" {
			add(jsonline.Get(one, "path"))
		}
		return true
	})
	jsonline.Object(jsonline.Get(u, "rawInput"), func(key, v []byte) bool {
		switch string(key) {
		case "command", "cmd":
			command = words(v)
		case "file_path", "filePath", "path":
			add(v)
		}
		return true
	})
	return command, files
}

// words is a command line that is a text or a list.
func words(v []byte) string {
	if text := jsonline.Short(v, maxText); text != "" {
		return text
	}
	text := ""
	jsonline.Array(v, func(one []byte) bool {
		if text != "" {
			text += " "
		}
		text += jsonline.Short(one, maxText)
		return len(text) < maxText
	})
	return text[:min(len(text), maxText)]
}

func (s *session) cost(b []byte) {
	if jsonline.Short(jsonline.Get(b, "currency"), 10) != "USD" {
		return
	}
	if usd := jsonline.Float(jsonline.Get(b, "amount")); usd > 0 {
		s.out.put(line{Type: lineCost, USD: usd})
	}
}

// asked takes a request of the program.
func (s *session) asked(method string, params []byte) (any, *rpcError) {
	if method != permissionMethod {
		return nil, &rpcError{Code: codeNoMethod, Message: "pawl does not offer " + method}
	}
	return s.permission(params), nil
}

// outcome answers a request for permission.
type outcome struct {
	Outcome struct {
		Outcome  string `json:"outcome"`
		OptionID string `json:"optionId,omitempty"`
	} `json:"outcome"`
}

func (s *session) permission(params []byte) outcome {
	u := jsonline.Get(params, "toolCall")
	id := jsonline.Short(jsonline.Get(u, "toolCallId"), maxName)
	c := s.call(id)
	if kind := jsonline.Short(jsonline.Get(u, "kind"), maxName); kind != "" {
		c.kind = kind
	}
	c.asked++
	granted := !s.readOnly || slices.Contains([]string{"read", "search", "think"}, c.kind)
	var o outcome
	o.Outcome.Outcome = "cancelled"
	if !s.over(id, c) {
		if option := choose(jsonline.Get(params, "options"), granted); option != "" {
			o.Outcome.Outcome, o.Outcome.OptionID = "selected", option
		}
	}
	command, files := details(u)
	granted = granted && o.Outcome.OptionID != ""
	s.out.put(line{Type: lineAsked, ID: id, Tool: toolName(u, c.kind), Command: command, Files: files, Granted: granted})
	return o
}

// over is whether no permission is given any more.
func (s *session) over(id string, c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.asked > maxAsked && id != "" && !s.stuck && !s.cancelled {
		s.stuck = true
		close(s.loop)
	}
	return s.cancelled || s.stuck
}

// choose is the option that grants or refuses once, rather than for always:
// what is decided here must not outlive the session. "" is none.
func choose(options []byte, granted bool) string {
	want := "reject"
	if granted {
		want = "allow"
	}
	always := ""
	once := ""
	jsonline.Array(options, func(one []byte) bool {
		id := jsonline.Short(jsonline.Get(one, "optionId"), maxPath)
		switch jsonline.Short(jsonline.Get(one, "kind"), maxName) {
		case want + "_once":
			once = id
		case want + "_always":
			always = id
		}
		return once == ""
	})
	if once != "" {
		return once
	}
	return always
}

// loopError says what a program that was stopped in a loop of questions did.
func loopError() string {
	return fmt.Sprintf("the program asked more than %d times for permission to do the same", maxAsked)
}
