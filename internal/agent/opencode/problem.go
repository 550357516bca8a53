package opencode

import (
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/failure"
)

// ownTypes are the types of errors that have no body of the provider's.
var ownTypes = map[string]string{
	"ContextOverflowError":     "context_length_exceeded",
	"ContentFilterError":       "content_filter",
	"ProviderAuthError":        "authentication_failed",
	"MessageOutputLengthError": "max_output_tokens",
	"MessageAbortedError":      "aborted",
	"UnknownError":             "unknown",
}

// understand reads an error event: the program's word for it, and what the
// provider's answer said.
func understand(b []byte) *failure.APIError {
	var name, data []byte
	jsonline.Object(b, func(key, v []byte) bool {
		switch string(key) {
		case "name":
			name = v
		case "data":
			data = v
		}
		return true
	})
	e := &failure.APIError{}
	var headers, body, again []byte
	jsonline.Object(data, func(key, v []byte) bool {
		switch string(key) {
		case "message":
			e.Message = jsonline.Short(v, maxText)
		case "statusCode":
			e.Status = jsonline.Status(v)
		case "isRetryable":
			again = v
		case "responseHeaders":
			headers = v
		case "responseBody":
			body = v
		}
		return true
	})
	if e.Type = ownTypes[jsonline.Short(name, maxName)]; e.Type == "" {
		e.Type = bodyType([]byte(jsonline.String(body)))
	}
	if e.Type == "" && e.Status == 0 && jsonline.True(again) {
		e.Type = "connection_failed"
	}
	if e.Type == "" {
		e.Type = jsonline.Short(name, maxName)
	}
	e.RetryAfter, e.ResetAt = wait(headers)
	return e
}

// bodyType is the provider's word for an error: its type, unless that says no
// more than the status does.
func bodyType(body []byte) string {
	err := jsonline.Get(body, "error")
	kind := jsonline.Short(jsonline.Get(err, "type"), maxName)
	if code := jsonline.Short(jsonline.Get(err, "code"), maxName); code != "" && (kind == "" || kind == "error" || kind == "invalid_request_error") {
		return code
	}
	return kind
}

// wait reads how long a provider asks to wait, and until when.
func wait(headers []byte) (after time.Duration, until time.Time) {
	jsonline.Object(headers, func(key, v []byte) bool {
		value := strings.TrimSpace(jsonline.Short(v, maxName))
		switch textproto.CanonicalMIMEHeaderKey(string(key)) {
		case "Retry-After":
			if d, ok := seconds(value, time.Second); ok {
				after = d
			} else if at, err := time.Parse(time.RFC1123, value); err == nil {
				until = at.UTC()
			}
		case "Retry-After-Ms":
			if d, ok := seconds(value, time.Millisecond); ok && after == 0 {
				after = d
			}
		case "Anthropic-Ratelimit-Unified-Reset":
			if n, err := strconv.ParseInt(value, 10, 64); err == nil && n > 1_000_000_000 && n < 1<<35 {
				until = time.Unix(n, 0).UTC()
			}
		}
		return true
	})
	return after, until
}

func seconds(value string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || n < 0 || n > 1e10 {
		return 0, false
	}
	return time.Duration(min(n*float64(unit), float64(366*24*time.Hour))), true
}
