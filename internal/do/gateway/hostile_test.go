package gateway

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/test/modelserver"
)

// raw sends bytes as they are, and returns the status of each answer.
func (r *rig) raw(text string) []int {
	r.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		r.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		r.t.Fatal(err)
	}
	var statuses []int
	for in := bufio.NewReader(conn); ; {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return statuses
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if statuses = append(statuses, resp.StatusCode); len(statuses) == 1 {
			_ = conn.(*net.TCPConn).CloseWrite() // before that it would look as if the agent had gone
		}
	}
}

// What an agent hides in one request is no second one for the provider, and goes
// nowhere but to the provider's own address.
func TestNothingIsSmuggled(t *testing.T) {
	t.Parallel()
	const path, body = "/anthropic/v1/messages", `{"model":"m","messages":[]}`
	key := "X-Api-Key: " + testToken + "\r\n"
	inner := "POST /v1/organizations/api_keys HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
	length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	for name, test := range map[string]struct {
		request string
		want    int // of the first answer; 0 is none
		passed  int // calls that the provider saw
	}{
		"two lengths":       {"POST " + path + " HTTP/1.1\r\nHost: x\r\n" + key + length + "Content-Length: 1\r\n\r\n" + body, 400, 0},
		"length and chunks": {"POST " + path + " HTTP/1.1\r\nHost: x\r\n" + key + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked + inner, 200, 1},
		"odd coding":        {"POST " + path + " HTTP/1.1\r\nHost: x\r\n" + key + length + "Transfer-Encoding: xchunked\r\n\r\n" + body, 501, 0},
		"a request behind":  {"POST " + path + " HTTP/1.1\r\nHost: x\r\n" + key + length + "\r\n" + body + inner, 200, 1},
		"a folded header":   {"POST " + path + " HTTP/1.1\r\nHost: x\r\n" + key + "X: a\r\n b: c\r\n" + length + "\r\n" + body, 200, 1},
		"a space in a name": {"POST " + path + " HTTP/1.1\r\nHost: x\r\nX-Api-Key : " + testToken + "\r\n" + length + "\r\n" + body, 400, 0},
		"a line in a value": {"POST " + path + " HTTP/1.1\r\nHost: x\r\n" + key + "Accept: a\rX-Admin: 1\r\n" + length + "\r\n" + body, 400, 0},
		"two tokens":        {"POST " + path + " HTTP/1.1\r\nHost: x\r\nX-Api-Key: other\r\n" + key + length + "\r\n" + body, 401, 0},
		"another address":   {"POST http://elsewhere.test" + path + " HTTP/1.1\r\nHost: x\r\n" + key + length + "\r\n" + body, 200, 1},
		"a tunnel":          {"CONNECT elsewhere.test:443 HTTP/1.1\r\nHost: elsewhere.test:443\r\n" + key + "\r\n", 404, 0},
		"a star":            {"OPTIONS * HTTP/1.1\r\nHost: x\r\n" + key + "\r\n", 200, 0},
		"another method":    {"POST " + path + " HTTP/1.1\r\nHost: x\r\n" + key + "X-HTTP-Method-Override: DELETE\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n" + length + "\r\n" + body, 200, 1},
		"no host":           {"POST " + path + " HTTP/1.1\r\n" + key + length + "\r\n" + body, 400, 0},
		"rubbish":           {"\x00\xff\x16\x03\x01 hello\r\n\r\n", 400, 0},
		"HTTP/2 unasked":    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 404, 0},
	} {
		r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "hi"}}}, nil)
		got := append(r.raw(test.request), 0)
		if got[0] != test.want {
			t.Errorf("%s: status %d, want %d", name, got[0], test.want)
		}
		seen := r.provider.Requests()
		if len(seen) != test.passed {
			t.Errorf("%s: the provider saw %d requests", name, len(seen))
		}
		for _, one := range seen {
			odd := one.Header.Get("X-Http-Method-Override") + one.Header.Get("Upgrade") + one.Header.Get("X")
			if one.Path != "/v1/messages" || string(one.Body) != body || one.Header.Get("X-Api-Key") != testKey || odd != "" {
				t.Errorf("%s: the provider saw %+v", name, one)
			}
		}
	}
}

