package failure

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/failure/runners"
	"github.com/pawl-dev/pawl/internal/decide/failure/waits"
)

// Texts that hold the words of one class and mean another, or none.
func TestWordsInContext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		output string
		exit   int
		want   Class
	}{
		{"FileNotFoundError: [Errno 2] No such file or directory: 'a.md'", 1, Crash},
		{"sh: 3: timeout: not found", 127, MissingCommand},
		{"2026-11-20T04:01:42.429Z built 503 modules in 401ms\nline 404 of 429", 1, Unknown},
		{"job 4290 finished with id 503-401", 1, Unknown},
		{"--- FAIL: TestTimeout (0.00s)\n    a_test.go:3: got 503 Service Unavailable, want 401\nFAIL", 1, TestFailure},
		{"WARNING: 401 Unauthorized from https://repo.example.com\n[ERROR] /repo/A.java:[3,5] cannot find symbol\n[ERROR] COMPILATION ERROR", 1, CompileError},
		{"panic: test timed out after 2s\n\trunning tests:\n\t\tTestDrain (2s)\nFAIL\texample.com/a\t2.0s", 1, Timeout},
		{"", 137, Crash},
		{"", 139, Crash},
		{"", 124, Timeout},
		{"", 127, MissingCommand},
		{"", 1, Unknown},
		{"fatal: Unable to create '/repo/.git/index.lock': File exists.", 128, GitState},
		{"CONFLICT (content): Merge conflict in a.go", 1, MergeConflict},
		{"curl: (22) The requested URL returned error: 503", 22, ServiceUnavailable},
		{"Error: listen EADDRINUSE: address already in use :::3000", 1, PortConflict},
		{"ModuleNotFoundError: No module named 'torch'", 1, Dependency},
		{"[ERROR]     Non-resolvable parent POM for a:b:1-SNAPSHOT: Could not transfer artifact a:p:pom:104 from/to central " +
			"(https://repo.example.com/maven2): transfer failed for https://repo.example.com/maven2/a/p/104/p-104.pom and " +
			"'parent.relativePath' points at wrong local POM @ line 20, column 11: Unknown host repo.example.com: Name or " +
			"service not known -> [Help 2]\n[ERROR] [Help 2] http://example.com/UnresolvableModelException", 1, Network},
		{"Error: EACCES: permission denied, mkdir '/usr/lib/x'", 1, Permission},
		{"error: unexpected argument '--sandboxx' found", 2, Validation},
	} {
		a := Analyse(Evidence{Source: "gate", ExitCode: c.exit, Output: c.output})
		if a.Class != c.want {
			t.Errorf("%q exit %d: %s, want %s", c.output, c.exit, a.Class, c.want)
		}
	}
}

// Git says first what is wrong, and then what it gives up for that.
func TestGitsReason(t *testing.T) {
	t.Parallel()
	a := Analyse(Evidence{Source: "agent", ExitCode: 128, Output: "error: gpg failed to sign the data\nfatal: failed to write commit object\n"})
	if a.Class != GitState || !strings.Contains(a.Summary, "gpg failed to sign") {
		t.Errorf("%s: %s", a.Class, a.Summary)
	}
}

