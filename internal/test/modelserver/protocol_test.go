package modelserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// api is one protocol as a client writes a call of it.
type api struct {
	name, whole, streamed string // paths
	body                  func(stream bool) string
	said                  func(t *testing.T, data []string) said
}

// said is what a client makes of a stream.
type said struct {
	text, tool, arguments string
	in, cached, out       int
	reason                string
}

var apis = []api{
	{
		name: "anthropic", whole: "/v1/messages", streamed: "/v1/messages",
		body: func(stream bool) string {
			return fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"user","content":"hello"}],"tools":[{"name":"run"}]}`, stream)
		},
		said: saidAnthropic,
	},
	{
		name: "responses", whole: "/v1/responses", streamed: "/v1/responses",
		body: func(stream bool) string {
			return fmt.Sprintf(`{"model":"m","stream":%v,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]},
				{"type":"message","role":"developer","content":[{"type":"input_text","text":"obey"}]}],"tools":[{"type":"function","name":"run"},{"type":"web_search"}]}`, stream)
		},
		said: saidResponses,
	},
	{
		name: "chat", whole: "/v1/chat/completions", streamed: "/v1/chat/completions",
		body: func(stream bool) string {
			return fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"system","content":"obey"},{"role":"user","content":"hello"}],
				"tools":[{"type":"function","function":{"name":"run"}}]}`, stream)
		},
		said: saidChat,
	},
	{
		name: "gemini", whole: "/v1beta/models/m:generateContent", streamed: "/v1beta/models/m:streamGenerateContent?alt=sse",
		body: func(bool) string {
			return `{"contents":[{"role":"user","parts":[{"text":"hello"}]},{"role":"model","parts":[{"text":"no"}]}],
				"tools":[{"functionDeclarations":[{"name":"run"}]}]}`
		},
		said: saidGemini,
	},
}

func decode[T any](t *testing.T, data string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return v
}

func saidAnthropic(t *testing.T, data []string) (s said) {
	for _, d := range data {
		e := decode[struct {
			ContentBlock struct{ Name string } `json:"content_block"`
			Delta        struct {
				Text        string
				PartialJSON string `json:"partial_json"`
				StopReason  string `json:"stop_reason"`
			}
			Usage struct {
				In    int `json:"input_tokens"`
				Out   int `json:"output_tokens"`
				Read  int `json:"cache_read_input_tokens"`
				Write int `json:"cache_creation_input_tokens"`
			}
		}](t, d)
		s.text += e.Delta.Text
		s.tool += e.ContentBlock.Name
		s.arguments += e.Delta.PartialJSON
		s.reason += e.Delta.StopReason
		s.in, s.cached, s.out = e.Usage.In+e.Usage.Read+e.Usage.Write, max(s.cached, e.Usage.Read), max(s.out, e.Usage.Out)
		if e.Delta.StopReason != "" {
			return s
		}
	}
	return s
}

func saidResponses(t *testing.T, data []string) (s said) {
	for i, d := range data {
		e := decode[struct {
			Type     string
			Number   int `json:"sequence_number"`
			Delta    string
			Item     struct{ Name, Arguments string }
			Response struct {
				Status string
				Output []struct {
					Type    string
					Content []struct{ Text string }
				}
				Usage *struct {
					In      int `json:"input_tokens"`
					Details struct {
						Cached int `json:"cached_tokens"`
					} `json:"input_tokens_details"`
					Out int `json:"output_tokens"`
				}
			}
		}](t, d)
		if e.Number != i {
			t.Errorf("event %d has the number %d", i, e.Number)
		}
		switch e.Type {
		case "response.output_text.delta":
			s.text += e.Delta
		case "response.function_call_arguments.delta":
			s.arguments += e.Delta
		case "response.output_item.done":
			s.tool += e.Item.Name
			if e.Item.Arguments != s.arguments {
				t.Errorf("the item has the arguments %s, its pieces %s", e.Item.Arguments, s.arguments)
			}
		case "response.completed":
			if len(e.Response.Output) != 2 || e.Response.Output[0].Content[0].Text != s.text {
				t.Errorf("the response is %s", d)
			}
			s.reason = e.Response.Status
			s.in, s.cached, s.out = e.Response.Usage.In, e.Response.Usage.Details.Cached, e.Response.Usage.Out
		}
	}
	return s
}