// A path means what it says, or nothing.
func TestPathTricks(t *testing.T) {
	t.Parallel()
	r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "hi"}}}, nil)
	for _, path := range []string{
		"//anthropic/v1/messages", "/anthropic//v1/messages", "/anthropic/v1//messages", "/anthropic/v1/messages/.",
		"/anthropic/%2e%2e/v1/messages", "/anthropic/v1/messages/%2e%2e/organizations", "/anthropic/v1/%6dessages",
		"/anthropic/v1/messages;x=1", "/anthropic/v1/messages%3Fx", "/anthropic/v1/messages%00", "/anthropic/v1/messages%0d%0aX:1",
		"/anthropic/V1/messages", "/anthropic/v1/messages\\..\\admin", "/ANTHROPIC/v1/messages", "/./anthropic/v1/messages",
		"/gemini/v1beta/models/../tunedModels/m:generateContent", "/gemini/v1beta/models/m:generateContent/x",
		"/gemini/v1beta/models/a/b/c:generateContent", "/gemini/v1beta/models/m%3AgenerateContent", "/openai/v1/v1/responses",
	} {
		got := append(r.raw("POST "+path+" HTTP/1.1\r\nHost: x\r\nX-Api-Key: "+testToken+"\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"), 0)
		if got[0] != 403 && got[0] != 404 && got[0] != 400 {
			t.Errorf("%s: status %d", path, got[0])
		}
	}
	if n := len(r.provider.Requests()); n != 0 {
		t.Errorf("the provider saw %d requests", n)
	}
}

// Each attempt has a token of its own, and it opens nothing once that is over.
func TestTokenIsOfOneAttempt(t *testing.T) {
	t.Parallel()
	reply := modelserver.Scenario{Replies: []modelserver.Reply{{Text: "hi"}}}
	one := with(t, reply, nil)
	two := with(t, reply, func(c *Config) { c.Token = "token-of-another-attempt" })
	if status, _, _ := two.post(kinds[0].path, kinds[0].header, kinds[0].whole); status != http.StatusUnauthorized {
		t.Errorf("status %d", status)
	}
	if status, _, _ := one.post(kinds[0].path, kinds[0].header, kinds[0].whole); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	r := serve(t, one.provider.URL(), nil)
	if status, _, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].whole); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	r.stop() // its connection was kept for a next request
	if status, answer, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].whole); status != 0 {
		t.Errorf("after the attempt: status %d: %s", status, answer)
	}
}

// An agent that floods the gateway gets its calls and no more, and another path
// of it is not shut for ever.
func TestFlood(t *testing.T) {
	t.Parallel()
	r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "hi"}}}, func(c *Config) { c.Limits.Calls = 50 })
	var all sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for range 200 {
		all.Go(func() {
			status, _, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].stream)
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
	}
	all.Wait()
	if statuses[200] != 50 || statuses[400] != 150 || len(r.provider.Requests()) != 50 {
		t.Errorf("statuses are %v, the provider saw %d", statuses, len(r.provider.Requests()))
	}
	if out := r.outcome(); out.Calls != 50 {
		t.Errorf("%d calls are counted", out.Calls)
	}
}

