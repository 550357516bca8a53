package modelserver

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

func serve(t *testing.T, s Scenario) *Server {
	t.Helper()
	server := New(s)
	t.Cleanup(server.Close)
	return server
}

// client is of this package alone: a test server of another test that ends closes
// the idle connections of http.DefaultClient.
var client = &http.Client{Transport: &http.Transport{}}

// ask makes a request and returns its answer; err is that of the body.
func ask(t *testing.T, s *Server, method, path, body string) (resp *http.Response, answer string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err = client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

const (
	whole    = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	streamed = `{"model":"m","stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"hello"}]}]}`
)

func TestWholeMessage(t *testing.T) {
	t.Parallel()
	s := serve(t, Scenario{Replies: []Reply{{Text: "hi", Tools: []Tool{{Name: "Bash", Input: map[string]any{"command": "ls"}}}, Usage: Usage{Input: 5, Output: 6, CacheRead: 7, CacheWrite: 8}}}})
	_, body, err := ask(t, s, http.MethodPost, "/v1/messages", whole)
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Model, Role string
		StopReason  string `json:"stop_reason"`
		Content     []struct{ Type, Text, Name string }
		Usage       map[string]int
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatal(err)
	}
	if m.Model != "m" || m.StopReason != "tool_use" || len(m.Content) != 2 || m.Content[0].Text != "hi" || m.Content[1].Name != "Bash" {
		t.Errorf("message is %s", body)
	}
	if m.Usage["input_tokens"] != 5 || m.Usage["output_tokens"] != 6 || m.Usage["cache_read_input_tokens"] != 7 {
		t.Errorf("usage is %v", m.Usage)
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	s := serve(t, Scenario{Replies: []Reply{{Text: "hällo", Tools: []Tool{{Name: "Bash", Input: map[string]any{"command": "ls"}}}}}})
	resp, body, err := ask(t, s, http.MethodPost, "/v1/messages?beta=true", streamed)
	if err != nil || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%v, %v", resp, err)
	}
	var kinds []string
	text, input := "", ""
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var e struct {
			Type  string
			Delta struct {
				Text        string
				PartialJSON string `json:"partial_json"`
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Type)
		text += e.Delta.Text
		input += e.Delta.PartialJSON
	}
	if text != "hällo" || input != `{"command":"ls"}` || kinds[0] != "message_start" || kinds[len(kinds)-1] != "message_stop" {
		t.Errorf("text %q, input %q, events %q", text, input, kinds)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	s := serve(t, Scenario{Replies: []Reply{
		{Status: 429, Type: "rate_limit_error", Message: "slow down", Header: map[string]string{"retry-after": "7"}},
		{Body: "<html>", BodyType: "text/html"},
		{Text: "again and again"},
	}})
	resp, body, err := ask(t, s, http.MethodPost, "/v1/messages", whole)
	if err != nil || resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "7" || !strings.Contains(body, "slow down") {
		t.Errorf("%v %s %v", resp, body, err)
	}
	resp, body, err = ask(t, s, http.MethodPost, "/v1/messages", whole)
	if err != nil || resp.StatusCode != http.StatusOK || body != "<html>" || resp.Header.Get("Content-Type") != "text/html" {
		t.Errorf("%v %s %v", resp, body, err)
	}
	for range 2 {
		if _, body, err = ask(t, s, http.MethodPost, "/v1/messages", whole); err != nil || !strings.Contains(body, "again and again") {
			t.Errorf("%s %v", body, err)
		}
	}
	if _, _, err = ask(t, s, http.MethodPost, "/v1/messages", "no json"); err != nil {
		t.Error(err)
	}
	if got := len(s.Calls()); got != 5 {
		t.Errorf("%d calls", got)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	s := serve(t, Scenario{Replies: []Reply{{Text: "this breaks", Cut: 2}}})
	_, body, err := ask(t, s, http.MethodPost, "/v1/messages", streamed)
	if err == nil || strings.Count(body, "data: ") != 2 {
		t.Errorf("%q, %v", body, err)
	}
}

// A call that hangs ends when its client goes, and when the server closes.
func TestHang(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 2)
	s := New(Scenario{Decide: func(Request) Reply {
		asked <- struct{}{}
		return Reply{Hang: true}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for _, ctx := range []context.Context{ctx, t.Context()} {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/v1/messages", strings.NewReader(whole))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			resp, err := client.Do(req)
			if err == nil {
				err = resp.Body.Close()
			}
			ended <- err
		}()
		<-asked
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("the call that was given up has an answer")
	}
	s.Close()
	<-ended
}

func TestOtherRequests(t *testing.T) {
	t.Parallel()
	s := serve(t, Scenario{})
	for _, test := range []struct {
		method, path string
		status       int
	}{
		{http.MethodHead, "/", 200},
		{http.MethodPost, "/v1/messages/count_tokens", 200},
		{http.MethodGet, "/v1/models", 200},
		{http.MethodPost, "/v1beta/models/m:countTokens", 200},
		{http.MethodGet, "/api/other", 404},
		{http.MethodGet, "/v1/messages", 404},
	} {
		resp, _, err := ask(t, s, test.method, test.path, whole)
		if err != nil || resp.StatusCode != test.status {
			t.Errorf("%s %s: %v, %v", test.method, test.path, resp, err)
		}
	}
	if got := s.Requests(); len(got) != 6 || len(s.Calls()) != 0 || got[0].Method != http.MethodHead {
		t.Errorf("requests are %+v", got)
	}
}

func TestPrompt(t *testing.T) {
	t.Parallel()
	for _, body := range []string{whole, streamed} {
		if got := (Request{Body: []byte(body)}).Prompt(); strings.TrimSpace(got) != "hello" {
			t.Errorf("%s has the prompt %q", body, got)
		}
	}
	if got := (Request{Body: []byte("x")}).Prompt(); got != "" {
		t.Errorf("no JSON has the prompt %q", got)
	}
}