func saidChat(t *testing.T, data []string) (s said) {
	for i, d := range data {
		if d == "[DONE]" {
			if i != len(data)-1 {
				t.Errorf("something comes after [DONE]: %q", data[i+1:])
			}
			continue
		}
		e := decode[struct {
			Choices []struct {
				Delta struct {
					Content string
					Calls   []struct {
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				Reason string `json:"finish_reason"`
			}
			Usage struct {
				In      int `json:"prompt_tokens"`
				Out     int `json:"completion_tokens"`
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}](t, d)
		for _, c := range e.Choices {
			s.text += c.Delta.Content
			s.reason += c.Reason
			for _, call := range c.Delta.Calls {
				s.tool += call.Function.Name
				s.arguments += call.Function.Arguments
			}
		}
		s.in, s.cached, s.out = e.Usage.In, e.Usage.Details.Cached, e.Usage.Out
	}
	return s
}

func saidGemini(t *testing.T, data []string) (s said) {
	for _, d := range data {
		e := decode[struct {
			Candidates []struct {
				Content struct {
					Parts []struct {
						Text string
						Call struct {
							Name string
							Args json.RawMessage
						} `json:"functionCall"`
					}
				}
				Reason string `json:"finishReason"`
			}
			Usage struct {
				In     int `json:"promptTokenCount"`
				Out    int `json:"candidatesTokenCount"`
				Cached int `json:"cachedContentTokenCount"`
			} `json:"usageMetadata"`
		}](t, d)
		for _, c := range e.Candidates {
			s.reason += c.Reason
			for _, p := range c.Content.Parts {
				s.text += p.Text
				s.tool += p.Call.Name
				s.arguments += string(p.Call.Args)
			}
		}
		s.in, s.cached, s.out = e.Usage.In, e.Usage.Cached, e.Usage.Out
	}
	return s
}

func dataOf(body string) (data []string) {
	for line := range strings.Lines(body) {
		if d, ok := strings.CutPrefix(line, "data: "); ok {
			data = append(data, strings.TrimSuffix(d, "\n"))
		}
	}
	return data
}

var called = Reply{Text: "hällo", Tools: []Tool{{Name: "run", Input: map[string]any{"cmd": "ls"}}}, Usage: Usage{Input: 5, Output: 6, CacheRead: 7, CacheWrite: 8}}

func TestStreamOfEachAPI(t *testing.T) {
	t.Parallel()
	reasons := map[string]string{"anthropic": "tool_use", "responses": "completed", "chat": "tool_calls", "gemini": "STOP"}
	for _, a := range apis {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, Scenario{Replies: []Reply{called}})
			resp, body, err := ask(t, s, http.MethodPost, a.streamed, a.body(true))
			if err != nil || resp.Header.Get("Content-Type") != "text/event-stream" {
				t.Fatalf("%v, %v", resp, err)
			}
			want := said{text: "hällo", tool: "run", arguments: `{"cmd":"ls"}`, in: 20, cached: 7, out: 6, reason: reasons[a.name]}
			if got := a.said(t, dataOf(body)); got != want {
				t.Errorf("said %+v, want %+v\n%s", got, want, body)
			}
			call := s.Calls()[0]
			if call.Call != 1 || strings.TrimSpace(call.Prompt()) != "hello" || call.Tools()[0] != "run" {
				t.Errorf("call %d has the prompt %q and the tools %q", call.Call, call.Prompt(), call.Tools())
			}
		})
	}
}

func TestWholeOfEachAPI(t *testing.T) {
	t.Parallel()
	for _, a := range apis {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, Scenario{Replies: []Reply{called}})
			resp, body, err := ask(t, s, http.MethodPost, a.whole, a.body(false))
			if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" {
				t.Fatalf("%v, %v", resp, err)
			}
			decode[map[string]any](t, body)
			for _, part := range []string{"hällo", `"run"`, "ls", `"m"`} {
				if !strings.Contains(body, part) {
					t.Errorf("%q is not in %s", part, body)
				}
			}
		})
	}
}

