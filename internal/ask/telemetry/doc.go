// Package telemetry sends what a run does to an OpenTelemetry collector:
// spans of run, iteration, agent and gates, and sums of tokens, cost and time. It is off, and costs nothing, unless OTEL_EXPORTER_OTLP_ENDPOINT
// or its like is set.
//
// A [Sender] listens to the engine's notices, as the screen does; it decides
// nothing and never holds a run up. What is sent are names, numbers and
// classes: no prompt, no command, no output, no path of a file.
//
// It is sent as OTLP over HTTP in JSON, by this package: OpenTelemetry's own
// exporters link gRPC and protocol buffers, which would make every start of
// pawl slower, and pawl starts itself for each supervisor and each sandbox.
package telemetry
