package failure

import (
	_ "embed"
	"strings"
	"testing"
)

// ownErrors are lines of class, kind and what an agent program says when a call of its own fails.
//
//go:embed testdata/own.txt
var ownErrors string

func TestErrorsOfOwnCalls(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(ownErrors) {
		said := strings.SplitN(strings.TrimSpace(line), "\t", 3)
		class, kind, message := Class(said[0]), Kind(said[1]), said[2]
		a := Analyse(Evidence{Source: "agent", ExitCode: 1, Errors: []APIError{{Message: message}}, Now: evening})
		provider := isProviderFault(class) && a.Kind != Permanent || class == QuotaExhausted
		if a.Class != class || a.Kind != kind || provider && !a.Provider {
			t.Errorf("%s: %s %s, provider %v; want %s %s", message, a.Class, a.Kind, a.Provider, class, kind)
		}
		if a.Kind == Work {
			t.Errorf("%s: no work cures it", message)
		}
	}
}

// A program whose stream has no errors says in its last words that it did not reach its model.
func TestEndedOffline(t *testing.T) {
	t.Parallel()
	for output, provider := range map[string]bool{
		"litellm.APIConnectionError: AnthropicException - [Errno 111] Connection refused": true,
		"Error: dial tcp: lookup api.anthropic.com: no such host":                         true,
		"Error: Unable to connect. Is the computer able to access the url?":               true,
		"curl: (7) Failed to connect to localhost port 3000: Connection refused":          false,
		"connect ECONNREFUSED 127.0.0.1:5432":                                             false,
	} {
		if a := Analyse(Evidence{Source: "agent", ExitCode: 1, Output: output}); a.Class != Network || a.Provider != provider {
			t.Errorf("%s: %s, provider %v", output, a.Class, a.Provider)
		}
		if a := Analyse(Evidence{Source: "gate", ExitCode: 1, Output: output}); a.Provider {
			t.Errorf("%s: a gate's network is the provider's", output)
		}
	}
}

// A program that prints text and fails with a limit of its model's provider as its last words has not worked. One that
// speaks of limits, or does well, has.
func TestEndedAtLimit(t *testing.T) {
	t.Parallel()
	for output, provider := range map[string]bool{
		"Working on it.\nError: rate limit exceeded, try again in 2 minutes":            true,
		"Error: 429 Too Many Requests":                                                  true,
		"Rate limit reached. Please try again later.\nBye.":                             true,
		"HTTP 503 Service Unavailable":                                                  true,
		"Error code: 429 - slow down, too many requests":                                true,
		"- added a test for 429 Too Many Requests":                                      false,
		"The endpoint returned 503 Service Unavailable, so its test fails.":             false,
		"Clients get `429 Too Many Requests` now.":                                      false,
		"--- FAIL: TestLimit\n    limit_test.go:7: got 429 Too Many Requests, want 200": false,
		"npm ERR! 429 Too Many Requests - GET https://npm.example.org/left-pad":         false,
		"curl: (22) The requested URL returned error: 503 Service Unavailable":          false,
		"HTTP 503 Service Unavailable" + strings.Repeat("\nGoing on.", 9):               false,
	} {
		if a := Analyse(Evidence{Source: "agent", ExitCode: 1, Output: output}); a.Provider != provider {
			t.Errorf("%s: %s, provider %v", output, a.Class, a.Provider)
		}
		if a := Analyse(Evidence{Source: "agent", Output: output}); a.Provider {
			t.Errorf("%s: exits 0, and its provider's fault", output)
		}
		if a := Analyse(Evidence{Source: "gate", ExitCode: 1, Output: output}); a.Provider {
			t.Errorf("%s: a gate's is the provider's", output)
		}
	}
}
