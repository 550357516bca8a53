package agents

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// account is what a recording must come to; a field at its zero value is none.
type account struct {
	message     string // all of it
	terminal    loop.Terminal
	in, out     int64 // tokens; in is without the cached ones
	cached      int64
	calls       int
	retries     int
	tools       int
	unknown     int // lines that are none of the format
	status      int // of the last error
	kind        string
	says        string        // a part of its message
	class       failure.Class // of the failure, where an error was told
	wait        time.Duration // from recordedAt until it works again
	sessionless bool          // the stream names no session
}

// recordedAt stands for the time of a failure.
var recordedAt = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const (
	signalled  = "The file is written.\n<promise>COMPLETE</promise>"
	allSteps   = "All steps done.\n<promise>COMPLETE</promise>"
	slowWords  = "slow words arrive one by one slow words arrive one by one slow words arrive one by one slow words arrive one by one <promise>COMPLETE</promise>"
	overWindow = "Your input exceeds the context window of this model."
	perMinute  = "Rate limit reached: 50 requests per minute. Please try again in 2s."
	usedUp     = "The usage limit has been reached"
)

// unread is a stream in another format, or nothing at all.
func unread(lines int) account {
	return account{terminal: missing, unknown: lines, sessionless: true}
}

func (a account) but(change func(*account)) account {
	change(&a)
	return a
}

// broke is a run that failed with a typed error.
func broke(status int, kind, says string, class failure.Class, calls, retries int) account {
	return account{terminal: failed, status: status, kind: kind, says: says, class: class, calls: calls, retries: retries}
}

func (a account) apologised() account {
	return a.but(func(a *account) { a.message = a.says })
}

func waited(d time.Duration) func(*account) { return func(a *account) { a.wait = d } }

// The tokens of a call were the same for every program; what differs is what
// each of them takes "input" to be.
var (
	qwenTool   = account{message: signalled, terminal: ok, in: 1900, out: 60, cached: 600, calls: 2, tools: 1}
	qwenDone   = account{message: "done", terminal: ok, in: 1400, out: 10, cached: 600, calls: 1}
	qwenSilent = account{terminal: missing}
	qwenKilled = account{terminal: missing, out: 10, cached: 300, calls: 1, tools: 1}
)

var qwenRows = map[string]account{
	"tool": qwenTool, "positional": qwenTool, "partial": qwenTool,
	// Retries that it makes within a call do not show.
	"o500-x2": qwenTool, "o529-x2": qwenTool, "r429-x2": qwenTool,
	// The result counts a call that no line shows.
	"plain": qwenDone, "bench": qwenDone, "positional_stdin_open": qwenDone, "stdin200k": qwenDone,
	"slow":    {message: slowWords + " ", terminal: ok, in: 1400, out: 60, cached: 600, calls: 1},
	"multi":   {message: allSteps, terminal: ok, in: 5500, out: 210, cached: 1500, calls: 5, tools: 5},
	"noyolo":  {message: "Step 1.", terminal: ok, in: 6400, out: 250, cached: 1800, calls: 1},
	"bgsleep": {message: "Started.\n<promise>COMPLETE</promise>", terminal: ok, out: 20, cached: 600, calls: 2, tools: 1},

	"a401":     broke(401, "authentication_error", "[API Error: 401 invalid x-api-key]", failure.Auth, 1, 0).apologised(),
	"ctx":      broke(400, "context_length_exceeded", "[API Error: 400 "+overWindow+" Please adjust your input and try again.]", failure.ContextLength, 1, 0).apologised(),
	"o529":     broke(529, "overloaded", "[API Error: 529 Overloaded]", failure.ServiceUnavailable, 1, 0).apologised(),
	"cut":      broke(0, "connection_error", "[API Error: terminated (cause: UND_ERR_SOCKET: other side closed)]", failure.Network, 3, 3).apologised(),
	"refused":  broke(0, "connection_error", "[API Error: Connection error. (cause: fetch failed)]", failure.Network, 0, 0).apologised(),
	"badjson":  broke(0, "server_error", "[API Error: Streaming request received a non-SSE response (HTTP 200, Content-Type: text/html). Body prefix: <html>gateway</html>]", failure.ServiceUnavailable, 0, 0).apologised(),
	"stdin12m": broke(0, "context_length_exceeded", "[API Error: Context is too large to send safely after automatic compression. Estimated prompt tokens: 2099493; hard limit: 977000; compression status: NOOP. Start a new session or reduce the resumed history before continuing.]", failure.ContextLength, 0, 0).apologised(),
	"nokey": broke(0, "authentication_error", "Missing API key for OpenAI-compatible auth. Set settings.security.auth.apiKey, or set the 'OPENAI_API_KEY' environment variable.", failure.Auth, 0, 0).apologised().
		but(func(a *account) { a.sessionless = true }),
	// Killed while it waited: 60 s, tried again, then 120 s.
	"r429": {terminal: missing, calls: 1, retries: 2, kind: "rate_limit", says: "waits 2m0s", class: failure.RateLimit, wait: 2 * time.Minute},

	"maxturns": {terminal: missing, in: 2400, out: 150, cached: 900, calls: 3, tools: 3},
	"quota":    qwenSilent, "hang60": qwenSilent, "maxwall": qwenSilent, "sigint_hang": qwenSilent, "sigterm_hang": qwenSilent,
	"sigint_bash": qwenKilled, "sigkill_bash": qwenKilled, "sigkill_group_bash": qwenKilled, "sigterm_bash": qwenKilled, "sigterm_group_bash": qwenKilled,
	"badflag": unread(0), "noprompt": unread(0), "stdin_devnull": unread(0), "stdin_open_withdata": unread(0),
	"json": unread(1), "text": unread(2),
}

