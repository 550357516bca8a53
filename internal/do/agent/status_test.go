package agent

import (
	"strings"
	"testing"
)

func TestStatusIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"429 Too many": 429, "[API Error: 401 bad key]": 401, "Error: 503": 503, "failed (HTTP 403).": 403, "status code: 500": 500,
		"": 0, "4290 tokens": 0, "used 429 tokens": 0, "200 OK": 0, "line 404": 0, "error 999": 0,
		strings.Repeat("x ", 200) + "HTTP 401": 0,
	} {
		if got := StatusIn(text); got != want {
			t.Errorf("%q has %d, want %d", text, got, want)
		}
	}
}

func TestTypeIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"The usage limit has been reached":                                        "usage_limit_reached",
		`Received message_start for message "b" while message "a" is still open.`: "connection_error",
		"Rate limit reached: 50 a minute":                                         "rate_limit",
		"Rate limit: you exceeded your quota":                                     "usage_limit_reached",
		"Overloaded":                                                              "overloaded",
		"exceeds the model's context window":                                      "context_length_exceeded",
		"invalid x-api-key":                                                       "authentication_error",
		"connect ECONNREFUSED":                                                    "connection_error",
		"LLM response contained no usable output":                                 "server_error",
		"the tests fail":                                                          "",
		strings.Repeat("x", 2000) + "overloaded":                                  "",
	} {
		if got := TypeIn(text); got != want {
			t.Errorf("%.60q is %q, want %q", text, got, want)
		}
	}
}
