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

// told is what a recording of a program must come to, by its stream and its
// exit status; a field at its zero value is none.
type told struct {
	message          string // its end; "" is no message at all
	terminal         loop.Terminal
	in, out, cached  int64 // tokens
	cost             loop.MicroUSD
	calls, retries   int
	tools            int
	status           int
	kind             string // of the last error
	class            failure.Class
	wait             time.Duration // until it works again, as the error says
	unknown          int
	statusByExitOnly bool // the stream does not name the status
}

// but is a row like another.
func (w told) but(change func(*told)) told {
	change(&w)
	return w
}

func again(n int) func(*told) {
	return func(w *told) { w.retries = n; w.calls += n }
}

// toldAt is about when the recordings were made. The quota in them is
// reset three hours later.
var toldAt = time.Date(2026, 11, 20, 10, 27, 0, 0, time.UTC)

const (
	wroteWords = "The file is written.\n<promise>COMPLETE</promise>"
	stepsWords = "All steps done.\n<promise>COMPLETE</promise>"
	slowEnd    = "arrive one by one <promise>COMPLETE</promise>"
)

var silence = told{terminal: missing}

func TestCodexRecordings(t *testing.T)    { recordingsOf(t, "codex", codexTold) }
func TestOpenCodeRecordings(t *testing.T) { recordingsOf(t, "opencode", openCodeTold) }
func TestGeminiRecordings(t *testing.T)   { recordingsOf(t, "gemini", geminiTold) }

var (
	codexWrote = told{message: wroteWords, terminal: ok, in: 1900, cached: 600, out: 60, calls: 2, tools: 1}
	codexDone  = told{message: "done", terminal: ok, in: 700, cached: 300, out: 5, calls: 1}
	// Two tools of one answer are told one after the other, as if they were two
	// answers: six calls instead of five.
	codexSteps = told{message: stepsWords, terminal: ok, in: 5500, cached: 1500, out: 210, calls: 6, tools: 5}
	codexKnown = told{terminal: missing, calls: 1, tools: 1}
)

func codexFailed(status int, kind string, class failure.Class, retries int) told {
	return told{terminal: failed, status: status, kind: kind, class: class, calls: retries + 1, retries: retries}
}

var codexTold = map[string]told{
	"tool": codexWrote, "argprompt": codexWrote, "ephemeral": codexWrote, "jswrapper_tool": codexWrote, "lastmsg": codexWrote,
	"nonet_flags": codexWrote, "par1": codexWrote, "par2": codexWrote, "par3": codexWrote, "parb0": codexWrote, "parb1": codexWrote,
	"parb2": codexWrote, "parb3": codexWrote,
	// Retries below the stream's own are not told.
	"o500-x2": codexWrote, "o529-x2": codexWrote,
	"r429-x2": codexWrote.but(again(2)),

	"plain": codexDone, "argprompt_with_stdin": codexDone, "bench": codexDone, "nogit": codexDone, "outputschema": codexDone,
	"sess1": codexDone, "stdin200k": codexDone,
	// A resumed thread's usage includes what went before.
	"resume": codexDone.but(func(w *told) { w.in, w.cached, w.out = 1400, 600, 10 }),

	"multi": codexSteps, "readonly_default": codexSteps, "workspace_write": codexSteps,
	"bgsleep": {message: "Started.\n<promise>COMPLETE</promise>", terminal: ok, cached: 600, out: 20, calls: 2, tools: 1},
	"slow":    {message: slowEnd, terminal: ok, in: 700, cached: 300, out: 30, calls: 1},

	"a401":         codexFailed(401, "authentication_error", failure.Auth, 5),
	"badjson":      codexFailed(0, "connection_error", failure.Network, 5),
	"badmodelname": codexFailed(0, "model_not_found", failure.Validation, 0),
	"ctx":          codexFailed(0, "context_length_exceeded", failure.ContextLength, 0),
	"cut":          codexFailed(0, "connection_error", failure.Network, 5),
	"nokey":        codexFailed(0, "authentication_missing", failure.Auth, 0).but(func(w *told) { w.calls = 0 }),
	"o529":         codexFailed(529, "overloaded", failure.ServiceUnavailable, 5),
	"quota":        codexFailed(0, "usage_limit_reached", failure.QuotaExhausted, 0).but(func(w *told) { w.wait = 3 * time.Hour }),
	"r429":         codexFailed(429, "rate_limit", failure.RateLimit, 5),
	"refused":      {terminal: missing, kind: "connection_error", class: failure.Network, calls: 8, retries: 8},
	"par0":         {terminal: missing, kind: "connection_error", class: failure.Network, calls: 9, retries: 9},

	"jswrapper20_sigint": codexKnown, "jswrapper20_sigkill": codexKnown, "jswrapper20_sigterm": codexKnown, "jswrapper_sigkill": codexKnown,
	"jswrapper_sigterm": codexKnown, "sighup_bash": codexKnown, "sigint_bash": codexKnown, "sigkill_bash": codexKnown,
	"sigkill_group_bash": codexKnown, "sigterm_bash": codexKnown, "sigterm_group_bash": codexKnown,

	"argprompt_stdin_open": silence, "badconfig": silence, "badflag": silence, "hang60": silence, "noprompt": silence, "sigint_hang": silence,
	"sigterm_hang": silence, "stdin1_5m": silence, "stdin_devnull": silence, "stdin_open": silence, "stdin_open_withdata": silence,
	"text": {terminal: missing, unknown: 2},
}

