package telemetry

import (
	"context"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-dev/pawl/internal/engine"
)

// Sender turns the notices of one run into spans and metrics.
type Sender struct {
	post    *poster
	spans   *sdktrace.TracerProvider
	metrics *metric.MeterProvider

	tell   trace.Tracer
	meters meters
	open   open
}

// Open returns a sender as the environment asks for, which getenv looks up;
// nil when it asks for none. A wrong setting is an error that says how it is
// written.
func Open(getenv func(string) string, version string) (*Sender, error) {
	s, err := settingsFrom(getenv)
	off := s.traces == "" && s.metrics == ""
	if err != nil || off {
		return nil, err
	}
	about, err := resource.New(context.Background(), resource.WithAttributes(
		attribute.String("service.name", "pawl"), attribute.String("service.version", version)),
		resource.WithFromEnv()) // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, err
	}
	post := &poster{headers: s.headers}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(post.note)) // else the SDK prints
	post.client.Timeout = s.timeout
	x := &Sender{post: post}
	tracing := []sdktrace.TracerProviderOption{sdktrace.WithResource(about), sdktrace.WithIDGenerator(byRun{})}
	if s.traces != "" {
		tracing = append(tracing, sdktrace.WithBatcher(spanSender{post, s.traces}))
	}
	metering := []metric.Option{metric.WithResource(about)}
	if s.metrics != "" {
		metering = append(metering, metric.WithReader(metric.NewPeriodicReader(metricSender{post, s.metrics},
			metric.WithInterval(metricsEvery))))
	}
	x.spans, x.metrics = sdktrace.NewTracerProvider(tracing...), metric.NewMeterProvider(metering...)
	x.tell = x.spans.Tracer("github.com/pawl-dev/pawl", trace.WithInstrumentationVersion(version))
	x.meters, err = newMeters(x.metrics.Meter("github.com/pawl-dev/pawl"))
	return x, err
}

// closeWithin bounds what a collector that does not answer costs at the end.
const closeWithin = 5 * time.Second

// Close sends what is left, within five seconds, and says what could not be
// sent.
func (x *Sender) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	x.endAll(time.Now())
	shut := errors.Join(x.spans.Shutdown(ctx), x.metrics.Shutdown(ctx))
	if err := x.post.trouble(); err != nil {
		return err
	}
	return shut
}

// Notice takes one notice of the engine.
func (x *Sender) Notice(n engine.Notice) {
	switch n.Kind {
	case engine.RunStarted, engine.RunResumed:
		x.run(n)
	case engine.IterationStarted:
		x.iteration(n)
	case engine.AgentEvent:
		x.agentEvent(n)
	case engine.GateStarted:
		x.gateStarted(n)
	case engine.GateEnded:
		x.gateEnded(n)
	case engine.IterationEnded:
		x.iterationEnded(n)
	case engine.WaitStarted:
		x.waits(n)
	case engine.RunEnded:
		x.runEnded(n)
	case engine.Warning, engine.Tick:
	}
}

// byRun makes the id of a trace from the run's, so that a run that is resumed
// goes on in the same trace.
type byRun struct{}

type runKey struct{}

func (byRun) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	run, _ := ctx.Value(runKey{}).(string)
	sum := sha256.Sum256([]byte("pawl run " + run))
	id := trace.TraceID(sum[:16])
	return id, byRun{}.NewSpanID(ctx, id)
}

func (byRun) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	for !id.IsValid() {
		for i := range id {
			id[i] = byte(rand.Uint32())
		}
	}
	return id
}
