package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/mcp"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/ask/web"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

func newServer(t testing.TB) *mcp.Server {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(dir, "pawl.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	api := web.New(nil, web.Options{
		Operator: action.New(action.Options{Store: db, Root: dir,
			Planner: func(string, planner.Flags) (*planner.Planner, error) {
				return &planner.Planner{Config: &config.Config{}}, nil
			},
			Log: func(string) *slog.Logger { return slog.New(slog.DiscardHandler) }}),
		StateDir: dir,
	})
	text, err := api.Description()
	if err != nil {
		t.Fatal(err)
	}
	s, err := mcp.New(mcp.Options{API: api.API(), Description: text, Version: "test", StateDir: dir,
		Next: func(ctx context.Context) (board.Choice, bool, error) {
			return db.NextCaseOf(ctx, store.CaseFilter{}, nil)
		}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// client is the official client, over HTTP as 'pawl serve' answers it.
type client struct {
	t testing.TB
	*sdk.ClientSession
}

func connect(t testing.TB, s *mcp.Server) client {
	t.Helper()
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: server.URL,
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return client{t, session}
}

// call returns the text of a tool's result; ! before the name is one that must be refused.
func (c client) call(tool, arguments string) string {
	c.t.Helper()
	name, refused := strings.CutPrefix(tool, "!")
	r, err := c.CallTool(c.t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
	if err != nil {
		c.t.Fatalf("%s %s: %v", name, arguments, err)
	}
	text := ""
	for _, part := range r.Content {
		if p, ok := part.(*sdk.TextContent); ok {
			text += p.Text
		}
	}
	if r.IsError != refused {
		c.t.Fatalf("%s %s: refused is %v: %s", name, arguments, r.IsError, text)
	}
	return text
}

// A front end fills a board and reads it; what pawl refuses says why, in words for who calls tools.
func TestBoard(t *testing.T) {
	t.Parallel()
	c := connect(t, newServer(t))
	for _, step := range []struct{ tool, arguments, want string }{
		{"next_case", `{}`, "no task"},
		{"add_case", `{"title":"Parse the header","acceptance":["go test passes"]}`, `"id":"task-001"`},
		{"add_case", `{"title":"Use it","needs":["task-001"],"priority":9}`, `"not_ready":"1 of its needs has not landed"`},
		{"next_case", `{}`, `"id":"task-001"`},
		{"list_cases", `{"status":["pending","done"],"ready":true,"limit":5}`, `"total":1`},
		{"edit_case", `{"id":"2","title":"Use the header"}`, `"title":"Use the header"`},
		{"get_case", `{"id":"2"}`, `"id":"task-002"`},
		{"move_case", `{"id":"1","action":"defer","why":"later"}`, `"status":"deferred"`},
		{"get_overview", `{}`, `"deferred":1`},
		{"remove_case", `{"id":"task-002"}`, `"removed":"task-002"`},
		{"explain_output", `{"output":"--- FAIL: TestA (0.00s)\n    a_test.go:3: got 1, want 2\nFAIL\n","exit":1}`, `"class":"test_failure"`},
		{"explain_output", `{"output":"ok  \texample.com/a\t0.01s\n","exit":0}`, "No failure was found"},
		{"!add_case", `{"title":"x","needs":["task-099"]}`, "task-099"},
		{"!add_case", `{"titel":"x"}`, "titel"},
		{"!add_case", `{"title":"` + strings.Repeat("x", 1<<20) + `"}`, "expected length <= 500"},
		{"!add_case", `{"title":"a\u0000b"}`, "NUL"},
		{"!get_case", `{}`, "the argument id is missing"},
		{"!get_case", `{"id":"../runs"}`, "is not the id of a task"},
		{"!get_case", `{"id":".."}`, "the argument id is missing"},
		{"!get_inbox", `{"all":true}`, `takes no argument "all"`},
		{"!stop_autopilot", `{}`, "no autopilot is running here\nStart it: pawl autopilot"},
		{"!get_run", `{"run":"k2m9x1qa"}`, "There is no such run"},
		{"!list_cases", `{"limit":100000}`, "expected number <= 1000"},
	} {
		got := c.call(step.tool, step.arguments)
		if !strings.Contains(got, step.want) {
			t.Errorf("%s %s: no %q in %s", step.tool, step.arguments, step.want, got)
		}
		if len(got) > 4000 {
			t.Errorf("%s: the answer has %d bytes", step.tool, len(got))
		}
		if strings.Contains(got, "/api/") {
			t.Errorf("%s %s names an address: %s", step.tool, step.arguments, got)
		}
	}
}

// Each tool says what it takes by itself, and whether it changes or destroys anything.
func TestTools(t *testing.T) {
	t.Parallel()
	c := connect(t, newServer(t))
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var reads, destroys int
	for _, tool := range list.Tools {
		text, err := json.Marshal(tool.InputSchema)
		if err != nil || strings.Contains(string(text), "$ref") {
			t.Errorf("%s: %v %s", tool.Name, err, text)
		}
		a := tool.Annotations
		switch {
		case a == nil, tool.Description == "":
			t.Errorf("%s does not say what it does", tool.Name)
		case a.ReadOnlyHint:
			reads++
			if !slices.Contains([]string{"get", "list", "read", "diff", "next", "explain", "summary", "foresee"}, strings.Split(tool.Name, "_")[0]) {
				t.Errorf("%s says that it only reads", tool.Name)
			}
		case *a.DestructiveHint:
			destroys++
		case strings.Contains(tool.Name, "stop"), strings.Contains(tool.Name, "remove"), strings.Contains(tool.Name, "rollback"):
			t.Errorf("%s does not say that it destroys", tool.Name)
		}
	}
	if reads < 15 || destroys < 7 {
		t.Errorf("%d tools read and %d destroy", reads, destroys)
	}
}

// An agent that loops by itself has the guards of document 4, with their words, also
// after pawl has started again.
func TestIterations(t *testing.T) {
	t.Parallel()
	const file = `"flags":[{"ruleId":"lint","message":"Error in file: /src/api.ts","severity":"error"}]`
	red := func(flags string) [2]string {
		return [2]string{"iteration_validate", `{"taskId":"T","passed":false` + flags + `}`}
	}
	green := [2]string{"iteration_validate", `{"taskId":"T","passed":true}`}
	text := description(t)
	next := [2]string{"iteration_next", `{"taskId":"T"}`}
	for name, story := range map[string]struct {
		start string
		calls [][2]string
		want  string // in the last answer
	}{
		"goes on":   {`"maxIterations":3,"completionPromises":["DONE"],"validationRules":[{"name":"lint"}]`, [][2]string{red(""), next}, `{"completionPromises":["DONE"],"continue":true,"history":[{"iteration":1,"validationResult":{"passed":false}}],"iterationNumber":2,"maxIterations":3,"validationRules":[{"name":"lint"}]}`},
		"maximum":   {`"maxIterations":2`, [][2]string{green, next, green, next}, `"message":"Iteration 3 exceeds maximum of 2. Circuit breaker triggered."`},
		"breaker":   {`"maxIterations":9`, [][2]string{red(""), next, next, red(""), next}, `"message":"Circuit breaker OPEN: 3 consecutive validation failures (threshold: 3). Manual intervention required."`},
		"threshold": {`"maxIterations":9,"circuitBreakerThreshold":1`, [][2]string{red(""), next}, "(threshold: 1)"},
		"declines":  {`"maxIterations":9,"circuitBreakerThreshold":0`, [][2]string{green, next, red(""), next, red(""), next, red(""), next}, `"message":"Quality regression detected: Validation scores declined 2 consecutive times. Consider changing approach."`},
		"thrashing": {`"maxIterations":9,"circuitBreakerThreshold":0`, [][2]string{red("," + file), next, red("," + file), next, red("," + file), next, red("," + file), next, red("," + file), next}, `"message":"Thrashing detected: 1 file(s) modified 5+ times without progress: /src/api.ts"`},
		"stays":     {`"maxIterations":1`, [][2]string{next, next, {"iteration_start", `{"taskId":"T","maxIterations":50}`}}, `"message":"Iteration 2 exceeds maximum of 1.`},
		"corrected": {`"maxIterations":9,"circuitBreakerThreshold":1`, [][2]string{red(""), green, next}, `"iterationNumber":2`},
		"complete":  {`"maxIterations":9,"completionPromises":["DONE"]`, [][2]string{{"!iteration_complete", `{"taskId":"T","completionPromise":"DONE"}`}, green, {"!iteration_complete", `{"taskId":"T","completionPromise":"done?"}`}, {"iteration_complete", `{"taskId":"T","completionPromise":"DONE"}`}, next}, `"message":"The task is complete: DONE"`},
		"anew":      {`"maxIterations":1`, [][2]string{next, {"iteration_start", `{"taskId":"T","maxIterations":2,"fresh":true}`}}, `{"continue":true,"iterationNumber":1,"maxIterations":2}`},
		"unknown":   {`"maxIterations":1`, [][2]string{{"!iteration_next", `{"taskId":"other"}`}}, "call iteration_start"},
		"no limit":  {`"maxIterations":1`, [][2]string{{"!iteration_start", `{"taskId":"other","maxIterations":0}`}}, "at least 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			calls, got := append([][2]string{{"iteration_start", `{"taskId":"T",` + story.start + `}`}}, story.calls...), ""
			for half := range slices.Chunk(calls, len(calls)/2+1) {
				s, err := mcp.New(mcp.Options{Description: text, API: http.NotFoundHandler(), StateDir: dir})
				if err != nil {
					t.Fatal(err)
				}
				c := connect(t, s)
				for _, call := range half {
					got = c.call(call[0], call[1])
				}
			}
			if !strings.Contains(got, story.want) {
				t.Errorf("no %s in %s", story.want, got)
			}
		})
	}
}

// A tool that panics is refused; what else the process does goes on.
func TestPanic(t *testing.T) {
	t.Parallel()
	s, err := mcp.New(mcp.Options{
		Description: description(t), StateDir: t.TempDir(),
		API:  http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a fault") }),
		Next: func(context.Context) (board.Choice, bool, error) { panic("another") },
	})
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, s)
	for _, tool := range []string{"get_inbox", "next_case", "get_inbox"} {
		if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool}); err == nil || !strings.Contains(err.Error(), "fault in pawl") {
			t.Errorf("%s: %v", tool, err)
		}
	}
}