// A place in the project is told with the line of the trace that names it, not
// with another line of the same file.
func TestPlaceOfATrace(t *testing.T) {
	t.Parallel()
	a := Analyse(Evidence{Source: "gate", ExitCode: 1, Output: `Traceback (most recent call last):
  File "app/main.py", line 8, in <module>
    main()
  File "app/main.py", line 5, in main
    return 1 / 0
ZeroDivisionError: division by zero
`})
	for _, item := range a.Items {
		if item.File == "app/main.py" && item.Line == 5 && strings.Contains(item.Message, "line 5, in main") {
			return
		}
	}
	t.Errorf("got %+v", a.Items)
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		e         Evidence
		class     Class
		kind      Kind
		transient bool
	}{
		{Evidence{Source: "gate", ExitCode: -1, TimedOut: true, Output: "--- FAIL: TestA (0.0s)"}, Timeout, Transient, true},
		{Evidence{Source: "gate", ExitCode: -1, Signal: "killed"}, Crash, Transient, true},
		{Evidence{Source: "gate", ExitCode: -1, Signal: "segmentation fault"}, Crash, Work, false},
		{Evidence{Source: "gate", ExitCode: 1, Output: "write a: no space left on device"}, ResourceExhausted, Permanent, false},
		{Evidence{Source: "gate", ExitCode: 127, Output: "sh: 1: ./run_tests.sh: not found"}, MissingCommand, Work, false},
		{Evidence{Source: "gate", ExitCode: 127, Output: "bash: ./run_tests.sh: No such file or directory"}, MissingCommand, Work, false},
		{Evidence{Source: "gate", ExitCode: 127, Output: "> blog@1.0.0 lint\n> eslint .\n\nsh: 1: eslint: not found"}, MissingCommand, Work, false},
		{Evidence{Source: "gate", ExitCode: 1, Output: "install: cannot create directory '/usr/share/x': Permission denied"}, Permission, Permanent, false},
		{Evidence{Source: "gate", ExitCode: 1, Output: "sh: 1: cannot create out/x: Permission denied"}, Permission, Work, false},
		{Evidence{Source: "gate", ExitCode: 1, Output: "src/x.c:4:10: fatal error: Python.h: No such file or directory"}, Dependency, Permanent, false},
		{Evidence{Source: "gate", ExitCode: 1, Output: "panic: test timed out after 10m0s\nFAIL\texample.com/x\t600.0s"}, Timeout, Work, false},
		{Evidence{Source: "gate", ExitCode: 2, Output: "make: *** No targets specified and no makefile found.  Stop."}, Validation, Work, false},
		{Evidence{Source: "gate", ExitCode: 2, Output: "sh: 0: cannot open run_tests.sh: No such file"}, Validation, Work, false},
		{Evidence{Source: "gate", ExitCode: 127, Output: "sh: 1: shellcheck: not found"}, MissingCommand, Permanent, false},
		{Evidence{Source: "gate", ExitCode: 127, Output: "sh: 1: /usr/bin/shellcheck: not found"}, MissingCommand, Permanent, false},
		{Evidence{Source: "agent", ExitCode: 127, Output: "sh: 1: ./bin/agent: not found"}, MissingCommand, Permanent, false},
		{Evidence{Source: "gate", ExitCode: 1, Output: "open a: too many open files"}, ResourceExhausted, Transient, true},
		{Evidence{Source: "gate", ExitCode: 128, Output: "fatal: Unable to create '/repo/.git/index.lock': File exists."}, GitState, Transient, true},
		{Evidence{Source: "agent", ExitCode: 2, Output: "error: unexpected argument '--x' found"}, Validation, Permanent, false},
		{Evidence{Source: "gate", ExitCode: 2, Output: "error: unexpected argument '--x' found"}, Validation, Work, false},
		// A program whose types have no word for a model that does not exist says so in its message.
		{invalid("There's an issue with the selected model (x). It may not exist or you may not have access to it."), Validation, Permanent, false},
		{invalid(`API Error: 404 {"type":"error","error":{"type":"not_found_error","message":"model: x"}}`), Validation, Permanent, false},
		{invalid("The model `gpt-x` does not exist or you do not have access to it."), Validation, Permanent, false},
		{invalid("messages.1.content: at least one block is required"), Validation, Work, false},
		{Evidence{Source: "agent", ExitCode: 1, CutOff: true}, Crash, Transient, true},
		{Evidence{Source: "gate", ExitCode: 1}, Unknown, Work, false},
	} {
		a := Analyse(c.e)
		if a.Class != c.class || a.Kind != c.kind || a.Transient != c.transient {
			t.Errorf("%+v: %s %s %v, want %s %s %v", c.e, a.Class, a.Kind, a.Transient, c.class, c.kind, c.transient)
		}
	}
}

// Of a stream without an end it is said that it has none, whatever the agent wrote in it.
func TestAStreamWithoutAnEnd(t *testing.T) {
	t.Parallel()
	for exit, want := range map[int]string{
		0: "crash: it exited 0, but its output has no readable end: is `output` right for this agent?",
		1: "crash: its output ended early; it wrote last: done",
	} {
		if a := Analyse(Evidence{Source: "agent", Name: "x", ExitCode: exit, CutOff: true, Output: "done"}); a.Summary != want {
			t.Errorf("exit %d: %q", exit, a.Summary)
		}
	}
}

