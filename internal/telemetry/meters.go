package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/pawl-dev/pawl/internal/loop"
)

// meters are the instruments.
type meters struct {
	tokens                          metric.Int64Histogram
	agentTime, gateTime             metric.Float64Histogram
	cost                            metric.Float64Counter
	iterations, gates, waitsStarted metric.Int64Counter
}

func newMeters(m metric.Meter) (x meters, err error) {
	var errs [7]error
	x.tokens, errs[0] = m.Int64Histogram(metricTokens, metric.WithUnit("{token}"),
		metric.WithDescription("Tokens of an agent's run"),
		metric.WithExplicitBucketBoundaries(
			1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864))
	x.agentTime, errs[1] = m.Float64Histogram(metricAgentTime, metric.WithUnit("s"),
		metric.WithDescription("Time of an agent's run"), seconds())
	x.gateTime, errs[2] = m.Float64Histogram(metricGateTime, metric.WithUnit("s"),
		metric.WithDescription("Time of a gate"), seconds())
	x.cost, errs[3] = m.Float64Counter(metricCost, metric.WithUnit("USD"),
		metric.WithDescription("Cost of agents, where it is known"))
	x.iterations, errs[4] = m.Int64Counter(metricIterations, metric.WithUnit("{iteration}"),
		metric.WithDescription("Iterations by outcome"))
	x.gates, errs[5] = m.Int64Counter(metricGates, metric.WithUnit("{gate}"), metric.WithDescription("Gates by status"))
	x.waitsStarted, errs[6] = m.Int64Counter(metricWaits, metric.WithUnit("{wait}"),
		metric.WithDescription("Waits for a provider or before a retry"))
	return x, errors.Join(errs[:]...)
}

func seconds() metric.HistogramOption {
	return metric.WithExplicitBucketBoundaries(0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
}

// always: a run that was stopped still tells what it used.
var always = context.Background()

func (x meters) iteration(r *loop.Record, model string) {
	who := []attribute.KeyValue{attribute.String(attrAgentName, r.Agent), attribute.String(attrOperation, opInvokeAgent)}
	if model != "" {
		who = append(who, attribute.String(attrResponse, model))
	}
	set := metric.WithAttributes(who...)
	x.tokens.Record(always, r.TokensIn, set, metric.WithAttributes(attribute.String(attrTokenType, "input")))
	x.tokens.Record(always, r.TokensOut, set, metric.WithAttributes(attribute.String(attrTokenType, "output")))
	x.agentTime.Record(always, r.Elapsed.Seconds(), set)
	if r.Cost > 0 {
		x.cost.Add(always, dollars(r.Cost), set, metric.WithAttributes(attribute.String(attrCostSource, r.CostSource)))
	}
	what := []attribute.KeyValue{attribute.String(attrOutcome, string(r.Outcome)),
		attribute.String(attrAgentName, r.Agent), attribute.String(attrStrategy, r.Strategy)}
	if r.Failure != nil {
		what = append(what, attribute.String(attrError, string(r.Failure.Class)))
	}
	x.iterations.Add(always, 1, metric.WithAttributes(what...))
}

func (x meters) gate(g loop.Gate) {
	set := metric.WithAttributes(attribute.String(attrGate, g.Name), attribute.String(attrGateStatus, string(g.Status)))
	x.gates.Add(always, 1, set)
	x.gateTime.Record(always, g.Elapsed.Seconds(), set)
}

func (x meters) wait(c loop.Command) {
	x.waitsStarted.Add(always, 1, metric.WithAttributes(attribute.String(attrAgentName, c.Agent)))
}
