package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine"
)

// collector keeps what it is sent.
type collector struct {
	*httptest.Server

	mu      sync.Mutex
	bodies  map[string][]string // by path
	headers http.Header
	status  int
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{bodies: map[string][]string{}, status: http.StatusOK}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bodies[r.URL.Path] = append(c.bodies[r.URL.Path], string(body))
		c.headers = r.Header
		w.WriteHeader(c.status)
		_, _ = io.WriteString(w, "not\nnow")
	}))
	t.Cleanup(c.Close)
	return c
}

func env(kv ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(kv); i += 2 {
			if kv[i] == name {
				return kv[i+1]
			}
		}
		return ""
	}
}

// story is what the engine tells of a run with a red and a green iteration.
func story(at time.Time) []engine.Notice {
	step := func() time.Time { at = at.Add(time.Second); return at }
	var all []engine.Notice
	tell := func(n engine.Notice) {
		n.At, n.Run = step(), "7k3f9m2p"
		all = append(all, n)
	}
	tell(engine.Notice{Kind: engine.RunStarted})
	for i := 1; i <= 2; i++ {
		c := loop.Command{Kind: loop.Run, Iteration: i, Attempt: 1, Agent: "claude", Strategy: "default"}
		tell(engine.Notice{Kind: engine.IterationStarted, Command: c})
		began := at
		tell(engine.Notice{Kind: engine.AgentEvent, Event: agent.Event{Kind: agent.Session, Session: "s1", Model: "m1"}})
		tell(engine.Notice{Kind: engine.AgentEvent, Event: agent.Event{Kind: agent.ToolStart, Tool: "Bash", Command: "cat secret.txt"}})
		tell(engine.Notice{Kind: engine.AgentEvent, Event: agent.Event{Kind: agent.ToolEnd, Tool: "Bash", Failed: i == 1}})
		tell(engine.Notice{Kind: engine.AgentEvent, Event: agent.Event{Kind: agent.ToolStart, Tool: "Edit"}})
		tell(engine.Notice{Kind: engine.GateStarted, Gate: loop.Gate{Name: "tests", Required: true}})
		g := loop.Gate{Name: "tests", Required: true, Status: loop.GatePassed, Elapsed: time.Second}
		r := &loop.Record{Number: i, Attempt: 1, StartedAt: began, Elapsed: 4 * time.Second, Agent: "claude", Strategy: "default", Outcome: loop.Success,
			TokensIn: 100, TokensOut: 10, Cost: 250_000, CostSource: "reported", Score: 1000}
		if i == 1 {
			g.Status, r.Outcome, r.Failure = loop.GateFailed, loop.Failed, &failure.Analysis{Class: failure.TestFailure}
		}
		tell(engine.Notice{Kind: engine.GateEnded, Gate: g})
		r.Gates = []loop.Gate{g}
		tell(engine.Notice{Kind: engine.IterationEnded, Record: r})
	}
	tell(engine.Notice{Kind: engine.RunEnded, State: loop.State{Status: loop.Completed, Why: "done"}})
	return all
}

// told is one span, for tests.
type told struct {
	TraceID, SpanID, ParentSpanID, Name string
	StartTimeUnixNano, EndTimeUnixNano  string
	Status                              struct {
		Code    int
		Message string
	}
	Attributes []struct {
		Key   string
		Value map[string]any
	}
}

func (c *collector) spans(t *testing.T) []told {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []told
	for _, body := range c.bodies["/v1/traces"] {
		var m struct {
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []told } }
		}
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Fatal(err)
		}
		for _, r := range m.ResourceSpans {
			for _, s := range r.ScopeSpans {
				all = append(all, s.Spans...)
			}
		}
	}
	return all
}

// tree is the spans as indented lines, in the order of their starts.
func tree(spans []told) string {
	slices.SortStableFunc(spans, func(a, b told) int { return strings.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano) })
	var b strings.Builder
	var under func(parent, indent string)
	under = func(parent, indent string) {
		for _, s := range spans {
			if s.ParentSpanID != parent {
				continue
			}
			var from, to int64
			_, _ = fmt.Sscan(s.StartTimeUnixNano, &from)
			_, _ = fmt.Sscan(s.EndTimeUnixNano, &to)
			fmt.Fprintf(&b, "%s%s %v %s\n", indent, s.Name, time.Duration(to-from), s.Status.Message)
			under(s.SpanID, indent+"  ")
		}
	}
	under("", "")
	return b.String()
}

