package telemetry

import (
	"encoding/hex"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// These are the messages of OTLP in their JSON form: ids in hexadecimal, 64-bit
// numbers as strings, enumerations as numbers.
type (
	object = map[string]any
	list   = []any
)

// spansMessage is the body of an export of spans. All are of one resource and
// one scope, as pawl has only one.
func spansMessage(spans []sdktrace.ReadOnlySpan) object {
	all := make(list, len(spans))
	for i, s := range spans {
		all[i] = spanObject(s)
	}
	first := spans[0]
	return object{"resourceSpans": list{object{
		"resource":   resourceObject(first.Resource()),
		"scopeSpans": list{object{"scope": scopeObject(first.InstrumentationScope()), "spans": all}},
	}}}
}

// otlpStatus are the status codes of OTLP, which differ from the API's.
var otlpStatus = map[codes.Code]int{codes.Unset: 0, codes.Ok: 1, codes.Error: 2}

func spanObject(s sdktrace.ReadOnlySpan) object {
	trace, id := s.SpanContext().TraceID(), s.SpanContext().SpanID()
	o := object{
		"traceId": hex.EncodeToString(trace[:]), "spanId": hex.EncodeToString(id[:]),
		"name": s.Name(), "kind": int(s.SpanKind()), "attributes": attributesList(s.Attributes()),
		"startTimeUnixNano": nanos(s.StartTime()), "endTimeUnixNano": nanos(s.EndTime()),
		"status": object{"code": otlpStatus[s.Status().Code], "message": s.Status().Description},
	}
	if parent := s.Parent().SpanID(); parent.IsValid() {
		o["parentSpanId"] = hex.EncodeToString(parent[:])
	}
	var events list
	for _, e := range s.Events() {
		events = append(events, object{"timeUnixNano": nanos(e.Time), "name": e.Name,
			"attributes": attributesList(e.Attributes)})
	}
	if events != nil {
		o["events"] = events
	}
	return o
}

func metricsMessage(m *metricdata.ResourceMetrics) object {
	var scopes list
	for _, s := range m.ScopeMetrics {
		var all list
		for _, metric := range s.Metrics {
			if o := metricObject(metric); o != nil {
				all = append(all, o)
			}
		}
		scopes = append(scopes, object{"scope": scopeObject(s.Scope), "metrics": all})
	}
	return object{"resourceMetrics": list{object{"resource": resourceObject(m.Resource), "scopeMetrics": scopes}}}
}

// metricObject is nil for a kind that pawl has none of.
func metricObject(m metricdata.Metrics) object {
	o := object{"name": m.Name, "description": m.Description, "unit": m.Unit}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		o["sum"] = sumObject(data, "asInt", func(n int64) any { return strconv.FormatInt(n, 10) })
	case metricdata.Sum[float64]:
		o["sum"] = sumObject(data, "asDouble", func(n float64) any { return n })
	case metricdata.Histogram[int64]:
		o["histogram"] = histogramObject(data)
	case metricdata.Histogram[float64]:
		o["histogram"] = histogramObject(data)
	default:
		return nil
	}
	return o
}

// cumulative is the temporality of all that is sent.
const cumulative = 2

func sumObject[N int64 | float64](data metricdata.Sum[N], key string, value func(N) any) object {
	points := make(list, len(data.DataPoints))
	for i, p := range data.DataPoints {
		points[i] = object{
			"attributes": attributesList(p.Attributes.ToSlice()), "startTimeUnixNano": nanos(p.StartTime),
			"timeUnixNano": nanos(p.Time), key: value(p.Value),
		}
	}
	return object{"dataPoints": points, "aggregationTemporality": cumulative, "isMonotonic": data.IsMonotonic}
}

func histogramObject[N int64 | float64](data metricdata.Histogram[N]) object {
	points := make(list, len(data.DataPoints))
	for i, p := range data.DataPoints {
		counts := make([]string, len(p.BucketCounts))
		for j, n := range p.BucketCounts {
			counts[j] = strconv.FormatUint(n, 10)
		}
		points[i] = object{
			"attributes": attributesList(p.Attributes.ToSlice()), "startTimeUnixNano": nanos(p.StartTime),
			"timeUnixNano": nanos(p.Time), "count": strconv.FormatUint(p.Count, 10), "sum": float64(p.Sum),
			"explicitBounds": p.Bounds, "bucketCounts": counts,
		}
	}
	return object{"dataPoints": points, "aggregationTemporality": cumulative}
}

func resourceObject(r *resource.Resource) object {
	return object{"attributes": attributesList(r.Attributes())}
}

func scopeObject(s instrumentation.Scope) object {
	return object{"name": s.Name, "version": s.Version}
}

func attributesList(attrs []attribute.KeyValue) list {
	all := make(list, len(attrs))
	for i, kv := range attrs {
		all[i] = object{"key": string(kv.Key), "value": valueObject(kv.Value)}
	}
	return all
}

func valueObject(v attribute.Value) object {
	switch v.Type() {
	case attribute.BOOL:
		return object{"boolValue": v.AsBool()}
	case attribute.INT64:
		return object{"intValue": strconv.FormatInt(v.AsInt64(), 10)}
	case attribute.FLOAT64:
		return object{"doubleValue": v.AsFloat64()}
	case attribute.STRINGSLICE:
		var all list
		for _, s := range v.AsStringSlice() {
			all = append(all, object{"stringValue": s})
		}
		return object{"arrayValue": object{"values": all}}
	}
	return object{"stringValue": v.String()}
}

func nanos(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return strconv.FormatInt(t.UnixNano(), 10)
}
