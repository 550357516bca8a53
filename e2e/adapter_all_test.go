//go:build e2e && e2e_all

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/test/modelserver"
)

// last is the last error of a run.
func last(t *testing.T, o agent.Outcome) (status int, kind, message string) {
	t.Helper()
	if len(o.Errors) == 0 {
		t.Fatalf("the run has no error: %+v", o)
	}
	e := o.Errors[len(o.Errors)-1]
	return e.Status, e.Type, e.Message
}

func TestAdapterGetsOverARateLimit(t *testing.T) {
	t.Parallel()
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, modelserver.Scenario{Asides: true, Replies: []modelserver.Reply{p.limited, {Text: complete}}})
			got, code, stderr := session{program: p, dir: t.TempDir(), server: server}.run(t)
			if code != 0 || got.Terminal != loop.TerminalOK || got.Message != complete || len(got.Errors) != 0 {
				t.Errorf("exit %d, outcome %+v, stderr %s", code, got, stderr)
			}
		})
	}
}

// trouble is a reply that a program does not get over, and how its adapter
// reads it.
type trouble struct {
	reply  modelserver.Reply
	status int
	kinds  []string // any of them
	calls  int      // at most
}

var page = modelserver.Reply{Body: "<html>Log in</html>", BodyType: "text/html"}

// troubles of each program. OpenCode waits for a quota and asks a page of a
// proxy again without end: pawl's limits end those, see the tests of runs.
var troubles = map[string]map[string]trouble{
	"claude": {
		"rate limit":      {claudeProgram.limited, 429, []string{"rate_limit"}, 5},
		"quota":           {claudeProgram.quota, 429, []string{"rate_limit"}, 5},
		"bad key":         {claudeProgram.badKey, 401, []string{"authentication_failed"}, 5},
		"overloaded":      {claudeProgram.overloaded, 529, []string{"server_error", "unknown", "overloaded"}, 5},
		"context":         {claudeProgram.tooLong, 400, []string{"prompt_too_long", "invalid_request"}, 5},
		"page of a proxy": {page, 0, []string{"unknown"}, 5},
	},
	"codex": {
		"rate limit":      {codexProgram.limited, 429, []string{"rate_limit"}, 4},
		"quota":           {codexProgram.quota, 0, []string{"usage_limit_reached"}, 1},
		"bad key":         {codexProgram.badKey, 401, []string{"authentication_error"}, 4},
		"overloaded":      {codexProgram.overloaded, 503, []string{"server_error", "overloaded"}, 4},
		"context":         {codexProgram.tooLong, 0, []string{"context_length_exceeded"}, 4},
		"page of a proxy": {page, 0, []string{"connection_error"}, 4},
	},
	"opencode": {
		"rate limit": {opencodeProgram.limited, 429, []string{"rate_limit_error"}, 10},
		"bad key":    {opencodeProgram.badKey, 401, []string{"invalid_api_key"}, 2},
		"overloaded": {opencodeProgram.overloaded, 503, []string{"server_error"}, 10},
		"context":    {opencodeProgram.tooLong, 0, []string{"context_length_exceeded"}, 4},
	},
	"gemini": {
		"rate limit":      {geminiProgram.limited, 429, []string{"rate_limit"}, 4},
		"quota":           {geminiProgram.quota, 429, []string{"quota_exhausted"}, 4},
		"bad key":         {geminiProgram.badKey, 400, []string{"api_key_invalid"}, 2},
		"overloaded":      {geminiProgram.overloaded, 503, []string{"unavailable", "server_error"}, 4},
		"context":         {geminiProgram.tooLong, 400, []string{"invalid_argument"}, 2},
		"page of a proxy": {page, 0, []string{"connection_failed"}, 4},
	},
}

func TestAdapterGivesUp(t *testing.T) {
	t.Parallel()
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for name, trouble := range troubles[p.name] {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					// Asides have the same trouble: OpenCode would shorten a
					// conversation that is too long, again and again.
					server := serve(t, modelserver.Scenario{Replies: []modelserver.Reply{trouble.reply}})
					got, code, stderr := session{program: p, dir: t.TempDir(), server: server}.run(t)
					if code == 0 || got.Terminal == loop.TerminalOK {
						t.Fatalf("exit %d, outcome %+v, stderr %s", code, got, stderr)
					}
					status, kind, message := last(t, got)
					if status != trouble.status || !slices.Contains(trouble.kinds, kind) || message == "" {
						t.Errorf("error is %d %q %q", status, kind, message)
					}
					if calls := len(server.Calls()); calls > trouble.calls {
						t.Errorf("the program made %d calls", calls)
					}
				})
			}
		})
	}
}

func TestAdapterIsEndedWhileItHangs(t *testing.T) {
	t.Parallel()
	model := serve(t, modelserver.Scenario{Replies: []modelserver.Reply{{Hang: true}}})
	watch := func(e agent.Event) bool { return e.Kind == agent.Session }
	got, code, _ := session{program: claudeProgram, dir: t.TempDir(), server: model, watch: watch}.run(t)
	if code != 143 || got.Terminal != loop.TerminalMissing || got.Message != "" {
		t.Errorf("exit %d, outcome %+v", code, got)
	}
}

func TestAdapterBudget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model := serve(t, modelserver.Scenario{Replies: []modelserver.Reply{
		{Text: "More.", Tools: []modelserver.Tool{claudeProgram.shell("echo again")}, Usage: expensive},
	}})
	got, code, _ := session{program: claudeProgram, dir: dir, server: model, cap: 1_000_000}.run(t)
	if _, kind, _ := last(t, got); code != 1 || kind != "error_max_budget_usd" {
		t.Fatalf("exit %d, outcome %+v", code, got)
	}
	// One call is 0.45 dollars: the third one crosses the limit of one.
	if got.Cost != 1_350_000 || got.Calls != 3 {
		t.Errorf("cost %d after %d calls", got.Cost, got.Calls)
	}
}

func TestAdapterBrokenStream(t *testing.T) {
	t.Parallel()
	model := serve(t, modelserver.Scenario{Replies: []modelserver.Reply{
		{Text: "this stream breaks", Cut: 3},
		{Text: complete},
	}})
	got, code, _ := session{program: claudeProgram, dir: t.TempDir(), server: model}.run(t)
	if code != 0 || got.Terminal != loop.TerminalOK || !strings.HasSuffix(got.Message, complete) {
		t.Errorf("exit %d, outcome %+v", code, got)
	}
}
