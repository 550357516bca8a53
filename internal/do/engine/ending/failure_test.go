package ending

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// What the provider said decides what follows a guard.
func TestGuarded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	const why = "it was seen (a; b); do this"
	for _, test := range []struct {
		name    string
		ended   loop.Ended
		errs    []failure.APIError
		class   failure.Class
		kind    failure.Kind
		outcome loop.Outcome
	}{
		{"the same turns", loop.EndedRepeats, nil, failure.NoProgress, failure.Work, loop.Failed},
		{"output without end", loop.EndedOutput, nil, failure.NoProgress, failure.Work, loop.Failed},
		{"empty calls", loop.EndedRequests, nil, failure.NoProgress, failure.Work, loop.Failed},
		{"calls that overflow", loop.EndedRequests, []failure.APIError{{Status: 400, Type: "context_length_exceeded", Message: "too long"}}, failure.ContextLength, failure.Work, loop.Failed},
		{"no network", loop.EndedRetries, []failure.APIError{{Type: "connection_failed", Message: "Connection failed: error sending request"}}, failure.Network, failure.Transient, loop.Waited},
		{"retries for a reason that is not known", loop.EndedRetries, nil, failure.ServiceUnavailable, failure.Transient, loop.Waited},
		{"a long wait of the program's own", loop.EndedRetries, []failure.APIError{{Status: 429, Type: "rate_limit", RetryAfter: time.Hour}}, failure.RateLimit, failure.Transient, loop.Waited},
		{"a bad key", loop.EndedRetries, []failure.APIError{{Status: 401, Type: "authentication_failed"}}, failure.Auth, failure.Permanent, loop.Failed},
	} {
		x := loop.Exit{Code: -1, Ended: test.ended, Why: why}
		a := guardFailure(x, test.errs, "mine", 100, now)
		if a == nil || a.Class != test.class || a.Kind != test.kind || a.Summary != "it was seen (a; b)" || a.Actions[0] != "do this" ||
			!strings.HasPrefix(a.Fingerprint, "guard-"+string(test.ended)) {
			t.Errorf("%s: %+v", test.name, a)
			continue
		}
		if got := (&loop.Record{Exit: x, Failure: a}).Judge(); got != test.outcome {
			t.Errorf("%s: the loop takes it for %s", test.name, got)
		}
	}
	// The program did not say what the gateway saw.
	refused := loop.Exit{Ended: loop.EndedRetries, Why: "it tried again for 10s (dial tcp 127.0.0.1:9: connect: connection refused); wait"}
	if a := guardFailure(refused, nil, "mine", 100, now); a.Class != failure.Network || !a.Provider || a.Kind != failure.Transient {
		t.Errorf("a refused connection: %+v", a)
	}
	// Calls without a word and without a token were answered by no model: a page of a proxy.
	if a := guardFailure(loop.Exit{Ended: loop.EndedRequests, Why: "31 calls brought nothing; look"}, nil, "mine", 0, now); !a.Provider || a.Kind != failure.Transient {
		t.Errorf("a page of a proxy: %+v", a)
	}
	if a := guardFailure(loop.Exit{Ended: loop.EndedIdle}, nil, "mine", 100, now); a != nil {
		t.Errorf("silence is %+v", a)
	}
}