var (
	openCodeWrote = told{message: wroteWords, terminal: ok, in: 1900, cached: 600, out: 60, cost: 6780, calls: 2, tools: 1}
	openCodeDone  = told{message: "done", terminal: ok, in: 700, cached: 300, out: 5, cost: 2265, calls: 1}
	openCodeSteps = told{message: stepsWords, terminal: ok, in: 5500, cached: 1500, out: 210, cost: 20100, calls: 5, tools: 5}
	// A tool that runs is not told, only what was said before it.
	openCodeWaiting  = told{message: "Waiting.", terminal: missing}
	openCodeSleeping = told{message: "Sleeping.", terminal: missing}
)

func openCodeFailed(status int, kind string, class failure.Class) told {
	w := told{terminal: failed, status: status, kind: kind, class: class}
	if status != 0 {
		w.calls = 1
	}
	return w
}

var openCodeTold = map[string]told{
	"tool": openCodeWrote, "argprompt": openCodeWrote, "par0": openCodeWrote, "par1": openCodeWrote, "par2": openCodeWrote,
	"pure": openCodeWrote, "warm2": openCodeWrote, "o500-x2": openCodeWrote, "o529-x2": openCodeWrote, "r429-x2": openCodeWrote,

	"plain": openCodeDone, "argprompt_with_stdin": openCodeDone, "bench": openCodeDone, "nogit": openCodeDone,
	"stdin200k": openCodeDone, "stdin2m": openCodeDone,

	"multi": openCodeSteps, "auto_ask": openCodeSteps, "noauto": openCodeSteps, "thinking": openCodeSteps,
	"bgsleep": {message: "Started.\n<promise>COMPLETE</promise>", terminal: ok, cached: 600, out: 20, cost: 480, calls: 2, tools: 1},
	"slow":    {message: slowEnd + " ", terminal: ok, in: 700, cached: 300, out: 30, cost: 2640, calls: 1},
	// The tool was refused, and the program ended without another word.
	"noauto_ask": {terminal: missing, in: 900, cached: 300, out: 40, cost: 3390, calls: 1, tools: 1},

	"a401":         openCodeFailed(401, "authentication_error", failure.Auth),
	"badmodelname": openCodeFailed(0, "unknown", failure.Unknown),
	"badprovider":  openCodeFailed(0, "unknown", failure.Unknown),
	"ctx":          openCodeFailed(0, "context_length_exceeded", failure.ContextLength),
	"cut":          openCodeFailed(0, "connection_failed", failure.Network),
	"o529":         openCodeFailed(529, "overloaded_error", failure.ServiceUnavailable),
	"r429":         openCodeFailed(429, "rate_limit_error", failure.RateLimit).but(func(w *told) { w.wait = 2 * time.Second }),
	"refused":      openCodeFailed(0, "connection_failed", failure.Network),

	"sighup_bash": openCodeWaiting, "sigint_bash": openCodeWaiting, "sigint_bash2": openCodeWaiting, "sigterm_bash": openCodeWaiting,
	"sigkill_bash": openCodeSleeping, "sigkill_group_bash": openCodeSleeping, "sigterm_group_bash": openCodeSleeping,

	"argprompt_stdin_open": silence, "badflag": silence, "hang60": silence, "noprompt": silence, "par3": silence, "parb0": silence,
	"parb1": silence, "parb2": silence, "parb3": silence, "quota": silence, "sigint_hang": silence, "sigterm_hang": silence,
	"stdin_devnull": silence, "stdin_open_withdata": silence,
	"text": {terminal: missing, unknown: 3},
}

