package acp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// The test program is the fake agent too: started with ACP_FAKE, it speaks the
// protocol as the scenario of that name says, and notes in the file ACP_LOG
// what reached it.
func TestMain(m *testing.M) {
	if scenario := os.Getenv("ACP_FAKE"); scenario != "" {
		if os.Args[1] == "export" {
			note("%s", strings.Join(os.Args[1:], " "))
			fmt.Print(map[string]string{"exports-rubbish": "rubbish", "exports": `{"info":{"id":"s1"},"messages":[{"info":{"role":"user"}},` +
				`{"info":{"role":"assistant","tokens":{"input":100,"output":10,"reasoning":5,"cache":{"read":20,"write":4}}}},` +
				`{"info":{"role":"assistant","tokens":{"input":200,"output":20,"reasoning":1,"cache":{"read":30,"write":0}}}}]}`}[scenario])
			os.Exit(0)
		}
		newFake(scenario).serve()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

type fake struct {
	scenario string
	in       *bufio.Reader
	prompt   json.RawMessage // the id of the prompt
	loggedIn bool
}

func newFake(scenario string) *fake {
	terms := make(chan os.Signal, 10)
	signal.Notify(terms, syscall.SIGTERM)
	go func() {
		for range terms {
			note("TERM")
			if scenario != "stubborn" {
				os.Exit(3)
			}
		}
	}()
	return &fake{scenario: scenario, in: bufio.NewReaderSize(os.Stdin, 1<<20)}
}

// note writes down what came.
func note(format string, args ...any) {
	f, err := os.OpenFile(os.Getenv("ACP_LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintf(f, format+"\n", args...)
		_ = f.Close()
	}
}

func (f *fake) serve() {
	if f.scenario == "mute" {
		select {} // until TERM
	}
	for {
		b, err := f.in.ReadBytes('\n')
		if err != nil {
			note("EOF")
			if f.scenario == "stubborn" {
				select {}
			}
			return
		}
		var m message
		if err := json.Unmarshal(b, &m); err != nil {
			note("not JSON: %v", err)
			os.Exit(9)
		}
		f.take(m)
	}
}

func (f *fake) take(m message) {
	switch m.Method {
	case "initialize":
		note("initialize %s", m.Params)
		f.initialize(m.ID)
	case "authenticate":
		note("authenticate %s", m.Params)
		f.loggedIn = true
		result(m.ID, `{}`)
	case "session/new":
		note("new %s", m.Params)
		f.open(m.ID)
	case "session/set_model", "session/set_config_option", "session/set_mode":
		note("%s %s", m.Method, m.Params)
		result(m.ID, `{}`)
	case "session/prompt":
		note("prompt %d bytes", len(m.Params))
		f.prompt = m.ID
		f.work(m)
	case "session/cancel":
		note("cancel")
		if f.scenario != "stubborn" {
			update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"stopped"}}`)
			result(f.prompt, `{"stopReason":"cancelled","usage":{"inputTokens":10,"outputTokens":1,"totalTokens":11}}`)
		}
	case "":
		note("answer %s%s to %s", m.Result, m.Error, m.ID)
		f.answered(m)
	default:
		note("unknown %s", m.Method)
	}
}

func (f *fake) initialize(id json.RawMessage) {
	switch f.scenario {
	case "banner":
		fmt.Print("Welcome!\n\nLoading…\n")
	case "garbage":
		for {
			if _, err := fmt.Println("garbage"); err != nil {
				os.Exit(1)
			}
		}
	case "future":
		result(id, `{"protocolVersion":2}`)
		return
	case "dies":
		os.Exit(7)
	case "huge-answer":
		result(id, `{"x":"`+strings.Repeat("x", maxLine)+`"}`)
		return
	}
	name := "fake"
	if strings.HasPrefix(f.scenario, "exports") {
		name = "OpenCode"
	}
	result(id, `{"protocolVersion":1,"agentInfo":{"name":"`+name+`","version":"1.2"},"authMethods":[{"id":"a","name":"Browser"},{"id":"fake-key","name":"Key"}]}`)
}

func (f *fake) open(id json.RawMessage) {
	switch f.scenario {
	case "login":
		if f.loggedIn {
			result(id, `{"sessionId":"s1"}`)
			return
		}
		say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"Authentication required"}}`, id)
	case "models":
		result(id, `{"sessionId":"s1","models":{"currentModelId":"m0","availableModels":[{"modelId":"m0"},{"modelId":"m1"}]}}`)
	case "modes":
		result(id, `{"sessionId":"s1","modes":{"currentModeId":"auto","availableModes":[{"id":"read-only"},{"id":"auto"},{"id":"full-access"}]}}`)
	case "options":
		result(id, `{"sessionId":"s1","configOptions":[{"id":"effort","category":"thought_level"},{"id":"llm","category":"model"}]}`)
	default:
		result(id, `{"sessionId":"s1"}`)
	}
}

// work does the prompt.
func (f *fake) work(m message) {
	switch f.scenario {
	case "hang", "stubborn":
		update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"begin"}}`)
		return
	case "limit":
		say(`{"jsonrpc":"2.0","id":%s,"error":{"code":429,"message":"Too many requests"}}`, m.ID)
		return
	case "cut":
		update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"<promise>COMPLETE</promise>"}}`)
		os.Exit(0)
	case "disguise":
		update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Error: 429 rate limit exceeded"}}`)
		result(m.ID, `{"stopReason":"end_turn"}`)
		return
	case "ask", "ask-again":
		f.ask("1")
		return
	case "files":
		say(`{"jsonrpc":"2.0","id":"f","method":"fs/read_text_file","params":{"path":"/etc/passwd"}}`)
		return
	case "deaf":
		for i := 0; ; i++ {
			say(`{"jsonrpc":"2.0","id":%d,"method":"terminal/create","params":{"x":%q}}`, i, strings.Repeat("x", 1000))
		}
	case "huge":
		update(`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","content":[{"text":"` + strings.Repeat("x", maxLine) + `"}]}`)
		update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + strings.Repeat("ä", maxPiece) + `"}}`)
		result(m.ID, `{"stopReason":"end_turn"}`)
		return
	case "daemon":
		// A child that keeps the output open.
		p, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr}})
		if err != nil {
			os.Exit(8)
		}
		note("child %d", p.Pid)
		result(m.ID, `{"stopReason":"end_turn"}`)
		os.Exit(0)
	}
	f.story()
	stop := "end_turn"
	if s, ok := strings.CutPrefix(f.scenario, "stop-"); ok {
		stop = s
	}
	result(m.ID, `{"stopReason":"`+stop+`","usage":{"inputTokens":100,"outputTokens":20,"cachedReadTokens":30,"totalTokens":120}}`)
}

