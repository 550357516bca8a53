package gateway

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/test/modelserver"
)

const (
	testToken = "token-of-one-attempt"
	testKey   = "key-of-the-user"
)

// rig is a gateway before a scripted provider.
type rig struct {
	t        *testing.T
	gateway  *Gateway
	url      string
	provider *modelserver.Server
	client   *http.Client

	mu     sync.Mutex
	events []agent.Event
	ended  []loop.Ended
	why    string
	slept  []time.Duration
	stop   func()
}

// with is a gateway before a provider that answers by the script. change may
// change its configuration.
func with(t *testing.T, s modelserver.Scenario, change func(*Config)) *rig {
	t.Helper()
	provider := modelserver.New(s)
	t.Cleanup(provider.Close)
	r := before(t, provider.URL(), change)
	r.provider = provider
	return r
}

// before is a gateway before the provider at base.
func before(t *testing.T, base string, change func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, client: &http.Client{Transport: &http.Transport{}}}
	c := Config{
		Token: testToken,
		Routes: []agent.Route{
			{Name: "anthropic", KeyIn: "ANTHROPIC_API_KEY", Protocol: agent.Anthropic, Base: base, Header: "X-Api-Key", Key: testKey},
			{Name: "openai", Protocol: agent.OpenAI, Base: base + "/v1", Header: "Authorization", Key: testKey},
			{Name: "gemini", Protocol: agent.Gemini, Base: base, Header: "X-Goog-Api-Key", Key: testKey},
		},
		Prices:    agent.Prices{"m": {Input: 3_000_000, Output: 15_000_000, CacheRead: 300_000, CacheWrite: 3_750_000}},
		Transport: &http.Transport{},
		Emit:      r.emit,
		End:       r.end,
		Sleep:     r.sleep,
	}
	if change != nil {
		change(&c)
	}
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	t.Cleanup(r.client.CloseIdleConnections)
	r.gateway, r.url = g, server.URL
	return r
}

func (r *rig) emit(e agent.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *rig) end(e loop.Ended, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended, r.why = append(r.ended, e), why
}

func (r *rig) sleep(_ context.Context, d time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slept = append(r.slept, d)
	return true
}

// outcome is what the events add up to.
func (r *rig) outcome() agent.Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := agent.NewCollector()
	for _, e := range r.events {
		c.Add(e)
	}
	return c.Outcome()
}

// kinds of calls, with requests that ask for a stream and for a whole answer.
var kinds = []struct{ name, path, stream, whole, header string }{
	{"messages", "/anthropic/v1/messages", `{"model":"m","stream":true,"max_tokens":100,"tools":[{}],"messages":[{"role":"user","content":"hello"}]}`,
		`{"model":"m","max_tokens":100,"tools":[{}],"messages":[{"role":"user","content":"hello"}]}`, "X-Api-Key"},
	{"chat", "/openai/chat/completions", `{"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[{}],"messages":[{"role":"user","content":"hello"}]}`,
		`{"model":"m","tools":[{}],"messages":[{"role":"user","content":"hello"}]}`, "Authorization"},
	{"responses", "/openai/responses", `{"model":"m","stream":true,"tools":[{}],"input":"hello"}`, `{"model":"m","tools":[{}],"input":"hello"}`, "Authorization"},
	{"generate", "/gemini/v1beta/models/m:", `{"tools":[{}],"contents":[{"parts":[{"text":"hello"}]}]}`, "", "X-Goog-Api-Key"},
}

// post asks as an agent does.
func (r *rig) post(path, header, body string) (int, string, http.Header) {
	r.t.Helper()
	return r.ask(http.MethodPost, path, header, testToken, body)
}

func (r *rig) ask(method, path, header, token, body string) (int, string, http.Header) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if header == "Authorization" {
		token = "Bearer " + token
	}
	req.Header.Set(header, token)
	resp, err := r.client.Do(req)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, string(b) + "\n" + err.Error(), resp.Header
	}
	return resp.StatusCode, string(b), resp.Header
}

// drain asks, and counts what comes.
func (r *rig) drain(path, body string) int64 {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", testToken)
	resp, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	n, _ := io.Copy(io.Discard, resp.Body)
	return n
}

// serve is a gateway that listens by itself until it is stopped.
func serve(t *testing.T, base string, change func(*Config)) *rig {
	t.Helper()
	r := before(t, base, change)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.gateway.Serve(ctx, l) }()
	r.url = "http://" + l.Addr().String()
	r.stop = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	return r
}
