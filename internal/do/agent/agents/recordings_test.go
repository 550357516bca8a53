package agents

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/subscription"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// recordings has a folder for each program: what it printed in one situation
// each, and its exit status where a test reads it.
const recordings = "testdata/recordings"

// streamsOf lists the recorded streams of a program; "*" means all programs.
func streamsOf(t *testing.T, program string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(recordings, program, "*.stdout"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings of %s: %v", program, err)
	}
	return files
}

// seen is what a recording must come to; a field at its zero value is none.
type seen struct {
	message  string // a part of it; "" is no message at all
	terminal loop.Terminal
	in, out  int64 // tokens; out is -1 where only an estimate exists
	cost     loop.MicroUSD
	calls    int
	retries  int
	tools    int
	status   int
	kind     string // of the last error
	reset    bool
	plan     int // per cent of a subscription that are used
}

const (
	ok      = loop.TerminalOK
	failed  = loop.TerminalFailed
	missing = loop.TerminalMissing
)

var (
	wrote    = seen{message: "The file is written.\n<promise>COMPLETE</promise>", terminal: ok, in: 2500, out: 60, cost: 10080, calls: 2, tools: 1}
	done     = seen{message: "done", terminal: ok, in: 1000, out: 5, cost: 3915, calls: 1}
	steps    = seen{message: "All steps done.\n<promise>COMPLETE</promise>", terminal: ok, in: 7000, out: 210, cost: 28350, calls: 5, tools: 5}
	nothing  = seen{terminal: missing}
	waiting  = seen{message: "", terminal: missing, in: 100, out: -1, calls: 1, tools: 1}
	noReason = seen{terminal: failed, kind: "error_during_execution"}
)

// but is a row like another.
func (s seen) but(change func(*seen)) seen {
	change(&s)
	return s
}

func retried(n int) func(*seen) {
	return func(s *seen) { s.retries = n; s.calls += n }
}

func refusedBy(status int, kind, message string, retries int) seen {
	s := seen{message: message, terminal: failed, status: status, kind: kind, retries: retries, calls: retries}
	if status != 0 {
		s.calls++
	}
	return s
}

// recorded has a row for each recording of Claude Code.
var recorded = map[string]seen{
	"tool": wrote, "bare": wrote, "hooksevents": wrote, "nopersist": wrote, "noperm": wrote, "oauth_tool": wrote.but(func(s *seen) { s.plan = 42 }),
	"par0": wrote, "par1": wrote, "par2": wrote, "par3": wrote, "partial": wrote, "safemode": wrote,
	"sessionid": wrote, "streamin": wrote, "streamin_hold": wrote, "v2.1.197_tool": wrote,
	"o500-x2": wrote.but(retried(2)), "o529-x2": wrote.but(retried(2)), "r429-x2": wrote.but(retried(2)),
	"json": wrote.but(func(s *seen) { s.calls, s.tools = 0, 0 }),

	"plain": done, "appendsys": done, "argprompt": done, "argprompt_stdin_open": done, "bench": done,
	"stdin200k": done, "stdin2m": done,
	// A resumed session's cost and models include what went before.
	"resume":     done.but(func(s *seen) { s.in, s.out, s.cost = 3500, 65, 13995 }),
	"jsonschema": {message: "done", terminal: ok, in: 2000, out: 10, cost: 7830, calls: 2},

	"multi": steps, "dontask": steps, "noperm_acceptedits": steps,
	"bgsleep": {message: "Started.\n<promise>COMPLETE</promise>", terminal: ok, in: 210, out: 20, cost: 2610, calls: 2, tools: 1},
	"slow":    {message: "slow words arrive", terminal: ok, in: 1000, out: 30, cost: 4290, calls: 1},
	"cut":     {message: "this stream breaks", terminal: ok, in: 4000, out: 102, cost: 16890, calls: 11, retries: 10},

	"budget_small": {terminal: failed, in: 2500, out: 81, cost: 10395, calls: 2, tools: 2, kind: "error_max_budget_usd"},
	"maxbudget":    {terminal: failed, in: 12600, out: 450, cost: 52110, calls: 9, tools: 9, kind: "error_max_budget_usd"},
	"maxturns":     {terminal: failed, in: 3300, out: 150, cost: 14670, calls: 3, tools: 3, kind: "error_max_turns"},

	"a401":          refusedBy(401, "authentication_failed", "Invalid API key", 10),
	"a401_max2":     refusedBy(401, "authentication_failed", "Invalid API key", 2),
	"v2.1.197_a401": refusedBy(401, "authentication_failed", "Invalid API key", 2),
	"oauth_a401":    refusedBy(401, "authentication_failed", "Not logged in", 2),
	"nokey":         refusedBy(0, "authentication_failed", "Not logged in", 0),
	"apitimeout":    refusedBy(0, "server_error", "Request timed out", 1),
	"badjson":       refusedBy(0, "unknown", "empty or malformed response", 0),
	"badmodelname":  refusedBy(404, "model_not_found", "issue with the selected model", 0),
	"ctx":           refusedBy(400, "prompt_too_long", "Prompt is too long", 0),
	"fallback":      refusedBy(529, "server_error", "529 Overloaded", 4),
	"o529":          refusedBy(529, "server_error", "529 Overloaded", 10),
	"o529_max2":     refusedBy(529, "server_error", "529 Overloaded", 2),
	"r429":          refusedBy(429, "rate_limit", "Rate limit reached", 10),
	"r429_max2":     refusedBy(429, "rate_limit", "Rate limit reached", 2),
	"quota":         refusedBy(429, "rate_limit", "exceed your account's rate limit", 0),
	"refused":       refusedBy(0, "server_error", "ECONNREFUSED", 10),
	"refused_max2":  refusedBy(0, "server_error", "ECONNREFUSED", 2),
	"oauth_quota":   refusedBy(429, "rate_limit", "5-hour limit", 0).but(func(s *seen) { s.reset, s.plan = true, 100 }),
	"v2.1.197_quota_oauth": refusedBy(429, "rate_limit", "session limit", 0).
		but(func(s *seen) { s.reset = true }),

	"sigint_bash":        noReason.but(func(s *seen) { s.in, s.out, s.cost, s.calls, s.tools = 100, 10, 1290, 1, 1 }),
	"sigint_hang":        noReason,
	"resume_bad":         noReason,
	"sighup_bash":        waiting,
	"sigkill_bash":       waiting,
	"sigkill_group_bash": waiting,
	"sigterm_bash":       waiting,
	"sigterm_group_bash": waiting,

	"badflag": nothing, "hang60": nothing, "noprompt": nothing, "noverbose": nothing, "root_nosandbox": nothing,
	"sigterm_hang": nothing, "stdin12m": nothing, "stdin_devnull": nothing, "stdin_open": nothing,
	"stdin_open_withdata": nothing, "text": nothing,
}