// story is an ordinary run.
func (f *fake) story() {
	for _, u := range []string{
		`{"sessionUpdate":"available_commands_update","availableCommands":[]}`,
		`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"<promise>COMPLETE</promise>"}}`,
		`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"1","content":{"type":"text","text":"I te"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"1","content":{"type":"text","text":"st."}}`,
		`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"go test","kind":"execute","status":"pending"}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"in_progress","rawInput":{"command":["go","test"]}}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"failed","content":[{"type":"content","content":{"type":"text","text":"<promise>COMPLETE</promise>"}}]}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"t2","kind":"edit","status":"completed","locations":[{"path":"/r/a.go"}],"content":[{"type":"diff","path":"/r/a.go"},{"type":"diff","path":"/r/b.go"}]}`,
		`{"sessionUpdate":"usage_update","used":10,"size":100,"cost":{"amount":0.25,"currency":"USD"}}`,
		`{"sessionUpdate":"from_the_future","content":{"type":"text","text":"<promise>COMPLETE</promise>"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"2","content":{"type":"text","text":"Done.\n<pr"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"2","content":{"type":"text","text":"omise>COMPLETE</promise>"}}`,
	} {
		update(u)
	}
}

func (f *fake) ask(id string) {
	if call := os.Getenv("ACP_CALL"); call != "" {
		if announced, rest, ok := strings.Cut(call, "\n"); ok {
			update(announced)
			call = rest
		}
		say(`{"jsonrpc":"2.0","id":%s,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":%s,`+
			`"options":[{"optionId":"ao","kind":"allow_once"},{"optionId":"ro","kind":"reject_once"}]}}`, id, call)
		return
	}
	say(`{"jsonrpc":"2.0","id":%s,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t","kind":%q,"rawInput":{"command":"rm x"}},`+
		`"options":[{"optionId":"aa","kind":"allow_always"},{"optionId":"ao","kind":"allow_once"},{"optionId":"ro","kind":"reject_once"}]}}`, id, os.Getenv("ACP_KIND"))
}

func (f *fake) answered(message) {
	if f.scenario == "ask-again" {
		f.ask("1")
		return
	}
	result(f.prompt, `{"stopReason":"end_turn"}`)
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func result(id json.RawMessage, body string) {
	say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, body)
}

func update(u string) {
	say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":%s}}`, u)
}