var (
	// With two tokens of thoughts in each answer.
	geminiWrote = told{message: wroteWords, terminal: ok, in: 1900, cached: 600, out: 64, calls: 2, tools: 1}
	geminiDone  = told{message: "done", terminal: ok, in: 700, cached: 300, out: 7, calls: 1}
	geminiKnown = told{terminal: missing, calls: 1, tools: 1}
)

func geminiFailed(status int, kind string, class failure.Class) told {
	return told{terminal: failed, status: status, kind: kind, class: class, calls: 1}
}

var geminiTold = map[string]told{
	"tool": geminiWrote, "o500-x2": geminiWrote, "o529-x2": geminiWrote, "par0": geminiWrote, "par1": geminiWrote, "par2": geminiWrote,
	"par3": geminiWrote, "parg": geminiWrote, "positional": geminiWrote, "r429-x2": geminiWrote,
	"plain": geminiDone, "bench": geminiDone, "parg_stdin_open": geminiDone, "parg_with_stdin": geminiDone,

	"multi":   {message: stepsWords, terminal: ok, in: 5500, cached: 1500, out: 220, calls: 5, tools: 5},
	"bgsleep": {message: "Started.\n<promise>COMPLETE</promise>", terminal: ok, cached: 600, out: 24, calls: 2, tools: 1},
	"slow":    {message: slowEnd + " ", terminal: ok, in: 700, cached: 300, out: 32, calls: 1},
	// Without approval it just stops, and says success.
	"noyolo": {message: "Step 1.", terminal: ok, in: 900, cached: 300, out: 42, calls: 1},

	"a401":     geminiFailed(400, "api_key_invalid", failure.Auth),
	"badjson":  geminiFailed(0, "connection_failed", failure.Network),
	"ctx":      geminiFailed(400, "invalid_argument", failure.ContextLength),
	"cut":      geminiFailed(0, "connection_failed", failure.Network).but(func(w *told) { w.message = "this stream breaks " }),
	"o529":     geminiFailed(529, "unavailable", failure.ServiceUnavailable),
	"quota":    geminiFailed(429, "quota_exhausted", failure.QuotaExhausted),
	"r429":     geminiFailed(429, "rate_limit", failure.RateLimit).but(func(w *told) { w.wait = 2 * time.Second }),
	"bigtext":  {terminal: failed, kind: "loop_detected", class: failure.NoProgress},
	"maxturns": {terminal: failed, in: 2400, cached: 900, out: 156, calls: 3, tools: 3, kind: "max_turns", class: failure.NoProgress},
	// Nothing was printed but the exit status.
	"nokey":         {terminal: missing, kind: "authentication_missing", class: failure.Auth, statusByExitOnly: true},
	"noprompt":      {terminal: missing, kind: "invalid_input", class: failure.Validation, statusByExitOnly: true},
	"stdin_devnull": {terminal: missing, kind: "invalid_input", class: failure.Validation, statusByExitOnly: true},
	"notrust":       {terminal: missing, kind: "invalid_folder_trust", class: failure.Validation, statusByExitOnly: true},

	"sighup_bash": geminiKnown, "sigint_bash": geminiKnown, "sigkill_bash": geminiKnown, "sigkill_group_bash": geminiKnown,
	"sigkill_norelaunch": geminiKnown, "sigterm_bash": geminiKnown, "sigterm_bash_norelaunch": geminiKnown, "sigterm_group_bash": geminiKnown,

	"badflag": silence, "hang60": silence, "refused": silence, "sigint_hang": silence, "sigterm_hang": silence, "sigterm_hang_norelaunch": silence,
	"stdin_open_withdata": silence,
	"json":                {terminal: missing, unknown: 71}, // another format
	"stdin12m":            {terminal: missing, unknown: 1},  // the echo was cut off in the pipe
	"text":                {terminal: missing, unknown: 3},
}

