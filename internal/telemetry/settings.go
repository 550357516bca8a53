package telemetry

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

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
	if s.traces, err = endpoint(getenv, "TRACES", "v1/traces"); err != nil {
		return s, err
	}
	if s.metrics, err = endpoint(getenv, "METRICS", "v1/metrics"); err != nil {
		return s, err
	}
	if v := getenv("OTEL_EXPORTER_OTLP_TIMEOUT"); v != "" {
		ms, err := strconv.Atoi(v)
		if err != nil || ms <= 0 {
			return s, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT is %q: it is a number of milliseconds, such as 10000", v)
		}
		s.timeout = time.Duration(ms) * time.Millisecond
	}
	if s.headers, err = pairs("OTEL_EXPORTER_OTLP_HEADERS", getenv); err != nil {
		return s, err
	}
	own, err := pairs("OTEL_RESOURCE_ATTRIBUTES", getenv)
	for name, value := range own {
		s.resource[name] = value
	}
	if name := getenv("OTEL_SERVICE_NAME"); name != "" {
		s.resource["service.name"] = name
	}
	return s, err
}

// endpoint is where a signal is sent: its own variable as it is, else the
// common one with the signal's path; "" when it is not sent.
func endpoint(getenv func(string) string, signal, path string) (string, error) {
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
			return "", fmt.Errorf("%s is grpc, and pawl speaks OTLP over HTTP only: unset it, and name the collector's "+
				"HTTP port, mostly 4318", name)
		}
	}
	return at, nil
}

// pairs reads a variable like "name=value,name=value", where values are
// URL-encoded.
func pairs(variable string, getenv func(string) string) (map[string]string, error) {
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