// invalid is an error that an agent types as a bad request.
func invalid(message string) Evidence {
	return Evidence{Source: "agent", ExitCode: 1, Errors: []APIError{{Type: "invalid_request", Message: message}}}
}

var evening = time.Date(2026, 11, 20, 18, 30, 0, 0, time.FixedZone("here", -5*3600))

func TestProviderErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		source   string
		api      APIError
		output   string
		class    Class
		provider bool
		kind     Kind
		wait     time.Duration // from evening; 0: none
	}{
		{"rate", "agent", APIError{Status: 429, Type: "rate_limit_error", RetryAfter: time.Minute}, "", RateLimit, true, Transient, time.Minute},
		{"outage", "agent", APIError{Status: 529, Type: "overloaded_error"}, "", ServiceUnavailable, true, Transient, 0},
		{"quota with a reset", "agent", APIError{Status: 429, Type: "usageLimitExceeded", ResetAt: evening.Add(time.Hour)}, "", QuotaExhausted, true, Transient, time.Hour},
		{"quota without", "agent", APIError{Status: 429, Message: "You exceeded your current quota, check your plan"}, "", QuotaExhausted, true, Permanent, 0},
		{"key", "agent", APIError{Status: 401}, "", Auth, false, Permanent, 0},
		{"forbidden", "agent", APIError{Status: 403}, "", Auth, false, Permanent, 0},
		{"long prompt", "agent", APIError{Status: 400, Message: "prompt is too long: 210000 tokens > 200000 maximum"}, "", ContextLength, false, Work, 0},
		{"no such model", "agent", APIError{Status: 404, Type: "not_found_error", Message: "model: x"}, "", Validation, false, Permanent, 0},
		{"an unknown certificate", "agent", APIError{Type: "certificate_error", Message: "tls: failed to verify certificate: x509: certificate signed by unknown authority"}, "", Validation, false, Permanent, 0},
		{"a redirect", "agent", APIError{Type: "redirect", Message: "the provider redirects to another address"}, "", Validation, false, Permanent, 0},
		{"refused", "agent", APIError{Type: "refused_by_model", Message: "the model refused (SAFETY)"}, "", RefusedByModel, false, Work, 0},
		{"filtered", "agent", APIError{Status: 400, Type: "content_filter", Message: "quota"}, "", RefusedByModel, false, Work, 0},
		{"cut off", "agent", APIError{Type: "max_output_tokens"}, "Error: 503", OutputLimit, false, Work, 0},
		{"nothing", "agent", APIError{Type: "empty_answer"}, "connection refused", EmptyAnswer, false, Work, 0},
		{"broken off", "agent", APIError{Type: "stream_broken", Message: "the provider's answer broke off in the middle"}, "permission: no", Network, true, Transient, 0},
		{"no name", "agent", APIError{Message: "API Error: Unable to connect to API (ENOTFOUND)"}, "", Network, true, Transient, 0},
		{"no answer of a provider", "agent", APIError{Message: "API Error: API returned an empty or malformed response (HTTP 200) — check for a proxy"}, "", Network, true, Transient, 0},
		{"refused", "agent", APIError{Type: "connection_error", Message: "dial tcp 127.0.0.1:9: connect: connection refused"}, "", Network, true, Transient, 0},
		{"disconnected", "agent", APIError{Message: "stream disconnected before completion: stream closed before response.completed"}, "", Network, true, Transient, 0},
		{"waiting", "agent", APIError{Message: "Reconnecting... waiting for network (Connection failed: error sending request)"}, "", Network, true, Transient, 0},
		{"a fetch", "agent", APIError{Message: "[API Error: Connection error. (cause: fetch failed)]"}, "", Network, true, Transient, 0},
		{"terminated", "agent", APIError{Type: "connection_failed", Message: "[API Error: terminated]"}, "", Network, true, Transient, 0},
		{"a socket", "agent", APIError{Message: "The socket connection was closed unexpectedly. For more information, pass verbose: true"}, "", Network, true, Transient, 0},
		{"no computer", "agent", APIError{Message: "Cannot connect to API: Unable to connect. Is the computer able to access the url?"}, "", Network, true, Transient, 0},
		{"a reset", "agent", APIError{Message: "Connection reset by server"}, "", Network, true, Transient, 0},
		{"their time", "agent", APIError{Message: "Request timed out."}, "", Timeout, true, Transient, 0},
		{"a tool's network", "agent", APIError{}, "curl: (7) Failed to connect to localhost port 3000: Connection refused", Network, false, Transient, 0},
		{"rubbish", "agent", APIError{Type: "malformed_answer"}, "permission: no", MalformedAnswer, false, Work, 0},
		{"limit in words", "agent", APIError{}, "You've hit your limit · resets 9pm", QuotaExhausted, true, Transient, 151 * time.Minute},
		{"limit with an epoch", "agent", APIError{}, "Claude AI usage limit reached|" + "1795221000", QuotaExhausted, true, Transient, time.Unix(1795221000, 0).Sub(evening)},
		{"a gate's server is no provider", "gate", APIError{}, "curl: (22) The requested URL returned error: 503", ServiceUnavailable, false, Transient, 0},
		{"an agent's tool is no provider", "agent", APIError{}, "curl: (22) The requested URL returned error: 503", ServiceUnavailable, false, Transient, 0},
	} {
		e := Evidence{Source: c.source, ExitCode: 1, Output: c.output, Now: evening}
		if c.api != (APIError{}) {
			e.Errors = []APIError{c.api}
		}
		a := Analyse(e)
		var wait time.Duration
		if !a.WaitUntil.IsZero() {
			wait = a.WaitUntil.Sub(evening)
		}
		if a.Class != c.class || a.Provider != c.provider || a.Kind != c.kind || wait != c.wait {
			t.Errorf("%s: %s provider %v %s wait %v, want %s %v %s %v", c.name, a.Class, a.Provider, a.Kind, wait, c.class, c.provider, c.kind, c.wait)
		}
	}
}