func TestRecordings(t *testing.T) {
	files := streamsOf(t, "claude")
	if len(files) != len(recorded) {
		t.Errorf("%d recordings and %d rows", len(files), len(recorded))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".stdout")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, ok := recorded[name]
			if !ok {
				t.Fatal("no row for this recording")
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want.check(t, collect(t, "claude", b))
		})
	}
}

func collect(t *testing.T, format string, stream []byte) agent.Outcome {
	t.Helper()
	p, err := Parser(format, ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := agent.NewCollector()
	lines := agent.NewLines(0, func(b []byte, cut bool) { p.Line(b, cut, c.Add) })
	if _, err := bytes.NewReader(stream).WriteTo(lines); err != nil {
		t.Fatal(err)
	}
	lines.Flush()
	p.Close(c.Add)
	return c.Outcome()
}

func (s seen) check(t *testing.T, got agent.Outcome) {
	t.Helper()
	if s.message == "" && got.Terminal == ok || !strings.Contains(got.Message, s.message) ||
		(s.message == "" && got.Terminal == failed && got.Message != "") {
		t.Errorf("message is %q, want %q", got.Message, s.message)
	}
	if got.Terminal != s.terminal {
		t.Errorf("terminal is %q, want %q", got.Terminal, s.terminal)
	}
	if got.Usage.Input != s.in || (s.out >= 0 && got.Usage.Output != s.out) || (s.out < 0 && got.Usage.Output < 1) {
		t.Errorf("usage is %+v, want %d in and %d out", got.Usage, s.in, s.out)
	}
	if got.Cost != s.cost {
		t.Errorf("cost is %d (%s), want %d", got.Cost, got.CostSource, s.cost)
	}
	if got.Calls != s.calls || got.Retries != s.retries || got.Tools != s.tools {
		t.Errorf("calls, retries, tools are %d, %d, %d, want %d, %d, %d", got.Calls, got.Retries, got.Tools, s.calls, s.retries, s.tools)
	}
	s.checkError(t, got)
}

func (s seen) checkError(t *testing.T, got agent.Outcome) {
	t.Helper()
	if w := subscription.Fullest(got.Plan); w.Used != s.plan {
		t.Errorf("%d %% of the plan are used, want %d %%", w.Used, s.plan)
	}
	if len(got.Errors) == 0 {
		if s.kind != "" || s.status != 0 {
			t.Errorf("no error, want %d %s", s.status, s.kind)
		}
		return
	}
	last := got.Errors[len(got.Errors)-1]
	if last.Status != s.status || last.Type != s.kind {
		t.Errorf("error is %d %q, want %d %q", last.Status, last.Type, s.status, s.kind)
	}
	if last.Message == "" || last.ResetAt.IsZero() == s.reset {
		t.Errorf("error is %+v, want a message, and a reset time: %v", last, s.reset)
	}
}