// recordingsOf checks every recording of a program against its row.
func recordingsOf(t *testing.T, program string, rows map[string]told) {
	t.Parallel()
	a, found := Lookup(program)
	if !found {
		t.Fatalf("%s is not in the table", program)
	}
	seen := 0
	for _, file := range streamsOf(t, program) {
		name := strings.TrimSuffix(filepath.Base(file), ".stdout")
		want, found := rows[name]
		if !found {
			t.Errorf("%s: no row for this recording", name)
			continue
		}
		seen++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			exit, err := os.ReadFile(strings.TrimSuffix(file, ".stdout") + ".exit")
			if err != nil {
				t.Fatal(err)
			}
			code, err := strconv.Atoi(strings.TrimSpace(string(exit)))
			if err != nil {
				t.Fatal(err)
			}
			got := collect(t, program, b)
			want.check(t, got)
			want.checkError(t, got, agent.WithExit(a, code, got.Errors), code)
		})
	}
	if seen != len(rows) {
		t.Errorf("%d rows have no recording", len(rows)-seen)
	}
}

func (w told) check(t *testing.T, got agent.Outcome) {
	t.Helper()
	if (w.message == "") != (got.Message == "") || !strings.HasSuffix(got.Message, w.message) {
		t.Errorf("message is %q, want %q", got.Message, w.message)
	}
	if got.Terminal != w.terminal {
		t.Errorf("terminal is %q, want %q", got.Terminal, w.terminal)
	}
	want := agent.Usage{Input: w.in, Output: w.out, CacheRead: w.cached}
	if got.Usage != want {
		t.Errorf("usage is %+v, want %+v", got.Usage, want)
	}
	source := agent.CostNone
	if w.cost != 0 {
		source = agent.CostReported
	}
	if got.Cost != w.cost || got.CostSource != source {
		t.Errorf("cost is %d (%s), want %d (%s)", got.Cost, got.CostSource, w.cost, source)
	}
	if got.Calls != w.calls || got.Retries != w.retries || got.Tools != w.tools || got.Unknown != w.unknown {
		t.Errorf("calls, retries, tools, unknown are %d, %d, %d, %d, want %d, %d, %d, %d",
			got.Calls, got.Retries, got.Tools, got.Unknown, w.calls, w.retries, w.tools, w.unknown)
	}
}

func (w told) checkError(t *testing.T, got agent.Outcome, errs []failure.APIError, code int) {
	t.Helper()
	if w.statusByExitOnly && len(got.Errors) != 0 {
		t.Errorf("the stream tells of %+v", got.Errors)
	}
	if len(errs) == 0 {
		if w.kind != "" {
			t.Errorf("no error, want %d %s", w.status, w.kind)
		}
		return
	}
	last := errs[len(errs)-1]
	if last.Status != w.status || last.Type != w.kind || last.Message == "" {
		t.Errorf("error is %+v, want %d %q", last, w.status, w.kind)
	}
	a := failure.Analyse(failure.Evidence{Source: "agent", ExitCode: code, CutOff: got.Terminal == missing, Errors: errs, Now: toldAt})
	wait := time.Duration(0)
	if !a.WaitUntil.IsZero() {
		wait = a.WaitUntil.Sub(toldAt)
	}
	if a.Class != w.class || wait != w.wait {
		t.Errorf("class is %s, wait %v, want %s, %v", a.Class, wait, w.class, w.wait)
	}
}