// 200 streams at once pass whole and are counted apart.
func TestManyStreams(t *testing.T) {
	t.Parallel()
	const streams = 200
	var arrived sync.WaitGroup
	arrived.Add(streams)
	s := provider(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":10}}}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		arrived.Done()
		arrived.Wait() // all are open at the same time
		_, _ = io.WriteString(w, `data: {"type":"content_block_delta","delta":{"text":"hello"}}`+"\n\n"+
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`+"\n\n"+`data: {"type":"message_stop"}`+"\n\n")
	})
	r := before(t, s.URL, nil)
	var all sync.WaitGroup
	for range streams {
		all.Go(func() {
			if _, answer, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].stream); !strings.HasSuffix(answer, "message_stop\"}\n\n") {
				t.Errorf("the answer is %q", answer)
			}
		})
	}
	all.Wait()
	want := agent.Usage{Input: 10 * streams, Output: 2 * streams}
	if models, _, _ := r.gateway.Totals(); models["m"].Usage != want || models["m"].Calls != streams {
		t.Errorf("totals are %+v", models)
	}
}

// What a provider sends that is no answer passes in bounded memory, and is known
// for what it is. 100 MB come in one line, and in one answer.
func TestEndlessAnswers(t *testing.T) {
	t.Parallel()
	const size = 100 << 20
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for kind, want := range map[string]string{"text/event-stream": BrokenStream, "application/json": BrokenStream} {
		s := provider(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, "data: ")
			for range size / len(piece) {
				_, _ = w.Write(piece)
			}
		})
		r := before(t, s.URL, nil)
		if n := r.drain(kinds[0].path, kinds[0].stream); n < size {
			t.Errorf("%s: %d bytes passed", kind, n)
		}
		if flaw := r.gateway.Flaw(); flaw == nil || flaw.Type != want {
			t.Errorf("%s: flaw is %+v", kind, flaw)
		}
	}
}

// A limit holds for a stream of Gemini's that is one JSON list, which nobody can cut.
func TestListOfGeminiNeedsRoom(t *testing.T) {
	t.Parallel()
	r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "hi"}}}, func(c *Config) { c.Limits.Cost = 100_000 })
	body := `{"generationConfig":{"maxOutputTokens":8000},"contents":[]}` // up to $0.12
	path := "/gemini/v1beta/models/m:streamGenerateContent"
	if status, answer, _ := r.post(path, "X-Goog-Api-Key", body); status != 400 || r.ended[0] != loop.EndedCost {
		t.Errorf("status %d: %s", status, answer)
	}
	if status, answer, _ := r.post(path+"?alt=sse", "X-Goog-Api-Key", body); status != 200 {
		t.Errorf("status %d: %s", status, answer)
	}
}

// The provider's clock may be another one: a time that it names is meant by its own.
func TestClocksThatDiffer(t *testing.T) {
	t.Parallel()
	theirs := time.Now().Add(-5 * time.Hour).UTC()
	header := map[string]string{
		"Date": theirs.Format(http.TimeFormat), "Retry-After": theirs.Add(30 * time.Second).Format(http.TimeFormat),
	}
	s := provider(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for k, v := range header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(http.StatusTooManyRequests)
	})
	r := before(t, s.URL, nil)
	_, _, _ = r.post(kinds[0].path, kinds[0].header, kinds[0].stream)
	if len(r.slept) != 2 || r.slept[0] != 30*time.Second {
		t.Errorf("it waits %v", r.slept)
	}
}

// An agent that makes many calls at once passes a limit by one answer, though it does not
// say how long they may be, and thoughts that nobody sees come with them.
func TestManyAtOnceHoldALimit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, path, header, body string, _ bool) {
		body = strings.Replace(body, `"max_tokens":100,`, "", 1)
		for name, limit := range map[string]func(*Config){
			"money":  func(c *Config) { c.Limits.Cost = 100_000 },
			"tokens": func(c *Config) { c.Limits.Tokens = 7_000 },
		} {
			usage := modelserver.Usage{Input: 100, Output: 4000} // $0.0603
			r := with(t, modelserver.Scenario{Replies: []modelserver.Reply{{Text: "hi", Usage: usage}}}, limit)
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() { _, _, _ = r.post(path, header, body) })
			}
			all.Wait()
			if n := len(r.provider.Requests()); n != 2 {
				t.Errorf("%s: %d calls were made", name, n)
			}
		}
	})
}

// A call that waits for room does not outlive the agent that made it.
func TestWaitForRoomEnds(t *testing.T) {
	t.Parallel()
	a := &account{limits: Limits{Tokens: 1000}, flying: map[*flight]bool{}, landed: make(chan struct{})}
	if f, over := a.admitCall(t.Context(), question{model: "m"}, 400); f == nil || over != nil {
		t.Fatalf("%+v, %+v", f, over)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if f, over := a.admitCall(ctx, question{model: "m"}, 400); f != nil || over != nil {
		t.Errorf("%+v, %+v", f, over)
	}
}

// A provider that says a key back, as some servers do of a wrong one, says it to pawl.
func TestKeyIsNotSaidBack(t *testing.T) {
	t.Parallel()
	s := provider(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"type":"invalid_request_error","message":"bad request with %v"}}`, r.Header)
	})
	r := before(t, s.URL, nil)
	for _, k := range kinds[:3] {
		_, answer, _ := r.post(k.path, k.header, k.whole)
		_, listed, _ := r.ask("GET", k.path[:strings.Index(k.path[1:], "/")+1]+"/v1/models", k.header, testToken, "")
		said := fmt.Sprint(answer, listed, r.outcome().Errors)
		if strings.Contains(said, testKey) || strings.Count(said, "bad request with") != 3 {
			t.Errorf("%s: %s", k.name, said)
		}
		r.events = nil
	}
}