// The time that a provider named counts, also when the program's last word repeats the error
// without it; another error's time does not.
func TestNamedTimeIsKept(t *testing.T) {
	t.Parallel()
	evening := time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)
	named := APIError{Status: 429, Type: "rate_limit_error", Message: "slow down", ResetAt: evening.Add(2 * time.Minute)}
	for _, test := range []struct {
		last APIError
		want time.Time
	}{
		{APIError{Status: 429, Message: "Too many requests"}, evening.Add(2 * time.Minute)},
		{APIError{Type: "rate_limit", RetryAfter: time.Second}, evening.Add(time.Second)},
		{APIError{Status: 503, Type: "unavailable"}, time.Time{}},
	} {
		got := Analyse(Evidence{Source: "agent", ExitCode: 1, Errors: []APIError{named, test.last}, Now: evening})
		if !got.WaitUntil.Equal(test.want) {
			t.Errorf("after %+v it waits until %v, want %v", test.last, got.WaitUntil, test.want)
		}
	}
}

func TestWaitUntil(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ msg, want string }{
		{"resets 9pm (America/New_York)", "2026-11-20 21:00"},
		{"try again at 1:27 PM.", "2026-11-21 13:27"},
		{"try again at 6:30 PM", "2026-11-20 18:30"},
		{"try again at 6:10 PM", "2026-11-21 18:10"},
		{"resets at 19:05", "2026-11-20 19:05"},
		{"resets 12am", "2026-11-21 00:00"},
		{"resets Nov 22 at 9am", "2026-11-22 09:00"},
		{"try again at Nov 21st, 2026 3:04 PM", "2026-11-21 15:04"},
		{"resets 11pm (UTC)", "2026-11-21 18:00"},
		{"try again in 2h 15m", "2026-11-20 20:45"},
		{"Please retry after 120 seconds", "2026-11-20 18:32"},
		{"try again in 3 days 4 hours", "2026-11-23 22:30"},
		{"will reset after 1 hour and 30 minutes", "2026-11-20 20:00"},
		{"retry-after: 60", "2026-11-20 18:31"},
		{"limit resets at 2026-11-21T00:00:00Z", "2026-11-20 19:00"},
		{"resets 31", ""},
		{"try again later", ""},
		{"resets 25:00", ""},
		{"try again in 9999 days", ""},
	} {
		got := ""
		if at, _ := waits.Read(c.msg, evening, nil); !at.IsZero() {
			got = at.In(evening.Location()).Format("2006-01-02 15:04")
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.msg, got, c.want)
		}
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	mark := func(output string) string {
		return Analyse(Evidence{Source: "gate", Name: "tests", ExitCode: 1, Output: output}).Fingerprint
	}
	same := [][2]string{
		{"--- FAIL: TestA (0.01s)\n    a_test.go:3: x\n--- FAIL: TestB (0.01s)\n    b_test.go:3: y\nFAIL", "--- FAIL: TestB (0.31s)\n    b_test.go:9: y\n--- FAIL: TestA (1.02s)\n    a_test.go:30: x\nFAIL"},
		{"/home/one/a.c:3:5: error: 'x' undeclared", "/tmp/two-1234/a.c:30:1: error: 'x' undeclared"},
		{"panic: runtime error: index out of range [5] with length 3\n\ngoroutine 7 [running]:\nmain.f(0xc000012345)\n\t/a/b/main.go:7 +0x1d", "panic: runtime error: index out of range [6] with length 4\n\ngoroutine 19 [running]:\nmain.f(0xc0000abcde)\n\t/x/main.go:9 +0x2f"},
		{"dial tcp 127.0.0.1:40123: connect: connection refused", "dial tcp 127.0.0.1:51234: connect: connection refused"},
	}
	for _, s := range same {
		if mark(s[0]) != mark(s[1]) {
			t.Errorf("differ:\n%s\n%s", s[0], s[1])
		}
	}
	seen := map[string]string{}
	for _, s := range []string{
		"--- FAIL: TestA (0.0s)\nFAIL", "--- FAIL: TestB (0.0s)\nFAIL", "a.c:3:5: error: 'x' undeclared", "a.c:3:5: error: 'y' undeclared",
		"b.ts(1,2): error TS2322: no", "b.ts(1,2): error TS2304: no", "KeyError: 'id'", "KeyError: 'name'", "",
	} {
		f := mark(s)
		if len(f) != 16 || seen[f] != "" {
			t.Errorf("%q has the fingerprint %s of %q", s, f, seen[f])
		}
		seen[f] = s + " "
	}
}

