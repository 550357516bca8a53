package opencode

import (
	"cmp"
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

// problem is an error event: the program's word for it, and what the
// provider's answer said.
type problem struct {
	Name string
	Data struct {
		Message         string
		StatusCode      int
		IsRetryable     bool
		ResponseHeaders map[string]string
		ResponseBody    string
	}
}

func (p *problem) understand() *failure.APIError {
	d := &p.Data
	e := &failure.APIError{Message: d.Message, Status: d.StatusCode}
	if e.Type = ownTypes[p.Name]; e.Type == "" {
		e.Type = bodyType(d.ResponseBody)
	}
	if e.Type == "" && e.Status == 0 && d.IsRetryable {
		e.Type = "connection_failed"
	}
	if e.Type == "" {
		e.Type = p.Name
	}
	e.RetryAfter, e.ResetAt = wait(d.ResponseHeaders)
	return e
}

// bodyType is the provider's word for an error: its type, unless that says no
// more than the status does.
func bodyType(body string) string {
	var said struct{ Error struct{ Type, Code string } }
	jsonline.Read([]byte(body), &said)
	switch kind := said.Error.Type; kind {
	case "", "error", "invalid_request_error":
		return cmp.Or(said.Error.Code, kind)
	default:
		return kind
	}
}

// wait reads how long a provider asks to wait, and until when.
func wait(headers map[string]string) (after time.Duration, until time.Time) {
	header := textproto.MIMEHeader{}
	for name, value := range headers {
		header.Set(name, strings.TrimSpace(value))
	}
	if d, ok := seconds(header.Get("Retry-After-Ms"), time.Millisecond); ok {
		after = d
	}
	given := header.Get("Retry-After")
	if d, ok := seconds(given, time.Second); ok {
		after = d
	} else if at, err := time.Parse(time.RFC1123, given); err == nil {
		until = at.UTC()
	}
	n, err := strconv.ParseInt(header.Get("Anthropic-Ratelimit-Unified-Reset"), 10, 64)
	if err == nil && n > 1_000_000_000 && n < 1<<35 {
		until = time.Unix(n, 0).UTC()
	}
	return after, until
}

func seconds(value string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || n < 0 || n > 1e10 {
		return 0, false
	}
	return time.Duration(min(n*float64(unit), float64(366*24*time.Hour))), true
}
