package aider

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/reading"
	"github.com/pawl-dev/pawl/internal/loop"
)

func read(prompt, stream string) (agent.Outcome, []agent.Event) {
	return reading.Run(NewParser([]byte(prompt)), strings.Split(strings.TrimSuffix(stream, "\n"), "\n")...)
}

const answer = "Done.\n<promise>COMPLETE</promise>\n\nTokens: 2.5k sent, 200 cache write, 300 cache hit, 60 received. Cost: $0.0034 message, $0.0134 session.\n"

func TestAnswer(t *testing.T) {
	t.Parallel()
	got, _ := read("", answer)
	if !strings.Contains(got.Message, "<promise>COMPLETE</promise>") || got.Terminal != loop.TerminalNone {
		t.Errorf("message is %q (%s)", got.Message, got.Terminal)
	}
	if want := (agent.Usage{Input: 2000, Output: 60, CacheRead: 300, CacheWrite: 200}); got.Usage != want || got.Calls != 1 {
		t.Errorf("usage is %+v, %d calls, want %+v", got.Usage, got.Calls, want)
	}
	if got.Cost != 13_400 || got.CostSource != agent.CostReported {
		t.Errorf("cost is %d (%s)", got.Cost, got.CostSource)
	}
	// Each answer is told for itself; a cost of the session is not.
	if got, _ = read("", answer+answer); got.Usage.Output != 120 || got.Cost != 13_400 {
		t.Errorf("two answers: %+v", got)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, stream, kind string
		status, retries    int
		terminal           loop.Terminal
	}{
		{"given up", "litellm.AuthenticationError: AuthenticationError: bad key\nThe API provider is not able to authenticate you.", "authentication_error", 401, 0, loop.TerminalFailed},
		{"tried again, given up", "litellm.RateLimitError: slow\nRetrying in 0.2 seconds...\nlitellm.RateLimitError: slow", "rate_limit", 429, 1, loop.TerminalFailed},
		{"got over it", "litellm.InternalServerError: down\nRetrying in 0.2 seconds...\n" + answer, "", 0, 1, loop.TerminalNone},
		{"a later call failed", answer + "litellm.ServiceUnavailableError: down", "unavailable", 503, 0, loop.TerminalFailed},
		{"too long", "Model gpt-5 has hit a token limit!\nToken counts below are approximate.", "context_length_exceeded", 400, 0, loop.TerminalFailed},
		{"an error of a new name", "litellm.NoveltyError: x", "NoveltyError", 0, 0, loop.TerminalFailed},
		{"words about an error", "I handle litellm.RateLimitError: it is raised.\nlitellm.completion(a: b)", "", 0, 0, loop.TerminalNone},
		{"a retry of nothing", "Retrying in 5 seconds", "", 0, 0, loop.TerminalNone},
		{"no report", "Tokens: none", "", 0, 0, loop.TerminalNone},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, _ := read("", test.stream)
			if got.Terminal != test.terminal || got.Retries != test.retries {
				t.Errorf("terminal is %q, %d retries", got.Terminal, got.Retries)
			}
			kind, status := "", 0
			if n := len(got.Errors); n > 0 {
				kind, status = got.Errors[n-1].Type, got.Errors[n-1].Status
			}
			if test.terminal == loop.TerminalFailed && (kind != test.kind || status != test.status) {
				t.Errorf("error is %d %q, want %d %q", status, kind, test.status, test.kind)
			}
		})
	}
}

func TestRetryWaits(t *testing.T) {
	t.Parallel()
	_, events := read("", "litellm.RateLimitError: slow\nRetrying in 1.5 seconds...")
	for _, e := range events {
		if e.Kind == agent.Retry && e.Error.RetryAfter == 1500*time.Millisecond {
			return
		}
	}
	t.Errorf("no wait of 1.5 s in %+v", events)
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{"812": 812, "2.5k": 2500, "12,345": 12345, "1.2M": 1_200_000, "": 0, "k": 0, "-5": 0, "NaN": 0, "1e300": 0, strings.Repeat("9", 30): 0} {
		if got, _ := read("", "Tokens: "+in+" sent, 60 received."); got.Usage.Input != want || got.Usage.Output != 60 {
			t.Errorf("%q is %+v, want %d", in, got.Usage, want)
		}
	}
}

// Its own habits are off: commits, files in the repository, questions.
func TestProgram(t *testing.T) {
	t.Parallel()
	args := strings.Join(Program().Args, " ")
	for _, flag := range []string{"--no-auto-commits", "--no-dirty-commits", "--no-gitignore", "--no-check-update", "--no-analytics", "--no-stream"} {
		if !strings.Contains(args, flag) {
			t.Errorf("%s is not in %q", flag, args)
		}
	}
}