func TestPattern(t *testing.T) {
	t.Parallel()
	of := func(s string) []Analysis {
		var out []Analysis
		for _, f := range strings.Fields(s) { // class letter and fingerprint: "a1"
			out = append(out, Analysis{Class: Class(f[:1]), Fingerprint: f})
		}
		return out
	}
	for history, want := range map[string]string{
		"": "", "a1": "", "a1 a1": RepeatedIdentical, "b1 a1 a1": RepeatedIdentical, "a1 b1": "",
		"a1 b1 a1 b1": OscillationPattern, "a1 a2 a3": ConsistentFailure, "a1 b1 c1": AlternatingErrors, "a1 b1 b2": "",
	} {
		if got := Pattern(of(history)); got != want {
			t.Errorf("%q: %q, want %q", history, got, want)
		}
	}
}

func TestTelling(t *testing.T) {
	t.Parallel()
	noise := strings.Repeat("copying a file\n", 500)
	got := InformativeLines("\x1b[31mstart\x1b[0m\n"+noise+"error: cannot open the lock\n"+noise+"the end", 200)
	if !strings.Contains(got, "error: cannot open the lock") || !strings.HasSuffix(got, "the end") || len(got) > 200 || strings.Contains(got, "\x1b") {
		t.Errorf("got %q", got)
	}
	if got := InformativeLines("short", 100); got != "short" {
		t.Errorf("got %q", got)
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		output string
		want   Class
	}{
		{`{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"API Error: 401 authentication_error"}`, Auth},
		{`{"type":"result","subtype":"success","is_error":false,"result":"I fixed the 503 error. Do you want me to go on?"}`, NoProgress},
		{`{"type":"result","subtype":"success","is_error":false,"result":"I need your permission to edit files."}`, Permission},
		{`{"type":"result","subtype":"success","is_error":false,"result":"I need your permission to edit files.","usage":{"inp`, Permission},
		{`{"type":"result","subtype":"error_max_turns","is_error":true}`, NoProgress},
		{`{"type":"thread.started"}` + "\n" + `{"type":"turn.failed","error":{"message":"unexpected status 503 Service Unavailable: overloaded"}}`, ServiceUnavailable},
	} {
		if a := Analyse(Evidence{Source: "agent", Name: "claude", Output: c.output}); a.Class != c.want {
			t.Errorf("%s: %s, want %s", c.output, a.Class, c.want)
		}
	}
}

