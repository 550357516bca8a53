package telemetry

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine"
)

// Sender turns the records of one run into spans and sums.
type Sender struct {
	settings settings
	post     poster
	sending  sync.WaitGroup
	began    time.Time

	trace, run     string    // ids; run is "" where none is under way
	runBegan       time.Time // of that part of the run which this pawl drives
	iteration      time.Time // when it began
	model, session string    // of its agent
	ended          []object  // spans that are to be sent
	sums           sums
}

// Open returns a sender as the environment asks for, which getenv looks up;
// nil when it asks for none. A wrong setting is an error that says how it is
// written.
func Open(getenv func(string) string, version string) (*Sender, error) {
	s, err := settingsFrom(getenv, version)
	off := s.traces == "" && s.metrics == ""
	if err != nil || off {
		return nil, err
	}
	x := &Sender{settings: s, began: time.Now()}
	x.post.headers, x.post.client.Timeout = s.headers, min(s.timeout, closeWithin)
	return x, nil
}

// closeWithin bounds what a collector that does not answer costs at the end.
const closeWithin = 5 * time.Second

// Close sends what is left, within five seconds, and says what could not be
// sent.
func (x *Sender) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	x.endRunSpan(time.Now(), "", attrs{})
	x.sendEnded(ctx)
	x.sending.Wait() // a message is given up after as long
	return x.post.firstFailure()
}

// sendEnded sends what has ended, beside the run.
func (x *Sender) sendEnded(ctx context.Context) {
	if to := x.settings.traces; to != "" && len(x.ended) > 0 {
		spans := x.exportBody("resourceSpans", "scopeSpans", "spans", x.ended)
		x.sending.Go(func() { x.post.postMessage(ctx, to, spans) })
	}
	x.ended = nil
	if to := x.settings.metrics; to != "" && len(x.sums) > 0 {
		metrics := x.exportBody("resourceMetrics", "scopeMetrics", "metrics", x.sums.metricObjects(x.began, time.Now()))
		x.sending.Go(func() { x.post.postMessage(ctx, to, metrics) })
	}
}

// exportBody is the body of an export: all is of one resource and one scope, as
// pawl has only one.
func (x *Sender) exportBody(resources, scopes, name string, all []object) object {
	return object{resources: []object{{
		"resource": object{"attributes": attributesOf(x.settings.resource)},
		scopes:     []object{{"scope": object{"name": "github.com/pawl-dev/pawl"}, name: all}},
	}}}
}

// Notice takes one notice of the engine.
func (x *Sender) Notice(n engine.Notice) {
	switch n.Kind {
	case engine.RunStarted, engine.RunResumed:
		x.endRunSpan(n.At, "", attrs{})
		x.trace, x.run, x.runBegan = traceIDOf(n.Run), newSpanID(), n.At
	case engine.IterationStarted:
		x.iteration, x.model, x.session = n.At, "", ""
	case engine.AgentEvent:
		if n.Event.Kind == agent.Session {
			x.model, x.session = cmp.Or(n.Event.Model, x.model), cmp.Or(n.Event.Session, x.session)
		}
	case engine.IterationEnded:
		x.iterationEnded(n)
	case engine.WaitStarted:
		x.sums.addValue("pawl.waits", "{wait}", 1, attrs{"gen_ai.agent.name": n.Command.Agent})
	case engine.RunEnded:
		x.runEnded(n)
	}
}

// iterationEnded makes the spans of an iteration, of its agent and its gates, which
// ran one after the other.
func (x *Sender) iterationEnded(n engine.Notice) {
	r := n.Record
	problem := ""
	if r.Failure != nil {
		problem = string(r.Failure.Class)
	}
	from := cmp.Or(x.iteration, r.StartedAt, n.At)
	iteration := x.keepSpan(x.run, "iteration", from, n.At, problem, attrs{
		"pawl.run": n.Run, "pawl.iteration": r.Number, "pawl.attempt": r.Attempt, "pawl.strategy": r.Strategy,
		"pawl.outcome": string(r.Outcome), "pawl.score_per_mille": r.Score,
	})
	began := cmp.Or(r.StartedAt, from)
	at := began.Add(r.Elapsed)
	x.keepSpan(iteration, "invoke_agent "+r.Agent, began, at, problem, attrs{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": r.Agent, "gen_ai.request.model": x.model,
		"gen_ai.conversation.id":    x.session,
		"gen_ai.usage.input_tokens": r.TokensIn, "gen_ai.usage.output_tokens": r.TokensOut,
		"pawl.model_calls": r.Calls, "pawl.cost_usd": toDollars(r.Cost), "pawl.cost_source": r.CostSource,
	})
	for _, g := range r.Gates {
		status := attrs{"pawl.gate": g.Name, "pawl.gate.required": g.Required, "pawl.gate.status": string(g.Status)}
		red := ""
		if g.Status != loop.GatePassed {
			red = string(g.Status)
		}
		x.keepSpan(iteration, "gate "+g.Name, at, at.Add(g.Elapsed), red, status)
		at = at.Add(g.Elapsed)
		x.sums.addValue("pawl.gates", "{gate}", 1, status)
		x.sums.addValue("pawl.gate.time", "s", g.Elapsed.Seconds(), status)
	}
	x.addIterationSums(r, problem)
	x.sendEnded(context.Background()) // a run that is stopped sends this, too
}

