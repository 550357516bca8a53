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