func check(t *testing.T, a Analysis) {
	if a.Class == "" || a.Kind == "" || a.Severity == "" || len(a.Fingerprint) != 16 || len(a.Items) > runners.MaxItems || len(a.Summary) > maxSummary || a.Summary == "" || strings.Contains(a.Summary, "\n") {
		t.Errorf("%+v", a)
	}
	for _, i := range a.Items {
		if len(i.Message) > runners.MaxMessage || len(i.Test) > 300 || len(i.File) > 300 || i.Line < 0 {
			t.Errorf("%+v", i)
		}
	}
}

func FuzzAnalyse(f *testing.F) {
	for _, s := range []string{"", "\x1b[", "\x1b]8;;", "a\rb", "{\"type\":\"result\",\"result\":\"x", "--- FAIL: ", "___ ___\nE ", "<testsuite", "<testsuite><testcase><failure>", strings.Repeat("error: a.c:1:1: ", 500), "  1) \n  2) ", "1..", "Tests: ", "File \"a.py\", line 9", "a.b(1", "resets 9pm", "● \n", "\xff\xfe.go:1", "\x1bܻ", "\x1b(ܻ", "\x1b]" + strings.Repeat("ܻ", 200)} {
		f.Add(s, 1)
	}
	f.Fuzz(func(t *testing.T, output string, exit int) {
		e := Evidence{Source: "agent", Name: "x", ExitCode: exit, Output: output, Errors: []APIError{{Message: output}}, Now: evening}
		check(t, Analyse(e))
		e.Source, e.Errors = "gate", nil
		a := Analyse(e)
		check(t, a)
		if b := Analyse(e); b.Fingerprint != a.Fingerprint || b.Class != a.Class {
			t.Errorf("two analyses differ: %+v, %+v", a, b)
		}
		if s := InformativeLines(output, 100); len(s) > 100 || utf8.ValidString(output) && !utf8.ValidString(s) {
			t.Errorf("telling: %q", s)
		}
	})
}

// hostile is a text in which every line asks for as much work as possible.
func hostile(size int) string {
	line := "error: failed: a.c:1:1: error: 429 status: 503 E1 timeout (x) expected: FAIL not found " + strings.Repeat("a", 200) + "\n"
	return strings.Repeat(line, size/len(line))
}

func BenchmarkAnalyse(b *testing.B) {
	for name, text := range map[string]string{
		"large":   strings.Repeat("ok  \texample.com/calc\t0.01s\n[10:20:30] compiled module 17 of 300 in 12 ms\n", 14_000) + "--- FAIL: TestA (0.00s)\n    a_test.go:3: got 1, want 2\nFAIL\n",
		"hostile": hostile(1 << 20),
		"oneline": strings.Repeat("error: 503 ", 100_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Analyse(Evidence{Source: "gate", ExitCode: 1, Output: text})
			}
		})
	}
}

// The advice is about what the message says, where the class says too little.
func TestAdvice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ output, want string }{
		{"Get \"https://r.example.com/v2/\": tls: failed to verify certificate: x509: certificate signed by unknown authority", "SSL_CERT_FILE"},
		{"error: externally-managed-environment\n\n× This environment is externally managed", "python3 -m venv"},
		{"Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", "Start Docker"},
		{"cp: error writing 'out/a': No space left on device", "df -h"},
		{"Error: Cannot find module './util'\nRequire stack:\n- /x/index.js", "Write ./util, or correct the path of the import."},
		{"sh: 1: ./run_tests.sh: not found", "Write ./run_tests.sh, or correct the path"},
		{"> blog@1.0.0 lint\n> eslint .\n\nsh: 1: eslint: not found", "npm ci"},
	} {
		a := Analyse(Evidence{Source: "gate", ExitCode: 1, Output: c.output})
		if len(a.Actions) == 0 || !strings.Contains(a.Actions[0], c.want) {
			t.Errorf("%q: %q, want %q", c.output, a.Actions, c.want)
		}
	}
}