// addIterationSums adds what an iteration used.
func (x *Sender) addIterationSums(r *loop.Record, problem string) {
	who := attrs{"gen_ai.agent.name": r.Agent, "gen_ai.response.model": x.model, "pawl.cost_source": r.CostSource}
	x.sums.addValue("pawl.tokens.input", "{token}", float64(r.TokensIn), who)
	x.sums.addValue("pawl.tokens.output", "{token}", float64(r.TokensOut), who)
	x.sums.addValue("pawl.agent.time", "s", r.Elapsed.Seconds(), who)
	x.sums.addValue("pawl.cost", "USD", toDollars(r.Cost), who)
	x.sums.addValue("pawl.iterations", "{iteration}", 1, attrs{
		"pawl.outcome": string(r.Outcome), "gen_ai.agent.name": r.Agent, "pawl.strategy": r.Strategy,
		"error.type": problem,
	})
}

func (x *Sender) runEnded(n engine.Notice) {
	problem := ""
	switch n.State.Status {
	case loop.Completed, loop.Paused, loop.Stopped, loop.Interrupted:
	default:
		problem = string(n.State.Status)
	}
	x.endRunSpan(n.At, problem, attrs{
		"pawl.run": n.Run, "pawl.status": string(n.State.Status), "pawl.why": n.State.Why,
		"pawl.cost_usd": toDollars(n.State.Spent.Cost),
	})
}

func (x *Sender) endRunSpan(at time.Time, problem string, a attrs) {
	if x.run != "" {
		x.ended = append(x.ended, x.spanObject(x.run, "", "run", x.runBegan, at, problem, a))
	}
	x.run = ""
}

func toDollars(m loop.MicroUSD) float64 { return float64(m) / 1e6 }

// poster sends messages and remembers the first failure: a collector that is
// away is reported once, at the end of the run, and holds nothing up.
type poster struct {
	client  http.Client
	headers map[string]string

	mu     sync.Mutex
	failed int
	why    error
}

// maxReply bounds what is read of a collector's answer.
const maxReply = 4 << 10

// postMessage sends a message. That it could not is kept for the end of the run.
func (p *poster) postMessage(ctx context.Context, to string, message object) {
	err := p.postOnce(ctx, to, message)
	if err == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed++
	p.why = cmp.Or(p.why, err)
}

func (p *poster) postOnce(ctx context.Context, to string, message object) error {
	body, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("cannot encode telemetry: %v", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range p.headers {
		req.Header.Set(name, value)
	}
	res, err := p.client.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the whole address
		}
		return fmt.Errorf("%s: %w", withoutSecrets(to), err)
	}
	defer res.Body.Close()
	reply, _ := io.ReadAll(io.LimitReader(res.Body, maxReply))
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s answers %s: %s", withoutSecrets(to), res.Status,
			strings.Join(strings.Fields(string(reply)), " "))
	}
	return nil
}

// firstFailure to send a message, nil when there was none.
func (p *poster) firstFailure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == 0 {
		return nil
	}
	return fmt.Errorf("telemetry is not complete: %s could not be sent: %w", fault.Numbered(p.failed, "message"), p.why)
}

func withoutSecrets(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return "the collector"
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// settings are what the environment says, by the names of the OpenTelemetry
// specification.
type settings struct {
	traces, metrics string // whole URLs; "" sends none
	headers         map[string]string
	resource        attrs         // who sends
	timeout         time.Duration // of one request
}

// settingsFrom reads the environment. Both URLs are empty when telemetry is off.
func settingsFrom(getenv func(string) string, version string) (settings, error) {
	s := settings{timeout: 10 * time.Second, resource: attrs{"service.name": "pawl", "service.version": version}}
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return s, nil
	}
	var err error
	if s.traces, err = endpointOf(getenv, "TRACES", "v1/traces"); err != nil {
		return s, err
	}
	if s.metrics, err = endpointOf(getenv, "METRICS", "v1/metrics"); err != nil {
		return s, err
	}
	if v := getenv("OTEL_EXPORTER_OTLP_TIMEOUT"); v != "" {
		ms, err := strconv.Atoi(v)
		if err != nil || ms <= 0 {
			return s, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT is %q: it is a number of milliseconds, such as 10000", v)
		}
		s.timeout = time.Duration(ms) * time.Millisecond
	}
	if s.headers, err = readPairs("OTEL_EXPORTER_OTLP_HEADERS", getenv); err != nil {
		return s, err
	}
	own, err := readPairs("OTEL_RESOURCE_ATTRIBUTES", getenv)
	for name, value := range own {
		s.resource[name] = value
	}
	if name := getenv("OTEL_SERVICE_NAME"); name != "" {
		s.resource["service.name"] = name
	}
	return s, err
}