var (
	copilotTool = account{message: signalled, terminal: ok, calls: 2, tools: 1}
	copilotDone = account{message: "done", terminal: ok, calls: 1}
	copilotHung = account{terminal: missing, calls: 1, sessionless: true}
	copilotBash = account{terminal: missing, calls: 1, tools: 1, sessionless: true}
	afterTwo    = copilotTool.but(func(a *account) { a.calls, a.retries = 4, 2 })
)

var copilotRows = map[string]account{
	"tool": copilotTool, "anthropic": copilotTool, "native_tool": copilotTool, "parg": copilotTool, "usagefile": copilotTool,
	"o500-x2": afterTwo, "o529-x2": afterTwo, "r429-x2": afterTwo,
	"plain": copilotDone, "bench": copilotDone, "parg_stdin_open": copilotDone, "parg_with_stdin": copilotDone,
	"slow":    {message: slowWords + " ", terminal: ok, calls: 1},
	"multi":   {message: allSteps, terminal: ok, calls: 5, tools: 5},
	"noallow": {message: allSteps, terminal: ok, calls: 5, tools: 5},
	"bgsleep": {message: "Started.\n<promise>COMPLETE</promise>", terminal: ok, calls: 2, tools: 1},

	"a401":    broke(401, "invalid_api_key", "Authentication failed with provider", failure.Auth, 3, 2),
	"ctx":     broke(400, "context_length_exceeded", "rejected the prompt as too long", failure.ContextLength, 1, 1),
	"o529":    broke(529, "overloaded", "retried 5 times", failure.ServiceUnavailable, 6, 5),
	"r429":    broke(429, "rate_limit_exceeded", perMinute, failure.RateLimit, 6, 5).but(waited(2 * time.Second)),
	"badjson": broke(0, "server_error", "request ended without sending any chunks", failure.ServiceUnavailable, 6, 5),
	"cut":     broke(0, "connection_error", "unexpected EOF", failure.Network, 6, 5),
	"refused": broke(0, "connection_error", "Could not connect to local model provider", failure.Network, 6, 5),
	// resets_at in the provider's words is 1795183346.
	"quota": broke(429, "usage_limit_reached", usedUp, failure.QuotaExhausted, 1, 0).but(waited(2*time.Hour + 2*time.Minute + 26*time.Second)),

	// Its exit code is 0 after a TERM, in the result as well.
	"native_sigterm_bash": broke(0, "aborted", "user_initiated", failure.Unknown, 1, 0).but(func(a *account) { a.tools = 1 }),
	"native_sigterm_hang": copilotHung, "hang60": copilotHung, "sigint_hang": copilotHung, "sigterm_hang": copilotHung,
	"native_sigint_bash": copilotBash, "native_sigkill_bash": copilotBash, "sigint_bash": copilotBash, "sigkill_bash": copilotBash,
	"sigkill_group_bash": copilotBash, "sigterm_bash": copilotBash, "sigterm_group_bash": copilotBash,
	"badflag": unread(0), "noauth": unread(0), "noprompt": unread(0), "stdin_devnull": unread(0), "stdin_open_withdata": unread(0),
	"silent": unread(3), "text": unread(4),
}

var (
	droidTool   = account{message: signalled, terminal: ok, in: 1900, out: 60, cached: 600, calls: 2, tools: 1}
	droidDone   = account{message: "done", terminal: ok, in: 700, out: 5, cached: 300, calls: 1}
	droidSteps  = account{message: allSteps, terminal: ok, in: 5500, out: 210, cached: 1500, calls: 5, tools: 5}
	droidWaited = account{message: "Waited.\n<promise>COMPLETE</promise>", terminal: ok, out: 20, cached: 600, calls: 2, tools: 1}
	droidKilled = account{terminal: missing, calls: 1, tools: 1}
	droidSilent = account{terminal: missing}
)