// Every kind of trouble is the same for all of them.
func TestTroubleOfEachAPI(t *testing.T) {
	t.Parallel()
	for _, a := range apis {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, Scenario{Replies: []Reply{
				{Status: 429, Type: "kind", Code: "A_REASON", Message: "slow down", Header: map[string]string{"retry-after": "7"}, Details: map[string]any{"more": 1}},
				{Body: "<html>", BodyType: "text/html"},
				{Text: "this breaks", Cut: 2},
				{Text: "this is slow", Pause: time.Millisecond},
			}})
			resp, body, err := ask(t, s, http.MethodPost, a.streamed, a.body(true))
			if err != nil || resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "7" {
				t.Fatalf("%v %v", resp, err)
			}
			problem := decode[struct{ Error map[string]any }](t, body).Error
			if problem["message"] != "slow down" || problem["more"] == nil {
				t.Errorf("the error is %s", body)
			}
			resp, body, err = ask(t, s, http.MethodPost, a.streamed, a.body(true))
			if err != nil || resp.StatusCode != http.StatusOK || body != "<html>" {
				t.Errorf("%v %s %v", resp, body, err)
			}
			if _, body, err = ask(t, s, http.MethodPost, a.streamed, a.body(true)); err == nil || len(dataOf(body)) != 2 {
				t.Errorf("the stream was not cut after two events: %s, %v", body, err)
			}
			if _, body, err = ask(t, s, http.MethodPost, a.streamed, a.body(true)); err != nil || a.said(t, dataOf(body)[:1]).reason != "" {
				t.Errorf("%s %v", body, err)
			}
			resp, body, err = ask(t, s, http.MethodPost, a.streamed, "no JSON")
			if err != nil || resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "no JSON") {
				t.Errorf("%v %s %v", resp, body, err)
			}
		})
	}
}

func TestGeminiError(t *testing.T) {
	t.Parallel()
	s := serve(t, Scenario{Replies: []Reply{{Status: 400, Code: "API_KEY_INVALID", Message: "no", Header: map[string]string{"retry-after": "3"}}}})
	_, body, err := ask(t, s, http.MethodPost, apis[3].whole, apis[3].body(false))
	if err != nil {
		t.Fatal(err)
	}
	got := decode[struct {
		Error struct {
			Code    int
			Status  string
			Details []struct{ Reason, RetryDelay string }
		}
	}](t, body).Error
	if got.Code != 400 || got.Status != "INVALID_ARGUMENT" || len(got.Details) != 2 || got.Details[0].Reason != "API_KEY_INVALID" || got.Details[1].RetryDelay != "3s" {
		t.Errorf("the error is %s", body)
	}
}

// An answer that ends before its time says so.
func TestReasonOfTheScript(t *testing.T) {
	t.Parallel()
	for i, want := range []string{`"stop_reason":"early"`, `"incomplete_details":{"reason":"early"}`, `"finish_reason":"early"`, `"finishReason":"early"`} {
		s := serve(t, Scenario{Replies: []Reply{{Text: "x", StopReason: "early"}}})
		for _, path := range []string{apis[i].whole, apis[i].streamed} {
			_, body, err := ask(t, s, http.MethodPost, path, apis[i].body(path == apis[i].streamed))
			if err != nil || !strings.Contains(body, want) {
				t.Errorf("%s: %s %v", path, body, err)
			}
		}
	}
}

func TestAsides(t *testing.T) {
	t.Parallel()
	s := serve(t, Scenario{Replies: []Reply{{Text: "the work"}}, Asides: true})
	_, body, err := ask(t, s, http.MethodPost, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"a title, please"}]}`)
	if err != nil || strings.Contains(body, "the work") {
		t.Errorf("%s %v", body, err)
	}
	_, body, err = ask(t, s, http.MethodPost, "/v1/chat/completions", apis[2].body(false))
	if err != nil || !strings.Contains(body, "the work") {
		t.Errorf("%s %v", body, err)
	}
	var asides []bool
	for _, r := range s.Requests() {
		asides = append(asides, r.Aside)
	}
	if !slices.Equal(asides, []bool{true, false}) || len(s.Calls()) != 1 {
		t.Errorf("asides %v, %d calls", asides, len(s.Calls()))
	}
}

// A program that asks without end is answered, and not remembered.
func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, Scenario{})
	for range maxKept + 3 {
		if _, _, err := ask(t, s, http.MethodGet, "/", ""); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(s.Requests()); got != maxKept {
		t.Errorf("%d requests are kept", got)
	}
}