// endpointOf a signal: its own variable as it is, else the
// common one with the signal's path; "" when it is not sent.
func endpointOf(getenv func(string) string, signal, path string) (string, error) {
	if strings.EqualFold(getenv("OTEL_"+signal+"_EXPORTER"), "none") {
		return "", nil
	}
	name := "OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT"
	at := getenv(name)
	if at == "" {
		name = "OTEL_EXPORTER_OTLP_ENDPOINT"
		if at = getenv(name); at == "" {
			return "", nil
		}
		at = strings.TrimSuffix(at, "/") + "/" + path
	}
	u, err := url.Parse(at)
	if err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Host == "" {
		return "", fmt.Errorf("%s is no URL of a collector: it is like http://127.0.0.1:4318", name)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if getenv(name) == "grpc" {
			return "", fmt.Errorf("%s is grpc, and pawl speaks OTLP over HTTP only: unset it, and name the "+
				"collector's HTTP port, mostly 4318", name)
		}
	}
	return at, nil
}

// readPairs reads a variable like "name=value,name=value", where values are
// URL-encoded.
func readPairs(variable string, getenv func(string) string) (map[string]string, error) {
	all := map[string]string{}
	for pair := range strings.SplitSeq(getenv(variable), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil {
			return nil, fmt.Errorf("%s has an entry that is not name=value; its values are URL-encoded", variable)
		}
		all[strings.TrimSpace(name)] = value
	}
	return all, nil
}

// object is a message of OTLP in its JSON form: ids in hexadecimal, 64-bit
// numbers as strings, enumerations as numbers.
type object = map[string]any

// attrs are attributes by their names. Those of GenAI are conventions of
// OpenTelemetry that are still in development.
type attrs map[string]any

// attributesOf are attrs in OTLP's form. An empty text says nothing.
func attributesOf(a attrs) []object {
	all := []object{}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		var value object
		switch v := a[name].(type) {
		case bool:
			value = object{"boolValue": v}
		case float64:
			value = object{"doubleValue": v}
		case int, int64:
			value = object{"intValue": fmt.Sprint(v)}
		default:
			if v == "" {
				continue
			}
			value = object{"stringValue": v}
		}
		all = append(all, object{"key": name, "value": value})
	}
	return all
}

// keepSpan keeps one that has ended, and returns its id. problem is why it failed, ""
// when it did not.
func (x *Sender) keepSpan(parent, name string, from, to time.Time, problem string, a attrs) (id string) {
	id = newSpanID()
	x.ended = append(x.ended, x.spanObject(id, parent, name, from, to, problem, a))
	return id
}

func (x *Sender) spanObject(id, parent, name string, from, to time.Time, problem string, a attrs) object {
	status := object{}
	if problem != "" {
		a["error.type"] = problem
		status = object{"code": 2, "message": problem}
	}
	return object{
		"traceId": x.trace, "spanId": id, "parentSpanId": parent, "name": name, "kind": 1, "status": status,
		"startTimeUnixNano": unixNanosText(from), "endTimeUnixNano": unixNanosText(to), "attributes": attributesOf(a),
	}
}

func newSpanID() string { return fmt.Sprintf("%016x", rand.Uint64()|1) }

// traceIDOf makes the id of a trace from the run's, so that a run that is resumed
// continues the same trace.
func traceIDOf(run string) string {
	sum := sha256.Sum256([]byte("pawl run " + run))
	return hex.EncodeToString(sum[:16])
}

// sums are what a run used so far, by name and attributes.
type sums map[string]*sum

type sum struct {
	name, unit string
	attributes []object
	value      float64
}

func (all *sums) addValue(name, unit string, value float64, a attrs) {
	if *all == nil {
		*all = sums{}
	}
	list := attributesOf(a)
	key := fmt.Sprint(name, list)
	if (*all)[key] == nil {
		(*all)[key] = &sum{name: name, unit: unit, attributes: list}
	}
	(*all)[key].value += value
}

// metricObjects are the sums in OTLP's form: each counts since the run began to be
// watched, and only grows.
func (all sums) metricObjects(began, now time.Time) []object {
	var out []object
	for _, key := range slices.Sorted(maps.Keys(all)) {
		s := all[key]
		point := object{"attributes": s.attributes, "asDouble": s.value,
			"startTimeUnixNano": unixNanosText(began), "timeUnixNano": unixNanosText(now)}
		const cumulative = 2
		out = append(out, object{"name": s.name, "unit": s.unit, "sum": object{
			"dataPoints": []object{point}, "aggregationTemporality": cumulative, "isMonotonic": true,
		}})
	}
	return out
}

func unixNanosText(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
