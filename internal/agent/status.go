package agent

import (
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// statusWords find the HTTP status in an error's text: at its start, after one
// word of the program's own ("[API Error: 429 …"), or named as one.
var statusWords = lazy.Regexp(
	`(?i)^\W*(?:(?:api )?error:? )?([45]\d\d)\b|\b(?:http|status(?: code)?)[ :=]{1,3}([45]\d\d)\b`)

// StatusIn is the HTTP status that an error's text begins with, or names as
// such ("HTTP 401", "status code: 503"); 0 when it has none. Other numbers in
// it mean something else. Only its first 300 bytes are looked at.
func StatusIn(text string) int {
	if len(text) > 300 {
		text = text[:300]
	}
	m := statusWords().FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1] + m[2])
	return n
}

// typeWords are what programs write for errors that they give no type, first
// match first: a plan that is used up is told as a rate limit too.
var typeWords = []struct {
	kind  string
	words []string
}{
	{"usage_limit_reached", []string{"usage limit", "quota", "credit balance", "out of credits", "insufficient credits",
		"billing"}},
	{"rate_limit", []string{"rate limit", "rate-limit", "ratelimit", "too many requests"}},
	{"overloaded", []string{"overloaded", "high demand", "at capacity"}},
	{"context_length_exceeded", []string{"context window", "context length", "maximum context", "prompt is too long",
		"prompt as too long", "context is too large", "context_length_exceeded"}},
	{"max_output_tokens", []string{"max_output_tokens"}},
	{"content_filter", []string{"content_filter"}},
	{"authentication_error", []string{"api key", "api-key", "unauthorized", "not authenticated", "authentication failed"}},
	{"connection_error", []string{"connection error", "could not connect", "cannot connect", "fetch failed", "socket",
		"econn", "connection closed", "connection reset", "connection failed", "stream disconnected", "network error",
		"unexpected eof", "received message_start for message"}},
	{"server_error", []string{"no usable output", "non-sse response", "without a finish reason",
		"without sending any chunks", "malformed", "invalid json", "unexpected token"}},
}

// TypeIn is the type of error that a text tells, in the words that providers
// use; "" when it tells none. It is for programs that pass on a provider's
// text without its type. Only its first 2,000 bytes are looked at.
func TypeIn(text string) string {
	text = strings.ToLower(text[:min(len(text), 2000)])
	for _, t := range typeWords {
		for _, w := range t.words {
			if strings.Contains(text, w) {
				return t.kind
			}
		}
	}
	return ""
}
