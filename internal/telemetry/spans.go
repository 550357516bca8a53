package telemetry

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// object is a message of OTLP in its JSON form: ids in hexadecimal, 64-bit
// numbers as strings, enumerations as numbers.
type object = map[string]any

// attrs are attributes by their names. Those of GenAI are conventions of
// OpenTelemetry that are still in development.
type attrs map[string]any

// attributes are attrs in OTLP's form. An empty text says nothing.
func attributes(a attrs) []object {
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

// span keeps one that has ended, and returns its id. problem is why it failed, ""
// when it did not.
func (x *Sender) span(parent, name string, from, to time.Time, problem string, a attrs) (id string) {
	id = newID()
	x.ended = append(x.ended, x.object(id, parent, name, from, to, problem, a))
	return id
}

func (x *Sender) object(id, parent, name string, from, to time.Time, problem string, a attrs) object {
	status := object{}
	if problem != "" {
		a["error.type"] = problem
		status = object{"code": 2, "message": problem}
	}
	return object{
		"traceId": x.trace, "spanId": id, "parentSpanId": parent, "name": name, "kind": 1,
		"startTimeUnixNano": nanos(from), "endTimeUnixNano": nanos(to), "attributes": attributes(a), "status": status,
	}
}

func newID() string { return fmt.Sprintf("%016x", rand.Uint64()|1) }

// traceOf makes the id of a trace from the run's, so that a run that is resumed
// goes on in the same trace.
func traceOf(run string) string {
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

func (all *sums) add(name, unit string, value float64, a attrs) {
	if *all == nil {
		*all = sums{}
	}
	list := attributes(a)
	key := fmt.Sprint(name, list)
	if (*all)[key] == nil {
		(*all)[key] = &sum{name: name, unit: unit, attributes: list}
	}
	(*all)[key].value += value
}

// metrics are the sums in OTLP's form: each counts since the run began to be
// watched, and only grows.
func (all sums) metrics(began, now time.Time) []object {
	var out []object
	for _, key := range slices.Sorted(maps.Keys(all)) {
		s := all[key]
		point := object{
			"attributes": s.attributes, "asDouble": s.value, "startTimeUnixNano": nanos(began), "timeUnixNano": nanos(now),
		}
		const cumulative = 2
		out = append(out, object{"name": s.name, "unit": s.unit, "sum": object{
			"dataPoints": []object{point}, "aggregationTemporality": cumulative, "isMonotonic": true,
		}})
	}
	return out
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