// What is no message is answered, and the session goes on.
func TestRubbish(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	const begin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
		`"clientInfo":{"name":"x","version":"1"}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for text, code := range map[string]string{
		"hello": "-32700", "": "", "\x00\xff": "-32700", "[]": "-32600", "{}": "-32600", "null": "-32600",
		`[{"jsonrpc":"2.0","id":3,"method":"ping"}]`:          "-32600",
		`{"jsonrpc":"1.0","id":3,"method":"ping"}`:            "-32600",
		`{"jsonrpc":"2.0","id":3,"method":"nothing"}`:         "-32601",
		`{"jsonrpc":"2.0","id":3}`:                            "",
		`"` + strings.Repeat("x", 5<<20) + `"`:                "at most 4 MiB",
		`{"jsonrpc":"2.0","id":"3","method":"tools/call"}`:    `"id":"3"`,
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`:           "",
		`{"jsonrpc":"2.0","id":3,"method":{}}`:                "-32600",
		`{"jsonrpc":"2.0","id":3,"method":"ping","params":1}`: "",
	} {
		in, client := io.Pipe()
		answers, out := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(t.Context(), in, out); _ = out.Close() }()
		go func() {
			_, _ = io.WriteString(client, begin+text+"\n"+`{"jsonrpc":"2.0","id":"last","method":"ping"}`+"\n")
		}()
		var got strings.Builder
		for lines := bufio.NewScanner(answers); lines.Scan(); {
			got.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), `"last"`) {
				break
			}
		}
		_ = client.Close()
		if !strings.Contains(got.String(), `"last"`) || !strings.Contains(got.String(), code) {
			t.Errorf("%.40s: %v", text, got.String())
		}
	}
}