var droidRows = map[string]account{
	"tool": droidTool, "argprompt": droidTool, "fileprompt": droidTool, "o500-x2": droidTool, "o529-x2": droidTool, "r429-x2": droidTool,
	"plain": droidDone, "bench": droidDone, "argprompt_stdin_open": droidDone, "nokey": droidDone,
	"multi": droidSteps, "automedium": droidSteps, "noauto": droidSteps,
	"slow":    {message: slowWords, terminal: ok, in: 700, out: 30, cached: 300, calls: 1},
	"bgsleep": {message: "Started.\n<promise>COMPLETE</promise>", terminal: ok, out: 20, cached: 600, calls: 2, tools: 1},

	"a401":    broke(401, "authentication_error", "401 invalid x-api-key", failure.Auth, 1, 0),
	"ctx":     broke(400, "context_length_exceeded", overWindow, failure.ContextLength, 1, 0),
	"quota":   broke(429, "usage_limit_reached", usedUp, failure.QuotaExhausted, 1, 0),
	"r429":    broke(429, "rate_limit", perMinute, failure.RateLimit, 1, 0).but(waited(2 * time.Second)),
	"cut":     broke(0, "connection_error", "The socket connection was closed unexpectedly.", failure.Network, 0, 0),
	"badjson": broke(0, "server_error", "LLM response contained no usable output", failure.ServiceUnavailable, 0, 0),
	"bigtext": broke(0, "", "LLM output entered an exact repetition cycle", failure.Unknown, 0, 0),

	// The tool was killed, the model was told, and it went on to complete.
	"sigint_bash": droidWaited, "sigterm_bash": droidWaited,
	"sigterm_group_bash": droidWaited.but(func(a *account) { a.message = "Slept.\n<promise>COMPLETE</promise>" }),
	"sigkill_bash":       droidKilled, "sigkill_group_bash": droidKilled,
	"hang60": droidSilent, "o529": droidSilent, "sigint_hang": droidSilent, "sigterm_hang": droidSilent,
	"badflag": unread(0), "noprompt": unread(0), "stdin_devnull": unread(0), "json": unread(1), "text": unread(2),
}

var (
	clineTool    = account{message: signalled, terminal: ok, in: 1900, out: 60, cached: 600, calls: 2, tools: 1}
	clineHung    = account{terminal: missing, calls: 1}
	clineKilled  = account{terminal: missing, out: 10, cached: 300, calls: 1, tools: 1}
	clineAborted = account{message: "Slept.\n<promise>COMPLETE</promise>", terminal: failed, out: 20, cached: 600, calls: 2, tools: 1,
		kind: "aborted", says: "local_abort", class: failure.Unknown}
)

var clineRows = map[string]account{
	"argprompt": clineTool, "argprompt_emptystdin": clineTool, "stdin_plus_arg": clineTool, "o500-x2": clineTool, "o529-x2": clineTool, "r429-x2": clineTool,
	"bench":   {message: "done", terminal: ok, in: 700, out: 5, cached: 300, calls: 1},
	"slow":    {message: slowWords + " ", terminal: ok, in: 700, out: 30, cached: 300, calls: 1},
	"multi":   {message: allSteps, terminal: ok, in: 5500, out: 210, cached: 1500, calls: 5, tools: 5},
	"bgsleep": {message: "Started.\n<promise>COMPLETE</promise>", terminal: ok, out: 20, cached: 600, calls: 2, tools: 1},

	"a401":    broke(0, "auth", "invalid x-api-key", failure.Auth, 1, 0).apologised(),
	"o529":    broke(0, "overloaded", "Overloaded", failure.ServiceUnavailable, 1, 0).apologised(),
	"quota":   broke(0, "usage_limit_reached", usedUp, failure.QuotaExhausted, 1, 0).apologised(),
	"r429":    broke(0, "rate_limit", perMinute, failure.RateLimit, 1, 0).apologised().but(waited(2 * time.Second)),
	"badjson": broke(0, "server_error", "Response stream ended without a finish reason.", failure.ServiceUnavailable, 1, 0).apologised(),
	"cut":     broke(0, "connection_error", "The socket connection was closed unexpectedly. For more information, pass `verbose: true` in the second argument to fetch()", failure.Network, 1, 0).apologised(),
	"nokey":   broke(0, "connection_error", "Cannot connect to API: Was there a typo in the url or port?: Was there a typo in the url or port? (FailedToOpenSocket)", failure.Network, 1, 0).apologised(),
	"ctx": broke(0, "context_window_exceeded", "The request exceeds the model's context window and there is no conversation history to compact — the system prompt, tools, and current input alone are too large."+
		" Reduce attached content or switch to a model with a larger context window. (provider reported: "+overWindow+" Please adjust your input and try again.)", failure.ContextLength, 1, 0).apologised(),
	"noapprove": {terminal: failed, in: 3000, out: 123, cached: 900, calls: 3, tools: 3, kind: "aborted", says: "external_abort", class: failure.Unknown},

	"sigterm_bash": clineAborted, "sigterm_group_bash": clineAborted,
	"sigint_bash": clineKilled, "sigkill_bash": clineKilled, "sigkill_group_bash": clineKilled,
	"hang60": clineHung, "sigint_hang": clineHung, "sigterm_hang": clineHung, "timeout_flag": clineHung,
	// Without a prompt as an argument it does not start.
	"plain": unread(0), "tool": unread(0), "stdin_direct": unread(0), "stdin_open": unread(0), "stdin_shell": unread(0), "badflag": unread(0), "text": unread(5),
}