func TestARunAsSpansAndMetrics(t *testing.T) {
	c := newCollector(t)
	x, err := Open(env("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL+"/", "OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b, x-other=2",
		"OTEL_RESOURCE_ATTRIBUTES", "team=night%20shift"), "v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range story(time.Now()) {
		x.Notice(n)
	}
	if err := x.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans := c.spans(t)
	want := `run 17s 
  iteration 7s test_failure
    invoke_agent claude 4s test_failure
    gate tests 1s failed
  iteration 7s 
    invoke_agent claude 4s 
    gate tests 1s 
`
	if got := tree(spans); got != want {
		t.Errorf("spans are\n%swant\n%s", got, want)
	}
	if c.headers.Get("X-Key") != "a b" || c.headers.Get("X-Other") != "2" || c.headers.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", c.headers)
	}
	all := strings.Join(append(c.bodies["/v1/traces"], c.bodies["/v1/metrics"]...), "\n")
	for _, s := range []string{`"gen_ai.usage.input_tokens"`, `"gen_ai.request.model"`, `"service.name"`, `"night shift"`, `"pawl.cost"`, `"pawl.tokens.input"`, `"pawl.iterations"`, `"pawl.cost_source"`, `"asDouble":0.5`} {
		if !strings.Contains(all, s) {
			t.Errorf("%s is not sent", s)
		}
	}
	if strings.Contains(all, "secret") {
		t.Error("a command is sent")
	}
}

// A run that is resumed goes on in its trace.
func TestATraceIsOfTheRun(t *testing.T) {
	c := newCollector(t)
	for range 2 {
		x, err := Open(env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", c.URL+"/v1/traces"), "v1")
		if err != nil {
			t.Fatal(err)
		}
		x.Notice(engine.Notice{Kind: engine.RunResumed, At: time.Now(), Run: "7k3f9m2p"})
		if err := x.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	spans := c.spans(t)
	if len(spans) != 2 || spans[0].TraceID != spans[1].TraceID || spans[0].SpanID == spans[1].SpanID {
		t.Errorf("spans %+v", spans)
	}
	if len(c.bodies["/v1/metrics"]) != 0 {
		t.Error("metrics are sent, and only traces have an endpoint")
	}
}

func TestOff(t *testing.T) {
	for _, e := range []func(string) string{
		env(),
		env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318", "OTEL_SDK_DISABLED", "true"),
		env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER", "none", "OTEL_METRICS_EXPORTER", "none"),
	} {
		if x, err := Open(e, "v1"); x != nil || err != nil {
			t.Errorf("a sender %v, %v", x, err)
		}
	}
}

func TestWrongSettings(t *testing.T) {
	const endpoint, at = "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"
	for want, e := range map[string]func(string) string{
		"is no URL of a collector":  env(endpoint, "collector:4318"),
		"OTLP over HTTP only":       env(endpoint, at, "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
		"a number of milliseconds":  env(endpoint, at, "OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
		"an entry that is not name": env(endpoint, at, "OTEL_EXPORTER_OTLP_HEADERS", "token"),
	} {
		if x, err := Open(e, "v1"); x != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a sender %v, %v; want %q", x, err, want)
		}
	}
}

// A collector that refuses, or does not exist, is told of once, without what an
// address may hide.
func TestACollectorThatIsAway(t *testing.T) {
	c := newCollector(t)
	c.status = http.StatusServiceUnavailable
	const nobody = "http://127.0.0.1:1"
	for at, want := range map[string]string{c.URL: "answers 503 Service Unavailable: not now", nobody: "connection refused"} {
		x, err := Open(env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", at+"/v1/traces?key=secret"), "v1")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range story(time.Now()) {
			x.Notice(n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // an interrupt
		err = x.Close(ctx)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// Notices in an odd order, as after a crash, end every span once.
func TestOddOrder(t *testing.T) {
	c := newCollector(t)
	x, err := Open(env("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL), "v1")
	if err != nil {
		t.Fatal(err)
	}
	notices := story(time.Now())
	slices.Reverse(notices)
	for _, n := range notices {
		x.Notice(n)
	}
	if err := x.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range c.spans(t) {
		if seen[s.SpanID] {
			t.Errorf("%s is sent twice", s.Name)
		}
		seen[s.SpanID] = true
	}
	if len(seen) != 7 {
		t.Errorf("%d spans", len(seen))
	}
}