func description(t testing.TB) []byte {
	t.Helper()
	text, err := web.New(nil, web.Options{Operator: action.New(action.Options{
		Log: func(string) *slog.Logger { return slog.New(slog.DiscardHandler) }})}).Description()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Whatever a client sends, it gets an answer, and the server goes on.
func FuzzCall(f *testing.F) {
	for _, seed := range [][2]string{
		{"get_case", `{"id":"task-001"}`}, {"get_case", `{"id":{"a":1}}`}, {"get_case", `{"id":"%2e%2e%2fruns"}`},
		{"list_cases", `{"status":[1,null]}`}, {"list_cases", `{"status":["a,b"],"cursor":"&x=1"}`}, {"add_case", `null`},
		{"add_case", `[]`}, {"add_case", `{"title":["x"],"priority":1e99}`}, {"edit_case", `{"id":"","title":null}`},
		{"read_iteration_file", `{"run":"x","number":1,"file":"../../etc/passwd"}`}, {"iteration_start", `{"taskId":"x","maxIterations":-1}`},
		{"iteration_validate", `{"taskId":"x","passed":"yes","flags":{}}`}, {"nothing", `{}`}, {"explain_output", `{"output":"\ud800"}`},
		{"iteration_start", `{"taskId":"` + strings.Repeat("x", 300) + `","maxIterations":1}`}, {"get_run", `{"run":1}`},
	} {
		f.Add(seed[0], seed[1])
	}
	c := connect(f, newServer(f))
	f.Fuzz(func(t *testing.T, tool, arguments string) {
		if !json.Valid([]byte(arguments)) || strings.Contains(tool, "start_") { // what starts processes is none of it
			return
		}
		_, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
		if err != nil && strings.Contains(err.Error(), "EOF") {
			t.Errorf("%s %s: %v", tool, arguments, err)
		}
		if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "next_case"}); err != nil {
			t.Errorf("after %s %s: %v", tool, arguments, err)
		}
	})
}