func TestRecordingsOfKnownPrograms(t *testing.T) {
	t.Parallel()
	for program, rows := range map[string]map[string]account{"qwen": qwenRows, "copilot": copilotRows, "droid": droidRows, "cline": clineRows} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			files := streamsOf(t, program)
			for _, file := range files {
				name := strings.TrimSuffix(filepath.Base(file), ".stdout")
				t.Run(name, func(t *testing.T) {
					want, known := rows[name]
					if !known {
						t.Fatal("no row for this recording")
					}
					want.check(t, program, strings.TrimSuffix(file, ".stdout"))
				})
			}
			if len(files) != len(rows) {
				t.Errorf("%d recordings and %d rows", len(files), len(rows))
			}
		})
	}
}

func (a account) check(t *testing.T, program, base string) {
	t.Helper()
	stream, err := os.ReadFile(base + ".stdout")
	if err != nil {
		t.Fatal(err)
	}
	got := collect(t, program, stream)
	if got.Message != a.message || got.Terminal != a.terminal {
		t.Errorf("message is %q (%s), want %q (%s)", got.Message, got.Terminal, a.message, a.terminal)
	}
	if want := (agent.Usage{Input: a.in, Output: a.out, CacheRead: a.cached}); got.Usage != want {
		t.Errorf("usage is %+v, want %+v", got.Usage, want)
	}
	// None of them had a price for the model.
	if got.Cost != 0 || got.CostSource != agent.CostNone {
		t.Errorf("cost is %d (%s)", got.Cost, got.CostSource)
	}
	if got.Calls != a.calls || got.Retries != a.retries || got.Tools != a.tools || got.Unknown != a.unknown {
		t.Errorf("calls, retries, tools, unknown are %d, %d, %d, %d, want %d, %d, %d, %d",
			got.Calls, got.Retries, got.Tools, got.Unknown, a.calls, a.retries, a.tools, a.unknown)
	}
	if (got.Session == "") != a.sessionless {
		t.Errorf("session is %q", got.Session)
	}
	a.checkError(t, base, got)
}

func (a account) checkError(t *testing.T, base string, got agent.Outcome) {
	t.Helper()
	if len(got.Errors) == 0 {
		if a.class != "" {
			t.Errorf("no error, want %d %q", a.status, a.kind)
		}
		return
	}
	last := got.Errors[len(got.Errors)-1]
	if last.Status != a.status || last.Type != a.kind || !strings.Contains(last.Message, a.says) || a.says == "" {
		t.Errorf("error is %+v, want %d %q %q", last, a.status, a.kind, a.says)
	}
	exit, err := os.ReadFile(base + ".exit")
	if err != nil {
		t.Fatal(err)
	}
	code, err := strconv.Atoi(strings.TrimSpace(string(exit)))
	if err != nil {
		t.Fatal(err)
	}
	analysis := failure.Analyse(failure.Evidence{
		Source: "agent", Name: "agent", ExitCode: code, CutOff: got.Terminal == missing, Output: got.Message, Errors: got.Errors, Now: recordedAt,
	})
	wait := time.Duration(0)
	if !analysis.WaitUntil.IsZero() {
		wait = analysis.WaitUntil.Sub(recordedAt)
	}
	if analysis.Class != a.class || wait != a.wait {
		t.Errorf("class is %s, wait %v, want %s, %v", analysis.Class, wait, a.class, a.wait)
	}
}