// Fifty clients at once have sessions of their own, and each gets its own answers.
func TestFiftySessions(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	ids := map[string]bool{}
	for n := range 50 {
		all.Go(func() {
			c := connect(t, s)
			title := fmt.Sprintf("The task of client %d", n)
			var made struct{ ID string }
			for _, call := range [][2]string{{"add_case", fmt.Sprintf(`{"title":%q}`, title)}, {"get_case", `{"id":"%s"}`}} {
				r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: call[0],
					Arguments: json.RawMessage(strings.Replace(call[1], "%s", made.ID, 1))})
				if err != nil || r.IsError || len(r.Content) == 0 {
					t.Errorf("%d: %v %v", n, err, r)
					return
				}
				text, _ := r.Content[0].(*sdk.TextContent)
				if err := json.Unmarshal([]byte(text.Text), &made); err != nil || !strings.Contains(text.Text, title) {
					t.Errorf("%d is told %s", n, text.Text)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			ids[made.ID] = true
		})
	}
	all.Wait()
	if len(ids) != 50 {
		t.Errorf("there are %d tasks", len(ids))
	}
}

// stuck is a client that says its words, or its words and that they are all, and reads nothing.
type stuck struct {
	io.Reader
	hangsUp bool
	free    chan struct{}
}

func (s stuck) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !s.hangsUp {
		<-s.free
	}
	return n, err
}

func (s stuck) Write([]byte) (int, error) {
	<-s.free
	return 0, io.ErrClosedPipe
}

// A client that asks and never reads does not keep pawl: it is over soon after the client has
// said all, or after a person has ended pawl.
func TestWhoNeverReads(t *testing.T) {
	t.Parallel()
	const begin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
		`"clientInfo":{"name":"x","version":"1"}}}` + "\n"
	for _, hangsUp := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			client := stuck{strings.NewReader(begin), hangsUp, make(chan struct{})}
			defer close(client.free)
			ended := make(chan error, 1)
			go func() { ended <- mcp.NewInside(t.TempDir(), "test").Serve(ctx, client, client) }()
			synctest.Wait()
			if !hangsUp {
				end()
			}
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(10 * time.Second):
				t.Errorf("it waits for a client that does not read; it hung up: %v", hangsUp)
			}
		})
	}
}

// A client that says all it has and hangs up is answered.
func TestAllAtOnce(t *testing.T) {
	said := `{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {},
"clientInfo": {"name": "x", "version": "1"}}}
{"jsonrpc": "2.0", "method": "notifications/initialized"}
rubbish
{"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
`
	for range 20 {
		var out bytes.Buffer
		said := strings.Replace(said, ",\n", ",", 1)
		if err := mcp.NewInside(t.TempDir(), "test").Serve(t.Context(), strings.NewReader(said), &out); err != nil {
			t.Fatal(err)
		}
		if answers := out.String(); strings.Count(answers, "\n") != 3 || !strings.Contains(answers, `"id":2,"result"`) {
			t.Fatalf("it answers\n%s", answers)
		}
	}
}

// An agent of a run has six tools, which are about its own task. It reaches no other by them,
// whatever it calls, and its folder only.
func TestInside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, agent.BriefFile), []byte(`{"title":"Greet"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := connect(t, mcp.NewInside(dir, "test"))
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if want := "add_follow_up_task ask blocked complete get_task report_progress"; strings.Join(names, " ") != want {
		t.Errorf("it has %q", names)
	}
	for _, tool := range []string{"get_case", "list_cases", "answer_run", "review_run", "move_case", "edit_case", "extend_case",
		"message_run", "start_run", "iteration_start", "read_iteration_file"} {
		if r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(`{"id":"2"}`)}); err == nil {
			t.Errorf("it can call %s: %v", tool, r)
		}
	}
	for _, arguments := range []string{`{}`, `{"id":"task-002"}`, `{"run":"../other"}`, `{"folder":"/"}`} {
		r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "get_task", Arguments: json.RawMessage(arguments)})
		text, _ := json.Marshal(r)
		if known := strings.Contains(string(text), "Greet"); known != (arguments == "{}") {
			t.Errorf("get_task %s: %v %s", arguments, err, text)
		}
	}
	c.call("!ask", `{"text":"`+strings.Repeat("x", 9<<10)+`"}`)
	for range 9 {
		_, _ = c.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask", Arguments: json.RawMessage(`{"text":"` + strings.Repeat("x", 8000) + `"}`)})
	}
	entries, err := os.ReadDir(dir)
	if info, serr := os.Stat(filepath.Join(dir, agent.SaidFile)); err != nil || serr != nil || len(entries) != 2 || info.Size() > agent.SaidLimit {
		t.Errorf("it left %v, %v, %v", entries, err, serr)
	}
}
